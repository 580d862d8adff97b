//! `interlock workflow history`: what happened in a run, from its start to now.

use std::collections::HashMap;
use std::fmt::Write;

use clap::Args;
use interlock_hosts::Host;
use interlock_wire::{RunEvent, RunHistory};

use super::refusals::Refused;
use super::{Agents, Known, ProjectArguments, agents_json};
use crate::client::{Client, ServerArguments, encode, with_query};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, moment, print};

/// How many pages of events are read.
const PAGES_MAX: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow history
  interlock workflow history run_1c0d81907c8511dac180148e070a3ac1 --all
  interlock workflow history --json | jq '.agents[].events[] | select(.kind == \"forced\")'

What agents say with a transition is their claim. Exit codes are those that the runner saw.
Exit codes: 0 shown, 1 there is no such run, or no coding agent is known there, 2 usage or fault.")]
pub(crate) struct HistoryArguments {
    /// The run [default: the last one of each agent of the project]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Show calls that passed and changed nothing, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    project: ProjectArguments,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &HistoryArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let (project, ids) = match &arguments.run {
        Some(run) => (None, vec![run.clone()]),
        None => {
            let Agents { project, list } = Agents::find(&client, &arguments.project)?.or_none()?;
            (Some(project), list.into_iter().map(|agent| agent.agent_id).collect())
        }
    };
    let mut bodies = Vec::new();
    for id in &ids {
        let history = read(&client, id)?;
        if !arguments.server.json {
            print(text(&history, arguments.all).as_bytes())?;
        }
        bodies.push(interlock_wire::write(&history));
    }
    if arguments.server.json {
        let project = project.or_else(|| read(&client, ids.first()?).ok()?.project).unwrap_or_default();
        print(agents_json(&project, &bodies).as_bytes())?;
    }
    Ok(Outcome::Clean)
}

/// All pages of it.
fn read(client: &Client, id: &str) -> Result<RunHistory, Fault> {
    let (path, mut whole) = (format!("/runs/{}/history", encode(id)), None::<RunHistory>);
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let paged = [("limit", Some("1000".to_owned())), ("cursor", cursor.take())];
        let page: RunHistory = client.get(&with_query(&path, &paged))?.read()?;
        cursor.clone_from(&page.next_cursor);
        match &mut whole {
            Some(whole) => whole.events.extend(page.events),
            None => whole = Some(page),
        }
        if let Some(whole) = whole.as_mut().filter(|_| cursor.is_none()) {
            whole.next_cursor = None;
            return Ok(whole.clone());
        }
    }
    Err(Fault::new("the run has too many events to show").and_then_do("read them with `GET /runs/:id/history`"))
}

/// How the commands of calls ended, by decision.
fn ends(history: &RunHistory) -> HashMap<&str, &RunEvent> {
    let starts: HashMap<&str, &str> = history
        .events
        .iter()
        .filter_map(|event| Some((event.exec_id.as_deref()?, event.decision_id.as_deref()?)))
        .collect();
    let ended = history.events.iter().filter(|event| event.kind == "command_ended");
    ended.filter_map(|event| Some((*starts.get(event.exec_id.as_deref()?)?, event))).collect()
}

fn text(history: &RunHistory, all: bool) -> String {
    let name = |text: &Option<String>| text.as_deref().map_or_else(String::new, |text| cell(text, 80));
    let run = match &history.run_id {
        Some(id) => format!("{}  {FAINT}{}{RESET}", name(&history.workflow), cell(id, 48)),
        None => "no workflow yet: what it did since it is known".to_owned(),
    };
    let mut out = format!("{} in {}: {run}\n", name(&history.host), name(&history.project));
    let ends = ends(history);
    let (mut hidden, mut shown) = (0_u64, 0_u64);
    for event in &history.events {
        let line = match event.kind.as_str() {
            "call" => call_line(history, event, ends.get(event.decision_id.as_deref().unwrap_or("")).copied(), all),
            "command_started" | "command_ended" | "call_ended" => continue,
            _ => Some(event_line(event)),
        };
        match line {
            Some(line) => {
                shown = shown.saturating_add(1);
                let _ = writeln!(out, "  {FAINT}{}{RESET}  {line}", moment::short(&event.at));
            }
            None => hidden = hidden.saturating_add(1),
        }
    }
    if shown == 0 {
        out.push_str("  nothing happened yet\n");
    }
    if hidden > 0 {
        let _ = writeln!(out, "  {FAINT}{hidden} calls passed and changed nothing: --all shows them{RESET}");
    }
    out
}

