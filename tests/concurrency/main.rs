//! Many threads at one store on a simulated disk: whoever asks is answered, once and truly, whatever the order in which
//! the threads come, whether the power goes, a disk fails, the store is closed or its last handle is dropped.
//!
//! The same scenarios run in two ways. In the normal test run they are stress: real threads, as many rounds as
//! `COUNTERFOIL_TEST_PERCENT` says. Under a model checker each round is one schedule, chosen by a seed at every lock,
//! wait, channel and disk call on the log, and a schedule in which somebody waits for ever is found at once:
//!
//! ```text
//! RUSTFLAGS="--cfg counterfoil_shuttle" cargo test --release --features testing --test concurrency --target-dir target/shuttle
//! ```

#![cfg(feature = "testing")]

mod callers;
mod explore;
#[path = "../support/crash/scale.rs"]
mod scale;
mod scenarios;
mod stage;
