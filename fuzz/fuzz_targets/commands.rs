#![no_main]
//! Sequences of commands; what must hold is in `tests/fuzz/src/commands.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| russet_fuzzing::commands::check(bytes));
