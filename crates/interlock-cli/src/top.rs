//! `interlock top`: the server on one screen, again and again: what it rules, how fast, what waits.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use interlock_core::action::Decision;
use interlock_core::json::quote;
use interlock_core::visible;
use interlock_wire::{ActivityPage, RawJson, TicketPage};

use crate::approvals::{self, Outage};
use crate::client::{Answer, Client, ServerArguments, with_query};
use crate::style::{BAD, FAINT, RESET};
use crate::table::Table;
use crate::{Fault, Outcome, activity, print_open};

/// How many approvals and rulings fit on the screen.
const APPROVALS_SHOWN: usize = 4;
const RULINGS_SHOWN: usize = 6;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock top
  interlock top --once --json

Rates are those between two looks, so --once has none.")]
pub(crate) struct TopArguments {
    /// Print it once
    #[arg(long)]
    once: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &TopArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let mut outage = Outage::default();
    let mut before: Option<Metrics> = None;
    // A screen can only be drawn over where there is one; elsewhere each look follows the last.
    let redraws = !arguments.once
        && !arguments.server.json
        && std::io::stdout().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    loop {
        if let Some(answer) = outage.survive(client.get("/metrics"))? {
            let metrics = Metrics::read(&answer);
            let look = Look { waiting: Reply::waiting(&client)?, rulings: Reply::rulings(&client)?, metrics: &metrics };
            let text = if arguments.server.json { look.json() } else { look.text(&client, before.as_ref()) };
            if redraws {
                // Not through the colour filter: with NO_COLOR the screen is still one screen.
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(b"\x1b[H\x1b[J").and_then(|()| out.flush());
            }
            let separator = if redraws || before.is_none() || arguments.server.json { "" } else { "\n" };
            if !print_open(format!("{separator}{text}").as_bytes())? {
                return Ok(Outcome::Clean);
            }
            before = Some(metrics);
        }
        if arguments.once {
            return Ok(Outcome::Clean);
        }
        thread::sleep(Duration::from_secs(arguments.interval));
    }
}

/// Counters of one moment, by name, labels included.
struct Metrics {
    values: BTreeMap<String, f64>,
    at: Instant,
}

impl Metrics {
    fn read(answer: &Answer) -> Metrics {
        let rows = answer.body.lines().filter(|line| !line.starts_with('#'));
        let values = rows.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok().filter(|value: &f64| value.is_finite())?))
        });
        Metrics { values: values.collect(), at: Instant::now() }
    }

    fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(0.0)
    }

    /// How much more there is of it each second; a server that began anew counts from zero.
    fn rate(&self, before: Option<&Metrics>, name: &str) -> String {
        let Some(before) = before else { return "-".to_owned() };
        let seconds = self.at.duration_since(before.at).as_secs_f64().max(0.001);
        format!("{:.1}", (self.get(name) - before.get(name)).max(0.0) / seconds)
    }
}

/// An answer, or why there is none: a role or an older server may not give it, and the rest is still worth a look.
enum Reply {
    Answer(Answer),
    Refused(String),
}

impl Reply {
    fn waiting(client: &Client) -> Result<Reply, Fault> {
        let path =
            with_query("/approvals", &[("status", Some("pending".to_owned())), ("limit", Some("1000".to_owned()))]);
        Reply::of(client.get(&path))
    }

    fn rulings(client: &Client) -> Result<Reply, Fault> {
        Reply::of(client.get(&with_query("/activity", &[("limit", Some(RULINGS_SHOWN.to_string()))])))
    }

    fn of(asked: Result<Answer, Fault>) -> Result<Reply, Fault> {
        match asked {
            Ok(answer) => Ok(Reply::Answer(answer)),
            Err(fault) if fault.is_refused() || fault.is_transient => Ok(Reply::Refused(fault.message)),
            Err(fault) => Err(fault),
        }
    }
}

struct Look<'a> {
    metrics: &'a Metrics,
    waiting: Reply,
    rulings: Reply,
}

