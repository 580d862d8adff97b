//! `interlock audit export`: rulings as files for people who were not there.

use std::path::PathBuf;

use clap::Args;
use interlock_core::Code;
use interlock_core::action::Millis;
use interlock_core::json::quote;
use interlock_runtime::clock::{Clock, SystemClock};
use interlock_runtime::export::{Export, ExportFault, Filter, Sealed, export};
use interlock_runtime::ledger::Reader;

use super::proof::signed;
use super::{clear_progress, open, progress, refuse};
use crate::input::read_time;
use crate::serve::Places;
use crate::{Fault, Outcome, print, style};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock audit export --out ./2026-11 --from 2026-11-01 --to 2026-12-01
  interlock audit export --out ./one --agent agent_8bed253e96a9389609c64f0050c4f4f9

It writes activity.jsonl, activity.csv and manifest.json. Times are RFC 3339, a date (its first moment, UTC), or
milliseconds since 1970; --to is the first moment that is left out.")]
pub(crate) struct ExportArguments {
    /// A directory that is new or empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Only this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Not before this time
    #[arg(long, value_name = "T", value_parser = read_time)]
    from: Option<Millis>,
    /// Before this time
    #[arg(long, value_name = "T", value_parser = read_time)]
    to: Option<Millis>,
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(arguments: &ExportArguments) -> Result<Outcome, Fault> {
    let ExportArguments { out, agent, from, to, data, json } = arguments;
    let data = Places::find(data.as_deref())?.data;
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        return Err(Fault::new("--from is not before --to, so nothing could be exported"));
    }
    let (file, signed) = signed(&data)?;
    let verifier = file.key().verifier().clone();
    let signed = signed.ok_or_else(|| Fault::with_code(Code::LedgerDamaged, "there is no checkpoint file"))?;
    let mut reader = open(&data)?;
    if let Some(id) = agent {
        let known = reader.agent(id).map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?;
        if known.is_none() {
            return Err(Fault::new(format!("there is no agent `{}`", interlock_core::display(id))));
        }
    }
    let filter = Filter { agent: agent.clone(), from: *from, to: *to };
    // What was answered is in the store before it is under the file, which is written once a second. So the export rests
    // on the head, signed here; every entry is hashed, and the file's root must be found on the way.
    let head = reader.head().map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?;
    let written = signed.checkpoint;
    let signed = if head.size() > written.size { file.key().sign_after(&signed, &head) } else { signed };
    let sealed = Sealed { signed: &signed, written, verifier: &verifier };
    let exported = export(&mut reader, sealed, &filter, out, SystemClock.now(), &mut progress(*json));
    clear_progress(*json);
    match exported {
        Ok(exported) => {
            print(if *json { to_json(&exported) } else { to_text(&exported, out) }.as_bytes())?;
            Ok(Outcome::Clean)
        }
        Err(ExportFault::Damaged(reason)) => Ok(refuse(Code::LedgerDamaged, reason, *json)),
        Err(fault @ ExportFault::Store(_)) => Err(Fault::with_code(Code::FaultStore, fault.to_string())),
        Err(fault @ (ExportFault::NotEmpty(_) | ExportFault::Write(..))) => Err(Fault::new(fault.to_string())),
    }
}

fn to_json(export: &Export) -> String {
    let rulings: Vec<String> =
        export.rulings.iter().map(|(decision, count)| format!("\"{decision}\":{count}")).collect();
    let files: Vec<String> = export
        .files
        .iter()
        .map(|file| {
            format!("{{\"name\":{},\"bytes\":{},\"sha256\":\"{}\"}}", quote(file.name), file.bytes, file.sha256)
        })
        .collect();
    let Export { entries, executions, agents, size, root, later, .. } = export;
    let (rulings, files) = (rulings.join(","), files.join(","));
    format!(
        "{{\"entries\":{entries},\"rulings\":{{{rulings}}},\"executions\":{executions},\"agents\":{agents},\"files\":[{files}],\"size\":{size},\
         \"root\":\"{root}\",\"later\":{later}}}\n"
    )
}

fn to_text(export: &Export, out: &std::path::Path) -> String {
    let Export { entries, rulings, executions, agents, files, size, root, later } = export;
    let count: u64 = rulings.values().sum();
    let (good, reset, out) = (style::GOOD, style::RESET, interlock_core::visible(&out.to_string_lossy()));
    let mut text =
        format!("{good}EXPORTED{reset} {count} rulings among {entries} entries of {agents} agents to {out}\n");
    for (decision, count) in rulings.iter().filter(|(_, count)| **count > 0) {
        text.push_str(&format!("  {count} {decision}\n"));
    }
    if *executions > 0 {
        text.push_str(&format!("  {executions} reported as executed\n"));
    }
    for file in files {
        text.push_str(&format!("  {} {} bytes {}\n", file.name, file.bytes, file.sha256));
    }
    text.push_str(&format!("  from the {size} entries under the signed checkpoint, root {root}\n"));
    if *later > 0 {
        text.push_str(&format!("  {later} later entries are not under it yet and were left out\n"));
    }
    text
}
