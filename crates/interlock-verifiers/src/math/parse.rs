//! Tokens to a claim.
//!
//! The grammar is Python's, with `^` beside `**` and per cent added:
//!
//! ```text
//! claim   = sum { relation sum }
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/" | "//" | "%") signed }
//! signed  = { "+" | "-" } atom [ "^" signed ]
//! atom    = ( number | "(" sum ")" ) [ "%" ]
//! ```
//!
//! What readers could take in two ways is not understood: `20%-5`, `5!=120`. Values are not known here.

use super::claim::{Claim, Expression, Level, Link, Operator, Step, StepKind};
use super::lex::{Literal, Relation, Token, TokenKind, lex};
use super::limits::{DEPTH_MAX, Limit};
use super::refusal::{Reason, Refusal, Text};

/// Reads a query and, where one is given, the value that is expected of it.
pub(super) fn parse(query: &str, expected: Option<&str>) -> Result<Claim, Refusal> {
    let mut claim = parse_text(Text::Query, query)?;
    let Some(expected) = expected else { return Ok(claim) };
    let value = parse_text(Text::Expected, expected)?;
    // The expected value is one value, and only what has a value can be equal to it: `2 < 3` has none.
    if let Some(link) = value.links.first() {
        return Err(value.first.refuse(Reason::NotUnderstood, link.at.unwrap_or_default()));
    }
    if !claim.only_equates() {
        return Err(value.first.refuse(Reason::NotUnderstood, value.first.span.start));
    }
    claim.links.push(Link { relation: Relation::Equal, at: None, side: value.first });
    Ok(claim)
}

fn parse_text(text: Text, source: &str) -> Result<Claim, Refusal> {
    let tokens = lex(text, source)?;
    let mut parser = Parser { text, tokens: &tokens, next: 0, end: source.len(), depth: 0, steps: Vec::new() };
    let first = parser.expression()?;
    let mut links = Vec::new();
    while let Some(token) = parser.peek() {
        let TokenKind::Relation(relation) = token.kind else { return Err(parser.refuse_here()) };
        let touches = token.at == parser.end_before();
        // `5!=100` may be meant as a factorial, and then it is false; `5 != 100` cannot.
        if relation == Relation::NotEqual && touches && token.end.saturating_sub(token.at) == "!=".len() {
            return Err(parser.refuse_here());
        }
        let at = Some(token.at);
        parser.advance();
        links.push(Link { relation, at, side: parser.expression()? });
    }
    Ok(Claim { first, links })
}

struct Parser<'t> {
    text: Text,
    tokens: &'t [Token],
    next: usize,
    /// The length of the text: where its end is not understood.
    end: usize,
    depth: usize,
    /// The steps of the expression that is being read.
    steps: Vec<Step>,
}

impl<'t> Parser<'t> {
    fn expression(&mut self) -> Result<Expression, Refusal> {
        let start = self.peek().map_or(self.end, |token| token.at);
        self.sum()?;
        let span = start..self.end_before();
        Ok(Expression { text: self.text, span, steps: core::mem::take(&mut self.steps) })
    }

