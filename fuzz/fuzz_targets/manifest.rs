#![no_main]
//! The manifest of a log; what must hold is in `tests/fuzz/src/log.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| russet_fuzzing::log::check_manifest(bytes));
