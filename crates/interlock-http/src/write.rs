//! JSON as it is answered: exact decimals, so it is written by hand.

use std::fmt::Display;

use interlock_core::action::Millis;
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
    if text.bytes().all(|byte| matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~')) {
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

/// A time as answers have it: `2026-11-15T12:00:30.000Z`.
pub fn time(at: Millis) -> String {
    const DAY_MS: u64 = 86_400_000;
    let part = |value: u64, by: u64| (value.checked_div(by).unwrap_or(0), value.checked_rem(by).unwrap_or(0));
    let (days, in_day) = part(at, DAY_MS);
    let (hours, rest) = part(in_day, 3_600_000);
    let (minutes, rest) = part(rest, 60_000);
    let (seconds, millis) = part(rest, 1_000);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// The date so many days after 1970-01-01. Years are counted from March, so that leap days come last.
#[allow(clippy::arithmetic_side_effects, reason = "bounded by u64::MAX milliseconds, which are 2e11 days")]
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}
