//! Counterfoil.
#![cfg_attr(not(feature = "store"), expect(dead_code, reason = "for now"))]
#![allow(missing_docs, dead_code, unused, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
mod base;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
mod log;
#[cfg(feature = "store")]
mod protocol;
pub use base::{error::*, invalid::*, name::*, operation::*, receipt::*, reply::*, position::*, limits::Limits};
