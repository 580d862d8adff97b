//! The members of an event outside the tool's input, read one by one.
//!
//! Members nobody asks for are left alone: hosts add some with every version, and none of them changes what a tool is
//! asked to do.

use interlock_core::json::{Document, JsonError, JsonErrorKind, Limits, Value, parse_bytes};

use crate::event::Unreadable;

/// Reads the bytes of an event strictly, and says what is wrong without repeating any of them.
pub(crate) fn parse(bytes: &[u8]) -> Result<Document<'_>, Unreadable> {
    let document = parse_bytes(bytes, &Limits::STATE)
        .map_err(|error| Unreadable::new(format!("the event is not strict JSON: {}", unquoted(&error))))?;
    if document.root().as_object().is_none() {
        return Err(Unreadable::new("the event is not an object"));
    }
    Ok(document)
}

/// What is wrong with a text, and where, without a word of it.
pub(crate) fn unquoted(error: &JsonError) -> String {
    let rule = if matches!(error.kind, JsonErrorKind::DuplicateKey(_) | JsonErrorKind::DuplicateNormalizedKey(_)) {
        "a key stands twice in one object".to_owned()
    } else if let JsonErrorKind::TooDeep { limit, .. } = error.kind {
        format!("values are nested {limit} deep")
    } else {
        error.kind.to_string()
    };
    format!("{rule} (line {} column {})", error.line, error.column)
}

/// The members of an event.
#[derive(Clone, Copy)]
pub(crate) struct Envelope<'d>(pub(crate) Value<'d>);

impl<'d> Envelope<'d> {
    /// A member, if it is there and not null.
    pub(crate) fn get(self, key: &str) -> Option<Value<'d>> {
        self.0.get(key).filter(|value| value.source() != "null")
    }

    /// A member that must be there, whatever it holds.
    pub(crate) fn must(self, key: &str) -> Result<Value<'d>, Unreadable> {
        self.0.get(key).ok_or_else(|| Unreadable::new(format!("`{key}` is missing")))
    }

    /// A text that must be there and say something.
    pub(crate) fn text(self, key: &str) -> Result<&'d str, Unreadable> {
        match self.optional_text(key)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(Unreadable::new(format!("`{key}` is missing or empty"))),
        }
    }

    /// A text that may be absent or null, but may be nothing else.
    pub(crate) fn optional_text(self, key: &str) -> Result<Option<&'d str>, Unreadable> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_str() {
                Some(text) => Ok(Some(text.text())),
                None => Err(Unreadable::new(format!("`{key}` is not a string"))),
            },
        }
    }
}
