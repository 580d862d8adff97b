//! `interlock pause`: for a while refusals are only shown.

use std::fmt::Write;

use clap::Args;
use interlock_wire::{PauseRequest, Run, write};

use super::{Agents, ProjectArguments, agents_json, all_known, loud, parse_seconds};
use crate::client::{Client, ServerArguments};
use crate::style::{FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, moment, print};

/// The longest pause, in seconds; the server has the same.
const SECONDS_MAX: u64 = 8 * 3_600;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock pause 15m --reason 'merging by hand'
  interlock pause 0m                                 ends it

At most 8 hours. Meanwhile every call passes, whatever is ruled; all of it is recorded.
Exit codes: 0 done, 1 refused, or no coding agent is known there, 2 usage or fault.")]
pub(crate) struct PauseArguments {
    /// How long: 30s, 15m, 1h; 0m ends a pause
    #[arg(value_name = "DURATION", value_parser = parse_seconds)]
    seconds: u64,
    #[command(flatten)]
    project: ProjectArguments,
    /// All coding agents of this home, whatever their project
    #[arg(long, conflicts_with_all = ["project", "host"])]
    all: bool,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &PauseArguments) -> Result<Outcome, Fault> {
    if arguments.seconds > SECONDS_MAX {
        let next = "for longer, `interlock observe` until you say `interlock enforce`";
        return Err(Fault::new("a pause lasts at most 8 hours").and_then_do(next));
    }
    let client = Client::open_or_start(&arguments.server)?;
    let agents = if arguments.all {
        Agents { project: String::new(), list: all_known(&client)? }
    } else {
        Agents::find(&client, &arguments.project)?
    };
    let agents = agents.or_none()?;
    let body = write(&PauseRequest { seconds: arguments.seconds, reason: arguments.reason.clone() });
    let (mut bodies, mut out) = (Vec::new(), String::new());
    for agent in &agents.list {
        let answer = client.post(&agent.path("/pause"), &body)?;
        let run: Run = answer.read()?;
        let _ = match &run.paused_until {
            Some(until) => {
                writeln!(out, "{} {} until {} UTC", loud("PAUSED"), agent.name(), cell(&moment::short(until), 20))
            }
            None if run.mode == "enforce" => {
                writeln!(out, "{GOOD}NOT PAUSED{RESET} {}: refusals hold", agent.name())
            }
            None => writeln!(
                out,
                "NOT PAUSED {}: it is only observed, so refusals are only shown; `interlock enforce` lets them hold",
                agent.name()
            ),
        };
        bodies.push(answer.body);
    }
    if arguments.server.json {
        out = agents_json(&agents.project, &bodies);
    } else if arguments.seconds > 0 {
        let _ = writeln!(
            out,
            "{}\nCalls pass whatever the rules, the phase and the limits say; your secrets are not guarded either. \
             All\nof it is recorded, and this pause is too.\n{FAINT}end it: interlock pause 0m{RESET}",
            loud("Until then nothing is blocked but what touches Interlock's own files.")
        );
    }
    print(out.as_bytes())?;
    Ok(Outcome::Clean)
}
