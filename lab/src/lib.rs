//! The reliability lab: a teaching model, not a way to make the store distributed.
//!
//! It starts replicas as real processes, counts how many there are and whether a majority is available, and lets people
//! kill, pause, cut, wipe and restart them while a retrying client works. It exists to show that a majority being up is
//! not a transaction, not consensus and not exactly-once execution, and to make one question a habit: *where is the
//! durable record of this operation right now?*
//!
//! Layers, each importing only from those below it: lessons, judge, client, supervisor, replica and provider, wire,
//! process, screen, history, and at the bottom [`rules`], which is pure.

pub mod cli;
pub mod client;
pub mod history;
pub mod judge;
pub mod lesson;
pub mod process;
pub mod provider;
pub mod replica;
pub mod rules;
pub mod screen;
pub mod supervisor;
pub mod wire;
