//! Findings to a verdict: whose word counts, which dialects, which checks.

use interlock_core::json::Value;

use super::certificate::certificate;
use super::databases::Database;
use super::dialect::{Dialect, Named};
use super::lex::NotRead;
use super::limits::{BYTE_WORK, TEXT_BYTES_MAX};
use super::reading::{Reading, read};
use super::rules::{Rules, Schema};
use super::schema;
use crate::outcome::{Check, Outcome, Risk, Status};

/// What is asked.
pub(super) struct Question<'q> {
    pub(super) text: &'q str,
    /// The operator's word.
    pub(super) database: &'q Database,
    /// The action's word.
    pub(super) dialect: Option<Value<'q>>,
    pub(super) schema: Option<Value<'q>>,
    /// The action is the operator's own.
    pub(super) trusted: bool,
}

/// How much work it is to judge a statement, in units of fuel: as many readings as there may be dialects, each of which
/// looks names up among columns; and once more for a schema that the action has.
pub(super) fn work(question: &Question<'_>) -> u64 {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let stated = question.schema.map_or(0, |schema| count(schema.source().len()));
    let columns = question.database.schema.as_ref().map_or(0, |schema| count(schema.columns_len()));
    let readings = if question.database.dialect.is_some() { 1 } else { count(Dialect::ALL.len()) };
    let reading = count(question.text.len()).saturating_mul(BYTE_WORK.saturating_add(columns).saturating_add(stated));
    let again = if stated > 0 { 2 } else { 1 };
    reading.saturating_mul(readings).saturating_mul(again).saturating_add(stated.saturating_mul(BYTE_WORK))
}

/// Judges a statement.
pub(super) fn judge(question: &Question<'_>) -> Outcome {
    let Question { text, database, dialect, schema, trusted } = question;
    if text.len() > TEXT_BYTES_MAX {
        return uncertain(vec![Check::failed("parsed", format!("the text is longer than {TEXT_BYTES_MAX} bytes"))]);
    }
    let stated = match stated_dialect(*dialect) {
        Ok(stated) => stated,
        Err(message) => return failed_at_once(text, "parsed", message),
    };
    let known = if *trusted { stated.or(database.dialect) } else { database.dialect };
    if let (Some(known), Some(stated)) = (known, stated)
        && known != stated
    {
        return failed_at_once(text, "parsed", "the stated dialect is not the one of this database");
    }
    let stated_schema =
        match schema.filter(|schema| !is_null(*schema)).map(|value| schema::read_value(value, known.or(stated))) {
            None => None,
            Some(Ok(schema)) => Some(schema),
            Some(Err(_)) => return failed_at_once(text, "schema_valid", "the stated schema could not be read"),
        };
    let rules = database.rules();
    match stated_schema {
        None => judge_by(text, known, stated, &rules),
        Some(schema) if *trusted => judge_by(text, known, stated, &Rules { schema: Some(&schema), ..rules }),
        Some(schema) => tightened(text, known, stated, &rules, &schema),
    }
}

fn is_null(value: Value<'_>) -> bool {
    value.kind() == Some(interlock_core::json::Kind::Null)
}

