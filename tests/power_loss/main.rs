//! Power is lost, once or several times, at every operation of the disk.
#![cfg(feature = "testing")]

#[path = "../support/crash/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod crash;
mod every_operation;
mod recovery;
