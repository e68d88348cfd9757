//! The caller's side in virtual time: nothing here waits.

#![cfg(feature = "call")]
#![expect(clippy::unwrap_used, reason = "helpers are tests too")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names the outcome that it expects; any other is a failure")]

mod breakers;
mod cases;
mod deadlines;
mod hedges;
#[cfg(all(feature = "store", feature = "tokio", feature = "http"))]
mod http_orders;
mod measures;
mod outcomes;
mod pools;
#[cfg(feature = "store")]
mod receipts;
mod retries;
mod storm;
mod support;
#[cfg(all(feature = "tower", feature = "tokio", feature = "http", feature = "grpc"))]
mod tower;
#[cfg(all(feature = "http", feature = "grpc"))]
mod wire;