impl Look<'_> {
    fn text(&self, client: &Client, before: Option<&Metrics>) -> String {
        let metrics = self.metrics;
        let count = |name: &str| format!("{:.0}", metrics.get(name));
        let is_ready = metrics.get("interlock_ledger_ready") > 0.0;
        let ready = if is_ready { "ready".to_owned() } else { format!("{BAD}NOT READY{RESET}") };
        let mut out = format!("Interlock at {}: {ready}\n\n", client.url());
        let mut table = Table::new(&["DECISIONS", "TOTAL", "PER SECOND"]);
        for decision in Decision::ALL {
            let name = format!("interlock_decisions_total{{decision=\"{decision}\"}}");
            table.row(vec![decision.to_string(), count(&name), metrics.rate(before, &name)]);
        }
        out.push_str(&table.render());
        let (batches, commands) =
            (metrics.get("interlock_ledger_batches_total"), metrics.get("interlock_ledger_commands_total"));
        let each = |sum: f64| if batches > 0.0 { format!("{:.1}", sum / batches) } else { "-".to_owned() };
        out.push_str(&format!(
            "\nledger   {} entries, queue {}, faults {}, refused {}\n\
             batches  {} ({} per second), {} commands and {} ms each\n",
            count("interlock_ledger_entries"),
            count("interlock_ledger_waiting"),
            count("interlock_ledger_faults_total"),
            count("interlock_ledger_refused_total"),
            count("interlock_ledger_batches_total"),
            metrics.rate(before, "interlock_ledger_batches_total"),
            each(commands),
            each(metrics.get("interlock_ledger_batch_microseconds_total") / 1000.0),
        ));
        out.push_str(&self.waiting_text());
        out.push_str(&self.rulings_text());
        out
    }

    fn waiting_text(&self) -> String {
        let unavailable = |why: &str| format!("\nwaiting approvals: {FAINT}{}{RESET}\n", visible(why));
        let answer = match &self.waiting {
            Reply::Answer(answer) => answer,
            Reply::Refused(why) => return unavailable(why),
        };
        let page: TicketPage = match answer.read() {
            Ok(page) => page,
            Err(fault) => return unavailable(&fault.message),
        };
        let more = if page.next_cursor.is_some() { "+" } else { "" };
        let mut out = format!("\nwaiting approvals: {}{more}\n", page.approvals.len());
        if !page.approvals.is_empty() {
            // The oldest wait longest and expire first.
            let oldest = page.approvals.iter().rev().take(APPROVALS_SHOWN);
            out.push_str(&approvals::table(oldest, answer.now).render());
        }
        out
    }

    fn rulings_text(&self) -> String {
        let unavailable = |why: &str| format!("\nlast rulings: {FAINT}{}{RESET}\n", visible(why));
        let answer = match &self.rulings {
            Reply::Answer(answer) => answer,
            Reply::Refused(why) => return unavailable(why),
        };
        let page: ActivityPage = match answer.read() {
            Ok(page) => page,
            Err(fault) => return unavailable(&fault.message),
        };
        if page.activities.is_empty() {
            return "\nlast rulings: none\n".to_owned();
        }
        format!("\nlast rulings\n{}", activity::table(page.activities.iter().take(RULINGS_SHOWN)).render())
    }

    /// One line: the counters by name, and the two lists as the server gave them.
    fn json(&self) -> String {
        let values: Vec<String> =
            self.metrics.values.iter().map(|(name, value)| format!("{}:{value}", quote(name))).collect();
        let list = |asked: &Reply| match asked {
            Reply::Answer(answer) => {
                answer.read::<RawJson>().map_or_else(|_| "null".to_owned(), |whole| whole.text().to_owned())
            }
            Reply::Refused(_) => "null".to_owned(),
        };
        crate::client::inert_json(&format!(
            "{{\"metrics\":{{{}}},\"approvals\":{},\"activity\":{}}}",
            values.join(","),
            list(&self.waiting),
            list(&self.rulings)
        ))
    }
}
