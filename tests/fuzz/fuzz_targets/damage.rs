#![no_main]

#[path = "../../support/fuzz/damage.rs"]
mod damage;
#[path = "../../support/fuzz/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|input: &[u8]| damage::damage(input));
