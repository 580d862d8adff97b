//! Exact values: rational numbers in lowest terms, every size checked before the work is done.
//!
//! Knows arithmetic and its limits. Does not know texts or positions.

use core::cmp::Ordering;
use core::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::claim::{Domain, Operator};
use super::lex::Literal;
use super::limits::{Fuel, Limit, check_bits};
use super::refusal::Reason;

/// The most digits after the point of a value that is shown as a decimal.
const FRACTION_DIGITS_MAX: u32 = 20;

/// A rational number.
// Invariant: the denominator is positive and shares no factor with the numerator; both passed `check_bits`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    numer: BigInt,
    denom: BigInt,
}

/// The domain of exact values.
pub(super) struct Exact<'f> {
    pub(super) fuel: &'f mut Fuel,
}

impl Domain for Exact<'_> {
    type Value = Value;

    fn number(&mut self, literal: &Literal) -> Result<Value, Reason> {
        Value::of(literal, self.fuel)
    }

    fn negate(&mut self, operand: Value) -> Result<Value, Reason> {
        Ok(Value { numer: negated(operand.numer), denom: operand.denom })
    }

    fn binary(&mut self, operator: Operator, left: Value, right: Value) -> Result<Value, Reason> {
        match operator {
            Operator::Add => left.add(&right, self.fuel),
            Operator::Subtract => left.subtract(right, self.fuel),
            Operator::Multiply => left.multiply(&right, self.fuel),
            Operator::Divide => left.divide(&right, self.fuel),
            Operator::FloorDivide => left.floor_divide(&right, self.fuel),
            Operator::Modulo => left.modulo(&right, self.fuel),
            Operator::Power => left.power(&right, self.fuel),
        }
    }
}

impl Value {
    fn of(literal: &Literal, fuel: &mut Fuel) -> Result<Value, Reason> {
        let digits = [literal.whole.as_str(), literal.fraction.as_str()].concat();
        let mantissa: BigInt = digits.parse().map_err(|_| Reason::NotUnderstood)?;
        check_bits(mantissa.bits())?;
        let places = i64::try_from(literal.fraction.len()).unwrap_or(i64::MAX);
        let shift = literal.exponent.saturating_sub(places);
        let scale = power(&BigInt::from(10), &BigInt::from(shift.unsigned_abs()), fuel)?;
        let (mantissa, scale) = (Value::integer(mantissa), Value::integer(scale));
        if shift < 0 { mantissa.divide(&scale, fuel) } else { mantissa.multiply(&scale, fuel) }
    }

    fn integer(numer: BigInt) -> Value {
        Value { numer, denom: BigInt::one() }
    }

    /// The order of two values.
    pub(super) fn compare(&self, other: &Value, fuel: &mut Fuel) -> Result<Ordering, Reason> {
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
    fn add(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
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
        Ok(Value { numer, denom })
    }

    fn subtract(&self, other: Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        self.add(&Value { numer: negated(other.numer), denom: other.denom }, fuel)
    }

    /// Factors are cancelled crosswise before multiplying; none are left afterwards.
    fn multiply(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        let falling = gcd(&self.numer, &other.denom, fuel)?;
        let rising = gcd(&other.numer, &self.denom, fuel)?;
        let numer = times(&quotient(&self.numer, &falling, fuel)?, &quotient(&other.numer, &rising, fuel)?, fuel)?;
        let denom = times(&quotient(&self.denom, &rising, fuel)?, &quotient(&other.denom, &falling, fuel)?, fuel)?;
        Ok(Value { numer, denom })
    }

    fn divide(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        self.multiply(&other.reciprocal()?, fuel)
    }

    fn reciprocal(&self) -> Result<Value, Reason> {
        if self.numer.is_zero() {
            return Err(Reason::DivisionByZero);
        }
        let (numer, denom) = (self.denom.clone(), self.numer.abs());
        Ok(Value { numer: if self.numer.is_negative() { negated(numer) } else { numer }, denom })
    }

    fn floor_divide(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        let ratio = self.divide(other, fuel)?;
        fuel.spend_work(words(&ratio.numer).saturating_mul(words(&ratio.denom)))?;
        Ok(Value::integer(ratio.numer.div_floor(&ratio.denom)))
    }

    fn modulo(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        let whole = self.floor_divide(other, fuel)?;
        self.subtract(whole.multiply(other, fuel)?, fuel)
    }

    /// A power of a fraction in lowest terms is in lowest terms.
    fn power(&self, exponent: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        if !exponent.is_integer() {
            return Err(Reason::ExponentNotInteger);
        }
        let base = if exponent.numer.is_negative() { &self.reciprocal()? } else { self };
        let exponent = exponent.numer.abs();
        Ok(Value { numer: power(&base.numer, &exponent, fuel)?, denom: power(&base.denom, &exponent, fuel)? })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.numer)?;
        if self.is_integer() { Ok(()) } else { write!(formatter, "/{}", self.denom) }
    }
}

