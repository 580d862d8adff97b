//! The texts of an action that whoever carries it out may run beside its `query`.
//!
//! An agent chooses where it puts a text. `parameters.sql` is a statement as much as `query` is one, so every text under
//! a usual name is verified like it and the strictest finding counts; and a tool that only reads databases is given no
//! statement that writes.

use interlock_core::action::{ActionText, Engine, Risk, Status};
use interlock_core::field_names::{Meaning, may_hold};
use interlock_core::json::{Content, Value};
use interlock_verifiers::sql::Sql;
use interlock_verifiers::{Fuel, Ground, Outcome, Verifier};

/// Tools that read databases and do nothing else.
const READS_DATABASES: &[&str] = &["database_read", "read_database", "query_data"];

/// Words that begin a statement that only reads, in some dialect.
const READS: &[&str] = &[
    "select", "with", "values", "table", "show", "describe", "desc", "explain", "from", "pragma", "use", "help", "list",
];
/// Words that begin a statement that may do more.
const WRITES: &[&str] = &[
    "insert",
    "update",
    "delete",
    "merge",
    "replace",
    "upsert",
    "create",
    "alter",
    "drop",
    "truncate",
    "grant",
    "revoke",
    "deny",
    "begin",
    "start",
    "commit",
    "rollback",
    "savepoint",
    "set",
    "reset",
    "call",
    "exec",
    "execute",
    "do",
    "declare",
    "copy",
    "load",
    "unload",
    "put",
    "vacuum",
    "analyze",
    "attach",
    "detach",
    "lock",
    "unlock",
    "kill",
    "rename",
    "comment",
    "reindex",
    "refresh",
    "import",
    "export",
    "optimize",
    "handler",
    "install",
    "shutdown",
    "cluster",
    "listen",
    "notify",
    "prepare",
    "deallocate",
    "discard",
    "security",
    "reassign",
    "checkpoint",
    "backup",
    "restore",
    "dbcc",
    "bulk",
    "waitfor",
    "if",
    "while",
    "print",
    "go",
    "purge",
    "flush",
    "msck",
    "remove",
    "undrop",
    "repair",
    "change",
    "delimiter",
];

/// The texts beside `query` and `code` that an engine may be given.
pub(crate) fn beside<'a>(engine: Engine, action: &ActionText<'a>) -> Vec<Value<'a>> {
    let meaning = match engine {
        Engine::Sql => Meaning::Statement,
        Engine::Math => Meaning::Calculation,
        Engine::Shell => Meaning::ShellText,
        Engine::Logic | Engine::Code | Engine::Fact | Engine::ToolControl => return Vec::new(),
    };
    let mut found = Vec::new();
    if let Some(parameters) = action.parameters {
        collect(parameters, false, meaning, &mut found);
    }
    if engine == Engine::Sql {
        found.retain(|text| text.as_str().is_some_and(|text| may_be_statement(text.text())));
    }
    found
}

/// What is wrong with the texts of a tool that reads databases: a statement among them does more than read, or may.
pub(crate) fn more_than_reading(
    action: &ActionText<'_>,
    identity: &str,
    ground: &Ground,
    fuel: &mut Fuel,
) -> Option<(Status, Risk)> {
    if !READS_DATABASES.contains(&identity) {
        return None;
    }
    let mut texts: Vec<Value<'_>> = [action.query, action.code].into_iter().flatten().collect();
    if let Some(parameters) = action.parameters {
        collect(parameters, false, Meaning::Statement, &mut texts);
    }
    texts.into_iter().filter_map(|text| judge(action, text, ground, fuel)).max()
}

fn judge(action: &ActionText<'_>, value: Value<'_>, ground: &Ground, fuel: &mut Fuel) -> Option<(Status, Risk)> {
    let text = value.as_str()?.text();
    if !may_be_statement(text) {
        return None;
    }
    let outcome = Sql.verify_within(&alone(action, value), ground, fuel);
    let risk = outcome.risk.unwrap_or(Risk::High);
    match outcome.status {
        Status::Verified if risk == Risk::Low => None,
        Status::Verified => Some((Status::Failed, risk)),
        // What destroys in spite of what is wrong with it; else it may be a sentence.
        Status::Failed | Status::Corrected | Status::Uncertain => {
            let writes = text.split(';').any(|part| begins_with(part, WRITES));
            let is_certain = risk == Risk::Critical || outcome.hostile && writes;
            let status = if is_certain { Status::Failed } else { Status::Uncertain };
            (is_certain || writes).then_some((status, risk))
        }
    }
}

/// The same action with this text as its only one.
pub(crate) fn alone<'a>(action: &ActionText<'a>, text: Value<'a>) -> ActionText<'a> {
    ActionText {
        kind: action.kind,
        query: Some(text),
        code: None,
        target: action.target,
        parameters: action.parameters,
    }
}

/// The stricter of two findings on texts of one action: nobody knows which of them is run. `base` is the risk where a
/// verifier says nothing.
pub(crate) fn stricter(one: Outcome, other: Outcome, base: Risk) -> Outcome {
    let risk = match (one.risk, other.risk) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(base).max(other.unwrap_or(base))),
    };
    let hostile = one.hostile || other.hostile;
    let (mut outcome, milder) = if other.status > one.status { (other, one) } else { (one, other) };
    outcome.checks.extend(milder.checks.into_iter().filter(|check| !check.passed));
    (outcome.risk, outcome.hostile) = (risk, hostile);
    outcome
}

/// Depth is bounded by the parser.
fn collect<'a>(value: Value<'a>, is_named: bool, meaning: Meaning, found: &mut Vec<Value<'a>>) {
    match value.content() {
        Some(Content::Object(members)) => {
            for (name, member) in members {
                collect(member, is_named || may_hold(name.text(), meaning), meaning, found);
            }
        }
        Some(Content::Array(items)) => items.for_each(|item| collect(item, is_named, meaning, found)),
        Some(Content::String(_)) if is_named => found.push(value),
        Some(Content::String(_) | Content::Number(_) | Content::Boolean(_) | Content::Null) | None => {}
    }
}

/// Whether a database would take a text for a statement. What begins with another word it refuses.
fn may_be_statement(text: &str) -> bool {
    let text = text.trim_start();
    let is_wrapped = ["(", ";", "/*", "--", "#", "{", "@", "\\"].iter().any(|start| text.starts_with(start));
    is_wrapped || text.contains(';') || begins_with(text, READS) || begins_with(text, WRITES)
}

fn begins_with(text: &str, words: &[&str]) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let word = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or("").to_lowercase();
    words.contains(&word.as_str())
}
