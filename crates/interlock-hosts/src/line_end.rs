//! Whether a command line is at an end where it ends: whether a line put after it is a line of its own.
//!
//! A line that ends in an open quote, an open here-document or behind a backslash takes what follows into itself. What
//! is not followed here counts as open: this knows bash's quoting, and nothing of its grammar.

use core::iter::Peekable;
use core::str::Chars;

/// Whether whatever stands on the next line is no part of this one.
pub(crate) fn is_closed(line: &str) -> bool {
    Scan::of(line).is_some()
}

/// Whether the same holds, and nothing in the line ends a parenthesis that was opened before it.
pub(crate) fn is_enclosed(line: &str) -> bool {
    Scan::of(line).is_some_and(|scan| !scan.closes_outer)
}

/// The most constructs inside each other that are followed.
const DEPTH_MAX: usize = 64;

/// A construct that is open. Outside of all of them commands stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// `(`, `$(`, `<(`: commands.
    Paren,
    /// Backquotes: commands.
    Backquote,
    /// Double quotes.
    Double,
    /// `${`.
    Brace,
}

/// A here-document whose body begins on the next line.
struct Document {
    delimiter: String,
    /// Its lines may begin with tabs.
    strips_tabs: bool,
    /// A backslash at the end of a line joins it with the next.
    joins_lines: bool,
    /// How many constructs were open where it was named.
    depth: usize,
}

struct Scan<'l> {
    rest: Peekable<Chars<'l>>,
    frames: Vec<Frame>,
    documents: Vec<Document>,
    /// The character before.
    last: char,
    /// A parenthesis was closed that was not opened here.
    closes_outer: bool,
    /// What the next character finds before it, where that is another than the one just read.
    seen: Option<char>,
}

