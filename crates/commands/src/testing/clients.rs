//! Several clients of one server, each with a mailbox that the test empties by hand.

use super::TestServer;
use crate::call::blocking::GiveUp;
use crate::call::client::{After, Client};
use crate::call::dispatch::Progress;
use crate::call::mail::{Letter, Mailbox};
use crate::node::Node;
use crate::node::clients::ClientCard;
use crate::node::config::Config;
use russet_base::OwnedArgs;
use russet_engine::event::EventClasses;
use russet_engine::keyspace::Location;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::{Output, decode};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Inbox(Mutex<VecDeque<Letter>>);

impl Mailbox for Inbox {
    fn post(&self, letter: Letter) {
        self.0.lock().unwrap().push_back(letter);
    }
}

struct Connected {
    client: Client,
    inbox: Arc<Inbox>,
    /// What [`TestClients::say_and_send`] has not sent.
    out: Output,
}

/// A server of several clients without sockets. Clients are numbered from 0.
pub(crate) struct TestClients {
    server: TestServer,
    clients: Vec<Connected>,
}

impl TestClients {
    pub fn of(count: u64) -> Self {
        Self::on(TestServer::new(), count)
    }

    pub fn with_config(count: u64, config: Config) -> Self {
        Self::on(TestServer::with_config(config), count)
    }

    pub fn on(server: TestServer, count: u64) -> Self {
        let connect = |id: u64| {
            let address = || "127.0.0.1:1".to_owned();
            let card = ClientCard::new(id + 2, address(), address(), 3, 0);
            let inbox = Arc::new(Inbox::default());
            let mut client = Client::new(&server.worker.node, card, inbox.clone());
            client.session.begin_as_default(&server.worker.node.acl);
            Connected { client, inbox, out: Output::default() }
        };
        let clients = (0..count).map(connect).collect();
        TestClients { server, clients }
    }

    /// One client's replies as one line, `(blocked)`, or `(busy)` if it is to be said again.
    pub fn say(&mut self, who: usize, line: &str) -> String {
        let args: OwnedArgs = line.split(' ').filter(|arg| !arg.is_empty()).collect();
        let mut out = Output::default();
        self.server.worker.read_clock();
        self.server.worker.begin_batch();
        let client = &mut self.clients[who].client;
        match client.run(&mut self.server.worker, args.as_args(), &mut out) {
            Progress::Done => shown(&out.bytes_from(0)),
            Progress::Blocked => "(blocked)".to_owned(),
            Progress::Busy => "(busy)".to_owned(),
        }
    }

    /// As [`TestClients::say`], with what is sent though the call waits.
    pub fn say_and_show(&mut self, who: usize, line: &str) -> String {
        let args: OwnedArgs = line.split(' ').collect();
        let mut out = Output::default();
        self.server.worker.read_clock();
        self.server.worker.begin_batch();
        self.clients[who].client.run(&mut self.server.worker, args.as_args(), &mut out);
        shown(&out.bytes_from(0))
    }

    pub fn advance_ms(&mut self, ms: u64) {
        self.server.clock.advance_ms(ms);
    }

    /// As [`TestClients::say`], and sends what may be sent: the last reply of it, or `(held)`.
    pub fn say_and_send(&mut self, who: usize, line: &str) -> String {
        let args: OwnedArgs = line.split(' ').filter(|arg| !arg.is_empty()).collect();
        let worker = &mut self.server.worker;
        worker.read_clock();
        worker.begin_batch();
        let Connected { client, out, .. } = &mut self.clients[who];
        let before = out.len();
        let progress = client.run(worker, args.as_args(), out);
        client.hold_output(&worker.node, out);
        match progress {
            Progress::Done if out.sendable_bytes() < out.unsent_bytes() => "(held)".to_owned(),
            Progress::Done => {
                let reply = shown(&out.bytes_from(before));
                out.advance(out.unsent_bytes());
                reply
            }
            Progress::Blocked => "(blocked)".to_owned(),
            Progress::Busy => "(busy)".to_owned(),
        }
    }

    pub fn node(&self) -> &Node {
        &self.server.worker.node
    }

    /// Lets a client read one letter of its mail: the reply that came of it, `(blocked)` if it
    /// waits on, `(ready)` if it can go on, `(none)` without mail.
    pub fn read(&mut self, who: usize) -> String {
        let Connected { client, inbox, .. } = &mut self.clients[who];
        let Some(letter) = inbox.0.lock().unwrap().pop_front() else { return "(none)".to_owned() };
        let mut out = Output::default();
        let was_waiting = !client.may_run();
        match client.letter(&mut self.server.worker, letter, &mut out) {
            After::Close => "(closed)".to_owned(),
            _ if !out.is_empty() => shown(&out.bytes_from(0)),
            After::Continue => "(ready)".to_owned(),
            After::Wait if was_waiting => "(blocked)".to_owned(),
            After::Wait => "(stale)".to_owned(),
        }
    }

    /// What a client does at the end of its turn: those who wait for it go on.
    pub fn end_turn(&mut self, who: usize) {
        self.clients[who].client.end_turn();
    }

    /// Whether a client must keep its mailbox.
    pub fn may_get_letters(&self, who: usize) -> bool {
        self.clients[who].client.may_get_letters()
    }

    /// Whether a client's next command would be run.
    pub fn may_run(&self, who: usize) -> bool {
        self.clients[who].client.may_run()
    }

    /// Ends a client's wait from its own side.
    pub fn give_up(&mut self, who: usize, why: GiveUp) -> String {
        let mut out = Output::default();
        match self.clients[who].client.give_up(&mut self.server.worker, why, &mut out) {
            After::Continue => shown(&out.bytes_from(0)),
            _ => "(too late)".to_owned(),
        }
    }

    /// The client is gone.
    pub fn disconnect(&mut self, who: usize) {
        self.clients[who].client.disconnect(&self.server.worker.node);
    }

    /// Publishes every event of a key from now on.
    pub fn notify_all(&self) {
        self.server.worker.node.keyspace.set_notify_classes(EventClasses(u32::MAX));
    }

    pub fn deadline_ms(&self, who: usize) -> Option<i64> {
        self.clients[who].client.deadline().map(|at| at.0 - self.server.worker.now.0)
    }

    /// Runs `action` while somebody else holds the shard of `key`.
    pub fn while_busy<R>(&mut self, key: &str, action: impl FnOnce(&mut Self) -> R) -> R {
        let Location { shard, .. } = self.node().keyspace.locate(key.as_bytes());
        self.while_shard_is_busy(usize::from(shard), action)
    }

    pub fn while_shard_is_busy<R>(
        &mut self,
        shard: usize,
        action: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let node = self.server.worker.node.clone();
        let _held = node.keyspace.try_lock(&ShardSet::one(shard)).unwrap();
        action(self)
    }

    /// What housekeeping does for those who wait.
    pub fn sweep(&mut self) {
        self.server.worker.sweep();
    }

    /// Whether two keys live in different shards.
    pub fn are_apart(&self, one: &str, other: &str) -> bool {
        let shard = |key: &str| self.server.worker.node.keyspace.locate(key.as_bytes()).shard;
        shard(one) != shard(other)
    }
}

fn shown(mut bytes: &[u8]) -> String {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let (value, len) = decode(bytes).unwrap().expect("replies are whole");
        replies.push(value.to_string());
        bytes = &bytes[len..];
    }
    replies.join(" ")
}
