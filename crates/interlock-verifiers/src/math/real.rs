//! Real numbers: exact where they are rational or of a simple kind, between bounds where they are not.
//!
//! Multiples of pi, powers of e and square roots keep their exact form as long as nothing else is done with them, so
//! that `sin(pi/6) = 1/2`, `ln(e^2) = 2` and `sqrt(2) * sqrt(8) = 4` are decided. All else is an interval.

use core::cmp::Ordering;
use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::claim::{Domain, Operator};
use super::interval::{Fixed, Interval};
use super::lex::{Literal, Relation};
use super::limits::{Fuel, Limit};
use super::no_value::Reason;
use super::value::Value;
use super::vocabulary::{Constant, Function};

/// A real number.
#[derive(Debug, Clone)]
pub(super) enum Real {
    Exact(Value),
    /// So many times pi; not zero.
    Pi(Value),
    /// e to that power; not to the power of zero.
    Exp(Value),
    /// The square root of a value that has no rational one, or its negative.
    Root {
        negative: bool,
        square: Value,
    },
    Between(Interval),
}

/// The domain of real numbers, with so many bits after the point where there is no exact form.
pub(super) struct Reals<'f> {
    pub(super) fuel: &'f mut Fuel,
    pub(super) bits: u32,
    /// What the unknowns stand for.
    pub(super) point: &'f BTreeMap<String, Value>,
}

impl Domain for Reals<'_> {
    type Value = Real;

    fn number(&mut self, literal: &Literal<'_>) -> Result<Real, Reason> {
        Value::of(literal, self.fuel).map(Real::Exact)
    }

    fn constant(&mut self, constant: Constant) -> Result<Real, Reason> {
        Ok(match constant {
            Constant::Pi => Real::Pi(Value::small(1)),
            Constant::E => Real::Exp(Value::small(1)),
        })
    }

    fn variable(&mut self, name: &str) -> Result<Real, Reason> {
        self.point.get(name).cloned().map(Real::Exact).ok_or(Reason::NotUnderstood)
    }

    fn negate(&mut self, operand: Real) -> Result<Real, Reason> {
        Ok(match operand {
            Real::Exact(value) => Real::Exact(value.negated()),
            Real::Pi(factor) => Real::Pi(factor.negated()),
            Real::Root { negative, square } => Real::Root { negative: !negative, square },
            Real::Between(interval) => Real::Between(interval.negated()),
            Real::Exp(_) => Real::Between(self.enclose(&operand)?.negated()),
        })
    }

    fn binary(&mut self, operator: Operator, left: Real, right: Real) -> Result<Real, Reason> {
        if let (Real::Exact(left), Real::Exact(right)) = (&left, &right) {
            return match operator {
                Operator::Power if !right.is_integer() => self.fractional_power(left, right),
                Operator::Add
                | Operator::Subtract
                | Operator::Multiply
                | Operator::Divide
                | Operator::FloorDivide
                | Operator::Modulo
                | Operator::Power => Value::binary(operator, left, right, self.fuel).map(Real::Exact),
            };
        }
        match operator {
            Operator::Add => self.add(left, right),
            Operator::Subtract => {
                let right = self.negate(right)?;
                self.add(left, right)
            }
            Operator::Multiply => self.multiply(left, right),
            Operator::Divide => self.divide(left, right),
            Operator::FloorDivide => {
                let ratio = self.divide(left, right)?;
                self.floor(&ratio).map(|floor| Real::Exact(Value::integer(floor)))
            }
            Operator::Modulo => {
                let ratio = self.divide(left.clone(), right.clone())?;
                let whole = Real::Exact(Value::integer(self.floor(&ratio)?));
                let whole = self.multiply(whole, right)?;
                let whole = self.negate(whole)?;
                self.add(left, whole)
            }
            Operator::Power => self.power(left, right),
        }
    }

    fn call(&mut self, function: Function, operands: Vec<Real>) -> Result<Real, Reason> {
        self.apply(function, operands)
    }
}

