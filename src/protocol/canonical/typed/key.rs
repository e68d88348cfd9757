//! Map keys, as serde_json writes them.

use std::fmt;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use crate::protocol::canonical::error::CanonicalError;
use crate::protocol::canonical::writer::Writer;

/// Writes the name of a member.
#[derive(Debug)]
pub(super) struct KeySerializer<'w> {
    pub(super) writer: &'w mut Writer,
}

type Written = Result<(), CanonicalError>;
type Refused = Impossible<(), CanonicalError>;

impl KeySerializer<'_> {
    fn text(self, value: &impl fmt::Display) -> Written {
        self.serialize_str(&value.to_string())
    }
}

impl Serializer for KeySerializer<'_> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = Refused;
    type SerializeTuple = Refused;
    type SerializeTupleStruct = Refused;
    type SerializeTupleVariant = Refused;
    type SerializeMap = Refused;
    type SerializeStruct = Refused;
    type SerializeStructVariant = Refused;

    fn serialize_bool(self, value: bool) -> Written {
        self.text(&value)
    }

    fn serialize_i8(self, value: i8) -> Written {
        self.text(&value)
    }

    fn serialize_i16(self, value: i16) -> Written {
        self.text(&value)
    }

    fn serialize_i32(self, value: i32) -> Written {
        self.text(&value)
    }

    fn serialize_i64(self, value: i64) -> Written {
        self.text(&value)
    }

    fn serialize_i128(self, value: i128) -> Written {
        self.text(&value)
    }

    fn serialize_u8(self, value: u8) -> Written {
        self.text(&value)
    }

    fn serialize_u16(self, value: u16) -> Written {
        self.text(&value)
    }

    fn serialize_u32(self, value: u32) -> Written {
        self.text(&value)
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.text(&value)
    }

    fn serialize_u128(self, value: u128) -> Written {
        self.text(&value)
    }

    fn serialize_f32(self, _value: f32) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_f64(self, _value: f64) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        self.writer.name(value, None);
        Ok(())
    }

    fn serialize_bytes(self, _value: &[u8]) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_none(self) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Written {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Refused, CanonicalError> {
        Err(CanonicalError::UnsupportedKey)
    }
}
