//! With `appendfsync always` nothing leaves before it is durable. The tests say when that is: the
//! journal has no reader but them.

mod directives;
mod recovery;
mod shown;
mod switched;

use crate::testing::TestClients;
use russet_engine::barrier::Barrier;
use russet_engine::journal::Mode;

fn strict(count: u64) -> TestClients {
    let clients = TestClients::of(count);
    clients.node().keyspace.journal().set_mode(Mode::Strict);
    clients.node().keyspace.set_recording(true);
    clients
}

/// All that was appended becomes durable.
fn sync(clients: &TestClients) {
    let journal = clients.node().keyspace.journal();
    journal.set_durable(journal.offset(), 0);
}

#[test]
fn a_reply_waits_for_what_it_shows_and_for_nothing_else() {
    let mut clients = strict(2);
    assert_eq!(clients.say_and_send(0, "GET k"), "nil");
    assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
    let shown = ["GET k", "EXISTS k", "SET k w NX", "DBSIZE", "SCAN 0", "KEYS *", "RANDOMKEY"];
    for call in shown {
        assert_eq!(clients.say_and_send(1, call), "(held)", "{call}: another's write");
        sync(&clients);
        assert_ne!(clients.say_and_send(1, call), "(held)", "{call}");
        assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
    }
    let mut fresh = strict(1);
    assert_eq!(fresh.say_and_send(0, "PING"), "+PONG");
}

#[test]
fn a_client_of_other_keys_waits_for_nobody() {
    let mut clients = strict(3);
    assert!(clients.are_apart("a", "b"));
    assert_eq!(clients.say_and_send(0, "SET a v"), "(held)");
    assert_eq!(clients.say_and_send(1, "GET b"), "nil");
    assert_eq!(clients.say_and_send(2, "PING"), "+PONG");
}

#[test]
fn served_pops_messages_events_and_monitors_wait() {
    let mut clients = strict(5);
    clients.notify_all();
    assert_eq!(clients.say_and_send(1, "BLPOP l 0"), "(blocked)");
    clients.say(2, "SUBSCRIBE __keyevent@0__:rpush");
    clients.say(4, "SUBSCRIBE c");
    clients.say(3, "MONITOR");
    assert_eq!(clients.say_and_send(0, "RPUSH l x y"), "(held)");
    assert_eq!(clients.say_and_send(0, "PUBLISH c behind"), "(held)");
    for who in 1..5 {
        assert_eq!(clients.read(who), "(none)", "client {who} learns of it too early");
    }
    sync(&clients);
    assert_eq!(clients.read(1), "[\"l\", \"x\"]");
    assert!(clients.read(2).contains("rpush"));
    assert!(clients.read(3).contains("RPUSH"));
    assert!(clients.read(4).contains("behind"));
}

#[test]
fn a_replayed_reply_waits_for_the_first_run() {
    let mut clients = strict(2);
    assert_eq!(clients.say_and_send(0, "ONCE id PX 60000 INCR n"), "(held)");
    assert_eq!(clients.say_and_send(1, "ONCE id PX 60000 INCR n"), "(held)");
    sync(&clients);
    assert_eq!(clients.say_and_send(1, "ONCE id PX 60000 INCR n"), "1");
}

/// What was written before the policy became stricter is covered, too, and what is held is let go
/// when it becomes laxer.
#[test]
fn a_change_of_policy_holds_and_releases() {
    let mut clients = TestClients::of(2);
    let keyspace = &clients.node().keyspace;
    keyspace.journal().set_mode(Mode::Lazy);
    keyspace.set_recording(true);
    assert_eq!(clients.say_and_send(0, "SET k v"), "+OK");
    clients.node().keyspace.journal().set_mode(Mode::Strict);
    assert_eq!(clients.say_and_send(1, "GET k"), "(held)");
    clients.node().keyspace.journal().set_mode(Mode::Lazy);
    assert_eq!(clients.say_and_send(1, "GET k"), "\"v\"");
}

#[test]
fn while_the_log_fails_writes_are_refused_and_so_are_reads_of_what_is_not_durable() {
    let mut clients = strict(1);
    assert!(clients.are_apart("a", "b"));
    assert_eq!(clients.say_and_send(0, "SET a v"), "(held)");
    clients.node().keyspace.journal().set_failure(Some("No space left on device".to_owned()));
    let refused = "-MISCONF Errors writing to the AOF file: No space left on device";
    for call in ["SET b v", "GET a", "PING", "EVAL return(1) 0"] {
        let reply = clients.say(0, call);
        assert!(reply.contains(&refused[1..]), "{call}: {reply}");
    }
    assert_eq!(clients.say(0, "GET b"), "nil");
    clients.node().keyspace.journal().set_failure(None);
    sync(&clients);
    assert_eq!(clients.say_and_send(0, "GET a"), "\"v\"");
}

