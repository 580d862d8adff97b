//! The grammar of bash: lists and pipelines, and what the files for simple and compound commands share.
//!
//! One pass, no going back but for a reserved word, so the time is linear in the text. Whatever is not certain to be
//! read as bash reads it stops the parser, and the line is unknown.

use core::ops::Range;

use super::cursor::{Cursor, Stop};
use super::documents::Pending;
use super::syntax::{AndOr, Command, Pipeline, Script};

/// How deep commands, expansions and quotes may nest.
const DEPTH_MAX: u32 = 40;
/// The most commands and words of one text.
const NODES_MAX: u32 = 50_000;
/// How often something may be read another way.
const RETRIES_MAX: u32 = 4;

const OPENERS: [&str; 12] =
    ["if", "while", "until", "for", "select", "case", "{", "[[", "function", "time", "!", "coproc"];
const CLOSERS: [&str; 9] = ["then", "else", "elif", "fi", "do", "done", "esac", "}", "]]"];

/// A text being read.
#[derive(Debug)]
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    depth: u32,
    pub(super) nodes: u32,
    retries: u32,
    /// Here-documents whose bodies begin after the next line end.
    pub(super) pending: Vec<Pending>,
    /// Something that other shells read differently.
    pub(super) only_bash: Option<&'static str>,
    /// Something that zsh reads differently, and does something else.
    pub(super) not_zsh: Option<&'static str>,
}

/// A script that was read, and what only bash reads that way.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) script: Script,
    pub(super) only_bash: Option<&'static str>,
    pub(super) not_zsh: Option<&'static str>,
}

