//! Types that every layer shares: names, operations, replies, receipts, limits, the clock and errors.

pub(crate) mod invalid;
pub(crate) mod limits;
pub(crate) mod name;
pub(crate) mod position;

pub(crate) mod clock;
pub(crate) mod histogram;

#[cfg(feature = "store")]
pub(crate) mod byte_string;
#[cfg(feature = "store")]
pub(crate) mod bytes;
#[cfg(feature = "store")]
pub(crate) mod encoding;
#[cfg(feature = "store")]
pub(crate) mod error;
#[cfg(feature = "store")]
pub(crate) mod mutant;
#[cfg(feature = "store")]
pub(crate) mod operation;
#[cfg(feature = "store")]
pub(crate) mod receipt;
#[cfg(feature = "store")]
pub(crate) mod reply;
#[cfg(feature = "store")]
pub(crate) mod sync;
