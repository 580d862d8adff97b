//! Whether conditions on the context can hold together, in some world.
//!
//! Every guard compares one field with constants, so a value to satisfy a list of demands, if there is one, is among
//! few candidates: the constants, a number in every gap between them, a text or an array with all the parts that are
//! asked for, something new, and nothing. Fields are taken one by one: that a field inside another one depends on it is not
//! used, which can only say "can hold" too often.

use core::cmp::Ordering;
use std::collections::BTreeMap;

use interlock_core::Digest;
use interlock_core::json::{Json, Limits, parse};
use interlock_core::workflow::{Edge, Fact, Guard, GuardId, OBSERVED, Operator, Seen, SeenCommand, SeenTool, Workflow};

/// How many combinations of refused rows are looked at in one workflow; after that a row counts as one that can be taken.
const STEPS_MAX: u32 = 50_000;
/// The same for one row, so that one does not use up what is there for all.
const ROW_STEPS_MAX: u32 = 1_000;

/// What is left of the steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fuel(u32);

impl Fuel {
    pub(crate) const FULL: Fuel = Fuel(STEPS_MAX);
}

/// The largest exponent of a constant that is written out to find a number beside it.
const EXPONENT_MAX: u64 = 1_000;

/// A guard that is to hold, or to fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand<'a> {
    guard: &'a Guard,
    holds: bool,
}

/// Whether all these guards can hold at once.
pub(crate) fn can_hold(workflow: &Workflow, guards: &[GuardId]) -> bool {
    satisfiable(&demands(workflow, guards), workflow.facts())
}

/// Whether the row at `place` can ever be taken: its guards hold, and each row before it has one that does not.
pub(crate) fn row_can_be_taken(workflow: &Workflow, rows: &[Edge], place: usize, fuel: &mut Fuel) -> bool {
    let Some(row) = rows.get(place) else { return false };
    if place == 0 && row.guards.is_empty() {
        return true;
    }
    let mut demands = demands(workflow, &row.guards);
    let given = fuel.0.min(ROW_STEPS_MAX);
    let mut steps = given;
    let earlier = rows.get(..place).unwrap_or_default();
    let taken = satisfiable(&demands, workflow.facts()) && refuse_each(workflow, earlier, &mut demands, &mut steps);
    fuel.0 = fuel.0.saturating_sub(given.saturating_sub(steps));
    taken
}

fn demands<'a>(workflow: &'a Workflow, guards: &[GuardId]) -> Vec<Demand<'a>> {
    guards.iter().filter_map(|id| workflow.guard(*id)).map(|guard| Demand { guard, holds: true }).collect()
}

/// Whether one guard of each row can fail while `demands` are met. Depth is the number of rows.
fn refuse_each<'a>(workflow: &'a Workflow, rows: &[Edge], demands: &mut Vec<Demand<'a>>, steps: &mut u32) -> bool {
    let Some((row, others)) = rows.split_first() else { return true };
    for guard in row.guards.iter().filter_map(|id| workflow.guard(*id)) {
        let Some(left) = steps.checked_sub(1) else { return true };
        *steps = left;
        demands.push(Demand { guard, holds: false });
        let found = satisfiable(demands, workflow.facts()) && refuse_each(workflow, others, demands, steps);
        demands.pop();
        if found {
            return true;
        }
    }
    false
}

type Fields<'a> = BTreeMap<(bool, &'a [String]), Vec<Demand<'a>>>;

fn satisfiable(demands: &[Demand<'_>], facts: &[Fact]) -> bool {
    let mut things: BTreeMap<&[String], Fields<'_>> = BTreeMap::new();
    for demand in demands {
        let (blind, field) = (demand.guard.is_blind(), &*demand.guard.field);
        things.entry(seen_together(field)).or_default().entry((blind, field)).or_default().push(*demand);
    }
    things.iter().all(|(thing, fields)| {
        let each = |presence: Presence| {
            fields.iter().all(|((_, field), demands)| some_value_meets(demands, field, facts, presence))
        };
        // What was observed of one command or tool is there as a whole, or not at all.
        if thing.is_empty() { each(Presence::Either) } else { each(Presence::Not) || each(Presence::Whole) }
    })
}

/// Whether a thing of which several fields can be asked is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Not,
    /// Every field it always has has a value.
    Whole,
    /// Each field for itself.
    Either,
}

