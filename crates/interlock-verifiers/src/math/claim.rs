//! A claim as understood: expressions in a row with a relation between each two.
//!
//! An expression is a list of steps in postfix order, so reading, calculating and dropping it take no recursion. What
//! the steps mean is up to a [`Domain`]: exact values are one, normal text is another, and intervals or polynomials can
//! be further ones without touching the parser.

use core::ops::Range;

use super::lex::{Literal, Relation};
use super::no_value::{NoValue, Reason, Text};
use super::vocabulary::{Constant, Function, Unit};

/// What a text says.
#[derive(Debug)]
pub(super) enum Statement<'t> {
    /// Something that is claimed to hold.
    Claim(Claim<'t>),
    /// Something that is claimed to follow.
    System(System<'t>),
}

/// Equations, and what is claimed to follow from them.
#[derive(Debug)]
pub(super) struct System<'t> {
    pub(super) premises: Vec<Claim<'t>>,
    pub(super) conclusions: Vec<Claim<'t>>,
    /// The bytes of the query that hold the premises.
    pub(super) span: Range<usize>,
}

/// One side, or several that are claimed to relate.
#[derive(Debug)]
pub(super) struct Claim<'t> {
    pub(super) first: Expression<'t>,
    pub(super) links: Vec<Link<'t>>,
    /// Of the last side: it is the value before it, rounded so.
    pub(super) rounding: Option<Rounding>,
}

/// How far a value is said to be rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    DecimalPlaces(u32),
    SignificantFigures(u32),
}

/// A relation to the side before it. As in `1 < 2 < 3`, each link is claimed, and nothing else.
#[derive(Debug)]
pub(super) struct Link<'t> {
    pub(super) relation: Relation,
    /// The byte of the query it is written at; `None` where it links to the expected value.
    pub(super) at: Option<usize>,
    pub(super) side: Expression<'t>,
}

/// An expression without relations.
#[derive(Debug)]
pub(super) struct Expression<'t> {
    pub(super) text: Text,
    /// Its bytes in that text, without the blanks around it.
    pub(super) span: Range<usize>,
    // Invariant: in postfix order, every step finds its operands and one result remains. The parser sees to it; `fold`
    // refuses what breaks it.
    pub(super) steps: Vec<Step<'t>>,
}