/// The size of a number in words of 64 bits, rounded up; the unit in which work is paid.
fn words(number: &BigInt) -> u64 {
    (number.bits() >> 6).saturating_add(1)
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "it is the sign that is negated: one of three, with no range to leave"
)]
fn negated(number: BigInt) -> BigInt {
    let (sign, magnitude) = number.into_parts();
    BigInt::from_biguint(-sign, magnitude)
}

fn plus(left: &BigInt, right: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    fuel.spend_work(words(left).max(words(right)))?;
    sized(left.checked_add(right))
}

/// A product has as many bits as its factors together, or one less: what is certain to be too large is not computed,
/// and what is computed is at most one bit too large.
fn times(left: &BigInt, right: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    if !left.is_zero() && !right.is_zero() {
        check_bits(left.bits().saturating_add(right.bits()).saturating_sub(1))?;
    }
    fuel.spend_work(words(left).saturating_mul(words(right)))?;
    sized(left.checked_mul(right))
}

fn quotient(number: &BigInt, divisor: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
    if divisor.is_one() {
        return Ok(number.clone());
    }
    fuel.spend_work(words(number).saturating_mul(words(divisor)))?;
    number.checked_div(divisor).ok_or(Reason::DivisionByZero)
}

/// A number of `b` bits to the power of `n` has at least `(b - 1) * n + 1` bits, and at most twice that for `b ≥ 2`:
/// what is certain to be too large is not computed.
fn power(base: &BigInt, exponent: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
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

/// The greatest common divisor; of zero and a number, that number.
///
/// One division first, because the binary method that follows takes a step for every bit of the larger number.
fn gcd(left: &BigInt, right: &BigInt, fuel: &mut Fuel) -> Result<BigInt, Reason> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::limits::VALUE_BITS_MAX;
    use crate::math::parse::parse;

    fn value(expression: &str) -> Result<Value, Reason> {
        let claim = parse(expression, None).expect(expression);
        claim.first.fold(&mut Exact { fuel: &mut Fuel::full() }).map_err(|refusal| refusal.reason)
    }

    fn text(expression: &str) -> String {
        value(expression).map_or_else(|reason| format!("{reason:?}"), |value| value.to_string())
    }

    #[test]
    fn values_are_in_lowest_terms() {
        #[rustfmt::skip]
        let cases = [
            ("6/4", "3/2"), ("6/-4", "-3/2"), ("-6/-4", "3/2"), ("0/5", "0"), ("0*1/7", "0"), ("1/3-1/3", "0"),
            ("1/6+1/3", "1/2"), ("1/6+1/10", "4/15"), ("(2/3)*(3/2)", "1"), ("(4/9)*(3/8)", "1/6"),
            ("(1/2)/(3/4)", "2/3"), ("0.50", "1/2"), ("2.5e-3", "1/400"), ("1.20e2", "120"), ("(2/3)^-3", "27/8"),
            ("(-2/3)^3", "-8/27"), ("(-2/3)^-3", "-27/8"),
        ];
        for (expression, expected) in cases {
            assert_eq!(text(expression), expected, "{expression}");
        }
    }

    #[test]
    fn floor_division_and_modulo_follow_the_divisor() {
        #[rustfmt::skip]
        let cases = [
            ("7//2", "3"), ("-7//2", "-4"), ("7//-2", "-4"), ("-7//-2", "3"), ("7%2", "1"), ("-7%2", "1"),
            ("7 % -2", "-1"), ("-7 % -2", "-1"), ("7.5//2", "3"), ("7.5%2", "3/2"), ("-1%(1/3)", "0"),
            ("(1/2)%(1/3)", "1/6"), ("0%5", "0"),
        ];
        for (expression, expected) in cases {
            assert_eq!(text(expression), expected, "{expression}");
        }
    }

    #[test]
    fn powers_of_small_bases_have_no_limit() {
        #[rustfmt::skip]
        let cases = [
            ("0^0", "1"), ("0^10^30", "0"), ("1^10^30", "1"), ("(-1)^10^30", "1"), ("(-1)^(10^30+1)", "-1"),
            ("(-1)^-1", "-1"), ("1^-10^30", "1"), ("0^-1", "DivisionByZero"), ("4^0.5", "ExponentNotInteger"),
            ("4^(4/2)", "16"), ("7^1.0", "7"),
        ];
        for (expression, expected) in cases {
            assert_eq!(text(expression), expected, "{expression}");
        }
    }

    #[test]
    fn the_size_limit_holds_to_the_bit() {
        let largest = VALUE_BITS_MAX - 1;
        for inside in [
            format!("2^{largest}"),
            format!("2^{largest} / 2 * 2"),
            format!("2^{largest} - 1 + 2^{largest}"),
            format!("2^-{largest}"),
            format!("2^{} * 2^{}", largest / 2, largest - largest / 2),
            "3^41348".to_owned(),
            "1e19728".to_owned(),
        ] {
            assert!(value(&inside).is_ok(), "{inside}");
        }
        for outside in [
            format!("2^{VALUE_BITS_MAX}"),
            format!("2^{largest} * 2"),
            format!("2^{largest} + 2^{largest}"),
            format!("2^-{VALUE_BITS_MAX}"),
            format!("2^-{largest} / 2"),
            "3^41349".to_owned(),
            "1e19729".to_owned(),
            "1e-19729".to_owned(),
            "9**9**9".to_owned(),
            "2^(10^8)".to_owned(),
            "2^10^30".to_owned(),
        ] {
            assert_eq!(value(&outside), Err(Reason::Limit(Limit::ValueBits)), "{outside}");
        }
    }

    #[test]
    fn a_value_is_shown_as_a_decimal_where_that_is_short() {
        #[rustfmt::skip]
        let cases = [
            ("5/2", "2.5"), ("-5/2", "-2.5"), ("1/8", "0.125"), ("-1/20", "-0.05"), ("1/3", "1/3"), ("7", "7"),
            ("100", "100"), ("1e-20", "0.00000000000000000001"), ("1e-21", "1/1000000000000000000000"),
            ("2^-20", "0.00000095367431640625"), ("2^-21", "1/2097152"),
            ("12345678901234567890.5", "12345678901234567890.5"),
        ];
        for (expression, expected) in cases {
            assert_eq!(value(expression).expect(expression).shown(), expected, "{expression}");
        }
    }

    #[test]
    fn fractions_are_compared_by_value() {
        let order = |left, right| {
            value(left).expect(left).compare(&value(right).expect(right), &mut Fuel::full()).expect("an order")
        };
        assert_eq!(order("1/3", "0.333"), Ordering::Greater);
        assert_eq!(order("-1/3", "-0.333"), Ordering::Less);
        assert_eq!(order("-1/2", "1/3"), Ordering::Less);
        assert_eq!(order("2/4", "0.5"), Ordering::Equal);
    }
}
