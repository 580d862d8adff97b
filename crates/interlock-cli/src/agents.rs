//! `interlock agents`: who is registered, what each may do, and the operator's levers on one of them.

use clap::{Args, Subcommand, ValueEnum};
use interlock_core::json::{Value, quote};

use crate::client::{Answer, Client, ServerArguments, encode, reason_body, with_query};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{Table, cell, member, scalar};
use crate::{Fault, Outcome, moment, prefix, print};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents
    List(ListArguments),
    /// Show one agent: its permissions, limits, and what it has spent
    Show(OneArguments),
    /// Register an agent; its token is shown this once
    Register(RegisterArguments),
    /// Raise the trust in it, as far as its own request could
    Trust(TrustLevelArguments),
    /// Refuse everything it asks from now on
    Suspend(LeverArguments),
    /// Lift a suspension
    Reactivate(LeverArguments),
    /// Record a complaint of its principal, which suspends it
    Complaint(LeverArguments),
    /// Only observe it: rulings are made and recorded, and do not bind
    Observe(LeverArguments),
    /// Enforce what is ruled
    Enforce(LeverArguments),
    /// Give it a new token, shown this once; the old one ends
    RotateToken(LeverArguments),
    /// Remove the texts kept of it, for good; the ledger still verifies. Needs the whole id
    Erase(LeverArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock agents list --json | jq -r '.agents[].agent_id'")]
pub(crate) struct ListArguments {
    /// How many, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    /// Go on where a page ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock agents show agent_5d41")]
pub(crate) struct OneArguments {
    /// The agent; the beginning of its id will do
    id: String,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock agents suspend agent_5d41 --reason 'odd requests at night'

Exit codes: 0 done, 1 the server refused (no such agent, not this role), 2 usage or fault.")]
pub(crate) struct LeverArguments {
    /// The agent; the beginning of its id will do
    id: String,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock agents trust agent_5d41 2 --reason 'these denials were my own rules'

It asks for the level in the agent's place and agrees to it; both are on record. Trust falls by itself, after attacks,
many denials or many broken limits: `interlock activity --agent ID` shows which. Coding agents begin at level 2.
Exit codes: 0 done, 1 the server refused (not above the level there is, suspended, not this role), 2 usage or fault.")]
pub(crate) struct TrustLevelArguments {
    /// The agent; the beginning of its id will do
    id: String,
    /// Its trust from now on, 1 to 3
    #[arg(value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=3))]
    level: u8,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AgentType {
    Supervised,
    Autonomous,
    Trusted,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: interlock agents register --name 'release bot' --type supervised --principal ops@example.com"
)]
pub(crate) struct RegisterArguments {
    /// What people call it
    #[arg(long)]
    name: String,
    /// How closely it is watched
    #[arg(long = "type", value_enum)]
    kind: AgentType,
    /// Whom it acts for
    #[arg(long, value_name = "ID")]
    principal: String,
    /// Its trust, 0 to 3 [default: that of its type]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=3))]
    trust: Option<u8>,
    #[command(flatten)]
    server: ServerArguments,
}

impl AgentsCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            AgentsCommand::List(arguments) => arguments.server.json,
            AgentsCommand::Show(arguments) => arguments.server.json,
            AgentsCommand::Register(arguments) => arguments.server.json,
            AgentsCommand::Trust(arguments) => arguments.server.json,
            AgentsCommand::Suspend(arguments)
            | AgentsCommand::Reactivate(arguments)
            | AgentsCommand::Complaint(arguments)
            | AgentsCommand::Observe(arguments)
            | AgentsCommand::Enforce(arguments)
            | AgentsCommand::RotateToken(arguments)
            | AgentsCommand::Erase(arguments) => arguments.server.json,
        }
    }
}

pub(crate) fn run(command: &AgentsCommand) -> Result<Outcome, Fault> {
    match command {
        AgentsCommand::List(arguments) => list(arguments),
        AgentsCommand::Show(arguments) => show(arguments),
        AgentsCommand::Register(arguments) => register(arguments),
        AgentsCommand::Trust(arguments) => trust(arguments),
        AgentsCommand::Suspend(arguments) => pull(arguments, "suspend"),
        AgentsCommand::Reactivate(arguments) => pull(arguments, "reactivate"),
        AgentsCommand::Complaint(arguments) => pull(arguments, "complaint"),
        AgentsCommand::Observe(arguments) => pull(arguments, "observe"),
        AgentsCommand::Enforce(arguments) => pull(arguments, "enforce"),
        AgentsCommand::RotateToken(arguments) => pull(arguments, "rotate-token"),
        AgentsCommand::Erase(arguments) => erase(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let page = [("limit", Some(arguments.limit.to_string())), ("cursor", arguments.cursor.clone())];
    let answer = client.get(&with_query("/agents", &page))?;
    print(if arguments.server.json { answer.json() } else { list_text(&answer)? }.as_bytes())?;
    Ok(Outcome::Clean)
}

fn list_text(answer: &Answer) -> Result<String, Fault> {
    let document = answer.document()?;
    let agents = document.root().get("agents").and_then(|agents| agents.as_array());
    let agents = agents.ok_or_else(|| Fault::new("the server's answer has no `agents`"))?;
    if agents.len() == 0 {
        return Ok("no agents; register one: interlock agents register --help\n".to_owned());
    }
    let mut table = Table::new(&["ID", "STATUS", "MODE", "TRUST", "TYPE", "CREATED", "NAME", "PRINCIPAL"]);
    for agent in agents {
        table.row(vec![
            member(agent, "agent_id", prefix::SHORT_COLUMNS),
            member(agent, "status", 12),
            member(agent, "mode", 10),
            member(agent, "trust_level", 4),
            member(agent, "type", 12),
            time(agent, "created_at"),
            member(agent, "name", 28),
            member(agent, "principal_id", 28),
        ]);
    }
    let mut out = table.render();
    if let Some(cursor) = scalar(document.root(), "next_cursor") {
        out.push_str(&format!("{FAINT}more: --cursor {}{RESET}\n", cell(&cursor, 80)));
    }
    Ok(out)
}

fn time(object: Value<'_>, key: &str) -> String {
    scalar(object, key).map_or_else(|| "-".to_owned(), |at| cell(&moment::short(&at), 30))
}

fn show(arguments: &OneArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let id = prefix::agent(&client, &arguments.id)?;
    let answer = client.get(&format!("/agents/{}", encode(&id)))?;
    if arguments.server.json {
        print(answer.json().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let budget = client.get(&format!("/agents/{}/budget", encode(&id)))?;
    let mut out = agent_text(answer.document()?.root());
    out.push_str(&budget_text(budget.document()?.root()));
    print(out.as_bytes())?;
    Ok(Outcome::Clean)
}

fn agent_text(agent: Value<'_>) -> String {
    let status = member(agent, "status", 20);
    let colour = if status == "active" { GOOD } else { BAD };
    let mut out = format!("{colour}{}{RESET} {}\n", status.to_uppercase(), member(agent, "agent_id", 80));
    let mut line = |name: &str, value: String| out.push_str(&format!("  {name:<12} {value}\n"));
    line("name", member(agent, "name", 80));
    line("for", member(agent, "principal_id", 80));
    line("type", format!("{}, trust {}", member(agent, "type", 20), member(agent, "trust_level", 4)));
    if agent.get("mode").is_some() {
        let mode = member(agent, "mode", 20);
        let note = if mode == "observe" { ": rulings do not bind" } else { "" };
        line("mode", format!("{mode}{note}"));
    }
    for key in ["description", "framework", "model"] {
        if agent.get(key).is_some() {
            line(key, member(agent, key, 80));
        }
    }
    line("created", time(agent, "created_at"));
    if let Some(permissions) = agent.get("permissions") {
        for (name, key) in
            [("engines", "allowed_engines"), ("may use", "allowed_tools"), ("may not use", "blocked_tools")]
        {
            line(name, texts(permissions, key));
        }
    }
    out
}

/// A list of strings from outside, the first few.
fn texts(object: Value<'_>, key: &str) -> String {
    const SHOWN_MAX: usize = 12;
    let Some(list) = object.get(key).and_then(|list| list.as_array()).filter(|list| list.len() > 0) else {
        return "-".to_owned();
    };
    let over = list.len().saturating_sub(SHOWN_MAX);
    let shown =
        list.take(SHOWN_MAX).map(|item| item.as_str().map_or_else(|| "-".to_owned(), |text| cell(text.text(), 32)));
    let mut out = shown.collect::<Vec<_>>().join(", ");
    if over > 0 {
        out.push_str(&format!(", … {over} more"));
    }
    out
}

fn budget_text(budget: Value<'_>) -> String {
    #[rustfmt::skip]
    let rows = [
        ("dollars today",   "cost",     "current_daily_usd", "max_daily_usd"),
        ("requests, hour",  "requests", "current_hour",      "max_per_hour"),
        ("requests, today", "requests", "current_day",       "max_per_day"),
        ("tokens today",    "tokens",   "current_daily",     "max_daily"),
    ];
    let mut table = Table::new(&["BUDGET", "SPENT", "LIMIT"]);
    for (name, part, spent, limit) in rows {
        let Some(part) = budget.get(part) else { continue };
        let limit = scalar(part, limit).map_or_else(|| "none".to_owned(), |limit| cell(&limit, 20));
        table.row(vec![name.to_owned(), member(part, spent, 20), limit]);
    }
    format!("\n{}", table.render())
}

fn register(arguments: &RegisterArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let kind = match arguments.kind {
        AgentType::Supervised => "supervised",
        AgentType::Autonomous => "autonomous",
        AgentType::Trusted => "trusted",
    };
    let mut body = format!(
        "{{\"name\":{},\"type\":\"{kind}\",\"principal_id\":{}",
        quote(&arguments.name),
        quote(&arguments.principal)
    );
    if let Some(trust) = arguments.trust {
        body.push_str(&format!(",\"trust_level\":{trust}"));
    }
    body.push('}');
    let answer = client.post("/agents/register", &body)?;
    let output =
        if arguments.server.json { answer.json() } else { lever_text(answer.document()?.root(), "registered") };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

/// Asks in the agent's place, and agrees. A request that is open already is for a person to look at first.
fn trust(arguments: &TrustLevelArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let id = prefix::agent(&client, &arguments.id)?;
    let path = format!("/agents/{}", encode(&id));
    let mut body = format!("{{\"request\":\"trust_elevation\",\"to_level\":{}", arguments.level);
    if let Some(reason) = &arguments.reason {
        body.push_str(&format!(",\"justification\":{}", quote(reason)));
    }
    body.push('}');
    let asked = client.post(&format!("{path}/trust"), &body).map_err(|fault| match fault.code.as_deref() {
        Some("INTERLOCK-APPROVAL-003") => {
            fault.and_then_do("decide what is open first: `interlock approvals list`, then `approve` or `deny`")
        }
        _ => fault,
    })?;
    let asked = asked.document()?;
    let ticket = scalar(asked.root(), "approval_id").ok_or_else(|| Fault::new("the server's answer has no ticket"))?;
    client.post(&format!("/approvals/{}/approve", encode(&ticket)), &reason_body(arguments.reason.as_deref()))?;
    let answer = client.get(&path)?;
    let output = if arguments.server.json { answer.json() } else { lever_text(answer.document()?.root(), "trusted") };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn pull(arguments: &LeverArguments, lever: &str) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let id = prefix::agent(&client, &arguments.id)?;
    let answer = client.post(&format!("/agents/{}/{lever}", encode(&id)), &reason_body(arguments.reason.as_deref()))?;
    let done = match lever {
        "suspend" => "suspended",
        "reactivate" => "reactivated",
        "complaint" => "complaint recorded",
        "observe" => "observed",
        "enforce" => "enforced",
        _ => "new token",
    };
    let output = if arguments.server.json { answer.json() } else { lever_text(answer.document()?.root(), done) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn lever_text(agent: Value<'_>, done: &str) -> String {
    let mut out = format!(
        "{GOOD}{}{RESET} {}: {}\n  status {}, trust {}, mode {}\n",
        done.to_uppercase(),
        member(agent, "agent_id", 80),
        member(agent, "name", 60),
        member(agent, "status", 20),
        member(agent, "trust_level", 4),
        member(agent, "mode", 20),
    );
    if agent.get("agent_token").is_some() {
        out.push_str(&format!(
            "  token {}\n  It is shown this once. Give it to the agent and to nobody else.\n",
            member(agent, "agent_token", 200)
        ));
    }
    out
}

/// What is removed cannot be brought back, so half an id will not do.
fn erase(arguments: &LeverArguments) -> Result<Outcome, Fault> {
    if !prefix::is_whole(&arguments.id, "agent_") {
        let what = format!("`{}` is not the whole id of an agent", interlock_core::display(&arguments.id));
        return Err(
            Fault::new(what).and_then_do("erasing cannot be undone; `interlock agents show ID` prints the whole id")
        );
    }
    let client = Client::open(&arguments.server)?;
    let path = format!("/agents/{}/erase", encode(&arguments.id));
    let answer = client.post(&path, &reason_body(arguments.reason.as_deref()))?;
    let output = if arguments.server.json {
        answer.json()
    } else {
        let document = answer.document()?;
        let erased = member(document.root(), "erased", 20);
        format!("{GOOD}ERASED{RESET} {}: texts removed: {erased}\n", member(document.root(), "agent_id", 80))
    };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}
