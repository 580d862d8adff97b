//! Simple commands: assignments, words and redirects.

use super::cursor::Stop;
use super::parse::{Parser, is_name};
use super::syntax::{Assignment, Command, CommandKind, Redirect, RedirectKind, Word};

/// The longest subscript of an assignment, in bytes.
const SUBSCRIPT_BYTES_MAX: usize = 500;

impl Parser<'_> {
    pub(super) fn simple(&mut self, start: usize) -> Result<Command, Stop> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            if self.redirect(&mut redirects)? {
                continue;
            }
            let may_assign = words.is_empty() || words.first().is_some_and(declares);
            if may_assign && let Some(assignment) = self.assignment()? {
                if words.is_empty() {
                    assignments.push(assignment);
                } else {
                    words.push(as_argument(&assignment));
                    assignments.push(assignment);
                }
                continue;
            }
            let Some(word) = self.word()? else { break };
            self.count()?;
            words.push(word);
            // `name ()` begins a function.
            if words.len() == 1 && assignments.is_empty() && redirects.is_empty() {
                self.blanks();
                if self.cursor.peek() == Some(b'(') {
                    self.cursor.skip(1);
                    self.blanks();
                    self.expect(")")?;
                    let name = words.first().and_then(|word| word.bare().map(str::to_owned));
                    let Some(name) = name.filter(|name| !name.contains(['$', '*', '?', '[', '{', '~'])) else {
                        return self.cursor.stop("a function without a plain name");
                    };
                    let kind = self.function(name)?;
                    return Ok(Command { kind, redirects, span: self.cursor.span_from(start) });
                }
            }
        }
        if words.is_empty() && assignments.is_empty() && redirects.is_empty() {
            return self.cursor.stop("a command is missing");
        }
        let kind = CommandKind::Simple { assignments, words };
        Ok(Command { kind, redirects, span: self.cursor.span_from(start) })
    }

    /// `name=value` and its relatives.
    pub(super) fn assignment(&mut self) -> Result<Option<Assignment>, Stop> {
        let start = self.cursor.at();
        let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name(name) {
            self.cursor.back_to(start);
            return Ok(None);
        }
        let mut subscript = None;
        if self.cursor.peek() == Some(b'[') {
            // A subscript ends at its bracket, and only what follows that says whether it was one.
            let line = self.cursor.rest();
            let end = subscript_end(line).filter(|end| {
                let after = line.get(*end..).unwrap_or("");
                after.starts_with('=') || after.starts_with("+=")
            });
            if end.is_none() {
                self.cursor.back_to(start);
                return Ok(None);
            }
            self.note("an array");
            self.cursor.skip(1);
            subscript = Some(self.deeper(|parser| parser.arithmetic("]"))?);
        }
        let appends = self.cursor.take("+=");
        if !appends && !self.cursor.take("=") {
            self.cursor.back_to(start);
            return Ok(None);
        }
        let mut is_array = false;
        let mut values = Vec::new();
        if self.cursor.peek() == Some(b'(') && subscript.is_none() {
            self.note("an array");
            is_array = true;
            self.cursor.skip(1);
            values = self.deeper(Parser::array)?;
        } else if let Some(word) = self.word()? {
            values.push(word);
        }
        let span = self.cursor.span_from(start);
        Ok(Some(Assignment { name: name.to_owned(), subscript, values, is_array, appends, span }))
    }

    /// The elements of an array up to its parenthesis.
    pub(super) fn array(&mut self) -> Result<Vec<Word>, Stop> {
        let mut values = Vec::new();
        loop {
            self.blank_lines()?;
            if self.cursor.take(")") {
                return Ok(values);
            }
            self.count()?;
            let start = self.cursor.at();
            match self.word()? {
                Some(word) => values.push(word),
                None => return self.cursor.stop("an array that does not close"),
            }
            // A subscript goes on over blanks and parentheses to its bracket.
            let element = self.cursor.since(start);
            if element.starts_with('[') && element.matches('[').count() > element.matches(']').count() {
                return self.cursor.stop("a subscript that does not close");
            }
        }
    }

    /// Takes a redirect if one comes next.
    pub(super) fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> Result<bool, Stop> {
        let start = self.cursor.at();
        let mut descriptor = None;
        let mut kept_in = None;
        if self.cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let digits = self.cursor.take_while(|byte| byte.is_ascii_digit());
            descriptor = digits.parse().ok();
        } else if self.cursor.peek() == Some(b'{') {
            self.cursor.skip(1);
            let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name(name) || !self.cursor.take("}") {
                // `{a[i]}<f` evaluates the subscript; few have ever written it.
                let rest = self.cursor.rest();
                let word = rest.split(|letter: char| letter.is_whitespace()).next().unwrap_or("");
                if word.contains("]}<") || word.contains("]}>") {
                    return self.cursor.stop("a descriptor kept in an array");
                }
                self.cursor.back_to(start);
                return Ok(false);
            }
            if matches!(self.cursor.peek(), Some(b'<' | b'>')) {
                kept_in = Some(name.to_owned());
            }
            self.note("{name}>");
        }
        let at_process = self.at_process() && start == self.cursor.at();
        let sign = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"]
            .into_iter()
            .find(|sign| self.cursor.looking_at(sign))
            .filter(|sign| !at_process && (start == self.cursor.at() || !sign.starts_with('&')));
        let Some(sign) = sign else {
            self.cursor.back_to(start);
            return Ok(false);
        };
        self.cursor.skip(sign.len());
        if sign.ends_with(['>', '&']) && self.cursor.peek() == Some(b'!') {
            self.note_zsh("`>!` is a redirect");
        }
        let rest = self.cursor.rest();
        let numbers = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
        if sign == "<" && rest.len() > numbers.len() && numbers.starts_with('>') {
            self.note_zsh("`<1-9>` is a pattern");
        }
        self.blanks();
        let kind = match sign {
            "<<" | "<<-" => {
                let document = self.here_document(sign == "<<-", start)?;
                redirects.push(document);
                return Ok(true);
            }
            "<<<" => RedirectKind::HereString,
            "<&" => RedirectKind::DuplicateInput,
            "<>" => RedirectKind::Both,
            "<" => RedirectKind::Input,
            ">&" => RedirectKind::DuplicateOutput,
            _ => RedirectKind::Output,
        };
        if matches!(sign, "&>" | "&>>" | "<<<") {
            self.note("a redirect of bash");
        }
        let Some(target) = self.word()? else { return self.cursor.stop("a redirect without a target") };
        redirects.push(Redirect { kind, target, descriptor, kept_in, span: self.cursor.span_from(start) });
        Ok(true)
    }
}

/// Whether the arguments of this command can be assignments.
fn declares(word: &Word) -> bool {
    matches!(word.text().as_deref(), Some("declare" | "typeset" | "local" | "export" | "readonly"))
}

/// An assignment as the word that a declaring builtin sees.
fn as_argument(assignment: &Assignment) -> Word {
    let mut word = Word::of_text(format!("{}=", assignment.name), assignment.span.clone());
    word.is_compound = assignment.is_array;
    for value in &assignment.values {
        word.parts.extend(value.parts.iter().cloned());
    }
    word
}

/// Where the subscript that begins a text ends; past its bracket.
fn subscript_end(text: &str) -> Option<usize> {
    let mut open = 0u32;
    for (at, byte) in text.bytes().take(SUBSCRIPT_BYTES_MAX).enumerate() {
        match byte {
            b'[' => open = open.saturating_add(1),
            b']' => {
                open = open.saturating_sub(1);
                if open == 0 {
                    return Some(at.saturating_add(1));
                }
            }
            b'\n' => return None,
            _ => {}
        }
    }
    None
}
