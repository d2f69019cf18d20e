//! Runs commands inside a test, with a clock that the test moves.

mod client;
mod clients;
mod records;

use crate::call::dispatch::{Progress, Worker};
use crate::call::mail::{Mailbox, NoMailbox};
use crate::call::session::Session;
use crate::node::clients::ClientCard;
use crate::node::config::{Config, Directive};
use crate::node::{BareHost, Host, Node};
use russet_base::hash::KeyHasher;
use russet_base::{ManualClock, OwnedArgs, UnixMillis};
use russet_engine::keyspace::Keyspace;
use russet_persistence::disk::Disk;
use russet_protocol::{Value, ValueSink};
use std::sync::Arc;

pub(crate) use client::TestClient;
pub(crate) use clients::TestClients;

/// Where `enable-debug-command` lets everybody: the second of its names.
const DEBUG_FOR_ALL: i64 = 1;

fn new_session(node: &Node, id: u64, mailbox: Arc<dyn Mailbox>) -> Session {
    let address = || "127.0.0.1:1".to_owned();
    let card = Arc::new(ClientCard::new(id, address(), address(), 3, 0));
    card.attach(mailbox.clone());
    node.clients.add(card.clone());
    let mut session = Session::new(card, mailbox);
    session.begin_as_default(&node.acl);
    session
}

/// A server of one client without sockets.
pub(crate) struct TestServer {
    pub clock: Arc<ManualClock>,
    pub worker: Worker,
    pub session: Session,
}

impl TestServer {
    pub fn new() -> Self {
        Self::with_host(BareHost::default(), KeyHasher::with_seed(7))
    }

    /// A server that keeps its files on this disk, and hashes as nobody before.
    pub fn with_disk(disk: Arc<dyn Disk>, seed: u64) -> Self {
        Self::with_host(BareHost { disk: Some(disk) }, KeyHasher::with_seed(seed))
    }

    /// A server with these settings.
    pub fn with_config(config: Config) -> Self {
        Self::with_all(config, BareHost::default(), KeyHasher::with_seed(7))
    }

    fn with_host(host: BareHost, hasher: KeyHasher) -> Self {
        Self::with_all(Config::default(), host, hasher)
    }

    fn with_all(config: Config, host: BareHost, hasher: KeyHasher) -> Self {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        Self::with_clock(clock, (config, Box::new(host)), hasher)
    }

    pub(crate) fn with_clock(
        clock: Arc<ManualClock>,
        (config, host): (Config, Box<dyn Host>),
        hasher: KeyHasher,
    ) -> Self {
        let keyspace = Keyspace::new(64, 16, hasher);
        config.replace_int(Directive::EnableDebugCommand, DEBUG_FOR_ALL);
        let node = Arc::new(Node::new(config, keyspace, clock.clone(), host));
        node.durability.set_node(&node);
        let session = new_session(&node, 1, Arc::new(NoMailbox));
        TestServer { clock, worker: Worker::new(node), session }
    }

    /// The reply to one command, or None if the client is blocked now.
    pub fn try_run<W: AsRef<[u8]>>(&mut self, call: &[W]) -> Option<Value> {
        let args: OwnedArgs = call.iter().collect();
        self.worker.read_clock();
        self.worker.begin_batch();
        loop {
            let mut sink = ValueSink::new(self.session.resp);
            match self.worker.run(&mut self.session, args.as_args(), &mut sink) {
                Progress::Done => return sink.into_value(),
                Progress::Blocked => return None,
                // A snapshot under way has the shard for a moment, or the call waits for one.
                Progress::Busy => std::thread::yield_now(),
            }
        }
    }

    pub fn run<W: AsRef<[u8]>>(&mut self, call: &[W]) -> Value {
        self.try_run(call).expect("the command does not block")
    }

    /// The reply as one line: `OK`, `(integer)`, arrays in brackets.
    pub fn say(&mut self, line: &str) -> String {
        let args: Vec<&str> = line.split(' ').filter(|arg| !arg.is_empty()).collect();
        self.run(&args).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::TestServer;

    #[test]
    fn a_value_is_read_back() {
        let mut server = TestServer::new();
        assert_eq!(server.say("SET k v"), "+OK");
        assert_eq!(server.say("GET k"), "\"v\"");
        assert_eq!(server.say("DEL k k"), "1");
    }
}
