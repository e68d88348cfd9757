//! Power is lost, once or several times, at every operation of the disk.
//!
//! `cargo test --release --all-features --test power_loss -- --nocapture` tries everything and prints a table: rows are
//! the scenarios of `tests/support/crash/scenarios.rs`, columns the phases of `tests/support/crash/phase.rs`, cells the
//! distinct states that were checked. A state is the content of the disk after a loss of power, with what the outside
//! world had been told by then. A debug build tries a small part of it (`COUNTERFOIL_TEST_PERCENT`).
//!
//! A failure names scenario, crash point, what happened there and what survived. Everything is decided by these, so
//! `COUNTERFOIL_CRASH_POINT='rollover:17'` tries that one crash point again and nothing else, and
//! `COUNTERFOIL_CRASH_POINT=rollover` that one scenario.
#![cfg(feature = "testing")]

#[path = "../support/crash/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod crash;
mod every_operation;
mod hunting;
