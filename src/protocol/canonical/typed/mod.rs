//! Rust values to the canonical form, by way of serde and without a JSON text in between.
//!
//! The shape is serde_json's: unit is null, bytes are an array of numbers, enums are tagged from outside, map keys that
//! are integers, booleans or characters become strings. Floats take their shortest form in their own width, so `0.1_f32`
//! is `1e-1` and not the binary64 next to it; integers of every width are exact.
//!
//! # `None`
//!
//! Every request type grows, and a new optional field must not change the digests of requests that do not use it:
//!
//! * as a member of a struct or a value of a map, `None` is **left out**. Maps follow structs because
//!   `#[serde(flatten)]` turns the one into the other, and a digest must not depend on that;
//! * in a sequence or tuple, as the content of an enum variant, or alone, `None` is null: it holds a place there;
//! * `Some(None)` is null everywhere, so that "set to nothing" in an `Option<Option<T>>` differs from "not said";
//! * unit and `serde_json::Value::Null` are null, never absent.

mod compound;
mod key;
mod value;

use serde::Serialize;

use super::error::CanonicalError;
use super::writer::Writer;

/// Brings a value to the canonical form; see [`super`] for the form and [this module](self) for the meaning of `None`.
///
/// # Errors
///
/// The value has a float that is not finite, a map key that is no member name, two members of one name, exceeds a
/// limit, or its `Serialize` implementation failed. Nothing was executed.
pub(crate) fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut writer = Writer::with_capacity(128);
    value.serialize(value::ValueSerializer::required(&mut writer))?;
    writer.finish()
}
