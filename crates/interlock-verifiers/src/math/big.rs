//! Fractions of big integers in lowest terms, every size checked before the work is done.
//!
//! Knows arithmetic and its limits. Does not know texts or positions.

use core::cmp::Ordering;
use core::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::lex::Literal;
use super::limits::{Fuel, Limit, check_bits};
use super::no_value::Reason;

/// The most digits after the point of a value that is shown as a decimal.
const FRACTION_DIGITS_MAX: u32 = 20;

/// A rational number.
// Invariant: the denominator is positive and shares no factor with the numerator; both passed `check_bits`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fraction {
    numer: BigInt,
    denom: BigInt,
}

impl Fraction {
    pub(super) fn of(literal: &Literal<'_>, fuel: &mut Fuel) -> Result<Fraction, Reason> {
        let digits = [&*literal.whole, literal.fraction].concat();
        let mantissa: BigInt = digits.parse().map_err(|_| Reason::NotUnderstood)?;
        check_bits(mantissa.bits())?;
        let places = i64::try_from(literal.fraction.len()).unwrap_or(i64::MAX);
        let shift = literal.exponent.saturating_sub(places);
        let scale = power(&BigInt::from(10), &BigInt::from(shift.unsigned_abs()), fuel)?;
        let (mantissa, scale) = (Fraction::integer(mantissa), Fraction::integer(scale));
        if shift < 0 { mantissa.divide(&scale, fuel) } else { mantissa.multiply(&scale, fuel) }
    }

    /// The parts, the denominator second.
    pub(super) fn parts(&self) -> (&BigInt, &BigInt) {
        (&self.numer, &self.denom)
    }

    /// A fraction of two parts that are in lowest terms, the second one positive.
    pub(super) fn of_parts(numer: BigInt, denom: BigInt) -> Fraction {
        Fraction { numer, denom }
    }

    pub(super) fn negated(self) -> Fraction {
        Fraction { numer: negated(self.numer), denom: self.denom }
    }

    /// The largest integer that is not larger.
    pub(super) fn floor(&self, fuel: &mut Fuel) -> Result<BigInt, Reason> {
        fuel.spend_work(words(&self.numer).saturating_mul(words(&self.denom)))?;
        Ok(self.numer.div_floor(&self.denom))
    }

    /// The root of that degree, if it is rational; of a value that is not negative.
    pub(super) fn root(&self, degree: u32, fuel: &mut Fuel) -> Result<Option<Fraction>, Reason> {
        let (Some(numer), Some(denom)) = (root(&self.numer, degree, fuel)?, root(&self.denom, degree, fuel)?) else {
            return Ok(None);
        };
        Ok(Some(Fraction { numer, denom }))
    }

    fn integer(numer: BigInt) -> Fraction {
        Fraction { numer, denom: BigInt::one() }
    }

    /// The order of two values.
    pub(super) fn compare(&self, other: &Fraction, fuel: &mut Fuel) -> Result<Ordering, Reason> {
        Ok(times(&self.numer, &other.denom, fuel)?.cmp(&times(&other.numer, &self.denom, fuel)?))
    }

    /// The size of the numerator and the denominator together.
    pub(super) fn bits(&self) -> u64 {
        self.numer.bits().saturating_add(self.denom.bits())
    }

    /// The value as people write it: a decimal that is exact and short, else `n` or `n/d`.
    pub(super) fn shown(&self) -> String {
        let scale = BigInt::from(10).pow(FRACTION_DIGITS_MAX);
        // The decimal ends within so many digits exactly if the denominator divides that power of ten.
        let (factor, rest) = scale.div_rem(&self.denom);
        if self.is_integer() || !rest.is_zero() {
            return self.to_string();
        }
        let Some(scaled) = self.numer.abs().checked_mul(&factor) else { return self.to_string() };
        let (whole, fraction) = scaled.div_rem(&scale);
        let fraction = format!("{:0>width$}", fraction.to_string(), width = FRACTION_DIGITS_MAX as usize);
        let sign = if self.numer.is_negative() { "-" } else { "" };
        format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }

    fn is_integer(&self) -> bool {
        self.denom.is_one()
    }

    /// Common factors of the denominators are taken out first, so that no number gets larger than it must.
    pub(super) fn add(&self, other: &Fraction, fuel: &mut Fuel) -> Result<Fraction, Reason> {
        let common = gcd(&self.denom, &other.denom, fuel)?;
        let self_share = quotient(&self.denom, &common, fuel)?;
        let other_share = quotient(&other.denom, &common, fuel)?;
        let left = times(&self.numer, &other_share, fuel)?;
        let right = times(&other.numer, &self_share, fuel)?;
        let sum = plus(&left, &right, fuel)?;
        // Of what the denominators share, only a factor of `common` can be left in the sum.
        let rest = gcd(&sum, &common, fuel)?;
        let numer = quotient(&sum, &rest, fuel)?;
        let denom = times(&self_share, &quotient(&other.denom, &rest, fuel)?, fuel)?;
        Ok(Fraction { numer, denom })
    }

