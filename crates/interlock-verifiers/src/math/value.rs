//! Exact values: rational numbers in lowest terms.
//!
//! Most numbers are small: those are kept and calculated in machine words, with every overflow seen. The rest is the
//! arithmetic of big integers, with its limits.

use core::cmp::Ordering;
use core::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive};

use super::big::Fraction;
use super::claim::Operator;
use super::lex::Literal;
use super::limits::Fuel;
use super::no_value::Reason;

/// What an operation on small numbers costs, in units of work.
const SMALL_WORK: u64 = 2;
/// The most digits that are sure to fit into 64 bits with a sign.
const SMALL_DIGITS: usize = 18;

/// A rational number.
// Invariant: `Small` wherever both parts fit; the denominator is positive; no common factor. So equal values are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Small { numer: i64, denom: i64 },
    Big(Box<Fraction>),
}

impl Value {
    pub(super) fn of(literal: &Literal<'_>, fuel: &mut Fuel) -> Result<Value, Reason> {
        let (whole, fraction) = (&*literal.whole, literal.fraction);
        if literal.exponent == 0 && whole.len().saturating_add(fraction.len()) <= SMALL_DIGITS {
            fuel.spend_work(SMALL_WORK)?;
            let digit = |number: i64, digit: u8| {
                number.saturating_mul(10).saturating_add(i64::from(digit.saturating_sub(b'0')))
            };
            let numer = whole.bytes().chain(fraction.bytes()).fold(0, digit);
            let denom = fraction.bytes().fold(1_i64, |scale, _| scale.saturating_mul(10));
            return Ok(Value::reduced(i128::from(numer), i128::from(denom)));
        }
        Fraction::of(literal, fuel).map(Value::of_fraction)
    }

    /// What an operator makes of two values.
    pub(super) fn binary(operator: Operator, left: &Value, right: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        match operator {
            Operator::Add => left.add(right, fuel),
            Operator::Subtract => left.subtract(right, fuel),
            Operator::Multiply => left.multiply(right, fuel),
            Operator::Divide => left.divide(right, fuel),
            Operator::FloorDivide => left.floor_divide(right, fuel),
            Operator::Modulo => left.modulo(right, fuel),
            Operator::Power => left.power(right, fuel),
        }
    }

    pub(super) fn small(number: i64) -> Value {
        Value::Small { numer: number, denom: 1 }
    }

    pub(super) fn integer(number: BigInt) -> Value {
        Value::of_fraction(Fraction::of_parts(number, BigInt::from(1)))
    }

    fn of_fraction(fraction: Fraction) -> Value {
        let (numer, denom) = fraction.parts();
        match (numer.to_i64(), denom.to_i64()) {
            (Some(numer), Some(denom)) => Value::Small { numer, denom },
            (Some(_) | None, None) | (None, Some(_)) => Value::Big(Box::new(fraction)),
        }
    }

