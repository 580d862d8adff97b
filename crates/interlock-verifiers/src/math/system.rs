//! Linear equations, and what follows from them.
//!
//! Elimination over the rational numbers brings the premises to a form in which it can be read whether they contradict
//! each other and which unknowns they determine. A conclusion follows if it holds for the values that are determined,
//! or if it is a combination of the premises. Equations that are not linear are not judged.

use std::collections::BTreeMap;

use super::arithmetic::evaluate;
use super::claim::{Claim, Expression, StepKind, System};
use super::identity::Ratios;
use super::limits::Fuel;
use super::no_value::{NoValue, Reason};
use super::value::Value;
use super::vocabulary::{is_letter, is_numbered};

/// What is known of a system.
pub(super) enum Finding {
    /// The premises contradict each other.
    Contradiction,
    /// Every conclusion follows, or the one with this number does not.
    Solved { solution: BTreeMap<String, Value>, fails: Option<usize> },
}

/// An equation: the sum of the coefficients times their unknowns, plus the number, is zero.
#[derive(Debug, Clone)]
struct Row {
    coefficients: BTreeMap<String, Value>,
    number: Value,
}

/// Looks what follows from a system.
pub(super) fn examine(system: &System, fuel: &mut Fuel) -> Result<Finding, NoValue> {
    let mut rows: Vec<(String, Row)> = Vec::new();
    for premise in &system.premises {
        let refuse = |reason| premise.first.refuse(reason, premise.first.span.start);
        for row in linear(premise, fuel)? {
            let row = reduced(row, &rows, fuel).map_err(refuse)?;
            let Some((pivot, coefficient)) = row.coefficients.first_key_value() else {
                if row.number.is_zero() {
                    continue;
                }
                return Ok(Finding::Contradiction);
            };
            let (pivot, factor) = (pivot.clone(), coefficient.reciprocal().map_err(refuse)?);
            let row = scaled(&row, &factor, fuel).map_err(refuse)?;
            for (_, other) in &mut rows {
                if let Some(coefficient) = other.coefficients.get(&pivot).cloned() {
                    *other = minus(other, &row, &coefficient, fuel).map_err(refuse)?;
                }
            }
            rows.push((pivot, row));
        }
    }
    // A row with one unknown says what it is.
    let determined = rows.iter().filter(|(_, row)| row.coefficients.len() == 1);
    let solution = determined.map(|(pivot, row)| (pivot.clone(), row.number.clone().negated())).collect();
    for (index, conclusion) in system.conclusions.iter().enumerate() {
        if !follows(conclusion, &rows, &solution, fuel)? {
            return Ok(Finding::Solved { solution, fails: Some(index) });
        }
    }
    Ok(Finding::Solved { solution, fails: None })
}

/// The conclusions put right, where each says what one unknown is and the system determines it.
pub(super) fn corrected(system: &System, solution: &BTreeMap<String, Value>) -> Option<String> {
    let mut texts = Vec::new();
    for conclusion in &system.conclusions {
        let [link] = conclusion.links.as_slice() else { return None };
        let name = stated(&conclusion.first, &link.side).filter(|_| conclusion.only_equates())?;
        texts.push(format!("{name} = {}", solution.get(name)?.shown()));
    }
    Some(texts.join(", "))
}

/// The unknown that an equation gives a value to.
fn stated<'t>(left: &Expression<'t>, right: &Expression<'_>) -> Option<&'t str> {
    let [step] = left.steps.as_slice() else { return None };
    let StepKind::Variable(name) = &step.kind else { return None };
    let plain = !right.steps.iter().any(|step| matches!(step.kind, StepKind::Variable(_)));
    plain.then_some(name)
}

