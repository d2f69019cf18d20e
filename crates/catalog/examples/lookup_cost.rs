//! What finding a command costs in instructions: run it twice under callgrind, with
//! different rounds, and divide the difference by the rounds between them.
//!
//! `lookup_cost NAME ROUNDS` resolves a call.

use russet_base::{Args, OwnedArgs};
use russet_catalog::resolve;
use std::hint::black_box;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [name, rounds] => {
            let call: OwnedArgs = [name, "key:000000123456"].iter().collect();
            let args: Args<'_> = call.as_args();
            for _ in 0..rounds.parse().unwrap_or(1000) {
                let _ = black_box(resolve(black_box(args)));
            }
        }
        _ => eprintln!("lookup_cost NAME ROUNDS"),
    }
}
