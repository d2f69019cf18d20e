//! Several clients that publish and listen.

use super::hub::{Space, Subscriber};
use super::subscribe::end_if_revoked;
use crate::call::mail::{Letter, Mailbox};
use crate::groups::connection::disconnect;
use crate::node::Node;
use crate::testing::{TestClient, TestServer};
use russet_base::UnixMillis;
use russet_engine::store::shard_set::ShardSet;
use std::sync::{Arc, Mutex};

fn server_and_client() -> (TestServer, TestClient) {
    let server = TestServer::new();
    let client = TestClient::of(&server);
    (server, client)
}

#[test]
fn messages_reach_channels_and_patterns() {
    let (mut server, mut client) = server_and_client();
    let confirmed = client.says(&mut server, "SUBSCRIBE news news weather");
    let expected = [
        "[\"subscribe\", \"news\", 1]",
        "[\"subscribe\", \"news\", 1]",
        "[\"subscribe\", \"weather\", 2]",
    ];
    assert_eq!(confirmed, expected);
    assert_eq!(client.says(&mut server, "PSUBSCRIBE n*"), ["[\"psubscribe\", \"n*\", 3]"]);
    assert_eq!(server.say("PUBLISH news hi"), "2", "once by name, once by pattern");
    let mail = client.mail();
    assert_eq!(
        mail,
        ["[\"message\", \"news\", \"hi\"]", "[\"pmessage\", \"n*\", \"news\", \"hi\"]"]
    );
    assert_eq!(server.say("PUBLISH sport hi"), "0");
    assert_eq!(server.say("SPUBLISH news hi"), "0", "shard channels are a space of their own");
    assert_eq!(server.say("PUBSUB NUMSUB news sport"), "[\"news\", 1, \"sport\", 0]");
    assert_eq!(server.say("PUBSUB NUMPAT"), "1");
    assert_eq!(server.say("PUBSUB CHANNELS w*"), "[\"weather\"]");
}

#[test]
fn shard_channels_are_counted_apart() {
    let (mut server, mut client) = server_and_client();
    client.says(&mut server, "SUBSCRIBE a");
    assert_eq!(client.says(&mut server, "SSUBSCRIBE s"), ["[\"ssubscribe\", \"s\", 1]"]);
    assert_eq!(server.say("SPUBLISH s m"), "1");
    assert_eq!(client.mail(), ["[\"smessage\", \"s\", \"m\"]"]);
    assert_eq!(client.says(&mut server, "SUNSUBSCRIBE"), ["[\"sunsubscribe\", \"s\", 0]"]);
    assert_eq!(client.says(&mut server, "SUNSUBSCRIBE"), ["[\"sunsubscribe\", nil, 0]"]);
    assert_eq!(server.say("PUBSUB SHARDCHANNELS"), "[]");
}

#[test]
fn a_message_follows_the_protocol_of_the_moment() {
    let (mut server, mut client) = server_and_client();
    client.says(&mut server, "HELLO 3");
    assert_eq!(client.says(&mut server, "SUBSCRIBE a"), [">[\"subscribe\", \"a\", 1]"]);
    server.say("PUBLISH a 1");
    client.says(&mut server, "HELLO 2");
    server.say("PUBLISH a 2");
    assert_eq!(client.mail(), ["dropped", "[\"message\", \"a\", \"2\"]"]);
}

#[test]
fn what_comes_late_is_not_taken_for_a_reply() {
    let (mut server, mut client) = server_and_client();
    client.says(&mut server, "SUBSCRIBE a");
    server.say("PUBLISH a late");
    client.says(&mut server, "UNSUBSCRIBE a");
    assert_eq!(client.mail(), ["dropped"]);
}

#[test]
fn a_subscribed_client_may_do_little_until_it_is_reset() {
    let (mut server, mut client) = server_and_client();
    client.says(&mut server, "SUBSCRIBE a");
    let refused = &client.says(&mut server, "GET k")[0];
    assert!(
        refused.starts_with("-ERR Can\\'t execute \\'get\\': only (P|S)SUBSCRIBE"),
        "{refused}"
    );
    assert_eq!(client.says(&mut server, "PING"), ["[\"pong\", \"\"]"]);
    assert_eq!(client.says(&mut server, "RESET"), ["+RESET"]);
    assert_eq!(client.says(&mut server, "PING"), ["+PONG"]);
    assert_eq!(server.say("PUBSUB NUMSUB a"), "[\"a\", 0]");
}

