//! What may follow a number or a parenthesis: a unit, `!`, a raised digit, `%`.
//!
//! Decides whether `%` is per cent or modulo. What readers could take in two ways is not understood.

use super::claim::{Operator, StepKind};
use super::lex::{Literal, Token, TokenKind};
use super::no_value::NoValue;
use super::parse::{Parser, is_sign};
use super::vocabulary::{Function, Unit, constant, function, unit};

/// The largest exponent of a unit, as in `m^3`.
const UNIT_EXPONENT_MAX: i32 = 9;

impl Parser<'_, '_> {
    /// `!`, `²` and `³`.
    pub(super) fn suffixes(&mut self) -> Result<(), NoValue> {
        while let Some(token) = self.peek() {
            // `5!!` is a double factorial to some.
            let kind = if token.kind == TokenKind::Factorial {
                StepKind::Call(Function::Factorial, 1)
            } else if let TokenKind::Raised(digit) = token.kind {
                self.emit(token.at, StepKind::Number(Literal::integer(if digit == 2 { "2" } else { "3" })));
                StepKind::Binary(Operator::Power)
            } else {
                return Ok(());
            };
            self.advance();
            self.emit(token.at, kind);
            let again =
                |next: &Token<'_>| matches!(next.kind, TokenKind::Factorial | TokenKind::Raised(_) | TokenKind::Power);
            if self.peek().is_some_and(again) {
                return Err(self.refuse_here());
            }
        }
        Ok(())
    }

    /// A unit after a number or parentheses: `km`, `m^2`, `km/h`.
    pub(super) fn unit_after(&mut self) -> Result<(), NoValue> {
        let Some(token) = self.peek() else { return Ok(()) };
        let mut powers = Vec::new();
        let mut sign = 1;
        while let Some(unit) = self.unit_here() {
            self.advance();
            powers.push((unit, self.unit_exponent()?.saturating_mul(sign)));
            let next_is_unit =
                |word: &Token<'_>| matches!(word.kind, TokenKind::Word(word) if self.unit_of(word).is_some());
            let after = self.tokens.get(self.next.saturating_add(1));
            match self.peek().map(|token| &token.kind) {
                // `$3 per km per h` and `m/s/s` mean what they say.
                Some(TokenKind::Divide | TokenKind::Word("per")) if after.is_some_and(next_is_unit) => {
                    self.advance();
                    sign = -1;
                }
                _ => break,
            }
        }
        if !powers.is_empty() {
            self.emit(token.at, StepKind::Unit(powers));
        }
        Ok(())
    }

    /// `²`, `³`, `^2`; one where there is none.
    fn unit_exponent(&mut self) -> Result<i32, NoValue> {
        match self.peek().map(|token| &token.kind) {
            Some(TokenKind::Raised(digit)) => {
                self.advance();
                Ok(i32::from(*digit))
            }
            Some(TokenKind::Power) => {
                self.advance();
                let Some(Token { kind: TokenKind::Number(literal), .. }) = self.peek() else {
                    return Err(self.refuse_here());
                };
                let exponent = literal.small().filter(|exponent| (1..=UNIT_EXPONENT_MAX).contains(exponent));
                let Some(exponent) = exponent else { return Err(self.refuse_here()) };
                self.advance();
                Ok(exponent)
            }
            _ => Ok(1),
        }
    }

    fn unit_here(&self) -> Option<Unit> {
        let TokenKind::Word(word) = self.peek()?.kind else { return None };
        // `5 min(1, 2)` is a product.
        if function(word).is_some() && self.opens_after() {
            return None;
        }
        self.unit_of(word)
    }

    fn unit_of(&self, word: &str) -> Option<Unit> {
        unit(word).filter(|_| word.len() > 1 || self.letters.are_units)
    }

    /// `20%` is `20 / 100` where `%` cannot be a modulo. Whether there was a per cent.
    pub(super) fn percent(&mut self) -> Result<bool, NoValue> {
        let Some(token) = self.peek() else { return Ok(false) };
        if token.kind == TokenKind::Percent {
            match self.percent_reading(token) {
                Some(Percent::Modulo) => return Ok(false),
                Some(Percent::PerCent) => {}
                None => return Err(self.refuse_here()),
            }
        } else if token.kind != TokenKind::Word("percent") {
            return Ok(false);
        }
        self.advance();
        self.emit(token.at, StepKind::Number(Literal::integer("100")));
        self.emit(token.at, StepKind::Binary(Operator::Divide));
        // `20%%5` would be a modulo to some readers and an escaped sign to others.
        if self.peek().is_some_and(|next| next.kind == TokenKind::Percent) { Err(self.refuse_here()) } else { Ok(true) }
    }

    /// Modulo where an operand follows, per cent where none does. A sign that follows could begin an operand or join
    /// two; the blanks tell, where they are as in `20% + 5` or as in `7 % -3`.
    fn percent_reading(&self, percent: &Token<'_>) -> Option<Percent> {
        let after = self.next.saturating_add(1);
        let Some(next) = self.tokens.get(after) else { return Some(Percent::PerCent) };
        let blank_before = self.end_before() < percent.at;
        let blank_between = percent.end < next.at;
        // `17%5` and `17 % 5`, but not `20% 80`.
        if matches!(next.kind, TokenKind::Number(_)) {
            return (blank_before == blank_between).then_some(Percent::Modulo);
        }
        // `17 % (5)`; `20%(80)` is 16 to some readers and 20 to others.
        if next.kind == TokenKind::Open {
            return (blank_before && blank_between).then_some(Percent::Modulo);
        }
        if matches!(next.kind, TokenKind::Currency(_) | TokenKind::Root) {
            return None;
        }
        if let TokenKind::Word(word) = next.kind
            && (function(word).is_some() || constant(word).is_some() || self.is_unknown(word))
        {
            // `17 % x`, but not `50%x` or `50% x`.
            return (blank_before && blank_between).then_some(Percent::Modulo);
        }
        if !is_sign(next) {
            return Some(Percent::PerCent);
        }
        let operand = self.tokens.get(after.saturating_add(1))?;
        // `10%+5%`: nobody divides by a percentage for the rest.
        if !blank_before && !blank_between && self.percentage_at(after.saturating_add(1)) {
            return Some(Percent::PerCent);
        }
        let blank_after = next.end < operand.at;
        match (blank_before, blank_between, blank_after) {
            (false, true, true) => Some(Percent::PerCent),
            (true, true, false) => Some(Percent::Modulo),
            (true, true, true) | (true, false, _) | (false, true, false) | (false, false, _) => None,
        }
    }

    /// Whether a number and a `%` that can only be per cent are at this token.
    fn percentage_at(&self, index: usize) -> bool {
        let kind = |offset: usize| self.tokens.get(index.saturating_add(offset)).map(|token| &token.kind);
        matches!(kind(0), Some(TokenKind::Number(_)))
            && matches!(kind(1), Some(TokenKind::Percent))
            && matches!(
                kind(2),
                None | Some(TokenKind::Close | TokenKind::Relation(_) | TokenKind::Plus | TokenKind::Minus)
            )
    }
}

/// What a `%` says.
enum Percent {
    Modulo,
    PerCent,
}
