//! What a caller hands over as a state, text or not: the door between 101 and 102.

use crate::json::{self, Document, JsonError, JsonErrorKind, Limits};

/// A state as a surface received it.
#[derive(Debug, Clone, Copy)]
pub enum StateText<'t> {
    /// Text.
    Text(&'t str),
    /// Bytes of a file or a request, not known to be UTF-8 yet.
    Bytes(&'t [u8]),
    /// Something that is no text at all.
    NotText,
    /// Text with characters that no encoding carries, such as half of a surrogate pair.
    NotUnicode,
    /// Text that is not blank and longer than any state may be; nobody has to copy it to hear so.
    TooLong,
}

impl<'t> From<&'t str> for StateText<'t> {
    fn from(text: &'t str) -> StateText<'t> {
        StateText::Text(text)
    }
}

impl<'t> From<&'t [u8]> for StateText<'t> {
    fn from(bytes: &'t [u8]) -> StateText<'t> {
        StateText::Bytes(bytes)
    }
}

/// Why there is no document.
pub(super) enum TextFault {
    NotText,
    Json(JsonError),
}

impl<'t> StateText<'t> {
    pub(super) fn read(self, limits: &Limits) -> Result<Document<'t>, TextFault> {
        let nowhere = |kind| TextFault::Json(JsonError::at(kind, &[], 0));
        match self {
            StateText::Text(text) if is_blank(text) => Err(TextFault::NotText),
            StateText::Text(text) => json::parse(text, limits).map_err(TextFault::Json),
            StateText::Bytes(bytes) => match core::str::from_utf8(bytes) {
                Ok(text) => StateText::Text(text).read(limits),
                // Too long comes first: whoever handed it over may have cut it inside a character.
                Err(_) if bytes.len() > limits.bytes => Err(nowhere(JsonErrorKind::TooManyBytes(limits.bytes))),
                Err(_) => json::parse_bytes(bytes, limits).map_err(TextFault::Json),
            },
            StateText::NotText => Err(TextFault::NotText),
            StateText::NotUnicode => Err(nowhere(JsonErrorKind::NotUtf8)),
            StateText::TooLong => Err(nowhere(JsonErrorKind::TooManyBytes(limits.bytes))),
        }
    }
}

/// White space of any kind and nothing else; the separators U+001C to U+001F count, as they do in Python.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}'))
}
