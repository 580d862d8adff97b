//! Text to tokens: numbers, signs, relations.
//!
//! Decides how a number may be written. Does not know which sign may follow which; that is the parser's.

use super::limits::{EXPONENT_DIGITS_MAX, Limit, TEXT_BYTES_MAX, TOKENS_MAX};
use super::refusal::{Reason, Refusal, Text};

/// Reads a text into tokens. Only the whole text will do.
pub(super) fn lex(text: Text, source: &str) -> Result<Vec<Token>, Refusal> {
    let refuse = |reason, at| Refusal { reason, text, at };
    if source.len() > TEXT_BYTES_MAX {
        return Err(refuse(Reason::Limit(Limit::TextBytes), TEXT_BYTES_MAX));
    }
    let mut rest = Cursor { rest: source, at: 0 };
    rest.skip(|character| character.is_ascii_whitespace());
    let mut tokens = Vec::new();
    while let Some(character) = rest.peek() {
        let at = rest.at;
        if tokens.len() == TOKENS_MAX {
            return Err(refuse(Reason::Limit(Limit::Tokens), at));
        }
        let kind = if character.is_ascii_digit() || character == '.' {
            TokenKind::Number(number(&mut rest).map_err(|reason| refuse(reason, at))?)
        } else if let Some(sign) = rest.take_sign() {
            sign
        } else {
            return Err(refuse(Reason::NotUnderstood, at));
        };
        tokens.push(Token { kind, at, end: rest.at });
        // A line break inside is not a blank: in many languages `1` and, on the next line, `-2` are two statements.
        rest.skip(|character| matches!(character, ' ' | '\t'));
        rest.skip_end();
    }
    Ok(tokens)
}

/// A piece of the text with its bytes, `at..end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
    pub(super) end: usize,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    Number(Literal),
    Plus,
    Minus,
    Times,
    Divide,
    FloorDivide,
    /// Modulo or per cent; the parser tells which.
    Percent,
    Power,
    Open,
    Close,
    Relation(Relation),
}

/// How two sides of a claim relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A number as written, without separators: `whole.fraction × 10^exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    /// Digits without a leading zero, or one `0`.
    pub(super) whole: String,
    /// Digits after the point; may be empty.
    pub(super) fraction: String,
    /// Zero where none was written.
    pub(super) exponent: i64,
}

/// Every sign, the longer before the shorter that it begins with.
#[rustfmt::skip]
const SIGNS: [(&str, TokenKind); 24] = [
    ("**", TokenKind::Power),
    ("//", TokenKind::FloorDivide),
    ("<=", TokenKind::Relation(Relation::LessOrEqual)),
    (">=", TokenKind::Relation(Relation::GreaterOrEqual)),
    ("==", TokenKind::Relation(Relation::Equal)),
    ("!=", TokenKind::Relation(Relation::NotEqual)),
    ("+",  TokenKind::Plus),
    ("-",  TokenKind::Minus),
    ("−",  TokenKind::Minus),
    ("*",  TokenKind::Times),
    ("×",  TokenKind::Times),
    ("·",  TokenKind::Times),
    ("/",  TokenKind::Divide),
    ("÷",  TokenKind::Divide),
    ("%",  TokenKind::Percent),
    ("^",  TokenKind::Power),
    ("(",  TokenKind::Open),
    (")",  TokenKind::Close),
    ("=",  TokenKind::Relation(Relation::Equal)),
    ("<",  TokenKind::Relation(Relation::Less)),
    (">",  TokenKind::Relation(Relation::Greater)),
    ("≠",  TokenKind::Relation(Relation::NotEqual)),
    ("≤",  TokenKind::Relation(Relation::LessOrEqual)),
    ("≥",  TokenKind::Relation(Relation::GreaterOrEqual)),
];

/// What is left of the text.
struct Cursor<'t> {
    rest: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|character| !wanted(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.at = self.at.saturating_add(taken.len());
        taken
    }

    fn skip(&mut self, blank: impl Fn(char) -> bool) {
        self.take_while(blank);
    }

    /// Skips white space of any kind if nothing else follows.
    fn skip_end(&mut self) {
        if self.rest.trim_ascii().is_empty() {
            self.skip(|_| true);
        }
    }

    fn take(&mut self, prefix: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(prefix) else { return false };
        self.rest = rest;
        self.at = self.at.saturating_add(prefix.len());
        true
    }

    fn take_sign(&mut self) -> Option<TokenKind> {
        SIGNS.iter().find(|(spelling, _)| self.take(spelling)).map(|(_, kind)| kind.clone())
    }

    fn take_digits(&mut self) -> Result<&'t str, Reason> {
        let digits = self.take_while(|character| character.is_ascii_digit());
        if digits.is_empty() { Err(Reason::NotUnderstood) } else { Ok(digits) }
    }
}

fn number(text: &mut Cursor<'_>) -> Result<Literal, Reason> {
    let whole = whole(text.take_while(|character| character.is_ascii_digit() || character == ','))?;
    let fraction = if text.take(".") { text.take_digits()?.to_owned() } else { String::new() };
    let exponent = if text.take("e") || text.take("E") { exponent(text)? } else { 0 };
    Ok(Literal { whole, fraction, exponent })
}

