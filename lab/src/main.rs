//! The one binary of the lab.
fn main() {}