    fn sum(&mut self) -> Result<(), Refusal> {
        self.product()?;
        while let Some((operator, at)) = self.take_operator(Level::Sum) {
            self.product()?;
            self.emit(at, StepKind::Binary(operator));
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), Refusal> {
        self.signed()?;
        while let Some((operator, at)) = self.take_operator(Level::Product) {
            self.signed()?;
            self.emit(at, StepKind::Binary(operator));
        }
        Ok(())
    }

    /// Signs and powers: `-2 ^ -3 ^ 2` is `-(2 ^ (-(3 ^ 2)))`. The operands come first, then, from the right, what is
    /// done with them; so a long row of powers or of signs takes no recursion.
    fn signed(&mut self) -> Result<(), Refusal> {
        let mut powers = Vec::new();
        let mut sign = self.signs();
        self.atom()?;
        while let Some((operator, at)) = self.take_operator(Level::Power) {
            powers.push((sign, operator, at));
            sign = self.signs();
            self.atom()?;
        }
        self.emit_sign(sign);
        for (sign, operator, at) in powers.into_iter().rev() {
            self.emit(at, StepKind::Binary(operator));
            self.emit_sign(sign);
        }
        Ok(())
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

    fn atom(&mut self) -> Result<(), Refusal> {
        let Some(token) = self.peek() else { return Err(self.refuse_here()) };
        match &token.kind {
            TokenKind::Number(literal) => {
                self.advance();
                self.emit(token.at, StepKind::Number(literal.clone()));
            }
            TokenKind::Open => self.parentheses(token.at)?,
            TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::Times
            | TokenKind::Divide
            | TokenKind::FloorDivide
            | TokenKind::Percent
            | TokenKind::Power
            | TokenKind::Close
            | TokenKind::Relation(_) => return Err(self.refuse_here()),
        }
        self.percent()
    }

    fn parentheses(&mut self, at: usize) -> Result<(), Refusal> {
        if self.depth == DEPTH_MAX {
            return Err(Refusal { reason: Reason::Limit(Limit::Depth), text: self.text, at });
        }
        self.depth = self.depth.saturating_add(1);
        self.advance();
        self.sum()?;
        if self.peek().is_none_or(|token| token.kind != TokenKind::Close) {
            return Err(self.refuse_here());
        }
        self.advance();
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    /// `20%` is `20 / 100` where `%` cannot be a modulo.
    fn percent(&mut self) -> Result<(), Refusal> {
        let Some(token) = self.peek().filter(|token| token.kind == TokenKind::Percent) else { return Ok(()) };
        match self.percent_reading(token) {
            Some(Reading::Modulo) => return Ok(()),
            Some(Reading::PerCent) => self.advance(),
            None => return Err(self.refuse_here()),
        }
        let hundred = Literal { whole: "100".to_owned(), fraction: String::new(), exponent: 0 };
        self.emit(token.at, StepKind::Number(hundred));
        self.emit(token.at, StepKind::Binary(Operator::Divide));
        // `20%%5` would be a modulo to some readers and an escaped sign to others.
        if self.peek().is_some_and(|next| next.kind == TokenKind::Percent) { Err(self.refuse_here()) } else { Ok(()) }
    }

    /// Modulo where an operand follows, per cent where none does. A sign that follows could begin an operand or join
    /// two; the blanks tell, where they are as in `20% + 5` or as in `7 % -3`.
    fn percent_reading(&self, percent: &Token) -> Option<Reading> {
        let after = self.next.saturating_add(1);
        let Some(next) = self.tokens.get(after) else { return Some(Reading::PerCent) };
        if matches!(next.kind, TokenKind::Number(_) | TokenKind::Open) {
            return Some(Reading::Modulo);
        }
        if !is_sign(next) {
            return Some(Reading::PerCent);
        }
        let operand = self.tokens.get(after.saturating_add(1))?;
        let blank_before = self.end_before() < percent.at;
        let blank_between = percent.end < next.at;
        let blank_after = next.end < operand.at;
        match (blank_before, blank_between, blank_after) {
            (false, true, true) => Some(Reading::PerCent),
            (true, true, false) => Some(Reading::Modulo),
            (true, true, true) | (true, false, _) | (false, true, false) | (false, false, _) => None,
        }
    }

    fn take_operator(&mut self, level: Level) -> Option<(Operator, usize)> {
        let token = self.peek()?;
        let operator = operator(&token.kind).filter(|operator| operator.level() == level)?;
        self.advance();
        Some((operator, token.at))
    }

    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.next)
    }

    fn advance(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    /// The byte after the token that was read last.
    fn end_before(&self) -> usize {
        self.next.checked_sub(1).and_then(|index| self.tokens.get(index)).map_or(0, |token| token.end)
    }

    fn emit(&mut self, at: usize, kind: StepKind) {
        self.steps.push(Step { at, kind });
    }

    fn emit_sign(&mut self, sign: Option<usize>) {
        if let Some(at) = sign {
            self.emit(at, StepKind::Negate);
        }
    }

    fn refuse_here(&self) -> Refusal {
        let at = self.peek().map_or(self.end, |token| token.at);
        Refusal { reason: Reason::NotUnderstood, text: self.text, at }
    }
}

/// What a `%` says.
enum Reading {
    Modulo,
    PerCent,
}

fn is_sign(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Plus | TokenKind::Minus)
}

#[rustfmt::skip]
fn operator(kind: &TokenKind) -> Option<Operator> {
    match kind {
        TokenKind::Plus        => Some(Operator::Add),
        TokenKind::Minus       => Some(Operator::Subtract),
        TokenKind::Times       => Some(Operator::Multiply),
        TokenKind::Divide      => Some(Operator::Divide),
        TokenKind::FloorDivide => Some(Operator::FloorDivide),
        TokenKind::Percent     => Some(Operator::Modulo),
        TokenKind::Power       => Some(Operator::Power),
        TokenKind::Number(_) | TokenKind::Open | TokenKind::Close | TokenKind::Relation(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::limits::TOKENS_MAX;
    use crate::math::normal::normal;

    /// The claim in normal form, or the byte that is not understood.
    fn read(query: &str) -> Result<String, usize> {
        parse(query, None).and_then(|claim| normal(&claim)).map_err(|refusal| refusal.at)
    }

    #[test]
    fn operators_bind_as_in_python() {
        #[rustfmt::skip]
        let cases = [
            ("1+2*3",          "1 + 2 * 3"),
            ("(1+2)*3",        "(1 + 2) * 3"),
            ("1-(2-3)",        "1 - (2 - 3)"),
            ("(1-2)-3",        "1 - 2 - 3"),
            ("8/(4/2)",        "8 / (4 / 2)"),
            ("2^3^2",          "2 ** 3 ** 2"),
            ("(2^3)^2",        "(2 ** 3) ** 2"),
            ("-2^2",           "-2 ** 2"),
            ("(-2)**2",        "(-2) ** 2"),
            ("2^-1",           "2 ** -1"),
            ("2^-3^2",         "2 ** -3 ** 2"),
            ("2^(-3)^2",       "2 ** (-3) ** 2"),
            ("-2^-3^2",        "-2 ** -3 ** 2"),
            ("2*-3",           "2 * -3"),
            ("- -+3",          "3"),
            ("-(-3)",          "-(-3)"),
            ("2--3",           "2 - -3"),
            ("(((7)))",        "7"),
            ("7//2%3",         "7 // 2 % 3"),
            ("1 = 2 <= 3",     "1 = 2 <= 3"),
            ("1 == 2 ≠ 3",     "1 = 2 != 3"),
        ];
        for (query, expected) in cases {
            assert_eq!(read(query).as_deref(), Ok(expected), "{query}");
        }
    }

    #[test]
    fn per_cent_or_modulo() {
        #[rustfmt::skip]
        let cases = [
            ("20%",            Ok("20 / 100")),
            ("20% * 5",        Ok("20 / 100 * 5")),
            ("5 / 20%",        Ok("5 / (20 / 100)")),
            ("20%^2",          Ok("(20 / 100) ** 2")),
            ("(20%)",          Ok("20 / 100")),
            ("20% = 1",        Ok("20 / 100 = 1")),
            ("20%5",           Ok("20 % 5")),
            ("20 % 5",         Ok("20 % 5")),
            ("20% (5)",        Ok("20 % 5")),
            ("20% + 5",        Ok("20 / 100 + 5")),
            ("20% - 5",        Ok("20 / 100 - 5")),
            ("20 % -5",        Ok("20 % -5")),
            ("20 % --5",       Ok("20 % 5")),
            ("20%(-5)",        Ok("20 % -5")),
            ("(20%)-5",        Ok("20 / 100 - 5")),
            ("20%-5",          Err(2)),
            ("20%+5",          Err(2)),
            ("20 %-5",         Err(3)),
            ("20 % - 5",       Err(3)),
            ("20% -5",         Err(2)),
            ("20%- 5",         Err(2)),
            ("20%%",           Err(3)),
            ("20% % 5",        Err(4)),
            ("20% -",          Err(2)),
            ("%",              Err(0)),
        ];
        for (query, expected) in cases {
            assert_eq!(read(query), expected.map(str::to_owned), "{query}");
        }
    }

    #[test]
    fn what_is_not_understood_has_a_place() {
        #[rustfmt::skip]
        let cases = [
            ("", 0), ("   ", 3), ("+", 1), ("1 +", 3), ("1 2", 2), ("2(3)", 1), ("(1", 2), ("1)", 1), ("()", 1),
            ("1 = ", 4), ("= 1", 0), ("1 = = 1", 4), ("1 * / 2", 4), ("1 *** 2", 4), ("(1 = 1)", 3), ("1 => 2", 3),
            ("5!", 1), ("5!=120", 1), ("5!= 120", 1), ("pi", 0), ("1 < > 2", 4),
        ];
        for (query, at) in cases {
            assert_eq!(read(query), Err(at), "{query}");
        }
        assert_eq!(read("5 !=120").as_deref(), Ok("5 != 120"));
        assert_eq!(read("5≠120").as_deref(), Ok("5 != 120"));
    }

    #[test]
    fn an_expected_value_is_one_expression_for_a_query_that_has_a_value() {
        let read = |query, expected| parse(query, Some(expected)).and_then(|claim| normal(&claim));
        assert_eq!(read("1+1", "2").as_deref(), Ok("1 + 1 = 2"));
        assert_eq!(read("1+1 = 2", "4/2").as_deref(), Ok("1 + 1 = 2 = 4 / 2"));
        for (query, expected, at) in [("1+1", "2 = 2", 2), ("1 < 2", " 2", 1), ("1+1", "", 0), ("1+1", "two", 0)] {
            let refusal = read(query, expected).expect_err(expected);
            assert_eq!(refusal, Refusal { reason: Reason::NotUnderstood, text: Text::Expected, at });
        }
    }

    #[test]
    fn parentheses_nest_to_the_limit_and_rows_do_not_nest() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(read(&nested(DEPTH_MAX)).as_deref(), Ok("1"));
        let refusal = parse(&nested(DEPTH_MAX + 1), None).expect_err("too deep");
        assert_eq!((refusal.reason, refusal.at), (Reason::Limit(Limit::Depth), DEPTH_MAX));
        let pairs = TOKENS_MAX / 2 - 1;
        assert!(read(&format!("1{}", "^1".repeat(pairs))).is_ok());
        assert!(read(&format!("{}1", "-".repeat(TOKENS_MAX - 1))).is_ok());
        assert!(read(&format!("1{}", "=1".repeat(pairs))).is_ok());
        assert!(read(&format!("1{}", "+(1)".repeat(TOKENS_MAX / 4 - 1))).is_ok());
    }
}
