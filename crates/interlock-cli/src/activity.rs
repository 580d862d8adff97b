//! `interlock activity`: what was ruled, oldest first like a log; once, or for as long as one watches.

use std::thread;
use std::time::Duration;

use clap::Args;
use interlock_runtime::clock::{Clock, SystemClock};
use interlock_wire::{Activity, ActivityPage, ActivitySummary, RawJson};

use crate::approvals::Outage;
use crate::client::{Answer, Client, ServerArguments, encode, inert_json, with_query};
use crate::style::{FAINT, RESET};
use crate::table::{Table, cell, more, optional, time};
use crate::{Fault, Outcome, moment, prefix, print, print_open};

/// How many rulings are shown unless told otherwise.
const LIMIT: u32 = 20;
/// How many pages `--follow` reads back to where it was.
const PAGES_MAX: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock activity --limit 50
  interlock activity --agent agent_5d41 --from 2h
  interlock activity --follow --json | jq -c 'select(.decision == \"DENIED\")'

Times are RFC 3339, milliseconds since 1970, or a while ago as in 15m, 2h, 7d. With --follow --json each ruling is one
line; it ends on Ctrl-C.")]
pub(crate) struct ActivityArguments {
    /// Only one agent's; the beginning of its id will do
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// How many, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    limit: u32,
    /// Not before this time
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME", conflicts_with = "follow")]
    to: Option<String>,
    /// Go on where a page ended
    #[arg(long, value_name = "CURSOR", conflicts_with = "follow")]
    cursor: Option<String>,
    /// Print new rulings as they are made
    #[arg(long)]
    follow: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &ActivityArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let path = match &arguments.agent {
        Some(id) => format!("/agents/{}/activity", encode(&prefix::agent(&client, id)?)),
        None => "/activity".to_owned(),
    };
    if arguments.follow {
        return follow(arguments, &client, &path);
    }
    let answer = client.get(&page(arguments, &path, arguments.limit, arguments.cursor.clone()))?;
    let output = if arguments.server.json { answer.json() } else { text(&answer)? };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn page(arguments: &ActivityArguments, path: &str, limit: u32, cursor: Option<String>) -> String {
    let bound = |given: &Option<String>| given.as_deref().map(|text| moment::parse_bound(text, SystemClock.now()));
    with_query(
        path,
        &[
            ("limit", Some(limit.to_string())),
            ("cursor", cursor),
            ("from", bound(&arguments.from)),
            ("to", bound(&arguments.to)),
        ],
    )
}

fn text(answer: &Answer) -> Result<String, Fault> {
    let page: ActivityPage = answer.read()?;
    if page.activities.is_empty() {
        return Ok("nothing was asked\n".to_owned());
    }
    let mut out = table(page.activities.iter().rev()).render();
    if let Some(summary) = &page.summary {
        let ActivitySummary { total, approved, corrected, pending, budget_exceeded, denied, complete } = summary;
        out.push_str(&format!(
            "{FAINT}total {total}, approved {approved}, corrected {corrected}, pending {pending}, budget_exceeded \
             {budget_exceeded}, denied {denied}, complete {complete}{RESET}\n"
        ));
    }
    Ok(out + &more("older", page.next_cursor.as_deref()))
}

/// Rulings as a table; `top` shows it too.
pub(crate) fn table<'a>(rows: impl Iterator<Item = &'a Activity>) -> Table {
    let rows: Vec<&Activity> = rows.collect();
    let mut names = vec!["TIME", "DECISION", "ACTION", "CODE", "AGENT", "STEP", "CONVERSATION"];
    // What may have changed something is named, for `interlock changes` and `interlock undo`.
    let names_changes = rows.iter().any(|row| row.changes.is_some());
    names.extend(names_changes.then_some("CHANGED BY"));
    let mut table = Table::new(&names);
    for row in rows {
        let changed_by = row.changes.as_ref().map(|_| row.decision_id.as_str());
        table.row(cells(row).into_iter().chain(names_changes.then(|| optional(changed_by, 40))).collect());
    }
    table
}

