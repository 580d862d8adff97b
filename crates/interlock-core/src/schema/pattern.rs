//! `pattern`: a regular expression compiled to a table, so that matching takes one step a byte whatever the pattern.
//!
//! The dialect is that of JSON Schema as far as it can be matched so: `\d`, `\w`, `\s`, `\b` and `.` mean what they mean
//! in ECMA-262, the search is unanchored, and what needs memory (look-around, back-references) or too large a table is
//! refused when the schema is loaded.

use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

use crate::cause::Cause;

/// The largest table of one pattern, in bytes.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// The most memory building it may take.
const BUILD_BYTES_MAX: usize = 1 << 23;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    table: dense::DFA<Vec<u32>>,
}

impl Pattern {
    /// Compiles a pattern, or says why it cannot be.
    pub(super) fn load(pattern: &str) -> Result<Pattern, Cause> {
        let table = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Unanchored)
                    .dfa_size_limit(Some(TABLE_BYTES_MAX))
                    .determinize_size_limit(Some(BUILD_BYTES_MAX)),
            )
            .thompson(thompson::Config::new().nfa_size_limit(Some(BUILD_BYTES_MAX)))
            .syntax(syntax::Config::new().nest_limit(64))
            .build(&Translator::new(pattern).translate()?);
        match table {
            Ok(table) => Ok(Pattern { table }),
            Err(reason) => Err(innermost(&reason).into()),
        }
    }

    /// Whether the pattern is found in a text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        // The table has no way to give up; if it had, the text would not match.
        matches!(self.table.try_search_fwd(&Input::new(text).earliest(true)), Ok(Some(_)))
    }
}

/// Reads a pattern as ECMA-262 does and writes it for the engine. What only one of the two knows is refused, and
/// characters are written by number wherever the engine might read them as something else.
struct Translator<'p> {
    rest: core::str::Chars<'p>,
    out: String,
}

