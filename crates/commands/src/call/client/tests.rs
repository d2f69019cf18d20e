//! Clients that wait for each other, step by step.

use crate::testing::TestClients;

/// UNPAUSE was answered before those that it let go had gone on.
#[test]
fn unpause_is_answered_when_those_held_back_have_gone_on() {
    let mut clients = TestClients::of(2);
    assert_eq!(clients.say(0, "CLIENT PAUSE 100000 WRITE"), "+OK");
    assert_eq!(clients.say(1, "SET k v"), "(busy)");
    assert!(!clients.may_run(1));
    assert_eq!(clients.say(0, "CLIENT UNPAUSE"), "(blocked)");
    assert_eq!(clients.read(1), "(ready)");
    assert!(clients.may_run(1));
    assert_eq!(clients.say(1, "SET k v"), "+OK");
    assert_eq!(clients.read(0), "(none)");
    clients.end_turn(1);
    assert_eq!(clients.read(0), "+OK");
    assert!(clients.may_run(0));
}

/// With nobody to wait for, the reply comes at once, and so it does inside a transaction that asks
/// twice.
#[test]
fn a_reply_that_waits_for_nobody_is_not_kept_back() {
    let mut clients = TestClients::of(1);
    assert_eq!(clients.say(0, "CLIENT UNPAUSE"), "+OK");
    assert_eq!(clients.say(0, "MULTI"), "+OK");
    assert_eq!(clients.say(0, "CLIENT UNPAUSE"), "+QUEUED");
    assert_eq!(clients.say(0, "CLIENT KILL ID 77"), "+QUEUED");
    assert_eq!(clients.say(0, "EXEC"), "[+OK, 0]");
}

/// A retry of a blocked call that finds a pause gives up its wait for shards, and goes on when the
/// pause is over.
#[test]
fn a_blocked_call_that_is_tried_again_in_a_pause_goes_on_after_it() {
    let mut clients = TestClients::of(2);
    let (from, to) = ("a", "b");
    assert!(clients.are_apart(from, to));
    assert_eq!(clients.say(0, &format!("BLMOVE {from} {to} LEFT LEFT 0")), "(blocked)");
    clients.while_busy(to, |clients| {
        assert_eq!(clients.say(1, &format!("RPUSH {from} x")), "1");
        assert_eq!(clients.read(0), "(blocked)", "told to try again, and the shard is busy");
    });
    assert_eq!(clients.say(1, "CLIENT PAUSE 100000 WRITE"), "+OK");
    assert_eq!(clients.read(0), "(blocked)", "the shard is free, but writes are paused");
    assert_eq!(clients.say(1, "CLIENT UNPAUSE"), "(blocked)");
    assert_eq!(clients.read(0), "\"x\"");
    clients.end_turn(0);
    assert_eq!(clients.read(1), "+OK");
}
