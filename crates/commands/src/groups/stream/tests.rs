//! What the wire files cannot show of streams: moments, busy shards, forms.

use crate::testing::{TestClients, TestServer};

#[test]
fn ids_follow_the_clock_and_never_go_back() {
    let mut server = TestServer::new();
    assert_eq!(server.say("XADD s * a 1"), "\"1700000000000-0\"");
    assert_eq!(server.say("XADD s * a 1"), "\"1700000000000-1\"");
    server.clock.advance_ms(5);
    assert_eq!(server.say("XADD s * a 1"), "\"1700000000005-0\"");
    assert_eq!(server.say("XADD s 1800000000000-7 a 1"), "\"1800000000000-7\"");
    assert_eq!(server.say("XADD s * a 1"), "\"1800000000000-8\"");
}

#[test]
fn a_message_is_forgotten_when_its_time_is_over() {
    let mut server = TestServer::new();
    let first = server.say("XADD s IDMP p m * a 1");
    server.clock.advance_ms(99_999);
    assert_eq!(server.say("XADD s IDMP p m * a 1"), first);
    server.clock.advance_ms(1);
    assert_ne!(server.say("XADD s IDMP p m * a 1"), first);
    assert_eq!(server.say("XLEN s"), "2");
    assert_eq!(server.say("XCFGSET s IDMP-DURATION 1"), "+OK");
    let second = server.say("XADD s IDMP p m * a 1");
    server.clock.advance_ms(999);
    assert_eq!(server.say("XADD s IDMP p m * a 1"), second);
    server.clock.advance_ms(1);
    assert_ne!(server.say("XADD s IDMP p m * a 1"), second);
}

#[test]
fn idle_times_are_those_of_the_clock() {
    let mut server = TestServer::new();
    server.say("XADD s 1-1 a 1");
    server.say("XGROUP CREATE s g 0");
    server.say("XREADGROUP GROUP g c STREAMS s >");
    server.clock.advance_ms(1500);
    assert_eq!(server.say("XPENDING s g - + 10"), "[[\"1-1\", \"c\", 1500, 1]]");
    assert_eq!(server.say("XPENDING s g IDLE 1501 - + 10"), "[]");
    assert_eq!(server.say("XCLAIM s g d 1501 1-1 JUSTID"), "[]");
    assert_eq!(server.say("XAUTOCLAIM s g d 1500 0 JUSTID"), "[\"0-0\", [\"1-1\"], []]");
    server.clock.advance_ms(10);
    let consumers = server.say("XINFO CONSUMERS s g");
    assert!(consumers.contains("\"c\", \"pending\", 0, \"idle\", 1510, \"inactive\", 1510"));
    assert!(consumers.contains("\"d\", \"pending\", 1, \"idle\", 10, \"inactive\", 10"));
}