/// The command or tool that an observed field belongs to; nothing for a field on its own.
fn seen_together(field: &[String]) -> &[String] {
    let path: Vec<&str> = field.iter().map(String::as_str).collect();
    match path.as_slice() {
        [OBSERVED, "tools", _, ..] => field.get(..3).unwrap_or_default(),
        [OBSERVED, "tools" | "files_changed", ..] => &[],
        [OBSERVED, _, ..] => field.get(..2).unwrap_or_default(),
        _ => &[],
    }
}

/// Whether a field can be absent although what it belongs to was seen: a command can end without an exit code.
fn may_lack(field: &[String], facts: &[Fact]) -> bool {
    let rest = field.get(1..).unwrap_or_default();
    everything_seen(rest, facts, None).to_json().at(rest).is_none()
}

fn some_value_meets(demands: &[Demand<'_>], field: &[String], facts: &[Fact], presence: Presence) -> bool {
    let blind = demands.iter().any(|demand| demand.guard.is_blind());
    let shape = if blind { Shape::Absent } else { Shape::of(field, facts) };
    let meets = |value: Option<Json>| {
        let (context, observed) = world(field, value);
        demands.iter().all(|demand| demand.guard.holds(&context, &observed) == demand.holds)
    };
    if (presence != Presence::Whole || may_lack(field, facts)) && meets(None) {
        return true;
    }
    // Numbers too large to be looked between count as ones that something could satisfy.
    let found = |all: Vec<Json>| all.into_iter().any(|value| shape.has(&value) && meets(Some(value)));
    presence != Presence::Not && candidates(demands).is_none_or(found)
}

/// A context and observed facts in which a field has a value, or none.
fn world(field: &[String], value: Option<Json>) -> (BTreeMap<String, Json>, Json) {
    let Some((root, rest)) = field.split_first() else { return (BTreeMap::new(), Json::Null) };
    let nested = rest
        .iter()
        .rev()
        .fold(value, |value, key| Some(Json::Object(value.into_iter().map(|value| (key.clone(), value)).collect())));
    match nested {
        Some(observed) if root == OBSERVED => (BTreeMap::new(), observed),
        Some(value) => (BTreeMap::from([(root.clone(), value)]), Json::Null),
        None => (BTreeMap::new(), Json::Null),
    }
}

/// What a run has seen in which every command and the tool of this field ended.
fn everything_seen(field: &[String], facts: &[Fact], exit_code: Option<i64>) -> Seen {
    let command = SeenCommand { ok: true, exit_code, command_digest: Digest::of(&["any"]) };
    let tool = field.get(1).filter(|_| field.first().is_some_and(|root| root == "tools"));
    Seen {
        last_command: Some(command.clone()),
        tools: tool.map(|tool| (tool.clone(), SeenTool { ok: true, count: 1 })).into_iter().collect(),
        files_changed: vec!["any".to_owned()],
        facts: facts.iter().map(|fact| (fact.name.clone(), command.clone())).collect(),
        ..Seen::default()
    }
}

/// What can be found in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Nothing, ever.
    Absent,
    /// Anything: agents write it.
    Any,
    Object,
    Array,
    Bool,
    Number,
    Text,
}

impl Shape {
    /// What is observed has the shape that a run makes of it: a run that has seen everything is looked into.
    fn of(field: &[String], facts: &[Fact]) -> Shape {
        match field.split_first() {
            Some((root, rest)) if root == OBSERVED => {
                let seen = everything_seen(rest, facts, Some(0)).to_json();
                seen.at(rest).map_or(Shape::Absent, Shape::like)
            }
            Some(_) => Shape::Any,
            None => Shape::Absent,
        }
    }

    fn like(value: &Json) -> Shape {
        match value {
            Json::Null => Shape::Absent,
            Json::Bool(_) => Shape::Bool,
            Json::Number(_) => Shape::Number,
            Json::String(_) => Shape::Text,
            Json::Array(_) => Shape::Array,
            Json::Object(_) => Shape::Object,
        }
    }

