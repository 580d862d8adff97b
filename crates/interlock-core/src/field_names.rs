//! What the names of fields tell: which hold a path, an address, a command line, a statement, a calculation, a recipient.
//!
//! An agent chooses where it puts a text, so a name counts if a usual one is in it.

use crate::rule::fold_case;

/// Parts of names of fields that hold a path, whatever it looks like.
const PATH: [&str; 6] = ["path", "file", "directory", "folder", "source", "destination"];
/// Parts of names of fields that hold a host or an address, whatever it looks like.
const ADDRESS: [&str; 6] = ["url", "uri", "host", "endpoint", "domain", "server"];

/// What a text in a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A command line, whatever the action.
    CommandLine,
    /// A command line, if the action runs command lines.
    ShellText,
    /// A statement for a database.
    Statement,
    /// A calculation.
    Calculation,
}

/// Words of names of fields, and what the text under such a name may be.
#[rustfmt::skip]
const WORDS: &[(&[&str], &[Meaning])] = &[
    (&["cmd", "cmdline", "commandline", "shell", "bash", "args", "argv"], &[Meaning::CommandLine, Meaning::ShellText]),
    (&["command", "commands", "script"], &[Meaning::CommandLine, Meaning::ShellText, Meaning::Statement]),
    // Too common elsewhere: a `line` is mostly one of a text.
    (&["line", "lines", "arguments"], &[Meaning::ShellText]),
    (&["code"], &[Meaning::ShellText, Meaning::Statement]),
    (&["query"], &[Meaning::ShellText, Meaning::Statement, Meaning::Calculation]),
    (&["sql", "queries", "statement", "statements", "stmt", "ddl", "dml"], &[Meaning::Statement]),
    (&["expression", "expressions", "formula", "formulas", "equation", "equations", "calculation"], &[Meaning::Calculation]),
];

/// Names of conditions that mean whoever gets a message.
const RECIPIENTS: [&str; 3] = ["to", "recipient", "recipients"];
/// Fields that name somebody who gets a message or an answer to it, without `_`, `-` and blanks.
#[rustfmt::skip]
const RECIPIENT_FIELDS: [&str; 19] = [
    "to", "recipient", "recipients", "cc", "bcc", "replyto", "torecipients", "ccrecipients", "bccrecipients", "toaddress",
    "toaddresses", "ccaddresses", "bccaddresses", "toemail", "toemails", "emailto", "mailto", "sendto", "forwardto",
];

/// Whether a field with this name holds a path, and whether it holds an address.
pub fn holds_path_or_address(name: &str) -> (bool, bool) {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    (has(&PATH), has(&ADDRESS))
}

/// Whether a field with this name may hold such a text: `sql`, `raw_sql`, `sqlText`. A capital begins a word where there
/// are small letters too.
pub fn may_hold(name: &str, meaning: Meaning) -> bool {
    let is_word = |word: &str| WORDS.iter().any(|(words, means)| means.contains(&meaning) && words.contains(&word));
    let has_word = |text: &str| fold_case(text).split(|c: char| !c.is_alphanumeric()).any(is_word);
    if has_word(name) {
        return true;
    }
    let mut apart = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_uppercase() {
            apart.push(' ');
        }
        apart.push(character);
    }
    apart.len() > name.len() && has_word(&apart)
}

/// Whether a condition with this name means whoever gets a message.
pub(crate) fn means_recipients(name: &str) -> bool {
    RECIPIENTS.contains(&name)
}

/// Whether a field with this name says who gets a message.
pub(crate) fn is_recipient(name: &str) -> bool {
    let letters = || name.chars().filter(|c| !matches!(c, '_' | '-') && !c.is_whitespace());
    RECIPIENT_FIELDS.iter().any(|field| letters().eq(field.chars()))
}
