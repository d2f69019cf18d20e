//! What the wire files can't show: batches, limits, clients that are gone, and when messages come.

use super::{Prefixes, for_each_prefix};
use crate::testing::{TestClient, TestClients, TestServer};
use russet_base::OwnedArgs;
use russet_base::random::Random;
use russet_engine::journal::Mode as JournalMode;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::Output;

fn invalidation(key: &str) -> String {
    format!(">[\"invalidate\", [\"{key}\"]]")
}

fn reader(server: &mut TestServer, mode: &str) -> TestClient {
    let mut client = TestClient::of(server);
    client.says(server, "HELLO 3");
    assert_eq!(client.says(server, &format!("CLIENT TRACKING ON {mode}")), ["+OK"]);
    client
}

fn totals(server: &TestServer) -> (u64, u64) {
    let totals = server.worker.node.keyspace.tracked_totals();
    (totals.keys(), totals.readers())
}

/// What is read in a batch is remembered like what is read alone, and the invalidation of the
/// client's own change comes behind the reply of the command that made it.
#[test]
fn a_batch_is_as_its_commands_one_by_one() {
    let mut server = TestServer::new();
    let mut client = reader(&mut server, "");
    let lines = ["GET a", "SET a 1", "GET b", "GET a"];
    let calls: Vec<OwnedArgs> = lines.iter().map(|line| line.split(' ').collect()).collect();
    let mut out = Output::default();
    let args = calls.iter().map(OwnedArgs::as_args);
    let ran = server.worker.run_batch(&mut client.session, args, &mut out);
    assert_eq!(ran.count, lines.len());
    let shown = out.bytes_from(0).into_owned();
    let expected = "_\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n_\r\n$1\r\n1\r\n";
    assert_eq!(String::from_utf8_lossy(&shown), expected);
    assert_eq!(totals(&server), (2, 2));
    server.say("MSET a 2 b 2");
    assert_eq!(client.mail(), [invalidation("a"), invalidation("b")]);
    assert_eq!(totals(&server), (0, 0));
}

#[test]
fn beyond_the_limit_other_keys_are_forgotten_and_invalidated() {
    let mut server = TestServer::new();
    server.say("CONFIG SET tracking-table-max-keys 3");
    let mut client = reader(&mut server, "");
    let all = reader(&mut server, "BCAST");
    // In one shard, as only keys of the same shard make room for each other.
    for at in 0..10 {
        client.says(&mut server, &format!("GET {{k}}{at}"));
    }
    assert_eq!(totals(&server).0, 3);
    assert_eq!(client.session.own_messages.len(), 7);
    // A lower limit is met at once.
    server.say("CONFIG SET tracking-table-max-keys 1");
    assert_eq!((totals(&server).0, client.mail().len()), (1, 2));
    assert!(all.mail().is_empty(), "nothing was changed");
}

#[test]
fn what_clients_have_read_goes_with_them() {
    let mut server = TestServer::new();
    let (mut one, mut other) = (reader(&mut server, ""), reader(&mut server, ""));
    for client in [&mut one, &mut other] {
        client.says(&mut server, "MGET a b c");
    }
    one.says(&mut server, "GET d");
    assert_eq!(totals(&server), (4, 7));
    assert_eq!(one.says(&mut server, "CLIENT TRACKING OFF"), ["+OK"]);
    server.worker.sweep();
    assert_eq!(totals(&server), (3, 3));
    let node = server.worker.node.clone();
    crate::groups::connection::disconnect(&node, &mut other.session);
    server.worker.sweep();
    assert_eq!((totals(&server), node.keyspace.tracked_totals().bytes()), ((0, 0), 0));
}

/// A shard that is busy when readers are forgotten has them until it is visited again; a client
/// that comes meanwhile is not taken for one that has left.
#[test]
fn readers_of_a_busy_shard_are_forgotten_later() {
    let mut server = TestServer::new();
    let mut gone = reader(&mut server, "");
    gone.says(&mut server, "GET k");
    gone.says(&mut server, "CLIENT TRACKING OFF");
    let node = server.worker.node.clone();
    let shard = usize::from(node.keyspace.locate(b"k").shard);
    let held = node.keyspace.try_lock(&ShardSet::one(shard));
    assert!(held.is_ok());
    server.worker.sweep();
    assert_eq!(totals(&server), (1, 1));
    drop(held);
    let mut stays = reader(&mut server, "");
    stays.says(&mut server, "GET k");
    server.worker.sweep();
    assert_eq!(totals(&server), (1, 1));
    server.say("SET k v");
    assert_eq!((stays.mail(), gone.mail()), (vec![invalidation("k")], vec![]));
}

