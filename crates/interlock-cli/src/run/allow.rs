//! `interlock allow`: one call, or calls of one narrow shape, that a person knows and lets pass.
//!
//! Before anything is written it says what else on record that would have let through. There is no way to allow a tool
//! as such: it takes a decision, a pattern for a command, or a path.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::call::Family;
use interlock_core::display;
use interlock_core::places::is_beneath;
use interlock_core::rule::CommandPattern;
use interlock_hosts::Host;
use interlock_runtime::paths;
use interlock_wire::{AllowRequest, Allowance, CallDecision, DisallowRequest, Run, write};

use super::refusals::{Refused, Shell, agent_of, of_agent};
use super::{Agents, Known, Teller, agents_json, all_known, loud, parse_seconds};
use crate::client::{Client, ServerArguments, inert_json};
use crate::hook::parse_host;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{Table, cell};
use crate::{Fault, Outcome, moment, print};

/// How many refusals of an agent a pattern is tried on.
const TRIED_MAX: usize = 1_000;
/// How many of them are shown.
const SHOWN_MAX: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock allow dec_1c0d81907c8511dac180148e070a3ac1            exactly that call, once
  interlock allow dec_1c0d81907c8511dac180148e070a3ac1 --for 1h
  interlock allow dec_1c0d81907c8511dac180148e070a3ac1 --project --command 'cargo test *'
  interlock allow --command 'cargo test *' --project
  interlock allow --list
  interlock allow --remove allow_5d41

A pattern has whole words; `*` at its end stands for further words. It lifts no rule that denies, no phase and no limit.
Exit codes: 0 done, 1 refused, or nobody agreed, 2 usage or fault.")]
pub(crate) struct AllowArguments {
    /// The decision, as the refusal names it
    #[arg(value_name = "DECISION_ID", required_unless_present_any = ["command", "path", "list", "remove"])]
    decision: Option<String>,
    /// For one call; this is the default
    #[arg(long, group = "scope", help_heading = "For how long")]
    once: bool,
    /// In the session of that decision
    #[arg(long, group = "scope", help_heading = "For how long", requires = "decision")]
    session: bool,
    /// In this project, until it is removed
    #[arg(long, group = "scope", help_heading = "For how long")]
    project: bool,
    /// For a while: 30s, 15m, 1h
    #[arg(long = "for", value_name = "DURATION", group = "scope", help_heading = "For how long")]
    #[arg(value_parser = parse_seconds)]
    seconds: Option<u64>,
    /// Every line whose commands match this, or only read
    #[arg(long, value_name = "PATTERN", help_heading = "What")]
    command: Option<String>,
    /// Every edit of this file; DIR/** is everything beneath a directory
    #[arg(long, value_name = "FILE", conflicts_with = "command", help_heading = "What")]
    path: Option<String>,
    /// List what is allowed in this project
    #[arg(long, conflicts_with_all = ["decision", "command", "path", "remove", "scope"])]
    list: bool,
    /// Take an allowance back; the beginning of its id will do
    #[arg(long, value_name = "ALLOW_ID", conflicts_with_all = ["decision", "command", "path", "scope"])]
    remove: Option<String>,
    /// Without a decision: the project, or a directory in it [default: the one of the working directory]
    #[arg(long = "in", value_name = "DIR", conflicts_with = "decision")]
    directory: Option<PathBuf>,
    /// Without a decision: only the agent of this host [default: all hosts known there]
    #[arg(long, value_name = "HOST", value_parser = parse_host, conflicts_with = "decision")]
    host: Option<Host>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &AllowArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    if arguments.list {
        return list(&client, arguments);
    }
    if let Some(id) = &arguments.remove {
        return remove(&client, id, arguments);
    }
    let asked = match &arguments.decision {
        Some(id) => WantedAllowance::of_decision(&client, id, arguments)?,
        None => WantedAllowance::of_project(&client, arguments)?,
    };
    let teller = Teller { json: arguments.server.json };
    teller.say(&asked.preview(&client)?)?;
    if !teller.agrees("Allow this?", arguments.yes)? {
        return Ok(Outcome::Refused);
    }
    let mut bodies = Vec::new();
    for agent in &asked.agents {
        for tool in &asked.tools {
            let answer = client.post(&agent.path("/allow"), &asked.body(*tool, arguments))?;
            if !arguments.server.json {
                let Allowance { allowance_id, .. } = answer.read()?;
                let id = cell(&allowance_id, 80);
                let allowed = format!("{GOOD}ALLOWED{RESET} {}: {}, {}\n", agent.name(), asked.what(), asked.scope);
                print(format!("{allowed}{FAINT}undo: interlock allow --remove {id}{RESET}\n").as_bytes())?;
            }
            bodies.push(answer.body);
        }
    }
    if arguments.server.json {
        print(inert_json(&format!("{{\"allowances\":[{}]}}", bodies.join(","))).as_bytes())?;
    }
    Ok(Outcome::Clean)
}

