//! `interlock approvals`: what waits for a person, on one screen, and the person's yes or no.
//!
//! Nothing is decided here. What an agent wrote is shown as its claim, inert, and cut unless all of it is asked for.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use interlock_core::action::Millis;
use interlock_core::json::{Document, Value};

use crate::client::{Answer, Client, ServerArguments, encode, inert_json, reason_body, with_query};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{Table, block, cell, member, scalar};
use crate::{Fault, Outcome, moment, prefix, print, print_open};

/// How often `watch` looks, unless told otherwise.
const WATCH_SECONDS: u64 = 2;

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List what waits for a person, or what was decided
    List(ListArguments),
    /// Show one ticket on one screen: who, what exactly, why it waits, how long it can
    Show(ShowArguments),
    /// Let the action run, once
    Approve(DecideArguments),
    /// Refuse the action
    Deny(DecideArguments),
    /// Print tickets as they come in, until Ctrl-C
    Watch(WatchArguments),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Approved,
    Denied,
    Expired,
    All,
}

impl Status {
    fn parameter(self) -> Option<String> {
        let text = match self {
            Status::Pending => "pending",
            Status::Approved => "approved",
            Status::Denied => "denied",
            Status::Expired => "expired",
            Status::All => return None,
        };
        Some(text.to_owned())
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock approvals list
  interlock approvals list --status all --agent agent_5d41 --json")]
pub(crate) struct ListArguments {
    /// Which tickets
    #[arg(long, value_enum, default_value = "pending")]
    status: Status,
    /// Only those of one agent; the beginning of its id will do
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
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
#[command(after_help = "Examples:
  interlock approvals show appr_7c1e
  interlock approvals show appr_7c1e --full | less")]
pub(crate) struct ShowArguments {
    /// The ticket; the beginning of its id will do
    id: String,
    /// Show all of what the agent wrote, however long
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock approvals approve appr_7c1e --reason 'checked with the owner'
  interlock approvals deny appr_7c1e --reason 'wrong account'

Exit codes: 0 decided, 1 the server refused (already decided, expired, not this role), 2 usage or fault.")]
pub(crate) struct DecideArguments {
    /// The ticket; the beginning of its id will do
    id: String,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock approvals watch --json | while read -r ticket; do …; done

With --json each ticket is one line.")]
pub(crate) struct WatchArguments {
    /// Seconds between two looks
    #[arg(long, value_name = "N", default_value_t = WATCH_SECONDS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    #[command(flatten)]
    server: ServerArguments,
}

impl ApprovalsCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            ApprovalsCommand::List(arguments) => arguments.server.json,
            ApprovalsCommand::Show(arguments) => arguments.server.json,
            ApprovalsCommand::Approve(arguments) | ApprovalsCommand::Deny(arguments) => arguments.server.json,
            ApprovalsCommand::Watch(arguments) => arguments.server.json,
        }
    }
}

pub(crate) fn run(command: &ApprovalsCommand) -> Result<Outcome, Fault> {
    match command {
        ApprovalsCommand::List(arguments) => list(arguments),
        ApprovalsCommand::Show(arguments) => show(arguments),
        ApprovalsCommand::Approve(arguments) => decide(arguments, "approve"),
        ApprovalsCommand::Deny(arguments) => decide(arguments, "deny"),
        ApprovalsCommand::Watch(arguments) => watch(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let agent = arguments.agent.as_deref().map(|id| prefix::agent(&client, id)).transpose()?;
    let path = with_query(
        "/approvals",
        &[
            ("status", arguments.status.parameter()),
            ("agent", agent),
            ("limit", Some(arguments.limit.to_string())),
            ("cursor", arguments.cursor.clone()),
        ],
    );
    let answer = client.get(&path)?;
    print(if arguments.server.json { answer.json() } else { list_text(&answer)? }.as_bytes())?;
    Ok(Outcome::Clean)
}

fn list_text(answer: &Answer) -> Result<String, Fault> {
    let document = answer.document()?;
    let tickets = tickets(&document)?;
    if tickets.is_empty() {
        return Ok("nothing waits\n".to_owned());
    }
    let mut out = table(&tickets, answer.now).render();
    if let Some(cursor) = scalar(document.root(), "next_cursor") {
        out.push_str(&format!("{FAINT}more: --cursor {}{RESET}\n", cell(&cursor, 80)));
    }
    Ok(out)
}

/// Tickets as a table; `top` shows it too.
pub(crate) fn table(tickets: &[Value<'_>], now: Millis) -> Table {
    let mut table = Table::new(&["ID", "STATUS", "TIME LEFT", "RISK", "AGENT", "WHAT"]);
    for ticket in tickets {
        table.row(vec![
            member(*ticket, "approval_id", prefix::SHORT_COLUMNS),
            member(*ticket, "status", 10),
            time_left(*ticket, now),
            member(*ticket, "risk_level", 10),
            member(*ticket, "agent_name", 24),
            what(*ticket),
        ]);
    }
    table
}

pub(crate) fn tickets<'d>(document: &'d Document<'_>) -> Result<Vec<Value<'d>>, Fault> {
    let list = document.root().get("approvals").and_then(|list| list.as_array());
    list.map(Iterator::collect).ok_or_else(|| Fault::new("the server's answer has no `approvals`"))
}

/// How long a ticket can still be decided on, or its execution reported.
fn time_left(ticket: Value<'_>, now: Millis) -> String {
    let is_open = matches!(scalar(ticket, "status").as_deref(), Some("pending" | "approved"))
        && ticket.get("spent").and_then(|spent| spent.as_bool()) != Some(true);
    match scalar(ticket, "expires_at") {
        Some(until) if is_open => moment::left(&until, now),
        _ => "-".to_owned(),
    }
}

fn what(ticket: Value<'_>) -> String {
    match ticket.get("trust") {
        Some(trust) => format!("trust {} -> {}", member(trust, "from_level", 4), member(trust, "to_level", 4)),
        None => member(ticket, "action_type", 32),
    }
}

fn show(arguments: &ShowArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let id = prefix::approval(&client, &arguments.id)?;
    let answer = client.get(&format!("/approvals/{}", encode(&id)))?;
    let output = if arguments.server.json {
        answer.json()
    } else {
        ticket_text(answer.document()?.root(), answer.now, arguments.full)
    };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn ticket_text(ticket: Value<'_>, now: Millis, full: bool) -> String {
    let id = member(ticket, "approval_id", 80);
    let status = member(ticket, "status", 20);
    let colour = if status == "approved" { GOOD } else { BAD };
    let mut out = format!("{colour}{}{RESET} {id}\n", status.to_uppercase());
    let mut line = |name: &str, value: String| out.push_str(&format!("  {name:<10} {value}\n"));
    let named = format!("{} ({})", member(ticket, "agent_name", 60), member(ticket, "agent_id", 60));
    line("agent", named);
    line("for", member(ticket, "principal_id", 60));
    line("wants", what(ticket));
    if ticket.get("risk_level").is_some() {
        line("risk", member(ticket, "risk_level", 20));
    }
    if ticket.get("conversation_id").is_some() {
        let step = member(ticket, "step_number", 12);
        line("where", format!("step {step} of conversation {}", member(ticket, "conversation_id", 48)));
    }
    line("why", member(ticket, "why", 300));
    line("opened", scalar(ticket, "opened_at").map_or_else(|| "-".to_owned(), |at| cell(&moment::short(&at), 40)));
    if let Some(until) = scalar(ticket, "expires_at") {
        let left = time_left(ticket, now);
        let until = cell(&moment::short(&until), 40);
        line("time left", if left == "-" { format!("- (expiry {until})") } else { format!("{left} (until {until})") });
    }
    if ticket.get("decision_id").is_some() {
        line("decision", member(ticket, "decision_id", 80));
    }
    if let Some(by) = scalar(ticket, "decided_by") {
        let at = scalar(ticket, "decided_at").map_or_else(String::new, |at| cell(&moment::short(&at), 40));
        line("decided by", format!("{}, {at}", cell(&by, 60)));
    }
    if ticket.get("reason").is_some() {
        line("reason", member(ticket, "reason", 300));
    }
    if let Some(spent) = ticket.get("spent").and_then(|spent| spent.as_bool()).filter(|_| status == "approved") {
        line("spent", if spent { "yes: its execution was reported" } else { "no" }.to_owned());
    }
    let mut cut = false;
    if let Some(trust) = ticket.get("trust") {
        if let Some(evidence) = trust.get("evidence") {
            let (text, was_cut) = block(evidence, full);
            out.push_str(&format!("\nEvidence, counted by Interlock from the ledger:\n{text}"));
            cut |= was_cut;
        }
        if let Some(justification) = trust.get("justification") {
            let (text, was_cut) = block(justification, full);
            out.push_str(&format!("\nThe agent's own words; nobody checked them:\n{text}"));
            cut |= was_cut;
        }
    }
    match ticket.get("action") {
        Some(action) => {
            let (text, was_cut) = block(action, full);
            out.push_str(&format!("\nWhat the agent says it will do; its own words, nothing in them is ours:\n{text}"));
            cut |= was_cut;
            if let Some(corrected) = ticket.get("corrected_query") {
                let (text, was_cut) = block(corrected, full);
                out.push_str(&format!("\nA yes is for this form, which the verifier corrected:\n{text}"));
                cut |= was_cut;
            }
            for (key, what) in
                [("justification", "Why, as the agent says"), ("user_intent", "What its user wants, as it says")]
            {
                if let Some(claim) = ticket.get(key) {
                    let (text, was_cut) = block(claim, full);
                    out.push_str(&format!("\n{what}; nobody checked it:\n{text}"));
                    cut |= was_cut;
                }
            }
        }
        None if ticket.get("trust").is_none() => {
            out.push_str("\nThe text of the action is not kept; only its type and digest are on record.\n");
        }
        None => {}
    }
    if cut {
        out.push_str(&format!("{BAD}cut:{RESET} all of it: interlock approvals show {id} --full\n"));
    }
    if status == "pending" {
        out.push_str(&format!(
            "\n{FAINT}yes: interlock approvals approve {id}\nno:  interlock approvals deny {id} --reason TEXT{RESET}\n"
        ));
    }
    out
}

fn decide(arguments: &DecideArguments, verb: &str) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let id = prefix::approval(&client, &arguments.id)?;
    let answer =
        client.post(&format!("/approvals/{}/{verb}", encode(&id)), &reason_body(arguments.reason.as_deref()))?;
    let output =
        if arguments.server.json { answer.json() } else { decided_text(answer.document()?.root(), answer.now) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn decided_text(ticket: Value<'_>, now: Millis) -> String {
    let status = member(ticket, "status", 20);
    let colour = if status == "approved" { GOOD } else { BAD };
    let mut out = format!(
        "{colour}{}{RESET} {}: {} of {}\n",
        status.to_uppercase(),
        member(ticket, "approval_id", 80),
        what(ticket),
        member(ticket, "agent_name", 60),
    );
    let left = time_left(ticket, now);
    if status == "approved" && ticket.get("trust").is_none() && left != "-" {
        out.push_str(&format!("  the agent has {left} to run it and report\n"));
    }
    out
}

fn watch(arguments: &WatchArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let path = with_query("/approvals", &[("status", Some("pending".to_owned())), ("limit", Some("1000".to_owned()))]);
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut outage = Outage::default();
    loop {
        if let Some(answer) = outage.survive(client.get(&path))? {
            let document = answer.document()?;
            let mut waiting = BTreeSet::new();
            // Newest first is how they come; oldest first is how they are told.
            for ticket in tickets(&document)?.into_iter().rev() {
                let id = scalar(ticket, "approval_id").unwrap_or_default();
                if !known.contains(&id) {
                    let line = if arguments.server.json {
                        inert_json(ticket.source())
                    } else {
                        watch_line(ticket, answer.now)
                    };
                    if !print_open(line.as_bytes())? {
                        return Ok(Outcome::Clean);
                    }
                }
                waiting.insert(id);
            }
            known = waiting;
        }
        thread::sleep(Duration::from_secs(arguments.interval));
    }
}

fn watch_line(ticket: Value<'_>, now: Millis) -> String {
    let opened = scalar(ticket, "opened_at").unwrap_or_default();
    format!(
        "{}  {}  {} of {}, risk {}, time left {}\n",
        cell(&moment::short(&opened), 20),
        member(ticket, "approval_id", prefix::SHORT_COLUMNS),
        what(ticket),
        member(ticket, "agent_name", 24),
        member(ticket, "risk_level", 10),
        time_left(ticket, now),
    )
}

/// Polling goes on while the server restarts; it says so once. The first look must succeed.
#[derive(Default)]
pub(crate) struct Outage {
    has_answered: bool,
    is_out: bool,
}

impl Outage {
    pub(crate) fn survive(&mut self, asked: Result<Answer, Fault>) -> Result<Option<Answer>, Fault> {
        use std::io::Write;
        let note = |text: &str| {
            let _ = writeln!(anstream::stderr(), "{FAINT}note:{RESET} {text}");
        };
        match asked {
            Ok(answer) => {
                if std::mem::take(&mut self.is_out) {
                    note("the server answers again");
                }
                self.has_answered = true;
                Ok(Some(answer))
            }
            Err(fault) if self.has_answered && fault.is_transient => {
                if !std::mem::replace(&mut self.is_out, true) {
                    note(&format!("{}; still trying", interlock_core::visible(&fault.message)));
                }
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }
}