/// A call, unless it passed, changed nothing and says nothing of a fact.
fn call_line(history: &RunHistory, event: &RunEvent, end: Option<&RunEvent>, all: bool) -> Option<String> {
    let call = event.call.as_ref()?;
    let passed = call.code.is_none();
    let is_quiet =
        passed && call.changes.is_none() && event.fact.is_none() && end.is_none_or(|end| end.refused.is_none());
    if is_quiet && !all {
        return None;
    }
    let host = Host::parse(history.host.as_deref().unwrap_or(""));
    // The text of a call is kept if it was refused; of others it is known what they do.
    let wanted = host.filter(|_| call.input.is_some()).and_then(|host| {
        let agent = Known::new(host, history.project.as_deref().unwrap_or(""));
        Some(Refused::of(call.clone(), &agent)?.wanted())
    });
    let tool = cell(call.tool.as_deref().unwrap_or("?"), 20);
    let mut line = match (passed, call.enforced) {
        (true, _) => format!("ran       {tool}"),
        (false, true) => format!("{BAD}{:<9}{RESET} {tool}", cell(&call.decision, 9)),
        (false, false) => format!("would be {BAD}{}{RESET} {tool}", cell(&call.decision, 9)),
    };
    let _ = write!(line, "  {}", cell(&wanted.unwrap_or_else(|| call.effects.join(", ")), 80));
    if let Some(end) = end {
        line.push_str(&end_text(end));
    }
    if let Some(fact) = &event.fact {
        let _ = write!(line, "  {GOOD}fact {}{RESET}", cell(fact, 40));
    }
    if let Some(code) = &call.code {
        let message = call.message.as_deref().unwrap_or("");
        let _ = write!(line, "\n      {}: {}", cell(code, 40), cell(message, 160));
    }
    if let Some(changes) = &call.changes {
        let _ = write!(line, "\n      {FAINT}{}{RESET}", cell(changes, 80));
    } else if !passed {
        let _ = write!(line, "\n      {FAINT}interlock decision explain {}{RESET}", cell(&call.decision_id, 60));
    }
    Some(line)
}

fn end_text(end: &RunEvent) -> String {
    let how = match (end.exit_code, end.signal) {
        (Some(0), _) => format!("{GOOD}exit 0{RESET}"),
        (Some(code), _) => format!("{BAD}exit {code}{RESET}"),
        (None, Some(signal)) => format!("{BAD}signal {signal}{RESET}"),
        (None, None) => "did not start".to_owned(),
    };
    let took = end.duration_ms.map_or_else(String::new, |millis| format!(", {millis} ms"));
    let held =
        end.refused.as_ref().map(|refused| refused.iter().map(|what| cell(what, 60)).collect::<Vec<_>>().join(", "));
    let held = held.map_or_else(String::new, |held| format!(", held from {held}"));
    format!("  {how}{took}{held}")
}

/// What is no call.
fn event_line(event: &RunEvent) -> String {
    let name = |text: &Option<String>, columns| text.as_deref().map_or_else(String::new, |text| cell(text, columns));
    let (from, to) = (name(&event.from, 40), name(&event.to, 40));
    let mut line = match event.kind.as_str() {
        "started" => format!("{GOOD}started{RESET}   in {to}"),
        "moved" => format!("{GOOD}moved{RESET}     {from} -> {to} by {}", name(&event.event, 40)),
        "waits" => {
            let ticket = name(&event.approval_id, 60);
            format!("waits     {from} -> {to} by {}: interlock approvals show {ticket}", name(&event.event, 40))
        }
        "refused" => {
            format!(
                "{BAD}refused{RESET}   {}: {} {}",
                name(&event.event, 40),
                name(&event.code, 40),
                name(&event.message, 160)
            )
        }
        "answered" => format!("answered  {to} {}", name(&event.approval_id, 60)),
        "forced" => format!("{BAD}forced{RESET}    -> {to}"),
        "paused" => format!("{BAD}paused{RESET}    until {}", name(&event.until.as_deref().map(moment::short), 20)),
        "changed_elsewhere" => "changed   another agent of the project changes files: facts count no more".to_owned(),
        "repeated" => format!("repeated  {} refusals like earlier ones", event.count.unwrap_or(0)),
        "mode" => format!("mode      {to}"),
        "undone" => format!("undone    interlock changes {}", name(&event.undo_id, 60)),
        kind => format!("{kind:<9}"),
    };
    if let Some(by) = &event.by {
        let _ = write!(line, " by {}", cell(by, 40));
    }
    if let Some(reason) = &event.reason {
        let _ = write!(line, ": {}", cell(reason, 120));
    }
    if let Some(data) = event.data.as_ref().filter(|data| data.text() != "{}") {
        let _ = write!(line, "\n      {FAINT}{}{RESET}", cell(data.text(), 160));
    }
    line
}
