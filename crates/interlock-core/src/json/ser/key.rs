//! Keys of maps: a text, a name, or an integer between quotes; anything else is refused.

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use super::{WriteError, append_name, append_number, append_signed, append_text, unspeakable};

/// Where a key is written.
pub(super) struct Key<'a>(pub(super) &'a mut Vec<u8>);

impl Key<'_> {
    fn signed(self, value: i64) -> Result<(), WriteError> {
        self.0.push(b'"');
        append_signed(self.0, value);
        self.0.push(b'"');
        Ok(())
    }

    fn unsigned(self, value: u64) -> Result<(), WriteError> {
        self.0.push(b'"');
        append_number(self.0, value);
        self.0.push(b'"');
        Ok(())
    }
}

const NO_KEY: &str = "a key that is neither a text nor an integer";

/// Keys of this kind are written like this.
macro_rules! keys {
    ($($method:ident($kind:ty) $write:ident;)*) => {
        $(fn $method(self, value: $kind) -> Result<(), WriteError> {
            self.$write(value.into())
        })*
    };
}

impl Serializer for Key<'_> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Impossible<(), WriteError>;
    type SerializeTuple = Impossible<(), WriteError>;
    type SerializeTupleStruct = Impossible<(), WriteError>;
    type SerializeTupleVariant = Impossible<(), WriteError>;
    type SerializeMap = Impossible<(), WriteError>;
    type SerializeStruct = Impossible<(), WriteError>;
    type SerializeStructVariant = Impossible<(), WriteError>;

    keys! {
        serialize_i8(i8) signed;
        serialize_i16(i16) signed;
        serialize_i32(i32) signed;
        serialize_i64(i64) signed;
        serialize_u8(u8) unsigned;
        serialize_u16(u16) unsigned;
        serialize_u32(u32) unsigned;
        serialize_u64(u64) unsigned;
    }

    fn serialize_str(self, value: &str) -> Result<(), WriteError> {
        append_text(self.0, value);
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), WriteError> {
        append_name(self.0, variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    refused! {
        NO_KEY;
        serialize_bool(bool) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), WriteError> {
        unspeakable(NO_KEY)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), WriteError> {
        unspeakable(NO_KEY)
    }
}
