//! Our own values as JSON: what serde's derived code hands over, written without a space.
//!
//! Entries are hashed, so their bytes are for ever: this writes what `serde_json` writes, byte for byte, and a test
//! compares the two. It is here because that one looks at every byte by itself, names of fields too, and every approval
//! would pay for it. Floating-point numbers have no spelling here, and bytes are JSON already.

/// Values of this kind are refused.
macro_rules! refused {
    ($what:expr; $($method:ident($($kind:ty),*) -> $kept:ty;)*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<$kept, WriteError> {
            unspeakable($what)
        })*
    };
}

mod key;

use core::fmt::{self, Display};

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};

use key::Key;

/// Why a value could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteError(String);

impl Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for WriteError {}

impl serde::ser::Error for WriteError {
    fn custom<T: Display>(message: T) -> WriteError {
        WriteError(message.to_string())
    }
}

/// A value as JSON, in a buffer with room for so many bytes.
///
/// ```
/// let written = interlock_core::json::to_bytes(&[Some("a\"b"), None], 16);
/// assert_eq!(written.as_deref(), Ok(&br#"["a\"b",null]"#[..]));
/// ```
pub fn to_bytes<T: Serialize + ?Sized>(value: &T, room: usize) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::with_capacity(room);
    value.serialize(Writer(&mut out))?;
    Ok(out)
}

/// A value as JSON text.
pub fn to_string<T: Serialize + ?Sized>(value: &T, room: usize) -> Result<String, WriteError> {
    // Only whole strings are ever appended, so this does not fail.
    String::from_utf8(to_bytes(value, room)?).map_err(|error| WriteError(error.to_string()))
}

struct Writer<'a>(&'a mut Vec<u8>);

/// An array or an object under construction.
struct Inside<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    /// What ends it.
    end: &'static [u8],
}

impl<'a> Inside<'a> {
    fn open(out: &'a mut Vec<u8>, begin: u8, end: &'static [u8]) -> Inside<'a> {
        out.push(begin);
        Inside { out, is_first: true, end }
    }

    fn comma(&mut self) {
        if !core::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.comma();
        value.serialize(Writer(self.out))
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), WriteError> {
        self.comma();
        append_member(self.out, name);
        value.serialize(Writer(self.out))
    }

    fn close(self) {
        self.out.extend_from_slice(self.end);
    }
}

/// The name of a field or variant. They are ours, and none has a character that needs an escape.
fn append_name(out: &mut Vec<u8>, name: &'static str) {
    debug_assert!(is_plain(name.as_bytes()), "a name that needs an escape");
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

/// A name with what follows it in an object.
fn append_member(out: &mut Vec<u8>, name: &'static str) {
    debug_assert!(is_plain(name.as_bytes()), "a name that needs an escape");
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn append_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len().saturating_add(2));
    out.push(b'"');
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        append_escaped(out, text.as_bytes());
    }
    out.push(b'"');
}

/// Whatever is no control character, quote or backslash stays as it is, characters beyond ASCII too.
#[cold]
fn append_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        let short = match byte {
            b'"' | b'\\' => *byte,
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..=0x1f => {
                let low = if byte & 0xF < 10 { b'0' | (byte & 0xF) } else { (byte & 0xF).saturating_add(b'a' - 10) };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' | (byte >> 4), low]);
                continue;
            }
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
}

/// Whether none of these bytes needs an escape, eight at a time.
fn is_plain(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let special = chunks.iter().chain([&last]).fold(0, |all, chunk| all | specials(u64::from_le_bytes(*chunk)));
    special & HIGH == 0
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of at least one byte is set if one of the eight is a control character, a quote or a backslash, and of
/// none otherwise.
fn specials(word: u64) -> u64 {
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let controls = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word;
    let quotes = is_zero(word ^ ONES.wrapping_mul(0x22));
    let backslashes = is_zero(word ^ ONES.wrapping_mul(0x5c));
    controls | quotes | backslashes
}

fn append_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn append_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    append_number(out, number.unsigned_abs());
}

