//! Text to tokens: numbers, words, signs, relations.
//!
//! Decides how a number may be written, and whether a comma belongs to it. Does not know which sign may follow which;
//! that is the parser's.

use std::borrow::Cow;

use super::limits::{EXPONENT_DIGITS_MAX, Limit, TEXT_BYTES_MAX, TOKENS_MAX};
use super::no_value::{NoValue, Reason, Text};
use super::vocabulary::{Function, Unit, function};

/// Reads a text into tokens. Only the whole text will do.
pub(super) fn lex(text: Text, source: &str) -> Result<Vec<Token<'_>>, NoValue> {
    let refuse = |reason, at| NoValue { reason, text, at };
    if source.len() > TEXT_BYTES_MAX {
        return Err(refuse(Reason::Limit(Limit::TextBytes), TEXT_BYTES_MAX));
    }
    let mut rest = Cursor { rest: source, at: 0 };
    rest.skip(|character| character.is_ascii_whitespace());
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // For every parenthesis that is open, whether it holds a list: there, a comma ends a number.
    let mut lists = Vec::new();
    while let Some(character) = rest.peek() {
        let at = rest.at;
        if tokens.len() == TOKENS_MAX {
            return Err(refuse(Reason::Limit(Limit::Tokens), at));
        }
        let kind = if character.is_ascii_digit() || character == '.' {
            let grouped = lists.last() != Some(&true);
            TokenKind::Number(number(&mut rest, grouped).map_err(|reason| refuse(reason, at))?)
        } else if character.is_ascii_alphabetic() {
            TokenKind::Word(rest.take_word())
        } else if rest.take(",") {
            TokenKind::Comma(comma(tokens.last(), at, rest.rest))
        } else if let Some(sign) = rest.take_sign() {
            sign
        } else {
            return Err(refuse(Reason::NotUnderstood, at));
        };
        if kind == TokenKind::Open {
            lists.push(tokens.last().is_some_and(opens_a_list));
        } else if kind == TokenKind::Close {
            lists.pop();
        }
        tokens.push(Token { kind, at, end: rest.at });
        // A line break inside is not a blank: in many languages `1` and, on the next line, `-2` are two statements.
        rest.skip(|character| matches!(character, ' ' | '\t'));
        rest.skip_end();
    }
    Ok(tokens)
}

/// A piece of the text with its bytes, `at..end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind<'t>,
    pub(super) at: usize,
    pub(super) end: usize,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind<'t> {
    Number(Literal<'t>),
    Word(&'t str),
    Currency(Unit),
    Plus,
    Minus,
    Times,
    Divide,
    FloorDivide,
    /// Modulo or per cent; the parser tells which.
    Percent,
    Power,
    /// A raised digit: `²` and `³`.
    Raised(u8),
    Factorial,
    Root,
    Open,
    Close,
    OpenList,
    CloseList,
    Comma(Comma),
    Semicolon,
    Implies,
    Relation(Relation),
}

/// How a comma stands. In a list, `1,200` is one number to some readers and two to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comma {
    /// Between digits as in `1,200`.
    LikeThousands,
    /// Any other.
    Separator,
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
    /// The one side is the other, rounded to the digits it is written with.
    Approximate,
}

/// A number as written, without separators: `whole.fraction × 10^exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal<'t> {
    /// Digits without a leading zero, or one `0`.
    pub(super) whole: Cow<'t, str>,
    /// Digits after the point; may be empty.
    pub(super) fraction: &'t str,
    /// Zero where none was written.
    pub(super) exponent: i64,
}

