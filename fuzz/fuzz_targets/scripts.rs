#![no_main]
//! Random Lua against the sandbox; what must hold is in `tests/fuzz/src/scripts.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| russet_fuzzing::scripts::check(bytes));
