//! What replicas decide, without any of the things that make it hard to see: no network, no disk, no clock, no chance.
//!
//! A replica is a function: [`replica::Replica::step`] takes the time and one [`event::Event`] and gives
//! [`action::Action`]s. Somebody else carries them out and brings back what became of them as further events. Real
//! processes do it with gRPC and a store on disk; the tests do it in memory, in every order there is. Both run the very
//! same decisions, so what a test finds in an interleaving is what the room sees on the screen.
//!
//! Read in this order: [`ids`], [`knobs`], [`plan`] (the table of placements, as data), [`replica`], [`outcome`].
//!
//! This is a teaching model, not a way to make the store distributed: nothing in here elects, agrees or replicates in a
//! way that anybody should rely on.

// In reading order.
pub mod action;
pub mod barrier;
pub mod classify;
pub mod event;
pub mod fault;
pub mod ids;
pub mod knobs;
pub mod lamps;
pub mod majority;
pub mod message;
pub mod outcome;
pub mod plan;
pub mod provider;
pub mod record;
pub mod replica;
pub mod verdict;

mod word;

pub use word::UnknownWord;