fn unspeakable<T>(what: &str) -> Result<T, WriteError> {
    Err(WriteError(format!("{what} has no spelling here")))
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), WriteError> {
        self.0.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), WriteError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), WriteError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), WriteError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), WriteError> {
        append_signed(self.0, value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), WriteError> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), WriteError> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), WriteError> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), WriteError> {
        append_number(self.0, value);
        Ok(())
    }

    refused! {
        "a floating-point number";
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
    }

    fn serialize_char(self, value: char) -> Result<(), WriteError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), WriteError> {
        append_text(self.0, value);
        Ok(())
    }

    /// JSON that is written already: [`RawJson`](super::RawJson) alone hands over bytes.
    fn serialize_bytes(self, value: &[u8]) -> Result<(), WriteError> {
        self.0.extend_from_slice(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), WriteError> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), WriteError> {
        append_name(self.0, variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        let mut object = Inside::open(self.0, b'{', b"}");
        object.member(variant, value)?;
        object.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, WriteError> {
        Ok(Inside::open(self.0, b'[', b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, WriteError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, WriteError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, WriteError> {
        self.0.push(b'{');
        append_member(self.0, variant);
        Ok(Inside::open(self.0, b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, WriteError> {
        Ok(Inside::open(self.0, b'{', b"}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, WriteError> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, WriteError> {
        self.0.push(b'{');
        append_member(self.0, variant);
        Ok(Inside::open(self.0, b'{', b"}}"))
    }
}

/// Implements one of serde's ways to fill an array or an object.
macro_rules! filled {
    ($kind:ident, $element:ident($($name:ident)?), $add:ident) => {
        impl $kind for Inside<'_> {
            type Ok = ();
            type Error = WriteError;

            fn $element<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), WriteError> {
                self.$add($($name,)? value)
            }

            fn end(self) -> Result<(), WriteError> {
                self.close();
                Ok(())
            }
        }
    };
}

filled!(SerializeSeq, serialize_element(), item);
filled!(SerializeTuple, serialize_element(), item);
filled!(SerializeTupleStruct, serialize_field(), item);
filled!(SerializeTupleVariant, serialize_field(), item);
filled!(SerializeStruct, serialize_field(name), member);
filled!(SerializeStructVariant, serialize_field(name), member);

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WriteError> {
        self.comma();
        key.serialize(Key(self.out))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.out.push(b':');
        value.serialize(Writer(self.out))
    }

    fn end(self) -> Result<(), WriteError> {
        self.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn written<T: Serialize + ?Sized>(value: &T) -> String {
        to_string(value, 0).expect("written")
    }

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Unit,
        Newtype(Option<u8>),
        Tuple(i64, bool),
        Struct { a: &'static str, b: () },
    }

    #[derive(Serialize)]
    struct Whole {
        shapes: Vec<Shape>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        by_text: BTreeMap<String, u64>,
        by_number: BTreeMap<i64, [u64; 2]>,
        empty: (Vec<u8>, BTreeMap<String, u8>),
        character: char,
        numbers: (u64, i64, i64, u8),
    }

    #[test]
    fn it_writes_what_serde_json_writes() {
        let struct_variant = Shape::Struct { a: "ä\u{7f}\u{2028}😀", b: () };
        let whole = Whole {
            shapes: vec![
                Shape::Unit,
                Shape::Newtype(None),
                Shape::Newtype(Some(7)),
                Shape::Tuple(-3, true),
                struct_variant,
            ],
            left_out: None,
            by_text: [("a\"b".to_owned(), 1), (String::new(), 2)].into(),
            by_number: [(-1, [0, 10]), (100, [99, 101])].into(),
            empty: Default::default(),
            character: '\\',
            numbers: (u64::MAX, i64::MIN, i64::MAX, 0),
        };
        assert_eq!(written(&whole), serde_json::to_string(&whole).expect("written"));
    }

    #[test]
    fn each_character_in_each_place_is_written_as_serde_json_writes_it() {
        for code in (0..0x180).chain([0x2028, 0xd7ff, 0xe000, 0xffff, 0x1_0000, 0x10_ffff]) {
            let Some(character) = char::from_u32(code) else { continue };
            for before in 0..18 {
                for after in ["z".repeat(17 - before), "ä\"\u{1f}\u{80}".to_owned()] {
                    let text = format!("{}{character}{after}", "a".repeat(before));
                    let theirs = serde_json::to_string(&text).expect("written");
                    assert_eq!(written(&text), theirs, "{code:x} after {before}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_spelling_is_refused() {
        assert!(to_bytes(&1.5, 0).is_err());
        assert!(to_bytes(&BTreeMap::from([(true, 1)]), 0).is_err());
        assert!(to_bytes(&BTreeMap::from([((1, 2), 1)]), 0).is_err());
    }
}