    fn has(self, value: &Json) -> bool {
        match self {
            Shape::Absent => false,
            Shape::Any => true,
            Shape::Object => matches!(value, Json::Object(_)),
            Shape::Array => matches!(value, Json::Array(_)),
            Shape::Bool => matches!(value, Json::Bool(_)),
            Shape::Number => matches!(value, Json::Number(_)),
            Shape::Text => matches!(value, Json::String(_)),
        }
    }
}

fn items(value: Option<&Json>) -> &[Json] {
    if let Some(Json::Array(items)) = value { items } else { &[] }
}

fn candidates(demands: &[Demand<'_>]) -> Option<Vec<Json>> {
    let constants = || demands.iter().filter_map(|demand| demand.guard.value.as_ref());
    let mut all: Vec<Json> = constants().cloned().collect();
    all.extend(constants().flat_map(|value| items(Some(value))).cloned());
    all.extend(numbers(&all)?);
    let fresh = fresh_character(&all);
    let parts = || {
        let asked = demands.iter().filter(|demand| demand.guard.op == Operator::Contains && demand.holds);
        asked.filter_map(|demand| demand.guard.value.as_ref())
    };
    let fresh_object = Json::Object(BTreeMap::from([(fresh.to_string(), Json::Bool(true))]));
    let mut text = fresh.to_string();
    for part in parts().filter_map(Json::as_str) {
        text.push_str(part);
        text.push(fresh);
    }
    let mut array: Vec<Json> = parts().cloned().collect();
    array.push(Json::String(fresh.to_string()));
    all.extend([Json::String(text), Json::Array(array), fresh_object, Json::Bool(true), Json::Bool(false)]);
    Some(all)
}

/// A character that no constant has, so that a text with it equals none of them and joins no two of them.
fn fresh_character(constants: &[Json]) -> char {
    let used: String = constants.iter().map(Json::canonical).collect();
    ('\u{e000}'..='\u{f8ff}').find(|private| !used.contains(*private)).unwrap_or('\u{e000}')
}

/// A number below all, above all, and in every gap between two neighbours.
fn numbers(constants: &[Json]) -> Option<Vec<Json>> {
    let written = constants.iter().filter(|value| matches!(value, Json::Number(_)));
    let mut known: Vec<String> = written.map(plain_literal).collect::<Option<_>>()?;
    let ordered = |left: &String, right: &String| {
        let (left, right) = (number(left), number(right));
        left.zip(right).and_then(|(left, right)| left.cmp_number(&right)).unwrap_or(Ordering::Equal)
    };
    known.sort_by(ordered);
    known.dedup_by(|left, right| ordered(left, right) == Ordering::Equal);
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return Some(vec![Json::from(0_u64)]) };
    let mut found = vec![below(first), above(last)];
    found.extend(known.iter().zip(known.iter().skip(1)).map(|(left, right)| between(left, right)));
    found.iter().map(|literal| number(literal)).collect()
}

/// The digits of a number as it would be written without an exponent.
fn plain_literal(value: &Json) -> Option<String> {
    let Json::Number(found) = value else { return None };
    let literal = found.number().literal();
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let exponent: i64 = exponent.parse().ok().filter(|exponent: &i64| exponent.unsigned_abs() <= EXPONENT_MAX)?;
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let shift = usize::try_from(exponent.unsigned_abs()).ok()?;
    let zeros = "0".repeat(shift);
    let (whole, fraction) = if exponent >= 0 {
        let moved: String = fraction.chars().chain(zeros.chars()).take(shift).collect();
        (format!("{whole}{moved}"), fraction.chars().skip(shift).collect::<String>())
    } else {
        let padded = format!("{zeros}{whole}");
        let kept = padded.chars().count().saturating_sub(shift);
        (padded.chars().take(kept).collect(), padded.chars().skip(kept).chain(fraction.chars()).collect())
    };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

fn number(literal: &str) -> Option<Json> {
    parse(literal, &Limits::CONFIG).ok().map(|document| Json::of(document.root()))
}

fn is_negative(literal: &str) -> bool {
    literal.starts_with('-') && literal.bytes().any(|digit| (b'1'..=b'9').contains(&digit))
}

fn below(literal: &str) -> String {
    if is_negative(literal) { format!("-1{}", literal.trim_start_matches('-')) } else { "-1".to_owned() }
}

fn above(literal: &str) -> String {
    if is_negative(literal) { "0".to_owned() } else { format!("1{}", literal.trim_start_matches('-')) }
}

/// A number between two: the one nearer to zero, moved away from it by less than the last digit of either.
fn between(left: &str, right: &str) -> String {
    let fraction = |literal: &str| literal.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let places = fraction(left).max(fraction(right));
    let near = if is_negative(left) { right } else { left };
    let (sign, near) = (if is_negative(left) { "-" } else { "" }, near.trim_start_matches('-'));
    let (whole, known) = near.split_once('.').unwrap_or((near, ""));
    // With a negative left and a positive right, zero lies between; `-0.0…1` would not help a guard `gte 0`.
    if is_negative(left) && !is_negative(right) && right.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        return "0".to_owned();
    }
    let zeros = "0".repeat(places.saturating_sub(known.len()));
    format!("{sign}{whole}.{known}{zeros}01")
}

