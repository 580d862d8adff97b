//! The certificate: one line of canonical JSON from which a finding can be checked again without this engine.
//!
//! Nothing needs escaping: normal text, names and values are made of letters, digits, signs and blanks.

use std::collections::BTreeMap;

use super::arithmetic::Evaluated;
use super::limits::Fuel;
use super::no_value::Reason;
use super::real::{Real, Reals};
use super::value::Value;
use crate::outcome::Status;

/// Of a claim that was calculated.
///
/// `values` has the value of each side: `n` or `n/d` in lowest terms; where it is irrational, two bounds and, if there
/// is one, its exact form. Where it ends in `null`, that side has no value, and `undefined` says why. `same_form` has
/// the numbers of the equations whose sides have the same normal form.
pub(super) fn calculated(
    expression: &str,
    evaluated: &Evaluated,
    status: Status,
    fuel: &mut Fuel,
) -> Result<String, Reason> {
    let mut values = Vec::new();
    for side in &evaluated.sides {
        values.push(value(side, evaluated.bits, fuel)?);
    }
    let undefined = evaluated.undefined.and_then(|no_value| no_value.reason.undefined());
    if undefined.is_some() {
        values.push("null".to_owned());
    }
    let exact = evaluated.sides.iter().all(|side| matches!(side, Real::Exact(_)));
    let kind = if exact { "arithmetic" } else { "interval" };
    let same: Vec<String> = evaluated.same.iter().map(ToString::to_string).collect();
    let same = if same.is_empty() { String::new() } else { format!("\"same_form\":[{}],", same.join(",")) };
    let undefined = undefined.map_or_else(String::new, |why| format!("\"undefined\":\"{why}\","));
    let values = values.join(",");
    // Joined and not formatted: every approval of a calculation needs it.
    let pieces: [&str; 13] = [
        "{\"expression\":\"",
        expression,
        "\",\"kind\":\"",
        kind,
        "\",",
        &same,
        "\"status\":\"",
        status.as_str(),
        "\",",
        &undefined,
        "\"values\":[",
        &values,
        "]}",
    ];
    Ok(pieces.concat())
}

/// Of an identity that holds.
pub(super) fn identity(expression: &str, partial: bool) -> String {
    let place = if partial { "every denominator is not zero and every function has a value" } else { "everywhere" };
    format!("{{\"expression\":\"{expression}\",\"kind\":\"identity\",\"status\":\"VERIFIED\",\"where\":\"{place}\"}}")
}

/// Of an identity that does not hold: the relation with that number, at that point.
pub(super) fn refuted(
    expression: &str,
    link: usize,
    point: &BTreeMap<String, Value>,
    sides: [&Real; 2],
    bits: u32,
    fuel: &mut Fuel,
) -> Result<String, Reason> {
    let [left, right] = sides;
    Ok(format!(
        "{{\"counterexample\":{},\"expression\":\"{expression}\",\"kind\":\"identity\",\"relation\":{link},\
         \"status\":\"FAILED\",\"values\":[{},{}]}}",
        assignment(point),
        value(left, bits, fuel)?,
        value(right, bits, fuel)?,
    ))
}

/// Of a claim that has no value, whatever the unknowns are.
pub(super) fn undefined(expression: &str, why: &str) -> String {
    format!("{{\"expression\":\"{expression}\",\"kind\":\"identity\",\"status\":\"FAILED\",\"undefined\":\"{why}\"}}")
}

/// Of a system: the values of the unknowns that it determines, `null` where it has no solution.
pub(super) fn system(expression: &str, solution: Option<&BTreeMap<String, Value>>, status: Status) -> String {
    let solution = solution.map_or_else(|| "null".to_owned(), assignment);
    format!("{{\"expression\":\"{expression}\",\"kind\":\"system\",\"solution\":{solution},\"status\":\"{status}\"}}")
}

fn assignment(values: &BTreeMap<String, Value>) -> String {
    let members: Vec<String> = values.iter().map(|(name, value)| format!("\"{name}\":\"{value}\"")).collect();
    format!("{{{}}}", members.join(","))
}

fn value(real: &Real, bits: u32, fuel: &mut Fuel) -> Result<String, Reason> {
    if let Real::Exact(value) = real {
        return Ok(format!("\"{value}\""));
    }
    let point = BTreeMap::new();
    let mut reals = Reals { fuel, bits, point: &point };
    let bounds = reals.enclose(real)?;
    let (low, high) = reals.fixed().bounds(&bounds)?;
    let form = match real {
        Real::Pi(factor) => format!(",\"{factor} * pi\""),
        Real::Exp(exponent) => format!(",\"exp({exponent})\""),
        Real::Root { negative, square } => format!(",\"{}sqrt({square})\"", if *negative { "-" } else { "" }),
        Real::Exact(_) | Real::Between(_) => String::new(),
    };
    Ok(format!("[\"{low}\",\"{high}\"{form}]"))
}