/// A key goes by expiry or the end of its last field, too.
#[test]
fn a_key_that_expires_is_invalidated() {
    let mut server = TestServer::new();
    let mut client = reader(&mut server, "NOLOOP");
    server.say("SET k v PX 10");
    server.say("HSETEX h PX 10 FIELDS 1 f v");
    client.says(&mut server, "GET k");
    client.says(&mut server, "HGETALL h");
    server.clock.advance_ms(10);
    assert_eq!(server.say("EXISTS k h"), "0");
    assert_eq!(client.mail(), [invalidation("k"), invalidation("h")]);
    // What it finds expired itself is no change of its own.
    server.say("SET k v PX 10");
    client.says(&mut server, "GET k");
    server.clock.advance_ms(10);
    client.says(&mut server, "GET k");
    assert_eq!(client.session.own_messages.len(), 1);
}

#[test]
fn exchanged_databases_are_invalidated() {
    let mut server = TestServer::new();
    let (client, other) = (reader(&mut server, ""), reader(&mut server, "BCAST PREFIX x"));
    server.say("SWAPDB 0 1");
    for client in [&client, &other] {
        assert_eq!(client.mail(), [">[\"invalidate\", nil]"]);
    }
}

/// A client that another one redirects to got nothing more when it was moved to another loop.
#[test]
fn a_client_that_others_redirect_to_keeps_its_mailbox() {
    let mut clients = TestClients::of(2);
    let id = clients.say(1, "CLIENT ID");
    clients.say(1, "HELLO 3");
    assert!(!clients.may_get_letters(1));
    assert_eq!(clients.say(0, &format!("CLIENT TRACKING ON REDIRECT {id}")), "+OK");
    assert!(clients.may_get_letters(0) && clients.may_get_letters(1));
    clients.say(0, "GET k");
    clients.say(0, "SET k v");
    assert_eq!(clients.read(1), invalidation("k"));
}

/// Who tracks all keys is notified of what a call changes that had begun before, and took its locks
/// after.
#[test]
fn a_call_looks_who_tracks_all_keys_when_it_has_its_locks() {
    let mut server = TestServer::new();
    let node = server.worker.node.clone();
    let mut effects = russet_engine::keys::Effects::default();
    let known = [russet_engine::keys::KnownKey { key: b"k", location: node.keyspace.locate(b"k") }];
    let mut keys =
        node.keyspace.keys(node.keyspace.lock_none(), &mut effects, (0, server.worker.now));
    keys.know(&known);
    let client = reader(&mut server, "BCAST");
    assert_eq!(keys.hold_known_now(), 1);
    keys.prefetch_held(1, russet_engine::keys::Fetch::Whole);
    keys.put_string(b"k", b"v", None);
    keys.wrote(b"k", russet_engine::event::Event::DEL);
    crate::call::invoke::publish_effects(&mut keys, &node);
    drop(keys);
    assert_eq!(client.mail(), [invalidation("k")]);
}

/// A message that a client had sent itself stayed with the worker, for whoever came next, if the
/// same call had ended its subscription.
#[test]
fn messages_of_a_client_are_not_left_for_another() {
    let mut clients = TestClients::of(2);
    for who in 0..2 {
        clients.say(who, "HELLO 3");
        clients.say(who, "SUBSCRIBE own");
    }
    clients.say(1, "UNSUBSCRIBE own");
    clients.say(1, "SUBSCRIBE other");
    for line in ["MULTI", "PUBLISH own secret", "UNSUBSCRIBE own"] {
        clients.say(0, line);
    }
    let replies = clients.say(0, "EXEC");
    assert!(replies.contains("secret"), "{replies}");
    assert_eq!(clients.say(1, "PING"), "+PONG");
}

