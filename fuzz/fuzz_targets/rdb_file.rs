#![no_main]
//! The loader of RDB files; what must hold is in `tests/fuzz/src/rdb.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| russet_fuzzing::rdb::check_file(bytes));