/// What is to be allowed.
struct WantedAllowance {
    agents: Vec<Known>,
    decision: Option<Refused>,
    /// The families an allowance is made for; nothing is that of the decision.
    tools: Vec<Option<Family>>,
    command: Option<(String, CommandPattern)>,
    path: Option<String>,
    scope: String,
    /// Only in the session of the decision.
    in_session: bool,
}

impl WantedAllowance {
    fn of_decision(client: &Client, id: &str, arguments: &AllowArguments) -> Result<WantedAllowance, Fault> {
        let answer = super::decision::ask(client, id)?;
        let decision: CallDecision = answer.read()?;
        let unknown = || Fault::new("the server's answer is none that this version understands");
        if decision.ruling.door.is_some() {
            let what = "that is a decision on a request at the gate, not on a tool call of a coding agent";
            let next = "what waits for a person is decided with `interlock approvals`";
            return Err(Fault::new(what).and_then_do(next).refused());
        }
        let agent = agent_of(&decision).ok_or_else(unknown)?;
        let ruled = decision.ruling.decision.clone();
        let refused = Refused::of(decision.ruling, &agent).ok_or_else(unknown)?;
        if ruled == "APPROVED" || ruled == "CORRECTED" {
            return Err(Fault::new("that call was allowed, so there is nothing to allow")
                .and_then_do(super::decision::SHOWS_IDS)
                .refused());
        }
        if let Some(reason) = refused.firm() {
            let next = format!("`interlock explain {}` says what to do", refused.code);
            return Err(Fault::new(format!("an allowance would not help: {reason}")).and_then_do(next).refused());
        }
        let asked = WantedAllowance {
            agents: vec![agent],
            tools: vec![None],
            command: read_command(arguments)?,
            path: read_path(arguments)?,
            scope: scope(arguments),
            in_session: arguments.session,
            decision: Some(refused),
        };
        asked.check()?;
        Ok(asked)
    }

    fn of_project(client: &Client, arguments: &AllowArguments) -> Result<WantedAllowance, Fault> {
        let agents = agents(client, arguments)?;
        let path = read_path(arguments)?;
        // An edit is an edit by whichever tool.
        let tools = if path.is_some() { vec![Family::Edit, Family::Write] } else { vec![Family::Bash] };
        Ok(WantedAllowance {
            agents: agents.list,
            decision: None,
            tools: tools.into_iter().map(Some).collect(),
            command: read_command(arguments)?,
            path,
            scope: scope(arguments),
            in_session: false,
        })
    }

    /// A pattern that does not fit the call it is made from would let other calls pass, and not that one.
    fn check(&self) -> Result<(), Fault> {
        let Some(decision) = &self.decision else { return Ok(()) };
        // Nobody agrees to what nobody can see.
        if decision.call.is_none() {
            let next = "wait until it is refused again, or say what to allow without the id: --command or --path";
            return Err(Fault::new("the input of that call is not kept any more").and_then_do(next).refused());
        }
        if self.command.is_none() && self.path.is_none() {
            return Ok(());
        }
        let shell = Shell::of_project(&decision.agent.project)?;
        if self.lets_through(decision, &shell) {
            return Ok(());
        }
        let what = if self.command.is_some() { "command" } else { "path" };
        let mut next = format!("it was {}: {}", cell(&decision.tool, 40), cell(&decision.wanted(), 120));
        if self.command.is_some() {
            next.push_str("; redirects, assignments and a second command that does more than read are never covered");
        }
        Err(Fault::new(format!("the {what} does not cover that call")).and_then_do(next).refused())
    }

