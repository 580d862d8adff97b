//! `pattern`: a regular expression compiled to a table, so that matching takes one step a byte whatever the pattern.
//!
//! The dialect is that of JSON Schema as far as it can be matched so: `\d`, `\w`, `\s`, `\b` and `.` mean what they mean
//! in ECMA-262, the search is unanchored, and what needs memory (look-around, back-references) or too large a table is
//! refused when the schema is loaded.

use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

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
    pub(super) fn load(pattern: &str) -> Result<Pattern, String> {
        let table = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Unanchored)
                    .dfa_size_limit(Some(TABLE_BYTES_MAX))
                    .determinize_size_limit(Some(BUILD_BYTES_MAX)),
            )
            .thompson(thompson::Config::new().nfa_size_limit(Some(BUILD_BYTES_MAX)))
            .syntax(syntax::Config::new().nest_limit(64))
            .build(&translate(pattern));
        match table {
            Ok(table) => Ok(Pattern { table }),
            Err(reason) => Err(innermost(&reason)),
        }
    }

    /// Whether the pattern is found in a text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        // The table has no way to give up; if it had, the text would not match.
        matches!(self.table.try_search_fwd(&Input::new(text).earliest(true)), Ok(Some(_)))
    }
}

/// Rewrites what ECMA-262 and the engine spell alike but mean differently.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len().saturating_mul(2));
    let (mut characters, mut in_class) = (pattern.chars(), false);
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str(&format!("[{SPACES}]")),
                Some('S') => out.push_str(&format!("[^{SPACES}]")),
                Some('b') if in_class => out.push_str(r"\x08"),
                Some('b') => out.push_str(r"(?-u:\b)"),
                Some('B') if !in_class => out.push_str(r"(?-u:\B)"),
                Some('/') => out.push('/'),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '.' if !in_class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '[' if !in_class => {
                in_class = true;
                out.push('[');
            }
            // Only the engine knows nested classes and operators on them.
            '[' => out.push_str(r"\["),
            '&' | '~' if in_class => out.extend(['\\', character]),
            '-' if in_class && out.ends_with('-') => out.push_str(r"\-"),
            ']' => {
                in_class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
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
