//! `interlock workflow start|status|force|stop|thaw`: workflows put in force for coding agents, and runs steered.

use std::fmt::Write;

use clap::Args;
use interlock_core::json::quote;
use interlock_wire::{ForceRequest, Run, RunState, WayOut, write};

use super::mode::start_body;
use super::{Agents, Known, ProjectArguments, agents_json};
use crate::client::{Answer, Client, ServerArguments, encode, reason_body};
use crate::input::Inputs;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{block_of, cell};
use crate::workflow::Source;
use crate::{Fault, Outcome, moment, print};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow start bugfix
  interlock workflow start .interlock/workflow.yaml --host claude-code --session 5c1e
  interlock workflow start fix --registered

A run that is in progress ends.
Exit codes: 0 done, 1 refused, 2 usage or fault, a workflow that cannot be loaded too.")]
pub(crate) struct StartArguments {
    /// The workflow: a file, `-`, the name of a template, or with --registered an id
    #[arg(value_name = "FILE|TEMPLATE|ID")]
    file: String,
    /// The newest workflow that is registered under this id, see `interlock workflow list`
    #[arg(long)]
    registered: bool,
    #[command(flatten)]
    project: ProjectArguments,
    /// Only in this session of the host [default: all of the project's]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock workflow status --json | jq '.agents[].run.state'

Exit codes: 0 shown, 1 no coding agent is known there, 2 usage or fault.")]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    project: ProjectArguments,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow stop --reason 'done by hand'
  interlock workflow thaw --host claude-code

Exit codes: 0 done, 1 refused, or there is nothing to do it to, 2 usage or fault.")]
pub(crate) struct SteerArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock workflow force implementing --reason 'the plan was agreed on the phone'

Guards and approvals on the way are passed over; that goes on record.
Exit codes: 0 done, 1 refused, or no run is there, 2 usage or fault.")]
pub(crate) struct ForceArguments {
    /// The state
    state: String,
    #[command(flatten)]
    pub(crate) steer: SteerArguments,
}

pub(crate) fn start(arguments: &StartArguments) -> Result<Outcome, Fault> {
    // The server knows a registered one by its id.
    let workflow = if arguments.registered {
        quote(&arguments.file)
    } else {
        Source::read(&mut Inputs::default(), &arguments.file)?.load()?.text().to_owned()
    };
    let client = Client::open_or_start(&arguments.server)?;
    if arguments.registered {
        // Before anybody is made known for it.
        client.get(&format!("/workflows/{}", encode(&arguments.file)))?;
    }
    let agents = Agents::find_or_enrol(&client, &arguments.project)?;
    each(&agents, arguments.server.json, |agent| {
        let body = start_body(agent.host.as_str(), &agent.project, Some(&workflow), arguments.session.as_deref());
        Ok((client.post("/runs", &body)?, "STARTED"))
    })
}

pub(crate) fn status(arguments: &StatusArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let agents = Agents::find(&client, &arguments.project)?.or_none()?;
    each(&agents, arguments.server.json, |agent| Ok((client.get(&agent.path(""))?, "")))
}

pub(crate) fn force(arguments: &ForceArguments) -> Result<Outcome, Fault> {
    let ForceArguments { state, steer } = arguments;
    let body = write(&ForceRequest { state: state.clone(), reason: steer.reason.clone() });
    let wanted = |run: &Run| run.run.is_some();
    steered(steer, "/force", &body, "FORCED", "no workflow runs there", wanted)
}

pub(crate) fn stop(arguments: &SteerArguments) -> Result<Outcome, Fault> {
    let body = reason_body(arguments.reason.as_deref());
    let wanted = |run: &Run| run.run.as_ref().is_some_and(|run| !run.is_final);
    steered(arguments, "/stop", &body, "STOPPED", "no workflow runs there", wanted)
}

pub(crate) fn thaw(arguments: &SteerArguments) -> Result<Outcome, Fault> {
    let body = reason_body(arguments.reason.as_deref());
    let wanted = |run: &Run| run.frozen.is_some();
    steered(arguments, "/thaw", &body, "THAWED", "nothing is frozen there", wanted)
}

/// Does something to the agents of a project that it can be done to.
fn steered(
    arguments: &SteerArguments,
    deed: &str,
    body: &str,
    done: &'static str,
    none: &str,
    wanted: impl Fn(&Run) -> bool,
) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let mut agents = Agents::find(&client, &arguments.project)?.or_none()?;
    let mut chosen = Vec::new();
    for agent in agents.list {
        if wanted(&client.get(&agent.path(""))?.read()?) {
            chosen.push(agent);
        }
    }
    agents.list = chosen;
    if agents.list.is_empty() {
        let next = "`interlock workflow status` shows where each agent stands";
        return Err(Fault::new(none).and_then_do(next).refused());
    }
    if deed == "/force" && agents.list.len() > 1 {
        let hosts: Vec<&str> = agents.list.iter().map(|agent| agent.host.as_str()).collect();
        let what = format!("several agents have a run there: {}", hosts.join(", "));
        return Err(Fault::new(what).and_then_do("name one with --host"));
    }
    each(&agents, arguments.server.json, |agent| Ok((client.post(&agent.path(deed), body)?, done)))
}

