//! Words: quotes, expansions, substitutions, arithmetic.

use std::rc::Rc;

use super::cursor::Stop;
use super::parse::{Parser, ends_word, is_name};
use super::syntax::{Arithmetic, Parameter, Part, Word};

/// Where a word ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// At a blank or an operator.
    Blank,
    /// At `|` or `)` outside of parentheses.
    Pattern,
    /// At a blank outside of parentheses.
    Regex,
}

/// Letters by which zsh changes the value of a variable.
const MODIFIERS: &[u8] = b"aAcefFghHlpPqQrstuwWx&";

impl Parser<'_> {
    /// The next word, if one comes next.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Stop> {
        self.word_until(Until::Blank)
    }

    /// A pattern of `case`.
    pub(super) fn pattern_word(&mut self) -> Result<Option<Word>, Stop> {
        self.word_until(Until::Pattern)
    }

    /// The right side of `=~`, `==` and `!=` in a condition.
    pub(super) fn regex_word(&mut self) -> Result<Option<Word>, Stop> {
        self.word_until(Until::Regex)
    }

    fn word_until(&mut self, until: Until) -> Result<Option<Word>, Stop> {
        let start = self.cursor.at();
        let mut parts = Parts::default();
        let mut open = 0u32;
        while let Some(byte) = self.cursor.peek() {
            if self.cursor.looking_at("\\\n") {
                self.cursor.skip(2);
                continue;
            }
            self.note_signs(start, until);
            if until == Until::Blank && self.at_process() {
                self.note("<( )");
                self.cursor.skip(2);
                let script = self.deeper(Parser::substitution)?;
                parts.push(Part::Process(Rc::new(script)));
                continue;
            }
            if ends_word(byte) {
                match (until, byte) {
                    (Until::Pattern | Until::Regex, b'(') => open = open.saturating_add(1),
                    (Until::Pattern | Until::Regex, b')') if open > 0 => open = open.saturating_sub(1),
                    (Until::Pattern, b'|') if open > 0 => {}
                    (Until::Regex, b'|') => {}
                    (Until::Pattern | Until::Regex, b' ' | b'\t') if open > 0 => {}
                    (Until::Regex, b'<' | b'>' | b'&' | b';') if open > 0 => {}
                    _ => break,
                }
                parts.plain(char::from(byte));
                self.cursor.skip(1);
                continue;
            }
            self.piece(&mut parts)?;
        }
        if self.cursor.at() == start {
            return Ok(None);
        }
        if open != 0 {
            return self.cursor.stop("a pattern that does not close");
        }
        Ok(Some(Word { parts: parts.done(), span: self.cursor.span_from(start), is_compound: false }))
    }

    /// Signs at the beginning of a word, or of a value, that zsh takes for names of programs and directories.
    fn note_signs(&mut self, start: usize, until: Until) {
        let before = self.cursor.since(start);
        let is_first = before.is_empty();
        let next = self.cursor.peek_at(1);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-');
        match self.cursor.peek() {
            Some(b'=') if is_first && until == Until::Blank && next.is_some_and(is_name) => {
                self.note_zsh("`=name` is where a program is");
            }
            Some(b'~') if is_first || before.ends_with(['=', ':']) => {
                if next.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'[')) {
                    self.note_zsh("`~name` is what a variable holds");
                }
            }
            Some(_) | None => {}
        }
    }

    /// What zsh reads on behind the name of a variable: `$x:r`, `$x[1,4]`.
    fn note_suffix(&mut self) {
        match (self.cursor.peek(), self.cursor.peek_at(1)) {
            (Some(b'['), _) => self.note_zsh("`$x[…]` is a part of the value"),
            (Some(b':'), Some(letter)) if MODIFIERS.contains(&letter) => self.note_zsh("`$x:s…` changes the value"),
            _ => {}
        }
    }

    /// One piece of an unquoted word: a quoted text, an expansion or characters.
    fn piece(&mut self, parts: &mut Parts) -> Result<(), Stop> {
        match self.cursor.peek() {
            Some(b'\\') => {
                self.cursor.skip(1);
                match self.cursor.character() {
                    Some(character) => parts.quoted(character),
                    None => parts.quoted('\\'),
                }
            }
            Some(b'\'') => {
                self.cursor.skip(1);
                let text = self.cursor.take_while(|byte| byte != b'\'');
                parts.quoted_text(text);
                if !self.cursor.take("'") {
                    return self.cursor.stop("a quote that does not close");
                }
            }
            Some(b'"') => {
                self.cursor.skip(1);
                self.deeper(|parser| parser.double_quoted(parts))?;
            }
            Some(b'$') => self.dollar(parts, false)?,
            Some(b'`') => self.backquote(parts, false)?,
            Some(b'\n') => {
                self.no_body_due()?;
                self.cursor.skip(1);
                parts.plain('\n');
            }
            Some(byte) if byte.is_ascii() => {
                self.cursor.skip(1);
                parts.plain(char::from(byte));
            }
            Some(_) => {
                if let Some(character) = self.cursor.character() {
                    parts.plain(character);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// The rest of a text in double quotes.
    fn double_quoted(&mut self, parts: &mut Parts) -> Result<(), Stop> {
        parts.quoted_text("");
        loop {
            match self.cursor.peek() {
                None => return self.cursor.stop("a quote that does not close"),
                Some(b'"') => {
                    self.cursor.skip(1);
                    return Ok(());
                }
                Some(b'\\') => self.backslash_in_quotes(parts, b'"'),
                Some(b'$') => self.dollar(parts, true)?,
                Some(b'`') => self.backquote(parts, true)?,
                Some(_) => {
                    let text = self.cursor.take_while(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'`'));
                    parts.quoted_text(text);
                }
            }
        }
    }

    /// A backslash in double quotes or a here-document: it quotes few characters and stays before the others.
    fn backslash_in_quotes(&mut self, parts: &mut Parts, quote: u8) {
        self.cursor.skip(1);
        match self.cursor.peek() {
            Some(b'\n') => self.cursor.skip(1),
            Some(byte) if matches!(byte, b'$' | b'`' | b'\\') || byte == quote => {
                self.cursor.skip(1);
                parts.quoted(char::from(byte));
            }
            Some(_) | None => parts.quoted('\\'),
        }
    }

    /// The parts of an unquoted here-document, which is the whole text.
    pub(super) fn document_parts(&mut self) -> Result<Vec<Part>, Stop> {
        let mut parts = Parts::default();
        parts.quoted_text("");
        while let Some(byte) = self.cursor.peek() {
            match byte {
                b'\\' => self.backslash_in_quotes(&mut parts, b'\\'),
                b'$' => self.dollar(&mut parts, true)?,
                b'`' => self.backquote(&mut parts, true)?,
                _ => {
                    let text = self.cursor.take_while(|byte| !matches!(byte, b'\\' | b'$' | b'`'));
                    parts.quoted_text(text);
                }
            }
        }
        Ok(parts.done())
    }

    /// Whatever a dollar sign begins.
    fn dollar(&mut self, parts: &mut Parts, quoted: bool) -> Result<(), Stop> {
        let start = self.cursor.at();
        match self.cursor.peek_at(1) {
            Some(b'(') if self.cursor.peek_at(2) == Some(b'(') => {
                self.cursor.skip(3);
                match self.deeper(|parser| parser.arithmetic("))")) {
                    Ok(arithmetic) => parts.push(Part::Arithmetic(arithmetic)),
                    Err(stop) => {
                        // What does not close with both parentheses at once is a subshell in a substitution.
                        self.try_again(stop, start)?;
                        self.cursor.skip(2);
                        let script = self.deeper(Parser::substitution)?;
                        parts.push(Part::Command { script: Rc::new(script), quoted });
                    }
                }
            }
            Some(b'(') => {
                self.cursor.skip(2);
                let script = self.deeper(Parser::substitution)?;
                parts.push(Part::Command { script: Rc::new(script), quoted });
            }
            Some(b'[') => {
                self.note("$[ ]");
                self.cursor.skip(2);
                let arithmetic = self.deeper(|parser| parser.arithmetic("]"))?;
                parts.push(Part::Arithmetic(arithmetic));
            }
            Some(b'{') => {
                self.cursor.skip(2);
                let parameter = self.deeper(|parser| parser.braced(quoted))?;
                parts.push(Part::Parameter(parameter));
            }
            Some(b'\'') if !quoted => {
                self.note("$'…'");
                self.cursor.skip(2);
                let text = self.ansi_c()?;
                parts.quoted_text(&text);
            }
            Some(b'"') if !quoted => {
                self.note("$\"…\"");
                self.cursor.skip(2);
                self.deeper(|parser| parser.double_quoted(parts))?;
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.cursor.skip(1);
                let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                parts.push(Part::Parameter(plain(name, quoted)));
                self.note_suffix();
            }
            Some(byte @ (b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) => {
                self.cursor.skip(2);
                parts.push(Part::Parameter(plain(&char::from(byte).to_string(), quoted)));
                self.note_suffix();
            }
            Some(byte) => {
                let after = self.cursor.peek_at(2);
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'{' | b'(');
                if matches!(byte, b'~' | b'=' | b'^' | b'+') && after.is_some_and(is_name) {
                    self.note_zsh("`$~x` and `$=x` are expanded once more");
                }
                self.cursor.skip(1);
                if quoted { parts.quoted('$') } else { parts.plain('$') }
            }
            None => {
                self.cursor.skip(1);
                if quoted { parts.quoted('$') } else { parts.plain('$') }
            }
        }
        debug_assert!(self.cursor.at() > start, "a dollar sign is always taken");
        Ok(())
    }

    /// `$( … )` after its opening.
    fn substitution(&mut self) -> Result<super::syntax::Script, Stop> {
        // Bash reads a body that is still due after the substitution, and not at the first line end in it.
        let due = self.take_due();
        let start = self.cursor.at();
        let script = self.script()?;
        self.expect(")")?;
        if !due.is_empty() && self.cursor.since(start).contains('\n') {
            return self.cursor.stop("a here-document inside of something else");
        }
        self.put_due(due);
        Ok(script)
    }

    /// A text in backquotes, which is read as a script of its own.
    fn backquote(&mut self, parts: &mut Parts, quoted: bool) -> Result<(), Stop> {
        let start = self.cursor.at();
        self.cursor.skip(1);
        let mut inner = String::new();
        loop {
            match self.cursor.peek() {
                None => return self.cursor.stop("a backquote that does not close"),
                Some(b'`') => {
                    self.cursor.skip(1);
                    break;
                }
                Some(b'\\') => {
                    self.cursor.skip(1);
                    match self.cursor.character() {
                        Some(character @ ('$' | '`' | '\\')) => inner.push(character),
                        Some('"') if quoted => inner.push('"'),
                        Some(character) => {
                            inner.push('\\');
                            inner.push(character);
                        }
                        None => inner.push('\\'),
                    }
                }
                Some(_) => inner.push_str(self.cursor.take_while(|byte| !matches!(byte, b'`' | b'\\'))),
            }
        }
        let span = self.cursor.span_from(start);
        let depth = self.depth();
        let parsed = self.deeper(|_| super::parse::parse(&inner, Some(span), depth.saturating_add(1)))?;
        self.note_all(parsed.only_bash, parsed.not_zsh);
        parts.push(Part::Command { script: Rc::new(parsed.script), quoted });
        Ok(())
    }

    /// `${ … }` after its opening.
    fn braced(&mut self, quoted: bool) -> Result<Parameter, Stop> {
        let mut parameter = plain("", quoted);
        if self.cursor.peek() == Some(b'!') && self.cursor.peek_at(1) != Some(b'}') {
            self.note("${!x}");
            self.cursor.skip(1);
            parameter.indirect = true;
            parameter.plain = false;
        } else if self.cursor.peek() == Some(b'#') && self.cursor.peek_at(1).is_some_and(|byte| byte != b'}') {
            self.cursor.skip(1);
            parameter.counts = true;
            parameter.plain = false;
        }
        parameter.name = self.parameter_name()?;
        if self.cursor.peek() == Some(b'[') {
            self.note("an array");
            self.cursor.skip(1);
            if self.cursor.take("@]") || self.cursor.take("*]") {
                // All elements: still the value as it is. With `!` it is the list of subscripts, and names nothing.
                parameter.indirect = false;
                parameter.is_list = true;
            } else {
                parameter.subscript = Some(self.arithmetic("]")?);
                parameter.plain = false;
            }
        }
        let operator = self.cursor.peek();
        match operator {
            Some(b'}') => {
                self.cursor.skip(1);
                return Ok(parameter);
            }
            Some(b'@' | b'*') if parameter.indirect && self.cursor.peek_at(1) == Some(b'}') => {
                self.cursor.skip(2);
                return Ok(parameter);
            }
            Some(b'@') => {
                self.note("${x@…}");
                self.cursor.skip(1);
                parameter.plain = false;
                match self.cursor.peek() {
                    Some(b'Q' | b'E' | b'A' | b'a' | b'U' | b'u' | b'L' | b'K' | b'k') => self.cursor.skip(1),
                    Some(b'P') => {
                        self.cursor.skip(1);
                        parameter.evaluated = true;
                    }
                    Some(_) | None => return self.cursor.stop("an expansion that is not understood"),
                }
            }
            Some(b':') if !matches!(self.cursor.peek_at(1), Some(b'-' | b'=' | b'?' | b'+')) => {
                self.note("${x:n}");
                let next = self.cursor.peek_at(1);
                let assigns = next == Some(b':') && self.cursor.peek_at(2) == Some(b'=');
                if assigns || next.is_some_and(|byte| byte.is_ascii_alphabetic() || b"&#|*^".contains(&byte)) {
                    self.note_zsh("`${x:s…}` changes the value");
                }
                self.cursor.skip(1);
                parameter.plain = false;
                parameter.offsets = Some(self.arithmetic("}")?);
                return Ok(parameter);
            }
            Some(b':') => {
                self.cursor.skip(1);
                parameter.assigns = self.cursor.peek() == Some(b'=');
                parameter.has_default = self.cursor.peek() == Some(b'-');
                self.cursor.skip(1);
            }
            Some(b'-') => {
                self.cursor.skip(1);
                parameter.has_default = true;
            }
            Some(b'+' | b'?') => self.cursor.skip(1),
            Some(b'=') => {
                self.cursor.skip(1);
                parameter.assigns = true;
            }
            Some(b'#' | b'%') => self.cursor.skip(1),
            Some(b'/' | b'^' | b',') => {
                self.note("${x/…}");
                self.cursor.skip(1);
            }
            Some(_) | None => return self.cursor.stop("an expansion that is not understood"),
        }
        parameter.plain = false;
        let start = self.cursor.at();
        let parts = self.braced_rest(quoted)?;
        parameter.rest = Some(Word { parts, span: self.cursor.span_from(start), is_compound: false });
        Ok(parameter)
    }

    /// The name in `${ … }`: of a variable, of an argument, or a sign.
    fn parameter_name(&mut self) -> Result<String, Stop> {
        let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name(name) || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(name.to_owned());
        }
        match self.cursor.peek() {
            Some(byte @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) if name.is_empty() => {
                self.cursor.skip(1);
                Ok(char::from(byte).to_string())
            }
            Some(_) | None => self.cursor.stop("an expansion that is not understood"),
        }
    }

    /// What stands in `${ … }` after the operator, up to the brace.
    fn braced_rest(&mut self, quoted: bool) -> Result<Vec<Part>, Stop> {
        let mut parts = Parts::default();
        loop {
            match self.cursor.peek() {
                None => return self.cursor.stop("an expansion that does not close"),
                Some(b'}') => {
                    self.cursor.skip(1);
                    return Ok(parts.done());
                }
                // In double quotes a single quote is a character after some operators and a quote after others.
                Some(b'\'') if quoted => {
                    self.cursor.skip(1);
                    let text = self.cursor.take_while(|byte| byte != b'\'');
                    if text.contains(['$', '`', '}', '"', '\\']) || !self.cursor.take("'") {
                        return self.cursor.stop("a quote in a quoted expansion");
                    }
                    parts.quoted_text(text);
                }
                // Likewise after a dollar sign; a text that means the same either way is read.
                Some(b'$') if quoted && self.cursor.peek_at(1) == Some(b'\'') => {
                    self.cursor.skip(2);
                    let text = self.cursor.take_while(|byte| byte != b'\'');
                    if text.contains(['$', '`', '}', '"']) || text.ends_with('\\') || !self.cursor.take("'") {
                        return self.cursor.stop("a quote in a quoted expansion");
                    }
                    parts.quoted_text(text);
                }
                Some(b'$') => self.dollar(&mut parts, quoted)?,
                Some(b'<' | b'>') if self.at_process() => {
                    return self.cursor.stop("a process substitution in an expansion");
                }
                Some(_) => self.piece(&mut parts)?,
            }
        }
    }

    /// An arithmetic expression up to its end: `))`, `]` or `}`.
    pub(super) fn arithmetic(&mut self, end: &str) -> Result<Arithmetic, Stop> {
        let start = self.cursor.at();
        let mut arithmetic = Arithmetic::default();
        let mut parts = Parts::default();
        let (mut open, mut brackets) = (0u32, 0u32);
        loop {
            let Some(byte) = self.cursor.peek() else { return self.cursor.stop("an expression that does not close") };
            if open == 0 && brackets == 0 && self.cursor.looking_at(end) {
                self.cursor.skip(end.len());
                arithmetic.parts = parts.done();
                arithmetic.span = self.cursor.span_from(start);
                return Ok(arithmetic);
            }
            if byte == b'\n' {
                self.no_body_due()?;
            }
            match byte {
                b';' => arithmetic.separators = arithmetic.separators.saturating_add(1),
                b'(' => open = open.saturating_add(1),
                b')' if open == 0 => return self.cursor.stop("an expression that does not close"),
                b')' => open = open.saturating_sub(1),
                b'[' => brackets = brackets.saturating_add(1),
                b']' if brackets == 0 => return self.cursor.stop("an expression that does not close"),
                b']' => brackets = brackets.saturating_sub(1),
                b'$' => {
                    self.dollar(&mut parts, true)?;
                    continue;
                }
                b'`' => {
                    self.backquote(&mut parts, true)?;
                    continue;
                }
                b'=' => {
                    let before = self.cursor.since(start).bytes().next_back();
                    let compares =
                        self.cursor.peek_at(1) == Some(b'=') || matches!(before, Some(b'=' | b'!' | b'<' | b'>'));
                    arithmetic.assigns |= !compares;
                }
                b'+' | b'-' if self.cursor.peek_at(1) == Some(byte) => arithmetic.assigns = true,
                _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                    arithmetic.names.push(name.to_owned());
                    continue;
                }
                _ if byte.is_ascii_digit() => {
                    self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b'_'));
                    continue;
                }
                b' ' | b'\t' | b'\n' | b'*' | b'/' | b'%' | b'<' | b'>' | b'!' | b'&' | b'|' | b'^' | b'~' | b'?'
                | b':' | b',' | b'+' | b'-' | b'@' | b'.' => {}
                // A quote, a backslash, a letter beyond ASCII.
                _ => arithmetic.odd = true,
            }
            if self.cursor.character().is_none() {
                return self.cursor.stop("an expression that does not close");
            }
        }
    }

    /// `$'…'` after its opening: the escapes of C.
    fn ansi_c(&mut self) -> Result<String, Stop> {
        let mut text = String::new();
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            match self.cursor.character() {
                None => return self.cursor.stop("a quote that does not close"),
                Some('\'') => break,
                Some('\\') => {
                    let Some(escape) = self.cursor.character() else {
                        return self.cursor.stop("a quote that does not close");
                    };
                    match escape {
                        'a' => bytes.push(7),
                        'b' => bytes.push(8),
                        'e' | 'E' => bytes.push(27),
                        'f' => bytes.push(12),
                        'n' => bytes.push(b'\n'),
                        'r' => bytes.push(b'\r'),
                        't' => bytes.push(b'\t'),
                        'v' => bytes.push(11),
                        '\\' | '\'' | '"' | '?' => push_char(&mut bytes, escape),
                        '0'..='7' => {
                            let mut value = escape.to_digit(8).unwrap_or(0);
                            for _ in 0..2 {
                                let Some(digit) = self.digit(8) else { break };
                                value = value.saturating_mul(8).saturating_add(digit);
                            }
                            bytes.push(u8::try_from(value & 0xff).unwrap_or(0));
                        }
                        'x' => {
                            let value = self.digits(16, 2)?;
                            bytes.push(u8::try_from(value & 0xff).unwrap_or(0));
                        }
                        'u' => self.code_point(4, &mut bytes)?,
                        'U' => self.code_point(8, &mut bytes)?,
                        'c' => {
                            let Some(control) = self.cursor.character() else {
                                return self.cursor.stop("a quote that does not close");
                            };
                            bytes.push(u8::try_from(u32::from(control) & 0x1f).unwrap_or(0));
                        }
                        other => {
                            bytes.push(b'\\');
                            push_char(&mut bytes, other);
                        }
                    }
                }
                Some(other) => push_char(&mut bytes, other),
            }
        }
        // What ends a text early, or is no text, means something else to bash.
        if bytes.contains(&0) {
            return self.cursor.stop("a byte that ends the text");
        }
        match String::from_utf8(bytes) {
            Ok(decoded) => text.push_str(&decoded),
            Err(_) => return self.cursor.stop("bytes that are no text"),
        }
        Ok(text)
    }

    fn code_point(&mut self, most: usize, bytes: &mut Vec<u8>) -> Result<(), Stop> {
        let value = self.digits(16, most)?;
        match char::from_u32(value) {
            Some(character) => push_char(bytes, character),
            None => return self.cursor.stop("bytes that are no text"),
        }
        Ok(())
    }

    fn digit(&mut self, base: u32) -> Option<u32> {
        let digit = self.cursor.peek().and_then(|byte| char::from(byte).to_digit(base))?;
        self.cursor.skip(1);
        Some(digit)
    }

    fn digits(&mut self, base: u32, most: usize) -> Result<u32, Stop> {
        let Some(mut value) = self.digit(base) else { return self.cursor.stop("an escape without digits") };
        for _ in 1..most {
            let Some(digit) = self.digit(base) else { break };
            value = value.saturating_mul(base).saturating_add(digit);
        }
        Ok(value)
    }
}

