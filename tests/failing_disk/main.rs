//! Calls of the disk fail, once or from then on, and opening says what is wrong.
#![cfg(feature = "testing")]

mod calls;
mod full_disk;
mod lies;
#[path = "../support/crash/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod crash;
mod matrix;
mod open_errors;
mod table;