/// One answer for each agent, printed.
fn each(
    agents: &Agents,
    json: bool,
    ask: impl Fn(&Known) -> Result<(Answer, &'static str), Fault>,
) -> Result<Outcome, Fault> {
    let mut bodies = Vec::new();
    for agent in &agents.list {
        let (answer, done) = ask(agent)?;
        if !json {
            print(run_text(&answer.read()?, agent, done).as_bytes())?;
        }
        bodies.push(answer.body);
    }
    if json {
        print(agents_json(&agents.project, &bodies).as_bytes())?;
    }
    Ok(Outcome::Clean)
}

/// Where an agent stands, on one screen.
pub(super) fn run_text(run: &Run, agent: &Known, done: &str) -> String {
    let done = if done.is_empty() { String::new() } else { format!("{GOOD}{done}{RESET} ") };
    let mut out = format!("{done}{}\n", agent.name());
    let mode = match (run.mode.as_str(), &run.paused_until) {
        (_, Some(until)) => format!("{BAD}paused{RESET} until {} UTC", cell(&moment::short(until), 20)),
        ("enforce", None) => "enforce: refusals hold".to_owned(),
        (_, None) => format!("{BAD}observe{RESET}: refusals are only shown; `interlock enforce` lets them hold"),
    };
    let _ = writeln!(out, "  mode        {mode}");
    if let Some(why) = &run.frozen {
        let why = cell(why, 120);
        let _ = writeln!(out, "  {BAD}frozen{RESET}      {why}\n              `interlock workflow thaw` lets it go on");
    }
    match &run.run {
        Some(state) => out.push_str(&position_text(state)),
        None => out.push_str("  workflow    none; `interlock workflow start FILE` puts one in force\n"),
    }
    let _ = writeln!(out, "  open calls  {}", run.open_calls);
    let allowances = run.allowances.len();
    let hint = if allowances == 0 { "" } else { "; `interlock allow --list` shows them" };
    let _ = writeln!(out, "  allowances  {allowances}{hint}");
    out
}

fn position_text(run: &RunState) -> String {
    let mut out = format!("  workflow    {}  {FAINT}{}{RESET}\n", cell(&run.workflow, 60), cell(&run.run_id, 48));
    let ended = run.outcome.as_ref().map(|outcome| format!(", ended: {}", cell(outcome, 20)));
    let _ = writeln!(out, "  state       {}{}", cell(&run.state, 60), ended.unwrap_or_default());
    let left = run.iterations_left.map(|left| format!(", {left} left"));
    let _ = writeln!(out, "  tool calls  {} in this state{}", run.iterations, left.unwrap_or_default());
    let names =
        |list: &[String], columns: usize| list.iter().map(|name| cell(name, columns)).collect::<Vec<_>>().join(", ");
    let tools = match run.allowed_tools.as_deref() {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(tools) => names(tools, 40),
    };
    let _ = writeln!(out, "  tools       {tools}");
    if let Some(id) = &run.pending_approval {
        let _ = writeln!(out, "  {BAD}waits for{RESET}   a person: interlock approvals show {}", cell(id, 60));
    }
    for WayOut { event, target, unmet, why, requires_approval } in &run.transitions {
        let why = if why.is_empty() { String::new() } else { format!(" ({})", names(why, 120)) };
        let unmet = if unmet.is_empty() { String::new() } else { format!(", not yet met: {}{why}", names(unmet, 60)) };
        let asks = if *requires_approval { ", a person agrees" } else { "" };
        let _ = writeln!(out, "  way out     {} -> {}{unmet}{asks}", cell(event, 40), cell(target, 40));
    }
    if run.context.text() != "{}" {
        let _ = write!(out, "  context\n{}", block_of(run.context.text(), false).0);
    }
    out
}
