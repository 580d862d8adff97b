//! `interlock backup` and `interlock restore`: says what was copied, or why nothing was.

use std::path::PathBuf;

use clap::Args;
use interlock_core::Code;
use interlock_core::json::quote;
use interlock_core::visible;
use interlock_runtime::clock::{Clock, SystemClock};
use interlock_runtime::ledger::{AuditReport, BackupFault, BackupReport, RestoreReport, back_up, restore};

use crate::audit::{clear_progress, progress};
use crate::serve::Places;
use crate::{Fault, Outcome, print, style};

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock backup --data /var/lib/interlock --out /backup/interlock-monday

It holds keys, so keep it as safe as the data directory.
Exit codes: 0 made, 1 the ledger is damaged, 2 usage or fault.")]
pub(crate) struct BackupArguments {
    /// The data directory; a server may run on it [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the backup goes: a directory that is absent or empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock restore --from /backup/interlock-monday --data /var/lib/interlock

Every file is compared with the manifest, then the checks of a start and a whole `audit verify` run on the copy; only
then does it get its name. Exit codes: 0 restored, 1 the backup is damaged, 2 usage or fault.")]
pub(crate) struct RestoreArguments {
    /// The backup
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The data directory to make: absent or empty
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run_backup(arguments: &BackupArguments) -> Result<Outcome, Fault> {
    let places = Places::find(arguments.data.as_deref())?;
    let made = back_up(&places.data, &arguments.out, SystemClock.now(), env!("CARGO_PKG_VERSION"));
    let report = made.map_err(|fault| failed(&fault, "no backup was made"))?;
    let text = if arguments.json { backup_json(arguments, &report) } else { backup_text(arguments, &places, &report) };
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}

pub(crate) fn run_restore(arguments: &RestoreArguments) -> Result<Outcome, Fault> {
    let restored = restore(&arguments.from, &arguments.data, SystemClock.now(), &mut progress(arguments.json));
    clear_progress(arguments.json);
    let report = restored.map_err(|fault| failed(&fault, "nothing was restored"))?;
    let text = if arguments.json { restore_json(arguments, &report) } else { restore_text(arguments, &report) };
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}

/// A damaged ledger is an answer; everything else is a fault.
fn failed(fault: &BackupFault, what: &str) -> Fault {
    let next = match fault {
        BackupFault::Place { .. } => None,
        BackupFault::Read { .. } | BackupFault::Write { .. } | BackupFault::Store(_) => {
            Some("check space and permissions, as the user the data directory belongs to")
        }
        BackupFault::Manifest(_) | BackupFault::Digest { .. } => {
            Some("take another backup; this one was changed or cut off")
        }
        BackupFault::Recovery(_) | BackupFault::Findings(_) => Some("more: interlock explain INTERLOCK-LEDGER-001"),
    };
    let code = fault.code();
    let mut told = Fault::with_code(code, format!("{what}: {fault}"));
    if let Some(next) = next {
        told = told.and_then_do(next);
    }
    if code == Code::LedgerDamaged { told.refused() } else { told }
}

fn backup_json(arguments: &BackupArguments, report: &BackupReport) -> String {
    let manifest = &report.manifest;
    let files: Vec<String> = manifest
        .files
        .iter()
        .map(|file| {
            let (name, digest) = (quote(&file.name), quote(&file.digest.to_string()));
            format!("{{\"name\":{name},\"bytes\":{},\"digest\":{digest}}}", file.bytes)
        })
        .collect();
    let left_out: Vec<String> = report.left_out.iter().map(|name| quote(name)).collect();
    format!(
        "{{\"out\":{},\"entries\":{},\"root\":{},\"checkpoint\":{},\"files\":[{}],\"left_out\":[{}]}}\n",
        quote(&arguments.out.display().to_string()),
        manifest.entries,
        quote(&manifest.root.to_string()),
        manifest.checkpoint,
        files.join(","),
        left_out.join(",")
    )
}

fn backup_text(arguments: &BackupArguments, places: &Places, report: &BackupReport) -> String {
    let manifest = &report.manifest;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let names: Vec<String> = manifest.files.iter().map(|file| visible(&file.name)).collect();
    let mut out = format!(
        "{}BACKED UP{} {} entries to {}\n  root {}\n  {} files, {bytes} bytes: {}\n",
        style::GOOD,
        style::RESET,
        manifest.entries,
        visible(&arguments.out.display().to_string()),
        manifest.root,
        names.len(),
        names.join(", "),
    );
    if !report.left_out.is_empty() {
        let left_out: Vec<String> = report.left_out.iter().map(|name| visible(name)).collect();
        out.push_str(&format!("  left out: {}\n", left_out.join(", ")));
    }
    if places.key.parent() != Some(places.data.as_path()) {
        let key = visible(&places.key.display().to_string());
        out.push_str(&format!("  not in it: {key}, which lies elsewhere; keep a copy of it too\n"));
    }
    out.push_str(&format!("  {}It holds keys: keep it as safe as the data directory.{}\n", style::FAINT, style::RESET));
    out
}

fn restore_json(arguments: &RestoreArguments, report: &RestoreReport) -> String {
    let AuditReport { entries, root, agents, conversations, .. } = &report.audit;
    format!(
        "{{\"data\":{},\"made_at\":{},\"entries\":{entries},\"root\":{},\"agents\":{agents},\
         \"conversations\":{conversations}}}\n",
        quote(&arguments.data.display().to_string()),
        report.manifest.made_at,
        quote(&root.to_string()),
    )
}

fn restore_text(arguments: &RestoreArguments, report: &RestoreReport) -> String {
    let AuditReport { entries, root, agents, conversations, .. } = &report.audit;
    let data = visible(&arguments.data.display().to_string());
    format!(
        "{}RESTORED{} {entries} entries, {agents} agents, {conversations} conversations in {data}: digests, start and \
         audit are sound\n  root {root}\n  What was decided after the backup is gone: steps used since are free again, \
         money spent since is not counted.\n  Never let this and the old ledger run both: they sign with one key.\n",
        style::GOOD,
        style::RESET
    )
}