/// CONFIG SET of the log's policy waited for a disk that was full, as a read of all data would. A
/// reply that waits when the disk fails is given when its write is durable, or nobody is to wait
/// for that any more, and neither before nor never.
#[test]
fn while_the_log_fails_replies_are_held_and_the_policy_can_be_changed() {
    for is_repaired in [true, false] {
        let mut clients = strict(2);
        assert_eq!(clients.say_and_send(0, "SET a v"), "(held)");
        clients.node().keyspace.journal().set_failure(Some("No space left on device".to_owned()));
        assert_eq!(clients.read(0), "(none)");
        for policy in ["always", "everysec", "always"] {
            let call = format!("CONFIG SET appendfsync {policy}");
            assert_eq!(clients.say_and_send(1, &call), "+OK");
        }
        assert!(clients.say_and_send(1, "CONFIG GET appendfsync").contains("always"));
        assert_eq!(clients.read(0), "(none)");
        match is_repaired {
            true => {
                clients.node().keyspace.journal().set_failure(None);
                sync(&clients);
            }
            false => clients.node().keyspace.journal().set_mode(Mode::Lazy),
        }
        assert_ne!(clients.read(0), "(none)", "its reply has come");
        assert_ne!(clients.say_and_send(0, "GET b"), "(held)", "and nothing before it is held");
    }
}

#[test]
fn writers_wait_before_they_lock_and_readers_go_on() {
    let mut clients = TestClients::of(2);
    let keyspace = &clients.node().keyspace;
    keyspace.journal().set_mode(Mode::Lazy);
    keyspace.set_recording(true);
    assert_eq!(clients.say(0, "SET k v PX 1"), "+OK");
    clients.node().keyspace.journal().raise(Barrier::Late, true);
    assert_eq!(clients.say(0, "SET k w"), "(busy)");
    assert!(!clients.may_run(0));
    clients.advance_ms(2);
    assert_eq!(clients.say(1, "GET k"), "nil", "hidden, not deleted");
    assert_eq!(clients.say(1, "DBSIZE"), "1");
    clients.node().keyspace.journal().raise(Barrier::Late, false);
    assert_eq!(clients.read(0), "(ready)");
    assert_eq!(clients.say(0, "SET k w"), "+OK");
}

#[test]
fn waitaof_answers_when_the_writes_are_durable() {
    let mut clients = TestClients::of(2);
    let keyspace = &clients.node().keyspace;
    keyspace.journal().set_mode(Mode::Lazy);
    keyspace.set_recording(true);
    assert_eq!(clients.say(0, "WAITAOF 1 0 0"), "[1, 0]", "it has written nothing");
    assert_eq!(clients.say(0, "SET k v"), "+OK");
    assert_eq!(clients.say(1, "WAITAOF 1 0 0"), "[1, 0]");
    assert_eq!(clients.say(0, "WAITAOF 1 0 100000"), "(blocked)");
    assert!(clients.deadline_ms(0).is_some());
    sync(&clients);
    assert_eq!(clients.read(0), "[1, 0]");
    assert!(clients.may_run(0));
}

/// It waited for ever, for nobody writes a log that is off.
#[test]
fn waitaof_is_refused_when_the_log_ends_meanwhile() {
    let mut clients = TestClients::of(1);
    let journal = clients.node().keyspace.journal().clone();
    journal.set_mode(Mode::Lazy);
    clients.node().keyspace.set_recording(true);
    assert_eq!(clients.say(0, "SET k v"), "+OK");
    assert_eq!(clients.say(0, "WAITAOF 1 0 0"), "(blocked)");
    journal.set_mode(Mode::Off);
    let refused = clients.read(0);
    assert!(refused.contains("WAITAOF cannot be used"), "{refused}");
    assert!(clients.may_run(0));
    // Another log has begun before it hears of the end.
    journal.set_mode(Mode::Lazy);
    assert_eq!(clients.say(0, "SET k w"), "+OK");
    assert_eq!(clients.say(0, "WAITAOF 1 0 0"), "(blocked)");
    journal.set_mode(Mode::Off);
    journal.set_mode(Mode::Lazy);
    assert_eq!(clients.read(0), "(blocked)");
    sync(&clients);
    assert_eq!(clients.read(0), "[1, 0]");
}
