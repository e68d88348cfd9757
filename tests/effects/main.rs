//! Effects outside the store, through the public API: planned, sent, settled, and what a crash leaves of them.
//!
//! Stores run in `manual` mode on a simulated disk and a virtual clock, and dispatchers by steps; nothing sleeps.
#![cfg(feature = "testing")]

mod callbacks;
mod claims;
mod crashes;
mod dispatch;
mod people;
mod planning;
mod support;
mod threads;
