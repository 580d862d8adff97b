//! A claim as understood: expressions in a row with a relation between each two.
//!
//! An expression is a list of steps in postfix order, so reading, calculating and dropping it take no recursion. What
//! the steps mean is up to a [`Domain`]: exact values are one, normal text is another, and intervals or polynomials can
//! be further ones without touching the parser.

use core::ops::Range;

use super::lex::{Literal, Relation};
use super::refusal::{Reason, Refusal, Text};

/// One side, or several that are claimed to relate.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) first: Expression,
    pub(super) links: Vec<Link>,
}

/// A relation to the side before it. As in `1 < 2 < 3`, each link is claimed, and nothing else.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) relation: Relation,
    /// The byte of the query it is written at; `None` where it links to the expected value.
    pub(super) at: Option<usize>,
    pub(super) side: Expression,
}

/// An expression without relations.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: Text,
    /// Its bytes in that text, without the blanks around it.
    pub(super) span: Range<usize>,
    // Invariant: in postfix order, every step finds its operands and one result remains. The parser sees to it; `fold`
    // refuses what breaks it.
    pub(super) steps: Vec<Step>,
}

/// One step of a calculation, with the byte it is written at.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: usize,
    pub(super) kind: StepKind,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum StepKind {
    Number(Literal),
    Negate,
    Binary(Operator),
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

    fn number(&mut self, literal: &Literal) -> Result<Self::Value, Reason>;
    fn negate(&mut self, operand: Self::Value) -> Result<Self::Value, Reason>;
    fn binary(&mut self, operator: Operator, left: Self::Value, right: Self::Value) -> Result<Self::Value, Reason>;
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

impl Claim {
    /// The sides in the order of the text.
    pub(super) fn sides(&self) -> impl Iterator<Item = &Expression> {
        core::iter::once(&self.first).chain(self.links.iter().map(|link| &link.side))
    }

    /// Whether it claims equality and nothing else; true of an expression alone.
    pub(super) fn only_equates(&self) -> bool {
        self.links.iter().all(|link| link.relation == Relation::Equal)
    }
}

impl Expression {
    /// What the expression means in a domain.
    pub(super) fn fold<D: Domain>(&self, domain: &mut D) -> Result<D::Value, Refusal> {
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
    pub(super) fn refuse(&self, reason: Reason, at: usize) -> Refusal {
        Refusal { reason, text: self.text, at }
    }

    fn step<D: Domain>(&self, step: &Step, stack: &mut Vec<D::Value>, domain: &mut D) -> Result<D::Value, Reason> {
        match &step.kind {
            StepKind::Number(literal) => domain.number(literal),
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

    fn expression(kinds: Vec<StepKind>) -> Expression {
        let steps = kinds.into_iter().map(|kind| Step { at: 5, kind }).collect();
        Expression { text: Text::Query, span: 3..9, steps }
    }

    fn one() -> StepKind {
        StepKind::Number(Literal { whole: "1".to_owned(), fraction: String::new(), exponent: 0 })
    }

    #[test]
    fn steps_without_operands_and_results_left_over_are_refused() {
        let add = || StepKind::Binary(Operator::Add);
        let cases: [(Vec<StepKind>, usize); 5] = [
            (vec![], 3),
            (vec![StepKind::Negate], 5),
            (vec![add()], 5),
            (vec![one(), add()], 5),
            (vec![one(), one(), one(), add()], 3),
        ];
        for (kinds, at) in cases {
            let refusal = expression(kinds).fold(&mut Normal).map(|_| ()).expect_err("a broken list of steps");
            assert_eq!(refusal, Refusal { reason: Reason::NotUnderstood, text: Text::Query, at });
        }
        assert!(expression(vec![one(), one(), add()]).fold(&mut Normal).is_ok());
    }
}