    /// A fraction in lowest terms; the denominator is positive.
    fn reduced(numer: i128, denom: i128) -> Value {
        if denom == 1
            && let Ok(numer) = i64::try_from(numer)
        {
            return Value::Small { numer, denom: 1 };
        }
        let common = match (u64::try_from(numer.unsigned_abs()), u64::try_from(denom.unsigned_abs())) {
            (Ok(numer), Ok(denom)) => i128::from(numer.gcd(&denom)),
            (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => numer.gcd(&denom),
        };
        let (numer, denom) = (numer.checked_div(common).unwrap_or(numer), denom.checked_div(common).unwrap_or(denom));
        match (i64::try_from(numer), i64::try_from(denom)) {
            (Ok(numer), Ok(denom)) => Value::Small { numer, denom },
            (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => {
                Value::Big(Box::new(Fraction::of_parts(BigInt::from(numer), BigInt::from(denom))))
            }
        }
    }

    fn to_fraction(&self) -> Fraction {
        match self {
            Value::Small { numer, denom } => Fraction::of_parts(BigInt::from(*numer), BigInt::from(*denom)),
            Value::Big(fraction) => (**fraction).clone(),
        }
    }

    pub(super) fn numer(&self) -> BigInt {
        match self {
            Value::Small { numer, .. } => BigInt::from(*numer),
            Value::Big(fraction) => fraction.parts().0.clone(),
        }
    }

    pub(super) fn denom(&self) -> BigInt {
        match self {
            Value::Small { denom, .. } => BigInt::from(*denom),
            Value::Big(fraction) => fraction.parts().1.clone(),
        }
    }

    pub(super) fn is_integer(&self) -> bool {
        match self {
            Value::Small { denom, .. } => *denom == 1,
            Value::Big(fraction) => fraction.parts().1.bits() == 1,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == Value::small(0)
    }

    pub(super) fn is_one(&self) -> bool {
        *self == Value::small(1)
    }

    pub(super) fn is_negative(&self) -> bool {
        match self {
            Value::Small { numer, .. } => *numer < 0,
            Value::Big(fraction) => fraction.parts().0.is_negative(),
        }
    }

    pub(super) fn negated(self) -> Value {
        match self {
            Value::Small { numer, denom } => Value::reduced(i128::from(numer).saturating_neg(), i128::from(denom)),
            // Of the numbers just too large, one fits when it is negated.
            Value::Big(fraction) => Value::of_fraction(fraction.negated()),
        }
    }

    pub(super) fn magnitude(self) -> Value {
        if self.is_negative() { self.negated() } else { self }
    }

    /// The value as an integer that is small.
    pub(super) fn to_small(&self) -> Option<i64> {
        match self {
            Value::Small { numer, denom: 1 } => Some(*numer),
            Value::Small { .. } | Value::Big(_) => None,
        }
    }

    /// The size of the numerator and the denominator together.
    pub(super) fn bits(&self) -> u64 {
        match self {
            Value::Small { numer, denom } => {
                let length = |number: u64| u64::from(u64::BITS.saturating_sub(number.leading_zeros()));
                length(numer.unsigned_abs()).saturating_add(length(denom.unsigned_abs()))
            }
            Value::Big(fraction) => fraction.bits(),
        }
    }

    /// The order of two values.
    pub(super) fn compare(&self, other: &Value, fuel: &mut Fuel) -> Result<Ordering, Reason> {
        if let (Some((a, b)), Some((c, d))) = (self.words(), other.words()) {
            fuel.spend_work(SMALL_WORK)?;
            return Ok(a.saturating_mul(d).cmp(&c.saturating_mul(b)));
        }
        self.to_fraction().compare(&other.to_fraction(), fuel)
    }

    pub(super) fn add(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        if let (Some((a, b)), Some((c, d))) = (self.words(), other.words()) {
            fuel.spend_work(SMALL_WORK)?;
            // Prices have the same denominator: no need to make it larger first.
            let sum = if b == d {
                a.checked_add(c).map(|numer| (numer, b))
            } else {
                a.saturating_mul(d).checked_add(c.saturating_mul(b)).map(|numer| (numer, b.saturating_mul(d)))
            };
            if let Some((numer, denom)) = sum {
                return Ok(Value::reduced(numer, denom));
            }
        }
        self.to_fraction().add(&other.to_fraction(), fuel).map(Value::of_fraction)
    }

    pub(super) fn subtract(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        self.add(&other.clone().negated(), fuel)
    }

    pub(super) fn multiply(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        if let (Some((a, b)), Some((c, d))) = (self.words(), other.words()) {
            fuel.spend_work(SMALL_WORK)?;
            return Ok(Value::reduced(a.saturating_mul(c), b.saturating_mul(d)));
        }
        self.to_fraction().multiply(&other.to_fraction(), fuel).map(Value::of_fraction)
    }

    pub(super) fn divide(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        self.multiply(&other.reciprocal()?, fuel)
    }

    pub(super) fn reciprocal(&self) -> Result<Value, Reason> {
        match self {
            Value::Small { numer: 0, .. } => Err(Reason::DivisionByZero),
            Value::Small { numer, denom } => {
                let (numer, denom) = (i128::from(*numer), i128::from(*denom));
                Ok(Value::reduced(denom.saturating_mul(numer.signum()), numer.abs()))
            }
            Value::Big(fraction) => fraction.reciprocal().map(Value::of_fraction),
        }
    }

    /// The largest integer that is not larger.
    pub(super) fn floor(&self, fuel: &mut Fuel) -> Result<BigInt, Reason> {
        match self {
            Value::Small { numer, denom } => {
                fuel.spend_work(SMALL_WORK)?;
                Ok(BigInt::from(numer.div_floor(denom)))
            }
            Value::Big(fraction) => fraction.floor(fuel),
        }
    }

    fn floor_divide(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        self.divide(other, fuel)?.floor(fuel).map(Value::integer)
    }

    /// The rest of the floor division, with the sign of the divisor.
    fn modulo(&self, other: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        let whole = self.floor_divide(other, fuel)?;
        self.subtract(&whole.multiply(other, fuel)?, fuel)
    }

    /// A power with an integer for its exponent.
    pub(super) fn power(&self, exponent: &Value, fuel: &mut Fuel) -> Result<Value, Reason> {
        if !exponent.is_integer() {
            return Err(Reason::NotUnderstood);
        }
        let base = if exponent.is_negative() { &self.reciprocal()? } else { self };
        if let (Value::Small { numer, denom }, Some(exponent)) = (base, exponent.to_small()) {
            let exponent = u32::try_from(exponent.unsigned_abs()).ok();
            let small =
                exponent.and_then(|exponent| Some((numer.checked_pow(exponent)?, denom.checked_pow(exponent)?)));
            if let Some((numer, denom)) = small {
                fuel.spend_work(SMALL_WORK)?;
                return Ok(Value::Small { numer, denom });
            }
        }
        base.to_fraction().power(&exponent.numer().abs(), fuel).map(Value::of_fraction)
    }

    /// The root of that degree, if it is rational; of a value that is not negative.
    pub(super) fn root(&self, degree: u32, fuel: &mut Fuel) -> Result<Option<Value>, Reason> {
        Ok(self.to_fraction().root(degree, fuel)?.map(Value::of_fraction))
    }

    /// The value as people write it: a decimal that is exact and short, else `n` or `n/d`.
    pub(super) fn shown(&self) -> String {
        self.to_fraction().shown()
    }

    /// Both parts, where they are small; twice as wide, so that no product of two leaves the range.
    fn words(&self) -> Option<(i128, i128)> {
        match self {
            Value::Small { numer, denom } => Some((i128::from(*numer), i128::from(*denom))),
            Value::Big(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Small { numer, denom: 1 } => write!(formatter, "{numer}"),
            Value::Small { numer, denom } => write!(formatter, "{numer}/{denom}"),
            Value::Big(fraction) => write!(formatter, "{fraction}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::claim::Statement;
    use crate::math::limits::{Limit, VALUE_BITS_MAX};
    use crate::math::real::{Real, Reals};
    use crate::math::statement::parse;
    use std::collections::BTreeMap;

    fn value(expression: &str) -> Result<Value, Reason> {
        let Ok(Statement::Claim(claim)) = parse(expression, None) else { panic!("{expression}") };
        let (mut fuel, point) = (Fuel::full(), BTreeMap::new());
        let mut reals = Reals { fuel: &mut fuel, bits: 64, point: &point };
        match claim.first.fold(&mut reals).map_err(|no_value| no_value.reason)? {
            Real::Exact(value) => Ok(value),
            Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => Err(Reason::Inseparable),
        }
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
            ("7 % -2", "-1"), ("-7 % -2", "-1"), ("7.5//2", "3"), ("7.5%2", "3/2"), ("-1 % (1/3)", "0"),
            ("(1/2) % (1/3)", "1/6"), ("0%5", "0"),
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
            ("(-1)^-1", "-1"), ("1^-10^30", "1"), ("0^-1", "DivisionByZero"), ("4^0.5", "2"),
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
    fn small_and_big_numbers_meet_without_a_seam() {
        let largest = i64::MAX;
        for (expression, expected) in [
            (format!("{largest} + 1 - 1"), largest.to_string()),
            (format!("-{largest} - 1"), i64::MIN.to_string()),
            (format!("-(-{largest} - 1)"), "9223372036854775808".to_owned()),
            (format!("--(-{largest} - 1)"), i64::MIN.to_string()),
            (format!("1 / (-{largest} - 1)"), "-1/9223372036854775808".to_owned()),
            (format!("1 / (1 / (-{largest} - 1))"), i64::MIN.to_string()),
            (format!("{largest} * {largest} / {largest}"), largest.to_string()),
            (format!("1/{largest} - 1/{largest}"), "0".to_owned()),
            (
                format!("1/{largest} + 1/({largest} - 1)"),
                format!("{}/{}", 2 * i128::from(largest) - 1, i128::from(largest) * i128::from(largest - 1)),
            ),
            (format!("(-{largest} - 1) // -1"), "9223372036854775808".to_owned()),
            (format!("(-{largest} - 1) % -1"), "0".to_owned()),
            ("2^63 - 2^63".to_owned(), "0".to_owned()),
            ("2^62 * 2 / 2^62".to_owned(), "2".to_owned()),
            ("999999999999999999 + 1".to_owned(), "1000000000000000000".to_owned()),
            ("0.123456789012345678 * 10^18".to_owned(), "123456789012345678".to_owned()),
        ] {
            assert_eq!(text(&expression), expected, "{expression}");
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
