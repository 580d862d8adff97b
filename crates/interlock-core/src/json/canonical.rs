//! The canonical text of a value: what is hashed and written to disk.
//!
//! NFC strings and keys, keys sorted by code point, no spaces, ASCII with lower-case `\uXXXX` escapes, integers plain,
//! other numbers in to-scientific-string form. Reading it back and printing it again gives the same bytes.

use std::borrow::Cow;

use super::document::{Content, Members, Value};
use super::string::Str;

/// The canonical text of a value.
pub fn canonical(value: Value<'_>) -> String {
    let mut out = String::with_capacity(value.canonical_len_hint());
    write(value, Numbers::AsWritten, &mut out);
    out
}

/// A text that two values share exactly when they are equal: canonical, but with numbers reduced to their value.
pub(crate) fn by_value(value: Value<'_>) -> String {
    let mut out = String::new();
    write(value, Numbers::ByValue, &mut out);
    out
}

#[derive(Clone, Copy)]
enum Numbers {
    AsWritten,
    ByValue,
}

/// Recursion is bounded: a document's depth is below `CONFIG_DEPTH_MAX`.
fn write(value: Value<'_>, numbers: Numbers, out: &mut String) {
    match value.content() {
        Some(Content::Null) => out.push_str("null"),
        Some(Content::Boolean(true)) => out.push_str("true"),
        Some(Content::Boolean(false)) => out.push_str("false"),
        Some(Content::Number(number)) => match numbers {
            Numbers::AsWritten => number.write_canonical(out),
            Numbers::ByValue => number.write_by_value(out),
        },
        Some(Content::String(string)) => write_string(&string, out),
        Some(Content::Array(items)) => {
            out.push('[');
            for (position, item) in items.enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write(item, numbers, out);
            }
            out.push(']');
        }
        Some(Content::Object(members)) => write_object(members, numbers, out),
        None => {}
    }
}

fn write_object(members: Members<'_>, numbers: Numbers, out: &mut String) {
    out.push('{');
    if is_sorted(members) {
        for (position, (key, value)) in members.enumerate() {
            write_member(position, &key, value, numbers, out);
        }
    } else {
        for (position, member) in sorted_members(members).into_iter().enumerate() {
            write_member(position, &member.key, member.value, numbers, out);
        }
    }
    out.push('}');
}

fn write_member(position: usize, key: &Str<'_>, value: Value<'_>, numbers: Numbers, out: &mut String) {
    if position > 0 {
        out.push(',');
    }
    write_string(key, out);
    out.push(':');
    write(value, numbers, out);
}

/// Whether the keys are plain and stand in canonical order already.
fn is_sorted(members: Members<'_>) -> bool {
    let mut previous = "";
    for (key, _) in members {
        if !key.is_plain() || key.text() < previous {
            return false;
        }
        previous = key.text();
    }
    true
}

/// A member with its key in normal form.
pub(crate) struct SortedMember<'d> {
    pub(crate) name: Cow<'d, str>,
    pub(crate) key: Str<'d>,
    pub(crate) value: Value<'d>,
}

/// The members by normalised key, in code point order (which is the order of UTF-8 bytes).
pub(crate) fn sorted_members(members: Members<'_>) -> Vec<SortedMember<'_>> {
    let mut sorted: Vec<_> = members.map(|(key, value)| SortedMember { name: key.nfc(), key, value }).collect();
    sorted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    sorted
}

fn write_string(string: &Str<'_>, out: &mut String) {
    out.push('"');
    if string.is_plain() {
        out.push_str(string.text());
    } else {
        write_escaped(&string.nfc(), out);
    }
    out.push('"');
}

/// A text as a JSON string, in the spelling of canonical text but not normalised.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('"');
    write_escaped(text, &mut out);
    out.push('"');
    out
}

fn write_escaped(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((plain, character, after)) = split_at_escape(rest) {
        out.push_str(plain);
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    push_unit(*unit, out);
                }
            }
        }
        rest = after;
    }
    out.push_str(rest);
}

/// What comes before the first character that is escaped, that character, and what comes after it.
fn split_at_escape(text: &str) -> Option<(&str, char, &str)> {
    let at = text.bytes().position(|byte| !matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~'))?;
    let (plain, rest) = text.split_at_checked(at)?;
    let mut characters = rest.chars();
    let character = characters.next()?;
    Some((plain, character, characters.as_str()))
}

fn push_unit(unit: u16, out: &mut String) {
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        out.push(char::from_digit(u32::from(unit >> shift) & 0xF, 16).unwrap_or('0'));
    }
}
