//! Crashes, failing disks and damage: one workload on a simulated disk, under the log and the state file together.
#![cfg(feature = "testing")]

mod check;
mod damage;
mod every_operation;
mod failing_disk;
mod harness;
mod model;
mod open_errors;
mod recovery;
mod script;
