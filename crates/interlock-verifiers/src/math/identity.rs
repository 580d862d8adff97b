//! Claims with unknowns: do they hold whatever the unknowns are?
//!
//! Both sides are brought to their normal form, a ratio of polynomials in which a function of unknowns, or an
//! irrational number, is one more unknown. Equal forms prove an equation wherever both sides have a value. Unequal
//! forms prove nothing by themselves: a point where the sides differ does.

use std::collections::BTreeMap;

use super::claim::{Claim, Domain, Expression, Operator, StepKind};
use super::lex::{Literal, Relation};
use super::limits::{Fuel, Limit, PRECISION_BITS, UNKNOWNS_MAX};
use super::no_value::{NoValue, Reason};
use super::normal::{Normal, Written};
use super::poly::Ratio;
use super::real::{Real, Reals};
use super::value::Value;
use super::vocabulary::{Constant, Function};

/// How many points are tried.
const POINTS: u64 = 24;

/// What is known of a claim with unknowns.
pub(super) enum Finding {
    /// Every relation holds wherever both sides have a value; whether there may be places where they have none.
    Holds { partial: bool },
    /// The relation with this number does not hold at a point, where the sides have these values.
    Fails { link: usize, point: BTreeMap<String, Value>, left: Real, right: Real, bits: u32 },
}

/// Looks whether a claim holds for all values of its unknowns.
pub(super) fn examine(claim: &Claim<'_>, fuel: &mut Fuel) -> Result<Finding, NoValue> {
    let mut ratios = Ratios::new(fuel);
    let mut forms = Vec::new();
    for side in claim.sides() {
        forms.push(side.fold(&mut ratios)?.ratio);
    }
    let (partial, doubtful) = (ratios.partial, ratios.doubtful);
    if defines(claim) {
        let at = claim.first.span.start;
        return Err(claim.first.refuse(Reason::Undecided, at));
    }
    let mut before = forms.first();
    for (index, link) in claim.links.iter().enumerate() {
        let form = forms.get(index.saturating_add(1));
        let at = link.side.span.start;
        let (Some(left), Some(right)) = (before, form) else {
            return Err(link.side.refuse(Reason::NotUnderstood, at));
        };
        let refuse = |reason| link.side.refuse(reason, at);
        let difference = left.clone().add(&right.clone().negated(), fuel).map_err(refuse)?;
        let constant = difference.as_value(fuel).map_err(refuse)?;
        if !constant.is_some_and(|difference| sign_fits(link.relation, &difference)) {
            return refute(claim, index, fuel);
        }
        before = form;
    }
    if doubtful || (partial && !has_value_somewhere(claim, fuel)?) {
        return Err(claim.first.refuse(Reason::Undecided, claim.first.span.start));
    }
    Ok(Finding::Holds { partial })
}

