//! `interlock activity`: what was ruled, oldest first like a log; once, or for as long as one watches.

use std::thread;
use std::time::Duration;

use clap::Args;
use interlock_core::json::{Document, Value};
use interlock_runtime::clock::{Clock, SystemClock};

use crate::approvals::Outage;
use crate::client::{Answer, Client, ServerArguments, encode, inert_json, with_query};
use crate::style::{FAINT, RESET};
use crate::table::{Table, cell, member, scalar};
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

pub(crate) fn activities<'d>(document: &'d Document<'_>) -> Result<Vec<Value<'d>>, Fault> {
    let list = document.root().get("activities").and_then(|list| list.as_array());
    list.map(Iterator::collect).ok_or_else(|| Fault::new("the server's answer has no `activities`"))
}

fn text(answer: &Answer) -> Result<String, Fault> {
    let document = answer.document()?;
    let rows = activities(&document)?;
    if rows.is_empty() {
        return Ok("nothing was asked\n".to_owned());
    }
    let mut out = table(rows.iter().rev().copied()).render();
    if let Some(summary) = document.root().get("summary").and_then(|summary| summary.as_object()) {
        let parts: Vec<String> = summary.filter_map(|(key, value)| summary_part(key.text(), value)).collect();
        if !parts.is_empty() {
            out.push_str(&format!("{FAINT}{}{RESET}\n", parts.join(", ")));
        }
    }
    if let Some(cursor) = scalar(document.root(), "next_cursor") {
        out.push_str(&format!("{FAINT}older: --cursor {}{RESET}\n", cell(&cursor, 80)));
    }
    Ok(out)
}

/// `approved 12`, or `decisions (APPROVED 12, DENIED 3)`.
fn summary_part(key: &str, value: Value<'_>) -> Option<String> {
    use interlock_core::json::Content;
    let shown = match value.content()? {
        Content::String(text) => cell(text.text(), 40),
        Content::Number(number) => cell(number.literal(), 40),
        Content::Boolean(truth) => truth.to_string(),
        Content::Object(members) => {
            let parts: Vec<String> =
                members.map(|(key, value)| format!("{} {}", cell(key.text(), 40), cell(value.source(), 20))).collect();
            format!("({})", parts.join(", "))
        }
        Content::Null | Content::Array(_) => return None,
    };
    Some(format!("{} {shown}", cell(key, 40)))
}

/// Rulings as a table; `top` shows it too.
pub(crate) fn table<'d>(rows: impl Iterator<Item = Value<'d>>) -> Table {
    let mut table = Table::new(&["TIME", "DECISION", "ACTION", "CODE", "AGENT", "STEP", "CONVERSATION"]);
    for row in rows {
        table.row(cells(row));
    }
    table
}

fn cells(row: Value<'_>) -> Vec<String> {
    let time = scalar(row, "timestamp").map_or_else(|| "-".to_owned(), |at| cell(&moment::short(&at), 30));
    let mut decision = member(row, "decision", 16);
    if row.get("dry_run").and_then(|dry| dry.as_bool()) == Some(true) {
        decision.push_str(" (dry)");
    }
    // Refusals that were counted and not written out.
    if let Some(count) = row.get("repeats").and_then(|repeats| scalar(repeats, "count")) {
        decision.push_str(&format!(" x{}", cell(&count, 20)));
    }
    vec![
        time,
        decision,
        member(row, "action_type", 24),
        member(row, "code", 26),
        // A page of one agent does not repeat it.
        member(row, "agent_id", prefix::SHORT_COLUMNS),
        member(row, "step_number", 8),
        member(row, "conversation_id", 24),
    ]
}

/// One ruling on a line of its own; the columns are as wide as they usually are.
fn line(row: Value<'_>) -> String {
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
            let news = if is_first {
                since(&answer, None)?.0
            } else {
                catch_up(arguments, client, path, &answer, last.as_deref())?
            };
            is_first = false;
            for (id, row) in news.into_iter().rev() {
                let document = interlock_core::json::parse(&row, &interlock_core::json::Limits::CONFIG);
                let shown = match (&document, arguments.server.json) {
                    (Ok(document), false) => line(document.root()),
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

/// The rows of a page that are newer than the last one told, newest first, and whether that one was met.
fn since(answer: &Answer, last: Option<&str>) -> Result<(Vec<Row>, bool), Fault> {
    let document = answer.document()?;
    let mut rows = Vec::new();
    for row in activities(&document)? {
        let mut id = scalar(row, "decision_id").unwrap_or_default();
        // What is counted names a decision that has a row of its own.
        if row.get("repeats").is_some() {
            id.push_str(&scalar(row, "timestamp").unwrap_or_default());
        }
        if last == Some(id.as_str()) {
            return Ok((rows, true));
        }
        rows.push((id, row.source().to_owned()));
    }
    Ok((rows, false))
}

/// What is newer than the last ruling told, over as many pages as it takes, within limits.
fn catch_up(
    arguments: &ActivityArguments,
    client: &Client,
    path: &str,
    first: &Answer,
    last: Option<&str>,
) -> Result<Vec<Row>, Fault> {
    use std::io::Write;
    let (mut rows, mut met) = since(first, last)?;
    let mut cursor = scalar(first.document()?.root(), "next_cursor");
    for _ in 1..PAGES_MAX {
        let Some(at) = cursor.take().filter(|_| !met) else { break };
        let answer = client.get(&page(arguments, path, 1000, Some(at)))?;
        let (more, found) = since(&answer, last)?;
        rows.extend(more);
        met = found;
        cursor = scalar(answer.document()?.root(), "next_cursor");
    }
    if !met && cursor.is_some() {
        let _ = writeln!(anstream::stderr(), "{FAINT}note:{RESET} more was ruled than can be shown; some is left out");
    }
    Ok(rows)
}
