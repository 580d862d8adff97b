//! A JSON value that owns its parts, for what is kept and changed: the context of a run.

use core::cmp::Ordering;
use std::collections::BTreeMap;

use super::canonical::append_quoted;
use super::document::{Content, Value};
use super::number::Number;

/// A JSON value. Keys are in normal form, numbers exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written; compare with [`Json::cmp_number`].
    Number(JsonNumber),
    /// A string, as it was sent.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(BTreeMap<String, Json>),
}

/// A number as a parser accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonNumber {
    literal: String,
    integer: bool,
    /// The value times a power of ten, where it is small and written without an exponent: most are compared by this.
    scaled: Option<Scaled>,
}

/// `units` / 10^`places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scaled {
    units: i64,
    places: u8,
}

/// Numbers with at most so many characters are scaled: with the other's places they still fit.
const SCALED_LEN_MAX: usize = 9;

/// The powers of ten that two such numbers can differ by.
const TENS: [i64; SCALED_LEN_MAX] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

impl Scaled {
    fn of(literal: &str) -> Option<Scaled> {
        let (whole, fraction) = literal.split_once('.').unwrap_or((literal, ""));
        let plain = literal.len() <= SCALED_LEN_MAX && !literal.contains(['e', 'E']);
        let places = u8::try_from(fraction.len()).ok()?;
        let units = if plain { format!("{whole}{fraction}").parse().ok()? } else { return None };
        Some(Scaled { units, places })
    }

    fn cmp(self, other: Scaled) -> Option<Ordering> {
        if self.places == other.places {
            return Some(self.units.cmp(&other.units));
        }
        let scale = |units: i64, places: u8| units.checked_mul(*TENS.get(usize::from(places))?);
        let (more, less) = (other.places.saturating_sub(self.places), self.places.saturating_sub(other.places));
        Some(scale(self.units, more)?.cmp(&scale(other.units, less)?))
    }
}

impl JsonNumber {
    fn new(literal: String, integer: bool) -> JsonNumber {
        let scaled = Scaled::of(&literal);
        JsonNumber { literal, integer, scaled }
    }

    /// Order by exact value.
    fn cmp_value(&self, other: &JsonNumber) -> Ordering {
        let scaled = self.scaled.zip(other.scaled).and_then(|(own, other)| own.cmp(other));
        scaled.unwrap_or_else(|| self.number().cmp_value(&other.number()))
    }

    /// The number, to be compared and printed.
    pub fn number(&self) -> Number<'_> {
        Number::new(&self.literal, self.integer)
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Json {
        Json::Number(JsonNumber::new(number.to_string(), true))
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Json {
        Json::Number(JsonNumber::new(number.to_string(), true))
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::String(text.to_owned())
    }
}

impl Json {
    /// A parsed value with everything it holds. Depth is bounded by the parser.
    pub fn of(value: Value<'_>) -> Json {
        match value.content() {
            Some(Content::Null) | None => Json::Null,
            Some(Content::Boolean(boolean)) => Json::Bool(boolean),
            Some(Content::Number(number)) => {
                Json::Number(JsonNumber::new(number.literal().to_owned(), number.is_integer()))
            }
            Some(Content::String(text)) => Json::String(text.text().to_owned()),
            Some(Content::Array(items)) => Json::Array(items.map(Json::of).collect()),
            Some(Content::Object(members)) => {
                Json::Object(members.map(|(key, member)| (key.nfc().into_owned(), Json::of(member))).collect())
            }
        }
    }

    /// The members, if it is an object.
    pub fn as_object(&self) -> Option<&BTreeMap<String, Json>> {
        if let Json::Object(members) = self { Some(members) } else { None }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Json::String(text) = self { Some(text) } else { None }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number<'_>> {
        if let Json::Number(number) = self { Some(number.number()) } else { None }
    }

    /// The value under a dotted path of object keys; `null` counts as absent.
    pub fn at(&self, path: &[String]) -> Option<&Json> {
        let mut value = self;
        for key in path {
            value = value.as_object()?.get(key)?;
        }
        (!matches!(value, Json::Null)).then_some(value)
    }

    /// Order of two numbers by exact value; `None` unless both are numbers.
    pub fn cmp_number(&self, other: &Json) -> Option<Ordering> {
        match (self, other) {
            (Json::Number(left), Json::Number(right)) => Some(left.cmp_value(right)),
            _ => None,
        }
    }

    /// Whether two values are equal: numbers by exact value, strings after NFC, nothing coerced.
    pub fn same(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Null, Json::Null) => true,
            (Json::Bool(left), Json::Bool(right)) => left == right,
            (Json::Number(_), Json::Number(_)) => self.cmp_number(other) == Some(Ordering::Equal),
            (Json::String(left), Json::String(right)) => left == right || super::nfc(left) == super::nfc(right),
            (Json::Array(left), Json::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.same(right))
            }
            (Json::Object(left), Json::Object(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|((left_key, left), (right_key, right))| left_key == right_key && left.same(right))
            }
            _ => false,
        }
    }

    /// The length of the canonical text, or more.
    pub(crate) fn len_at_most(&self) -> usize {
        let within = |sum: usize, length: usize| sum.saturating_add(length).saturating_add(4);
        match self {
            Json::Null | Json::Bool(_) => 5,
            // Canonical text may write an exponent out.
            Json::Number(number) => number.literal.len().saturating_add(16),
            Json::String(text) => text.len().saturating_mul(6).saturating_add(2),
            Json::Array(items) => items.iter().map(Json::len_at_most).fold(2, within),
            Json::Object(members) => {
                let member =
                    |(key, value): (&String, &Json)| key.len().saturating_mul(6).saturating_add(value.len_at_most());
                members.iter().map(member).fold(2, within)
            }
        }
    }

    /// Becomes another value, in the room it has where that fits.
    pub(crate) fn become_like(&mut self, other: &Json) {
        match (self, other) {
            (Json::String(text), Json::String(other)) => text.clone_from(other),
            (Json::Number(number), Json::Number(other)) => {
                number.literal.clone_from(&other.literal);
                (number.integer, number.scaled) = (other.integer, other.scaled);
            }
            (own, other) => own.clone_from(other),
        }
    }

    /// The canonical text.
    pub fn canonical(&self) -> String {
        let mut out = Vec::new();
        self.append(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    fn append(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(true) => out.extend_from_slice(b"true"),
            Json::Bool(false) => out.extend_from_slice(b"false"),
            Json::Number(number) => number.number().write_canonical(out),
            Json::String(text) => append_quoted(out, text),
            Json::Array(items) => {
                out.push(b'[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(b',');
                    }
                    item.append(out);
                }
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (position, (key, member)) in members.iter().enumerate() {
                    if position > 0 {
                        out.push(b',');
                    }
                    append_quoted(out, key);
                    out.push(b':');
                    member.append(out);
                }
                out.push(b'}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, canonical, parse};

    #[test]
    fn an_owned_value_prints_as_the_parsed_one_and_compares_by_value() {
        let text = r#"{"b":[1,2.50,null,true,"x\u00e9"],"a":{"n":1e2}}"#;
        let Ok(document) = parse(text, &Limits::STATE) else { unreachable!("strict JSON") };
        let owned = Json::of(document.root());
        assert_eq!(owned.canonical(), canonical(document.root()));
        let path = ["a".to_owned(), "n".to_owned()];
        assert!(owned.at(&path).is_some_and(|found| found.same(&Json::from(100_u64))), "1e2 is 100");
        assert!(!Json::Bool(true).same(&Json::from(1_u64)), "nothing is coerced");
    }
}
