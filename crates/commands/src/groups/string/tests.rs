//! What the wire files can't show: encodings at their borders, and a model of edits.

use crate::testing::TestServer;
use russet_base::Random;
use russet_protocol::Value;

fn check(server: &mut TestServer, said: &[(&str, &str)]) {
    for (line, reply) in said {
        assert_eq!(server.say(line), *reply, "{line}");
    }
}

#[test]
fn last_time_counts() {
    let mut server = TestServer::new();
    check(
        &mut server,
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
    let mut server = TestServer::new();
    for write in ["SET k 2", "INCR k", "SETNX k 5", "APPEND k x", "SETBIT k 7 1"] {
        server.say("SET k 1 PX 10");
        server.clock.advance_ms(10);
        server.say(write);
        assert_eq!(server.say("TTL k"), "-1", "{write}");
        assert_ne!(server.say("STRLEN k"), "0", "{write}");
        server.say("DEL k");
    }
    assert_eq!(server.say("INCR k"), "1");
}

#[test]
fn encodings_follow_what_was_done() {
    let mut server = TestServer::new();
    check(
        &mut server,
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
    let mut server = TestServer::new();
    let mut random = Random::from_seed(11);
    let mut model: Vec<u8> = Vec::new();
    let bulk = |bytes: &[u8]| Value::Bulk(bytes.to_vec());
    for step in 0..4000 {
        let text: Vec<u8> = (0..random.below(90)).map(|_| random.below(256) as u8).collect();
        match random.below(8) {
            0..=2 => {
                model.extend_from_slice(&text);
                assert_eq!(
                    server.run(&[b"APPEND", &b"k"[..], &text]),
                    Value::Integer(model.len() as i64)
                );
            }
            3 | 4 if !text.is_empty() => {
                let at = random.below(model.len() as u64 + 40) as usize;
                let end = at + text.len();
                model.resize(model.len().max(end), 0);
                model[at..end].copy_from_slice(&text);
                let offset = at.to_string();
                let reply = server.run(&[b"SETRANGE", &b"k"[..], offset.as_bytes(), &text]);
                assert_eq!(reply, Value::Integer(model.len() as i64));
            }
            5 | 6 => {
                let bit = random.below(model.len() as u64 * 8 + 200) as usize;
                model.resize(model.len().max(bit / 8 + 1), 0);
                let mask = 0x80 >> (bit % 8);
                let old = i64::from(model[bit / 8] & mask != 0);
                model[bit / 8] |= mask;
                let reply = server.run(&["SETBIT", "k", &bit.to_string(), "1"]);
                assert_eq!(reply, Value::Integer(old), "step {step}");
            }
            _ if random.below(12) == 0 => {
                model = random.below(3000).to_string().into_bytes();
                server.run(&[b"SET", &b"k"[..], &model]);
            }
            _ => {}
        }
        if !model.is_empty() {
            assert_eq!(server.run(&["GET", "k"]), bulk(&model), "step {step}");
        }
    }
}

#[test]
fn a_failed_bitfield_makes_its_string() {
    let mut server = TestServer::new();
    check(
        &mut server,
        &[
            ("BITFIELD k OVERFLOW FAIL SET u1 20 5", "[nil]"),
            ("STRLEN k", "3"),
            ("BITFIELD k OVERFLOW FAIL INCRBY u2 40 9", "[nil]"),
            ("STRLEN k", "6"),
        ],
    );
}

/// A BITFIELD whose every operation failed made or grew a string, and notified nobody:
/// no event, no change that is counted, and a transaction that watched the key ran.
#[test]
fn a_string_that_a_failed_bitfield_makes_is_notified() {
    let mut server = TestServer::new();
    let failing =
        ["BITFIELD k OVERFLOW FAIL SET u1 20 5", "BITFIELD k OVERFLOW FAIL INCRBY u2 40 9"];
    let changes = |server: &mut TestServer| {
        let info = server.say("INFO persistence");
        let (_, rest) = info.split_once("rdb_changes_since_last_save:").expect("a line of INFO");
        rest.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned)
    };
    for (line, after) in failing.into_iter().zip(["1", "2"]) {
        check(
            &mut server,
            &[("WATCH k", "+OK"), (line, "[nil]"), ("MULTI", "+OK"), ("EXEC", "nil-array")],
        );
        assert_eq!(changes(&mut server).as_deref(), Some(after), "{line}");
    }
    // Nothing was made by this one.
    let line = "BITFIELD k OVERFLOW FAIL INCRBY u2 8 9";
    check(&mut server, &[("WATCH k", "+OK"), (line, "[nil]"), ("MULTI", "+OK"), ("EXEC", "[]")]);
    assert_eq!(changes(&mut server).as_deref(), Some("2"));
}

#[test]
fn sources_of_bitop_may_be_the_target_and_repeat() {
    let mut server = TestServer::new();
    check(
        &mut server,
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

/// What depends on the time, on a condition or on how numbers are added is recorded as what it came
/// to. A call that changed nothing is not recorded.
#[test]
fn strings_record_what_they_came_to() {
    TestServer::new().check_records(&[
        ("SET k v", "SET k v"),
        ("set k v EX 10", "SET k v PXAT 1700000010000"),
        ("SET k w KEEPTTL", "SET k w KEEPTTL"),
        ("SET k v PXAT 1700000000500 XX GET", "SET k v PXAT 1700000000500"),
        ("SET k v NX", ""),
        ("SET k w IFEQ v GET", "SET k w"),
        ("SET k x IFNE w", ""),
        ("SET k v PXAT 1", "DEL k"),
        ("SET k v PXAT 1", ""),
        ("SETEX k 10 v", "SET k v PXAT 1700000010000"),
        ("PSETEX k 10 v", "SET k v PXAT 1700000000010"),
        ("SETNX k v", ""),
        ("SETNX n v", "SET n v"),
        ("GETSET k w", "SET k w"),
        ("GETEX k", ""),
        ("GETEX k PERSIST", ""),
        ("GETEX k EX 10", "PEXPIREAT k 1700000010000"),
        ("GETEX k PERSIST", "PERSIST k"),
        ("GETEX k PXAT 1", "DEL k"),
        ("GETEX k PXAT 1", ""),
        ("GETDEL n", "DEL n"),
        ("GETDEL n", ""),
        ("MSET a 1 b 2", "MSET a 1 b 2"),
        ("MSETNX a 1 c 2", ""),
        ("MSETNX c 1 d 2", "MSETNX c 1 d 2"),
        ("MSETEX 2 a 1 b 2 XX EX 10", "SET a 1 PXAT 1700000010000 | SET b 2 PXAT 1700000010000"),
        ("MSETEX 2 a 1 b 2 KEEPTTL", "SET a 1 KEEPTTL | SET b 2 KEEPTTL"),
        ("MSETEX 2 a 1 e 2 NX", ""),
        ("MSETEX 2 a 1 e 2 PXAT 1", "DEL a"),
        ("APPEND k v", "APPEND k v"),
        ("SETRANGE k 1 w", "SETRANGE k 1 w"),
        ("SETRANGE k 1 \0", "SETRANGE k 1 \0"),
        ("INCRBY i 5", "INCRBY i 5"),
        ("INCRBYFLOAT i 0.5", "SET i 5.5 KEEPTTL"),
        ("DELEX i IFEQ 5", ""),
        ("DELEX i IFEQ 5.5", "DEL i"),
        ("DELIFEQ b 3", ""),
        ("DELIFEQ b 2", "DEL b"),
        ("DELEX k", "DEL k"),
        ("DELEX k", ""),
    ]);
}

/// A counter's own time to live stays unless a new one is given or it is taken away.
#[test]
fn increx_records_the_sum_and_what_became_of_the_expiry() {
    TestServer::new().check_records(&[
        ("INCREX n EX 10", "SET n 1 PXAT 1700000010000"),
        ("INCREX n BYINT 4", "SET n 5 KEEPTTL"),
        ("INCREX n EX 99 ENX", "SET n 6 KEEPTTL"),
        ("INCREX n UBOUND 6", ""),
        ("INCREX n UBOUND 6 SATURATE PERSIST", "SET n 6"),
        ("INCREX n BYFLOAT 0.25", "SET n 6.25 KEEPTTL"),
        ("INCREX n BYFLOAT 1 PXAT 1", "DEL n"),
        ("INCREX n BYINT 1 PXAT 1", ""),
    ]);
}

/// A string that BITFIELD had made or lengthened though every step failed was a change that nobody
/// heard of: not WATCH, not the log.
#[test]
fn a_bitfield_that_lengthens_its_string_has_changed_it() {
    let mut server = TestServer::new();
    server.say("CONFIG SET notify-keyspace-events KEA");
    let dirty = |server: &mut TestServer| {
        let info = server.say("INFO persistence");
        let at = info.find("rdb_changes_since_last_save:").unwrap() + 28;
        info[at..].chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    server.check_records(&[
        ("BITFIELD k OVERFLOW FAIL SET u1 20 5", "BITFIELD k OVERFLOW FAIL SET u1 20 5"),
        ("BITFIELD k OVERFLOW FAIL SET u1 20 5", ""),
        ("BITFIELD k OVERFLOW FAIL SET u1 40 5", "BITFIELD k OVERFLOW FAIL SET u1 40 5"),
        ("BITFIELD k GET u1 90", ""),
        ("SETBIT k 1 0", ""),
        ("SETBIT k 1 1", "SETBIT k 1 1"),
        ("BITOP NOT t k", "BITOP NOT t k"),
        ("BITOP NOT t nothing", "BITOP NOT t nothing"),
        ("BITOP NOT t nothing", ""),
    ]);
    assert_eq!(dirty(&mut server), "5");
}

/// A record was refused where it was run again under other limits than those that it was made
/// under.
#[test]
fn what_was_done_once_is_done_again_whatever_the_limits_are_now() {
    let mut server = TestServer::new();
    check(
        &mut server,
        &[
            ("CONFIG SET proto-max-bulk-len 1mb", "+OK"),
            ("CONFIG SET hll-sparse-max-bytes 0", "+OK"),
            ("DEBUG REPLAY 0 SETRANGE k 1048576 v", "+OK"),
            ("DEBUG REPLAY 0 APPEND k v", "+OK"),
            ("DEBUG REPLAY 0 SETBIT b 8388608 1", "+OK"),
            ("DEBUG REPLAY 0 BITFIELD f SET u8 8388608 1", "+OK"),
            ("STRLEN k", "1048578"),
            ("STRLEN b", "1048577"),
            ("STRLEN f", "1048577"),
            ("DEBUG REPLAY 0 PFADD p a", "+OK"),
            ("PFDEBUG ENCODING p", "+sparse"),
        ],
    );
}