/// The dialect that an action states; none for `generic`.
fn stated_dialect(value: Option<Value<'_>>) -> Result<Option<Dialect>, &'static str> {
    let Some(value) = value.filter(|value| !is_null(*value)) else { return Ok(None) };
    match value.as_str().and_then(|name| Dialect::named(name.text())) {
        Some(Named::One(dialect)) => Ok(Some(dialect)),
        Some(Named::Generic) => Ok(None),
        None => Err("the stated dialect is not known"),
    }
}

/// Holds a statement against a schema that only an agent claims: it may fail for it, and nothing else changes.
fn tightened(
    text: &str,
    known: Option<Dialect>,
    stated: Option<Dialect>,
    rules: &Rules<'_>,
    schema: &Schema,
) -> Outcome {
    let mut outcome = judge_by(text, known, stated, rules);
    if outcome.status != Status::Verified {
        return outcome;
    }
    let claimed = judge_by(text, known, stated, &Rules { schema: Some(schema), ..*rules });
    if claimed.status == Status::Failed {
        return claimed;
    }
    let has_schema = outcome.checks.iter().any(|check| check.name == "schema_valid");
    if let Some(check) = claimed.checks.into_iter().find(|check| check.name == "schema_valid")
        && !has_schema
    {
        let place = outcome.checks.len().saturating_sub(1);
        outcome.checks.insert(place, check);
    }
    outcome
}

fn judge_by(text: &str, known: Option<Dialect>, stated: Option<Dialect>, rules: &Rules<'_>) -> Outcome {
    match known {
        Some(dialect) => {
            let mut reading = read(text, dialect, rules);
            // What depends on a setting of the server is not proven.
            if reading.has_doubts() {
                reading.risk = reading.risk.max(Some(Risk::High));
            }
            outcome(text, &[dialect], &reading, rules)
        }
        None => judge_in_all(text, stated, rules),
    }
}

/// Nobody who counts has said which dialect it is: the worst over all counts.
fn judge_in_all(text: &str, stated: Option<Dialect>, rules: &Rules<'_>) -> Outcome {
    let readings = Dialect::ALL.map(|dialect| (dialect, read(text, dialect, rules)));
    if let Some((dialect, reading)) =
        readings.iter().find(|(dialect, reading)| Some(*dialect) == stated && !reading.is_parsed())
    {
        return outcome(text, &[*dialect], reading, rules);
    }
    // An attack in one dialect is an attack.
    if let Some((dialect, reading)) = readings.iter().find(|(_, reading)| fails_anywhere(reading)) {
        return outcome(text, &[*dialect], reading, rules);
    }
    let parsed: Vec<_> = readings.iter().filter(|(_, reading)| reading.is_parsed()).collect();
    if let Some((dialect, reading)) = parsed.iter().find(|(_, reading)| reading.not_understood.is_some()) {
        return outcome(text, &[*dialect], reading, rules);
    }
    let passing: Vec<_> = parsed.iter().filter(|(_, reading)| passes(reading)).collect();
    let Some((_, first)) = passing.first().copied().or(parsed.first()).or(readings.first().as_ref()) else {
        return uncertain(Vec::new());
    };
    if passing.is_empty() {
        let dialects: Vec<_> = parsed.iter().map(|(dialect, _)| *dialect).collect();
        return outcome(text, &dialects, first, rules);
    }
    let mut joined = first.copy();
    for (_, reading) in passing.iter().skip(1) {
        joined.join(reading.copy());
    }
    let dialects: Vec<_> = passing.iter().map(|(dialect, _)| *dialect).collect();
    let proven = dialects.len() == Dialect::ALL.len() && !passing.iter().any(|(_, reading)| reading.has_doubts());
    if !proven {
        joined.risk = joined.risk.max(Some(Risk::High));
    }
    outcome(text, &dialects, &joined, rules)
}

/// Whether a reading shows what is wrong whatever other readings show.
fn fails_anywhere(reading: &Reading) -> bool {
    reading.stacked.is_some()
        || reading.comment.is_some()
        || reading.tautology.is_some()
        || reading.sensitive.is_some()
        || reading.function.is_some_and(|function| function.harmful)
}

fn passes(reading: &Reading) -> bool {
    !fails_anywhere(reading) && reading.function.is_none() && reading.unknown_name.is_none()
}

/// The outcome of a reading.
fn outcome(text: &str, dialects: &[Dialect], reading: &Reading, rules: &Rules<'_>) -> Outcome {
    let checks = checks(reading, rules);
    let failed: Vec<&'static str> = checks.iter().filter(|check| !check.passed).map(|check| check.name).collect();
    let abstains = match reading.not_read {
        Some(NotRead::NotUnderstood { .. } | NotRead::Limit { .. }) => true,
        Some(NotRead::NotSql { .. }) => false,
        None => reading.not_understood.is_some(),
    };
    let broken = failed.iter().any(|name| !matches!(*name, "parsed" | "no_destructive_operations"));
    let hostile = reading.stacked.is_some_and(|stacked| stacked.hostile)
        || reading.comment.is_some_and(|comment| comment.trick)
        || reading.tautology.is_some()
        || reading.function.is_some_and(|function| function.harmful);
    if abstains && !broken {
        return uncertain(checks);
    }
    let status = if broken || !reading.is_parsed() { Status::Failed } else { Status::Verified };
    let risk = match status {
        Status::Failed => reading.risk.max(Some(Risk::High)),
        Status::Verified | Status::Corrected | Status::Uncertain => reading.risk,
    };
    let failed = if status == Status::Failed { failed.as_slice() } else { &[] };
    let certificate = certificate(text, dialects, reading, failed);
    Outcome { status, risk, checks, corrected: None, certificate, hostile }
}

/// What is not understood may do anything.
fn uncertain(checks: Vec<Check>) -> Outcome {
    Outcome { risk: Some(Risk::Critical), ..Outcome::uncertain(checks) }
}

/// A question that makes no sense.
fn failed_at_once(text: &str, name: &'static str, message: &'static str) -> Outcome {
    let reading = Reading { not_read: Some(NotRead::NotSql { at: 0 }), ..Reading::default() };
    Outcome {
        status: Status::Failed,
        risk: Some(Risk::High),
        checks: vec![Check::failed(name, message)],
        corrected: None,
        certificate: certificate(text, &[], &reading, &[name]),
        hostile: false,
    }
}

/// The checks, in their order. A text that is not read has only those that need no tree.
fn checks(reading: &Reading, rules: &Rules<'_>) -> Vec<Check> {
    let mut checks = Vec::with_capacity(8);
    checks.push(match (reading.not_read, reading.not_understood) {
        (None, None) => Check::passed("parsed", "the statement is understood"),
        (None, Some(what)) => {
            Check::failed("parsed", format!("the statement has something that is not understood: {what}"))
        }
        (Some(NotRead::NotSql { at }), _) => {
            Check::failed("parsed", format!("the text is no statement of the dialect at byte {at}"))
        }
        (Some(NotRead::NotUnderstood { at, what }), _) => {
            Check::failed("parsed", format!("the text has something at byte {at} that is not understood: {what}"))
        }
        (Some(NotRead::Limit { what }), _) => Check::failed("parsed", format!("the text is beyond a limit: {what}")),
    });
    let lexed = !matches!(reading.not_read, Some(NotRead::NotUnderstood { .. } | NotRead::Limit { .. }));
    if reading.is_parsed() || (lexed && (reading.stacked.is_some() || reading.comment.is_some())) {
        let one = "there is one statement";
        checks.push(found(
            reading.stacked.map(|stacked| stacked.at),
            "single_statement",
            one,
            "another statement follows at byte",
        ));
        let none = "there is no comment";
        checks.push(found(
            reading.comment.map(|comment| comment.at),
            "no_comments",
            none,
            "there is a comment at byte",
        ));
    }
    if !reading.is_parsed() {
        return checks;
    }
    checks.push(found(
        reading.tautology,
        "no_tautology",
        "every part of a condition depends on data",
        "a part of a condition is always true or always false, at byte",
    ));
    checks.push(match reading.function {
        None => Check::passed("functions_allowed", "every function is known to be harmless"),
        Some(function) if function.harmful => {
            Check::failed("functions_allowed", format!("the function at byte {} does harm", function.at))
        }
        Some(function) => Check::failed(
            "functions_allowed",
            format!("the function at byte {} is not known to be harmless", function.at),
        ),
    });
    let named = if reading.unknown_columns {
        "no sensitive column is named; what stands behind `*` or a whole row is not known"
    } else {
        "no sensitive column is named"
    };
    checks.push(found(reading.sensitive, "no_sensitive_columns", named, "a sensitive column is read at byte"));
    if rules.schema.is_some() {
        let known = "every table and column is in the schema";
        checks.push(found(reading.unknown_name, "schema_valid", known, "a name is not in the schema, at byte"));
    }
    checks.push(if reading.risk < Some(Risk::Critical) {
        Check::passed("no_destructive_operations", "nothing is destroyed or administered")
    } else {
        Check::failed("no_destructive_operations", "the statement destroys or administers")
    });
    checks
}

fn found(at: Option<usize>, name: &'static str, passed: &'static str, failed: &'static str) -> Check {
    match at {
        None => Check::passed(name, passed),
        Some(at) => Check::failed(name, format!("{failed} {at}")),
    }
}
