//! What the functions do with real numbers.
//!
//! A function of a rational number that is rational gives it exactly; a function outside its domain has no value.

use core::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use super::big::{gcd, quotient, times};
use super::claim::{Domain, Operator};
use super::interval::Interval;
use super::limits::{Limit, ROUNDING_DIGITS_MAX, VALUE_BITS_MAX, check_bits};
use super::no_value::Reason;
use super::real::{Real, Reals};
use super::rounding::rounded;
use super::value::Value;
use super::vocabulary::Function;

/// The largest denominator of a logarithm that is found to be rational.
const LOGARITHM_DENOM_MAX: u32 = 6;

impl Reals<'_> {
    pub(super) fn apply(&mut self, function: Function, operands: Vec<Real>) -> Result<Real, Reason> {
        match function {
            Function::Min => self.extreme(operands, Ordering::Less),
            Function::Max => self.extreme(operands, Ordering::Greater),
            Function::Sum => self.sum(operands),
            Function::Mean => {
                let count = i64::try_from(operands.len()).unwrap_or(i64::MAX);
                let sum = self.sum(operands)?;
                self.divide(sum, Real::Exact(Value::small(count)))
            }
            Function::Median => self.median(operands),
            Function::Gcd | Function::Lcm => self.common(function, &operands),
            Function::Mod => match <[Real; 2]>::try_from(operands) {
                Ok([left, right]) => self.binary(Operator::Modulo, left, right),
                Err(_) => Err(Reason::NotUnderstood),
            },
            Function::Round => self.round(&operands),
            Function::Log => match operands.as_slice() {
                [operand] => self.log_without_base(operand),
                [operand, base] => self.log(operand, base),
                _ => Err(Reason::NotUnderstood),
            },
            Function::Sqrt
            | Function::Cbrt
            | Function::Abs
            | Function::Floor
            | Function::Ceil
            | Function::Factorial
            | Function::Exp
            | Function::Ln
            | Function::Log10
            | Function::Log2
            | Function::Sin
            | Function::Cos
            | Function::Tan => match <[Real; 1]>::try_from(operands) {
                Ok([operand]) => self.apply_to_one(function, operand),
                Err(_) => Err(Reason::NotUnderstood),
            },
        }
    }

    fn apply_to_one(&mut self, function: Function, operand: Real) -> Result<Real, Reason> {
        match function {
            Function::Sqrt => self.sqrt(&operand),
            Function::Cbrt => self.cbrt(operand),
            Function::Abs => self.abs(operand),
            Function::Floor => self.floor(&operand).map(|floor| Real::Exact(Value::integer(floor))),
            Function::Ceil => {
                let below = self.negate(operand)?;
                let floor = self.floor(&below)?;
                Ok(Real::Exact(Value::integer(floor).negated()))
            }
            Function::Factorial => self.factorial(&operand),
            Function::Exp => match operand {
                Real::Exact(exponent) => Ok(Real::exp(exponent)),
                Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => {
                    self.enclose(&operand).and_then(|bounds| self.fixed().exp(&bounds)).map(Real::Between)
                }
            },
            Function::Ln => self.ln(&operand),
            Function::Log10 => self.log(&operand, &Real::Exact(Value::small(10))),
            Function::Log2 => self.log(&operand, &Real::Exact(Value::small(2))),
            Function::Sin => match self.sine(&operand, false)? {
                Some(value) => Ok(Real::Exact(value)),
                None => self.enclose(&operand).and_then(|bounds| self.fixed().sin(&bounds)).map(Real::Between),
            },
            Function::Cos => match self.sine(&operand, true)? {
                Some(value) => Ok(Real::Exact(value)),
                None => self.enclose(&operand).and_then(|bounds| self.fixed().cos(&bounds)).map(Real::Between),
            },
            Function::Tan => self.tan(&operand),
            Function::Min
            | Function::Max
            | Function::Sum
            | Function::Mean
            | Function::Median
            | Function::Round
            | Function::Gcd
            | Function::Lcm
            | Function::Mod
            | Function::Log => Err(Reason::NotUnderstood),
        }
    }

    fn sum(&mut self, operands: Vec<Real>) -> Result<Real, Reason> {
        let mut sum = Real::Exact(Value::small(0));
        for operand in operands {
            sum = self.add(sum, operand)?;
        }
        Ok(sum)
    }

    /// The least or the greatest. Where two cannot be told apart, what bounds both bounds the result.
    fn extreme(&mut self, operands: Vec<Real>, wanted: Ordering) -> Result<Real, Reason> {
        let mut operands = operands.into_iter();
        let mut extreme = operands.next().ok_or(Reason::NotUnderstood)?;
        for operand in operands {
            extreme = match self.compare(&operand, &extreme) {
                Ok(order) if order == wanted => operand,
                Ok(_) => extreme,
                Err(Reason::Inseparable) => {
                    let (one, other) = (self.enclose(&operand)?, self.enclose(&extreme)?);
                    Real::Between(match wanted {
                        Ordering::Less => Interval { low: one.low.min(other.low), high: one.high.min(other.high) },
                        Ordering::Greater | Ordering::Equal => {
                            Interval { low: one.low.max(other.low), high: one.high.max(other.high) }
                        }
                    })
                }
                Err(reason) => return Err(reason),
            };
        }
        Ok(extreme)
    }

    fn median(&mut self, operands: Vec<Real>) -> Result<Real, Reason> {
        // Sorted by inserting: the lists are short, and the order may turn out not to be known.
        let mut sorted: Vec<Real> = Vec::with_capacity(operands.len());
        for operand in operands {
            let (mut low, mut high) = (0_usize, sorted.len());
            while low < high {
                let middle = low.midpoint(high);
                let other = sorted.get(middle).ok_or(Reason::NotUnderstood)?.clone();
                self.fuel.spend_work(8)?;
                match self.compare(&other, &operand)? {
                    Ordering::Less | Ordering::Equal => low = middle.saturating_add(1),
                    Ordering::Greater => high = middle,
                }
            }
            sorted.insert(low, operand);
        }
        let half = sorted.len() >> 1;
        let upper = sorted.get(half).ok_or(Reason::NotUnderstood)?.clone();
        if sorted.len().is_odd() {
            return Ok(upper);
        }
        let lower = half.checked_sub(1).and_then(|index| sorted.get(index)).ok_or(Reason::NotUnderstood)?.clone();
        let sum = self.add(lower, upper)?;
        self.divide(sum, Real::Exact(Value::small(2)))
    }

    fn common(&mut self, function: Function, operands: &[Real]) -> Result<Real, Reason> {
        let mut common = if function == Function::Gcd { BigInt::zero() } else { BigInt::one() };
        for operand in operands {
            let number = match operand {
                Real::Exact(value) if value.is_integer() => value.clone().magnitude().numer(),
                Real::Exact(_) | Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => {
                    return Err(Reason::NotUnderstood);
                }
            };
            let divisor = gcd(&common, &number, self.fuel)?;
            common = if function == Function::Gcd {
                divisor
            } else if number.is_zero() {
                number
            } else {
                times(&quotient(&common, &divisor, self.fuel)?, &number, self.fuel)?
            };
        }
        Ok(Real::Exact(Value::integer(common)))
    }

    /// To an integer, or to so many digits after the point.
    fn round(&mut self, operands: &[Real]) -> Result<Real, Reason> {
        let (operand, places) = match operands {
            [operand] => (operand, 0),
            [operand, Real::Exact(places)] => (operand, places.to_small().ok_or(Reason::NotUnderstood)?),
            _ => return Err(Reason::NotUnderstood),
        };
        if places.unsigned_abs() > u64::from(ROUNDING_DIGITS_MAX) {
            return Err(Reason::Limit(Limit::ValueBits));
        }
        let (up, even) = rounded(self, operand, places)?;
        if up == even { Ok(Real::Exact(up)) } else { Err(Reason::Tie) }
    }

    fn abs(&mut self, operand: Real) -> Result<Real, Reason> {
        Ok(match operand {
            Real::Exact(value) => Real::Exact(value.magnitude()),
            Real::Pi(factor) => Real::Pi(factor.magnitude()),
            Real::Exp(exponent) => Real::Exp(exponent),
            Real::Root { square, .. } => Real::Root { negative: false, square },
            Real::Between(bounds) if bounds.is_negative() => Real::Between(bounds.negated()),
            Real::Between(bounds) if bounds.is_positive() => Real::Between(bounds),
            Real::Between(bounds) => {
                let other = bounds.clone().negated();
                Real::Between(Interval { low: BigInt::zero(), high: bounds.high.max(other.high) })
            }
        })
    }

    fn sqrt(&mut self, operand: &Real) -> Result<Real, Reason> {
        match operand {
            Real::Exact(value) if value.is_negative() => Err(Reason::Domain),
            Real::Exact(value) => self.root(false, value.clone()),
            Real::Exp(exponent) => exponent.divide(&Value::small(2), self.fuel).map(Real::Exp),
            Real::Pi(_) | Real::Root { .. } | Real::Between(_) => {
                self.enclose(operand).and_then(|bounds| self.fixed().sqrt(&bounds)).map(Real::Between)
            }
        }
    }

    /// The real root: of a negative number it is negative, and nobody means another one.
    fn cbrt(&mut self, operand: Real) -> Result<Real, Reason> {
        let third = Real::Exact(Value::small(1).divide(&Value::small(3), self.fuel)?);
        let negative = match &operand {
            Real::Exact(value) => value.is_negative(),
            Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => self.enclose(&operand)?.is_negative(),
        };
        if !negative {
            return self.binary(Operator::Power, operand, third);
        }
        let operand = self.negate(operand)?;
        let root = self.binary(Operator::Power, operand, third)?;
        self.negate(root)
    }

    fn factorial(&mut self, operand: &Real) -> Result<Real, Reason> {
        let number = match operand {
            Real::Exact(value) if value.is_integer() && !value.is_negative() => value.numer(),
            Real::Exact(_) => return Err(Reason::Domain),
            Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => return Err(Reason::NotUnderstood),
        };
        // From 2 on, every factor has at least one bit more than a power of two: `n!` has more than `n - 1` bits.
        let number = number.to_u64().filter(|number| *number <= VALUE_BITS_MAX);
        let number = number.ok_or(Reason::Limit(Limit::ValueBits))?;
        let bits = number.saturating_mul(u64::from(number.max(1).ilog2()).saturating_sub(1));
        check_bits(bits)?;
        let mut product = BigInt::one();
        for factor in 2..=number {
            product = times(&product, &BigInt::from(factor), self.fuel)?;
        }
        Ok(Real::Exact(Value::integer(product)))
    }

    fn ln(&mut self, operand: &Real) -> Result<Real, Reason> {
        match operand {
            Real::Exact(value) if value.is_zero() || value.is_negative() => Err(Reason::Domain),
            Real::Exact(value) if value.is_one() => Ok(Real::Exact(Value::small(0))),
            Real::Exp(exponent) => Ok(Real::Exact(exponent.clone())),
            Real::Exact(_) | Real::Pi(_) | Real::Root { .. } | Real::Between(_) => {
                self.enclose(operand).and_then(|bounds| self.fixed().ln(&bounds)).map(Real::Between)
            }
        }
    }

    /// The base is ten to some readers and e to others. What bounds both logarithms is what is known of it; of one,
    /// both are zero.
    fn log_without_base(&mut self, operand: &Real) -> Result<Real, Reason> {
        let natural = self.ln(operand)?;
        if matches!(&natural, Real::Exact(zero) if zero.is_zero()) {
            return Ok(natural);
        }
        let common = self.log(operand, &Real::Exact(Value::small(10)))?;
        let (one, other) = (self.enclose(&natural)?, self.enclose(&common)?);
        Ok(Real::Between(Interval { low: one.low.min(other.low), high: one.high.max(other.high) }))
    }

    fn log(&mut self, operand: &Real, base: &Real) -> Result<Real, Reason> {
        let numer = self.ln(operand)?;
        let denom = self.ln(base)?;
        if let Real::Exact(zero) = &denom
            && zero.is_zero()
        {
            return Err(Reason::Domain);
        }
        let ratio = self.divide(numer, denom)?;
        if let (Real::Exact(operand), Real::Exact(base), Real::Between(bounds)) = (operand, base, &ratio)
            && let Some(exact) = self.rational_logarithm(operand, base, bounds)?
        {
            return Ok(Real::Exact(exact));
        }
        Ok(ratio)
    }

    /// The fraction with a small denominator between the bounds, if the base to its power is the operand.
    fn rational_logarithm(
        &mut self,
        operand: &Value,
        base: &Value,
        bounds: &Interval,
    ) -> Result<Option<Value>, Reason> {
        for denom in 1..=LOGARITHM_DENOM_MAX {
            let factor = Value::small(i64::from(denom));
            let (low, high) = self.fixed().bounds(bounds)?;
            let ceiling = low.multiply(&factor, self.fuel)?.negated().floor(self.fuel)?;
            let numer = Value::integer(ceiling).negated();
            if numer.compare(&high.multiply(&factor, self.fuel)?, self.fuel)? == Ordering::Greater {
                continue;
            }
            // Too large a power is no proof of anything: the bounds stay.
            match (base.power(&numer, self.fuel), operand.power(&factor, self.fuel)) {
                (Ok(left), Ok(right)) if left == right => return numer.divide(&factor, self.fuel).map(Some),
                (Ok(_), Ok(_))
                | (Err(Reason::Limit(Limit::ValueBits)), _)
                | (_, Err(Reason::Limit(Limit::ValueBits))) => {}
                (Err(reason), _) | (_, Err(reason)) => return Err(reason),
            }
        }
        Ok(None)
    }

    fn tan(&mut self, operand: &Real) -> Result<Real, Reason> {
        let (sin, cos) = (self.sine(operand, false)?, self.sine(operand, true)?);
        if cos.as_ref().is_some_and(Value::is_zero) {
            return Err(Reason::Domain);
        }
        if let (Some(sin), Some(cos)) = (sin, cos) {
            return sin.divide(&cos, self.fuel).map(Real::Exact);
        }
        if let Real::Pi(turns) = operand {
            // A quarter of pi and every half from there.
            let quarters = turns.multiply(&Value::small(4), self.fuel)?;
            match quarters.is_integer().then(|| quarters.numer().mod_floor(&BigInt::from(4)).to_u32()).flatten() {
                Some(1) => return Ok(Real::Exact(Value::small(1))),
                Some(3) => return Ok(Real::Exact(Value::small(-1))),
                Some(_) | None => {}
            }
        }
        let bounds = self.enclose(operand)?;
        let mut fixed = self.fixed();
        let (sin, cos) = fixed.sin_and_cos(&bounds)?;
        fixed.divide(&sin, &cos).map(Real::Between)
    }

    /// The sine, or the cosine, where it is rational: of zero and of multiples of a sixth of pi.
    fn sine(&mut self, operand: &Real, co: bool) -> Result<Option<Value>, Reason> {
        let turns = match operand {
            Real::Exact(zero) if zero.is_zero() => Value::small(0),
            Real::Pi(turns) => turns.clone(),
            Real::Exact(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => return Ok(None),
        };
        let sixths = turns.multiply(&Value::small(6), self.fuel)?;
        let sixths = if co { sixths.add(&Value::small(3), self.fuel)? } else { sixths };
        let mut half = |sign: i64| Value::small(sign).divide(&Value::small(2), self.fuel).map(Some);
        match sixths.is_integer().then(|| sixths.numer().mod_floor(&BigInt::from(12)).to_u32()).flatten() {
            Some(0 | 6) => Ok(Some(Value::small(0))),
            Some(1 | 5) => half(1),
            Some(3) => Ok(Some(Value::small(1))),
            Some(7 | 11) => half(-1),
            Some(9) => Ok(Some(Value::small(-1))),
            Some(_) | None => Ok(None),
        }
    }
}
