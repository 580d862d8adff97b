//! `interlock audit`: checks a ledger from its entries, beside a running server or without one.

mod export;
mod proof;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use interlock_core::Code;
use interlock_core::json::quote;
use interlock_runtime::clock::{Clock, Entropy, SystemClock};
use interlock_runtime::ledger::{AuditReport, DATABASE_NAME, Replay, SqliteReader, replay, verify_with_key};

use crate::serve::{Places, load_bundle};
use crate::{Fault, Outcome, Report, print, style};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Recompute hashes, root and rows, and compare them with the store and the signed checkpoint
    Verify(VerifyArguments),
    /// Decide every ruling again, with the recorded bundle or with another, and print what changes
    Replay(ReplayArguments),
    /// Print the public key that checkpoints are signed with
    Key(proof::KeyArguments),
    /// Prove that an entry is in the ledger
    Prove(proof::ProveArguments),
    /// Prove that the ledger continues an earlier one
    Consistency(proof::ConsistencyArguments),
    /// Check a proof with the public key alone, without the ledger
    Check(proof::CheckArguments),
    /// Write rulings to files, with what their digests and the ledger's signature are
    Export(export::ExportArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock audit verify --data ./data")]
pub(crate) struct VerifyArguments {
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock audit replay --bundle ./next    what would the new bundle have decided?")]
pub(crate) struct ReplayArguments {
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Decide with this bundle instead of the recorded ones
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl AuditCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            AuditCommand::Verify(arguments) => arguments.json,
            AuditCommand::Replay(arguments) => arguments.json,
            AuditCommand::Key(arguments) => arguments.json,
            AuditCommand::Prove(arguments) => arguments.json,
            AuditCommand::Consistency(arguments) => arguments.json,
            AuditCommand::Check(arguments) => arguments.json,
            AuditCommand::Export(arguments) => arguments.json,
        }
    }
}

pub(crate) fn run(command: &AuditCommand) -> Result<Outcome, Fault> {
    match command {
        AuditCommand::Verify(arguments) => run_verify(arguments),
        AuditCommand::Replay(arguments) => run_replay(arguments),
        AuditCommand::Key(arguments) => proof::run_key(arguments),
        AuditCommand::Prove(arguments) => proof::run_prove(arguments),
        AuditCommand::Consistency(arguments) => proof::run_consistency(arguments),
        AuditCommand::Check(arguments) => proof::run_check(arguments),
        AuditCommand::Export(arguments) => export::run(arguments),
    }
}

/// A source that gives nothing: an audit makes no keys.
pub(crate) struct NoEntropy;

impl Entropy for NoEntropy {
    fn fill(&self, _bytes: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::Error::other("there is no ledger.key"))
    }
}

fn run_verify(arguments: &VerifyArguments) -> Result<Outcome, Fault> {
    let data = Places::find(arguments.data.as_deref())?.data;
    // The checkpoint first: entries may be added meanwhile, so the store can only be ahead of it.
    let (file, signed) = proof::signed(&data)?;
    let checkpoint = signed.map(|signed| signed.checkpoint);
    let mut reader = open(&data)?;
    let report = verify_with_key(&mut reader, checkpoint, file.key(), SystemClock.now(), &mut progress(arguments.json));
    let mut report = report.map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?;
    if checkpoint.is_none() {
        report.findings.insert(0, "there is no checkpoint file".to_owned());
        report.findings_count = report.findings_count.saturating_add(1);
    }
    clear_progress(arguments.json);
    print(if arguments.json { verify_json(&report) } else { verify_text(&report) }.as_bytes())?;
    Ok(if report.findings.is_empty() { Outcome::Clean } else { Outcome::Refused })
}

fn run_replay(arguments: &ReplayArguments) -> Result<Outcome, Fault> {
    let places = Places::find(arguments.data.as_deref())?;
    let data = &places.data;
    let other = match &arguments.bundle {
        Some(directory) => {
            let loaded = load_bundle(Some(directory), &places, &[]);
            Some(loaded.map_err(|fault| Fault::with_code(fault.code, fault.message))?.0)
        }
        None => None,
    };
    let mut reader = open(data)?;
    let replayed = replay(&mut reader, other.as_ref(), &mut progress(arguments.json));
    let replayed = replayed.map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?;
    clear_progress(arguments.json);
    print(if arguments.json { replay_json(&replayed) } else { replay_text(&replayed) }.as_bytes())?;
    let clean = replayed.differences_count == 0 && replayed.findings.is_empty();
    Ok(if clean { Outcome::Clean } else { Outcome::Refused })
}

