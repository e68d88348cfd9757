//! Base types.
pub(crate) mod encoding;
