//! Tokens to expressions.
//!
//! The grammar is Python's, with `^` beside `**`, per cent, implicit multiplication and units added:
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/" | "//" | "%" | "mod" | "of") signed | power }
//! signed  = { "+" | "-" } power
//! power   = atom [ "^" signed ]
//! atom    = ( number [ unit ] | currency number | letter | constant | function "(" sum { "," sum } ")"
//!           | "(" sum ")" | "√" atom ) { "!" | "²" | "³" } [ "%" ]
//! ```
//!
//! What readers could take in two ways is not understood: `20%-5`, `5!=120`, `1/2x`, `2^3x`. Values are not known here.

use super::claim::{Expression, Level, Operator, Step, StepKind};
use super::letters::Letters;
use super::lex::{Comma, Literal, Token, TokenKind};
use super::limits::{DEPTH_MAX, Limit};
use super::no_value::{NoValue, Reason, Text};
use super::signs::{Signs, is_slash, operator};
use super::vocabulary::{Constant, Function, constant, function, is_letter, is_numbered};

pub(super) struct Parser<'p, 't> {
    pub(super) text: Text,
    pub(super) tokens: &'p [Token<'t>],
    pub(super) next: usize,
    /// The length of the text: where its end is not understood.
    pub(super) end: usize,
    pub(super) depth: usize,
    pub(super) letters: &'p Letters<'t>,
    /// The steps of the expression that is being read.
    pub(super) steps: Vec<Step<'t>>,
}

/// What is known of a factor that was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A number with a per cent sign and nothing else.
    Percent,
    /// The same in parentheses, or with a sign before it.
    WrappedPercent,
    /// A power whose exponent readers could take to go on: `2^3`, `e^2`, `x^y`; also `√2`.
    Open,
    /// `5 mod 12`: beside another operator, readers disagree on how far the word reaches.
    Remainder,
    Other,
}

