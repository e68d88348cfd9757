#![no_main]

#[path = "../../support/fuzz/operations.rs"]
mod operations;
#[path = "../../support/fuzz/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|input: &[u8]| operations::operations(input));
