//! ONCE on a server: what is kept, and for how long.

use crate::testing::{TestClient, TestServer};
use russet_base::UnixMillis;

fn kept(server: &TestServer) -> u64 {
    server.worker.node.keyspace.once_totals().records()
}

/// What housekeeping does; the records and bytes that it leaves.
fn keep_house(server: &TestServer, now: UnixMillis) -> (u64, u64) {
    let keyspace = &server.worker.node.keyspace;
    (0..keyspace.shards()).for_each(|shard| assert!(!keyspace.expire_once(shard, now, 100)));
    (keyspace.once_totals().records(), keyspace.once_totals().bytes())
}

#[test]
fn a_record_lives_from_its_run_to_the_end_of_its_time() {
    let mut server = TestServer::new();
    assert_eq!(server.say("ONCE {k}1 PX 1000 INCR k"), "1");
    assert_eq!(kept(&server), 1);
    server.clock.advance_ms(999);
    // A repeat neither runs nor makes the time longer.
    assert_eq!(server.say("ONCE {k}1 PX 5000 INCR k"), "1");
    server.clock.advance_ms(1);
    assert_eq!(server.say("ONCE {k}1 PX 1000 INCR k"), "2");
    let now = server.worker.node.clock.now();
    let (records, bytes) = keep_house(&server, now);
    assert_eq!(records, 1);
    assert!((100..1_000).contains(&bytes), "{bytes}");
    assert_eq!(keep_house(&server, UnixMillis(now.0 + 1000)), (0, 0));
}

#[test]
fn a_mark_stays_where_the_id_is_at_home() {
    let mut server = TestServer::new();
    // Of 32 ids some fall into another shard than the key: those leave a mark there.
    for id in 0..32 {
        assert_eq!(server.say(&format!("ONCE id{id} PX 1000 INCR k")), (id + 1).to_string());
    }
    assert!((33..=64).contains(&kept(&server)));
    for id in 0..32 {
        let line = format!("ONCE id{id} PX 1000 INCR other{id}");
        assert!(server.say(&line).contains("ONCEMISMATCH"), "{line}");
    }
    assert_eq!(server.say("GET k"), "\"32\"");
    assert_eq!(server.say("DBSIZE"), "1");
}

#[test]
fn another_client_gets_the_same_answer() {
    let mut server = TestServer::new();
    assert_eq!(server.say("ONCE id PX 1000 RPUSH l a b c"), "3");
    let mut client = TestClient::of(&server);
    assert_eq!(client.says(&mut server, "ONCE id PX 1000 RPUSH l a b c"), ["3"]);
    assert_eq!(client.says(&mut server, "ONCE p PX 1000 LPOP l 2"), server_pops(&mut server));
    assert_eq!(server.say("LLEN l"), "1");
}

fn server_pops(server: &mut TestServer) -> Vec<String> {
    vec![server.say("ONCE p PX 1000 LPOP l 2")]
}

#[test]
fn emptied_databases_have_no_records() {
    let mut server = TestServer::new();
    server.say("ONCE id PX 1000 INCR k");
    server.say("SELECT 1");
    server.say("ONCE id PX 1000 INCR k");
    server.say("FLUSHDB");
    assert_eq!(server.say("ONCE id PX 1000 INCR k"), "1");
    assert_eq!(server.say("GET k"), "\"1\"");
    server.say("SELECT 0");
    server.say("INCR k");
    assert_eq!(server.say("ONCE id PX 1000 INCR k"), "1");
    assert_eq!(server.say("GET k"), "\"2\"");
}

fn transact(server: &mut TestServer, commands: &[&str], last: &str) -> String {
    server.say("MULTI");
    commands.iter().for_each(|line| assert_eq!(server.say(line), "+QUEUED"));
    server.say(last)
}

