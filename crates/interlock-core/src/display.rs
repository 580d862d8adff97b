//! The one way text from outside reaches a person.
//!
//! Control characters, bidirectional overrides and characters without width are shown as escapes, and long text is cut
//! with its size, so that a name in a message can neither repaint a terminal nor hide what it says.

use core::fmt::{self, Write};

use crate::digest::Digest;

/// The most characters of an outside text that are shown.
pub const DISPLAY_CHARS_MAX: usize = 80;

/// Text made safe to show; see the module.
///
/// ```
/// use interlock_core::display;
///
/// assert_eq!(display("agent_id").to_string(), "agent_id");
/// assert_eq!(display("a\u{1b}[2Jb").to_string(), "a\\u{1b}[2Jb");
/// ```
pub fn display(text: &str) -> Shown<'_> {
    Shown { text }
}

/// What [`display`] returns.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    text: &'a str,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, c) in self.text.chars().enumerate() {
            if count == DISPLAY_CHARS_MAX {
                return write!(f, "… ({} bytes, {})", self.text.len(), Digest::of(&[self.text]));
            }
            if matches!(c, '"' | '\'' | '\\') {
                f.write_char('\\')?;
            }
            write_visible(c, f)?;
        }
        Ok(())
    }
}

/// A whole text with what would move the cursor or hide shown as escapes; quotes and length stay as they are.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let _ = write_visible(c, &mut out);
    }
    out
}

fn write_visible(c: char, out: &mut dyn Write) -> fmt::Result {
    if is_visible(c) { out.write_char(c) } else { write!(out, "\\u{{{:x}}}", u32::from(c)) }
}

/// Names from outside in a message: each in quotes, so that none can pass for the message itself.
pub(crate) fn names(names: &[&str]) -> String {
    const NAMES_MAX: usize = 20;
    let mut shown: Vec<_> = names.iter().take(NAMES_MAX).map(|name| format!("'{}'", display(name))).collect();
    if names.len() > NAMES_MAX {
        shown.push(format!("… ({} in all)", names.len()));
    }
    shown.join(", ")
}

/// The same JSON with every character that does not show as itself written as an escape. Such a character can only stand
/// in a string, so the document means what it meant.
pub fn inert_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_visible(character) || matches!(character, '\n' | '\r' | '\t') {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// Whether a character shows as itself and changes nothing around it.
pub fn is_visible(c: char) -> bool {
    !(c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}'))
}
