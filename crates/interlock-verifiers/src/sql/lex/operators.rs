//! Operators and punctuation.

use sqlparser::tokenizer::Token;

use super::super::dialect::Dialect;
use super::{Lexer, NotRead};

impl Lexer<'_> {
    pub(super) fn operator(&mut self, byte: u8) -> Result<(), NotRead> {
        let start = self.at;
        let (length, token) = match self.operator_at(byte) {
            Some(found) => found,
            None => return self.not_sql(),
        };
        if self.dialect == Dialect::Postgres && is_operator(byte) && self.operator_run() != length {
            return self.not_understood("an operator");
        }
        self.skip(length);
        self.push(start, token)
    }

    /// How long PostgreSQL takes the operator here to be.
    fn operator_run(&self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut run: usize = 0;
        for pair in rest.windows(2).chain(rest.last().map(core::slice::from_ref)) {
            match pair {
                [b'-', b'-'] | [b'/', b'*'] => break,
                [byte, ..] if is_operator(*byte) => run = run.saturating_add(1),
                _ => break,
            }
        }
        let mut operator = rest.get(..run).unwrap_or_default();
        while let [before @ .., b'+' | b'-'] = operator {
            if before.is_empty() || before.iter().any(|byte| b"~!@#%^&|`?".contains(byte)) {
                break;
            }
            operator = before;
        }
        operator.len()
    }

    fn operator_at(&mut self, byte: u8) -> Option<(usize, Token)> {
        let postgres = self.dialect == Dialect::Postgres;
        let mysql = self.dialect == Dialect::Mysql;
        let [second, third, fourth] = [1, 2, 3].map(|ahead| self.byte(ahead).unwrap_or(0));
        Some(match [byte, second, third, fourth] {
            [b'!', b'~', b'~', b'*'] if postgres => (4, Token::ExclamationMarkDoubleTildeAsterisk),
            [b'!', b'~', b'~', _] if postgres => (3, Token::ExclamationMarkDoubleTilde),
            [b'!', b'~', b'*', _] if postgres => (3, Token::ExclamationMarkTildeAsterisk),
            [b'!', b'~', ..] if postgres => (2, Token::ExclamationMarkTilde),
            [b'~', b'~', b'*', _] if postgres => (3, Token::DoubleTildeAsterisk),
            [b'~', b'~', ..] if postgres => (2, Token::DoubleTilde),
            [b'~', b'*', ..] if postgres => (2, Token::TildeAsterisk),
            [b'#', b'>', b'>', _] if postgres => (3, Token::HashLongArrow),
            [b'#', b'>', ..] if postgres => (2, Token::HashArrow),
            [b'#', b'-', ..] if postgres => (2, Token::HashMinus),
            [b'#', ..] if postgres => (1, Token::Sharp),
            [b'@', b'>', ..] if postgres => (2, Token::AtArrow),
            [b'@', b'?', ..] if postgres => (2, Token::AtQuestion),
            [b'@', b'@', ..] if postgres => (2, Token::AtAt),
            [b'@', ..] if postgres => (1, Token::AtSign),
            [b'<', b'@', ..] if postgres => (2, Token::ArrowAt),
            [b'?', b'|', ..] if postgres => (2, Token::QuestionPipe),
            [b'?', b'&', ..] if postgres => (2, Token::QuestionAnd),
            [b'?', ..] if postgres => (1, Token::Question),
            [b'^', b'@', ..] if postgres => (2, Token::CaretAt),
            [b'-', b'>', b'>', _] => (3, Token::LongArrow),
            [b'-', b'>', ..] => (2, Token::Arrow),
            [b'<', b'=', b'>', _] => (3, Token::Spaceship),
            [b'<', b'=', ..] => (2, Token::LtEq),
            [b'<', b'>', ..] | [b'!', b'=', ..] => (2, Token::Neq),
            [b'<', b'<', ..] => (2, Token::ShiftLeft),
            [b'>', b'=', ..] => (2, Token::GtEq),
            [b'>', b'>', ..] => (2, Token::ShiftRight),
            [b'=', b'=', ..] => (2, Token::DoubleEq),
            [b'=', b'>', ..] => (2, Token::RArrow),
            [b'|', b'|', ..] if mysql => {
                self.scan.doubts.pipes = true;
                (2, if self.modes.pipes_or { Token::make_keyword("OR") } else { Token::StringConcat })
            }
            [b'|', b'|', ..] => (2, Token::StringConcat),
            [b'|', b'>', ..] if self.dialect == Dialect::Bigquery => (2, Token::VerticalBarRightAngleBracket),
            [b'&', b'&', ..] if mysql => (2, Token::make_keyword("AND")),
            [b'&', b'&', ..] => (2, Token::Overlap),
            [b':', b':', ..] => (2, Token::DoubleColon),
            [b':', b'=', ..] => (2, Token::Assignment),
            [b':', ..] => (1, Token::Colon),
            [b'=', ..] => (1, Token::Eq),
            [b'<', ..] => (1, Token::Lt),
            [b'>', ..] => (1, Token::Gt),
            [b'!', ..] if mysql => (1, Token::ExclamationMark),
            [b'|', ..] => (1, Token::Pipe),
            [b'&', ..] => (1, Token::Ampersand),
            [b'~', ..] => (1, Token::Tilde),
            [b'^', ..] => (1, Token::Caret),
            [b'+', ..] => (1, Token::Plus),
            [b'-', ..] => (1, Token::Minus),
            [b'*', ..] => (1, Token::Mul),
            [b'/', ..] => (1, Token::Div),
            [b'%', ..] => (1, Token::Mod),
            [b'(', ..] => (1, Token::LParen),
            [b')', ..] => (1, Token::RParen),
            [b'[', ..] => (1, Token::LBracket),
            [b']', ..] => (1, Token::RBracket),
            [b'{', ..] => (1, Token::LBrace),
            [b'}', ..] => (1, Token::RBrace),
            [b',', ..] => (1, Token::Comma),
            [b'.', ..] => (1, Token::Period),
            [b';', ..] => (1, Token::SemiColon),
            _ => return None,
        })
    }
}

/// A character of PostgreSQL's operators.
fn is_operator(byte: u8) -> bool {
    b"+-*/<>=~!@#%^&|`?".contains(&byte)
}
