#![forbid(unsafe_code)]
//! The `russet` binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    russet_server::run::main(std::env::args_os().skip(1).collect())
}