/// One step of a calculation, with the byte it is written at.
#[derive(Debug)]
pub(super) struct Step<'t> {
    pub(super) at: usize,
    pub(super) kind: StepKind<'t>,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum StepKind<'t> {
    Number(Literal<'t>),
    Constant(Constant),
    /// An unknown, by its name.
    Variable(&'t str),
    Negate,
    Binary(Operator),
    /// A function of the last so many results.
    Call(Function, usize),
    /// Says what the last result is a number of.
    Unit(Vec<(Unit, i32)>),
}

/// What can be done with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// The quotient rounded down.
    FloorDivide,
    /// The rest of the floor division, with the sign of the divisor.
    Modulo,
    Power,
}

/// How tightly an operator binds, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

/// A meaning for the steps of an expression.
pub(super) trait Domain {
    /// What an expression becomes.
    type Value;

    fn number(&mut self, literal: &Literal<'_>) -> Result<Self::Value, Reason>;
    fn constant(&mut self, constant: Constant) -> Result<Self::Value, Reason>;
    fn variable(&mut self, name: &str) -> Result<Self::Value, Reason>;
    fn negate(&mut self, operand: Self::Value) -> Result<Self::Value, Reason>;
    fn binary(&mut self, operator: Operator, left: Self::Value, right: Self::Value) -> Result<Self::Value, Reason>;
    fn call(&mut self, function: Function, operands: Vec<Self::Value>) -> Result<Self::Value, Reason>;

    /// Units are ignored, except where they are compared.
    fn unit(&mut self, operand: Self::Value, _: &[(Unit, i32)]) -> Result<Self::Value, Reason> {
        Ok(operand)
    }
}

impl Operator {
    /// How tightly it binds.
    pub(super) fn level(self) -> Level {
        match self {
            Operator::Add | Operator::Subtract => Level::Sum,
            Operator::Multiply | Operator::Divide | Operator::FloorDivide | Operator::Modulo => Level::Product,
            Operator::Power => Level::Power,
        }
    }
}

impl<'t> Claim<'t> {
    /// The sides in the order of the text.
    pub(super) fn sides(&self) -> impl Iterator<Item = &Expression<'t>> {
        core::iter::once(&self.first).chain(self.links.iter().map(|link| &link.side))
    }

    /// Whether it claims equality and nothing else; true of an expression alone.
    pub(super) fn only_equates(&self) -> bool {
        self.links.iter().all(|link| link.relation == Relation::Equal)
    }

    /// Rounded percentages: the digits that are counted are those of the percentage, so that `33% to 0 dp` is
    /// `0.33 to 2 dp`. Of other expressions with a per cent sign, readers count either.
    pub(super) fn count_places_of_percentages(&mut self) -> Result<(), Reason> {
        let last = self.links.last().map_or(&self.first, |link| &link.side);
        match self.rounding {
            Some(Rounding::DecimalPlaces(places)) if last.percentage().is_some() => {
                self.rounding = Some(Rounding::DecimalPlaces(places.saturating_add(2)));
            }
            Some(_) if last.has_percent() && last.percentage().is_none() => return Err(Reason::NoDigits),
            Some(_) | None => {}
        }
        let mut before = &mut self.first;
        for link in &mut self.links {
            if link.relation == Relation::Approximate && self.rounding.is_none() {
                before.percentage_to_number();
                link.side.percentage_to_number();
            }
            before = &mut link.side;
        }
        Ok(())
    }

    /// Whether a kind of step occurs.
    pub(super) fn has(&self, wanted: impl Fn(&StepKind<'_>) -> bool) -> bool {
        self.sides().any(|side| side.steps.iter().any(|step| wanted(&step.kind)))
    }
}

impl<'t> Expression<'t> {
    /// Whether a `%` that means per cent occurs. Both of its steps are at its byte; those of `7/100` are not.
    pub(super) fn has_percent(&self) -> bool {
        self.steps.windows(2).any(|pair| matches!(pair, [hundred, divide] if is_percent(hundred, divide)))
    }

    /// Whether a percentage of something is added to it, as in `80 + 15%`: the steps of that are at the same byte.
    pub(super) fn adds_percentage(&self) -> bool {
        self.steps.windows(2).any(|pair| match pair {
            [Step { kind: StepKind::Binary(Operator::Add | Operator::Subtract), at }, multiply] => {
                *at == multiply.at && matches!(multiply.kind, StepKind::Binary(Operator::Multiply))
            }
            _ => false,
        })
    }

    /// The number of a percentage that is written down, such as `12.5%` or `-3%`; `None` of anything else.
    pub(super) fn percentage(&self) -> Option<&Literal<'t>> {
        let signs = self.steps.iter().rev().take_while(|step| matches!(step.kind, StepKind::Negate)).count();
        match self.steps.get(..self.steps.len().saturating_sub(signs)) {
            Some([Step { kind: StepKind::Number(literal), .. }, hundred, divide]) if is_percent(hundred, divide) => {
                Some(literal)
            }
            Some(_) | None => None,
        }
    }

    /// Writes a percentage as one number with the same digits: `33%` as `33e-2`. How far it is rounded can be seen then.
    pub(super) fn percentage_to_number(&mut self) {
        let Some(literal) = self.percentage().cloned() else { return };
        let Some(exponent) = literal.exponent.checked_sub(2) else { return };
        let Some(at) = self.steps.first().map(|step| step.at) else { return };
        let number = Step { at, kind: StepKind::Number(Literal { exponent, ..literal }) };
        self.steps.splice(..3, [number]);
    }
}

fn is_percent(hundred: &Step<'_>, divide: &Step<'_>) -> bool {
    hundred.at == divide.at
        && matches!(divide.kind, StepKind::Binary(Operator::Divide))
        && matches!(&hundred.kind, StepKind::Number(number) if number.small() == Some(100))
}

impl Expression<'_> {
    /// What the expression means in a domain.
    pub(super) fn fold<D: Domain>(&self, domain: &mut D) -> Result<D::Value, NoValue> {
        let mut stack = Vec::new();
        for step in &self.steps {
            let result = self.step(step, &mut stack, domain);
            stack.push(result.map_err(|reason| self.refuse(reason, step.at))?);
        }
        match (stack.pop(), stack.is_empty()) {
            (Some(value), true) => Ok(value),
            (Some(_), false) | (None, _) => Err(self.refuse(Reason::NotUnderstood, self.span.start)),
        }
    }

    /// Says no at a byte of the text this expression is in.
    pub(super) fn refuse(&self, reason: Reason, at: usize) -> NoValue {
        NoValue { reason, text: self.text, at }
    }

    fn step<D: Domain>(&self, step: &Step<'_>, stack: &mut Vec<D::Value>, domain: &mut D) -> Result<D::Value, Reason> {
        match &step.kind {
            StepKind::Number(literal) => domain.number(literal),
            StepKind::Constant(constant) => domain.constant(*constant),
            StepKind::Variable(name) => domain.variable(name),
            StepKind::Call(function, operands) => match stack.len().checked_sub(*operands) {
                Some(first) => domain.call(*function, stack.split_off(first)),
                None => Err(Reason::NotUnderstood),
            },
            StepKind::Unit(unit) => match stack.pop() {
                Some(operand) => domain.unit(operand, unit),
                None => Err(Reason::NotUnderstood),
            },
            StepKind::Negate => match stack.pop() {
                Some(operand) => domain.negate(operand),
                None => Err(Reason::NotUnderstood),
            },
            StepKind::Binary(operator) => match (stack.pop(), stack.pop()) {
                (Some(right), Some(left)) => domain.binary(*operator, left, right),
                (Some(_) | None, None) | (None, Some(_)) => Err(Reason::NotUnderstood),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::normal::Normal;

    fn expression(kinds: Vec<StepKind<'static>>) -> Expression<'static> {
        let steps = kinds.into_iter().map(|kind| Step { at: 5, kind }).collect();
        Expression { text: Text::Query, span: 3..9, steps }
    }

    fn one() -> StepKind<'static> {
        StepKind::Number(Literal::integer("1"))
    }

    #[test]
    fn steps_without_operands_and_results_left_over_are_refused() {
        let add = || StepKind::Binary(Operator::Add);
        let cases: [(Vec<StepKind<'_>>, usize); 5] = [
            (vec![], 3),
            (vec![StepKind::Negate], 5),
            (vec![add()], 5),
            (vec![one(), add()], 5),
            (vec![one(), one(), one(), add()], 3),
        ];
        for (kinds, at) in cases {
            let no_value = expression(kinds).fold(&mut Normal).map(|_| ()).expect_err("a broken list of steps");
            assert_eq!(no_value, NoValue { reason: Reason::NotUnderstood, text: Text::Query, at });
        }
        assert!(expression(vec![one(), one(), add()]).fold(&mut Normal).is_ok());
    }
}