/// Nothing is wrong with a ledger that is not there: that is a slip of the pen, and no alarm.
fn is_there(data: &std::path::Path) -> Result<(), Fault> {
    if data.join(DATABASE_NAME).exists() || data.join("checkpoint").exists() {
        return Ok(());
    }
    Err(Fault::new(format!("{} holds no ledger; --data names the directory of one", data.display())))
}

fn open(data: &std::path::Path) -> Result<SqliteReader, Fault> {
    is_there(data)?;
    SqliteReader::open(data)
        .map_err(|fault| Fault::with_code(Code::FaultStore, format!("{} holds no ledger: {fault}", data.display())))
}

/// What was asked for is there, and it is not sound: exit code 1.
fn refuse(code: Code, reason: String, json: bool) -> Outcome {
    Fault::with_code(code, reason).report(json);
    Outcome::Refused
}

pub(crate) fn progress(json: bool) -> impl FnMut(u64, u64) {
    let shown = !json && std::io::stderr().is_terminal();
    move |done, all| {
        if shown {
            let percent = done.saturating_mul(100).checked_div(all).unwrap_or(100);
            let _ = write!(anstream::stderr(), "\r{percent:3} % of {all} entries");
        }
    }
}

pub(crate) fn clear_progress(json: bool) {
    if !json && std::io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "\r\u{1b}[K");
    }
}

fn texts(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(","))
}

fn verify_json(report: &AuditReport) -> String {
    format!(
        "{{\"ok\":{},\"entries\":{},\"root\":{},\"agents\":{},\"conversations\":{},\"findings_count\":{},\"findings\":{}}}\n",
        report.findings.is_empty(),
        report.entries,
        quote(&report.root.to_string()),
        report.agents,
        report.conversations,
        report.findings_count,
        texts(&report.findings),
    )
}

fn verify_text(report: &AuditReport) -> String {
    let AuditReport { entries, root, agents, conversations, findings, findings_count } = report;
    let what = format!("{entries} entries, {agents} agents, {conversations} conversations");
    if findings.is_empty() {
        return format!("{}SOUND{} {what}\n  root {root}\n", style::GOOD, style::RESET);
    }
    let mut text = format!("{}DAMAGED{} {findings_count} findings in {what}\n", style::BAD, style::RESET);
    for finding in findings {
        text.push_str(&format!("  {finding}\n"));
    }
    text.push_str("  more: interlock explain INTERLOCK-LEDGER-001\n");
    text
}

fn replay_json(replay: &Replay) -> String {
    let difference = |difference: &interlock_runtime::ledger::Difference| {
        format!(
            "{{\"index\":{},\"decision_id\":{},\"action\":{},\"recorded\":{},\"decided\":{}}}",
            difference.index,
            quote(&difference.decision_id),
            quote(&difference.action),
            quote(difference.recorded.as_str()),
            difference.decided.map_or_else(|| "null".to_owned(), |decided| quote(decided.as_str())),
        )
    };
    let differences: Vec<String> = replay.differences.iter().map(difference).collect();
    format!(
        "{{\"entries\":{},\"rulings\":{},\"malformed\":{},\"differences_count\":{},\"differences\":[{}],\"findings\":{}}}\n",
        replay.entries,
        replay.rulings,
        replay.malformed,
        replay.differences_count,
        differences.join(","),
        texts(&replay.findings),
    )
}

fn replay_text(replay: &Replay) -> String {
    let Replay { entries, rulings, malformed, differences, differences_count, findings } = replay;
    let what = format!("{rulings} rulings of {entries} entries ({malformed} requests had nothing to decide again)");
    if *differences_count == 0 && findings.is_empty() {
        return format!("{}SAME{} {what}\n", style::GOOD, style::RESET);
    }
    let mut text = format!("{}DIFFERENT{} {differences_count} of {what}\n", style::BAD, style::RESET);
    for difference in differences {
        let decided = difference.decided.map_or("needs its text", |decided| decided.as_str());
        let (index, id, action, recorded) =
            (difference.index, &difference.decision_id, &difference.action, difference.recorded);
        text.push_str(&format!("  entry {index} {id} {action}: {recorded} -> {decided}\n"));
    }
    for finding in findings {
        text.push_str(&format!("  {finding}\n"));
    }
    text
}
