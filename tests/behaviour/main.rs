//! What users see, through the public API: answers, outcomes, batches, the queue, tables, the log, time.
//!
//! Every name is a sentence of behaviour. Stores run in `manual` mode on a simulated disk and a virtual clock, or with
//! threads behind gates and barriers; nothing sleeps.
#![cfg(feature = "testing")]

mod support;

mod admission;
mod batch;
mod builder;
mod guard;
mod history;
mod lifecycle;
mod log;
mod outcomes;
mod poison;
mod queue;
mod reentry;
mod tables;
mod time;
mod verify;
mod visibility;
