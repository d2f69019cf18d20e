//! Developer tasks: `cargo xtask <task>`.
#![forbid(unsafe_code)]

mod conf;
mod functions;
mod generated;
mod wire;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask wire [--against host:port | --start russet|valkey|redis] [--server-kind kind] [paths]
    runs wire files (all, unless paths are given) and prints what differs
cargo xtask wire record [--against host:port | --start kind] [--print] paths
    fills in the expectations that the files lack from the server's answers
cargo xtask functions [--check]
    writes functions/russet.lua and docs/functions.md, or says whether they are current
cargo xtask conf [--check]
    writes packaging/russet.conf, the man pages and the completions, or says whether they are
    current";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("conf") => conf::main(&args[1..]),
        Some("functions") => functions::main(&args[1..]),
        Some("wire") => wire::main(&args[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
