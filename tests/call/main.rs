//! The caller's side in virtual time: nothing here waits.

#![cfg(feature = "call")]

mod breakers;
mod deadlines;
mod hedges;
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
