//! Files are damaged: in the log an error names the place or nothing is lost, and a damaged row is never returned.
#![cfg(feature = "testing")]

mod cases;
#[path = "../support/crash/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod crash;
mod frames;
mod gaps;
mod judge;
mod specimen;
mod sweep;
mod tail;
