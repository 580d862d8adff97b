//! `interlock agents`: who is registered, what each may do, and the operator's levers on one of them.

use clap::{Args, Subcommand, ValueEnum};
use interlock_wire::{
    Agent, AgentPage, Budget, ErasedTexts, FlatRegistration, Permissions, TrustAnswer, TrustRequest, write,
};

use crate::client::{Answer, Client, ServerArguments, encode, reason_body, with_query};
use crate::style::{BAD, GOOD, RESET};
use crate::table::{Table, cell, more, time};
use crate::{Fault, Outcome, prefix, print};

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
    let page: AgentPage = answer.read()?;
    if page.agents.is_empty() {
        return Ok("no agents; register one: interlock agents register --help\n".to_owned());
    }
    let mut table = Table::new(&["ID", "STATUS", "MODE", "TRUST", "TYPE", "CREATED", "NAME", "PRINCIPAL"]);
    for agent in &page.agents {
        table.row(vec![
            cell(&agent.agent_id, prefix::SHORT_COLUMNS),
            cell(&agent.status, 12),
            cell(&agent.mode, 10),
            agent.trust_level.to_string(),
            cell(&agent.kind, 12),
            time(&agent.created_at),
            cell(&agent.name, 28),
            cell(&agent.principal_id, 28),
        ]);
    }
    Ok(table.render() + &more("more", page.next_cursor.as_deref()))
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
    let out = agent_text(&answer.read()?) + &budget_text(&budget.read()?);
    print(out.as_bytes())?;
    Ok(Outcome::Clean)
}

fn agent_text(agent: &Agent) -> String {
    let status = cell(&agent.status, 20);
    let colour = if status == "active" { GOOD } else { BAD };
    let mut out = format!("{colour}{}{RESET} {}\n", status.to_uppercase(), cell(&agent.agent_id, 80));
    let mut line = |name: &str, value: String| out.push_str(&format!("  {name:<12} {value}\n"));
    line("name", cell(&agent.name, 80));
    line("for", cell(&agent.principal_id, 80));
    line("type", format!("{}, trust {}", cell(&agent.kind, 20), agent.trust_level));
    let note = if agent.mode == "observe" { ": rulings do not bind" } else { "" };
    line("mode", format!("{}{note}", cell(&agent.mode, 20)));
    for (name, value) in [("description", &agent.description), ("framework", &agent.framework), ("model", &agent.model)]
    {
        if let Some(value) = value {
            line(name, cell(value, 80));
        }
    }
    line("created", time(&agent.created_at));
    let Permissions { allowed_engines, allowed_tools, blocked_tools } = &agent.permissions;
    line("engines", texts(allowed_engines));
    line("may use", texts(allowed_tools));
    line("may not use", texts(blocked_tools));
    out
}

/// A list of strings from outside, the first few.
fn texts(list: &[String]) -> String {
    const SHOWN_MAX: usize = 12;
    if list.is_empty() {
        return "-".to_owned();
    }
    let mut out = list.iter().take(SHOWN_MAX).map(|text| cell(text, 32)).collect::<Vec<_>>().join(", ");
    let over = list.len().saturating_sub(SHOWN_MAX);
    if over > 0 {
        out.push_str(&format!(", … {over} more"));
    }
    out
}

fn budget_text(budget: &Budget) -> String {
    let Budget { cost, requests, tokens } = budget;
    let count = |limit: &Option<u64>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    let dollars = cost.max_daily_usd.as_ref().map_or_else(|| "none".to_owned(), |limit| cell(limit.text(), 20));
    #[rustfmt::skip]
    let rows = [
        ("dollars today",   cell(cost.current_daily_usd.text(), 20), dollars),
        ("requests, hour",  requests.current_hour.to_string(),       count(&requests.max_per_hour)),
        ("requests, today", requests.current_day.to_string(),        count(&requests.max_per_day)),
        ("tokens today",    tokens.current_daily.to_string(),        count(&tokens.max_daily)),
    ];
    let mut table = Table::new(&["BUDGET", "SPENT", "LIMIT"]);
    for (name, spent, limit) in rows {
        table.row(vec![name.to_owned(), spent, limit]);
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
    let registration = FlatRegistration {
        name: arguments.name.clone(),
        kind: kind.to_owned(),
        principal_id: arguments.principal.clone(),
        trust_level: arguments.trust,
        ..FlatRegistration::default()
    };
    let answer = client.post("/agents/register", &write(&registration))?;
    let output = if arguments.server.json { answer.json() } else { lever_text(&answer.read()?, "registered") };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

/// Asks in the agent's place, and agrees. A request that is open already is for a person to look at first.
fn trust(arguments: &TrustLevelArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let id = prefix::agent(&client, &arguments.id)?;
    let path = format!("/agents/{}", encode(&id));
    let body = TrustRequest {
        request: "trust_elevation".to_owned(),
        to_level: arguments.level,
        justification: arguments.reason.clone(),
        ..TrustRequest::default()
    };
    let asked = client.post(&format!("{path}/trust"), &write(&body)).map_err(|fault| match fault.code.as_deref() {
        Some("INTERLOCK-APPROVAL-003") => {
            fault.and_then_do("decide what is open first: `interlock approvals list`, then `approve` or `deny`")
        }
        _ => fault,
    })?;
    let TrustAnswer { approval_id: ticket, .. } = asked.read()?;
    client.post(&format!("/approvals/{}/approve", encode(&ticket)), &reason_body(arguments.reason.as_deref()))?;
    let answer = client.get(&path)?;
    let output = if arguments.server.json { answer.json() } else { lever_text(&answer.read()?, "trusted") };
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
    let output = if arguments.server.json { answer.json() } else { lever_text(&answer.read()?, done) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn lever_text(agent: &Agent, done: &str) -> String {
    let mut out = format!(
        "{GOOD}{}{RESET} {}: {}\n  status {}, trust {}, mode {}\n",
        done.to_uppercase(),
        cell(&agent.agent_id, 80),
        cell(&agent.name, 60),
        cell(&agent.status, 20),
        agent.trust_level,
        cell(&agent.mode, 20),
    );
    if let Some(token) = &agent.agent_token {
        let token = cell(token, 200);
        out.push_str(&format!("  token {token}\n  It is shown this once. Give it to the agent and to nobody else.\n"));
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
        let ErasedTexts { agent_id, erased } = answer.read()?;
        format!("{GOOD}ERASED{RESET} {}: texts removed: {erased}\n", cell(&agent_id, 80))
    };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}
