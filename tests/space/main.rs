//! What is stored, listed and exported; what is erased, copied and given back.
#![cfg(feature = "testing")]

mod backup;
mod compact;
mod erase;
mod export;
#[path = "../retention/support.rs"]
#[expect(dead_code, reason = "the tests of retention use the rest")]
mod support;
