//! Polynomials in several unknowns with integers for coefficients, and ratios of them: the normal form of an identity.
//!
//! A polynomial is zero exactly if it has no terms, so two ratios are the same function exactly if the difference of
//! their cross products has none. Terms are counted and their products paid before they are computed.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

use super::big::{gcd, negated, plus, quotient, times};
use super::limits::{Fuel, Limit, TERMS_MAX};
use super::no_value::Reason;
use super::value::Value;

/// Which unknowns, in order, and how often each; none with the exponent zero.
type Monomial = Vec<(u32, u32)>;

/// What a term costs besides its arithmetic, in units of work: finding its place takes far longer than adding it.
const TERM_WORK: u64 = 4_096;

/// A polynomial.
// Invariant: no coefficient is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Poly {
    terms: BTreeMap<Monomial, BigInt>,
}

/// A ratio of polynomials.
// Invariant: the denominator is not zero.
#[derive(Debug, Clone)]
pub(super) struct Ratio {
    pub(super) numer: Poly,
    pub(super) denom: Poly,
}

impl Poly {
    pub(super) fn constant(number: BigInt) -> Poly {
        let terms = if number.is_zero() { BTreeMap::new() } else { BTreeMap::from([(Monomial::new(), number)]) };
        Poly { terms }
    }

    pub(super) fn unknown(index: u32) -> Poly {
        Poly { terms: BTreeMap::from([(vec![(index, 1)], BigInt::one())]) }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    fn is_one(&self) -> bool {
        self.terms.len() == 1
            && self.terms.first_key_value().is_some_and(|(monomial, one)| monomial.is_empty() && one.is_one())
    }

    /// The number it is, if no unknown is left in it.
    pub(super) fn as_constant(&self) -> Option<BigInt> {
        match self.terms.len() {
            0 => Some(BigInt::zero()),
            1 => self.terms.get(&Monomial::new()).cloned(),
            _ => None,
        }
    }

    /// The coefficient of each unknown and the number without one, if no term is of a higher degree.
    pub(super) fn as_linear(&self) -> Option<(BTreeMap<u32, BigInt>, BigInt)> {
        let mut coefficients = BTreeMap::new();
        let mut number = BigInt::zero();
        for (monomial, coefficient) in &self.terms {
            match monomial.as_slice() {
                [] => number = coefficient.clone(),
                [(index, 1)] => drop(coefficients.insert(*index, coefficient.clone())),
                _ => return None,
            }
        }
        Some((coefficients, number))
    }

    fn add(mut self, other: &Poly, fuel: &mut Fuel) -> Result<Poly, Reason> {
        for (monomial, coefficient) in &other.terms {
            self.add_term(monomial.clone(), coefficient, fuel)?;
        }
        Ok(self)
    }

    fn add_term(&mut self, monomial: Monomial, coefficient: &BigInt, fuel: &mut Fuel) -> Result<(), Reason> {
        fuel.spend_work(TERM_WORK)?;
        let sum = match self.terms.get(&monomial) {
            Some(known) => plus(known, coefficient, fuel)?,
            None => coefficient.clone(),
        };
        if sum.is_zero() {
            self.terms.remove(&monomial);
        } else {
            self.terms.insert(monomial, sum);
        }
        if self.terms.len() > TERMS_MAX { Err(Reason::Limit(Limit::Terms)) } else { Ok(()) }
    }

    pub(super) fn negated(self) -> Poly {
        let terms = self.terms.into_iter().map(|(monomial, coefficient)| (monomial, negated(coefficient)));
        Poly { terms: terms.collect() }
    }

    fn multiply(&self, other: &Poly, fuel: &mut Fuel) -> Result<Poly, Reason> {
        let mut product = Poly { terms: BTreeMap::new() };
        for (left, left_coefficient) in &self.terms {
            for (right, right_coefficient) in &other.terms {
                let coefficient = times(left_coefficient, right_coefficient, fuel)?;
                product.add_term(joined(left, right)?, &coefficient, fuel)?;
            }
        }
        Ok(product)
    }

    fn power(&self, exponent: u32, fuel: &mut Fuel) -> Result<Poly, Reason> {
        // One term stays one term, whatever the exponent.
        if let (1, Some((monomial, coefficient))) = (self.terms.len(), self.terms.first_key_value()) {
            let coefficient = super::big::power(coefficient, &BigInt::from(exponent), fuel)?;
            let raised = |(index, power): &(u32, u32)| Some((*index, power.checked_mul(exponent)?));
            let monomial: Option<Monomial> = monomial.iter().map(raised).collect();
            let mut monomial = monomial.ok_or(Reason::Limit(Limit::ValueBits))?;
            monomial.retain(|(_, power)| *power > 0);
            return Ok(Poly { terms: BTreeMap::from([(monomial, coefficient)]) });
        }
        // Two or more terms: the power has more than `exponent` terms.
        if self.terms.len() > 1 && usize::try_from(exponent).unwrap_or(usize::MAX) >= TERMS_MAX {
            return Err(Reason::Limit(Limit::Terms));
        }
        let mut result = Poly::constant(BigInt::one());
        let mut square = self.clone();
        let mut rest = exponent;
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.multiply(&square, fuel)?;
            }
            rest >>= 1;
            if rest > 0 {
                square = square.multiply(&square, fuel)?;
            }
        }
        Ok(result)
    }

    /// The greatest common divisor of the coefficients.
    fn content(&self, fuel: &mut Fuel) -> Result<BigInt, Reason> {
        let mut content = BigInt::zero();
        for coefficient in self.terms.values() {
            content = gcd(&content, coefficient, fuel)?;
            if content.is_one() {
                break;
            }
        }
        Ok(content)
    }

    fn divided(self, divisor: &BigInt, fuel: &mut Fuel) -> Result<Poly, Reason> {
        let mut terms = BTreeMap::new();
        for (monomial, coefficient) in self.terms {
            terms.insert(monomial, quotient(&coefficient, divisor, fuel)?);
        }
        Ok(Poly { terms })
    }
}