#[test]
fn the_longest_idle_is_claimed_first() {
    let mut server = TestServer::new();
    server.say("XGROUP CREATE s g 0 MKSTREAM");
    for ms in 1..=3 {
        server.say(&format!("XADD s {ms}-1 a {ms}"));
    }
    server.say("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    server.clock.advance_ms(10);
    server.say("XREADGROUP GROUP g c STREAMS s >");
    server.clock.advance_ms(10);
    server.say("XCLAIM s g c 0 1-1 JUSTID");
    server.clock.advance_ms(10);
    assert_eq!(
        server.say("XREADGROUP GROUP g d COUNT 2 CLAIM 15 STREAMS s >"),
        "[[\"s\", [[\"2-1\", [\"a\", \"2\"], 20, 1], [\"3-1\", [\"a\", \"3\"], 20, 1]]]]"
    );
    assert_eq!(
        server.say("XREADGROUP GROUP g d CLAIM 5 STREAMS s >"),
        "[[\"s\", [[\"1-1\", [\"a\", \"1\"], 10, 1]]]]"
    );
}

/// A stream leaves its table entry for good when it grows, and when it is changed otherwise.
#[test]
fn a_stream_reads_the_same_in_either_form() {
    let mut server = TestServer::new();
    let mut wanted = Vec::new();
    for at in 1..=60 {
        server.say(&format!("XADD s {at}-1 name value{at} n {at}"));
        wanted.push(format!("[\"{at}-1\", [\"name\", \"value{at}\", \"n\", \"{at}\"]]"));
        assert_eq!(server.say("XRANGE s - +"), format!("[{}]", wanted.join(", ")));
        assert_eq!(server.say("XLEN s"), at.to_string());
        assert_eq!(server.say("XREAD STREAMS s +"), format!("[[\"s\", [{}]]]", wanted[at - 1]));
    }
    server.say("COPY s t");
    assert_eq!(server.say("XDEL t 1-1"), "1");
    assert_eq!((server.say("XLEN s"), server.say("XLEN t")), ("60".to_owned(), "59".to_owned()));
}

#[test]
fn one_who_waits_for_keys_of_a_busy_shard_tries_again_itself() {
    let mut clients = TestClients::of(2);
    assert!(clients.are_apart("s", "other"));
    clients.say(0, "XADD s 1-1 a 1");
    assert_eq!(clients.say(1, "XREAD BLOCK 0 STREAMS s other $ $"), "(blocked)");
    clients.while_busy("other", |clients| clients.say(0, "XADD s 2-1 a 2"));
    // What `$` meant when it began to wait still holds.
    assert_eq!(clients.read(1), "[[\"s\", [[\"2-1\", [\"a\", \"2\"]]]]]");
    assert_eq!(clients.read(1), "(none)");
}

#[test]
fn a_reader_behind_one_who_is_not_satisfied_is_served() {
    let mut clients = TestClients::of(3);
    clients.say(0, "XGROUP CREATE s g $ MKSTREAM");
    assert_eq!(clients.say(1, "XREAD BLOCK 0 STREAMS s 9"), "(blocked)");
    assert_eq!(clients.say(2, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "(blocked)");
    clients.say(0, "XADD s 1-1 a 1");
    assert_eq!(clients.read(1), "(none)");
    assert_eq!(clients.read(2), "[[\"s\", [[\"1-1\", [\"a\", \"1\"]]]]]");
}

/// Moments, counts and IDs that only the first run could know are in the record.
#[test]
fn changes_of_streams_are_recorded_with_what_they_came_to() {
    const NOW: &str = "1700000000000";
    let mut server = TestServer::new();
    let claim = |id: &str, consumer: &str, count: u64| {
        format!("XCLAIM s g {consumer} 0 {id} TIME {NOW} RETRYCOUNT {count} FORCE JUSTID")
    };
    let position = |id: &str, read: &str| format!("XGROUP SETID s g {id} ENTRIESREAD {read}");
    for (line, records) in [
        ("XADD s NOMKSTREAM * a b", vec![]),
        ("XADD s * a b", vec![format!("XADD s {NOW}-0 a b")]),
        (
            "XADD s MAXLEN 1 9999999999999-* c d",
            vec!["XADD s 9999999999999-0 c d".to_owned(), "XTRIM s MAXLEN = 1".to_owned()],
        ),
        ("XADD s IDMP p m * e f", vec!["XADD s IDMP p m 9999999999999-1 e f".to_owned()]),
        ("XADD s IDMP p m * e f", vec![]),
        (
            "XGROUP CREATE s g $",
            vec!["XGROUP CREATE s g 9999999999999-1 MKSTREAM ENTRIESREAD -1".to_owned()],
        ),
        ("XGROUP SETID s g 0 ENTRIESREAD 1", vec![position("0-0", "1")]),
        (
            "XREADGROUP GROUP g c COUNT 1 STREAMS s >",
            vec![
                "XGROUP CREATECONSUMER s g c".to_owned(),
                claim("9999999999999-0", "c", 1),
                position("9999999999999-0", "2"),
            ],
        ),
        ("XREADGROUP GROUP g c STREAMS s 0", vec![claim("9999999999999-0", "c", 2)]),
        ("XREADGROUP GROUP g c NOACK STREAMS s >", vec![position("9999999999999-1", "3")]),
        (
            "XAUTOCLAIM s g d 0 0",
            vec!["XGROUP CREATECONSUMER s g d".to_owned(), claim("9999999999999-0", "d", 3)],
        ),
        ("XCLAIM s g c 0 9999999999999-0 JUSTID", vec![claim("9999999999999-0", "c", 3)]),
        (
            "XACKDEL s g IDS 1 9999999999999-0",
            vec!["XACK s g 9999999999999-0".to_owned(), "XDEL s 9999999999999-0".to_owned()],
        ),
        ("XDELEX s DELREF IDS 1 9999999999999-1", vec!["XDEL s 9999999999999-1".to_owned()]),
        ("XTRIM s MAXLEN ~ 0", vec![]),
    ] {
        assert_eq!(server.records_of(line), records, "{line}");
    }
}

/// Options that servers before Redis 8.2 pass over are recorded as what they came to.
#[test]
fn trims_that_look_at_references_are_recorded_in_words_of_redis_7() {
    let cases: [(&[&str], &str); 5] = [
        (&["XTRIM s MAXLEN 2 DELREF"], "XACK s g 1-1 2-1 | XACK s h 2-1 | XTRIM s MAXLEN = 2"),
        (
            &["XADD s DELREF MINID 4-1 5-1 a 5"],
            "XADD s 5-1 a 5 | XACK s g 1-1 2-1 | XACK s h 2-1 | XTRIM s MAXLEN = 2",
        ),
        (&["XACK s g 1-1", "XTRIM s ACKED MAXLEN 1"], "XACK s g 1-1 | XTRIM s MAXLEN = 3"),
        (
            &[
                "XDEL s 1-1",
                "XACK s g 2-1",
                "XACK s h 2-1",
                "XACK s g 1-1",
                "XTRIM s ACKED MAXLEN 1",
            ],
            "XDEL s 1-1 | XACK s g 2-1 | XACK s h 2-1 | XACK s g 1-1 | XTRIM s MAXLEN = 2",
        ),
        // Those in front of it are pending.
        (
            &["XGROUP SETID s g 3-1", "XGROUP SETID s h 3-1", "XTRIM s ACKED MAXLEN 0"],
            "XGROUP SETID s g 3-1 ENTRIESREAD -1 | XGROUP SETID s h 3-1 ENTRIESREAD -1 | \
             XDEL s 3-1 | XSETID s 4-1 ENTRIESADDED 4 MAXDELETEDID 0-0 | XTRIM s MAXLEN = 3",
        ),
    ];
    for (trims, records) in cases {
        let (mut server, mut again) = (TestServer::new(), TestServer::new());
        let all = server.record(|server| {
            for line in [
                "XADD s 1-1 a 1",
                "XADD s 2-1 a 2",
                "XADD s 3-1 a 3",
                "XADD s 4-1 a 4",
                "XGROUP CREATE s g 0",
                "XGROUP CREATE s h 0",
                "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
                "XREADGROUP GROUP h c COUNT 2 STREAMS s >",
                "XACK s h 1-1",
            ] {
                server.say(line);
            }
        });
        let more = server.record(|server| trims.iter().for_each(|line| _ = server.say(line)));
        assert_eq!(more.join(" | "), records, "{trims:?}");
        for record in all.iter().chain(&more) {
            assert_eq!(again.say(&format!("DEBUG REPLAY 0 {record}")), "+OK", "{record}");
        }
        let digest = server.say("DEBUG DIGEST FULL");
        assert_eq!(again.say("DEBUG DIGEST FULL"), digest, "{trims:?}");
    }
}

/// In a log an entry is a plain XADD, and what its producer called it a line that others skip.
#[test]
fn what_a_producer_called_an_entry_is_remembered_apart_from_it() {
    let (mut server, mut again) = (TestServer::new(), TestServer::new());
    server.say("XADD s IDMP p m * a 1");
    for record in ["XADD s 1700000000000-0 a 1", "XADD s IDMP p m 1700000000000-0"] {
        assert_eq!(again.say(&format!("DEBUG REPLAY 0 {record}")), "+OK", "{record}");
    }
    let digest = server.say("DEBUG DIGEST FULL");
    assert_eq!(again.say("DEBUG DIGEST FULL"), digest);
    assert_eq!(again.say("XADD s IDMP p m * a 1"), "\"1700000000000-0\"");
    assert_eq!(again.say("XLEN s"), "1");
    assert!(again.say("XADD s IDMP p n 1700000000001-0").contains("ERR"), "clients have no such");
}

/// What a client says of deletions without naming one changes nothing, and must not when it is done
/// again.
#[test]
fn an_id_that_is_set_without_a_deletion_is_recorded_without_one() {
    let mut server = TestServer::new();
    server.say("XADD s 1-1 a 1");
    server.check_records(&[
        (
            "XSETID s 9-0 ENTRIESADDED 9 MAXDELETEDID 8-0",
            "XSETID s 9-0 ENTRIESADDED 9 MAXDELETEDID 8-0",
        ),
        ("XSETID s 9-1 MAXDELETEDID 0-0", "XSETID s 9-1"),
        ("XSETID s 9-2 maxdeletedid 0-0 entriesadded 7", "XSETID s 9-2 ENTRIESADDED 7"),
    ]);
}