/// One thing in a character class.
enum ClassItem {
    Character(char),
    /// A class of its own, in brackets.
    Class(String),
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Translator<'p> {
        Translator { rest: pattern.chars(), out: String::new() }
    }

    fn translate(mut self) -> Result<String, Cause> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '.' => self.out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
                '{' => self.repetition(),
                ']' | '}' => self.push_character(character),
                other => self.out.push(other),
            }
        }
        Ok(self.out)
    }

    fn push_character(&mut self, character: char) {
        self.out.push_str(&format!(r"\u{{{:x}}}", u32::from(character)));
    }

    /// After an opening brace: `{n}`, `{n,}` and `{n,m}` repeat, any other brace is itself.
    fn repetition(&mut self) {
        let counts = self.rest.as_str().split_once('}').filter(|(counts, _)| {
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let (min, max) = counts.split_once(',').unwrap_or((counts, ""));
            is_number(min) && (max.is_empty() || is_number(max))
        });
        match counts {
            Some((counts, rest)) => {
                self.out.push_str(&format!("{{{counts}}}"));
                self.rest = rest.chars();
            }
            None => self.push_character('{'),
        }
    }

    /// After an opening parenthesis: groups, named or not, and nothing else that begins with a question mark.
    fn group(&mut self) -> Result<(), Cause> {
        let rest = self.rest.as_str();
        if let Some(name) = rest.strip_prefix("?<").filter(|name| !name.starts_with(['=', '!'])) {
            self.rest = name.chars();
            self.out.push_str("(?P<");
        } else if rest.starts_with('?') && !rest.starts_with("?:") {
            return Err("look-around and flags are not supported".into());
        } else {
            self.out.push('(');
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Cause> {
        match self.rest.clone().next() {
            Some('b') => {
                self.rest.next();
                self.out.push_str(r"(?-u:\b)");
            }
            Some('B') => {
                self.rest.next();
                self.out.push_str(r"(?-u:\B)");
            }
            _ => match self.class_escape()? {
                ClassItem::Character(character) => self.push_character(character),
                ClassItem::Class(class) => self.out.push_str(&class),
            },
        }
        Ok(())
    }

    /// What follows a backslash, in a class or outside.
    fn class_escape(&mut self) -> Result<ClassItem, Cause> {
        let Some(escaped) = self.rest.next() else { return Err("a backslash at the end".into()) };
        Ok(match escaped {
            'd' => ClassItem::Class("[0-9]".to_owned()),
            'D' => ClassItem::Class("[^0-9]".to_owned()),
            'w' => ClassItem::Class("[0-9A-Za-z_]".to_owned()),
            'W' => ClassItem::Class("[^0-9A-Za-z_]".to_owned()),
            's' => ClassItem::Class(format!("[{SPACES}]")),
            'S' => ClassItem::Class(format!("[^{SPACES}]")),
            'p' | 'P' => {
                let inner = self.rest.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let Some((name, rest)) = inner else { return Err(r"\p must name a property in braces".into()) };
                self.rest = rest.chars();
                ClassItem::Class(format!("[\\{escaped}{{{name}}}]"))
            }
            't' => ClassItem::Character('\t'),
            'n' => ClassItem::Character('\n'),
            'r' => ClassItem::Character('\r'),
            'f' => ClassItem::Character('\u{c}'),
            'v' => ClassItem::Character('\u{b}'),
            'x' => ClassItem::Character(self.hex(2)?),
            'u' => ClassItem::Character(self.hex(4)?),
            other if other.is_ascii_alphanumeric() => {
                return Err(format!("the escape \\{other} is not supported (back-references are not)").into());
            }
            other => ClassItem::Character(other),
        })
    }

    fn hex(&mut self, digits: usize) -> Result<char, Cause> {
        let code = (0..digits).try_fold(0_u32, |code, _| {
            let digit = self.rest.next().and_then(|digit| digit.to_digit(16))?;
            Some(code << 4 | digit)
        });
        code.and_then(char::from_u32).ok_or_else(|| "an escape that names no character".into())
    }

    /// A character class, from behind its opening bracket to its closing one.
    fn class(&mut self) -> Result<(), Cause> {
        let negated = self.rest.as_str().starts_with('^');
        if negated {
            self.rest.next();
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        let mut is_empty = true;
        loop {
            let first = match self.class_item()? {
                Some(first) => first,
                None if is_empty => return Err("an empty character class".into()),
                None => break,
            };
            is_empty = false;
            // A hyphen between two characters makes a range; before the closing bracket it is itself.
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']');
            if !is_range {
                self.push_item(&first);
                continue;
            }
            self.rest.next();
            match (first, self.class_item()?) {
                (ClassItem::Character(low), Some(ClassItem::Character(high))) if low <= high => {
                    self.push_character(low);
                    self.out.push('-');
                    self.push_character(high);
                }
                _ => return Err("a range in a character class whose ends are not two characters in order".into()),
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// The next thing in a class; `None` at its end.
    fn class_item(&mut self) -> Result<Option<ClassItem>, Cause> {
        match self.rest.next() {
            None => Err("a character class without an end".into()),
            Some(']') => Ok(None),
            Some('\\') if self.rest.as_str().starts_with('b') => {
                self.rest.next();
                Ok(Some(ClassItem::Character('\u{8}')))
            }
            Some('\\') => self.class_escape().map(Some),
            Some(other) => Ok(Some(ClassItem::Character(other))),
        }
    }

    fn push_item(&mut self, item: &ClassItem) {
        match item {
            ClassItem::Character(character) => self.push_character(*character),
            ClassItem::Class(class) => self.out.push_str(class),
        }
    }
}

/// White space and line ends of ECMA-262.
const SPACES: &str = r"\t\n\x0B\f\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// The reason at the bottom, in one line.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let text = reason.to_string();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("").trim().trim_start_matches("error: ").to_owned()
}
