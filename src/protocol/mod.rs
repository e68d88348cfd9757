//! The rules of the protocol: pure functions without clock, I/O or random numbers.

pub(crate) mod admission;
pub(crate) mod canonical;
pub(crate) mod identity;
mod request;
pub(crate) mod retention;
