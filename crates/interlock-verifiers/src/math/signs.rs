//! The signs between two operands, and which of them do not go together.
//!
//! Knows what operator a token is, and where readers group the signs of a product in two ways.

use super::claim::{Level, Operator};
use super::lex::{Token, TokenKind};

/// The signs of a product that do not go together with every other one.
#[derive(Default)]
pub(super) struct Signs {
    slash: bool,
    /// `÷`
    obelus: bool,
    /// The word `mod`.
    pub(super) word: bool,
}

impl Signs {
    /// Notes a token that joins factors. Whether readers could group it with those before it in two ways:
    /// `1/2 ÷ 1/4` are two fractions to most, and `3/4 mod 1/2` are too.
    pub(super) fn clash_with(&mut self, token: &Token<'_>, alone: bool) -> bool {
        let joins = operator(&token.kind).is_some_and(|operator| operator.level() == Level::Product);
        if !joins {
            return false;
        }
        let word = matches!(token.kind, TokenKind::Word(_));
        let clash = self.word || (word && !alone);
        self.slash |= is_slash(token);
        self.obelus |= token.kind == TokenKind::Divide && !is_slash(token);
        self.word |= word;
        clash || (self.slash && self.obelus)
    }
}

/// Whether a sign of division is written `/`, the other is longer.
pub(super) fn is_slash(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Divide && token.end.saturating_sub(token.at) == "/".len()
}

/// The operator that a token is, if it is one.
#[rustfmt::skip]
pub(super) fn operator(kind: &TokenKind<'_>) -> Option<Operator> {
    match kind {
        TokenKind::Plus        => Some(Operator::Add),
        TokenKind::Minus       => Some(Operator::Subtract),
        TokenKind::Times       => Some(Operator::Multiply),
        TokenKind::Divide      => Some(Operator::Divide),
        TokenKind::FloorDivide => Some(Operator::FloorDivide),
        TokenKind::Percent | TokenKind::Word("mod") => Some(Operator::Modulo),
        TokenKind::Power       => Some(Operator::Power),
        TokenKind::Number(_) | TokenKind::Word(_) | TokenKind::Currency(_) | TokenKind::Raised(_)
        | TokenKind::Factorial | TokenKind::Root | TokenKind::Open | TokenKind::Close | TokenKind::OpenList
        | TokenKind::CloseList | TokenKind::Comma(_) | TokenKind::Semicolon | TokenKind::Implies
        | TokenKind::Relation(_) => None,
    }
}