/// Looks for a point where every side has a value: an identity without one, such as
/// `sqrt(-x^2 - 1) = sqrt(-x^2 - 1)`, says nothing.
fn has_value_somewhere(claim: &Claim<'_>, fuel: &mut Fuel) -> Result<bool, NoValue> {
    let refuse = |reason| claim.first.refuse(reason, claim.first.span.start);
    let names = unknowns(claim.sides());
    for number in 0..POINTS {
        let point = point(&names, number, fuel).map_err(refuse)?;
        let mut reals = Reals { fuel, bits: 64, point: &point };
        match claim.sides().try_for_each(|side| side.fold(&mut reals).map(|_| ())) {
            Ok(()) => return Ok(true),
            Err(no_value) if no_value.reason == Reason::Limit(Limit::Work) => return Err(no_value),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// The unknowns of some sides, in order.
fn unknowns<'c, 't: 'c>(sides: impl Iterator<Item = &'c Expression<'t>>) -> Vec<&'t str> {
    let mut names = Vec::new();
    for step in sides.flat_map(|side| &side.steps) {
        if let StepKind::Variable(name) = &step.kind
            && !names.contains(name)
        {
            names.push(*name);
        }
    }
    names.sort_unstable();
    names
}

/// One of the points that are tried.
fn point(names: &[&str], number: u64, fuel: &mut Fuel) -> Result<BTreeMap<String, Value>, Reason> {
    let mut point = BTreeMap::new();
    for (name, place) in names.iter().zip(0..) {
        point.insert((*name).to_owned(), coordinate(number, place, fuel)?);
    }
    Ok(point)
}

/// Whether two expressions have the same normal form. Says nothing about whether they have a value.
pub(super) fn same(left: &Expression<'_>, right: &Expression<'_>, fuel: &mut Fuel) -> bool {
    let mut ratios = Ratios::new(fuel);
    let (Ok(left), Ok(right)) = (left.fold(&mut ratios), right.fold(&mut ratios)) else { return false };
    let difference = left.ratio.add(&right.ratio.negated(), ratios.fuel);
    difference.is_ok_and(|difference| difference.numer.is_zero())
}

/// Whether a relation holds between two sides whose difference is this, everywhere.
fn sign_fits(relation: Relation, difference: &Value) -> bool {
    match relation {
        Relation::Equal => difference.is_zero(),
        Relation::NotEqual => !difference.is_zero(),
        Relation::Less => difference.is_negative(),
        Relation::LessOrEqual => difference.is_negative() || difference.is_zero(),
        Relation::Greater => !difference.is_negative() && !difference.is_zero(),
        Relation::GreaterOrEqual => !difference.is_negative(),
        Relation::Approximate => false,
    }
}

/// `y = 2x + 1` and `x = 5` say what a letter stands for; there is nothing to check.
fn defines(claim: &Claim<'_>) -> bool {
    let sides: Vec<_> = claim.sides().collect();
    let [left, right] = sides.as_slice() else { return false };
    let occurs = |name: &str, side: &Expression<'_>| {
        side.steps.iter().any(|step| matches!(&step.kind, StepKind::Variable(found) if *found == name))
    };
    let lone = |one: &Expression<'_>, other: &Expression<'_>| {
        let [step] = one.steps.as_slice() else { return false };
        matches!(step.kind, StepKind::Variable(name) if !occurs(name, other))
    };
    lone(left, right) || lone(right, left)
}

/// Looks for a point where an equation does not hold. Only equations: `x > 3` is said of some x, not of all.
fn refute(claim: &Claim<'_>, index: usize, fuel: &mut Fuel) -> Result<Finding, NoValue> {
    let Some(link) = claim.links.get(index) else {
        return Err(claim.first.refuse(Reason::NotUnderstood, claim.first.span.start));
    };
    let undecided = link.side.refuse(Reason::Undecided, link.side.span.start);
    let left = match index.checked_sub(1) {
        None => Some(&claim.first),
        Some(before) => claim.links.get(before).map(|link| &link.side),
    };
    let Some(left) = left.filter(|_| link.relation == Relation::Equal) else { return Err(undecided) };
    let names = unknowns([left, &link.side].into_iter());
    for number in 0..POINTS {
        let point = point(&names, number, fuel).map_err(|reason| link.side.refuse(reason, link.side.span.start))?;
        for bits in PRECISION_BITS.into_iter().take(2) {
            let mut reals = Reals { fuel, bits, point: &point };
            let sides = left.fold(&mut reals).and_then(|left| Ok((left, link.side.fold(&mut reals)?)));
            let (one, other) = match sides {
                Ok(sides) => sides,
                // Out of fuel is the end. No value here, or none that is known: another point may do.
                Err(no_value) if no_value.reason == Reason::Limit(Limit::Work) => return Err(no_value),
                Err(_) => break,
            };
            match reals.holds(Relation::Equal, &one, &other) {
                Ok(false) => return Ok(Finding::Fails { link: index, point, left: one, right: other, bits }),
                Ok(true) => break,
                Err(Reason::Inseparable) => {}
                Err(reason) => return Err(link.side.refuse(reason, link.side.span.start)),
            }
        }
    }
    Err(undecided)
}

/// One coordinate of the points that are tried: small integers first, then ever larger fractions.
fn coordinate(number: u64, place: u64, fuel: &mut Fuel) -> Result<Value, Reason> {
    const PRIMES: [i64; 8] = [2, 3, 5, 7, 11, 13, 17, 19];
    let step = i64::try_from(place).unwrap_or(i64::MAX);
    let prime = |offset: u64| {
        let index = usize::try_from(place.wrapping_add(offset) & 7).unwrap_or(0);
        PRIMES.get(index).copied().unwrap_or(2).saturating_add(step >> 3)
    };
    match number {
        0 => Ok(Value::small(1)),
        1 => Ok(Value::small(step.saturating_add(1))),
        2 => Ok(Value::small(prime(0))),
        3 => Ok(Value::small(prime(0).saturating_neg())),
        4 => Ok(Value::small(0)),
        5 => Ok(Value::small(-1)),
        6 => Value::small(1).divide(&Value::small(prime(0)), fuel),
        _ => {
            // Any spread will do: a polynomial that is not zero has few zeros among so many points.
            let spread = number.wrapping_mul(2_654_435_761).wrapping_add(place.wrapping_mul(40_503)) >> 3 & 1_023;
            let numer = i64::try_from(spread).unwrap_or(1).saturating_sub(512);
            Value::small(numer).divide(&Value::small(prime(number)), fuel)
        }
    }
}

/// The domain of normal forms.
pub(super) struct Ratios<'f> {
    pub(super) fuel: &'f mut Fuel,
    /// The unknowns, and the texts that stand for one.
    pub(super) names: Vec<String>,
    /// Whether there may be places without a value: a divisor or a function with unknowns in it.
    pub(super) partial: bool,
    /// Whether a divisor holds a function that stands for an unknown: it may be zero everywhere, and the form would not
    /// show it.
    doubtful: bool,
}

/// A normal form with the text it comes from.
pub(super) struct Form {
    pub(super) ratio: Ratio,
    written: Written,
    /// Whether a function that stands for an unknown is in it.
    opaque: bool,
}

impl Domain for Ratios<'_> {
    type Value = Form;

    fn number(&mut self, literal: &Literal<'_>) -> Result<Form, Reason> {
        let ratio = Ratio::constant(&Value::of(literal, self.fuel)?);
        Ok(Form { ratio, written: Normal.number(literal)?, opaque: false })
    }

    fn constant(&mut self, constant: Constant) -> Result<Form, Reason> {
        self.unknown(Normal.constant(constant)?)
    }

    fn variable(&mut self, name: &str) -> Result<Form, Reason> {
        self.unknown(Normal.variable(name)?)
    }

    fn negate(&mut self, operand: Form) -> Result<Form, Reason> {
        Ok(Form { ratio: operand.ratio.negated(), written: Normal.negate(operand.written)?, opaque: operand.opaque })
    }

    fn binary(&mut self, operator: Operator, left: Form, right: Form) -> Result<Form, Reason> {
        let opaque = left.opaque || right.opaque;
        let (left_opaque, right_opaque) = (left.opaque, right.opaque);
        let (one, other) = (left.ratio, right.ratio);
        let values = (one.as_value(self.fuel)?, other.as_value(self.fuel)?);
        let written = Normal.binary(operator, left.written, right.written)?;
        let inverts = operator == Operator::Divide
            || (operator == Operator::Power && values.1.as_ref().is_none_or(Value::is_negative));
        let inverted = if operator == Operator::Divide { &values.1 } else { &values.0 };
        let whole = matches!(operator, Operator::FloorDivide | Operator::Modulo);
        if whole && values.1.as_ref().is_some_and(Value::is_zero) {
            return Err(Reason::DivisionByZero);
        }
        let divisor_opaque = if operator == Operator::Power { left_opaque } else { right_opaque };
        self.doubtful |= (inverts || whole) && divisor_opaque;
        self.partial |= (inverts && inverted.is_none()) || (whole && (values.0.is_none() || values.1.is_none()));
        let ratio = match operator {
            Operator::Add => one.add(&other, self.fuel)?,
            Operator::Subtract => one.add(&other.negated(), self.fuel)?,
            Operator::Multiply => one.multiply(&other, self.fuel)?,
            Operator::Divide => one.multiply(&other.reciprocal()?, self.fuel)?,
            Operator::FloorDivide | Operator::Modulo | Operator::Power => match values {
                (Some(one), Some(other)) => {
                    let point = BTreeMap::new();
                    let mut reals = Reals { fuel: self.fuel, bits: 64, point: &point };
                    match reals.binary(operator, Real::Exact(one), Real::Exact(other))? {
                        Real::Exact(value) => Ratio::constant(&value),
                        Real::Pi(_) | Real::Exp(_) | Real::Root { .. } | Real::Between(_) => {
                            return self.opaque(written);
                        }
                    }
                }
                (_, Some(exponent)) if operator == Operator::Power && exponent.is_integer() => {
                    let exponent = exponent.to_small().ok_or(Reason::Limit(Limit::Terms))?;
                    one.power(exponent, self.fuel)?
                }
                _ => return self.opaque(written),
            },
        };
        Ok(Form { ratio, written, opaque })
    }

    fn call(&mut self, function: Function, operands: Vec<Form>) -> Result<Form, Reason> {
        let mut values = Vec::new();
        let mut texts = Vec::new();
        let divisor_opaque = function == Function::Mod && operands.last().is_some_and(|operand| operand.opaque);
        self.doubtful |= divisor_opaque;
        for operand in operands {
            values.push(operand.ratio.as_value(self.fuel)?.map(Real::Exact));
            texts.push(operand.written);
        }
        let written = Normal.call(function, texts)?;
        // No first operand gives these a value.
        if let [_, Some(Real::Exact(last))] = values.as_slice() {
            if function == Function::Mod && last.is_zero() {
                return Err(Reason::DivisionByZero);
            }
            if function == Function::Log && (last.is_one() || last.is_zero() || last.is_negative()) {
                return Err(Reason::Domain);
            }
        }
        if let Some(values) = values.into_iter().collect::<Option<Vec<_>>>() {
            let point = BTreeMap::new();
            let mut reals = Reals { fuel: self.fuel, bits: 64, point: &point };
            if let Real::Exact(value) = reals.call(function, values)? {
                return Ok(Form { ratio: Ratio::constant(&value), written, opaque: false });
            }
        } else {
            self.partial = true;
        }
        self.opaque(written)
    }
}

impl<'f> Ratios<'f> {
    pub(super) fn new(fuel: &'f mut Fuel) -> Ratios<'f> {
        Ratios { fuel, names: Vec::new(), partial: false, doubtful: false }
    }

    /// A function, or a power, that stands for one number.
    fn opaque(&mut self, written: Written) -> Result<Form, Reason> {
        Ok(Form { opaque: true, ..self.unknown(written)? })
    }

    /// A text that stands for one number, whatever that is: the same text is the same number.
    fn unknown(&mut self, written: Written) -> Result<Form, Reason> {
        let index = match self.names.iter().position(|name| *name == written.text) {
            Some(index) => index,
            None if self.names.len() == UNKNOWNS_MAX => return Err(Reason::Limit(Limit::Unknowns)),
            None => {
                self.names.push(written.text.clone());
                self.names.len().saturating_sub(1)
            }
        };
        let index = u32::try_from(index).map_err(|_| Reason::Limit(Limit::Unknowns))?;
        Ok(Form { ratio: Ratio::unknown(index), written, opaque: false })
    }
}
