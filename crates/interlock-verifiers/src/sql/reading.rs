//! One reading of a text: tokens, tree, findings.

use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect::{Dialect, Doubts, Modes};
use super::echo::drops_a_word;
use super::lex::{Comment, NotRead, scan};
use super::limits::{PARSER_DEPTH_MAX, STATEMENTS_MAX};
use super::rules::Rules;
use super::walk::{Name, RefusedFunction, walk};
use crate::outcome::Risk;

/// What a reading of a text found.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Why it is not read, if it is not.
    pub(super) not_read: Option<NotRead>,
    /// A node that is not on the lists.
    pub(super) not_understood: Option<&'static str>,
    pub(super) kind: &'static str,
    pub(super) risk: Option<Risk>,
    pub(super) reads: Vec<String>,
    pub(super) writes: Vec<String>,
    pub(super) functions: Vec<String>,
    /// Where a second statement begins, and whether there is anything in it.
    pub(super) stacked: Option<Stacked>,
    pub(super) comment: Option<Comment>,
    pub(super) tautology: Option<usize>,
    pub(super) function: Option<RefusedFunction>,
    pub(super) sensitive: Option<usize>,
    pub(super) unknown_columns: bool,
    pub(super) unknown_name: Option<usize>,
    pub(super) doubts: Option<Doubts>,
}

/// More than one statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stacked {
    pub(super) at: usize,
    /// There is another statement, not only another semicolon.
    pub(super) hostile: bool,
}

impl Reading {
    pub(super) fn is_parsed(&self) -> bool {
        self.not_read.is_none()
    }

    fn refused(not_read: NotRead) -> Reading {
        Reading { not_read: Some(not_read), ..Reading::default() }
    }

    /// The same once more, to join others with.
    pub(super) fn copy(&self) -> Reading {
        Reading { reads: self.reads.clone(), writes: self.writes.clone(), functions: self.functions.clone(), ..*self }
    }

    pub(super) fn has_doubts(&self) -> bool {
        self.doubts.is_some_and(Doubts::any)
    }

    /// Takes over what another reading of the same text found: the worse counts.
    pub(super) fn join(&mut self, other: Reading) {
        self.stacked = self.stacked.or(other.stacked);
        self.comment = worse_comment(self.comment, other.comment);
        match other.not_read {
            None => {}
            // A server that reads it so refuses it.
            Some(NotRead::NotSql { .. }) => return,
            Some(NotRead::NotUnderstood { at: _, what } | NotRead::Limit { what }) => {
                self.not_understood.get_or_insert(what);
            }
        }
        self.not_understood = self.not_understood.or(other.not_understood);
        self.risk = self.risk.max(other.risk);
        self.tautology = self.tautology.or(other.tautology);
        self.function = worse_function(self.function, other.function);
        self.sensitive = self.sensitive.or(other.sensitive);
        self.unknown_columns |= other.unknown_columns;
        self.unknown_name = self.unknown_name.or(other.unknown_name);
        add_names(&mut self.reads, other.reads);
        add_names(&mut self.writes, other.writes);
        add_names(&mut self.functions, other.functions);
    }
}

fn worse_comment(one: Option<Comment>, other: Option<Comment>) -> Option<Comment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Comment { at: one.at, trick: one.trick || other.trick }),
        (one, other) => one.or(other),
    }
}

fn worse_function(one: Option<RefusedFunction>, other: Option<RefusedFunction>) -> Option<RefusedFunction> {
    match (one, other) {
        (Some(one), Some(other)) if other.harmful && !one.harmful => Some(other),
        (one, other) => one.or(other),
    }
}

fn add_names(names: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if let Err(place) = names.binary_search(&name) {
            names.insert(place, name);
        }
    }
}

/// Reads a text in a dialect. Where a setting of the server decides what it means, every meaning is looked at.
pub(super) fn read(text: &str, dialect: Dialect, rules: &Rules<'_>) -> Reading {
    let usual = dialect.modes();
    let mut reading = read_as(text, dialect, usual, rules);
    let Some(doubts) = reading.doubts.filter(|doubts| doubts.any()) else { return reading };
    for modes in doubts.other_readings(usual) {
        reading.join(read_as(text, dialect, modes, rules));
    }
    reading
}

fn read_as(text: &str, dialect: Dialect, modes: Modes, rules: &Rules<'_>) -> Reading {
    let scan = match scan(text, dialect, modes) {
        Ok(scan) => scan,
        Err(not_read) => return Reading::refused(not_read),
    };
    let mut tokens = scan.tokens;
    trim_end(&mut tokens);
    if tokens.last().is_some_and(|token| token.token == Token::SemiColon) {
        tokens.pop();
    }
    let mut reading = match tokens.iter().position(|token| token.token == Token::SemiColon) {
        None => read_statement(tokens, dialect, rules),
        Some(first) => read_several(tokens, first, dialect, rules),
    };
    reading.comment = scan.comment;
    reading.doubts = Some(scan.doubts);
    // A second opinion that knows nothing of trees.
    if reading.risk == Some(Risk::Low) && scan.write_word.is_some() && !matches!(reading.kind, "show" | "pragma") {
        reading.not_understood.get_or_insert("a word that no reading statement has");
        reading.risk = Some(Risk::Critical);
    }
    reading
}

