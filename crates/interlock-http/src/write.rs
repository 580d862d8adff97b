//! JSON as it is answered: exact decimals, so it is written by hand.

use std::fmt::Display;

pub(crate) use interlock_core::instant::to_rfc3339 as time;
use interlock_core::json::quote;

/// An object under construction.
pub(crate) struct Object(String);

/// What most answers need, so that one allocation holds them.
const USUAL_BYTES: usize = 768;

impl Object {
    /// An object that will be the whole answer.
    pub(crate) fn answer() -> Object {
        let mut text = String::with_capacity(USUAL_BYTES);
        text.push('{');
        Object(text)
    }

    pub(crate) fn new() -> Object {
        Object("{".to_owned())
    }

    fn key(&mut self, key: &str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    /// A member whose value is JSON already.
    pub(crate) fn raw(mut self, key: &str, value: impl Display) -> Object {
        use std::fmt::Write;
        self.key(key);
        // Writing to a string does not fail.
        let _ = write!(self.0, "{value}");
        self
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Object {
        self.key(key);
        quote_into(&mut self.0, value);
        self
    }

    /// A list of strings.
    pub(crate) fn texts<'a>(mut self, key: &str, values: impl Iterator<Item = &'a str>) -> Object {
        self.key(key);
        self.0.push('[');
        for (position, value) in values.enumerate() {
            if position > 0 {
                self.0.push(',');
            }
            quote_into(&mut self.0, value);
        }
        self.0.push(']');
        self
    }

    /// An object within this one, in the same buffer.
    pub(crate) fn object(mut self, key: &str, fill: impl FnOnce(Object) -> Object) -> Object {
        self.key(key);
        self.0.push('{');
        let mut filled = fill(self);
        filled.0.push('}');
        filled
    }

    pub(crate) fn optional_object<T>(
        self,
        key: &str,
        value: Option<T>,
        fill: impl FnOnce(Object, T) -> Object,
    ) -> Object {
        match value {
            Some(value) => self.object(key, |object| fill(object, value)),
            None => self,
        }
    }

    pub(crate) fn optional_text(self, key: &str, value: Option<&str>) -> Object {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    /// A number, or null for no limit.
    pub(crate) fn limit(self, key: &str, value: Option<impl Display>) -> Object {
        match value {
            Some(value) => self.raw(key, value),
            None => self.raw(key, "null"),
        }
    }

    pub(crate) fn optional(self, key: &str, value: Option<impl Display>) -> Object {
        match value {
            Some(value) => self.raw(key, value),
            None => self,
        }
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A JSON string; most need no escape.
fn quote_into(out: &mut String, text: &str) {
    // Without an early end, so that the compiler takes many bytes at a time.
    let plain = |byte: u8| matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~');
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&quote(text));
    }
}

/// A list of values that are JSON already.
pub(crate) fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}
