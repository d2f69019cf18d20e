//! What the wire files can't show: encodings at their borders, and a model of edits.

use crate::testing::Desk;
use russet_base::Random;
use russet_protocol::Value;

fn check(desk: &mut Desk, said: &[(&str, &str)]) {
    for (line, reply) in said {
        assert_eq!(desk.say(line), *reply, "{line}");
    }
}

#[test]
fn last_time_counts() {
    let mut desk = Desk::new();
    check(
        &mut desk,
        &[
            ("SET k v EX 5 EX 100", "+OK"),
            ("TTL k", "100"),
            ("SET k w KEEPTTL KEEPTTL", "+OK"),
            ("TTL k", "100"),
            ("SET k v EX 5 KEEPTTL", "-ERR syntax error"),
            ("GETEX k PERSIST EX 5", "-ERR syntax error"),
        ],
    );
}

#[test]
fn writing_over_an_expired_key_makes_a_new_one() {
    let mut desk = Desk::new();
    for write in ["SET k 2", "INCR k", "SETNX k 5", "APPEND k x", "SETBIT k 7 1"] {
        desk.say("SET k 1 PX 10");
        desk.clock.advance_ms(10);
        desk.say(write);
        assert_eq!(desk.say("TTL k"), "-1", "{write}");
        assert_ne!(desk.say("STRLEN k"), "0", "{write}");
        desk.say("DEL k");
    }
    assert_eq!(desk.say("INCR k"), "1");
}

#[test]
fn encodings_follow_what_was_done() {
    let mut desk = Desk::new();
    check(
        &mut desk,
        &[
            ("SET k 12", "+OK"),
            ("OBJECT ENCODING k", "\"int\""),
            ("APPEND k 3", "3"),
            ("OBJECT ENCODING k", "\"raw\""),
            ("INCR k", "124"),
            ("OBJECT ENCODING k", "\"int\""),
            ("INCRBYFLOAT k 1", "\"125\""),
            ("OBJECT ENCODING k", "\"embstr\""),
            ("INCR k", "126"),
            ("OBJECT ENCODING k", "\"int\""),
            ("INCREX k BYFLOAT 0.5", "[\"126.5\", \"0.5\"]"),
            ("OBJECT ENCODING k", "\"embstr\""),
            ("SETBIT n 3 1", "0"),
            ("OBJECT ENCODING n", "\"raw\""),
            ("APPEND new 12", "2"),
            ("OBJECT ENCODING new", "\"int\""),
        ],
    );
}

/// Random edits against a plain vector, across the border between inside and outside of the entry.
#[test]
fn edits_agree_with_a_vector() {
    let mut desk = Desk::new();
    let mut random = Random::from_seed(11);
    let mut model: Vec<u8> = Vec::new();
    let bulk = |bytes: &[u8]| Value::Bulk(bytes.to_vec());
    for step in 0..4000 {
        let text: Vec<u8> = (0..random.below(90)).map(|_| random.below(256) as u8).collect();
        match random.below(8) {
            0..=2 => {
                model.extend_from_slice(&text);
                assert_eq!(
                    desk.run(&[b"APPEND", &b"k"[..], &text]),
                    Value::Integer(model.len() as i64)
                );
            }
            3 | 4 if !text.is_empty() => {
                let at = random.below(model.len() as u64 + 40) as usize;
                let end = at + text.len();
                model.resize(model.len().max(end), 0);
                model[at..end].copy_from_slice(&text);
                let offset = at.to_string();
                let reply = desk.run(&[b"SETRANGE", &b"k"[..], offset.as_bytes(), &text]);
                assert_eq!(reply, Value::Integer(model.len() as i64));
            }
            5 | 6 => {
                let bit = random.below(model.len() as u64 * 8 + 200) as usize;
                model.resize(model.len().max(bit / 8 + 1), 0);
                let mask = 0x80 >> (bit % 8);
                let old = i64::from(model[bit / 8] & mask != 0);
                model[bit / 8] |= mask;
                let reply = desk.run(&["SETBIT", "k", &bit.to_string(), "1"]);
                assert_eq!(reply, Value::Integer(old), "step {step}");
            }
            _ if random.below(12) == 0 => {
                model = random.below(3000).to_string().into_bytes();
                desk.run(&[b"SET", &b"k"[..], &model]);
            }
            _ => {}
        }
        if !model.is_empty() {
            assert_eq!(desk.run(&["GET", "k"]), bulk(&model), "step {step}");
        }
    }
}

#[test]
fn a_failed_bitfield_makes_its_string() {
    let mut desk = Desk::new();
    check(
        &mut desk,
        &[
            ("BITFIELD k OVERFLOW FAIL SET u1 20 5", "[nil]"),
            ("STRLEN k", "3"),
            ("BITFIELD k OVERFLOW FAIL INCRBY u2 40 9", "[nil]"),
            ("STRLEN k", "6"),
        ],
    );
}

/// A BITFIELD whose every operation failed made a string, or a longer one of it, and told nobody:
/// no event, no change that is counted, and a transaction that watched the key ran.
#[test]
fn a_string_that_a_failed_bitfield_makes_is_told() {
    let mut desk = Desk::new();
    let failing =
        ["BITFIELD k OVERFLOW FAIL SET u1 20 5", "BITFIELD k OVERFLOW FAIL INCRBY u2 40 9"];
    let changes = |desk: &mut Desk| {
        let info = desk.say("INFO persistence");
        let (_, rest) = info.split_once("rdb_changes_since_last_save:").expect("a line of INFO");
        rest.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned)
    };
    for (line, after) in failing.into_iter().zip(["1", "2"]) {
        check(
            &mut desk,
            &[("WATCH k", "+OK"), (line, "[nil]"), ("MULTI", "+OK"), ("EXEC", "nil-array")],
        );
        assert_eq!(changes(&mut desk).as_deref(), Some(after), "{line}");
    }
    // Nothing was made by this one.
    let line = "BITFIELD k OVERFLOW FAIL INCRBY u2 8 9";
    check(&mut desk, &[("WATCH k", "+OK"), (line, "[nil]"), ("MULTI", "+OK"), ("EXEC", "[]")]);
    assert_eq!(changes(&mut desk).as_deref(), Some("2"));
}

#[test]
fn sources_of_bitop_may_be_the_target_and_repeat() {
    let mut desk = Desk::new();
    check(
        &mut desk,
        &[
            ("SET n 12", "+OK"),
            ("SET s abc", "+OK"),
            ("BITOP OR s s n s nothing", "3"),
            ("GET s", "\"qrc\""),
            ("BITOP AND s nothing missing", "0"),
            ("EXISTS s", "0"),
        ],
    );
}