/// A writer with NOLOOP was not notified of what its call had changed on behalf of a client that it
/// served, nor of what was evicted to make room for it: it kept old values.
#[test]
fn noloop_is_about_own_changes_only() {
    let mut server = TestServer::new();
    let (mut writer, mut waiter) = (reader(&mut server, "NOLOOP"), reader(&mut server, "NOLOOP"));
    for client in [&mut writer, &mut waiter] {
        client.says(&mut server, "LRANGE {l}to 0 -1");
    }
    waiter.says(&mut server, "BLMOVE {l}from {l}to LEFT LEFT 0");
    writer.says(&mut server, "RPUSH {l}from x");
    assert_eq!(writer.session.own_messages.len(), 1);
    assert!(!waiter.mail().iter().any(|letter| letter.contains("invalidate")));
    server.say("SET k v");
    writer.says(&mut server, "GET k");
    server.say("CONFIG SET maxmemory-policy allkeys-random");
    server.say("CONFIG SET maxmemory 1");
    let args: OwnedArgs = ["GET", "other"].iter().collect();
    let mut out = Output::default();
    let mut sink = russet_protocol::RespWriter::new(&mut out, writer.session.resp);
    server.worker.run(&mut writer.session, args.as_args(), &mut sink);
    let shown = String::from_utf8_lossy(&out.bytes_from(0)).into_owned();
    assert!(shown.contains("invalidate") && shown.ends_with("_\r\n"), "{shown}");
}

/// What XREAD had read after a wait was not remembered.
#[test]
fn a_read_that_was_served_is_remembered() {
    let mut server = TestServer::new();
    let mut client = reader(&mut server, "OPTIN");
    for _ in 0..2 {
        client.says(&mut server, "CLIENT CACHING YES");
        client.says(&mut server, "XREAD BLOCK 0 STREAMS s t $ $");
        server.say("XADD s * f v");
        assert_eq!(totals(&server), (2, 2));
        // Its client would do this when the reply comes.
        client.session.hold = crate::call::client::Hold::None;
        client.session.end_caching(Some(russet_catalog::Command::Xread));
        client.letters();
        server.say("XADD s * f v");
        assert_eq!(client.mail(), [invalidation("s")]);
    }
    client.says(&mut server, "XREAD BLOCK 0 STREAMS s $");
    server.say("XADD s * f v");
    assert_eq!(totals(&server), (1, 1), "only what CLIENT CACHING was called for");
}

/// CLIENT CACHING counted for the command behind one that was refused, or that had waited.
#[test]
fn caching_is_for_one_command_however_it_ends() {
    let mut clients = TestClients::of(2);
    clients.say(0, "HELLO 3");
    clients.say(0, "CLIENT TRACKING ON OPTIN");
    for refused in ["NOSUCH", "GET", "INCR l"] {
        clients.say(1, "RPUSH l x");
        clients.say(0, "CLIENT CACHING YES");
        assert!(clients.say(0, refused).contains("ERR") || refused == "INCR l");
        assert!(!clients.say(0, "CLIENT TRACKINGINFO").contains("caching-yes"), "{refused}");
    }
    clients.say(0, "CLIENT CACHING YES");
    assert_eq!(clients.say(0, "BLPOP none 0"), "(blocked)");
    clients.say(1, "RPUSH none x");
    assert_eq!(clients.read(0), "[\"none\", \"x\"]");
    assert!(!clients.say(0, "CLIENT TRACKINGINFO").contains("caching-yes"));
}

/// An invalidation that a blocking call causes itself waited until the call was served.
#[test]
fn a_call_that_waits_sends_its_invalidations_at_once() {
    let mut clients = TestClients::of(1);
    clients.say(0, "HELLO 3");
    clients.say(0, "CLIENT TRACKING ON");
    clients.say(0, "SET l x PX 10");
    clients.say(0, "GET l");
    clients.advance_ms(20);
    assert_eq!(clients.say_and_show(0, "BLPOP l 0"), invalidation("l"));
}

/// Of a script that only reads, what its commands read is remembered, not all keys that it has.
#[test]
fn keys_of_scripts_are_those_of_their_commands() {
    let mut server = TestServer::new();
    let mut client = reader(&mut server, "");
    client.says(&mut server, "EVAL_RO return(redis.call('get',KEYS[1])) 2 a b");
    assert_eq!(totals(&server), (1, 1));
}

