//! The rules of the protocol: pure functions without clock, I/O or random numbers.

#[cfg(feature = "store")]
pub(crate) mod admission;
pub(crate) mod canonical;
#[cfg(feature = "store")]
pub(crate) mod identity;
mod request;
#[cfg(feature = "store")]
pub(crate) mod retention;