    /// Whether it lets a call on record through.
    fn lets_through(&self, refused: &Refused, shell: &Shell) -> bool {
        let rules = self.decision.as_ref().map(|decision| decision.rules.clone()).unwrap_or_default();
        let elsewhere = self.decision.as_ref().is_some_and(|own| self.in_session && own.session != refused.session);
        if elsewhere || !refused.is_lifted_with(&rules) {
            return false;
        }
        let family = match &self.decision {
            Some(decision) => decision.family() == refused.family(),
            None => refused.family().is_some_and(|family| self.tools.contains(&Some(family))),
        };
        let all_read = refused.call.as_ref().is_some_and(|call| call.intent.unread.is_empty());
        match (&self.command, &self.path, &self.decision) {
            (Some((_, pattern)), _, _) => family && all_read && shell.is_covered(&refused.lines(shell), pattern),
            (None, Some(path), _) => {
                let is_command = refused.call.as_ref().is_none_or(|call| !call.intent.commands.is_empty());
                let writes = refused.writes().unwrap_or_default();
                let beneath = !writes.is_empty() && writes.iter().all(|written| is_beneath(written, path));
                family && all_read && !is_command && beneath
            }
            (None, None, Some(decision)) => refused.same_call(decision),
            (None, None, None) => false,
        }
    }

    fn what(&self) -> String {
        match (&self.command, &self.path, &self.decision) {
            (Some((text, _)), _, _) => format!("command lines of `{}`", cell(text, 120)),
            (None, Some(path), _) => format!("edits of {}", cell(path, 120)),
            (None, None, Some(decision)) => {
                format!("exactly this {}: {}", cell(&decision.tool, 40), cell(&decision.wanted(), 120))
            }
            (None, None, None) => "nothing".to_owned(),
        }
    }

    /// What it is about, and what else it would have let through.
    fn preview(&self, client: &Client) -> Result<String, Fault> {
        let mut out = format!("{}, {}\n", self.what(), self.scope);
        if let Some((text, _)) = &self.command
            && let [program, "*"] = text.split_ascii_whitespace().collect::<Vec<_>>().as_slice()
        {
            let wide = format!("this is wide: whatever `{}` can be told to do passes", cell(program, 40));
            let _ = writeln!(out, "  {}", loud(&wide));
        }
        for agent in &self.agents {
            let shell = Shell::of_project(&agent.project)?;
            let (refused, _) = of_agent(client, agent, TRIED_MAX)?;
            let own = self.decision.as_ref().map(|decision| decision.decision_id.as_str());
            let others: Vec<&Refused> = refused
                .iter()
                .filter(|other| Some(other.decision_id.as_str()) != own && self.lets_through(other, &shell))
                .collect();
            let _ = writeln!(out, "  for {}", agent.name());
            if others.is_empty() {
                let _ = writeln!(out, "  {FAINT}of the refusals on record it lets no other through{RESET}");
                continue;
            }
            let _ = writeln!(out, "  {BAD}it would also have let through {} refused before:{RESET}", others.len());
            let mut seen = BTreeSet::new();
            let different = others.iter().filter(|other| seen.insert(other.wanted())).collect::<Vec<_>>();
            for other in different.iter().take(SHOWN_MAX) {
                let _ = writeln!(out, "    {}  {}", cell(&other.tool, 30), cell(&other.wanted(), 100));
            }
            let more = different.len().saturating_sub(SHOWN_MAX);
            if more > 0 {
                let _ = writeln!(out, "    … {more} more");
            }
        }
        Ok(out)
    }

    fn body(&self, tool: Option<Family>, arguments: &AllowArguments) -> String {
        write(&AllowRequest {
            decision_id: self.decision.as_ref().map(|decision| decision.decision_id.clone()),
            tool: tool.map(|tool| tool.as_str().to_owned()),
            command: self.command.as_ref().map(|(text, _)| text.clone()),
            path: self.path.clone(),
            seconds: arguments.seconds,
            // Nothing in it stands for the session of the decision.
            session: arguments.session.then(String::new),
            once: is_once(arguments).then_some(true),
            reason: arguments.reason.clone(),
        })
    }
}

fn is_once(arguments: &AllowArguments) -> bool {
    !(arguments.session || arguments.project || arguments.seconds.is_some())
}

fn scope(arguments: &AllowArguments) -> String {
    match arguments.seconds {
        Some(seconds) => format!("for {}", moment::duration(seconds.saturating_mul(1_000))),
        None if arguments.session => "in its session".to_owned(),
        None if arguments.project => "in this project until it is removed".to_owned(),
        None => "once".to_owned(),
    }
}

fn read_command(arguments: &AllowArguments) -> Result<Option<(String, CommandPattern)>, Fault> {
    let Some(text) = &arguments.command else { return Ok(None) };
    let next = "write the words of one command, `*` at the end for further ones: 'cargo test *'";
    let pattern = CommandPattern::parse(text).map_err(|error| Fault::new(error.to_string()).and_then_do(next))?;
    if text.trim_start().starts_with('*') {
        return Err(Fault::new("--command must begin with a command").and_then_do(next));
    }
    Ok(Some((text.clone(), pattern)))
}

