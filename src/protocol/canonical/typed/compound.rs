//! Sequences, maps and structs.
//!
//! A hand-written `Serialize` may drop the error of one element and go on with the next, and would then get the digest
//! of half a value. So every step is guarded: the first error stays with the writer, and all later steps fail with it.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant,
};

use super::key::KeySerializer;
use super::value::{Presence, ValueSerializer};
use crate::protocol::canonical::error::CanonicalError;
use crate::protocol::canonical::json;
use crate::protocol::canonical::writer::Writer;

fn guarded(
    writer: &mut Writer,
    step: impl FnOnce(&mut Writer) -> Result<(), CanonicalError>,
) -> Result<(), CanonicalError> {
    writer.check()?;
    step(writer).map_err(|error| writer.fail(error))
}

fn end(writer: &mut Writer, containers: usize) -> Result<Presence, CanonicalError> {
    guarded(writer, |writer| (0..containers).try_for_each(|_| writer.end()))?;
    Ok(Presence::Written)
}

/// The elements of an array.
#[derive(Debug)]
pub(super) struct SequenceBody<'w> {
    writer: &'w mut Writer,
    /// How many containers close with it: two for a variant, with the object around it.
    containers: usize,
}

impl<'w> SequenceBody<'w> {
    pub(super) fn begin(writer: &'w mut Writer, containers: usize) -> Result<Self, CanonicalError> {
        writer.begin_array(None)?;
        Ok(Self { writer, containers })
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        guarded(self.writer, |writer| value.serialize(ValueSerializer::required(writer)).map(drop))
    }
}

impl SerializeSeq for SequenceBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.element(value)
    }

    fn end(self) -> Result<Presence, CanonicalError> {
        end(self.writer, self.containers)
    }
}

impl SerializeTuple for SequenceBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.element(value)
    }

    fn end(self) -> Result<Presence, CanonicalError> {
        end(self.writer, self.containers)
    }
}

impl SerializeTupleStruct for SequenceBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.element(value)
    }

    fn end(self) -> Result<Presence, CanonicalError> {
        end(self.writer, self.containers)
    }
}

impl SerializeTupleVariant for SequenceBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.element(value)
    }

    fn end(self) -> Result<Presence, CanonicalError> {
        end(self.writer, self.containers)
    }
}

/// The members of an object.
#[derive(Debug)]
pub(super) struct MapBody<'w> {
    writer: &'w mut Writer,
    /// As in [`SequenceBody`].
    containers: usize,
    /// A name was written and waits for its value.
    named: bool,
}

impl<'w> MapBody<'w> {
    pub(super) fn begin(writer: &'w mut Writer, containers: usize) -> Result<Self, CanonicalError> {
        writer.begin_object(None)?;
        Ok(Self { writer, containers, named: false })
    }

    /// Begins a step that is only right while a name waits, or only while none does.
    fn expect_named(&mut self, named: bool) -> Result<(), CanonicalError> {
        let right = self.named == named;
        guarded(self.writer, |_| if right { Ok(()) } else { Err(CanonicalError::Serialize) })
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        guarded(self.writer, |writer| {
            if value.serialize(ValueSerializer::member(writer))? == Presence::Absent {
                writer.retract_name();
            }
            Ok(())
        })
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), CanonicalError> {
        self.writer.name(name, None);
        self.value(value)
    }
}

impl SerializeMap for MapBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonicalError> {
        self.expect_named(false)?;
        self.named = true;
        guarded(self.writer, |writer| key.serialize(KeySerializer { writer }))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.expect_named(true)?;
        self.named = false;
        self.value(value)
    }

    fn end(mut self) -> Result<Presence, CanonicalError> {
        self.expect_named(false)?;
        end(self.writer, self.containers)
    }
}

impl SerializeStructVariant for MapBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), CanonicalError> {
        self.field(name, value)
    }

    fn end(self) -> Result<Presence, CanonicalError> {
        end(self.writer, self.containers)
    }
}

/// The fields of a struct.
///
/// serde_json passes two of its own types through serde as structs of a magic name with one field, which holds JSON
/// text: `RawValue`, and `Number` while any crate of the program enables `arbitrary_precision`. They are read as the
/// JSON that they are; a digest must not depend on what an unrelated crate enables.
#[derive(Debug)]
pub(super) enum StructBody<'w> {
    Fields(MapBody<'w>),
    JsonText { writer: &'w mut Writer, read: bool },
}

impl<'w> StructBody<'w> {
    pub(super) fn begin(writer: &'w mut Writer, name: &'static str) -> Result<Self, CanonicalError> {
        match name {
            "$serde_json::private::RawValue" | "$serde_json::private::Number" => {
                Ok(Self::JsonText { writer, read: false })
            }
            _ => MapBody::begin(writer, 1).map(Self::Fields),
        }
    }
}

impl SerializeStruct for StructBody<'_> {
    type Ok = Presence;
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), CanonicalError> {
        match self {
            Self::Fields(body) => body.field(name, value),
            Self::JsonText { writer, read } => guarded(writer, |writer| {
                if std::mem::replace(read, true) {
                    return Err(CanonicalError::Serialize);
                }
                let text = serde_json::to_value(value).map_err(|_| CanonicalError::Serialize)?;
                let text = text.as_str().ok_or(CanonicalError::Serialize)?;
                json::read_into(text, writer).map_err(CanonicalError::inside_a_value)
            }),
        }
    }

    fn end(self) -> Result<Presence, CanonicalError> {
        match self {
            Self::Fields(body) => end(body.writer, body.containers),
            Self::JsonText { writer, read: true } => end(writer, 0),
            Self::JsonText { writer, read: false } => Err(writer.fail(CanonicalError::Serialize)),
        }
    }
}
