//! One ruling as a row: what a reader wants to see at once, and the entry it comes from, byte for byte.
//!
//! A ruling's entry holds no token, no key and no text of an action, only digests of them, so nothing has to be left
//! out. Tokens' digests stand in the entries of registrations, which are not exported.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use interlock_core::action::{Millis, Profile, UsdMicros};
use interlock_core::instant::to_rfc3339;
use interlock_core::json::quote;
use interlock_core::ledger::{Entry, Executed, Ruled};
use interlock_core::{Digest, inert_json};

use super::ExportFault;

/// A ruling with what belongs to it.
pub(super) struct Row<'a> {
    pub(super) index: u64,
    pub(super) leaf: Digest,
    pub(super) entry: &'a Entry,
    pub(super) ruled: &'a Ruled,
    /// Whom the agent's id stands for.
    pub(super) who: Option<&'a Who>,
    /// What was reported of its execution: when, and what.
    pub(super) execution: Option<(Millis, Executed)>,
    /// The entry as it is stored.
    pub(super) bytes: &'a [u8],
}

/// An agent's names.
pub(super) struct Who {
    name: String,
    principal_id: String,
}

impl Who {
    pub(super) fn of(profile: &Profile) -> Who {
        Who { name: profile.name.clone(), principal_id: profile.principal_id.clone() }
    }
}

/// What stands in one column.
pub(super) enum Cell {
    /// Words, of whoever.
    Text(String),
    /// A number, or true or false.
    Plain(String),
    /// Nothing.
    Empty,
}

fn text(value: Option<impl ToString>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Text(value.to_string()))
}

fn plain(value: Option<impl ToString>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Plain(value.to_string()))
}

type Column = (&'static str, fn(&Row<'_>) -> Cell);

/// The columns, in the order of both files.
#[rustfmt::skip]
pub(super) const COLUMNS: [Column; 34] = [
    ("index",           |row| plain(Some(row.index))),
    ("at",              |row| text(Some(to_rfc3339(row.entry.at)))),
    ("agent_id",        |row| text(row.entry.agent.as_ref())),
    ("agent_name",      |row| text(row.who.map(|who| &who.name))),
    ("principal_id",    |row| text(row.who.map(|who| &who.principal_id))),
    ("decision_id",     |row| text(Some(&row.ruled.decision_id))),
    ("decision",        |row| text(Some(row.ruled.ruling.decision))),
    ("code",            |row| text(row.ruled.ruling.error.as_ref().map(|error| error.code))),
    ("message",         |row| text(row.ruled.ruling.error.as_ref().map(|error| &error.message))),
    ("door",            |row| text(row.ruled.facts.as_ref().map(|facts| facts.door))),
    ("action",          |row| text(row.ruled.facts.as_ref().map(|facts| facts.action.shown()))),
    ("conversation_id", |row| text(row.ruled.facts.as_ref().map(|facts| &facts.conversation))),
    ("step_number",     |row| plain(row.ruled.facts.as_ref().map(|facts| facts.step.get()))),
    ("dry_run",         |row| plain(row.ruled.facts.as_ref().map(|facts| facts.dry_run))),
    ("engine",          |row| text(row.ruled.ruling.verification.as_ref().map(|found| found.engine))),
    ("status",          |row| text(row.ruled.ruling.verification.as_ref().map(|found| found.status))),
    ("risk_level",      |row| text(row.ruled.ruling.verification.as_ref().map(|found| found.risk_level))),
    ("checks_passed",   |row| text(row.ruled.ruling.verification.as_ref().map(|found| found.checks_passed.join(" ")))),
    ("checks_failed",   |row| text(row.ruled.ruling.verification.as_ref().map(|found| found.checks_failed.join(" ")))),
    ("rules_matched",   |row| text(row.ruled.evidence.as_ref().map(|found| found.matched.join(" ")))),
    ("trust_level",     |row| plain(row.ruled.figures.map(|figures| u8::from(figures.trust)))),
    ("cost_usd",        |row| plain(Some(row.cost()))),
    ("tokens",          |row| plain(Some(if row.runs() { row.ruled.ruling.charge.tokens } else { 0 }))),
    ("action_hash",     |row| text(row.ruled.facts.as_ref().map(|facts| facts.fingerprint))),
    ("certificate",     |row| text(row.ruled.evidence.as_ref().and_then(|found| found.certificate))),
    ("bundle",          |row| text(Some(row.ruled.bundle))),
    ("leaf_hash",       |row| text(Some(row.leaf))),
    ("enforced",        |row| plain(Some(!row.ruled.observed))),
    ("approval_id",     |row| text(row.ruled.ticket.as_ref().map(|ticket| &ticket.approval_id))),
    ("executed_at",     |row| text(row.execution.as_ref().map(|(at, _)| to_rfc3339(*at)))),
    ("success",         |row| plain(row.execution.as_ref().map(|(_, executed)| executed.success))),
    ("result_hash",     |row| text(row.execution.as_ref().and_then(|(_, executed)| executed.result_hash.as_ref()))),
    ("used_usd",        |row| plain(row.execution.as_ref().map(|(_, executed)| executed.usage.cost_usd))),
    ("used_tokens",     |row| plain(row.execution.as_ref().map(|(_, executed)| executed.usage.tokens))),
];

impl Row<'_> {
    /// Whether anything was charged: a dry run has a price and is not charged it.
    fn runs(&self) -> bool {
        let dry_run = self.ruled.facts.as_ref().is_some_and(|facts| facts.dry_run);
        self.ruled.ruling.decision.lets_run() && !dry_run
    }

    fn cost(&self) -> UsdMicros {
        if self.runs() { self.ruled.ruling.charge.cost_usd } else { UsdMicros(0) }
    }

    /// The row as one line of JSON: the columns, and last of all the entry as it was hashed, so that the line itself
    /// shows what `leaf_hash` is the hash of. Where that has characters that do not show, they are escaped there, and
    /// the bytes that were hashed follow in base64.
    pub(super) fn to_json(&self) -> Result<String, ExportFault> {
        let raw = one_line(self.index, self.bytes)?;
        let mut line = String::with_capacity(raw.len().saturating_mul(2));
        for (name, column) in COLUMNS {
            line.push(if line.is_empty() { '{' } else { ',' });
            let value = match column(self) {
                Cell::Text(text) => quote(&text),
                Cell::Plain(value) => value,
                Cell::Empty => "null".to_owned(),
            };
            line.push_str(&format!("\"{name}\":{value}"));
        }
        let inert = inert_json(raw);
        line.push_str(&format!(",\"entry\":{inert}"));
        if inert != raw {
            line.push_str(&format!(",\"entry_base64\":\"{}\"", BASE64.encode(self.bytes)));
        }
        line.push_str("}\n");
        Ok(line)
    }
}

/// An entry that counts refusals, as one line of JSON: it says itself what it tells of.
pub(super) fn repeats_to_json(index: u64, leaf: Digest, bytes: &[u8]) -> Result<String, ExportFault> {
    let raw = one_line(index, bytes)?;
    Ok(format!("{{\"index\":{index},\"leaf_hash\":\"{leaf}\",\"entry\":{raw}}}\n"))
}

fn one_line(index: u64, bytes: &[u8]) -> Result<&str, ExportFault> {
    let broken = || ExportFault::Damaged(format!("entry {index} is not one line of text"));
    std::str::from_utf8(bytes).ok().filter(|raw| !raw.contains(['\n', '\r'])).ok_or_else(broken)
}
