//! The rules, as pure functions: no I/O, no clock, no random numbers.
pub(crate) mod canonical;
