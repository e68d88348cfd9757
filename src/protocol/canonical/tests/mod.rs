//! Tests of the canonical form as a whole.

mod agreement;
mod limits;
mod numbers;
mod refusals;
mod text;
mod typed;

use super::error::CanonicalError;
use super::json::canonicalise;

/// The canonical form of `raw` as text.
fn canonical(raw: &str) -> String {
    try_canonical(raw.as_bytes()).unwrap()
}

fn try_canonical(raw: &[u8]) -> Result<String, CanonicalError> {
    canonicalise(raw).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The canonical form of a Rust value as text.
fn typed<T: serde::Serialize + ?Sized>(value: &T) -> String {
    try_typed(value).unwrap()
}

fn try_typed<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    super::typed::to_canonical(value).map(|bytes| String::from_utf8(bytes).unwrap())
}