/// The path as the server knows it: absolute, links followed.
fn read_path(arguments: &AllowArguments) -> Result<Option<String>, Fault> {
    let Some(text) = &arguments.path else { return Ok(None) };
    let (file, rest) = text.strip_suffix("/**").map_or((text.as_str(), ""), |directory| (directory, "/**"));
    let wrong = |what: &str| Fault::new(format!("--path: {what}")).and_then_do("name a file, or a directory and `/**`");
    if file.is_empty() || file.contains('*') {
        return Err(wrong("`*` stands at the end of a directory alone, and not for everything"));
    }
    let absolute = std::path::absolute(Path::new(file)).map_err(|error| wrong(&error.to_string()))?;
    let absolute = absolute.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
    let resolved = paths::resolve(absolute, "/", None);
    let known = resolved.known().filter(|known| *known != "/").ok_or_else(|| wrong("it cannot be resolved"))?;
    Ok(Some(format!("{known}{rest}")))
}

fn agents(client: &Client, arguments: &AllowArguments) -> Result<Agents, Fault> {
    let directory = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().map_err(|error| Fault::new(format!("no working directory: {error}")))?,
    };
    Agents::of_directory(client, &directory, arguments.host)?.or_none()
}

fn list(client: &Client, arguments: &AllowArguments) -> Result<Outcome, Fault> {
    let agents = agents(client, arguments)?;
    let (mut bodies, mut table, mut count) = (Vec::new(), Table::new(&["ALLOWANCE", "HOST", "WHAT", "FOR"]), 0);
    for agent in &agents.list {
        let answer = client.get(&agent.path(""))?;
        let run: Run = answer.read()?;
        for allowance in &run.allowances {
            count += 1;
            let id = cell(&allowance.allowance_id, 80);
            table.row(vec![id, agent.host.to_string(), what_of(allowance), scope_of(allowance)]);
        }
        bodies.push(answer.body);
    }
    let output = if arguments.server.json {
        agents_json(&agents.project, &bodies)
    } else if count == 0 {
        "nothing is allowed beyond the rules\n".to_owned()
    } else {
        table.render()
    };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn what_of(allowance: &Allowance) -> String {
    let tool = cell(&allowance.tool, 24);
    match (&allowance.command, &allowance.path) {
        (Some(command), _) => format!("{tool} `{}`", cell(command, 60)),
        (None, Some(path)) => format!("{tool} {}", cell(path, 60)),
        (None, None) => format!("{tool}, the call of {}", cell(&allowance.decision_id, 40)),
    }
}

fn scope_of(allowance: &Allowance) -> String {
    let until = allowance.until.as_ref().map(|until| format!("until {}", cell(&moment::short(until), 20)));
    let session = allowance.session.is_some().then(|| "one session".to_owned());
    let once = allowance.once.then(|| "one call".to_owned());
    let parts: Vec<String> = [once, session, until].into_iter().flatten().collect();
    if parts.is_empty() { "the project".to_owned() } else { parts.join(", ") }
}

fn remove(client: &Client, given: &str, arguments: &AllowArguments) -> Result<Outcome, Fault> {
    let beginning = given.strip_prefix("allow_").unwrap_or(given).trim_end_matches('…');
    if beginning.chars().count() < 4 {
        let next = "give at least 4 characters after `allow_`; `interlock allow --list` shows the ids";
        return Err(
            Fault::new(format!("`{}` is too short for the id of one allowance", display(given))).and_then_do(next)
        );
    }
    let beginning = format!("allow_{beginning}");
    let mut found = Vec::new();
    for agent in all_known(client)? {
        let run: Run = client.get(&agent.path(""))?.read()?;
        let alike = run.allowances.iter().filter(|known| known.allowance_id.starts_with(&beginning));
        found.extend(alike.map(|known| (agent.clone(), known.allowance_id.clone(), what_of(known))));
    }
    let [(agent, id, what)] = found.as_slice() else {
        let what = match found.len() {
            0 => format!("no allowance has an id that begins with `{}`", display(given)),
            several => format!("`{}` is the beginning of {several} ids", display(given)),
        };
        return Err(Fault::new(what).and_then_do("`interlock allow --list` shows the ids").refused());
    };
    let answer = client.post(&agent.path("/disallow"), &write(&DisallowRequest { allowance_id: id.clone() }))?;
    let output =
        if arguments.server.json { answer.json() } else { format!("{GOOD}REMOVED{RESET} {}: {what}\n", agent.name()) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}
