//! The rules of the protocol: pure functions without clock, I/O or random numbers.

#[cfg(feature = "store")]
pub(crate) mod admission;
#[cfg(any(feature = "call", feature = "store"))]
#[cfg_attr(not(feature = "call"), expect(unreachable_pub, reason = "the caller's side shows it to users"))]
pub(crate) mod backoff;
#[cfg(feature = "store")]
pub(crate) mod canonical;
#[cfg(feature = "store")]
pub(crate) mod claim;
#[cfg(feature = "store")]
pub(crate) mod effect;
#[cfg(feature = "store")]
pub(crate) mod identity;
#[cfg(feature = "store")]
pub(crate) mod minted;
#[cfg(feature = "store")]
mod request;
#[cfg(feature = "store")]
pub(crate) mod retention;
