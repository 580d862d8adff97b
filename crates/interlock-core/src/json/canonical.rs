//! The canonical text of a value: what is hashed and written to disk.
//!
//! NFC strings and keys, keys sorted by code point, no spaces, ASCII with lower-case `\uXXXX` escapes, integers plain,
//! other numbers in to-scientific-string form. Reading it back and printing it again gives the same bytes.

use super::document::Value;
use super::keys::KeyOrder;
use super::nodes::{Node, NodeIndex, NodeKind, Nodes, Style};
use super::string::nfc;

/// The canonical text of a value.
pub fn canonical(value: Value<'_>) -> String {
    write("", value, "", Numbers::AsWritten)
}

/// The canonical text of a value, after whatever there is already.
pub(crate) fn append_canonical(out: &mut Vec<u8>, value: Value<'_>) {
    let mut writer = Writer { nodes: value.document().nodes(), numbers: Numbers::AsWritten, out: core::mem::take(out) };
    writer.value(value.index());
    *out = writer.out;
}

/// A text that values share which only a spelling tells apart, after whatever there is already: canonical, but with
/// numbers by their value and strings without blanks at their ends.
pub(crate) fn append_alike(out: &mut Vec<u8>, value: Value<'_>) {
    let mut writer = Writer { nodes: value.document().nodes(), numbers: Numbers::Alike, out: core::mem::take(out) };
    writer.value(value.index());
    *out = writer.out;
}

/// The canonical text of a value with something around it, written in one go.
pub(crate) fn canonical_between(before: &str, value: Value<'_>, after: &str) -> String {
    write(before, value, after, Numbers::AsWritten)
}

/// A text that two values share exactly when they are equal: canonical, but with numbers reduced to their value.
pub(crate) fn by_value(value: Value<'_>) -> String {
    write("", value, "", Numbers::ByValue)
}

/// The canonical text of a configured value, cut to a length that fits a message.
pub(crate) fn shown(value: Value<'_>) -> String {
    const SHOWN_MAX: usize = 400;
    let mut text = canonical(value);
    if text.len() > SHOWN_MAX {
        text.truncate(SHOWN_MAX);
        text.push('…');
    }
    text
}

fn write(before: &str, value: Value<'_>, after: &str, numbers: Numbers) -> String {
    // The canonical text of a whole document is seldom longer than the document.
    let length = if value.is_root() { value.document().text().len() } else { 0 };
    let capacity = before.len().saturating_add(length).saturating_add(after.len());
    let mut writer = Writer { nodes: value.document().nodes(), numbers, out: Vec::with_capacity(capacity) };
    writer.out.extend_from_slice(before.as_bytes());
    writer.value(value.index());
    writer.out.extend_from_slice(after.as_bytes());
    // Everything that is written is ASCII. Should that ever fail, no text is the text of no value.
    String::from_utf8(writer.out).unwrap_or_default()
}

#[derive(Clone, Copy)]
enum Numbers {
    AsWritten,
    ByValue,
    /// By value, and strings without blanks at their ends.
    Alike,
}

struct Writer<'d> {
    nodes: Nodes<'d>,
    numbers: Numbers,
    out: Vec<u8>,
}

impl Writer<'_> {
    /// Writes one value and returns the index of the node after it.
    /// Recursion is bounded: a document's depth is below `CONFIG_DEPTH_MAX`.
    fn value(&mut self, index: NodeIndex) -> NodeIndex {
        let node = self.nodes.node(index);
        match node.kind {
            NodeKind::String => match self.numbers {
                Numbers::AsWritten | Numbers::ByValue => self.string(node),
                Numbers::Alike => append_quoted(&mut self.out, nfc(self.nodes.contents(node)).trim()),
            },
            NodeKind::True => self.out.extend_from_slice(b"true"),
            NodeKind::False => self.out.extend_from_slice(b"false"),
            NodeKind::Null => self.out.extend_from_slice(b"null"),
            NodeKind::Integer | NodeKind::Decimal => self.number(node),
            NodeKind::Object => {
                self.out.push(b'{');
                self.members(index, node);
                self.out.push(b'}');
                return node.second;
            }
            NodeKind::Array => {
                self.out.push(b'[');
                let mut item = index.saturating_add(1);
                for position in 0..node.first {
                    if position > 0 {
                        self.out.push(b',');
                    }
                    item = self.value(item);
                }
                self.out.push(b']');
                return node.second;
            }
            NodeKind::Missing => {}
        }
        index.saturating_add(1)
    }

    fn number(&mut self, node: Node) {
        let number = self.nodes.number(node);
        match self.numbers {
            Numbers::AsWritten => number.write_canonical(&mut self.out),
            Numbers::ByValue => number.write_by_value(&mut self.out),
            Numbers::Alike => number.write_plain(&mut self.out),
        }
    }

    fn members(&mut self, object: NodeIndex, node: Node) {
        if node.style == Style::SortedKeys {
            let mut key = object.saturating_add(1);
            for position in 0..node.first {
                key = self.member(position == 0, key);
            }
            return;
        }
        let order = KeyOrder::of(self.nodes, object);
        for (position, key) in order.as_slice().iter().enumerate() {
            self.member(position == 0, *key);
        }
    }

    /// Writes one member and returns the index of the node after it.
    fn member(&mut self, first: bool, key: NodeIndex) -> NodeIndex {
        if !first {
            self.out.push(b',');
        }
        self.string(self.nodes.node(key));
        self.out.push(b':');
        self.value(key.saturating_add(1))
    }

    fn string(&mut self, node: Node) {
        if node.style == Style::Plain {
            self.out.extend_from_slice(self.nodes.quoted(node));
            return;
        }
        self.out.push(b'"');
        write_escaped(&nfc(self.nodes.contents(node)), &mut self.out);
        self.out.push(b'"');
    }
}

/// A text as a JSON string, in the spelling of canonical text but not normalised.
pub fn quote(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len().saturating_add(2));
    append_quoted(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// [`quote`], after whatever there is already.
pub(crate) fn append_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(text, out);
    out.push(b'"');
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((plain, character, after)) = split_at_escape(rest) {
        out.extend_from_slice(plain.as_bytes());
        let short = match character {
            '"' => b'"',
            '\\' => b'\\',
            '\u{8}' => b'b',
            '\u{c}' => b'f',
            '\n' => b'n',
            '\r' => b'r',
            '\t' => b't',
            other => {
                other.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write_unit(*unit, out));
                rest = after;
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
}

/// What comes before the first character that is escaped, that character, and what comes after it.
fn split_at_escape(text: &str) -> Option<(&str, char, &str)> {
    let at = text.bytes().position(|byte| !matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~'))?;
    let (plain, rest) = text.split_at_checked(at)?;
    let mut characters = rest.chars();
    let character = characters.next()?;
    Some((plain, character, characters.as_str()))
}

fn write_unit(unit: u16, out: &mut Vec<u8>) {
    let digit = |shift: u16| match u8::try_from((unit >> shift) & 0xF).unwrap_or(0) {
        digit @ 0..=9 => b'0'.saturating_add(digit),
        digit => b'a'.saturating_add(digit).saturating_sub(10),
    };
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}
