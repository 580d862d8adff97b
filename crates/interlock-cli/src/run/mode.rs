//! `interlock enforce`, `interlock observe`: whether refusals hold for the coding agents of a project.

use std::fmt::Write;

use clap::Args;
use interlock_wire::{RawJson, Run, StartRequest, write};

use super::{Agents, ProjectArguments, agents_json, all_known, shell_word};
use crate::client::{Client, ServerArguments, encode, reason_body};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, moment, print};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock enforce                                  the agents of this project
  interlock enforce --project ~/src/shop --host codex
  interlock observe --all

`enforce` starts the daemon if none runs, and ends a freeze. `interlock review` says beforehand what would be refused.
Exit codes: 0 done, 1 refused, or no coding agent is known there, 2 usage or fault.")]
pub(crate) struct ModeArguments {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Enforce,
    Observe,
}

impl Wanted {
    fn word(self) -> &'static str {
        match self {
            Wanted::Enforce => "enforce",
            Wanted::Observe => "observe",
        }
    }

    fn undo(self) -> &'static str {
        match self {
            Wanted::Enforce => "observe",
            Wanted::Observe => "enforce",
        }
    }
}

pub(crate) fn run(arguments: &ModeArguments, wanted: Wanted) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let agents = if arguments.all {
        Agents { project: String::new(), list: all_known(&client)? }.or_none()?
    } else {
        Agents::find_or_enrol(&client, &arguments.project)?
    };
    let reason = reason_body(arguments.reason.as_deref());
    let (mut bodies, mut out, mut holds) = (Vec::new(), String::new(), true);
    for agent in &agents.list {
        client.post(&format!("/agents/{}/{}", encode(&agent.agent_id), wanted.word()), &reason)?;
        let mut answer = client.get(&agent.path(""))?;
        let Run { frozen, .. }: Run = answer.read()?;
        if let (Wanted::Enforce, Some(_)) = (wanted, &frozen) {
            client.post(&agent.path("/thaw"), &reason)?;
            answer = client.get(&agent.path(""))?;
        }
        let thawed = frozen.filter(|_| wanted == Wanted::Enforce);
        let run: Run = answer.read()?;
        holds &= run.mode == wanted.word();
        out.push_str(&shown(&run, &agent.name(), wanted, thawed.as_deref()));
        bodies.push(answer.body);
    }
    if arguments.server.json {
        out = agents_json(&agents.project, &bodies);
    } else {
        let place = if arguments.all { Some("--all".to_owned()) } else { undo_place(&agents.project) };
        let place = place.map_or_else(String::new, |place| format!(" {place}"));
        let _ = writeln!(out, "{FAINT}undo: interlock {}{place}{RESET}", wanted.undo());
    }
    print(out.as_bytes())?;
    Ok(if holds { Outcome::Clean } else { Outcome::Refused })
}

fn undo_place(project: &str) -> Option<String> {
    shell_word(project).map(|project| format!("--project {project}"))
}

/// What holds for one agent now.
fn shown(run: &Run, name: &str, wanted: Wanted, thawed: Option<&str>) -> String {
    let mut out = match (wanted, run.mode.as_str(), &run.paused_until) {
        (Wanted::Enforce, "enforce", _) => format!("{GOOD}ENFORCED{RESET} {name}: refusals hold\n"),
        (Wanted::Enforce, _, Some(until)) => format!(
            "{BAD}PAUSED{RESET} {name}: refusals hold from {} on; `interlock pause 0m` ends the pause now\n",
            cell(&moment::short(until), 20)
        ),
        (Wanted::Enforce, _, None) => format!(
            "{BAD}STILL OBSERVED{RESET} {name}: the bundle of this server says `mode = \"observe\"`, and that counts \
             for all; change it in interlock.toml\n"
        ),
        (Wanted::Observe, _, _) => {
            format!("{BAD}OBSERVED{RESET} {name}: refusals are recorded and shown, and nothing is blocked\n")
        }
    };
    if let Some(why) = thawed {
        let _ = writeln!(out, "  it was frozen and is thawed: {}", cell(why, 160));
    }
    if let Some(run) = &run.run {
        let _ = writeln!(out, "  workflow {}, in {}", cell(&run.workflow, 60), cell(&run.state, 60));
    }
    out
}

/// The body that makes a host known in a project, with a workflow if there is one.
pub(super) fn start_body(host: &str, project: &str, workflow: Option<&str>, session: Option<&str>) -> String {
    write(&StartRequest {
        host: host.to_owned(),
        project: project.to_owned(),
        workflow: workflow.map(|workflow| RawJson::written(workflow.to_owned())),
        session: session.map(str::to_owned),
    })
}
