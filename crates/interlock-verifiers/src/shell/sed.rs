//! `sed`: the script decides, and whether files are edited in place.

use super::cursor::Cursor;
use super::options::Given;
use super::reduce::Argument;
use super::walk::{Run, Walk};
use super::{Effect, programs};

/// Options by which files are edited in place.
const IN_PLACE: &str = "-i -I --in-place";

/// Runs `sed`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some(call) = programs::own_call(walk, run) else { return };
    for given in call.each(IN_PLACE) {
        let suffix = given.value.as_ref().map_or(Some(""), Argument::known_text);
        keeps(walk, suffix, &run.span);
    }
    let script = |given: &Given<'_>| given.value.clone().unwrap_or_else(|| Argument::unknown(run.span.clone()));
    let mut scripts: Vec<Argument> = call.each("-e --expression").map(script).collect();
    let mut files = call.operands.as_slice();
    if scripts.is_empty()
        && let Some((first, rest)) = files.split_first()
    {
        scripts.push((*first).clone());
        files = rest;
    }
    let mut whole = String::new();
    for script in &scripts {
        match script.known_text() {
            Some(text) => {
                whole.push_str(text);
                whole.push('\n');
            }
            None => walk.add(Effect::Unknown, run.name, &script.span, "a script that is not known"),
        }
    }
    judge(walk, run, &whole);
    if call.has(IN_PLACE) {
        for file in files {
            programs::arms(walk, file, run.name);
        }
    }
    walk.add(Effect::ReadOnly, run.name, &run.span, "prints what it reads, edited");
}

/// Files that are edited are kept under another name: what that is, an unusual suffix does not tell.
fn keeps(walk: &mut Walk<'_, '_>, suffix: Option<&str>, span: &core::ops::Range<usize>) {
    if let Some(words) = walk.findings.words.as_mut().filter(|_| !super::made_names::is_usual(suffix)) {
        words.written(&Argument::unknown(span.clone()));
    }
}

/// Reads a script for commands that read, write or run.
fn judge(walk: &mut Walk<'_, '_>, run: &Run<'_>, script: &str) {
    let mut reader = Reader { cursor: Cursor::new(script, None), files: Vec::new(), reads: Vec::new(), runs: false };
    if reader.script().is_none() {
        return walk.add(Effect::Unknown, run.name, &run.span, "a script that is not understood");
    }
    if reader.runs {
        walk.add(Effect::Unknown, run.name, &run.span, "the script runs commands");
    }
    if let Some(words) = &mut walk.findings.words {
        reader.reads.into_iter().for_each(|file| words.read(&Argument::known(file, run.span.clone())));
    }
    for file in reader.files {
        walk.writes(&Argument::known(file, run.span.clone()), run.name, &run.span);
    }
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    files: Vec<String>,
    reads: Vec<String>,
    runs: bool,
}

