//! Typed loading: a `serde::Deserializer` over the strict tree.
//!
//! Types derive `Deserialize` with `deny_unknown_fields` and are read by [`from_str`]. Integers arrive exact; a number
//! that is no integer is refused, because the only type serde has for it is a float. Fields that keep their own rules
//! are declared as [`RawJson`] and read again by whoever knows those rules.

use core::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserialize, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::{Serialize, Serializer};

use super::document::{Content, Items, Members, Value};
use super::error::JsonError;
use super::limits::Limits;
use super::parse::parse;

/// Reads a configuration text into a type.
///
/// ```
/// #[derive(serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Retry {
///     attempts: u32,
/// }
///
/// let retry: Retry = interlock_core::json::from_str(r#"{"attempts": 3}"#)?;
/// assert_eq!(retry.attempts, 3);
/// let error = interlock_core::json::from_str::<Retry>(r#"{"attempt": 3}"#).err().map(|e| e.to_string());
/// assert_eq!(error.as_deref(), Some("unknown field `attempt`, expected `attempts` at $"));
/// # Ok::<(), interlock_core::json::LoadError>(())
/// ```
pub fn from_str<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, LoadError> {
    let document = parse(text, &Limits::CONFIG).map_err(LoadError::Json)?;
    T::deserialize(document.root())
}

/// Why a text could not be read into a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// The text is not strict JSON.
    Json(JsonError),
    /// The value at `path` does not fit the type.
    Shape {
        /// What does not fit, in serde's words.
        message: String,
        /// Where, once the value that did not fit is known.
        path: Option<String>,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Json(error) => error.fmt(f),
            LoadError::Shape { message, path: Some(path) } => write!(f, "{message} at {path}"),
            LoadError::Shape { message, path: None } => f.write_str(message),
        }
    }
}

impl std::error::Error for LoadError {}

impl de::Error for LoadError {
    fn custom<T: fmt::Display>(message: T) -> LoadError {
        LoadError::Shape { message: message.to_string(), path: None }
    }
}

impl LoadError {
    /// Names the value, unless an inner value has been named already.
    fn at(self, value: Value<'_>) -> LoadError {
        match self {
            LoadError::Shape { message, path: None } => LoadError::Shape { message, path: Some(value.path()) },
            other @ (LoadError::Json(_) | LoadError::Shape { .. }) => other,
        }
    }
}

/// A part of a configuration text as it was written, already known to be strict JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJson(String);

impl Default for RawJson {
    fn default() -> RawJson {
        RawJson("null".to_owned())
    }
}

impl RawJson {
    /// A text that our own code wrote as JSON.
    pub fn written(text: String) -> RawJson {
        RawJson(text)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// As it stands, by [`to_string`](super::to_string) alone: no other format knows what these bytes are.
impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.as_bytes())
    }
}

/// Tells our deserializer to hand over the source text; no other format knows it.
const RAW_JSON: &str = "$interlock::RawJson";

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawJson, D::Error> {
        struct Source;
        impl<'de> Visitor<'de> for Source {
            type Value = RawJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a strict JSON value")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, source: D) -> Result<RawJson, D::Error> {
                String::deserialize(source).map(RawJson)
            }
        }
        deserializer.deserialize_newtype_struct(RAW_JSON, Source)
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = LoadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LoadError> {
        let result = match self.content() {
            Some(Content::Null) => visitor.visit_unit(),
            Some(Content::Boolean(boolean)) => visitor.visit_bool(boolean),
            Some(Content::Number(number)) => match number.to_i128() {
                Some(integer) => match (u64::try_from(integer), i64::try_from(integer)) {
                    (Ok(unsigned), _) => visitor.visit_u64(unsigned),
                    (_, Ok(signed)) => visitor.visit_i64(signed),
                    _ => visitor.visit_i128(integer),
                },
                None if number.is_integer() => Err(de::Error::custom("integer out of range")),
                None => Err(de::Error::custom("a number other than an integer is not allowed here")),
            },
            Some(Content::String(string)) => visitor.visit_borrowed_str(string.text()),
            Some(Content::Array(items)) => visitor.visit_seq(Sequence { items }),
            Some(Content::Object(members)) => visitor.visit_map(Map { members, value: None }),
            None => Err(de::Error::custom("no value")),
        };
        result.map_err(|error: LoadError| error.at(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LoadError> {
        match self.content() {
            Some(Content::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, LoadError> {
        if name == RAW_JSON {
            return visitor.visit_newtype_struct(BorrowedStrDeserializer::new(self.source()));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, LoadError> {
        let mut members = self.as_object();
        let access = match (self.as_str(), members.as_mut().map(|members| (members.len(), members.next()))) {
            (Some(name), _) => Variant { name: name.text(), content: None },
            (None, Some((1, Some((name, content))))) => Variant { name: name.text(), content: Some(content) },
            _ => return Err(<LoadError as de::Error>::custom("expected a name or an object with one member").at(self)),
        };
        visitor.visit_enum(access).map_err(|error| error.at(self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, LoadError> {
        // Serde would take an array for the fields in order; here names are part of the form.
        match self.as_object() {
            Some(members) => visitor.visit_map(Map { members, value: None }).map_err(|error| error.at(self)),
            None => Err(<LoadError as de::Error>::custom("expected an object").at(self)),
        }
    }

    /// What nobody asks for may be anything: it is strict JSON already.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LoadError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct Sequence<'de> {
    items: Items<'de>,
}

impl<'de> SeqAccess<'de> for Sequence<'de> {
    type Error = LoadError;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, LoadError> {
        self.items.next().map(|item| seed.deserialize(item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Map<'de> {
    members: Members<'de>,
    value: Option<Value<'de>>,
}

impl<'de> MapAccess<'de> for Map<'de> {
    type Error = LoadError;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, LoadError> {
        let Some((key, value)) = self.members.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(BorrowedStrDeserializer::new(key.text())).map(Some)
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, LoadError> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(|error| error.at(value)),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

struct Variant<'de> {
    name: &'de str,
    content: Option<Value<'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = LoadError;
    type Variant = VariantContent<'de>;

    fn variant_seed<V: de::DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, VariantContent<'de>), LoadError> {
        let name = seed.deserialize(BorrowedStrDeserializer::<LoadError>::new(self.name))?;
        Ok((name, VariantContent { content: self.content }))
    }
}

struct VariantContent<'de> {
    content: Option<Value<'de>>,
}

impl<'de> VariantContent<'de> {
    fn required(self) -> Result<Value<'de>, LoadError> {
        self.content.ok_or_else(|| de::Error::custom("this variant needs content"))
    }
}

impl<'de> VariantAccess<'de> for VariantContent<'de> {
    type Error = LoadError;

    fn unit_variant(self) -> Result<(), LoadError> {
        match self.content {
            None => Ok(()),
            Some(value) => <()>::deserialize(value),
        }
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, LoadError> {
        seed.deserialize(self.required()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, LoadError> {
        self.required()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, LoadError> {
        self.required()?.deserialize_struct("", fields, visitor)
    }
}