#[test]
fn inside_a_transaction_only_shard_channels_are_refused() {
    let (mut server, mut client) = server_and_client();
    for line in ["MULTI", "SUBSCRIBE a", "SSUBSCRIBE s"] {
        client.says(&mut server, line);
    }
    let replies = client.says(&mut server, "EXEC").join(" ");
    assert!(replies.contains("[\"subscribe\", \"a\", 1]"), "{replies}");
    assert!(replies.contains("SSUBSCRIBE isn\\'t allowed"), "{replies}");
}

#[test]
fn a_client_that_is_gone_hears_nothing() {
    let (mut server, mut client) = server_and_client();
    client.says(&mut server, "SUBSCRIBE a");
    client.says(&mut server, "PSUBSCRIBE a*");
    client.says(&mut server, "SSUBSCRIBE a");
    let node = server.worker.node.clone();
    disconnect(&node, &mut client.session);
    assert_eq!((server.say("PUBLISH a m"), server.say("SPUBLISH a m")), ("0".into(), "0".into()));
    assert!(client.mail().is_empty() && node.hub.is_silent());
    assert_eq!(node.clients.len(), 1);
}

/// Sees whether a key's shard is locked whenever it gets mail.
struct LockProbe {
    node: Arc<Node>,
    key: &'static [u8],
    seen: Mutex<Vec<bool>>,
}

impl Mailbox for LockProbe {
    fn post(&self, _letter: Letter) {
        let shard = usize::from(self.node.keyspace.locate(self.key).shard);
        let is_locked = self.node.keyspace.try_lock(&ShardSet::one(shard)).is_err();
        self.seen.lock().unwrap().push(is_locked);
    }
}

/// Housekeeping published what had expired after it had let go of the shard, so that the `expired`
/// of a key could follow the `set` that came after it.
#[test]
fn what_expires_is_published_before_the_shard_is_free_again() {
    let mut server = TestServer::new();
    let node = server.worker.node.clone();
    server.say("CONFIG SET notify-keyspace-events KEA");
    server.say("SET k v PX 10");
    server.say("HSETEX k2 PX 10 FIELDS 1 f v");
    for (key, events) in [(&b"k"[..], 1), (b"k2", 2)] {
        let probe = Arc::new(LockProbe { node: node.clone(), key, seen: Mutex::default() });
        let subscriber = Subscriber { card: server.session.card.clone(), mailbox: probe.clone() };
        let channel = [b"__keyspace@0__:".as_slice(), key].concat();
        node.hub.subscribe(Space::Global, &channel, subscriber);
        let shard = usize::from(node.keyspace.locate(key).shard);
        let now = UnixMillis(node.clock.now().0 + 10);
        assert!(!server.worker.expire(shard, (now, 100)));
        assert_eq!(*probe.seen.lock().unwrap(), vec![true; events], "{key:?}");
    }
}

/// A right was taken away between the look at it and the subscription: whoever took it away found
/// nobody who listens, and the client went on listening for good.
#[test]
fn who_begins_to_listen_when_the_right_is_gone_is_ended() {
    let (mut server, mut client) = server_and_client();
    let node = server.worker.node.clone();
    let rules = |rules: &str| -> Vec<Vec<u8>> {
        rules.split(' ').map(|rule| rule.as_bytes().to_vec()).collect()
    };
    let set = |these: &str| node.acl.set_user(b"u", &rules(these), false).map(|_| ()).unwrap();
    set("on nopass +@all &a &b*");
    client.says(&mut server, "AUTH u x");
    client.says(&mut server, "HELLO 3");
    client.says(&mut server, "SUBSCRIBE a");
    client.says(&mut server, "PSUBSCRIBE b*");
    // As if this had come after the look at the rights, with nobody among the listeners yet.
    set("on nopass +@all &c");
    end_if_revoked(&node, &mut client.session);
    assert!(!client.session.is_closing, "it may still hear all of it");
    set("resetchannels &a &c");
    end_if_revoked(&node, &mut client.session);
    assert!(client.session.is_cut_off);
    assert_eq!(server.say("PUBLISH a m"), "0");
    assert_eq!(server.say("PUBLISH b1 m"), "0");
}