fn trim_end(tokens: &mut Vec<TokenWithSpan>) {
    while tokens.last().is_some_and(|token| matches!(token.token, Token::Whitespace(_))) {
        tokens.pop();
    }
}

/// Reads every statement of several, to say the worst of them; `first` is the first semicolon.
fn read_several(tokens: Vec<TokenWithSpan>, first: usize, dialect: Dialect, rules: &Rules<'_>) -> Reading {
    let at = tokens.get(first).map_or(0, |token| place(token.span.start.column));
    let mut parts = Vec::new();
    let mut part = Vec::new();
    for token in tokens {
        if token.token == Token::SemiColon {
            parts.push(core::mem::take(&mut part));
        } else {
            part.push(token);
        }
    }
    parts.push(part);
    let is_empty = |part: &Vec<TokenWithSpan>| part.iter().all(|token| matches!(token.token, Token::Whitespace(_)));
    let statements: Vec<_> = parts.into_iter().filter(|part| !is_empty(part)).collect();
    let hostile = statements.len() > 1;
    let mut reading: Option<Reading> = None;
    for tokens in statements.into_iter().take(STATEMENTS_MAX) {
        let next = read_statement(tokens, dialect, rules);
        match &mut reading {
            None => reading = Some(next),
            Some(reading) => {
                reading.not_read = reading.not_read.or(next.not_read);
                reading.join(next);
            }
        }
    }
    let mut reading = reading.unwrap_or_else(|| Reading::refused(NotRead::NotSql { at }));
    reading.stacked = Some(Stacked { at, hostile });
    reading
}

fn read_statement(tokens: Vec<TokenWithSpan>, dialect: Dialect, rules: &Rules<'_>) -> Reading {
    let (statement, tokens) = match parse(tokens, dialect) {
        Ok(parsed) => parsed,
        Err(not_read) => return Reading::refused(not_read),
    };
    let mut found = walk(&statement, dialect, rules);
    if let Some(at) = found.misread {
        return Reading::refused(NotRead::NotSql { at });
    }
    if found.risk == Risk::Low && drops_a_word(&tokens, &statement) {
        found.not_understood.get_or_insert("a word that the tree does not hold");
    }
    Reading {
        not_read: None,
        not_understood: found.not_understood,
        kind: found.kind,
        risk: Some(found.risk),
        reads: names(&found.reads),
        writes: names(&found.writes),
        functions: names(&found.functions),
        stacked: None,
        comment: None,
        tautology: found.tautology,
        function: found.function,
        sensitive: found.sensitive,
        unknown_columns: found.unknown_columns,
        unknown_name: found.unknown_name,
        doubts: None,
    }
}

fn names(found: &[Name<'_>]) -> Vec<String> {
    let mut names: Vec<String> = found.iter().map(Name::to_string).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Parses one statement, up to the last token: the parser itself would stop at a word it takes for the end of a block.
#[expect(clippy::wildcard_enum_match_arm, reason = "only a word is a keyword")]
fn parse(mut tokens: Vec<TokenWithSpan>, dialect: Dialect) -> Result<(Statement, Vec<TokenWithSpan>), NotRead> {
    let first = tokens.iter().position(|token| !matches!(token.token, Token::Whitespace(_)));
    let keyword = first.and_then(|first| tokens.get(first)).and_then(|token| match &token.token {
        Token::Word(word) => Some(word.keyword),
        _ => None,
    });
    match (keyword, first) {
        (Some(Keyword::PRAGMA), _) => quote_argument(&mut tokens),
        (Some(Keyword::TABLE), Some(first)) if matches!(dialect, Dialect::Postgres | Dialect::Mysql) => {
            write_out_table(&mut tokens, first);
        }
        _ => {}
    }
    let mut parser =
        Parser::new(dialect.grammar()).with_recursion_limit(PARSER_DEPTH_MAX).with_tokens_with_locations(tokens);
    match parser.parse_statement() {
        Ok(statement) if parser.peek_token_ref().token == Token::EOF => Ok((statement, parser.into_tokens())),
        Err(ParserError::RecursionLimitExceeded) => Err(NotRead::Limit { what: "the statement is nested too deep" }),
        Ok(_) | Err(ParserError::TokenizerError(_) | ParserError::ParserError(_)) => {
            Err(NotRead::NotSql { at: place(parser.peek_token_ref().span.start.column) })
        }
    }
}

/// `TABLE t` stands for `SELECT * FROM t`. The parser passes over two tokens behind such a name.
fn write_out_table(tokens: &mut Vec<TokenWithSpan>, first: usize) {
    let Some(span) = tokens.get(first).map(|token| token.span) else { return };
    let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
    tokens.splice(first..=first, words.map(|token| TokenWithSpan { token, span }));
}

/// The parser knows arguments of a pragma only as literals.
fn quote_argument(tokens: &mut [TokenWithSpan]) {
    if let [.., open, argument, close] = tokens
        && (&open.token, &close.token) == (&Token::LParen, &Token::RParen)
        && let Token::Word(word) = &argument.token
    {
        argument.token = Token::SingleQuotedString(word.value.clone());
    }
}

fn place(column: u64) -> usize {
    usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1)
}