#[cfg(test)]
mod tests {
    use interlock_core::workflow::Source;

    use super::*;

    fn guard(op: Operator, value: &str) -> Guard {
        let value = (!value.is_empty()).then(|| number(value).expect("a value"));
        Guard { name: op.to_string(), field: vec!["x".into()].into(), op, value, source: Source::Context }
    }

    type Wanted = (Operator, &'static str, bool);

    fn together(guards: &[Wanted]) -> bool {
        let built: Vec<(Guard, bool)> = guards.iter().map(|(op, value, holds)| (guard(*op, value), *holds)).collect();
        satisfiable(&built.iter().map(|(guard, holds)| Demand { guard, holds: *holds }).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn what_cannot_hold_together_is_found_and_nothing_else() {
        use Operator::{Contains, Eq, Exists, Gt, Gte, In, Lt, Lte, Neq, NotExists};
        #[rustfmt::skip]
        let cases: &[(&[Wanted], bool)] = &[
            (&[(Eq, "1", true), (Eq, "2", true)], false),
            (&[(Eq, "1", true), (Eq, "1.0", true)], true),
            (&[(Gt, "5", true), (Lt, "3", true)], false),
            (&[(Gt, "1", true), (Lt, "2", true)], true),
            (&[(Gt, "1", true), (Lt, "1.0001", true)], true),
            (&[(Gt, "-2", true), (Lt, "-1", true)], true),
            (&[(Gt, "-1", true), (Lt, "0", true)], true),
            (&[(Gt, "-1", true), (Lt, "1", true), (Neq, "0", true)], true),
            (&[(Gt, "-0.5", true), (Lt, "0.5", true), (Neq, "0", true), (Gte, "0", true)], true),
            (&[(Gte, "1", true), (Lte, "1", true)], true),
            (&[(Gte, "1", true), (Lte, "1", true), (Neq, "1.00", true)], false),
            (&[(Gt, "1e3", true), (Lt, "1001", true)], true),
            (&[(Gt, "1e-3", true), (Lt, "0.0011", true)], true),
            (&[(Gt, "1e5000", true), (Lt, "1", true)], true),
            (&[(Gt, "\"a\"", true)], false),
            (&[(In, "[]", true)], false),
            (&[(In, "[1,2]", true), (Neq, "1", true), (Neq, "2", true)], false),
            (&[(Exists, "", true), (NotExists, "", true)], false),
            (&[(Exists, "", false), (NotExists, "", false)], false),
            (&[(NotExists, "", true), (Eq, "1", true)], false),
            (&[(Contains, "\"ab\"", true), (Contains, "\"b\"", false)], true),
            (&[(In, "[\"ab\"]", true), (Contains, "\"b\"", false)], false),
            (&[(Contains, "\"ab\"", true), (Contains, "\"ba\"", false), (Contains, "\"bb\"", true)], true),
            (&[(Contains, "1", true), (Contains, "\"a\"", true)], true),
            (&[(Contains, "1", true), (Gt, "0", true)], false),
            (&[(Eq, "\"x\"", true), (Contains, "\"x\"", true)], true),
            (&[(Eq, "1", false), (Neq, "1", false), (Exists, "", true)], false),
            (&[(Eq, "1", false), (Neq, "1", false)], true),
            (&[(Gt, "3", false), (Lte, "3", false), (Exists, "", true)], true),
        ];
        for (guards, expected) in cases {
            assert_eq!(together(guards), *expected, "{guards:?}");
        }
    }
}