fn cells(row: &Activity) -> Vec<String> {
    let mut decision = cell(&row.decision, 16);
    if row.dry_run {
        decision.push_str(" (dry)");
    }
    // Refusals that were counted and not written out.
    if let Some(repeats) = &row.repeats {
        decision.push_str(&format!(" x{}", repeats.count));
    }
    vec![
        time(&row.timestamp),
        decision,
        optional(row.action_type.as_deref(), 24),
        optional(row.code.as_deref(), 26),
        // A page of one agent does not repeat it.
        optional(row.agent_id.as_deref(), prefix::SHORT_COLUMNS),
        row.step_number.map_or_else(|| "-".to_owned(), |step| step.to_string()),
        optional(row.conversation_id.as_deref(), 24),
    ]
}

/// One ruling on a line of its own; the columns are as wide as they usually are.
fn line(row: &Activity) -> String {
    let widths = [19, 15, 16, 22, prefix::SHORT_COLUMNS, 4, 0];
    let mut out = String::new();
    for (cell, width) in cells(row).iter().zip(widths) {
        let pad = width - crate::table::width(cell).min(width);
        out.push_str(&format!("{cell}{}  ", " ".repeat(pad)));
    }
    format!("{}\n", out.trim_end())
}

fn follow(arguments: &ActivityArguments, client: &Client, path: &str) -> Result<Outcome, Fault> {
    let mut outage = Outage::default();
    let mut last: Option<String> = None;
    let mut is_first = true;
    loop {
        let limit = if is_first { arguments.limit } else { 1000 };
        if let Some(answer) = outage.survive(client.get(&page(arguments, path, limit, None)))? {
            let page = answer.read()?;
            let news = if is_first {
                since(&page, None)?.0
            } else {
                catch_up(arguments, client, path, page, last.as_deref())?
            };
            is_first = false;
            for (id, row) in news.into_iter().rev() {
                let shown = match (interlock_wire::read(&row), arguments.server.json) {
                    (Ok(row), false) => line(&row),
                    _ => inert_json(&row),
                };
                if !print_open(shown.as_bytes())? {
                    return Ok(Outcome::Clean);
                }
                last = Some(id);
            }
        }
        thread::sleep(Duration::from_secs(arguments.interval));
    }
}

/// Decision id and text of a row.
type Row = (String, String);

/// A page with its rows as they came.
type RawPage = ActivityPage<RawJson>;

/// The rows of a page that are newer than the last one told, newest first, and whether that one was met.
fn since(page: &RawPage, last: Option<&str>) -> Result<(Vec<Row>, bool), Fault> {
    let mut rows = Vec::new();
    for raw in &page.activities {
        let row: Activity = interlock_wire::read(raw.text()).map_err(|error| Fault::new(error.to_string()))?;
        let mut id = row.decision_id;
        // What is counted names a decision that has a row of its own.
        if row.repeats.is_some() {
            id.push_str(&row.timestamp);
        }
        if last == Some(id.as_str()) {
            return Ok((rows, true));
        }
        rows.push((id, raw.text().to_owned()));
    }
    Ok((rows, false))
}

/// What is newer than the last ruling told, over as many pages as it takes, within limits.
fn catch_up(
    arguments: &ActivityArguments,
    client: &Client,
    path: &str,
    first: RawPage,
    last: Option<&str>,
) -> Result<Vec<Row>, Fault> {
    use std::io::Write;
    let (mut rows, mut met) = since(&first, last)?;
    let mut cursor = first.next_cursor;
    for _ in 1..PAGES_MAX {
        let Some(at) = cursor.take().filter(|_| !met) else { break };
        let next: RawPage = client.get(&page(arguments, path, 1000, Some(at)))?.read()?;
        let (more, found) = since(&next, last)?;
        rows.extend(more);
        met = found;
        cursor = next.next_cursor;
    }
    if !met && cursor.is_some() {
        let _ = writeln!(anstream::stderr(), "{FAINT}note:{RESET} more was ruled than can be shown; some is left out");
    }
    Ok(rows)
}
