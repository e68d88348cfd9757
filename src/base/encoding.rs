//! The only place that names bincode.
//!
//! One frozen configuration (little-endian, variable-width integers), a limit on every decode, and no trailing bytes.
//! Records are versioned enums that are only ever appended to.

use serde::{Deserialize, Serialize};

/// The most bytes that any encoded value may have; decoding never allocates more than this.
pub(crate) const ENCODED_BYTES_MAX: usize = 64 * 1024 * 1024;

type Config = bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<ENCODED_BYTES_MAX>,
>;

const CONFIG: Config =
    bincode::config::standard().with_little_endian().with_variable_int_encoding().with_limit::<ENCODED_BYTES_MAX>();

/// Why bytes could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodingError {
    #[error("cannot encode: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    #[error("cannot decode: {0}")]
    Decode(#[from] bincode::error::DecodeError),
    #[error("{0} bytes left over after the value")]
    Trailing(usize),
}

/// Room made ahead for an encoded value. Most are smaller, and none has to grow from nothing.
pub(crate) const ENCODED_BYTES_USUAL: usize = 512;

/// Encodes a value.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::with_capacity(ENCODED_BYTES_USUAL);
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// Appends an encoded value.
pub(crate) fn encode_into<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result<(), EncodingError> {
    bincode::serde::encode_into_std_write(value, bytes, CONFIG)?;
    Ok(())
}

/// Decodes a value that must fill `bytes` exactly, and may borrow from them.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, EncodingError> {
    let (value, read) = bincode::serde::borrow_decode_from_slice(bytes, CONFIG)?;
    if read != bytes.len() {
        return Err(EncodingError::Trailing(bytes.len() - read));
    }
    Ok(value)
}