fn follows(
    conclusion: &Claim,
    rows: &[(String, Row)],
    solution: &BTreeMap<String, Value>,
    fuel: &mut Fuel,
) -> Result<bool, NoValue> {
    let known = |kind: &StepKind<'_>| !matches!(kind, StepKind::Variable(name) if !solution.contains_key(*name));
    let all_known = conclusion.sides().all(|side| side.steps.iter().all(|step| known(&step.kind)));
    if all_known && !conclusion.links.is_empty() {
        let evaluated = evaluate(conclusion, solution, fuel)?;
        return Ok(evaluated.broken.is_none() && evaluated.undefined.is_none());
    }
    for row in linear(conclusion, fuel)? {
        let at = conclusion.first.span.start;
        let rest = reduced(row, rows, fuel).map_err(|reason| conclusion.first.refuse(reason, at))?;
        if !rest.coefficients.is_empty() || !rest.number.is_zero() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The rows of a chain of equations.
fn linear(claim: &Claim, fuel: &mut Fuel) -> Result<Vec<Row>, NoValue> {
    let refuse = |reason| claim.first.refuse(reason, claim.first.span.start);
    if claim.links.is_empty() || !claim.only_equates() || claim.rounding.is_some() {
        return Err(refuse(Reason::NotUnderstood));
    }
    if claim.has(|kind| matches!(kind, StepKind::Unit(_))) {
        return Err(refuse(Reason::Units));
    }
    let mut ratios = Ratios::new(fuel);
    let mut forms = Vec::new();
    for side in claim.sides() {
        forms.push(side.fold(&mut ratios)?.ratio);
    }
    let (names, partial) = (ratios.names, ratios.partial);
    // A function or a named number that stands for an unknown is none. With an unknown in a divisor, an equation has
    // fewer solutions than its normal form, even where that is linear.
    if partial || !names.iter().all(|name| is_letter(name) || is_numbered(name)) {
        return Err(refuse(Reason::NotLinear));
    }
    let mut rows = Vec::new();
    for pair in forms.windows(2) {
        let [left, right] = pair else { continue };
        let difference = left.clone().add(&right.clone().negated(), fuel).map_err(refuse)?;
        // Multiplied by a denominator with unknowns, an equation could get solutions that it does not have.
        let (Some(_), Some((coefficients, number))) = (difference.denom.as_constant(), difference.numer.as_linear())
        else {
            return Err(refuse(Reason::NotLinear));
        };
        let name = |index: u32| usize::try_from(index).ok().and_then(|index| names.get(index)).cloned();
        let coefficients = coefficients.into_iter().map(|(index, number)| Some((name(index)?, Value::integer(number))));
        let coefficients = coefficients.collect::<Option<_>>().ok_or_else(|| refuse(Reason::NotUnderstood))?;
        rows.push(Row { coefficients, number: Value::integer(number) });
    }
    Ok(rows)
}

/// A row without the unknowns that others determine.
fn reduced(mut row: Row, rows: &[(String, Row)], fuel: &mut Fuel) -> Result<Row, Reason> {
    for (pivot, other) in rows {
        if let Some(coefficient) = row.coefficients.get(pivot).cloned() {
            row = minus(&row, other, &coefficient, fuel)?;
        }
    }
    Ok(row)
}

fn scaled(row: &Row, factor: &Value, fuel: &mut Fuel) -> Result<Row, Reason> {
    let mut coefficients = BTreeMap::new();
    for (name, coefficient) in &row.coefficients {
        coefficients.insert(name.clone(), coefficient.multiply(factor, fuel)?);
    }
    Ok(Row { coefficients, number: row.number.multiply(factor, fuel)? })
}

/// A row minus so many times another.
fn minus(row: &Row, other: &Row, factor: &Value, fuel: &mut Fuel) -> Result<Row, Reason> {
    let mut coefficients = row.coefficients.clone();
    for (name, coefficient) in &other.coefficients {
        fuel.spend_work(64)?;
        let part = coefficient.multiply(factor, fuel)?.negated();
        let sum = match coefficients.get(name) {
            Some(known) => known.add(&part, fuel)?,
            None => part,
        };
        if sum.is_zero() {
            coefficients.remove(name);
        } else {
            coefficients.insert(name.clone(), sum);
        }
    }
    let part = other.number.multiply(factor, fuel)?;
    Ok(Row { coefficients, number: row.number.subtract(&part, fuel)? })
}
