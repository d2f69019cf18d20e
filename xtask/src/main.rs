//! Developer tasks: `cargo xtask <task>`.
#![forbid(unsafe_code)]

mod wire;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask wire [--against host:port | --start russet|valkey|redis] [--server-kind kind] [paths]
    runs wire files (all, unless paths are given) and prints what differs
cargo xtask wire record [--against host:port | --start kind] [--print] paths
    fills in the expectations that the files lack from the server's answers";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("wire") => wire::main(&words[1..]),
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
