//! `interlock workflow start|status|force|stop|thaw`: workflows put in force for coding agents, and runs steered.

use std::fmt::Write;

use clap::Args;
use interlock_core::json::{Content, Value, quote};

use super::mode::start_body;
use super::{Agents, Known, ProjectArguments, agents_json};
use crate::client::{Answer, Client, ServerArguments, encode, reason_body};
use crate::input::Inputs;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{block, cell, member, scalar};
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
        let body = start_body(agent.host.as_str(), &agent.project, &workflow, arguments.session.as_deref());
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
    let reason = steer.reason.as_ref().map_or_else(String::new, |reason| format!(",\"reason\":{}", quote(reason)));
    let body = format!("{{\"state\":{}{reason}}}", quote(state));
    let wanted = |run: Value<'_>| run.get("run").is_some_and(|run| scalar(run, "state").is_some());
    steered(steer, "/force", &body, "FORCED", "no workflow runs there", wanted)
}

pub(crate) fn stop(arguments: &SteerArguments) -> Result<Outcome, Fault> {
    let body = reason_body(arguments.reason.as_deref());
    let wanted = |run: Value<'_>| run.get("run").is_some_and(|run| scalar(run, "is_final").as_deref() == Some("false"));
    steered(arguments, "/stop", &body, "STOPPED", "no workflow runs there", wanted)
}

pub(crate) fn thaw(arguments: &SteerArguments) -> Result<Outcome, Fault> {
    let body = reason_body(arguments.reason.as_deref());
    let wanted = |run: Value<'_>| run.get("frozen").is_some();
    steered(arguments, "/thaw", &body, "THAWED", "nothing is frozen there", wanted)
}

/// Does something to the agents of a project that it can be done to.
fn steered(
    arguments: &SteerArguments,
    deed: &str,
    body: &str,
    done: &'static str,
    none: &str,
    wanted: impl Fn(Value<'_>) -> bool,
) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let mut agents = Agents::find(&client, &arguments.project)?.or_none()?;
    let mut chosen = Vec::new();
    for agent in agents.list {
        if wanted(client.get(&agent.path(""))?.document()?.root()) {
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
            print(run_text(answer.document()?.root(), agent, done).as_bytes())?;
        }
        bodies.push(answer.body);
    }
    if json {
        print(agents_json(&agents.project, &bodies).as_bytes())?;
    }
    Ok(Outcome::Clean)
}

/// Where an agent stands, on one screen.
pub(super) fn run_text(answer: Value<'_>, agent: &Known, done: &str) -> String {
    let done = if done.is_empty() { String::new() } else { format!("{GOOD}{done}{RESET} ") };
    let mut out = format!("{done}{}\n", agent.name());
    let paused = scalar(answer, "paused_until");
    let mode = match (scalar(answer, "mode").as_deref(), &paused) {
        (_, Some(until)) => format!("{BAD}paused{RESET} until {} UTC", cell(&moment::short(until), 20)),
        (Some("enforce"), None) => "enforce: refusals hold".to_owned(),
        (_, None) => format!("{BAD}observe{RESET}: refusals are only shown; `interlock enforce` lets them hold"),
    };
    let _ = writeln!(out, "  mode        {mode}");
    if scalar(answer, "frozen").is_some() {
        let why = member(answer, "frozen", 120);
        let _ = writeln!(out, "  {BAD}frozen{RESET}      {why}\n              `interlock workflow thaw` lets it go on");
    }
    match answer.get("run").filter(|run| scalar(*run, "state").is_some()) {
        Some(run) => out.push_str(&position_text(run)),
        None => out.push_str("  workflow    none; `interlock workflow start FILE` puts one in force\n"),
    }
    let _ = writeln!(out, "  open calls  {}", member(answer, "open_calls", 12));
    let allowances = answer.get("allowances").and_then(|list| list.as_array()).map_or(0, Iterator::count);
    let hint = if allowances == 0 { "" } else { "; `interlock allow --list` shows them" };
    let _ = writeln!(out, "  allowances  {allowances}{hint}");
    out
}

fn position_text(run: Value<'_>) -> String {
    let mut out =
        format!("  workflow    {}  {FAINT}{}{RESET}\n", member(run, "workflow", 60), member(run, "run_id", 48));
    let ended = scalar(run, "outcome").map(|outcome| format!(", ended: {}", cell(&outcome, 20)));
    let _ = writeln!(out, "  state       {}{}", member(run, "state", 60), ended.unwrap_or_default());
    let left = scalar(run, "iterations_left").map(|left| format!(", {} left", cell(&left, 12)));
    let _ = writeln!(out, "  tool calls  {} in this state{}", member(run, "iterations", 12), left.unwrap_or_default());
    let tools = match run.get("allowed_tools").and_then(|tools| tools.as_array()) {
        None => "all".to_owned(),
        Some(tools) => {
            let names: Vec<String> = tools.filter_map(|it| it.as_str().map(|it| cell(it.text(), 40))).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        }
    };
    let _ = writeln!(out, "  tools       {tools}");
    if scalar(run, "pending_approval").is_some() {
        let id = member(run, "pending_approval", 60);
        let _ = writeln!(out, "  {BAD}waits for{RESET}   a person: interlock approvals show {id}");
    }
    let ways = run.get("transitions").and_then(|ways| ways.as_array()).into_iter().flatten();
    for way in ways {
        let unmet: Vec<String> = way
            .get("unmet")
            .and_then(|unmet| unmet.as_array())
            .into_iter()
            .flatten()
            .filter_map(|guard| guard.as_str().map(|guard| cell(guard.text(), 60)))
            .collect();
        let unmet = if unmet.is_empty() { String::new() } else { format!(", not yet met: {}", unmet.join(", ")) };
        let asks = if scalar(way, "requires_approval").as_deref() == Some("true") { ", a person agrees" } else { "" };
        let (event, target) = (member(way, "event", 40), member(way, "target", 40));
        let _ = writeln!(out, "  way out     {event} -> {target}{unmet}{asks}");
    }
    let is_filled =
        |context: &Value<'_>| !matches!(context.content(), Some(Content::Object(members)) if members.len() == 0);
    if let Some(context) = run.get("context").filter(is_filled) {
        let _ = write!(out, "  context\n{}", block(context, false).0);
    }
    out
}