/// The digits before the point. `1,000` is a thousand; `1,00` and `10,0000` mean different numbers to different people.
fn whole(written: &str) -> Result<String, Reason> {
    let mut groups = written.split(',');
    let first = groups.next().unwrap_or_default();
    let others: Vec<&str> = groups.collect();
    let well_formed = matches!(first.len(), 1..=3) && others.iter().all(|group| group.len() == 3);
    if !others.is_empty() && !well_formed {
        return Err(Reason::NotUnderstood);
    }
    // `010` is eight to some readers and ten to others.
    if first.starts_with('0') && written.len() > 1 {
        return Err(Reason::NotUnderstood);
    }
    // Nothing before the point, as in `.5`; that the point is there was seen before.
    Ok(if first.is_empty() { "0".to_owned() } else { [first, &others.concat()].concat() })
}

fn exponent(text: &mut Cursor<'_>) -> Result<i64, Reason> {
    let negative = text.take("-");
    if !negative {
        text.take("+");
    }
    let digits = text.take_digits()?.trim_start_matches('0');
    if digits.len() > EXPONENT_DIGITS_MAX {
        return Err(Reason::Limit(Limit::ExponentDigits));
    }
    let size: i64 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| Reason::NotUnderstood)? };
    Ok(if negative { size.saturating_neg() } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(source: &str) -> Option<(String, String, i64)> {
        match lex(Text::Query, source).ok()?.as_slice() {
            [Token { kind: TokenKind::Number(Literal { whole, fraction, exponent }), .. }] => {
                Some((whole.clone(), fraction.clone(), *exponent))
            }
            _ => None,
        }
    }

    fn refused_at(source: &str) -> (Reason, usize) {
        let refusal = lex(Text::Query, source).expect_err(source);
        (refusal.reason, refusal.at)
    }

    #[test]
    fn numbers_can_be_written_in_these_ways() {
        for (source, whole, fraction, exponent) in [
            ("0", "0", "", 0),
            ("7", "7", "", 0),
            ("1.50", "1", "50", 0),
            (".5", "0", "5", 0),
            ("0.5", "0", "5", 0),
            ("1e3", "1", "", 3),
            ("1E+03", "1", "", 3),
            ("2.5e-007", "2", "5", -7),
            ("1,000", "1000", "", 0),
            ("12,345,678.9", "12345678", "9", 0),
            ("999,000e2", "999000", "", 2),
            ("1e000999999", "1", "", 999_999),
        ] {
            assert_eq!(literal(source), Some((whole.to_owned(), fraction.to_owned(), exponent)), "{source}");
        }
    }

    #[test]
    fn and_in_no_others() {
        #[rustfmt::skip]
        let sources = [
            "1,00", "1,0000", "1000,000", ",100", "1,", "1,,000", "0,100", "00", "007", "1.", ".", "1.e3", "1e", "1e+",
            "1.5,000", "0x10", "1_000", "१", "1f", "½", "²",
        ];
        for source in sources {
            assert_eq!(literal(source), None, "{source}");
        }
    }

    #[test]
    fn a_longer_sign_wins() {
        for (index, (spelling, kind)) in SIGNS.iter().enumerate() {
            let tokens = lex(Text::Query, spelling).expect(spelling);
            assert_eq!(tokens, [Token { kind: kind.clone(), at: 0, end: spelling.len() }]);
            let shadowed = SIGNS[..index].iter().any(|(earlier, _)| spelling.starts_with(earlier));
            assert!(!shadowed, "{spelling} can never be read");
        }
    }

    #[test]
    fn positions_are_bytes_of_the_text() {
        let tokens = lex(Text::Query, " \n1 × 2\r\n").expect("tokens");
        assert_eq!(tokens.iter().map(|token| (token.at, token.end)).collect::<Vec<_>>(), [(2, 3), (4, 6), (7, 8)]);
        assert_eq!(refused_at("1 × x"), (Reason::NotUnderstood, 5));
        assert_eq!(refused_at("1\n+ 2"), (Reason::NotUnderstood, 1));
    }

    #[test]
    fn limits_hold_to_the_unit() {
        let blanks = |count: usize| format!("1{}", " ".repeat(count - 1));
        assert!(lex(Text::Query, &blanks(TEXT_BYTES_MAX)).is_ok());
        assert_eq!(refused_at(&blanks(TEXT_BYTES_MAX + 1)), (Reason::Limit(Limit::TextBytes), TEXT_BYTES_MAX));
        assert!(lex(Text::Query, &"+".repeat(TOKENS_MAX)).is_ok());
        assert_eq!(refused_at(&"+".repeat(TOKENS_MAX + 1)), (Reason::Limit(Limit::Tokens), TOKENS_MAX));
        assert_eq!(refused_at("1e1000000"), (Reason::Limit(Limit::ExponentDigits), 0));
    }
}
