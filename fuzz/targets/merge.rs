#![no_main]

#[path = "../../tests/it/fuzzed/merge.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
