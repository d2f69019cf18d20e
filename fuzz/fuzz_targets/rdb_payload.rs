#![no_main]
//! RESTORE; what must hold is in `tests/fuzz/src/rdb.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| russet_fuzzing::rdb::check_payload(bytes));
