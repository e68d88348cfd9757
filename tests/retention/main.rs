//! What is kept, for how long, how much of it, and what a clock may do to it.
#![cfg(feature = "testing")]

mod churn;
mod clock;
mod keys;
mod limits;
mod stats;
mod support;
mod sweep;
