//! `interlock changes`: what a call changed in its project, from the states that were kept before and after it.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use interlock_core::visible;
use interlock_wire::{ChangedFile, Changes};

use super::directory_of;
use crate::client::{Client, ServerArguments, with_query};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, moment, print};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock changes                                               the last call that changed something
  interlock changes dec_1c0d81907c8511dac180148e070a3ac1 --stat

Exit codes: 0 nothing changed, 1 something did, 2 usage or fault.")]
pub(crate) struct ChangesArguments {
    /// The decision that let the call run, or the id of an undo [default: the last call that changed something]
    #[arg(value_name = "CALL")]
    call: Option<String>,
    /// Name the files, and leave the lines out
    #[arg(long)]
    stat: bool,
    /// The project, or a directory in it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &ChangesArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let stat = arguments.stat.then(|| "true".to_owned());
    let asked = [
        ("directory", Some(directory_of(arguments.project.as_deref())?)),
        ("call", arguments.call.clone()),
        ("stat", stat),
    ];
    let answer = client.get_patiently(&with_query("/changes", &asked))?;
    let changes: Changes = answer.read()?;
    let output = if arguments.server.json { answer.json() } else { text(&changes, arguments.stat) };
    print(output.as_bytes())?;
    Ok(if changes.files.is_empty() { Outcome::Clean } else { Outcome::Refused })
}

fn text(changes: &Changes, stat: bool) -> String {
    let mut text = String::new();
    let at = moment::short(&changes.at);
    let _ = writeln!(
        text,
        "{} {} {FAINT}{at} in {}{RESET}",
        cell(&changes.call, 80),
        cell(&changes.tool, 40),
        visible(&changes.project)
    );
    if changes.is_open {
        let _ = writeln!(text, "{FAINT}nobody told its end: this is what changed since it began{RESET}");
    }
    if changes.files.is_empty() {
        text.push_str("nothing changed\n");
        return text;
    }
    for file in &changes.files {
        text.push_str(&shown(file, stat));
    }
    let _ = writeln!(text, "{FAINT}undo: interlock undo {}{RESET}", cell(&changes.call, 80));
    text
}

fn shown(file: &ChangedFile, stat: bool) -> String {
    let (mark, colour) = match file.ways.first().map(String::as_str) {
        Some("added") => ("added", GOOD),
        Some("removed") => ("removed", BAD),
        _ => ("changed", ""),
    };
    let (before, after) = (file.before.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
    let what = match (before, after) {
        (before, "") => visible(before),
        ("", after) => visible(after),
        (before, after) => format!("{} to {}", visible(before), visible(after)),
    };
    let mut text = format!("{colour}{mark:<8}{RESET} {}  {FAINT}{what}{RESET}\n", visible(&file.path));
    if stat {
        return text;
    }
    if let Some(why) = &file.no_diff {
        let _ = writeln!(text, "         {FAINT}lines are not shown: {}{RESET}", visible(why));
    }
    for line in file.diff.iter().flat_map(|diff| diff.lines()) {
        let colour = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            Some(b'@') => FAINT,
            _ => "",
        };
        // What an agent wrote moves no cursor; tabs are shown as what they are.
        let shown = line.split('\t').map(visible).collect::<Vec<_>>().join("\t");
        let _ = writeln!(text, "  {colour}{shown}{RESET}");
    }
    text
}
