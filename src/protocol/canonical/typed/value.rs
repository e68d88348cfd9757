//! One value.

use std::fmt::Display;
use std::io::{self, Write as _};

use serde::Serialize;
use serde::ser::Serializer;

use super::compound::{MapBody, SequenceBody, StructBody};
use crate::protocol::canonical::decimal::Decimal;
use crate::protocol::canonical::error::CanonicalError;
use crate::protocol::canonical::writer::Writer;

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Written,
    /// It is a `None` that leaves its member out; nothing was written.
    Absent,
}

type Written = Result<Presence, CanonicalError>;

/// Room for the text of any Rust number; the longest is an `i128` with 40 bytes.
const NUMBER_BYTES_MAX: usize = 64;

/// Writes one value.
#[derive(Debug)]
pub(super) struct ValueSerializer<'w> {
    writer: &'w mut Writer,
    none_is_absent: bool,
}

impl<'w> ValueSerializer<'w> {
    /// For a value that holds a place: `None` is null.
    pub(super) fn required(writer: &'w mut Writer) -> Self {
        Self { writer, none_is_absent: false }
    }

    /// For the value of a member: `None` is absent.
    pub(super) fn member(writer: &'w mut Writer) -> Self {
        Self { writer, none_is_absent: true }
    }

    fn integer(self, value: impl Display) -> Written {
        self.number(|free| write!(free, "{value}"))
    }

    /// The shortest digits that read back as the same float; of several, the closest; of two that are equally close,
    /// the even one, as ECMAScript advises and RFC 8785 appendix B shows. serde_json writes these. The standard
    /// library's `{:e}` does not: it takes 1424953923781206.25 to 1424953923781206.3 and not to ..6.2.
    fn float(self, value: impl Serialize) -> Written {
        self.number(|free| serde_json::to_writer(free, &value).map_err(io::Error::from))
    }

    /// Writes the number whose JSON text `print` gives.
    fn number(self, print: impl FnOnce(&mut &mut [u8]) -> io::Result<()>) -> Written {
        let mut buffer = [0; NUMBER_BYTES_MAX];
        let mut free = buffer.as_mut_slice();
        print(&mut free).map_err(|_| CanonicalError::Serialize)?;
        let length = NUMBER_BYTES_MAX - free.len();
        let (number, _) = Decimal::read(&buffer[..length]).map_err(|_| CanonicalError::Serialize)?;
        self.writer.number(number, None)?;
        Ok(Presence::Written)
    }

    /// Opens the object `{"variant": ..}`.
    fn begin_variant(&mut self, variant: &'static str) -> Result<(), CanonicalError> {
        self.writer.begin_object(None)?;
        self.writer.name(variant, None);
        Ok(())
    }
}

impl<'w> Serializer for ValueSerializer<'w> {
    type Ok = Presence;
    type Error = CanonicalError;
    type SerializeSeq = SequenceBody<'w>;
    type SerializeTuple = SequenceBody<'w>;
    type SerializeTupleStruct = SequenceBody<'w>;
    type SerializeTupleVariant = SequenceBody<'w>;
    type SerializeMap = MapBody<'w>;
    type SerializeStruct = StructBody<'w>;
    type SerializeStructVariant = MapBody<'w>;

    fn serialize_bool(self, value: bool) -> Written {
        self.writer.boolean(value);
        Ok(Presence::Written)
    }

    fn serialize_i8(self, value: i8) -> Written {
        self.integer(value)
    }

    fn serialize_i16(self, value: i16) -> Written {
        self.integer(value)
    }

    fn serialize_i32(self, value: i32) -> Written {
        self.integer(value)
    }

    fn serialize_i64(self, value: i64) -> Written {
        self.integer(value)
    }

    fn serialize_i128(self, value: i128) -> Written {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Written {
        self.integer(value)
    }

    fn serialize_u16(self, value: u16) -> Written {
        self.integer(value)
    }

    fn serialize_u32(self, value: u32) -> Written {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.integer(value)
    }

    fn serialize_u128(self, value: u128) -> Written {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Written {
        if value.is_finite() { self.float(value) } else { Err(CanonicalError::NotFinite) }
    }

    fn serialize_f64(self, value: f64) -> Written {
        if value.is_finite() { self.float(value) } else { Err(CanonicalError::NotFinite) }
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        self.writer.string(value);
        Ok(Presence::Written)
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        self.writer.begin_array(None)?;
        for byte in value {
            ValueSerializer::required(self.writer).serialize_u8(*byte)?;
        }
        self.writer.end()?;
        Ok(Presence::Written)
    }

    fn serialize_none(self) -> Written {
        if self.none_is_absent {
            return Ok(Presence::Absent);
        }
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(ValueSerializer::required(self.writer))
    }

    fn serialize_unit(self) -> Written {
        self.writer.null();
        Ok(Presence::Written)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Written {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    // As if it were `#[serde(transparent)]`, which cannot be seen from here.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        self.begin_variant(variant)?;
        value.serialize(ValueSerializer::required(self.writer))?;
        self.writer.end()?;
        Ok(Presence::Written)
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<SequenceBody<'w>, CanonicalError> {
        SequenceBody::begin(self.writer, 1)
    }

    fn serialize_tuple(self, _length: usize) -> Result<SequenceBody<'w>, CanonicalError> {
        SequenceBody::begin(self.writer, 1)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<SequenceBody<'w>, CanonicalError> {
        SequenceBody::begin(self.writer, 1)
    }

    fn serialize_tuple_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<SequenceBody<'w>, CanonicalError> {
        self.begin_variant(variant)?;
        SequenceBody::begin(self.writer, 2)
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<MapBody<'w>, CanonicalError> {
        MapBody::begin(self.writer, 1)
    }

    fn serialize_struct(self, name: &'static str, _length: usize) -> Result<StructBody<'w>, CanonicalError> {
        StructBody::begin(self.writer, name)
    }

    fn serialize_struct_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<MapBody<'w>, CanonicalError> {
        self.begin_variant(variant)?;
        MapBody::begin(self.writer, 2)
    }
}
