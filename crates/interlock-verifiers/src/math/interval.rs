//! Intervals: two bounds that a real number lies between, kept as integers over a power of two.
//!
//! Every operation rounds outwards, so the bounds of a result hold whatever was rounded on the way. How many bits there
//! are after the point is fixed for one calculation; who needs more calculates again with more.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::big::{negated, words};
use super::limits::{Fuel, check_bits};
use super::no_value::Reason;
use super::value::Value;

/// Bounds, in units of two to the power of minus the number of bits.
// Invariant: `low <= high`, and the number lies between them, bounds included.
#[derive(Debug, Clone)]
pub(super) struct Interval {
    pub(super) low: BigInt,
    pub(super) high: BigInt,
}

/// Arithmetic with so many bits after the point.
pub(super) struct Fixed<'f> {
    pub(super) bits: u32,
    pub(super) fuel: &'f mut Fuel,
}

impl Interval {
    pub(super) fn is_positive(&self) -> bool {
        self.low.is_positive()
    }

    pub(super) fn is_negative(&self) -> bool {
        self.high.is_negative()
    }

    pub(super) fn contains_zero(&self) -> bool {
        !self.is_positive() && !self.is_negative()
    }

    pub(super) fn negated(self) -> Interval {
        Interval { low: negated(self.high), high: negated(self.low) }
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "big integers have no range to leave; their size is checked and paid before each product"
)]
impl Fixed<'_> {
    /// The same fuel with another number of bits.
    pub(super) fn with_bits(&mut self, bits: u32) -> Fixed<'_> {
        Fixed { bits, fuel: self.fuel }
    }

    pub(super) fn one(&self) -> BigInt {
        BigInt::one() << self.bits
    }

    pub(super) fn exactly(&mut self, value: &Value) -> Result<Interval, Reason> {
        let (scaled, denom) = (value.numer() << self.bits, value.denom());
        self.fuel.spend_work(words(&scaled).saturating_mul(words(&denom)))?;
        let (low, rest) = scaled.div_mod_floor(&denom);
        let high = if rest.is_zero() { low.clone() } else { &low + 1 };
        Ok(Interval { low, high })
    }

    /// The bounds as rational numbers.
    pub(super) fn bounds(&mut self, interval: &Interval) -> Result<(Value, Value), Reason> {
        let unit = Value::integer(self.one());
        let low = Value::integer(interval.low.clone()).divide(&unit, self.fuel)?;
        let high = Value::integer(interval.high.clone()).divide(&unit, self.fuel)?;
        Ok((low, high))
    }

    /// The same number with other bits after the point.
    pub(super) fn rescaled(&self, interval: &Interval, bits: u32) -> Interval {
        match bits.checked_sub(self.bits) {
            Some(more) => Interval { low: &interval.low << more, high: &interval.high << more },
            None => {
                let fewer = self.bits.saturating_sub(bits);
                Interval { low: &interval.low >> fewer, high: up(&interval.high, fewer) }
            }
        }
    }

    pub(super) fn add(&self, left: &Interval, right: &Interval) -> Interval {
        Interval { low: &left.low + &right.low, high: &left.high + &right.high }
    }

    pub(super) fn subtract(&self, left: &Interval, right: &Interval) -> Interval {
        Interval { low: &left.low - &right.high, high: &left.high - &right.low }
    }

    fn pay(&mut self, left: &BigInt, right: &BigInt) -> Result<(), Reason> {
        check_bits(left.bits().saturating_add(right.bits()).saturating_sub(u64::from(self.bits)))?;
        self.fuel.spend_work(words(left).saturating_mul(words(right)).saturating_add(4))
    }

    pub(super) fn multiply(&mut self, left: &Interval, right: &Interval) -> Result<Interval, Reason> {
        let mut products = Vec::with_capacity(4);
        for one in [&left.low, &left.high] {
            for other in [&right.low, &right.high] {
                self.pay(one, other)?;
                products.push(one * other);
            }
        }
        let low = products.iter().min().map(|product| product >> self.bits);
        let high = products.iter().max().map(|product| up(product, self.bits));
        low.zip(high).map(|(low, high)| Interval { low, high }).ok_or(Reason::NotUnderstood)
    }

    /// A quotient. Where the divisor may be zero, nothing is known yet.
    pub(super) fn divide(&mut self, left: &Interval, right: &Interval) -> Result<Interval, Reason> {
        if right.contains_zero() {
            return Err(Reason::Inseparable);
        }
        let (mut low, mut high): (Option<BigInt>, Option<BigInt>) = (None, None);
        for one in [&left.low, &left.high] {
            for other in [&right.low, &right.high] {
                let scaled = one << self.bits;
                check_bits(scaled.bits().saturating_sub(other.bits()))?;
                self.fuel.spend_work(words(&scaled).saturating_mul(words(other)))?;
                let (floor, rest) = scaled.div_mod_floor(other);
                let ceiling = if rest.is_zero() { floor.clone() } else { &floor + 1 };
                low = Some(low.map_or(floor.clone(), |low| low.min(floor)));
                high = Some(high.map_or(ceiling.clone(), |high| high.max(ceiling)));
            }
        }
        low.zip(high).map(|(low, high)| Interval { low, high }).ok_or(Reason::NotUnderstood)
    }

    /// The integer that every number of an interval rounds down to, if it is the same for all.
    pub(super) fn floor(&self, interval: &Interval) -> Result<BigInt, Reason> {
        let (low, high) = (&interval.low >> self.bits, &interval.high >> self.bits);
        if low == high { Ok(low) } else { Err(Reason::Inseparable) }
    }

    /// A power with a whole exponent that is not negative.
    pub(super) fn power(&mut self, base: &Interval, exponent: u32) -> Result<Interval, Reason> {
        let mut result = Interval { low: self.one(), high: self.one() };
        let mut square = base.clone();
        let mut rest = exponent;
        while rest > 0 {
            if rest.is_odd() {
                result = self.multiply(&result, &square)?;
            }
            rest >>= 1;
            if rest > 0 {
                square = self.multiply(&square, &square)?;
                // A square is never negative, though the product of an interval with itself may seem so.
                square.low = square.low.max(BigInt::zero());
            }
        }
        Ok(result)
    }

    pub(super) fn sqrt(&mut self, interval: &Interval) -> Result<Interval, Reason> {
        if interval.is_negative() {
            return Err(Reason::Domain);
        }
        if interval.low.is_negative() {
            return Err(Reason::Inseparable);
        }
        let size = words(&interval.high).saturating_add(u64::from(self.bits) >> 6);
        self.fuel.spend_work(size.saturating_mul(size).saturating_mul(40))?;
        let low = (&interval.low << self.bits).sqrt();
        let high = (&interval.high << self.bits).sqrt() + 1;
        Ok(Interval { low, high })
    }

    /// Whether one lies wholly below the other.
    pub(super) fn order(left: &Interval, right: &Interval) -> Option<core::cmp::Ordering> {
        if left.high < right.low {
            Some(core::cmp::Ordering::Less)
        } else if left.low > right.high {
            Some(core::cmp::Ordering::Greater)
        } else {
            None
        }
    }

    /// The size of the integer part, in bits.
    pub(super) fn integer_bits(&self, interval: &Interval) -> u32 {
        let bits = interval.low.bits().max(interval.high.bits());
        bits.saturating_sub(u64::from(self.bits)).to_u32().unwrap_or(u32::MAX)
    }
}

/// Shifts down and rounds up.
#[expect(clippy::arithmetic_side_effects, reason = "big integers have no range to leave")]
pub(super) fn up(number: &BigInt, bits: u32) -> BigInt {
    negated(negated(number.clone()) >> bits)
}