    /// Factors are cancelled crosswise before multiplying; none are left afterwards.
    pub(super) fn multiply(&self, other: &Fraction, fuel: &mut Fuel) -> Result<Fraction, Reason> {
        let falling = gcd(&self.numer, &other.denom, fuel)?;
        let rising = gcd(&other.numer, &self.denom, fuel)?;
        let numer = times(&quotient(&self.numer, &falling, fuel)?, &quotient(&other.numer, &rising, fuel)?, fuel)?;
        let denom = times(&quotient(&self.denom, &rising, fuel)?, &quotient(&other.denom, &falling, fuel)?, fuel)?;
        Ok(Fraction { numer, denom })
    }

    pub(super) fn divide(&self, other: &Fraction, fuel: &mut Fuel) -> Result<Fraction, Reason> {
        self.multiply(&other.reciprocal()?, fuel)
    }

    pub(super) fn reciprocal(&self) -> Result<Fraction, Reason> {
        if self.numer.is_zero() {
            return Err(Reason::DivisionByZero);
        }
        let (numer, denom) = (self.denom.clone(), self.numer.abs());
        Ok(Fraction { numer: if self.numer.is_negative() { negated(numer) } else { numer }, denom })
    }

    /// A power with a whole exponent that is not negative; of a fraction in lowest terms it is in lowest terms.
    pub(super) fn power(&self, exponent: &BigInt, fuel: &mut Fuel) -> Result<Fraction, Reason> {
        Ok(Fraction { numer: power(&self.numer, exponent, fuel)?, denom: power(&self.denom, exponent, fuel)? })
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.numer)?;
        if self.is_integer() { Ok(()) } else { write!(formatter, "/{}", self.denom) }
    }
}

/// The size of a number in words of 64 bits, rounded up; the unit in which work is paid.
pub(super) fn words(number: &BigInt) -> u64 {
    (number.bits() >> 6).saturating_add(1)
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "it is the sign that is negated: one of three, with no range to leave"
)]
pub(super) fn negated(number: BigInt) -> BigInt {
    let (sign, magnitude) = number.into_parts();
    BigInt::from_biguint(-sign, magnitude)
}

pub(super) fn plus(left: &BigInt, right: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    fuel.spend_work(words(left).max(words(right)))?;
    sized(left.checked_add(right))
}

/// A product has as many bits as its factors together, or one less: what is certain to be too large is not computed,
/// and what is computed is at most one bit too large.
pub(super) fn times(left: &BigInt, right: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    if !left.is_zero() && !right.is_zero() {
        check_bits(left.bits().saturating_add(right.bits()).saturating_sub(1))?;
    }
    fuel.spend_work(words(left).saturating_mul(words(right)))?;
    sized(left.checked_mul(right))
}

pub(super) fn quotient(number: &BigInt, divisor: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    if divisor.is_one() {
        return Ok(number.clone());
    }
    fuel.spend_work(words(number).saturating_mul(words(divisor)))?;
    number.checked_div(divisor).ok_or(Reason::DivisionByZero)
}

/// A number of `b` bits to the power of `n` has at least `(b - 1) * n + 1` bits, and at most twice that for `b ≥ 2`:
/// what is certain to be too large is not computed.
pub(super) fn power(base: &BigInt, exponent: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    if exponent.is_zero() {
        return Ok(BigInt::one());
    }
    // 0, 1 and -1 stay small whatever the exponent.
    if base.bits() < 2 {
        return Ok(if exponent.is_even() { base.abs() } else { base.clone() });
    }
    let exponent = exponent.to_u32().ok_or(Reason::Limit(Limit::ValueBits))?;
    let least = base.bits().saturating_sub(1).saturating_mul(u64::from(exponent)).saturating_add(1);
    check_bits(least)?;
    let most_words = (least >> 5).saturating_add(1);
    fuel.spend_work(most_words.saturating_mul(most_words))?;
    sized(Some(base.pow(exponent)))
}

/// The integer root of that degree, if there is one; of a number that is not negative.
fn root(number: &BigInt, degree: u32, fuel: &mut Fuel) -> Result<Option<BigInt>, Reason> {
    if number.is_one() || number.is_zero() {
        return Ok(Some(number.clone()));
    }
    // Newton's method: some twenty divisions.
    fuel.spend_work(words(number).saturating_mul(words(number)).saturating_mul(20))?;
    let root = number.nth_root(degree);
    Ok((power(&root, &BigInt::from(degree), fuel)? == *number).then_some(root))
}

/// The greatest common divisor; of zero and a number, that number.
///
/// One division first, because the binary method that follows takes a step for every bit of the larger number.
pub(super) fn gcd(left: &BigInt, right: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    let (large, small) = if left.bits() < right.bits() { (right, left) } else { (left, right) };
    if small.bits() < 2 {
        return Ok(if small.is_zero() { large.abs() } else { BigInt::one() });
    }
    fuel.spend_work(words(large).saturating_mul(words(small)))?;
    let rest = large.mod_floor(small);
    if rest.is_zero() {
        return Ok(small.abs());
    }
    fuel.spend_work(words(small).saturating_mul(small.bits()).saturating_mul(2))?;
    Ok(small.gcd(&rest))
}

/// Fails closed on what cannot happen: a sum or product of big integers always exists.
fn sized(number: Option<BigInt>) -> Result<BigInt, Reason> {
    let number = number.ok_or(Reason::Limit(Limit::ValueBits))?;
    check_bits(number.bits())?;
    Ok(number)
}
