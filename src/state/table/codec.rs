//! How values become bytes.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::base::encoding;

/// How the values of a table are encoded.
///
/// Each stored value names its codec in one byte. A table's codec is part of its declaration and does not change:
/// copy the rows into a new table instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Codec {
    /// JSON: describes itself, so fields can be added with `#[serde(default)]` and left out again, and the operator's
    /// tool can show it. The default.
    Json,
    /// bincode: compact and **positional**. A value is its fields in order, without names: adding, removing or
    /// reordering fields, or enum variants anywhere but at the end, needs a new table version and an upgrade. serde's
    /// `skip_serializing_if`, `flatten`, `tag` and `untagged` lose or corrupt data, and `default` does nothing.
    Bincode,
    /// The bytes themselves.
    Raw,
}

impl Codec {
    /// The byte in the envelope. Never reused; 0 is none, so that zeros are not a value.
    pub(crate) const fn id(self) -> u8 {
        match self {
            Self::Json => 1,
            Self::Bincode => 2,
            Self::Raw => 3,
        }
    }

    pub(crate) const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Json),
            2 => Some(Self::Bincode),
            3 => Some(Self::Raw),
            _ => None,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Bincode => "bincode",
            Self::Raw => "raw",
        })
    }
}

/// Appends an encoded value; the error is what the codec said.
pub(super) type Encode<V> = fn(&V, &mut Vec<u8>) -> Result<(), String>;
/// Reads a value that fills the bytes exactly.
pub(super) type Decode<V> = fn(&[u8]) -> Result<V, String>;

pub(super) fn encode_json<V: Serialize>(value: &V, into: &mut Vec<u8>) -> Result<(), String> {
    serde_json::to_writer(into, value).map_err(|error| error.to_string())
}

pub(super) fn decode_json<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

pub(super) fn encode_bincode<V: Serialize>(value: &V, into: &mut Vec<u8>) -> Result<(), String> {
    let bytes = encoding::encode(value).map_err(|error| error.to_string())?;
    into.extend_from_slice(&bytes);
    Ok(())
}

pub(super) fn decode_bincode<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, String> {
    encoding::decode(bytes).map_err(|error| error.to_string())
}

#[expect(clippy::ptr_arg, reason = "the type is that of every encoder; V is Vec<u8> here")]
pub(super) fn encode_raw(value: &Vec<u8>, into: &mut Vec<u8>) -> Result<(), String> {
    into.extend_from_slice(value);
    Ok(())
}

pub(super) fn decode_raw(bytes: &[u8]) -> Result<Vec<u8>, String> {
    Ok(bytes.to_vec())
}
