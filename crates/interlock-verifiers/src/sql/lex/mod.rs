//! Text to tokens, by the rules of one dialect.
//!
//! The parser is given these tokens, not the text: where a string ends and where a comment begins decides everything
//! after it, so that is settled here, once, in linear time. What this file does not know for certain it refuses.

mod operators;

use sqlparser::ast::DollarQuotedString;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Whitespace};

use super::dialect::{Dialect, Doubts, Modes};
use super::limits::{NESTING_MAX, RUN_TOKENS_MAX};

/// Why a text is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotRead {
    /// It is not a text of the dialect.
    NotSql { at: usize },
    /// It may be, but this program does not know what it means.
    NotUnderstood { at: usize, what: &'static str },
    /// It is beyond a limit.
    Limit { what: &'static str },
}

/// A text in tokens.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Where the first comment is, and whether one is a trick.
    pub(super) comment: Option<Comment>,
    pub(super) doubts: Doubts,
    /// Where a word stands that no reading statement has, unquoted.
    pub(super) write_word: Option<usize>,
}

/// A comment that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comment {
    pub(super) at: usize,
    /// It is executed, never ends, holds another, or glues two words.
    pub(super) trick: bool,
}

/// Splits a text into tokens.
pub(super) fn scan(text: &str, dialect: Dialect, modes: Modes) -> Result<Scan, NotRead> {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        dialect,
        modes,
        scan: Scan {
            tokens: Vec::with_capacity((text.len() / 3).saturating_add(4)),
            comment: None,
            doubts: Doubts::NONE,
            write_word: None,
        },
        runs: vec![0],
        settled: dialect.open_modes(),
    };
    // Where a server or driver ends a text at this byte, it sees another text.
    if let Some(at) = lexer.bytes.iter().position(|byte| *byte == 0) {
        return Err(NotRead::NotSql { at });
    }
    while let Some(byte) = lexer.byte(0) {
        lexer.token(byte)?;
    }
    Ok(lexer.scan)
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    dialect: Dialect,
    modes: Modes,
    scan: Scan,
    /// For each open parenthesis, how many tokens there were since the last comma.
    runs: Vec<u32>,
    /// What a setting of the server decides in this dialect.
    settled: Doubts,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at.saturating_add(ahead)).copied()
    }

    fn is(&self, ahead: usize, byte: u8) -> bool {
        self.byte(ahead) == Some(byte)
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn not_sql<T>(&self) -> Result<T, NotRead> {
        Err(NotRead::NotSql { at: self.at })
    }

    fn not_understood<T>(&self, what: &'static str) -> Result<T, NotRead> {
        Err(NotRead::NotUnderstood { at: self.at, what })
    }

    fn one_of(&self, dialects: &[Dialect]) -> bool {
        dialects.contains(&self.dialect)
    }

    /// Adds a token that began at `start` and ends here.
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other token counts")]
    fn push(&mut self, start: usize, token: Token) -> Result<(), NotRead> {
        match &token {
            Token::Whitespace(_) => {}
            Token::LParen | Token::LBracket | Token::LBrace => {
                if self.runs.len() > NESTING_MAX {
                    return Err(NotRead::Limit { what: "parentheses are nested too deep" });
                }
                self.runs.push(0);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if self.runs.len() > 1 {
                    self.runs.pop();
                }
                self.count()?;
            }
            Token::Comma | Token::SemiColon => {
                if let Some(run) = self.runs.last_mut() {
                    *run = 0;
                }
            }
            _ => self.count()?,
        }
        let place = |at: usize| Location { line: 1, column: u64::try_from(at).unwrap_or(u64::MAX).saturating_add(1) };
        let span = Span { start: place(start), end: place(self.at) };
        self.scan.tokens.push(TokenWithSpan { token, span });
        Ok(())
    }

    fn count(&mut self) -> Result<(), NotRead> {
        if let Some(run) = self.runs.last_mut() {
            *run = run.saturating_add(1);
            if *run > RUN_TOKENS_MAX {
                return Err(NotRead::Limit { what: "a part without commas or parentheses is too long" });
            }
        }
        Ok(())
    }

    fn token(&mut self, byte: u8) -> Result<(), NotRead> {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.whitespace(),
            b'\'' => self.string(self.at, Literal::Plain),
            b'"' => self.double_quotes(),
            b'`' if self.one_of(&[Dialect::Mysql, Dialect::Sqlite, Dialect::Bigquery]) => self.quoted_name('`', b'`'),
            b'[' if self.one_of(&[Dialect::Mssql, Dialect::Sqlite]) => self.quoted_name('[', b']'),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) && !self.after_name() => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(self.at),
            b'@' | b'#' | b'$' | b'?' | b':' => self.sigil(byte),
            b'-' if self.is(1, b'-') && self.dashes_comment() => self.line_comment(2),
            b'/' if self.is(1, b'*') => self.block_comment(),
            b'/' if self.is(1, b'/') && self.dialect == Dialect::Snowflake => self.line_comment(2),
            _ => self.operator(byte),
        }
    }

    fn whitespace(&mut self) -> Result<(), NotRead> {
        let start = self.at;
        let mut newline = false;
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.byte(0) {
            newline |= byte == b'\n' || byte == b'\r';
            self.skip(1);
        }
        let kind = if newline { Whitespace::Newline } else { Whitespace::Space };
        self.push(start, Token::Whitespace(kind))
    }

    /// In MySQL two dashes begin a comment only before white space; elsewhere always.
    fn dashes_comment(&self) -> bool {
        self.dialect != Dialect::Mysql || self.byte(2).is_none_or(|next| next.is_ascii_whitespace() || next < b' ')
    }

    /// A comment is refused later; here it stands for white space, so that the rest is judged as well.
    fn line_comment(&mut self, sign: usize) -> Result<(), NotRead> {
        let start = self.at;
        self.skip(sign);
        while self.byte(0).is_some_and(|byte| byte != b'\n' && byte != b'\r') {
            self.skip(1);
        }
        self.comment(start, false)
    }

    fn block_comment(&mut self) -> Result<(), NotRead> {
        let start = self.at;
        let nests = self.one_of(&[Dialect::Postgres, Dialect::Mssql]);
        self.skip(2);
        let executed = self.is(0, b'!') || (self.is(0, b'M') && self.is(1, b'!'));
        let glued =
            start.checked_sub(1).and_then(|before| self.bytes.get(before)).is_some_and(u8::is_ascii_alphanumeric);
        let mut open = 1_u32;
        let mut nested = false;
        while open > 0 {
            match (self.byte(0), self.byte(1)) {
                (None, _) => return self.comment(start, true),
                (Some(b'*'), Some(b'/')) => {
                    open = open.saturating_sub(1);
                    self.skip(2);
                }
                (Some(b'/'), Some(b'*')) => {
                    nested = true;
                    open = open.saturating_add(u32::from(nests));
                    self.skip(2);
                }
                (Some(_), _) => self.skip(1),
            }
        }
        let glues = glued && self.byte(0).is_some_and(|after| after.is_ascii_alphanumeric());
        self.comment(start, executed || nested || glues)
    }

    fn comment(&mut self, start: usize, trick: bool) -> Result<(), NotRead> {
        let first = self.scan.comment.unwrap_or(Comment { at: start, trick: false });
        self.scan.comment = Some(Comment { at: first.at, trick: first.trick || trick });
        self.push(start, Token::Whitespace(Whitespace::Space))
    }

    /// Whether the last token is a name or closes something, so that a full stop selects from it.
    fn after_name(&self) -> bool {
        let last = self.scan.tokens.last().map(|token| &token.token);
        matches!(last, Some(Token::Word(_) | Token::RParen | Token::RBracket | Token::Placeholder(_)))
    }

    /// The end of what stands in quotes, the opening one being passed already; and whether a quote in it is doubled.
    fn quoted(&mut self, quote: u8, escapes: bool) -> Result<(usize, bool), NotRead> {
        let mut doubled = false;
        let mut backslashes = 0_usize;
        let mut doubtful = false;
        loop {
            match self.byte(0) {
                None => return self.not_sql(),
                Some(b'\\') => {
                    backslashes = backslashes.saturating_add(1);
                    // MySQL escapes by default, so that any backslash in a text is one that another server reads otherwise.
                    doubtful |= self.dialect == Dialect::Mysql;
                    self.skip(1);
                    continue;
                }
                Some(byte) if byte == quote => {
                    // The one reading of the backslashes takes this quote for the end, the other does not.
                    let odd = backslashes & 1 == 1;
                    doubtful |= odd;
                    if odd && escapes {
                        self.skip(1);
                    } else if self.is(1, quote) {
                        doubled = true;
                        self.skip(2);
                    } else {
                        let end = self.at;
                        self.skip(1);
                        self.scan.doubts.backslash |= doubtful && self.settled.backslash;
                        return Ok((end, doubled));
                    }
                }
                Some(_) => self.skip(1),
            }
            backslashes = 0;
        }
    }

    fn content(&self, start: usize, end: usize, quote: &str, doubled: bool) -> String {
        let content = self.text.get(start..end).unwrap_or_default();
        if doubled { content.replace(&[quote, quote].concat(), quote) } else { content.to_owned() }
    }

    /// A literal in single quotes; `start` is where its prefix begins.
    fn string(&mut self, start: usize, literal: Literal) -> Result<(), NotRead> {
        let bigquery = self.dialect == Dialect::Bigquery;
        if bigquery && self.is(1, b'\'') && self.is(2, b'\'') {
            return self.not_understood("a string in three quotes");
        }
        let escapes = match literal {
            Literal::Plain | Literal::National => self.modes.backslash_escapes,
            Literal::Escaped | Literal::Bytes => true,
            Literal::Hex | Literal::Bits | Literal::Unicode => false,
        };
        let doubts = self.scan.doubts;
        self.skip(1);
        let open = self.at;
        // BigQuery refuses a doubled quote, so nothing is lost by reading it as the others do.
        let (end, doubled) = self.quoted(b'\'', escapes)?;
        if matches!(literal, Literal::Escaped | Literal::Bytes | Literal::Unicode) {
            self.scan.doubts = doubts;
        }
        let text = self.content(open, end, "'", doubled);
        // Some drivers for SQL Server send these as quotes.
        if self.dialect == Dialect::Mssql && text.contains(['\u{2b9}', '\u{2bc}', '\u{2c8}', '\u{2032}', '\u{ff07}']) {
            self.scan.doubts.names = true;
        }
        if bigquery && text.contains('\n') {
            return self.not_sql();
        }
        let token = match literal {
            Literal::Plain => Token::SingleQuotedString(text),
            Literal::National => Token::NationalStringLiteral(text),
            Literal::Escaped => Token::EscapedStringLiteral(text),
            Literal::Unicode => Token::UnicodeStringLiteral(text),
            Literal::Bytes => Token::SingleQuotedByteStringLiteral(text),
            Literal::Hex if text.bytes().all(|digit| digit.is_ascii_hexdigit()) => Token::HexStringLiteral(text),
            Literal::Bits if text.bytes().all(|digit| matches!(digit, b'0' | b'1')) => {
                Token::SingleQuotedByteStringLiteral(text)
            }
            Literal::Hex | Literal::Bits => return Err(NotRead::NotSql { at: start }),
        };
        self.push(start, token)?;
        self.not_glued()
    }

    /// After a quote something else must come before the next word or quote.
    fn not_glued(&self) -> Result<(), NotRead> {
        match self.byte(0) {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'\'' | b'"' | b'`' | b'$' | 0x80..) => {
                self.not_sql()
            }
            _ => Ok(()),
        }
    }

    fn double_quotes(&mut self) -> Result<(), NotRead> {
        self.scan.doubts.double_quotes |= self.settled.double_quotes;
        if !self.modes.double_quotes_strings {
            return self.quoted_name('"', b'"');
        }
        let start = self.at;
        let bigquery = self.dialect == Dialect::Bigquery;
        if bigquery && self.is(1, b'"') && self.is(2, b'"') {
            return self.not_understood("a string in three quotes");
        }
        self.skip(1);
        let open = self.at;
        let (end, doubled) = self.quoted(b'"', self.modes.backslash_escapes)?;
        let text = self.content(open, end, "\"", doubled);
        if bigquery && text.contains('\n') {
            return self.not_sql();
        }
        self.push(start, Token::SingleQuotedString(text))?;
        self.not_glued()
    }

    fn quoted_name(&mut self, quote: char, end_quote: u8) -> Result<(), NotRead> {
        let start = self.at;
        self.skip(1);
        let open = self.at;
        // In SQLite the first `]` ends the name; BigQuery escapes with backslashes, which no real name has.
        let doubles = !(self.dialect == Dialect::Bigquery || (self.dialect == Dialect::Sqlite && end_quote == b']'));
        let mut doubled = false;
        let end = loop {
            match self.byte(0) {
                None => return self.not_sql(),
                Some(b'\\') if self.dialect == Dialect::Bigquery => return self.not_understood("an escape in a name"),
                Some(byte) if byte == end_quote && doubles && self.is(1, end_quote) => {
                    doubled = true;
                    self.skip(2);
                }
                Some(byte) if byte == end_quote => break self.at,
                Some(_) => self.skip(1),
            }
        };
        self.skip(1);
        let end_text = char::from(end_quote).to_string();
        let name = self.content(open, end, &end_text, doubled);
        if name.is_empty() {
            return Err(NotRead::NotSql { at: start });
        }
        self.scan.doubts.names |= self.dialect.folds_names() && !name.is_ascii();
        self.push(start, Token::make_word(&name, Some(quote)))?;
        self.not_glued()
    }

    fn number(&mut self) -> Result<(), NotRead> {
        let start = self.at;
        if self.is(0, b'0') && matches!(self.byte(1), Some(b'x' | b'X')) {
            if !self.one_of(&[Dialect::Mysql, Dialect::Sqlite, Dialect::Mssql, Dialect::Bigquery]) {
                return self.not_understood("a number that servers of other versions read as a number and a name");
            }
            self.skip(2);
            let open = self.at;
            self.digits(|digit| digit.is_ascii_hexdigit());
            if open == self.at && self.dialect != Dialect::Mssql {
                return self.not_sql();
            }
            let text = self.content(open, self.at, "", false);
            self.push(start, Token::HexStringLiteral(text))?;
            return self.no_junk();
        }
        self.digits(|digit| digit.is_ascii_digit());
        if self.is(0, b'.') {
            self.skip(1);
            self.digits(|digit| digit.is_ascii_digit());
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
            if self.byte(sign.saturating_add(1)).is_some_and(|digit| digit.is_ascii_digit()) {
                self.skip(sign.saturating_add(1));
                self.digits(|digit| digit.is_ascii_digit());
            }
        }
        let text = self.content(start, self.at, "", false);
        self.push(start, Token::Number(text, false))?;
        self.no_junk()
    }

    fn digits(&mut self, is_digit: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&is_digit) {
            self.skip(1);
        }
    }

    /// `1or`, `1e`, `1_000`: servers disagree on where the number ends.
    fn no_junk(&self) -> Result<(), NotRead> {
        match self.byte(0) {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'\'' | b'"' | b'`' | b'@' | b'#' | 0x80..) => {
                self.not_sql()
            }
            _ => Ok(()),
        }
    }

    /// A word that began at `start`; what stands before this place is a sigil.
    fn word(&mut self, start: usize) -> Result<(), NotRead> {
        let mut ascii = true;
        loop {
            match self.byte(0) {
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_') => self.skip(1),
                Some(b'$') if self.dialect != Dialect::Bigquery => self.skip(1),
                Some(b'#' | b'@') if self.dialect == Dialect::Mssql => self.skip(1),
                Some(0x80..) => {
                    let next = self.text.get(self.at..).and_then(|rest| rest.chars().next());
                    match next.filter(|letter| is_letter(*letter)) {
                        Some(letter) => self.skip(letter.len_utf8()),
                        None => return self.not_sql(),
                    }
                    ascii = false;
                }
                _ => break,
            }
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        if let Some(b'\'') = self.byte(0) {
            return match self.prefix(word) {
                Some(literal) => self.string(start, literal),
                None => self.not_understood("a word right before a quote"),
            };
        }
        if matches!(self.byte(0), Some(b'"' | b'`')) || (self.is(0, b'[') && self.dialect == Dialect::Mssql) {
            return self.not_understood("a word right before a quote");
        }
        if self.dialect == Dialect::Postgres && word.eq_ignore_ascii_case("u") && self.is(0, b'&') {
            match self.byte(1) {
                Some(b'\'') => {
                    self.skip(1);
                    return self.string(start, Literal::Unicode);
                }
                Some(b'"') => return self.not_understood("a name with escapes"),
                _ => {}
            }
        }
        self.scan.doubts.names |= !ascii && self.dialect.folds_names();
        let token = Token::make_word(word, None);
        if let Token::Word(word) = &token
            && self.scan.write_word.is_none()
            && writes(word.keyword, &word.value)
        {
            self.scan.write_word = Some(start);
        }
        self.push(start, token)
    }

    /// What a word right before a quote makes of the literal.
    fn prefix(&self, word: &str) -> Option<Literal> {
        let is = |letter: &str| word.eq_ignore_ascii_case(letter);
        match self.dialect {
            Dialect::Postgres if is("e") => Some(Literal::Escaped),
            Dialect::Postgres | Dialect::Mysql | Dialect::Mssql if is("n") => Some(Literal::National),
            Dialect::Postgres | Dialect::Mysql | Dialect::Sqlite | Dialect::Snowflake if is("x") => Some(Literal::Hex),
            Dialect::Postgres | Dialect::Mysql if is("b") => Some(Literal::Bits),
            Dialect::Bigquery if is("b") => Some(Literal::Bytes),
            Dialect::Postgres
            | Dialect::Mysql
            | Dialect::Sqlite
            | Dialect::Mssql
            | Dialect::Snowflake
            | Dialect::Bigquery => None,
        }
    }

    /// What begins with `@`, `#`, `$`, `?` or `:`.
    fn sigil(&mut self, byte: u8) -> Result<(), NotRead> {
        let start = self.at;
        let word_follows = |ahead| matches!(self.byte(ahead), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_'));
        match (byte, self.dialect) {
            (b'#', Dialect::Mysql | Dialect::Bigquery) => self.line_comment(1),
            (b'#', Dialect::Postgres) => self.operator(byte),
            (b'#', Dialect::Mssql) if word_follows(1) || (self.is(1, b'#') && word_follows(2)) => {
                self.skip(1);
                self.word(start)
            }
            (b'#', _) => self.not_sql(),
            (b'@', Dialect::Postgres) => self.operator(byte),
            (b'@', Dialect::Mysql | Dialect::Mssql | Dialect::Bigquery)
                if word_follows(1) || (self.is(1, b'@') && word_follows(2)) =>
            {
                self.skip(1);
                if self.is(0, b'@') {
                    self.skip(1);
                }
                self.word(start)
            }
            (b'@', Dialect::Sqlite) if word_follows(1) => self.placeholder(),
            (b'@', Dialect::Snowflake) => self.not_understood("a stage"),
            (b'@', _) => self.not_sql(),
            (b'$', Dialect::Postgres) => self.dollar(),
            (b'$', Dialect::Sqlite) if word_follows(1) => self.placeholder(),
            (b'$', Dialect::Snowflake) if self.is(1, b'$') => self.dollar(),
            (b'$', Dialect::Snowflake) if word_follows(1) => self.placeholder(),
            (b'$', Dialect::Snowflake) => self.not_understood("a column by its number"),
            (b'$', _) => self.not_sql(),
            (b'?', Dialect::Postgres) => self.operator(byte),
            (b'?', _) => self.placeholder(),
            _ => self.operator(byte),
        }
    }

    fn placeholder(&mut self) -> Result<(), NotRead> {
        let start = self.at;
        let by_number = matches!(self.byte(0), Some(b'?')) || self.byte(1).is_some_and(|next| next.is_ascii_digit());
        self.skip(1);
        if by_number {
            self.digits(|byte| byte.is_ascii_digit());
        } else {
            self.digits(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        }
        let text = self.content(start, self.at, "", false);
        self.push(start, Token::Placeholder(text))?;
        self.not_glued()
    }

    /// `$1`, or a string between `$tag$` and `$tag$`.
    fn dollar(&mut self) -> Result<(), NotRead> {
        let start = self.at;
        if self.byte(1).is_some_and(|next| next.is_ascii_digit()) {
            return self.placeholder();
        }
        self.skip(1);
        self.digits(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !self.is(0, b'$') {
            return Err(NotRead::NotSql { at: start });
        }
        self.skip(1);
        let open = self.at;
        let tag = self.text.get(start..open).unwrap_or_default();
        let rest = self.text.get(open..).unwrap_or_default();
        let Some(length) = rest.find(tag) else { return self.not_sql() };
        let value = rest.get(..length).unwrap_or_default().to_owned();
        self.skip(length.saturating_add(tag.len()));
        self.push(start, Token::DollarQuotedString(DollarQuotedString { value, tag: None }))?;
        self.not_glued()
    }
}

/// How a literal in single quotes is meant.
#[derive(Clone, Copy)]
enum Literal {
    Plain,
    National,
    Escaped,
    Unicode,
    Hex,
    Bits,
    Bytes,
}

/// Letters beyond ASCII that may stand in a name without quotes: those of alphabets in use that no server takes for
/// white space, a quote or another spelling of an ASCII letter.
fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric()
        && !matches!(letter, '\u{130}' | '\u{131}' | '\u{17f}')
        && matches!(letter,
            '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{5d0}'..='\u{64a}' | '\u{900}'..='\u{97f}'
            | '\u{3041}'..='\u{30fe}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Whether a word never stands unquoted in a statement that only reads: a second opinion beside the tree.
fn writes(keyword: Keyword, word: &str) -> bool {
    matches!(
        keyword,
        Keyword::INSERT
            | Keyword::UPDATE
            | Keyword::DELETE
            | Keyword::MERGE
            | Keyword::DROP
            | Keyword::ALTER
            | Keyword::CREATE
            | Keyword::TRUNCATE
            | Keyword::GRANT
            | Keyword::REVOKE
            | Keyword::INTO
            | Keyword::EXEC
            | Keyword::EXECUTE
    ) || (keyword == Keyword::NoKeyword
        && ["SHUTDOWN", "OUTFILE", "DUMPFILE"].iter().any(|known| word.eq_ignore_ascii_case(known)))
}
