#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| counterfoil::testing::fuzz::frame(input));