/// To compare each prefix with each other took seconds for a few ten thousand of them, and they
/// were no part of the client's memory.
#[test]
fn many_prefixes_are_compared_with_their_neighbours_and_counted() {
    let mut server = TestServer::new();
    let mut client = reader(&mut server, "BCAST PREFIX start");
    let prefixes: Vec<String> = (0..20_000).map(|at| format!("PREFIX {at:06}:")).collect();
    let before = client.session.card.memory_bytes();
    let line = format!("CLIENT TRACKING ON BCAST {}", prefixes.join(" "));
    assert_eq!(client.says(&mut server, &line), ["+OK"]);
    assert!(client.session.card.memory_bytes() - before > 20_000 * 200);
    for overlap in ["01", "019999:x", "start", "st"] {
        let line = format!("CLIENT TRACKING ON BCAST PREFIX {overlap}");
        let reply = client.says(&mut server, &line).concat();
        assert!(reply.contains("overlaps with an existing prefix"), "{overlap}: {reply}");
    }
    let line = "CLIENT TRACKING ON BCAST PREFIX y PREFIX z PREFIX ya";
    let reply = client.says(&mut server, line).concat();
    assert!(reply.contains("overlaps with another provided prefix"), "{reply}");
    assert_eq!(server.worker.node.tracking.prefixes_len(), 20_001);
    client.says(&mut server, "CLIENT TRACKING OFF");
    assert_eq!(server.worker.node.tracking.prefixes_len(), 0);
    assert!(client.session.card.memory_bytes() < before);
}

/// Changes beside the data of a stream can be seen in replies, too.
#[test]
fn what_a_group_does_is_a_change_of_the_stream() {
    let mut server = TestServer::new();
    let mut client = reader(&mut server, "");
    server.say("XADD s 1-1 f v");
    let changes = [
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c STREAMS s >",
        "XCLAIM s g d 0 1-1",
        "XACK s g 1-1",
        "XGROUP DESTROY s g",
        "XSETID s 2-1",
    ];
    for change in changes {
        client.says(&mut server, "XINFO STREAM s FULL");
        server.say(change);
        assert_eq!(client.mail(), [invalidation("s")], "{change}");
    }
}

/// With `appendfsync always` nobody learns of a change before it is durable.
#[test]
fn invalidations_wait_until_the_change_is_durable() {
    let mut clients = TestClients::of(2);
    clients.node().keyspace.journal().set_mode(JournalMode::Strict);
    clients.node().keyspace.set_recording(true);
    let sync = |clients: &TestClients| {
        let journal = clients.node().keyspace.journal();
        journal.set_durable(journal.offset(), 0);
    };
    clients.say(0, "HELLO 3");
    clients.say(0, "CLIENT TRACKING ON");
    assert_eq!(clients.say_and_send(0, "GET k"), "nil");
    assert_eq!(clients.say_and_send(1, "SET k 1"), "(held)");
    assert_eq!(clients.read(0), "(none)");
    sync(&clients);
    assert_eq!(clients.read(0), invalidation("k"));
    assert_eq!(clients.say_and_send(0, "GET k"), "\"1\"");
    assert_eq!(clients.say_and_send(0, "SET k 2"), "(held)");
    assert_eq!(clients.read(0), "(none)", "its own comes with the reply");
}

#[test]
fn every_prefix_of_a_key_is_found_and_no_other() {
    let mut random = Random::from_seed(7);
    let word = |random: &mut Random, len_max: usize| -> Box<[u8]> {
        (0..random.index(len_max + 1)).map(|_| b'a' + random.index(2) as u8).collect()
    };
    for _ in 0..200 {
        let prefixes: Prefixes =
            (0..random.index(20)).map(|at| (word(&mut random, 5), [at as u64].into())).collect();
        let key = word(&mut random, 6);
        let mut found: Vec<u64> = Vec::new();
        for_each_prefix(&prefixes, &key, &mut |_, clients| found.extend(clients));
        let all = prefixes.iter().filter(|(prefix, _)| key.starts_with(prefix));
        let expected: Vec<u64> = all.flat_map(|(_, clients)| clients).copied().collect();
        found.reverse();
        assert_eq!(found, expected, "{key:?} in {prefixes:?}");
    }
}