impl<'l> Scan<'l> {
    /// A line, followed to its end; nothing if that is open, or the way was lost.
    fn of(line: &'l str) -> Option<Scan<'l>> {
        let rest = line.chars().peekable();
        let (frames, documents) = (Vec::new(), Vec::new());
        let mut scan = Scan { rest, frames, documents, last: '\n', closes_outer: false, seen: None };
        scan.walk()?;
        (scan.frames.is_empty() && scan.documents.is_empty()).then_some(scan)
    }

    /// Goes to the end; nothing if the way is lost.
    fn walk(&mut self) -> Option<()> {
        while let Some(character) = self.rest.next() {
            match self.frames.last().copied() {
                None | Some(Frame::Paren | Frame::Backquote) => self.command(character)?,
                Some(Frame::Double) => self.double(character)?,
                Some(Frame::Brace) => self.brace(character)?,
            }
            self.last = self.seen.take().unwrap_or(character);
        }
        Some(())
    }

    /// A character among commands.
    fn command(&mut self, character: char) -> Option<()> {
        match character {
            '\\' => self.escaped()?,
            '\'' => self.single(self.last == '$')?,
            '"' => self.open_double()?,
            '`' => self.backquote()?,
            '$' => self.dollar()?,
            // Behind these it begins a comment, or goes on with a word.
            '#' if matches!(self.last, ')' | '`') => return None,
            '#' if begins_word(self.last) => self.comment(),
            '(' if self.rest.peek() == Some(&'(') => self.arithmetic()?,
            '(' => self.push(Frame::Paren)?,
            ')' => self.close_paren()?,
            '<' if self.rest.peek() == Some(&'<') => self.less_less()?,
            '\n' => self.documents()?,
            'c' if begins_word(self.last) => self.case()?,
            _ => {}
        }
        Some(())
    }

    fn double(&mut self, character: char) -> Option<()> {
        match character {
            '\\' => self.escaped()?,
            '"' => self.pop(),
            '`' => self.backquote()?,
            '$' => self.dollar()?,
            _ => {}
        }
        Some(())
    }

    fn brace(&mut self, character: char) -> Option<()> {
        match character {
            '\\' => self.escaped()?,
            '}' => self.pop(),
            // Inside double quotes it is one or it is none, depending on what stands before it.
            '\'' if self.frames.contains(&Frame::Double) => return None,
            '\'' => self.single(self.last == '$')?,
            '"' => self.open_double()?,
            '`' => self.backquote()?,
            '$' => self.dollar()?,
            _ => {}
        }
        Some(())
    }

    fn push(&mut self, frame: Frame) -> Option<()> {
        (self.frames.len() < DEPTH_MAX).then(|| self.frames.push(frame))
    }

    fn pop(&mut self) {
        self.frames.pop();
    }

    /// The character after a backslash; without one, the next line would be joined to this.
    fn escaped(&mut self) -> Option<()> {
        // A line break behind it is taken away with it.
        self.seen = (self.rest.next()? == '\n').then_some(self.last);
        Some(())
    }

    fn single(&mut self, has_escapes: bool) -> Option<()> {
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                '\\' if has_escapes => drop(self.rest.next()?),
                _ => {}
            }
        }
    }

    fn open_double(&mut self) -> Option<()> {
        // Which quote of the two it would be is up to the version of the shell.
        let in_backquotes = self.frames.last() == Some(&Frame::Backquote) && self.frames.contains(&Frame::Double);
        if in_backquotes { None } else { self.push(Frame::Double) }
    }

    fn backquote(&mut self) -> Option<()> {
        if self.frames.last() == Some(&Frame::Backquote) {
            self.pop();
            return Some(());
        }
        if self.frames.contains(&Frame::Backquote) { None } else { self.push(Frame::Backquote) }
    }

    fn dollar(&mut self) -> Option<()> {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                if self.rest.peek() == Some(&'(') {
                    return self.arithmetic();
                }
                self.seen = Some('(');
                self.push(Frame::Paren)
            }
            // The number of the process: a quote behind it is a plain one.
            Some('$') => {
                self.rest.next();
                if self.rest.peek() == Some(&'\'') { None } else { Some(()) }
            }
            Some('{') => {
                self.rest.next();
                self.push(Frame::Brace)
            }
            _ => Some(()),
        }
    }

    /// `((` up to its `))`, the first parenthesis taken. It may be two subshells instead: then its end, or a line break,
    /// says so.
    fn arithmetic(&mut self) -> Option<()> {
        let mut depth = 1_usize;
        loop {
            match self.rest.next()? {
                '(' => depth = depth.checked_add(1)?,
                ')' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 1 && self.rest.peek() == Some(&')') {
                        self.rest.next();
                        return Some(());
                    }
                    (depth > 1).then_some(())?;
                }
                '\n' | '\\' | '\'' | '"' | '`' | '{' => return None,
                _ => {}
            }
        }
    }

    fn close_paren(&mut self) -> Option<()> {
        let is_named_here = |document: &Document| document.depth == self.frames.len();
        match self.frames.last() {
            Some(Frame::Paren) if self.documents.iter().any(is_named_here) => None,
            Some(Frame::Paren) => {
                self.pop();
                Some(())
            }
            // That of a pattern of `case`, or one too many.
            None => {
                self.closes_outer = true;
                Some(())
            }
            Some(Frame::Backquote | Frame::Double | Frame::Brace) => None,
        }
    }

    /// Patterns of `case` close parentheses that nobody opened; where that would end a quoted substitution, the way is
    /// lost.
    fn case(&mut self) -> Option<()> {
        let is_inside = self.frames.iter().any(|frame| matches!(frame, Frame::Double | Frame::Brace));
        let mut ahead = self.rest.clone();
        let is_case = "ase".chars().all(|character| ahead.next() == Some(character))
            && ahead.next().is_none_or(char::is_whitespace);
        if is_inside && is_case { None } else { Some(()) }
    }

    fn comment(&mut self) {
        while self.rest.next_if(|next| *next != '\n').is_some() {}
    }

    /// The second `<` and what follows: a here-string, or the delimiter of a here-document.
    fn less_less(&mut self) -> Option<()> {
        self.rest.next();
        if self.rest.next_if_eq(&'<').is_some() {
            return Some(());
        }
        if self.frames.contains(&Frame::Backquote) {
            return None;
        }
        let strips_tabs = self.rest.next_if_eq(&'-').is_some();
        while self.rest.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
        let (mut delimiter, mut joins_lines) = (String::new(), true);
        while let Some(character) = self.rest.next_if(|next| !" \t\n;&|<>()".contains(*next)) {
            match character {
                '\'' | '"' => {
                    joins_lines = false;
                    loop {
                        match self.rest.next()? {
                            close if close == character => break,
                            '\\' | '$' | '`' | '\n' => return None,
                            quoted => delimiter.push(quoted),
                        }
                    }
                }
                '\\' => {
                    joins_lines = false;
                    delimiter.push(self.rest.next_if(|next| *next != '\n')?);
                }
                '$' | '`' => return None,
                plain => delimiter.push(plain),
            }
        }
        let document = Document { delimiter, strips_tabs, joins_lines, depth: self.frames.len() };
        (!document.delimiter.is_empty() && self.documents.len() < DEPTH_MAX).then(|| self.documents.push(document))
    }

    /// The bodies of the here-documents that were named on the line that ends here.
    fn documents(&mut self) -> Option<()> {
        for document in core::mem::take(&mut self.documents) {
            if document.depth != self.frames.len() {
                return None;
            }
            self.body(&document)?;
        }
        Some(())
    }

    /// One body, up to and with its delimiter. What ends with the text had none.
    fn body(&mut self, document: &Document) -> Option<()> {
        let mut joined = String::new();
        loop {
            self.rest.peek()?;
            let mut line = String::new();
            while let Some(character) = self.rest.next_if(|next| *next != '\n') {
                line.push(character);
            }
            let continues = document.joins_lines && is_odd(line.chars().rev().take_while(|last| *last == '\\').count());
            if continues && document.strips_tabs {
                return None;
            }
            let told = if document.strips_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if continues {
                joined.push_str(told.strip_suffix('\\')?);
                self.rest.next()?;
                continue;
            }
            joined.push_str(told);
            if joined == document.delimiter {
                // The line break behind it ends the delimiter, not a line with further documents.
                self.rest.next_if_eq(&'\n');
                return Some(());
            }
            joined.clear();
            self.rest.next()?;
        }
    }
}

fn is_odd(count: usize) -> bool {
    count & 1 == 1
}

/// Whether a word begins after this character.
fn begins_word(last: char) -> bool {
    last.is_ascii_whitespace() || ";&|(<>".contains(last)
}
