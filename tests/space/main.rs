//! What is stored, listed and exported; what is erased, copied and given back.

mod compact;
mod erase;
mod export;
#[path = "../retention/support.rs"]
#[expect(dead_code, reason = "the tests of retention use the rest")]
mod support;