impl<'p, 't> Parser<'p, 't> {
    pub(super) fn expression(&mut self) -> Result<Expression<'t>, NoValue> {
        let start = self.peek().map_or(self.end, |token| token.at);
        self.sum()?;
        let span = start..self.end_before();
        Ok(Expression { text: self.text, span, steps: core::mem::take(&mut self.steps) })
    }

    fn sum(&mut self) -> Result<Shape, NoValue> {
        let mut shape = self.product()?;
        while let Some((operator, at)) = self.take_operator(Level::Sum) {
            let right = self.steps.len();
            let right_shape = self.product()?;
            match (shape, right_shape) {
                // `80 + 15%` is 80 and 15% of it: `80 * (1 + 15%)`.
                (Shape::Open | Shape::Other, Shape::Percent) => {
                    self.steps.insert(right, Step { at, kind: StepKind::Number(Literal::integer("1")) });
                    self.emit(at, StepKind::Binary(operator));
                    self.emit(at, StepKind::Binary(Operator::Multiply));
                }
                // `80 + (15%)` is that to some readers, and 80.15 to others.
                (Shape::Open | Shape::Other, Shape::WrappedPercent) => {
                    return Err(NoValue { reason: Reason::NotUnderstood, text: self.text, at });
                }
                // `9 + 5 mod 12` is 14 to some readers and 2 to others.
                (Shape::Remainder, _) | (_, Shape::Remainder) => {
                    return Err(NoValue { reason: Reason::NotUnderstood, text: self.text, at });
                }
                (Shape::Percent | Shape::WrappedPercent, Shape::Percent | Shape::WrappedPercent) => {
                    self.emit(at, StepKind::Binary(operator));
                }
                (_, Shape::Open | Shape::Other) => {
                    shape = Shape::Other;
                    self.emit(at, StepKind::Binary(operator));
                }
            }
        }
        Ok(shape)
    }

    fn product(&mut self) -> Result<Shape, NoValue> {
        let mut shape = self.signed()?;
        // Of what came before: the first factor only, or divided by something.
        let (mut alone, mut divided) = (true, false);
        let mut signs = Signs::default();
        loop {
            let sign = self.peek();
            if sign.is_some_and(|token| signs.clash_with(token, alone)) {
                return Err(self.refuse_here());
            }
            if self.takes_word("of") {
                // `20% of 80`; after another factor, as in `100 / 20% of 50`, what it belongs to is open.
                if !(alone && matches!(shape, Shape::Percent | Shape::WrappedPercent)) {
                    return Err(self.refuse_here());
                }
                let at = self.peek().map_or(self.end, |token| token.at);
                self.advance();
                let right = self.signed()?;
                self.emit(at, StepKind::Binary(Operator::Multiply));
                // `50% of 20% of 80`
                if right == Shape::Percent && self.takes_word("of") {
                    shape = right;
                    continue;
                }
            } else if let Some((operator, at)) = self.take_operator(Level::Product) {
                divided = operator != Operator::Multiply;
                let right = self.signed()?;
                let percent = matches!(right, Shape::Percent | Shape::WrappedPercent);
                // `1/4%` is a quarter of a per cent to some readers; `1/(4%)` and `1 ÷ 4%` are not.
                if percent && sign.is_some_and(is_slash) && !self.closes_before() {
                    return Err(NoValue { reason: Reason::NotUnderstood, text: self.text, at });
                }
                self.emit(at, StepKind::Binary(operator));
                // Only what is multiplied next to it has to know.
                shape = if right == Shape::Open { Shape::Open } else { Shape::Other };
                alone = false;
                continue;
            } else if self.implicit_factor_follows() {
                // `1/2x` is half of x to some readers and one over two x to others.
                if divided || signs.word || shape != Shape::Other {
                    return Err(self.refuse_here());
                }
                let at = self.peek().map_or(self.end, |token| token.at);
                let right = self.power()?;
                self.emit(at, StepKind::Binary(Operator::Multiply));
                shape = right;
                alone = false;
                continue;
            } else if signs.word {
                return Ok(Shape::Remainder);
            } else {
                return Ok(if alone { shape } else { closed(shape) });
            }
            shape = Shape::Other;
            alone = false;
        }
    }

    /// Whether something follows that can only be another factor.
    fn implicit_factor_follows(&self) -> bool {
        let Some(token) = self.peek() else { return false };
        let Some(before) = self.before() else { return false };
        let TokenKind::Word(word) = token.kind else {
            return matches!(token.kind, TokenKind::Open | TokenKind::Root);
        };
        if function(word).is_some() {
            return self.opens_after();
        }
        if matches!(word, "x" | "X") && self.could_be_times(before, token) {
            return false;
        }
        constant(word).is_some() || self.is_unknown(word)
    }

    /// `3 x (4 + 5)`: a letter that may be meant as a sign.
    fn could_be_times(&self, before: &Token<'_>, token: &Token<'_>) -> bool {
        let after = self.tokens.get(self.next.saturating_add(1));
        before.end < token.at
            && after.is_some_and(|after| {
                token.end < after.at && matches!(after.kind, TokenKind::Open | TokenKind::Number(_) | TokenKind::Root)
            })
    }

    fn signed(&mut self) -> Result<Shape, NoValue> {
        let before = self.next;
        let sign = self.signs();
        let signed = self.next > before;
        let shape = self.power()?;
        self.emit_sign(sign);
        Ok(if signed && shape == Shape::Percent { Shape::WrappedPercent } else { shape })
    }

    /// Powers: `2 ^ -3 ^ 2` is `2 ^ (-(3 ^ 2))`. The operands come first, then, from the right, what is done with them;
    /// so a long row of powers or of signs takes no recursion.
    fn power(&mut self) -> Result<Shape, NoValue> {
        let start = self.steps.len();
        let mut shape = self.atom()?;
        let base_is_unknown = matches!(self.steps.get(start..), Some([Step { kind: StepKind::Variable(_), .. }]))
            || self.before().is_some_and(|token| token.kind == TokenKind::Close);
        let mut powers = Vec::new();
        while let Some((operator, at)) = self.take_operator(Level::Power) {
            let sign = self.signs();
            let exponent_is_number = matches!(self.peek().map(|token| &token.kind), Some(TokenKind::Number(_)));
            powers.push((sign, operator, at));
            self.atom()?;
            // `a^2b` is `a^2 * b` to everybody; `2^3x` and `x^-yz` are not.
            let closed = self.before().is_some_and(|token| token.kind == TokenKind::Close);
            let plain = closed || (base_is_unknown && exponent_is_number && sign.is_none());
            shape = if plain && powers.len() == 1 { Shape::Other } else { Shape::Open };
        }
        for (sign, operator, at) in powers.into_iter().rev() {
            self.emit_sign(sign);
            self.emit(at, StepKind::Binary(operator));
        }
        Ok(shape)
    }

    /// Reads signs; the byte of the first one where they amount to a minus.
    fn signs(&mut self) -> Option<usize> {
        let (mut negative, start) = (false, self.peek().map(|token| token.at));
        while let Some(token) = self.peek().filter(|token| is_sign(token)) {
            negative ^= token.kind == TokenKind::Minus;
            self.advance();
        }
        start.filter(|_| negative)
    }

    fn atom(&mut self) -> Result<Shape, NoValue> {
        let Some(token) = self.peek() else { return Err(self.refuse_here()) };
        let mut shape = Shape::Other;
        match &token.kind {
            TokenKind::Number(literal) => {
                self.advance();
                self.emit(token.at, StepKind::Number(literal.clone()));
                self.unit_after()?;
            }
            TokenKind::Currency(currency) => {
                self.advance();
                let Some(Token { kind: TokenKind::Number(literal), .. }) = self.peek() else {
                    return Err(self.refuse_here());
                };
                self.advance();
                self.emit(token.at, StepKind::Number(literal.clone()));
                self.emit(token.at, StepKind::Unit(vec![(*currency, 1)]));
            }
            TokenKind::Open => {
                self.nested(token.at, |parser| {
                    parser.advance();
                    shape = parser.sum()?;
                    parser.close(&TokenKind::Close)
                })?;
                self.unit_after()?;
                // In parentheses, only a per cent still counts.
                let percent = matches!(shape, Shape::Percent | Shape::WrappedPercent);
                shape = if percent { Shape::WrappedPercent } else { Shape::Other };
            }
            TokenKind::Root => {
                self.nested(token.at, |parser| {
                    parser.advance();
                    parser.atom().map(|_| ())
                })?;
                // `√9!` is `(√9)!` to some readers; `√(9!)` is not.
                let suffixed = |token: &Token<'_>| {
                    matches!(token.kind, TokenKind::Factorial | TokenKind::Raised(_) | TokenKind::Percent)
                        || token.kind == TokenKind::Word("percent")
                };
                if self.before().is_some_and(suffixed) {
                    return Err(NoValue { reason: Reason::NotUnderstood, text: self.text, at: token.at });
                }
                let closed = self.closes_before();
                self.emit(token.at, StepKind::Call(Function::Sqrt, 1));
                return Ok(if closed { Shape::Other } else { Shape::Open });
            }
            TokenKind::Word(word) => self.word(token.at, word)?,
            TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::Times
            | TokenKind::Divide
            | TokenKind::FloorDivide
            | TokenKind::Percent
            | TokenKind::Power
            | TokenKind::Raised(_)
            | TokenKind::Factorial
            | TokenKind::Close
            | TokenKind::OpenList
            | TokenKind::CloseList
            | TokenKind::Comma(_)
            | TokenKind::Semicolon
            | TokenKind::Implies
            | TokenKind::Relation(_) => return Err(self.refuse_here()),
        }
        self.suffixes()?;
        if self.percent()? { Ok(Shape::Percent) } else { Ok(shape) }
    }

    fn word(&mut self, at: usize, word: &'t str) -> Result<(), NoValue> {
        if let Some(function) = function(word) {
            return self.call(at, function);
        }
        if let Some(constant) = constant(word) {
            self.advance();
            self.emit(at, StepKind::Constant(constant));
            // `e(2)` may be meant as a function.
            let called = constant == Constant::E && self.peek().is_some_and(|token| token.kind == TokenKind::Open);
            return if called { Err(self.refuse_here()) } else { Ok(()) };
        }
        if !self.is_unknown(word) {
            return Err(self.refuse_here());
        }
        self.advance();
        self.emit(at, StepKind::Variable(word));
        // `f(x)` is not a product; `a(b + c)` is.
        let called = self.peek().is_some_and(|token| token.kind == TokenKind::Open);
        let product = matches!(word, "a" | "b" | "c" | "k" | "m" | "n" | "r" | "t" | "x" | "y" | "z");
        if called && !product { Err(self.refuse_here()) } else { Ok(()) }
    }

    pub(super) fn is_unknown(&self, word: &str) -> bool {
        !self.letters.are_units && (is_letter(word) || is_numbered(word))
    }

    fn call(&mut self, at: usize, function: Function) -> Result<(), NoValue> {
        if !self.opens_after() {
            return Err(self.refuse_here());
        }
        let mut operands = 0_usize;
        let mut commas = Vec::new();
        self.nested(at, |parser| {
            parser.advance();
            parser.advance();
            let list = parser.peek().is_some_and(|token| token.kind == TokenKind::OpenList);
            if list {
                parser.advance();
            }
            loop {
                parser.sum()?;
                operands = operands.saturating_add(1);
                let Some(Token { kind: TokenKind::Comma(comma), .. }) = parser.peek() else { break };
                commas.push(*comma);
                parser.advance();
            }
            if list {
                parser.close(&TokenKind::CloseList)?;
            }
            parser.close(&TokenKind::Close)
        })?;
        // `max(4,188, 7)` has two operands to some readers and three to others; `gcd(12,180)` cannot have one.
        let like_thousands = commas.iter().filter(|comma| **comma == Comma::LikeThousands).count();
        let fewest = operands.saturating_sub(like_thousands);
        let ambiguous = (fewest..operands).any(|operands| function.takes(operands));
        if ambiguous || !function.takes(operands) {
            return Err(NoValue { reason: Reason::NotUnderstood, text: self.text, at });
        }
        self.emit(at, StepKind::Call(function, operands));
        Ok(())
    }

    /// Reads something in parentheses, no deeper than the limit.
    fn nested(&mut self, at: usize, read: impl FnOnce(&mut Self) -> Result<(), NoValue>) -> Result<(), NoValue> {
        if self.depth == DEPTH_MAX {
            return Err(NoValue { reason: Reason::Limit(Limit::Depth), text: self.text, at });
        }
        self.depth = self.depth.saturating_add(1);
        read(self)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn close(&mut self, closing: &TokenKind<'_>) -> Result<(), NoValue> {
        if self.peek().is_none_or(|token| token.kind != *closing) {
            return Err(self.refuse_here());
        }
        self.advance();
        Ok(())
    }

    fn take_operator(&mut self, level: Level) -> Option<(Operator, usize)> {
        let token = self.peek()?;
        let operator = operator(&token.kind).filter(|operator| operator.level() == level)?;
        self.advance();
        Some((operator, token.at))
    }

    pub(super) fn peek(&self) -> Option<&'p Token<'t>> {
        self.tokens.get(self.next)
    }

    pub(super) fn advance(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    pub(super) fn takes_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token { kind: TokenKind::Word(found), .. }) if *found == word)
    }

    fn before(&self) -> Option<&'p Token<'t>> {
        self.next.checked_sub(1).and_then(|index| self.tokens.get(index))
    }

    fn closes_before(&self) -> bool {
        self.before().is_some_and(|token| token.kind == TokenKind::Close)
    }

    pub(super) fn opens_after(&self) -> bool {
        self.tokens.get(self.next.saturating_add(1)).is_some_and(|token| token.kind == TokenKind::Open)
    }

    /// The byte after the token that was read last.
    pub(super) fn end_before(&self) -> usize {
        self.before().map_or(0, |token| token.end)
    }

    pub(super) fn emit(&mut self, at: usize, kind: StepKind<'t>) {
        self.steps.push(Step { at, kind });
    }

    fn emit_sign(&mut self, sign: Option<usize>) {
        if let Some(at) = sign {
            self.emit(at, StepKind::Negate);
        }
    }

    pub(super) fn refuse_here(&self) -> NoValue {
        let at = self.peek().map_or(self.end, |token| token.at);
        NoValue { reason: Reason::NotUnderstood, text: self.text, at }
    }
}

/// A product of several factors is no lone per cent any more.
fn closed(shape: Shape) -> Shape {
    if matches!(shape, Shape::Percent | Shape::WrappedPercent) { Shape::Other } else { shape }
}

pub(super) fn is_sign(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Plus | TokenKind::Minus)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
