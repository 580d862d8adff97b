//! `interlock approvals`: what waits for a person, on one screen, and the person's yes or no.
//!
//! Nothing is decided here. What an agent wrote is shown as its claim, inert, and cut unless all of it is asked for.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use interlock_core::action::Millis;
use interlock_wire::{RawJson, Ticket, TicketPage};

use crate::client::{Answer, Client, ServerArguments, encode, inert_json, reason_body, with_query};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{Table, block_of, cell, more, optional, time};
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
    let page: TicketPage = answer.read()?;
    if page.approvals.is_empty() {
        return Ok("nothing waits\n".to_owned());
    }
    Ok(table(page.approvals.iter(), answer.now).render() + &more("more", page.next_cursor.as_deref()))
}

/// Tickets as a table; `top` shows it too.
pub(crate) fn table<'a>(tickets: impl Iterator<Item = &'a Ticket>, now: Millis) -> Table {
    let mut table = Table::new(&["ID", "STATUS", "TIME LEFT", "RISK", "AGENT", "WHAT"]);
    for ticket in tickets {
        table.row(vec![
            cell(&ticket.approval_id, prefix::SHORT_COLUMNS),
            cell(&ticket.status, 10),
            time_left(ticket, now),
            optional(ticket.risk_level.as_deref(), 10),
            cell(&ticket.agent_name, 24),
            what(ticket),
        ]);
    }
    table
}

/// How long a ticket can still be decided on, or its execution reported.
fn time_left(ticket: &Ticket, now: Millis) -> String {
    let is_open = matches!(ticket.status.as_str(), "pending" | "approved") && !ticket.spent;
    if is_open { moment::left(&ticket.expires_at, now) } else { "-".to_owned() }
}

fn what(ticket: &Ticket) -> String {
    match &ticket.trust {
        Some(trust) => format!("trust {} -> {}", trust.from_level, trust.to_level),
        None => optional(ticket.action_type.as_deref(), 32),
    }
}

fn show(arguments: &ShowArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let id = prefix::approval(&client, &arguments.id)?;
    let answer = client.get(&format!("/approvals/{}", encode(&id)))?;
    let output =
        if arguments.server.json { answer.json() } else { ticket_text(&answer.read()?, answer.now, arguments.full) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn ticket_text(ticket: &Ticket, now: Millis, full: bool) -> String {
    let id = cell(&ticket.approval_id, 80);
    let status = cell(&ticket.status, 20);
    let colour = if status == "approved" { GOOD } else { BAD };
    let mut out = format!("{colour}{}{RESET} {id}\n", status.to_uppercase());
    let mut line = |name: &str, value: String| out.push_str(&format!("  {name:<10} {value}\n"));
    let named = format!("{} ({})", cell(&ticket.agent_name, 60), cell(&ticket.agent_id, 60));
    line("agent", named);
    line("for", cell(&ticket.principal_id, 60));
    line("wants", what(ticket));
    if let Some(risk) = &ticket.risk_level {
        line("risk", cell(risk, 20));
    }
    if let Some(conversation) = &ticket.conversation_id {
        let step = ticket.step_number.map_or_else(|| "-".to_owned(), |step| step.to_string());
        line("where", format!("step {step} of conversation {}", cell(conversation, 48)));
    }
    line("why", cell(&ticket.why, 300));
    line("opened", time(&ticket.opened_at));
    let (left, until) = (time_left(ticket, now), time(&ticket.expires_at));
    line("time left", if left == "-" { format!("- (expiry {until})") } else { format!("{left} (until {until})") });
    if let Some(decision) = &ticket.decision_id {
        line("decision", cell(decision, 80));
    }
    if let Some(by) = &ticket.decided_by {
        let at = ticket.decided_at.as_deref().map_or_else(String::new, time);
        line("decided by", format!("{}, {at}", cell(by, 60)));
    }
    if let Some(reason) = &ticket.reason {
        line("reason", cell(reason, 300));
    }
    if status == "approved" {
        line("spent", if ticket.spent { "yes: its execution was reported" } else { "no" }.to_owned());
    }
    if let Some(changes) = &ticket.changes {
        line("changes", cell(changes, 80));
    }
    let mut cut = false;
    let mut part = |title: &str, text: &str| {
        let (text, was_cut) = block_of(text, full);
        out.push_str(&format!("\n{title}:\n{text}"));
        cut |= was_cut;
    };
    let words = |text: &str| interlock_wire::write(&text);
    if let Some(trust) = &ticket.trust {
        part("Evidence, counted by Interlock from the ledger", &interlock_wire::write(&trust.evidence));
        if let Some(justification) = &trust.justification {
            part("The agent's own words; nobody checked them", &words(justification));
        }
    }
    match &ticket.action {
        Some(action) => {
            part("What the agent says it will do; its own words, nothing in them is ours", action.text());
            if let Some(corrected) = &ticket.corrected_query {
                part("A yes is for this form, which the verifier corrected", &words(corrected));
            }
            if let Some(claim) = &ticket.justification {
                part("Why, as the agent says; nobody checked it", &words(claim));
            }
            if let Some(claim) = &ticket.user_intent {
                part("What its user wants, as it says; nobody checked it", &words(claim));
            }
        }
        None if ticket.trust.is_none() => {
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
    let output = if arguments.server.json { answer.json() } else { decided_text(&answer.read()?, answer.now) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn decided_text(ticket: &Ticket, now: Millis) -> String {
    let status = cell(&ticket.status, 20);
    let colour = if status == "approved" { GOOD } else { BAD };
    let mut out = format!(
        "{colour}{}{RESET} {}: {} of {}\n",
        status.to_uppercase(),
        cell(&ticket.approval_id, 80),
        what(ticket),
        cell(&ticket.agent_name, 60),
    );
    let left = time_left(ticket, now);
    if status == "approved" && ticket.trust.is_none() && left != "-" {
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
            let page: TicketPage<RawJson> = answer.read()?;
            let mut waiting = BTreeSet::new();
            // Newest first is how they come; oldest first is how they are told.
            for raw in page.approvals.iter().rev() {
                let ticket: Ticket = interlock_wire::read(raw.text()).map_err(|error| Fault::new(error.to_string()))?;
                if !known.contains(&ticket.approval_id) {
                    let line =
                        if arguments.server.json { inert_json(raw.text()) } else { watch_line(&ticket, answer.now) };
                    if !print_open(line.as_bytes())? {
                        return Ok(Outcome::Clean);
                    }
                }
                waiting.insert(ticket.approval_id);
            }
            known = waiting;
        }
        thread::sleep(Duration::from_secs(arguments.interval));
    }
}

fn watch_line(ticket: &Ticket, now: Millis) -> String {
    format!(
        "{}  {}  {} of {}, risk {}, time left {}\n",
        time(&ticket.opened_at),
        cell(&ticket.approval_id, prefix::SHORT_COLUMNS),
        what(ticket),
        cell(&ticket.agent_name, 24),
        optional(ticket.risk_level.as_deref(), 10),
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