impl Ratio {
    pub(super) fn constant(value: &Value) -> Ratio {
        Ratio { numer: Poly::constant(value.numer()), denom: Poly::constant(value.denom()) }
    }

    pub(super) fn unknown(index: u32) -> Ratio {
        Ratio { numer: Poly::unknown(index), denom: Poly::constant(BigInt::one()) }
    }

    /// The value, if it is a constant.
    pub(super) fn as_value(&self, fuel: &mut Fuel) -> Result<Option<Value>, Reason> {
        match (self.numer.as_constant(), self.denom.as_constant()) {
            (Some(numer), Some(denom)) => Value::integer(numer).divide(&Value::integer(denom), fuel).map(Some),
            (Some(_) | None, None) | (None, Some(_)) => Ok(None),
        }
    }

    pub(super) fn negated(self) -> Ratio {
        Ratio { numer: self.numer.negated(), denom: self.denom }
    }

    pub(super) fn add(self, other: &Ratio, fuel: &mut Fuel) -> Result<Ratio, Reason> {
        if self.denom == other.denom {
            return Ratio { numer: self.numer.add(&other.numer, fuel)?, denom: self.denom }.reduced(fuel);
        }
        let left = self.numer.multiply(&other.denom, fuel)?;
        let right = other.numer.multiply(&self.denom, fuel)?;
        Ratio { numer: left.add(&right, fuel)?, denom: self.denom.multiply(&other.denom, fuel)? }.reduced(fuel)
    }

    pub(super) fn multiply(&self, other: &Ratio, fuel: &mut Fuel) -> Result<Ratio, Reason> {
        let numer = self.numer.multiply(&other.numer, fuel)?;
        let denom = if self.denom.is_one() { other.denom.clone() } else { self.denom.multiply(&other.denom, fuel)? };
        Ratio { numer, denom }.reduced(fuel)
    }

    pub(super) fn reciprocal(self) -> Result<Ratio, Reason> {
        if self.numer.is_zero() {
            return Err(Reason::DivisionByZero);
        }
        Ok(Ratio { numer: self.denom, denom: self.numer })
    }

    pub(super) fn power(self, exponent: i64, fuel: &mut Fuel) -> Result<Ratio, Reason> {
        let size = u32::try_from(exponent.unsigned_abs()).map_err(|_| Reason::Limit(Limit::Terms))?;
        let base = if exponent < 0 { self.reciprocal()? } else { self };
        Ratio { numer: base.numer.power(size, fuel)?, denom: base.denom.power(size, fuel)? }.reduced(fuel)
    }

    /// Without a common factor of all coefficients. Common factors with unknowns stay; nothing rests on them.
    fn reduced(self, fuel: &mut Fuel) -> Result<Ratio, Reason> {
        if self.numer.is_zero() {
            return Ok(Ratio { numer: self.numer, denom: Poly::constant(BigInt::one()) });
        }
        if self.denom.is_one() {
            return Ok(self);
        }
        let mut common = gcd(&self.numer.content(fuel)?, &self.denom.content(fuel)?, fuel)?;
        if self.denom.as_constant().is_some_and(|denom| denom.is_negative()) {
            common = negated(common);
        }
        if common.is_one() {
            return Ok(self);
        }
        Ok(Ratio { numer: self.numer.divided(&common, fuel)?, denom: self.denom.divided(&common, fuel)? })
    }
}

/// The product of two monomials.
fn joined(left: &Monomial, right: &Monomial) -> Result<Monomial, Reason> {
    let mut product = left.clone();
    for (index, power) in right {
        match product.binary_search_by_key(index, |(index, _)| *index) {
            Ok(found) => {
                if let Some((_, sum)) = product.get_mut(found) {
                    *sum = sum.checked_add(*power).ok_or(Reason::Limit(Limit::ValueBits))?;
                }
            }
            Err(place) => product.insert(place, (*index, *power)),
        }
    }
    Ok(product)
}
