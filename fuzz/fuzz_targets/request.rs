#![no_main]
//! The parser of requests; what must hold is in `tests/fuzz/src/request.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| russet_fuzzing::request::check(bytes));