/// Reads a whole text.
pub(super) fn parse(text: &str, origin: Option<Range<usize>>, depth: u32) -> Result<Parsed, Stop> {
    let mut parser = Parser::new(text, origin, depth);
    let script = parser.script()?;
    if parser.cursor.peek().is_some() {
        return parser.cursor.stop("a closing word or parenthesis that nothing opened");
    }
    Ok(Parsed { script, only_bash: parser.only_bash, not_zsh: parser.not_zsh })
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, origin: Option<Range<usize>>, depth: u32) -> Parser<'t> {
        let (only_bash, not_zsh) = (None, None);
        let cursor = Cursor::new(text, origin);
        Parser { cursor, depth, nodes: 0, retries: 0, pending: Vec::new(), only_bash, not_zsh }
    }

    /// Goes back to read something another way, a few times at most: each doubles the work.
    pub(super) fn try_again(&mut self, stop: Stop, start: usize) -> Result<(), Stop> {
        if self.retries >= RETRIES_MAX || !self.pending.is_empty() {
            return Err(stop);
        }
        self.retries = self.retries.saturating_add(1);
        self.cursor.back_to(start);
        Ok(())
    }

    /// How deep this is.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Goes one level deeper for as long as a part is read.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= DEPTH_MAX {
            return self.cursor.stop("nested too deep");
        }
        self.depth = self.depth.saturating_add(1);
        let result = read(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Counts a command or a word.
    pub(super) fn count(&mut self) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > NODES_MAX { self.cursor.stop("too many commands and words") } else { Ok(()) }
    }

    /// Notes that only bash reads this so.
    pub(super) fn note(&mut self, what: &'static str) {
        self.only_bash.get_or_insert(what);
    }

    /// Notes that zsh reads this otherwise.
    pub(super) fn note_zsh(&mut self, what: &'static str) {
        self.not_zsh.get_or_insert(what);
    }

    /// Notes what was noted in a text of its own.
    pub(super) fn note_all(&mut self, only_bash: Option<&'static str>, not_zsh: Option<&'static str>) {
        self.only_bash = self.only_bash.or(only_bash);
        self.not_zsh = self.not_zsh.or(not_zsh);
    }

    /// A script up to a closing word, a closing parenthesis, `;;` or the end.
    pub(super) fn script(&mut self) -> Result<Script, Stop> {
        let mut lists = Vec::new();
        loop {
            self.blank_lines()?;
            if self.at_close() {
                break;
            }
            let mut list = self.and_or()?;
            self.blanks();
            match self.cursor.peek() {
                Some(b'&') if self.cursor.peek_at(1) != Some(b'&') => {
                    self.cursor.skip(1);
                    list.background = true;
                    lists.push(list);
                    self.blanks();
                    if self.cursor.peek() == Some(b';') && !self.at_case_end() {
                        return self.cursor.stop("a separator after `&`");
                    }
                    continue;
                }
                Some(b';') if !self.at_case_end() => self.cursor.skip(1),
                Some(b'\n') | None => {}
                Some(_) if self.at_close() => {}
                Some(_) => return self.cursor.stop("an operator where none can be"),
            }
            lists.push(list);
        }
        if self.cursor.peek().is_none() && !self.pending.is_empty() {
            return self.cursor.stop("a here-document without body");
        }
        Ok(Script { lists })
    }

    /// A script that must hold a command.
    pub(super) fn body(&mut self) -> Result<Script, Stop> {
        let script = self.deeper(Parser::script)?;
        if script.lists.is_empty() {
            return self.cursor.stop("a command is missing");
        }
        Ok(script)
    }

    pub(super) fn and_or(&mut self) -> Result<AndOr, Stop> {
        let mut pipelines = vec![self.pipeline()?];
        loop {
            self.blanks();
            if !self.cursor.take("&&") && !self.cursor.take("||") {
                return Ok(AndOr { pipelines, background: false });
            }
            self.blank_lines()?;
            pipelines.push(self.pipeline()?);
        }
    }

    pub(super) fn pipeline(&mut self) -> Result<Pipeline, Stop> {
        let mut prefixed = false;
        loop {
            self.blanks();
            match self.reserved() {
                Some("!") => {
                    self.take_reserved("!");
                }
                Some("time") => {
                    self.take_reserved("time");
                    self.blanks();
                    let start = self.cursor.at();
                    if !(self.cursor.take("-p") && self.at_word_end()) {
                        self.cursor.back_to(start);
                    }
                    self.blanks();
                    let start = self.cursor.at();
                    if !(self.cursor.take("--") && self.at_word_end()) {
                        self.cursor.back_to(start);
                    }
                }
                Some(_) | None => break,
            }
            prefixed = true;
        }
        self.blanks();
        if prefixed && matches!(self.cursor.peek(), None | Some(b'\n' | b';')) {
            return Ok(Pipeline { commands: Vec::new() });
        }
        let mut commands = vec![self.command()?];
        loop {
            self.blanks();
            if self.cursor.looking_at("||") {
                break;
            }
            if self.cursor.looking_at("|&") {
                self.note("|&");
                self.cursor.skip(2);
            } else if !self.cursor.take("|") {
                break;
            }
            self.blank_lines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline { commands })
    }

    pub(super) fn command(&mut self) -> Result<Command, Stop> {
        self.count()?;
        self.blanks();
        let start = self.cursor.at();
        let kind = match (self.cursor.peek(), self.reserved()) {
            (Some(b'('), _) => Some(self.parenthesis()?),
            // Reserved at the beginning of a pipeline only; elsewhere it is the program.
            (_, Some("time")) => None,
            (_, Some(word)) => Some(self.deeper(|parser| parser.compound(word))?),
            (_, None) => None,
        };
        match kind {
            Some(kind) => {
                let mut redirects = Vec::new();
                loop {
                    self.blanks();
                    if !self.redirect(&mut redirects)? {
                        break;
                    }
                }
                Ok(Command { kind, redirects, span: self.cursor.span_from(start) })
            }
            None => self.simple(start),
        }
    }

    /// Skips blanks, comments and continued lines.
    pub(super) fn blanks(&mut self) {
        loop {
            self.cursor.take_while(|byte| matches!(byte, b' ' | b'\t'));
            if self.cursor.looking_at("\\\n") {
                self.cursor.skip(2);
            } else if self.cursor.peek() == Some(b'#') {
                self.cursor.take_while(|byte| byte != b'\n');
            } else {
                return;
            }
        }
    }

    /// Skips blanks, comments and ends of lines.
    pub(super) fn blank_lines(&mut self) -> Result<(), Stop> {
        loop {
            self.blanks();
            if self.cursor.peek() != Some(b'\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// Whether something comes next that ends a script.
    pub(super) fn at_close(&self) -> bool {
        match self.cursor.peek() {
            None | Some(b')') => true,
            Some(b';') => self.at_case_end(),
            Some(_) => self.reserved_close().is_some(),
        }
    }

    pub(super) fn at_case_end(&self) -> bool {
        self.cursor.looking_at(";;") || self.cursor.looking_at(";&")
    }

    /// Whether `<(` or `>(` comes next.
    pub(super) fn at_process(&self) -> bool {
        matches!(self.cursor.peek(), Some(b'<' | b'>')) && self.cursor.peek_at(1) == Some(b'(')
    }

    pub(super) fn at_word_end(&self) -> bool {
        self.cursor.peek().is_none_or(ends_word)
    }

    /// The reserved word that comes next and opens something.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        let begins = matches!(self.cursor.peek()?, b'i' | b'w' | b'u' | b'f' | b's' | b'c' | b'{' | b'[' | b't' | b'!');
        if begins { OPENERS.into_iter().find(|word| self.is_next(word)) } else { None }
    }

    pub(super) fn reserved_close(&self) -> Option<&'static str> {
        let begins = matches!(self.cursor.peek()?, b't' | b'e' | b'f' | b'd' | b'}' | b']');
        if begins { CLOSERS.into_iter().find(|word| self.is_next(word)) } else { None }
    }

    pub(super) fn is_next(&self, word: &str) -> bool {
        self.cursor.looking_at(word) && self.cursor.peek_at(word.len()).is_none_or(ends_word)
    }

    pub(super) fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.is_next(word);
        if found {
            self.cursor.skip(word.len());
        }
        found
    }

    pub(super) fn expect_reserved(&mut self, word: &str) -> Result<(), Stop> {
        self.blank_lines()?;
        if self.take_reserved(word) { Ok(()) } else { self.cursor.stop("a construct that does not close") }
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Stop> {
        self.blank_lines()?;
        if sign == ")" && !self.pending.is_empty() {
            return self.cursor.stop("a here-document without body");
        }
        if self.cursor.take(sign) { Ok(()) } else { self.cursor.stop("a construct that does not close") }
    }
}

/// Whether a word cannot go on here.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Whether a text can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
