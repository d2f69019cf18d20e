//! What the hot path of the protocol costs in instructions: run it twice under callgrind, with
//! different rounds, and divide the difference by the commands between them (100 a round).
//!
//! `parse_cost get|set|mset|reply ROUNDS`

use russet_protocol::request::encode_into;
use russet_protocol::{Batch, RequestLimits, Resp, RespWriter, Sink};
use std::hint::black_box;

const COMMANDS: usize = 100;
const KEY: &[u8] = b"key:000000123456";
const VALUE: &[u8] = b"0123456789abcdef0123456789abcdef";

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let rounds: usize = args.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1000);
    let command: &[&[u8]] = match what.as_str() {
        "get" => &[b"GET", KEY],
        "set" => &[b"SET", KEY, VALUE],
        "mset" => &[b"MSET", KEY, VALUE, KEY, VALUE, KEY, VALUE, KEY, VALUE],
        "reply" => return replies(rounds),
        _ => return eprintln!("parse_cost get|set|mset|reply ROUNDS"),
    };
    let mut stream = Vec::new();
    (0..COMMANDS).for_each(|_| encode_into(command, &mut stream));
    let limits = RequestLimits::default();
    let mut batch = Batch::new();
    for _ in 0..rounds {
        let found = batch.parse_batch(black_box(&stream), &limits, COMMANDS);
        assert_eq!(black_box(found), Ok(COMMANDS));
    }
}

fn replies(rounds: usize) {
    let mut out = Vec::with_capacity(COMMANDS * 64);
    for _ in 0..rounds {
        out.clear();
        let mut writer = RespWriter::new(&mut out, Resp::V2);
        for _ in 0..COMMANDS {
            writer.bulk(black_box(VALUE));
        }
        black_box(&out);
    }
}
