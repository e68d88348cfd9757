//! The reliability lab: replicas as real processes, a counted majority, and one question: *where is the durable record
//! of this operation right now?*
//!
//! **A teaching model, not a way to make the store distributed.** A majority being up is not a transaction, not
//! consensus and not exactly-once execution; the lab exists to show that.

pub mod process;
