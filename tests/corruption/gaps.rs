//! The two gaps that GUARANTEES.md names, shown.
