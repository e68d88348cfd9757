//! Types that every layer shares: names, operations, replies, receipts, limits, the clock and errors.

pub(crate) mod byte_string;
pub(crate) mod invalid;
pub(crate) mod limits;
pub(crate) mod name;
pub(crate) mod position;

pub(crate) mod operation;
pub(crate) mod receipt;
pub(crate) mod reply;

pub(crate) mod clock;
pub(crate) mod error;

#[cfg(feature = "store")]
pub(crate) mod encoding;