/// The arguments of a transaction were compared as if they were those of one command.
#[test]
fn transactions_are_compared_command_by_command() {
    let mut server = TestServer::new();
    let once = "ONCE id PX 60000 EXEC";
    assert_eq!(transact(&mut server, &["RPUSH l a", "SET x y"], once), "[1, +OK]");
    let other = transact(&mut server, &["RPUSH l a SET x y"], once);
    assert!(other.contains("ONCEMISMATCH"), "{other}");
    assert_eq!(transact(&mut server, &["RPUSH l a", "SET x y"], once), "[1, +OK]");
    assert_eq!(server.say("LRANGE l 0 -1"), r#"["a"]"#);
}

/// A refused `ONCE ... EXEC` left the transaction open, and a plain EXEC ran it.
#[test]
fn a_refused_exec_ends_its_transaction() {
    let mut server = TestServer::new();
    server.say("CONFIG SET once-records-max 0");
    for (last, refused) in [
        ("ONCE id PX 60000 EXEC", "ONCEFULL"),
        ("ONCE id PX nonsense EXEC", "not an integer"),
        ("ONCE id PX 0 EXEC", "invalid expire"),
        ("ONCE id EX 60000 EXEC", "syntax"),
        ("ONCE id PX 60000 EXEC now", "wrong number"),
    ] {
        let reply = transact(&mut server, &["INCR n"], last);
        assert!(reply.contains(refused), "{last}: {reply}");
        assert!(server.say("EXEC").contains("EXEC without MULTI"), "{last}");
    }
    assert_eq!(server.say("EXISTS n"), "0");
    // What is no EXEC is refused inside MULTI, and spoils the transaction as ever.
    server.say("MULTI");
    assert!(server.say("ONCE id PX 60000 INCR n").contains("not allowed"));
    assert!(server.say("EXEC").contains("EXECABORT"));
}

/// The bound was one of records alone: a million replies of 60 KB were 60 GB.
#[test]
fn what_is_kept_is_bounded_in_bytes() {
    let mut server = TestServer::new();
    server.say("CONFIG SET once-bytes-max 200kb");
    let value = "x".repeat(50_000);
    let mut taken = 0;
    let refusal = loop {
        let reply = server.say(&format!("ONCE {{k}}{taken} PX 1000 SET k {value} GET"));
        if reply.contains("ONCEFULL") {
            break reply;
        }
        taken += 1;
    };
    assert!(refusal.contains("once-bytes-max"), "{refusal}");
    assert!((4..=6).contains(&taken), "{taken}");
    // Known ids are answered, and there is room again when some are over.
    assert_eq!(server.say(&format!("ONCE {{k}}0 PX 1000 SET k {value} GET")), "nil");
    server.clock.advance_ms(1000);
    keep_house(&server, server.worker.node.clock.now());
    assert_eq!(server.say("ONCE {k}9 PX 1000 SET k v"), "+OK");
}

#[test]
fn reading_for_a_group_may_have_an_id_unless_it_waits() {
    let mut server = TestServer::new();
    server.say("XGROUP CREATE s block 0 MKSTREAM");
    server.say("XADD s 1-1 f v");
    let read = "ONCE id PX 60000 XREADGROUP GROUP block block COUNT 1 STREAMS s >";
    let first = server.say(read);
    assert!(first.contains("1-1"), "{first}");
    assert_eq!(server.say(read), first);
    let waits = "ONCE other PX 60000 XREADGROUP GROUP block block BLOCK 1 STREAMS s >";
    assert!(server.say(waits).contains("takes commands that write"));
}

#[test]
fn the_keys_are_those_of_the_command_that_it_runs() {
    let mut server = TestServer::new();
    for (call, keys) in [
        ("SET k v", r#"["k"]"#),
        ("MSET a 1 b 2", r#"["a", "b"]"#),
        ("EVAL x 2 a b c", r#"["a", "b"]"#),
        ("XREADGROUP GROUP g c STREAMS s t > >", r#"["s", "t"]"#),
    ] {
        let reply = server.say(&format!("COMMAND GETKEYS ONCE id PX 1 {call}"));
        assert_eq!(reply, keys, "{call}");
    }
    assert!(server.say("COMMAND GETKEYS ONCE id PX 1 EXEC").contains("no key arguments"));
    for call in ["ONCE STATS", "ONCE id PX 1 NONSENSE k", "ONCE id PX 1 ONCE id PX 1 GET k"] {
        let reply = server.say(&format!("COMMAND GETKEYS {call}"));
        assert!(reply.contains("Invalid arguments"), "{call}: {reply}");
    }
}
