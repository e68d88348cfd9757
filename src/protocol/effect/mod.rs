//! Effects outside the store: which states there are, how one follows another, and what to do next.
//!
//! An effect is an intent that was committed with an operation and that a dispatcher performs later. Everything here is
//! pure: the time is an argument, and what happened is an event. Records and rows say the same in their own types.

mod callback;
mod next;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use callback::{Comparison, News, Receipt, compare, receive};
pub(crate) use next::{LookUp, Plan, SendResult, Step, after_look_up, after_send, next_step};
pub(crate) use state::{EffectState, Event, Phase, transition};
