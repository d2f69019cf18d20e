//! The libraries of scripts against a peer's: thousands of chunks made at random, each run here in
//! the interpreter alone and there by EVAL.
//!
//! `RUSSET_LUA_CHUNKS` makes it longer (chunks of each family), `RUSSET_DIFFER_SEED` starts it
//! elsewhere, and `RUSSET_REQUIRE_PEER` turns the absence of a peer from a note into a failure.