fn push_char(bytes: &mut Vec<u8>, character: char) {
    let mut buffer = [0; 4];
    bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}

/// `$name`.
fn plain(name: &str, quoted: bool) -> Parameter {
    Parameter {
        name: name.to_owned(),
        quoted,
        plain: true,
        is_list: false,
        indirect: false,
        evaluated: false,
        assigns: false,
        has_default: false,
        counts: false,
        subscript: None,
        rest: None,
        offsets: None,
    }
}

/// The parts of a word while it is read; neighbouring texts become one.
#[derive(Debug, Default)]
struct Parts {
    parts: Vec<Part>,
}

impl Parts {
    fn push(&mut self, part: Part) {
        self.parts.push(part);
    }

    fn plain(&mut self, character: char) {
        self.append(false, character.encode_utf8(&mut [0; 4]));
    }

    fn quoted(&mut self, character: char) {
        self.append(true, character.encode_utf8(&mut [0; 4]));
    }

    fn quoted_text(&mut self, text: &str) {
        self.append(true, text);
    }

    fn append(&mut self, wanted: bool, more: &str) {
        if let Some(Part::Text { text, quoted }) = self.parts.last_mut()
            && *quoted == wanted
        {
            text.push_str(more);
            return;
        }
        self.parts.push(Part::Text { text: more.to_owned(), quoted: wanted });
    }

    fn done(self) -> Vec<Part> {
        self.parts
    }
}
