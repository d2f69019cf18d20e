//! Clients that wait for lists, and those who feed them.

use crate::call::blocking::GiveUp;
use crate::testing::TestClients;

const BLOCKED: &str = "(blocked)";
const NONE: &str = "(none)";

#[test]
fn the_first_who_came_is_served_first() {
    let mut clients = TestClients::of(4);
    assert_eq!(clients.say(0, "BLPOP k 0"), BLOCKED);
    assert_eq!(clients.say(1, "BRPOP k 0"), BLOCKED);
    assert_eq!(clients.say(2, "BLPOP k 0"), BLOCKED);
    assert_eq!(clients.say(3, "RPUSH k a b"), "2");
    assert_eq!(clients.read(0), r#"["k", "a"]"#);
    assert_eq!(clients.read(1), r#"["k", "b"]"#);
    assert_eq!(clients.read(2), NONE);
    assert_eq!(clients.say(3, "LLEN k"), "0");
    assert_eq!(clients.say(3, "LPUSH k c"), "1");
    assert_eq!(clients.read(2), r#"["k", "c"]"#);
    assert_eq!(clients.say(3, "LPUSH k d"), "1");
    assert_eq!(clients.say(3, "LRANGE k 0 -1"), r#"["d"]"#);
}

#[test]
fn any_of_several_keys_will_do() {
    let mut clients = TestClients::of(2);
    assert_eq!(clients.say(0, "BLPOP one two two three 0"), BLOCKED);
    assert_eq!(clients.say(1, "RPUSH other x"), "1");
    assert_eq!(clients.read(0), NONE);
    assert_eq!(clients.say(1, "RPUSH two x"), "1");
    assert_eq!(clients.read(0), r#"["two", "x"]"#);
    assert_eq!(clients.say(1, "RPUSH one x"), "1");
    assert_eq!(clients.say(1, "RPUSH three x"), "1");
    assert_eq!(clients.read(0), NONE);
    // The first key named that has something, not the first that was fed.
    assert_eq!(clients.say(0, "BRPOP three one 0"), r#"["three", "x"]"#);
}

#[test]
fn a_transaction_feeds_when_it_is_over() {
    let mut clients = TestClients::of(3);
    assert_eq!(clients.say(0, "BLPOP k 0"), BLOCKED);
    clients.say(1, "MULTI");
    clients.say(1, "RPUSH k a");
    clients.say(1, "LPUSH k b");
    clients.say(1, "LLEN k");
    assert_eq!(clients.say(1, "EXEC"), "[1, 2, 2]");
    assert_eq!(clients.read(0), r#"["k", "b"]"#);
    // One that takes its own push back feeds nobody.
    assert_eq!(clients.say(0, "BLPOP none 0"), BLOCKED);
    clients.say(1, "MULTI");
    clients.say(1, "RPUSH none a");
    clients.say(1, "DEL none");
    assert_eq!(clients.say(1, "EXEC"), "[1, 1]");
    assert_eq!(clients.read(0), NONE);
}

#[test]
fn nothing_waits_inside_a_transaction() {
    let mut clients = TestClients::of(1);
    clients.say(0, "MULTI");
    clients.say(0, "BLPOP k 0");
    clients.say(0, "BLMOVE k l LEFT LEFT 0");
    clients.say(0, "BRPOPLPUSH k l 0");
    clients.say(0, "BLMPOP 0 1 k LEFT");
    clients.say(0, "BLMOVEM k l LEFT LEFT 0 COUNT 2 OBO");
    let expected = "[nil-array, nil, nil, nil-array, nil-array]";
    assert_eq!(clients.say(0, "EXEC"), expected);
}

#[test]
fn a_wait_ends_with_its_time() {
    let mut clients = TestClients::of(2);
    for line in [
        "BLPOP k 0.25",
        "BRPOP k 0.25",
        "BLMPOP 0.25 1 k LEFT COUNT 3",
        "BLMOVE k l LEFT LEFT 0.25",
        "BRPOPLPUSH k l 0.25",
        "BLMOVEM k l LEFT LEFT 0.25",
    ] {
        assert_eq!(clients.say(0, line), BLOCKED, "{line}");
        assert_eq!(clients.deadline_ms(0), Some(250));
        assert_eq!(clients.give_up(0, GiveUp::TimedOut), "nil-array", "{line}");
    }
    assert_eq!(clients.say(1, "RPUSH k a"), "1");
    assert_eq!(clients.read(0), NONE);
    assert_eq!(clients.say(1, "LLEN k"), "1");
    clients.say(0, "BLPOP none 0");
    assert_eq!(clients.deadline_ms(0), None);
    assert_eq!(
        clients.give_up(0, GiveUp::UnblockedWithError),
        "-UNBLOCKED client unblocked via CLIENT UNBLOCK"
    );
    clients.say(0, "BLPOP none 0");
    clients.say(1, "RPUSH none a");
    assert_eq!(clients.give_up(0, GiveUp::TimedOut), "(too late)");
    assert_eq!(clients.read(0), r#"["none", "a"]"#);
}

#[test]
fn timeouts_are_read_as_redis_reads_them() {
    let mut clients = TestClients::of(1);
    let not_float = "-ERR timeout is not a float or out of range";
    let out_of_range = "-ERR timeout is out of range";
    for (timeout, answer) in [
        ("x", not_float),
        ("nan", not_float),
        ("1s", not_float),
        ("-1", "-ERR timeout is negative"),
        ("-inf", "-ERR timeout is negative"),
        ("-1e400", "-ERR timeout is negative"),
        ("inf", out_of_range),
        ("1e400", out_of_range),
        ("1e5000", not_float),
        ("9223372036854775", out_of_range),
        ("9223372036854774", out_of_range),
    ] {
        assert_eq!(clients.say(0, &format!("BLPOP k {timeout}")), answer, "{timeout}");
        assert_eq!(clients.say(0, &format!("BLMOVE k l LEFT LEFT {timeout}")), answer, "{timeout}");
    }
    for (timeout, ms) in
        [("-0.0001", None), ("0.0001", Some(1)), ("1e-400", Some(1)), ("0x10", Some(16_000))]
    {
        assert_eq!(clients.say(0, &format!("BLPOP k {timeout}")), BLOCKED);
        assert_eq!(clients.deadline_ms(0), ms, "{timeout}");
        clients.give_up(0, GiveUp::TimedOut);
    }
}

#[test]
fn other_types_are_refused_at_once_and_ignored_later() {
    let mut clients = TestClients::of(3);
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    clients.say(1, "SET s v");
    assert_eq!(clients.say(0, "BLPOP k s 0"), wrong);
    assert_eq!(clients.say(0, "BLMOVE s k LEFT LEFT 0"), wrong);
    assert_eq!(clients.say(0, "BLPOP k 0"), BLOCKED);
    clients.say(1, "SET k v");
    assert_eq!(clients.read(0), NONE);
    clients.say(1, "DEL k");
    clients.say(1, "RPUSH k a");
    assert_eq!(clients.read(0), r#"["k", "a"]"#);
    // A destination of another type is met when the move is served; the element stays for the next.
    assert_eq!(clients.say(0, "BLMOVE k s LEFT LEFT 0"), BLOCKED);
    assert_eq!(clients.say(2, "BLPOP k 0"), BLOCKED);
    clients.say(1, "RPUSH k a");
    assert_eq!(clients.read(0), wrong);
    assert_eq!(clients.read(2), r#"["k", "a"]"#);
}

#[test]
fn a_move_feeds_the_next_who_waits() {
    let mut clients = TestClients::of(5);
    assert!(clients.are_apart("a", "b") && clients.are_apart("b", "c"));
    assert_eq!(clients.say(0, "BLPOP c 0"), BLOCKED);
    assert_eq!(clients.say(1, "BLMOVE b c LEFT RIGHT 0"), BLOCKED);
    assert_eq!(clients.say(2, "BRPOPLPUSH a b 0"), BLOCKED);
    assert_eq!(clients.say(3, "RPUSH a x"), "1");
    assert_eq!(clients.read(2), r#""x""#);
    assert_eq!(clients.read(1), r#""x""#);
    assert_eq!(clients.read(0), r#"["c", "x"]"#);
    for key in ["a", "b", "c"] {
        assert_eq!(clients.say(3, &format!("EXISTS {key}")), "0");
    }
    // Round in a circle, until nobody waits.
    assert_eq!(clients.say(0, "BLMOVE a b LEFT LEFT 0"), BLOCKED);
    assert_eq!(clients.say(1, "BLMOVE b a LEFT LEFT 0"), BLOCKED);
    assert_eq!(clients.say(3, "RPUSH a x"), "1");
    assert_eq!(clients.say(3, "LRANGE a 0 -1"), r#"["x"]"#);
    // Onto itself.
    clients.say(3, "DEL a");
    assert_eq!((clients.read(0), clients.read(1)), (r#""x""#.to_owned(), r#""x""#.to_owned()));
    assert_eq!(clients.say(0, "BLMOVE a a LEFT RIGHT 0"), BLOCKED);
    assert_eq!(clients.say(3, "RPUSH a x y"), "2");
    assert_eq!(clients.read(0), r#""x""#);
    assert_eq!(clients.say(3, "LRANGE a 0 -1"), r#"["y", "x"]"#);
}

#[test]
fn a_move_whose_target_is_busy_takes_its_turn_itself() {
    let mut clients = TestClients::of(4);
    assert!(clients.are_apart("src", "dst"));
    assert_eq!(clients.say(0, "BLMOVE src dst LEFT RIGHT 0"), BLOCKED);
    assert_eq!(clients.say(1, "BLPOP src 0"), BLOCKED);
    clients.while_busy("dst", |clients| assert_eq!(clients.say(3, "RPUSH src a b"), "2"));
    // The one behind does not overtake.
    assert_eq!(clients.read(1), NONE);
    assert_eq!(clients.read(0), r#""a""#);
    assert_eq!(clients.read(1), r#"["src", "b"]"#);
    assert_eq!(clients.say(3, "LRANGE dst 0 -1"), r#"["a"]"#);
}

#[test]
fn a_turn_that_came_to_nothing_is_waited_for_again() {
    let mut clients = TestClients::of(3);
    assert_eq!(clients.say(0, "BLMOVE src dst LEFT RIGHT 0"), BLOCKED);
    clients.while_busy("dst", |clients| assert_eq!(clients.say(2, "RPUSH src a"), "1"));
    assert_eq!(clients.say(2, "LPOP src"), r#""a""#);
    assert_eq!(clients.read(0), BLOCKED);
    assert_eq!(clients.say(1, "BLPOP src 0"), BLOCKED);
    assert_eq!(clients.say(2, "RPUSH src b"), "1");
    assert_eq!(clients.read(0), r#""b""#);
    assert_eq!(clients.read(1), NONE);
}

#[test]
fn a_turn_that_nobody_takes_is_passed_on() {
    let mut clients = TestClients::of(3);
    assert_eq!(clients.say(0, "BLMOVE src dst LEFT RIGHT 0"), BLOCKED);
    assert_eq!(clients.say(1, "BLPOP src 0"), BLOCKED);
    clients.while_busy("dst", |clients| assert_eq!(clients.say(2, "RPUSH src a"), "1"));
    clients.disconnect(0);
    assert_eq!(clients.read(1), NONE);
    clients.sweep();
    assert_eq!(clients.read(1), r#"["src", "a"]"#);
    assert_eq!(clients.read(0), "(stale)");
}

#[test]
fn whoever_needs_more_lets_others_pass() {
    let mut clients = TestClients::of(4);
    assert_eq!(clients.say(0, "BLMOVEM k l LEFT RIGHT 0 EXACTLY 3 BULK"), BLOCKED);
    assert_eq!(clients.say(3, "RPUSH k a"), "1");
    assert_eq!(clients.say(1, "BLMOVEM k l LEFT RIGHT 0 COUNT 3 BULK"), r#"["a"]"#);
    assert_eq!(clients.say(1, "BLPOP k 0"), BLOCKED);
    assert_eq!(clients.say(3, "RPUSH k b c"), "2");
    assert_eq!(clients.read(0), NONE);
    assert_eq!(clients.read(1), r#"["k", "b"]"#);
    assert_eq!(clients.say(3, "LINSERT k AFTER c d"), "2");
    assert_eq!(clients.say(3, "LPUSH k x y"), "4");
    assert_eq!(clients.read(0), r#"["y", "x", "c"]"#);
    assert_eq!(clients.say(3, "LRANGE l 0 -1"), r#"["a", "y", "x", "c"]"#);
    assert_eq!(clients.say(3, "LRANGE k 0 -1"), r#"["d"]"#);
}

#[test]
fn a_renamed_or_moved_list_feeds() {
    let mut clients = TestClients::of(2);
    assert_eq!(clients.say(0, "BLMPOP 0 2 x k RIGHT COUNT 2"), BLOCKED);
    clients.say(1, "RPUSH other a b c");
    assert_eq!(clients.say(1, "RENAME other k"), "+OK");
    assert_eq!(clients.read(0), r#"["k", ["c", "b"]]"#);
    assert_eq!(clients.say(1, "DEL k"), "1");
    assert_eq!(clients.say(0, "BLPOP k 0"), BLOCKED);
    clients.say(1, "RPUSH other a b c");
    assert_eq!(clients.say(1, "COPY other k"), "1");
    assert_eq!(clients.read(0), r#"["k", "a"]"#);
}
