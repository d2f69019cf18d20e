//! Runs commands inside a test, with a clock that the test moves.

mod client;
mod clients;
mod records;

use crate::call::dispatch::{Progress, Worker};
use crate::call::mail::{Mailbox, NoMailbox};
use crate::call::session::Session;
use crate::node::clients::ClientCard;
use crate::node::config::{Config, Directive};
use crate::node::{AllocatorReport, Host, Node};
use russet_base::hash::KeyHasher;
use russet_base::{ManualClock, OwnedArgs, UnixMillis};
use russet_engine::keyspace::Keyspace;
use russet_protocol::{Value, ValueSink};
use std::sync::Arc;

pub(crate) use client::TestClient;
pub(crate) use clients::TestClients;

struct NoHost;

impl Host for NoHost {
    fn allocator(&self) -> AllocatorReport {
        AllocatorReport::default()
    }

    fn shut_down(&self) {}

    fn directive_changed(&self, _directive: Directive) -> Result<(), String> {
        Ok(())
    }

    fn threads(&self) -> usize {
        1
    }
}

fn new_session(node: &Node, id: u64, mailbox: Arc<dyn Mailbox>) -> Session {
    let address = || "127.0.0.1:1".to_owned();
    let card = Arc::new(ClientCard::new(id, address(), address(), 3, 0));
    card.attach(mailbox.clone());
    node.clients.add(card.clone());
    Session::new(card, mailbox, false)
}

/// A server of one client without sockets.
pub(crate) struct TestServer {
    pub clock: Arc<ManualClock>,
    pub worker: Worker,
    pub session: Session,
}

impl TestServer {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        let keyspace = Keyspace::new(64, 16, KeyHasher::with_seed(7));
        let node =
            Arc::new(Node::new(Config::default(), keyspace, clock.clone(), Box::new(NoHost)));
        let session = new_session(&node, 1, Arc::new(NoMailbox));
        TestServer { clock, worker: Worker::new(node), session }
    }

    /// The reply to one command, or None if the client is blocked now.
    pub fn try_run<W: AsRef<[u8]>>(&mut self, call: &[W]) -> Option<Value> {
        let args: OwnedArgs = call.iter().collect();
        let mut sink = ValueSink::new(self.session.resp);
        self.worker.read_clock();
        self.worker.begin_batch();
        match self.worker.run(&mut self.session, args.as_args(), &mut sink) {
            Progress::Done => sink.into_value(),
            Progress::Blocked => None,
            Progress::Busy => panic!("one client cannot find a shard busy"),
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
