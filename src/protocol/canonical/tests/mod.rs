//! Tests of the canonical form as a whole.
