//! Calls of the disk fail, once or from then on, and opening says what is wrong.
#![cfg(feature = "testing")]

mod calls;
#[path = "../support/crash/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod crash;
mod full_disk;
mod lies;
mod matrix;
mod open_errors;
mod slow;
#[path = "../support/table.rs"]
mod table;
