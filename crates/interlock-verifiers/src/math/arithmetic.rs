//! Claims without unknowns, or with a value for each: are they right?
//!
//! Calculates every side, with more and more bits where a value is irrational, until every relation is known to hold or
//! not to hold, or the last step of precision leaves one open.

use std::collections::BTreeMap;

use super::claim::{Claim, Expression, Link, Rounding};
use super::identity::same;
use super::lex::Relation;
use super::limits::{Fuel, PRECISION_BITS};
use super::no_value::{NoValue, Reason};
use super::real::{Real, Reals};
use super::rounding::{has_power_of_ten, places_of, rounded, written};
use super::value::Value;

/// What was found out about a claim.
pub(super) struct Evaluated {
    /// The values, up to the first side that has none.
    pub(super) sides: Vec<Real>,
    /// The bits after the point of those that are not exact.
    pub(super) bits: u32,
    /// Why the next side has no value.
    pub(super) undefined: Option<NoValue>,
    pub(super) broken: Option<Broken>,
    /// The equations that hold because both sides have the same normal form, where bounds alone would not tell.
    pub(super) same: Vec<usize>,
}

/// A relation that does not hold.
pub(super) struct Broken {
    /// Its number.
    pub(super) link: usize,
    /// What the side should have been, with so many decimal places, where it is a rounded one.
    pub(super) rounded: Option<(Value, i64)>,
}

/// Evaluates a claim where its unknowns, if it has any, have these values.
pub(super) fn evaluate(claim: &Claim, point: &BTreeMap<String, Value>, fuel: &mut Fuel) -> Result<Evaluated, NoValue> {
    let mut open = claim.first.refuse(Reason::Inseparable, claim.first.span.start);
    for bits in PRECISION_BITS {
        let mut reals = Reals { fuel, bits, point };
        match attempt(claim, &mut reals) {
            Err(no_value) if no_value.reason == Reason::Inseparable => open = no_value,
            result => return result,
        }
    }
    Err(open)
}

fn attempt(claim: &Claim, reals: &mut Reals<'_>) -> Result<Evaluated, NoValue> {
    let mut evaluated =
        Evaluated { sides: Vec::new(), bits: reals.bits, undefined: None, broken: None, same: Vec::new() };
    for side in claim.sides() {
        match side.fold(reals) {
            Ok(value) => {
                let bits = match &value {
                    Real::Exact(value) => value.bits(),
                    Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => u64::from(reals.bits),
                };
                reals.fuel.spend_result(bits).map_err(|reason| side.refuse(reason, side.span.start))?;
                evaluated.sides.push(value);
            }
            // Proof enough, whatever the other sides are: a claim about a value that does not exist cannot hold.
            Err(no_value) if no_value.reason.undefined().is_some() => {
                evaluated.undefined = Some(no_value);
                return Ok(evaluated);
            }
            Err(no_value) => return Err(no_value),
        }
    }
    let mut open = None;
    for (index, link) in claim.links.iter().enumerate() {
        let at = link.at.unwrap_or(link.side.span.start);
        let (left, right) = (evaluated.sides.get(index), evaluated.sides.get(index.saturating_add(1)));
        let (Some(left), Some(right)) = (left, right) else {
            return Err(link.side.refuse(Reason::NotUnderstood, at));
        };
        match relates(claim, index, link, left, right, reals) {
            Ok(None) => {}
            Ok(Some(broken)) => {
                // One that does not hold is enough, though another may be open.
                evaluated.broken = Some(broken);
                return Ok(evaluated);
            }
            // Both sides have a value, so equal forms are equal values.
            Err(Reason::Inseparable)
                if link.relation == Relation::Equal
                    && claim.rounding.is_none()
                    && same(side_before(claim, index), &link.side, reals.fuel) =>
            {
                evaluated.same.push(index);
            }
            Err(reason) => open = open.or(Some(link.side.refuse(reason, at))),
        }
    }
    open.map_or(Ok(evaluated), Err)
}

/// Whether one relation holds: nothing, if it does.
fn relates(
    claim: &Claim,
    index: usize,
    link: &Link,
    left: &Real,
    right: &Real,
    reals: &mut Reals<'_>,
) -> Result<Option<Broken>, Reason> {
    let is_last = index.saturating_add(1) == claim.links.len();
    if let Some(rounding) = claim.rounding.filter(|_| is_last) {
        return rounds(index, rounding, link.relation, left, right, reals);
    }
    if link.relation != Relation::Approximate {
        let holds = reals.holds(link.relation, left, right)?;
        return Ok((!holds).then_some(Broken { link: index, rounded: None }));
    }
    approximates(index, (side_before(claim, index), left), (&link.side, right), reals)
}

/// The side before a link.
fn side_before<'c, 't>(claim: &'c Claim<'t>, link: usize) -> &'c Expression<'t> {
    let before = link.checked_sub(1).and_then(|before| claim.links.get(before)).map(|link| &link.side);
    before.unwrap_or(&claim.first)
}

/// `10/3 = 3.33 to 2 dp`
fn rounds(
    index: usize,
    rounding: Rounding,
    relation: Relation,
    left: &Real,
    right: &Real,
    reals: &mut Reals<'_>,
) -> Result<Option<Broken>, Reason> {
    let (Real::Exact(claimed), Relation::Equal | Relation::Approximate) = (right, relation) else {
        return Err(Reason::NoDigits);
    };
    let places = places_of(reals, left, rounding)?;
    let (away, even) = rounded(reals, left, places)?;
    let holds = *claimed == away || *claimed == even;
    if holds {
        return Ok(None);
    }
    // Rounding may carry into a new digit: two figures of 0.0995 are 0.10, with one place less than 0.099.
    let places = places_of(reals, &Real::Exact(away.clone()), rounding)?;
    Ok(Some(Broken { link: index, rounded: Some((away, places)) }))
}

type Side<'c> = (&'c Expression<'c>, &'c Real);

/// `22/7 ≈ 3.14`: one side is the other, rounded to the digits it is written with.
fn approximates(
    index: usize,
    left: Side<'_>,
    right: Side<'_>,
    reals: &mut Reals<'_>,
) -> Result<Option<Broken>, Reason> {
    let mut broken = None;
    let mut has_digits = false;
    for (value, digits) in [(left, right), (right, left)] {
        let (Some((places, zeros)), Real::Exact(claimed)) = (written(digits.0), digits.1) else { continue };
        // Of two numbers that are written down, the one with fewer places is the rounded one.
        if written(value.0).is_some_and(|(others, _)| others < places) {
            continue;
        }
        has_digits = true;
        let (away, even) = rounded(reals, value.1, places)?;
        if *claimed == away || *claimed == even {
            return Ok(None);
        }
        // `1234 ≈ 1200` is right if the zeros only fill the places, and wrong if they are digits.
        for filled in 1..=zeros {
            let (away, even) = rounded(reals, value.1, places.saturating_sub(filled))?;
            if *claimed == away || *claimed == even {
                return Err(Reason::NoDigits);
            }
        }
        // Only what stands on the right is put right; the left side is what the claim is about.
        let rounded = core::ptr::eq(digits.0, right.0).then_some((away, places));
        broken.get_or_insert(Broken { link: index, rounded });
    }
    // `1024 ≈ 10^3`: how far the power is rounded is not written.
    let open = broken.is_some() && (has_power_of_ten(left.0) || has_power_of_ten(right.0));
    if has_digits && !open { Ok(broken) } else { Err(Reason::NoDigits) }
}