impl Reals<'_> {
    pub(super) fn fixed(&mut self) -> Fixed<'_> {
        Fixed { bits: self.bits, fuel: self.fuel }
    }

    /// Bounds of a number.
    pub(super) fn enclose(&mut self, real: &Real) -> Result<Interval, Reason> {
        match real {
            Real::Exact(value) => self.fixed().exactly(value),
            Real::Between(interval) => Ok(interval.clone()),
            Real::Pi(factor) => {
                let mut fixed = self.fixed();
                let pi = fixed.pi()?;
                let factor = fixed.exactly(factor)?;
                fixed.multiply(&pi, &factor)
            }
            Real::Exp(exponent) => {
                let mut fixed = self.fixed();
                let exponent = fixed.exactly(exponent)?;
                fixed.exp(&exponent)
            }
            Real::Root { negative, square } => {
                let mut fixed = self.fixed();
                let square = fixed.exactly(square)?;
                let root = fixed.sqrt(&square)?;
                Ok(if *negative { root.negated() } else { root })
            }
        }
    }

    /// The order of two numbers, if it can be told.
    pub(super) fn compare(&mut self, left: &Real, right: &Real) -> Result<Ordering, Reason> {
        match (left, right) {
            (Real::Exact(left), Real::Exact(right))
            | (Real::Pi(left), Real::Pi(right))
            | (Real::Exp(left), Real::Exp(right)) => left.compare(right, self.fuel),
            (Real::Root { negative: false, square: left }, Real::Root { negative: false, square: right })
            | (Real::Root { negative: true, square: right }, Real::Root { negative: true, square: left }) => {
                left.compare(right, self.fuel)
            }
            _ => {
                let (left, right) = (self.enclose(left)?, self.enclose(right)?);
                Fixed::order(&left, &right).ok_or(Reason::Inseparable)
            }
        }
    }

    /// Whether two numbers relate so.
    pub(super) fn holds(&mut self, relation: Relation, left: &Real, right: &Real) -> Result<bool, Reason> {
        if let (Real::Exact(left), Real::Exact(right)) = (left, right) {
            match relation {
                Relation::Equal => return Ok(left == right),
                Relation::NotEqual => return Ok(left != right),
                Relation::Less
                | Relation::LessOrEqual
                | Relation::Greater
                | Relation::GreaterOrEqual
                | Relation::Approximate => {}
            }
        }
        let order = self.compare(left, right)?;
        Ok(match relation {
            Relation::Equal => order == Ordering::Equal,
            Relation::NotEqual => order != Ordering::Equal,
            Relation::Less => order == Ordering::Less,
            Relation::LessOrEqual => order != Ordering::Greater,
            Relation::Greater => order == Ordering::Greater,
            Relation::GreaterOrEqual => order != Ordering::Less,
            Relation::Approximate => return Err(Reason::NoDigits),
        })
    }

    /// The integer below, where the bounds agree on it.
    pub(super) fn floor(&mut self, real: &Real) -> Result<BigInt, Reason> {
        if let Real::Exact(value) = real {
            return value.floor(self.fuel);
        }
        let interval = self.enclose(real)?;
        self.fixed().floor(&interval)
    }

    pub(super) fn add(&mut self, left: Real, right: Real) -> Result<Real, Reason> {
        match (left, right) {
            (Real::Exact(left), Real::Exact(right)) => left.add(&right, self.fuel).map(Real::Exact),
            (Real::Exact(zero), other) | (other, Real::Exact(zero)) if zero.is_zero() => Ok(other),
            (Real::Pi(left), Real::Pi(right)) => Ok(Real::pi(left.add(&right, self.fuel)?)),
            (Real::Root { negative, square }, Real::Root { negative: other_negative, square: other }) => {
                // √8 + √2 is (2 + 1) √2.
                let Some(ratio) = square.divide(&other, self.fuel)?.root(2, self.fuel)? else {
                    let left = Real::Root { negative, square };
                    return self.add_bounds(&left, &Real::Root { negative: other_negative, square: other });
                };
                let signed = |negative: bool, value: Value| if negative { value.negated() } else { value };
                let factor = signed(negative, ratio).add(&signed(other_negative, Value::small(1)), self.fuel)?;
                self.multiply(Real::Exact(factor), Real::Root { negative: false, square: other })
            }
            (left, right) => self.add_bounds(&left, &right),
        }
    }

    fn add_bounds(&mut self, left: &Real, right: &Real) -> Result<Real, Reason> {
        let (left, right) = (self.enclose(left)?, self.enclose(right)?);
        Ok(Real::Between(self.fixed().add(&left, &right)))
    }

    pub(super) fn multiply(&mut self, left: Real, right: Real) -> Result<Real, Reason> {
        match (left, right) {
            (Real::Exact(left), Real::Exact(right)) => left.multiply(&right, self.fuel).map(Real::Exact),
            (Real::Exact(zero), _) | (_, Real::Exact(zero)) if zero.is_zero() => Ok(Real::Exact(zero)),
            (Real::Exact(one), other) | (other, Real::Exact(one)) if one.is_one() => Ok(other),
            (Real::Exact(factor), Real::Pi(pi)) | (Real::Pi(pi), Real::Exact(factor)) => {
                Ok(Real::pi(pi.multiply(&factor, self.fuel)?))
            }
            (Real::Exp(left), Real::Exp(right)) => Ok(Real::exp(left.add(&right, self.fuel)?)),
            (Real::Exact(factor), Real::Root { negative, square })
            | (Real::Root { negative, square }, Real::Exact(factor)) => {
                let square = factor.multiply(&factor, self.fuel)?.multiply(&square, self.fuel)?;
                self.root(negative != factor.is_negative(), square)
            }
            (Real::Root { negative, square }, Real::Root { negative: other_negative, square: other }) => {
                let square = square.multiply(&other, self.fuel)?;
                self.root(negative != other_negative, square)
            }
            (left, right) => {
                let (left, right) = (self.enclose(&left)?, self.enclose(&right)?);
                self.fixed().multiply(&left, &right).map(Real::Between)
            }
        }
    }

    pub(super) fn divide(&mut self, left: Real, right: Real) -> Result<Real, Reason> {
        match (left, right) {
            (left, Real::Exact(right)) => self.multiply(left, Real::Exact(right.reciprocal()?)),
            (Real::Pi(left), Real::Pi(right)) => left.divide(&right, self.fuel).map(Real::Exact),
            (left, Real::Exp(right)) => self.multiply(left, Real::Exp(right.negated())),
            (left, Real::Root { negative, square }) => {
                let square = square.reciprocal()?;
                self.multiply(left, Real::Root { negative, square })
            }
            (left, right) => {
                let (left, right) = (self.enclose(&left)?, self.enclose(&right)?);
                self.fixed().divide(&left, &right).map(Real::Between)
            }
        }
    }

    fn power(&mut self, base: Real, exponent: Real) -> Result<Real, Reason> {
        match (base, exponent) {
            (Real::Exp(base), Real::Exact(exponent)) => Ok(Real::exp(base.multiply(&exponent, self.fuel)?)),
            (Real::Exact(base), _) if base.is_one() => Ok(Real::Exact(base)),
            (Real::Root { negative, square }, Real::Exact(exponent)) if exponent.is_integer() => {
                let odd = !exponent.divide(&Value::small(2), self.fuel)?.is_integer();
                let square = square.power(&exponent, self.fuel)?;
                self.root(negative && odd, square)
            }
            (base, Real::Exact(exponent)) if exponent.is_integer() => {
                let size = exponent.numer().abs().to_u32().ok_or(Reason::Limit(Limit::ValueBits))?;
                let base = self.enclose(&base)?;
                let power = self.fixed().power(&base, size)?;
                if !exponent.is_negative() {
                    return Ok(Real::Between(power));
                }
                self.divide(Real::Exact(Value::small(1)), Real::Between(power))
            }
            // e^(k ln b) with b > 0.
            (base, exponent) => {
                let base = self.enclose(&base)?;
                if base.is_negative() {
                    return Err(Reason::RootOfNegative);
                }
                let exponent = self.enclose(&exponent)?;
                let mut fixed = self.fixed();
                let ln = match fixed.ln(&base) {
                    Err(Reason::Domain) => return Err(Reason::Inseparable),
                    ln => ln?,
                };
                let product = fixed.multiply(&ln, &exponent)?;
                fixed.exp(&product).map(Real::Between)
            }
        }
    }

    /// A power with a fraction for its exponent.
    fn fractional_power(&mut self, base: &Value, exponent: &Value) -> Result<Real, Reason> {
        if base.is_negative() {
            return Err(Reason::RootOfNegative);
        }
        if base.is_zero() {
            return if exponent.is_negative() { Err(Reason::DivisionByZero) } else { Ok(Real::Exact(base.clone())) };
        }
        if base.is_one() {
            return Ok(Real::Exact(base.clone()));
        }
        let whole = Value::integer(exponent.numer());
        let degree = exponent.denom().to_u32();
        // Where the root is rational, it is smaller than the power: taken first, it keeps numbers small.
        if let Some(degree) = degree {
            if let Some(root) = base.root(degree, self.fuel)? {
                return root.power(&whole, self.fuel).map(Real::Exact);
            }
            if degree == 2 {
                let square = base.power(&whole, self.fuel)?;
                return self.root(false, square);
            }
        }
        let (base, exponent) = (Real::Exact(base.clone()), Real::Exact(exponent.clone()));
        let (base, exponent) = (self.enclose(&base)?, self.enclose(&exponent)?);
        let mut fixed = self.fixed();
        let ln = fixed.ln(&base)?;
        let product = fixed.multiply(&ln, &exponent)?;
        fixed.exp(&product).map(Real::Between)
    }

    /// The square root of a value that is not negative, or its negative.
    pub(super) fn root(&mut self, negative: bool, square: Value) -> Result<Real, Reason> {
        Ok(match square.root(2, self.fuel)? {
            Some(root) => Real::Exact(if negative { root.negated() } else { root }),
            None => Real::Root { negative, square },
        })
    }
}

impl Real {
    pub(super) fn pi(factor: Value) -> Real {
        if factor.is_zero() { Real::Exact(factor) } else { Real::Pi(factor) }
    }

    pub(super) fn exp(exponent: Value) -> Real {
        if exponent.is_zero() { Real::Exact(Value::small(1)) } else { Real::Exp(exponent) }
    }
}
