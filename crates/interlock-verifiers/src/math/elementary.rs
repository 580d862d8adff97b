//! Bounds of exp, ln, sin, cos and of the numbers pi and ln 2.
//!
//! Each is a series with terms that fall fast. What is left out after the last term is bounded and added to the
//! bounds; more bits are used inside than asked for, so that what is rounded on the way stays below the last bit.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use super::interval::{Fixed, Interval, up};
use super::limits::{ARGUMENT_MAX, Limit};
use super::no_value::Reason;

/// Bits kept for rounding inside a calculation.
const GUARD_BITS: u32 = 40;

#[expect(
    clippy::arithmetic_side_effects,
    reason = "big integers have no range to leave; the loops end with the terms, each of which is paid"
)]
impl Fixed<'_> {
    /// exp is monotone: the bounds of an interval come from its ends.
    pub(super) fn exp(&mut self, interval: &Interval) -> Result<Interval, Reason> {
        let low = self.exp_at(&interval.low)?.low;
        let high =
            if interval.low == interval.high { self.exp_at(&interval.low)? } else { self.exp_at(&interval.high)? };
        Ok(Interval { low, high: high.high })
    }

    fn exp_at(&mut self, point: &BigInt) -> Result<Interval, Reason> {
        let size = point.abs();
        let whole = (&size >> self.bits).to_u32().filter(|whole| *whole <= ARGUMENT_MAX);
        let whole = whole.ok_or(Reason::Limit(Limit::Argument))?;
        // Halved so often that the series is short; each halving is undone by a square, which doubles the error.
        let halvings = (u32::BITS - whole.leading_zeros()) + 4 + self.bits.isqrt() / 4;
        // The result has one and a half bits for every unit of the operand.
        let bits = self.bits + whole * 3 / 2 + halvings + GUARD_BITS;
        let from = self.bits;
        let mut inner = self.with_bits(bits);
        let scaled = &size << (bits - from);
        let operand = Interval { low: &scaled >> halvings, high: up(&scaled, halvings) };
        let mut sum = Interval { low: inner.one(), high: inner.one() };
        let mut term = sum.clone();
        let mut index = 1_u32;
        loop {
            term = inner.multiply(&term, &operand)?;
            term = Interval { low: &term.low / index, high: &term.high / index + 1 };
            sum = inner.add(&sum, &term);
            // The operand is below one half: what is left is at most as large as the last term, which is two units.
            if term.high <= BigInt::from(2) {
                sum.high += 4;
                break;
            }
            index += 1;
        }
        for _ in 0..halvings {
            sum = inner.multiply(&sum, &sum)?;
        }
        if point.is_negative() {
            let one = Interval { low: inner.one(), high: inner.one() };
            sum = inner.divide(&one, &sum)?;
        }
        Ok(inner.rescaled(&sum, from))
    }

    pub(super) fn ln(&mut self, interval: &Interval) -> Result<Interval, Reason> {
        if !interval.high.is_positive() {
            return Err(Reason::Domain);
        }
        if !interval.low.is_positive() {
            return Err(Reason::Inseparable);
        }
        let low = self.ln_at(&interval.low)?;
        if interval.low == interval.high {
            return Ok(low);
        }
        Ok(Interval { low: low.low, high: self.ln_at(&interval.high)?.high })
    }

    /// `x = m * 2^n` with `1 <= m < 2`; `ln m = 2 artanh z` with `z = (m - 1) / (m + 1)`, which is below one third.
    fn ln_at(&mut self, point: &BigInt) -> Result<Interval, Reason> {
        let size = point.bits().to_u32().ok_or(Reason::Limit(Limit::ValueBits))?;
        let exponent = i64::from(size) - 1 - i64::from(self.bits);
        let from = self.bits;
        let bits = from + GUARD_BITS;
        let mut inner = self.with_bits(bits);
        let shift = bits + 1;
        let mantissa = match shift.checked_sub(size) {
            Some(left) => Interval { low: point << left, high: point << left },
            None => Interval { low: point >> (size - shift), high: up(point, size - shift) },
        };
        let one = Interval { low: inner.one(), high: inner.one() };
        let (below, above) = (inner.subtract(&mantissa, &one), inner.add(&mantissa, &one));
        let z = inner.divide(&below, &above)?;
        let square = inner.multiply(&z, &z)?;
        let mut sum = Interval { low: BigInt::zero(), high: BigInt::zero() };
        let mut power = z;
        let mut odd = 1_u32;
        loop {
            sum = inner.add(&sum, &Interval { low: &power.low / odd, high: &power.high / odd + 1 });
            // The terms fall by nine: what is left is below the last one.
            if power.high <= BigInt::from(2) {
                sum.high += 4;
                break;
            }
            power = inner.multiply(&power, &square)?;
            odd += 2;
        }
        let twice = Interval { low: &sum.low << 1_u32, high: &sum.high << 1_u32 };
        let ln_2 = inner.ln_2()?;
        let scaled = if exponent < 0 {
            Interval { low: &ln_2.high * exponent, high: &ln_2.low * exponent }
        } else {
            Interval { low: &ln_2.low * exponent, high: &ln_2.high * exponent }
        };
        let result = inner.add(&twice, &scaled);
        Ok(inner.rescaled(&result, from))
    }

    /// `ln 2 = 18 artanh(1/26) - 2 artanh(1/4801) + 8 artanh(1/8749)`
    fn ln_2(&mut self) -> Result<Interval, Reason> {
        self.arctangents(&[(18, 26), (-2, 4_801), (8, 8_749)], false)
    }

    /// `pi = 16 arctan(1/5) - 4 arctan(1/239)`
    pub(super) fn pi(&mut self) -> Result<Interval, Reason> {
        self.arctangents(&[(16, 5), (-4, 239)], true)
    }

    /// A sum of multiples of `arctan(1/n)`, or of `artanh(1/n)`, where the signs do not alternate.
    fn arctangents(&mut self, parts: &[(i32, u32)], alternating: bool) -> Result<Interval, Reason> {
        let from = self.bits;
        let inner = self.with_bits(from + GUARD_BITS);
        let mut sum = Interval { low: BigInt::zero(), high: BigInt::zero() };
        for (factor, number) in parts {
            let mut power = inner.one() / number;
            let mut part = BigInt::zero();
            let mut odd = 1_u32;
            // Every division leaves out less than one unit, in the power and in the term.
            while !power.is_zero() {
                inner.fuel.spend_work(u64::from(inner.bits) >> 5)?;
                let term = &power / odd;
                if alternating && odd % 4 == 3 {
                    part -= term;
                } else {
                    part += term;
                }
                power /= number * number;
                odd += 2;
            }
            let error = BigInt::from(odd) * 2 + 4;
            let (low, high): (BigInt, BigInt) = ((&part - &error) * *factor, (&part + &error) * *factor);
            sum.low += low.clone().min(high.clone());
            sum.high += low.max(high);
        }
        Ok(inner.rescaled(&sum, from))
    }

    pub(super) fn sin(&mut self, interval: &Interval) -> Result<Interval, Reason> {
        self.sin_and_cos(interval).map(|(sin, _)| sin)
    }

    pub(super) fn cos(&mut self, interval: &Interval) -> Result<Interval, Reason> {
        self.sin_and_cos(interval).map(|(_, cos)| cos)
    }

    /// Both change at most as much as their operand: the value at the lower end, widened by the width, bounds them all.
    pub(super) fn sin_and_cos(&mut self, interval: &Interval) -> Result<(Interval, Interval), Reason> {
        let (sin, cos) = self.sin_and_cos_at(&interval.low)?;
        let width = &interval.high - &interval.low;
        let one = self.one();
        let widen = |bounds: Interval| Interval {
            low: (bounds.low - &width).max(-&one),
            high: (bounds.high + &width).min(one.clone()),
        };
        Ok((widen(sin), widen(cos)))
    }

    /// Turned back by quarters until the operand is below one; the quarter tells which series it is.
    fn sin_and_cos_at(&mut self, point: &BigInt) -> Result<(Interval, Interval), Reason> {
        let from = self.bits;
        let size = self.integer_bits(&Interval { low: point.clone(), high: point.clone() });
        if size > ARGUMENT_MAX {
            return Err(Reason::Limit(Limit::Argument));
        }
        let bits = from + size + GUARD_BITS;
        let mut inner = self.with_bits(bits);
        let scaled = point << (bits - from);
        let pi = inner.pi()?;
        inner.fuel.spend_work((u64::from(bits) >> 6).saturating_mul(u64::from(size) >> 6))?;
        // Of the number of quarters only that it is close matters: the rest is bounded whatever it is.
        let quarters: BigInt = ((&scaled << 1_u32) + (&pi.low >> 1_u32)).div_floor(&pi.low);
        let turned = [&quarters * &pi.low, &quarters * &pi.high];
        let low = turned.iter().min().map(|turned| turned >> 1_u32).unwrap_or_default();
        let high = turned.iter().max().map(|turned| up(turned, 1)).unwrap_or_default();
        let rest = Interval { low: &scaled - high, high: &scaled - low };
        if rest.low < -inner.one() || rest.high > inner.one() {
            return Err(Reason::Inseparable);
        }
        let square = inner.multiply(&rest, &rest)?;
        let square = Interval { low: square.low.max(BigInt::zero()), high: square.high };
        let one = Interval { low: inner.one(), high: inner.one() };
        let sin = inner.alternating(rest, &square, 1)?;
        let cos = inner.alternating(one, &square, 0)?;
        let (sin, cos) = match quarters.mod_floor(&BigInt::from(4)).to_u32() {
            Some(0) => (sin, cos),
            Some(1) => (cos, sin.negated()),
            Some(2) => (sin.negated(), cos.negated()),
            Some(_) | None => (cos.negated(), sin),
        };
        Ok((inner.rescaled(&sin, from), inner.rescaled(&cos, from)))
    }

    /// `t - t r² / ((n+1)(n+2)) + …`
    fn alternating(&mut self, first: Interval, square: &Interval, start: u32) -> Result<Interval, Reason> {
        let mut sum = first.clone();
        let mut term = first;
        let mut index = start;
        loop {
            let divisor = BigInt::from((index + 1) * (index + 2));
            term = self.multiply(&term, square)?;
            term = Interval { low: term.low.div_floor(&divisor), high: term.high.div_floor(&divisor) + 1 }.negated();
            sum = self.add(&sum, &term);
            index += 2;
            let two = BigInt::from(2);
            // The operand is at most one: the terms fall at least by two, and what is left is below the last one.
            if term.low.abs() <= two && term.high.abs() <= two {
                return Ok(Interval { low: sum.low - 4, high: sum.high + 4 });
            }
        }
    }
}
