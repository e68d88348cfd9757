//! The retrying client: four results, one identity for one intent, and every attempt visible.
//!
//! It never folds *unknown* into *failed*: after an attempt of which it does not know what became, it asks again with
//! the same key. That it may take a new key for each attempt instead is a switch, to show the harm.

pub mod load;
pub mod remote;
pub mod send;
pub mod storm;