impl<'t> Literal<'t> {
    /// An integer, from its digits.
    pub(super) fn integer(digits: &'t str) -> Literal<'t> {
        Literal { whole: Cow::Borrowed(digits), fraction: "", exponent: 0 }
    }

    /// Whether it is written with separators, as in `4,600`.
    pub(super) fn is_grouped(&self) -> bool {
        // Only separators make it longer than the text allows to borrow; a lone `0` is owned too.
        matches!(&self.whole, Cow::Owned(digits) if digits.len() > 3)
    }

    /// The value, if it is written as an integer and small.
    pub(super) fn small(&self) -> Option<i32> {
        if !self.fraction.is_empty() || self.exponent != 0 {
            return None;
        }
        self.whole.parse().ok()
    }
}

/// Every sign, the longer before the shorter that it begins with.
#[rustfmt::skip]
const SIGNS: [(&str, TokenKind<'static>); 45] = [
    ("**", TokenKind::Power),
    ("//", TokenKind::FloorDivide),
    ("<=", TokenKind::Relation(Relation::LessOrEqual)),
    (">=", TokenKind::Relation(Relation::GreaterOrEqual)),
    ("==", TokenKind::Relation(Relation::Equal)),
    ("=>", TokenKind::Implies),
    ("!=", TokenKind::Relation(Relation::NotEqual)),
    ("~=", TokenKind::Relation(Relation::Approximate)),
    ("->", TokenKind::Implies),
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
    ("²",  TokenKind::Raised(2)),
    ("³",  TokenKind::Raised(3)),
    ("!",  TokenKind::Factorial),
    ("√",  TokenKind::Root),
    ("π",  TokenKind::Word("pi")),
    ("(",  TokenKind::Open),
    (")",  TokenKind::Close),
    ("[",  TokenKind::OpenList),
    ("]",  TokenKind::CloseList),
    (";",  TokenKind::Semicolon),
    ("=",  TokenKind::Relation(Relation::Equal)),
    ("<",  TokenKind::Relation(Relation::Less)),
    (">",  TokenKind::Relation(Relation::Greater)),
    ("≠",  TokenKind::Relation(Relation::NotEqual)),
    ("≤",  TokenKind::Relation(Relation::LessOrEqual)),
    ("≥",  TokenKind::Relation(Relation::GreaterOrEqual)),
    ("≈",  TokenKind::Relation(Relation::Approximate)),
    ("⇒",  TokenKind::Implies),
    ("⟹",  TokenKind::Implies),
    ("→",  TokenKind::Implies),
    ("∴",  TokenKind::Implies),
    ("$",  TokenKind::Currency(Unit::Dollar)),
    ("€",  TokenKind::Currency(Unit::Euro)),
    ("£",  TokenKind::Currency(Unit::Sterling)),
    ("¥",  TokenKind::Currency(Unit::YenSign)),
    ("₹",  TokenKind::Currency(Unit::Rupee)),
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

    /// Letters, and after the first one digits and underscores; the abbreviations with points are words too.
    fn take_word(&mut self) -> &'t str {
        for (abbreviation, word) in [("d.p.", "dp"), ("s.f.", "sf")] {
            if self.take(abbreviation) {
                return word;
            }
        }
        self.take_while(|character| character.is_ascii_alphanumeric() || character == '_')
    }

    fn take_sign(&mut self) -> Option<TokenKind<'t>> {
        let first = self.rest.as_bytes().first()?;
        let begins = |spelling: &str| spelling.as_bytes().first() == Some(first);
        let sign = SIGNS.iter().find(|(spelling, _)| begins(spelling) && self.take(spelling));
        sign.map(|(_, kind)| kind.clone())
    }

    /// Takes the `e` of an exponent; that of `2 euros` or `2e` is a letter.
    fn exponent_follows(&mut self) -> bool {
        let Some(rest) = self.rest.strip_prefix(['e', 'E']) else { return false };
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let follows = unsigned.starts_with(|next: char| next.is_ascii_digit());
        follows && (self.take("e") || self.take("E"))
    }

    fn take_digits(&mut self) -> Result<&'t str, Reason> {
        let digits = self.take_while(|character| character.is_ascii_digit());
        if digits.is_empty() { Err(Reason::NotUnderstood) } else { Ok(digits) }
    }
}

fn number<'t>(text: &mut Cursor<'t>, grouped: bool) -> Result<Literal<'t>, Reason> {
    let start = text.rest;
    text.skip(|character| character.is_ascii_digit());
    // A comma that no digit follows ends the number.
    while grouped
        && text.rest.strip_prefix(',').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    {
        text.take(",");
        text.skip(|character| character.is_ascii_digit());
    }
    let length = start.len().saturating_sub(text.rest.len());
    let whole = whole(start.get(..length).unwrap_or_default())?;
    let fraction = if text.take(".") { text.take_digits()? } else { "" };
    let exponent = if text.exponent_follows() { exponent(text)? } else { 0 };
    Ok(Literal { whole, fraction, exponent })
}

/// How the comma at a byte stands between the token before it and the text after it.
fn comma(before: Option<&Token<'_>>, at: usize, after: &str) -> Comma {
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let short = |number: &Literal<'_>| number.fraction.is_empty() && number.exponent == 0 && number.whole.len() <= 3;
    let group = before.is_some_and(|token| {
        token.end == at && matches!(&token.kind, TokenKind::Number(number) if short(number) && number.whole != "0")
    });
    if group && digits == 3 { Comma::LikeThousands } else { Comma::Separator }
}

fn opens_a_list(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Word(word) if function(word).is_some_and(Function::takes_several))
}

/// The digits before the point. `1,000` is a thousand; `1,00` and `10,0000` mean different numbers to different people.
fn whole(written: &str) -> Result<Cow<'_, str>, Reason> {
    if !written.contains(',') && !written.starts_with('0') && !written.is_empty() {
        return Ok(Cow::Borrowed(written));
    }
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
    Ok(if first.is_empty() { Cow::Borrowed("0") } else { Cow::Owned([first, &others.concat()].concat()) })
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
                Some((whole.to_string(), (*fraction).to_owned(), *exponent))
            }
            _ => None,
        }
    }

    fn refused_at(source: &str) -> (Reason, usize) {
        let no_value = lex(Text::Query, source).expect_err(source);
        (no_value.reason, no_value.at)
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
        assert_eq!(refused_at("1 × #"), (Reason::NotUnderstood, 5));
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
