//! The lessons: a set-up, a prediction that is written down, a run with the harm, the question, and the same run with
//! other switches.
//!
//! In reading order: [`script`] (what a lesson is made of), [`catalogue`] (the lessons themselves), `stage` (who does
//! what a script says, with real processes), [`run`] (one variant from start to verdict), [`report`] (what is kept),
//! [`screen`] (what is shown, in an `order` that could have been).
//!
//! Every number comes from the judge, who reads the stores and the provider's ledger. A script only says what was
//! expected. It is a teaching model, not a way to make the store distributed.

pub mod catalogue;
mod order;
pub mod report;
pub mod run;
pub mod screen;
pub mod script;
mod stage;
