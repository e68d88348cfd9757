//! Counterfoil.
#[cfg(feature = "store")]
mod base;
#[cfg(feature = "store")]
mod disk;
mod protocol;

pub use protocol::canonical::error::CanonicalError;
