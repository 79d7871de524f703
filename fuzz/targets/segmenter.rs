#![no_main]

#[path = "../../tests/it/fuzzed/segmenter.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