impl Reader<'_> {
    fn script(&mut self) -> Option<()> {
        loop {
            self.cursor.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'}' | b'{'));
            if self.cursor.peek().is_none() {
                return Some(());
            }
            if self.cursor.peek() == Some(b'#') {
                self.line();
                continue;
            }
            self.addresses()?;
            self.blanks();
            while self.cursor.take("!") {
                self.blanks();
            }
            self.command()?;
        }
    }

    fn blanks(&mut self) {
        self.cursor.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn line(&mut self) -> String {
        let text = self.cursor.take_while(|byte| byte != b'\n').to_owned();
        self.cursor.skip(1);
        text
    }

    fn addresses(&mut self) -> Option<()> {
        if !self.address()? {
            return Some(());
        }
        self.blanks();
        if self.cursor.take(",") {
            self.blanks();
            let _ = self.cursor.take("+") || self.cursor.take("~");
            if !self.address()? {
                return None;
            }
        }
        Some(())
    }

    /// A line number, `$`, or a pattern.
    fn address(&mut self) -> Option<bool> {
        match self.cursor.peek() {
            Some(b'0'..=b'9') => {
                self.cursor.take_while(|byte| byte.is_ascii_digit());
                self.blanks();
                if self.cursor.take("~") {
                    self.cursor.take_while(|byte| byte.is_ascii_digit());
                }
            }
            Some(b'$') => self.cursor.skip(1),
            Some(b'/') => {
                self.cursor.skip(1);
                self.until('/')?;
                self.address_flags();
            }
            Some(b'\\') => {
                self.cursor.skip(1);
                let delimiter = self.cursor.character()?;
                self.until(delimiter)?;
                self.address_flags();
            }
            Some(_) | None => return Some(false),
        }
        Some(true)
    }

    fn address_flags(&mut self) {
        self.cursor.take_while(|byte| matches!(byte, b'I' | b'M'));
    }

    /// Skips to a delimiter that is neither escaped nor in brackets where that matters.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut in_brackets = false;
        let mut first = false;
        loop {
            let character = self.cursor.character()?;
            if in_brackets {
                match character {
                    ']' if !first => in_brackets = false,
                    '^' if first => continue,
                    // A `sed` for which a delimiter ends the pattern even here finds brackets that do not close, and
                    // refuses the script as a whole.
                    '\n' => return None,
                    _ => {}
                }
                first = false;
                continue;
            }
            match character {
                _ if character == delimiter => return Some(()),
                '\\' => {
                    self.cursor.character()?;
                }
                '[' => {
                    in_brackets = true;
                    first = true;
                }
                '\n' => return None,
                _ => {}
            }
        }
    }

    /// Skips a replacement.
    fn replacement(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.cursor.character()? {
                '\\' => {
                    self.cursor.character()?;
                }
                character if character == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.cursor.character()? {
            '{' | '}' => Some(()),
            'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | '=' | 'z' | 'F' => self.ends(),
            'l' | 'L' | 'q' | 'Q' => {
                self.blanks();
                self.cursor.take_while(|byte| byte.is_ascii_digit());
                self.ends()
            }
            'b' | 't' | 'T' | ':' => {
                self.blanks();
                self.cursor.take_while(|byte| !matches!(byte, b'\n' | b';' | b'}' | b' ' | b'\t'));
                Some(())
            }
            'a' | 'i' | 'c' => {
                self.text();
                Some(())
            }
            'r' | 'R' => {
                self.blanks();
                let file = self.line();
                self.reads.push(file);
                Some(())
            }
            'w' | 'W' => {
                self.blanks();
                let file = self.line();
                self.files.push(file);
                Some(())
            }
            'e' => {
                self.runs = true;
                self.line();
                Some(())
            }
            'v' => {
                self.cursor.take_while(|byte| !matches!(byte, b'\n' | b';'));
                Some(())
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.replacement(delimiter)?;
                self.replacement(delimiter)?;
                self.ends()
            }
            's' => {
                let delimiter = self.delimiter()?;
                self.until(delimiter)?;
                self.replacement(delimiter)?;
                self.flags()
            }
            _ => None,
        }
    }

    fn delimiter(&mut self) -> Option<char> {
        self.cursor.character().filter(|delimiter| !matches!(delimiter, '\n' | '\\'))
    }

    fn flags(&mut self) -> Option<()> {
        loop {
            match self.cursor.peek() {
                Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9') => self.cursor.skip(1),
                Some(b'e') => {
                    self.runs = true;
                    self.cursor.skip(1);
                }
                Some(b'w') => {
                    self.cursor.skip(1);
                    self.blanks();
                    let file = self.line();
                    self.files.push(file);
                    return Some(());
                }
                Some(_) | None => return self.ends(),
            }
        }
    }

    /// The text of `a`, `i`, `c`: to the end of a line that does not end in a backslash.
    fn text(&mut self) {
        loop {
            let line = self.line();
            let slashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            if slashes % 2 == 0 || self.cursor.peek().is_none() {
                return;
            }
        }
    }

    /// A command ends at a line end, `;`, `}`, `#` or the end of the script.
    fn ends(&mut self) -> Option<()> {
        self.blanks();
        match self.cursor.peek() {
            None | Some(b'\n' | b';' | b'}' | b'#') => Some(()),
            Some(_) => None,
        }
    }
}
