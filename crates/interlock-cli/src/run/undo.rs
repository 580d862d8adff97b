//! `interlock undo`: brings back what calls changed. The plan is shown first; what changed since is left alone.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use interlock_core::visible;
use interlock_wire::{UndoAnswer, UndoRequest, UndoStep, write};

use super::{Teller, directory_of};
use crate::client::{Client, ServerArguments};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, moment, print};

/// How many paths of a plan are shown.
const SHOWN_MAX: usize = 200;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock undo --last
  interlock undo dec_1c0d81907c8511dac180148e070a3ac1 --dry-run
  interlock undo --since 15m src/
  interlock undo undo_5f0c2b9e7d314a86b1c0e4f2a9d86375             undoes an undo

What changed after the call, or was changed by a call that ran meanwhile, is a conflict and stays as it is, unless you name
it. Whatever is overwritten or removed is kept first. Exit codes: 0 undone, or nothing to undo; 1 conflicts are left, or
nobody agreed; 2 usage or fault.")]
pub(crate) struct UndoArguments {
    /// The decision that let the call run, or the id of an undo; then paths, of which alone something is undone
    #[arg(value_name = "CALL|PATH", required_unless_present_any = ["last", "since", "session"])]
    words: Vec<String>,
    /// The last call that changed something
    #[arg(long, group = "which")]
    last: bool,
    /// All calls since a time, or a while ago: 15m, 2h, 2026-11-15T12:00:00Z
    #[arg(long, value_name = "TIME", group = "which")]
    since: Option<String>,
    /// All calls of a session
    #[arg(long, value_name = "ID", group = "which")]
    session: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// The project, or a directory in it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &UndoArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let mut request = asked(arguments)?;
    let answer = client.post_patiently("/undo", &write(&request))?;
    let planned: UndoAnswer = answer.read()?;
    let teller = Teller { json: arguments.server.json };
    let left = outcome(&planned);
    if arguments.dry_run || planned.restored == 0 {
        let output = if arguments.server.json { answer.json() } else { plan_text(&planned) };
        print(output.as_bytes())?;
        return Ok(left);
    }
    teller.say(&plan_text(&planned))?;
    if !teller.agrees("Undo this?", arguments.yes)? {
        return Ok(Outcome::Refused);
    }
    request.plan = Some(planned.plan);
    let answer = client.post_patiently("/undo", &write(&request))?;
    let done: UndoAnswer = answer.read()?;
    let output = if arguments.server.json { answer.json() } else { done_text(&done) };
    print(output.as_bytes())?;
    Ok(outcome(&done))
}

/// Conflicts that are left are an answer that is not yes.
fn outcome(answer: &UndoAnswer) -> Outcome {
    if answer.conflicts == 0 { Outcome::Clean } else { Outcome::Refused }
}

fn asked(arguments: &UndoArguments) -> Result<UndoRequest, Fault> {
    let is_chosen = arguments.last || arguments.since.is_some() || arguments.session.is_some();
    let (call, paths) = match arguments.words.split_first() {
        Some((call, paths)) if !is_chosen => (Some(call.clone()), paths),
        _ => (None, arguments.words.as_slice()),
    };
    if let Some(call) = &call
        && !["dec_", "undo_"].iter().any(|prefix| call.starts_with(prefix))
    {
        let what = format!("`{}` is the id of no call", interlock_core::display(call));
        let next = "ids begin with `dec_` or `undo_`; `interlock undo --last` takes the last call, and `interlock activity` \
                    shows the ids";
        return Err(Fault::new(what).and_then_do(next));
    }
    let here =
        std::env::current_dir().map_err(|error| Fault::new(format!("the working directory is gone: {error}")))?;
    let now = interlock_runtime::clock::Clock::now(&interlock_runtime::clock::SystemClock);
    let paths: Vec<String> = paths.iter().map(|path| absolute(&here, path)).collect::<Result<_, _>>()?;
    Ok(UndoRequest {
        directory: directory_of(arguments.project.as_deref())?,
        call,
        since: arguments.since.as_ref().map(|since| moment::parse_bound(since, now)),
        session: arguments.session.clone(),
        paths: (!paths.is_empty()).then_some(paths),
        plan: None,
    })
}

/// A path as it is meant from here. What it names may be gone, so no link in its last part is followed.
fn absolute(here: &Path, path: &str) -> Result<String, Fault> {
    let mut whole = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    let text = whole.into_os_string().into_string();
    text.map_err(|_| Fault::new("a path that is not UTF-8 cannot be named; name its directory"))
}

fn plan_text(answer: &UndoAnswer) -> String {
    let mut text = String::new();
    let calls: Vec<String> = answer.calls.iter().map(|call| cell(call, 80)).collect();
    let _ = writeln!(text, "undo of {} {FAINT}in {}{RESET}", calls.join(", "), visible(&answer.project));
    let telling: Vec<&UndoStep> = answer.steps.iter().filter(|step| step.fate != "as_before").collect();
    for step in telling.iter().take(SHOWN_MAX) {
        let colour = match step.fate.as_str() {
            "create" => GOOD,
            "remove" | "conflict" => BAD,
            _ => "",
        };
        let why = step.why.as_ref().map_or_else(String::new, |why| format!("  {FAINT}{}{RESET}", visible(why)));
        let _ = writeln!(text, "  {colour}{:<9}{RESET} {}{why}", step.fate.replace('_', " "), visible(&step.path));
    }
    if telling.len() > SHOWN_MAX {
        let _ = writeln!(text, "  {FAINT}and {} more; --json has all{RESET}", telling.len().saturating_sub(SHOWN_MAX));
    }
    if telling.is_empty() {
        text.push_str("  nothing to undo: everything is as it was\n");
    }
    text.push_str(&conflicts_text(answer));
    text
}

fn conflicts_text(answer: &UndoAnswer) -> String {
    if answer.conflicts == 0 {
        return String::new();
    }
    format!("{BAD}{} in conflict{RESET}, left alone; name a path to undo it all the same\n", answer.conflicts)
}

fn done_text(answer: &UndoAnswer) -> String {
    let mut text = format!("{GOOD}UNDONE{RESET} {} paths\n", answer.restored);
    text.push_str(&conflicts_text(answer));
    if let Some(undo_id) = &answer.undo_id {
        let _ = writeln!(text, "{FAINT}undo this: interlock undo {}{RESET}", cell(undo_id, 80));
    }
    text
}
