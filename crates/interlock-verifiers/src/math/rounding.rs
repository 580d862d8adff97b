//! Rounding: to decimal places, to significant figures, and to the digits that a number is written with.
//!
//! A value in the middle is rounded away from zero by some and to the even digit by others. Both are right.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed};

use super::claim::{Expression, Operator, Rounding, Step, StepKind};
use super::limits::{Limit, ROUNDING_DIGITS_MAX};
use super::no_value::Reason;
use super::real::{Real, Reals};
use super::value::Value;

/// A number rounded to so many decimal places, negative ones are before the point: away from zero, and to even.
pub(super) fn rounded(reals: &mut Reals<'_>, real: &Real, places: i64) -> Result<(Value, Value), Reason> {
    if let Real::Exact(value) = real {
        return exact(reals, value, places);
    }
    let bounds = reals.enclose(real)?;
    let (low, high) = reals.fixed().bounds(&bounds)?;
    let (low, high) = (exact(reals, &low, places)?, exact(reals, &high, places)?);
    // An irrational number is never in the middle itself: all four are the same, or the bounds are too wide.
    let same = low.0 == low.1 && low == high;
    if same { Ok(low) } else { Err(Reason::Inseparable) }
}

fn exact(reals: &mut Reals<'_>, value: &Value, places: i64) -> Result<(Value, Value), Reason> {
    let scale = Value::small(10).power(&Value::small(places), reals.fuel)?;
    let scaled = value.clone().magnitude().multiply(&scale, reals.fuel)?;
    let below = scaled.floor(reals.fuel)?;
    let rest = scaled.subtract(&Value::integer(below.clone()), reals.fuel)?;
    let half = Value::small(1).divide(&Value::small(2), reals.fuel)?;
    let above = super::big::plus(&below, &BigInt::one(), reals.fuel)?;
    let (away, even) = match rest.compare(&half, reals.fuel)? {
        core::cmp::Ordering::Less => (below.clone(), below),
        core::cmp::Ordering::Equal if below.is_even() => (above, below),
        core::cmp::Ordering::Equal | core::cmp::Ordering::Greater => (above.clone(), above),
    };
    let mut finish = |rounded: BigInt| {
        let rounded = Value::integer(rounded).divide(&scale, reals.fuel)?;
        Ok(if value.is_negative() { rounded.negated() } else { rounded })
    };
    Ok((finish(away)?, finish(even)?))
}

/// The decimal places that a rounding of this number has.
pub(super) fn places_of(reals: &mut Reals<'_>, real: &Real, rounding: Rounding) -> Result<i64, Reason> {
    let figures = match rounding {
        Rounding::DecimalPlaces(places) => return Ok(i64::from(places)),
        Rounding::SignificantFigures(figures) => i64::from(figures),
    };
    let leading = match real {
        Real::Exact(value) => leading_place(reals, value)?,
        Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => {
            let bounds = reals.enclose(real)?;
            if bounds.contains_zero() {
                return Err(Reason::Inseparable);
            }
            let (low, high) = reals.fixed().bounds(&bounds)?;
            let (low, high) = (leading_place(reals, &low)?, leading_place(reals, &high)?);
            if low != high {
                return Err(Reason::Inseparable);
            }
            low
        }
    };
    Ok(figures.saturating_sub(1).saturating_sub(leading))
}

/// The power of ten of the first digit that is not zero; of zero, zero.
fn leading_place(reals: &mut Reals<'_>, value: &Value) -> Result<i64, Reason> {
    if value.is_zero() {
        return Ok(0);
    }
    let value = value.clone().magnitude();
    // A digit is between three bits and four: the difference of lengths is close, and the rest is tried.
    let bits = i64::try_from(value.numer().bits()).unwrap_or(i64::MAX);
    let bits = bits.saturating_sub(i64::try_from(value.denom().bits()).unwrap_or(i64::MAX));
    // 30103 / 100000 is log10(2), a little too large.
    let mut place = bits.saturating_mul(30_103).div_euclid(100_000).saturating_add(1);
    for _ in 0..4 {
        let power = Value::small(10).power(&Value::small(place), reals.fuel)?;
        if value.compare(&power, reals.fuel)? != core::cmp::Ordering::Less {
            return Ok(place);
        }
        place = place.saturating_sub(1);
    }
    Err(Reason::Limit(Limit::ValueBits))
}

/// How many decimal places a number is written with: two of `3.14`, none of `314`, minus two of `3e2`; `31.40%` has
/// become `31.40e-2` before. With it, how many zeros an integer ends in: they may be written only to fill the places.
pub(super) fn written(side: &Expression) -> Option<(i64, i64)> {
    let mut kinds: Vec<&StepKind<'_>> = side.steps.iter().map(|step| &step.kind).collect();
    kinds.retain(|kind| !matches!(kind, StepKind::Negate | StepKind::Unit(_)));
    let [StepKind::Number(literal)] = kinds.as_slice() else { return None };
    let places = i64::try_from(literal.fraction.len()).ok()?.checked_sub(literal.exponent)?;
    let digits: &str = &literal.whole;
    let zeros = if literal.fraction.is_empty() && digits != "0" {
        digits.len().saturating_sub(digits.trim_end_matches('0').len())
    } else {
        0
    };
    let within = places.unsigned_abs() <= u64::from(ROUNDING_DIGITS_MAX);
    within.then_some((places, i64::try_from(zeros).ok()?))
}

/// Whether a power of ten with a number for its exponent occurs, as in `1.2 × 10^3`: then the digits before it may be
/// meant to say how far the value is rounded.
pub(super) fn has_power_of_ten(side: &Expression) -> bool {
    let is_ten = |step: &Step<'_>| matches!(&step.kind, StepKind::Number(number) if number.small() == Some(10));
    side.steps.windows(4).chain(side.steps.windows(3)).any(|steps| {
        let mut kinds = steps.iter().filter(|step| !matches!(step.kind, StepKind::Negate));
        let [base, exponent, power] = [kinds.next(), kinds.next(), kinds.next()];
        base.is_some_and(is_ten)
            && matches!(exponent.map(|step| &step.kind), Some(StepKind::Number(_)))
            && matches!(power.map(|step| &step.kind), Some(StepKind::Binary(Operator::Power)))
    })
}

/// A rounded value with its digits, as people write it: `1.50`, `-0.3`, `12e2`.
pub(super) fn shown(value: &Value, places: i64) -> String {
    if places < 0 {
        let scale = BigInt::from(10).pow(u32::try_from(places.unsigned_abs()).unwrap_or(0));
        let digits = value.numer().checked_div(&scale).unwrap_or_default();
        return format!("{digits}e{}", places.unsigned_abs());
    }
    let digits = usize::try_from(places.max(0)).unwrap_or(0);
    let scale = BigInt::from(10).pow(u32::try_from(digits).unwrap_or(0));
    let scaled = value.numer().abs().checked_mul(&scale).unwrap_or_default();
    let scaled = scaled.checked_div(&value.denom()).unwrap_or_default();
    let (whole, fraction) = scaled.div_rem(&scale);
    let sign = if value.is_negative() { "-" } else { "" };
    if digits == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{:0>digits$}", fraction.to_string())
}
