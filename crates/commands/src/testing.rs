//! Runs commands inside a test, with a clock that the test moves.

use crate::clients::ClientCard;
use crate::config::{Config, Directive};
use crate::dispatch::{Progress, Worker};
use crate::mail::{Letter, Mailbox, NoMailbox};
use crate::node::{AllocatorReport, Host, Node};
use crate::session::Session;
use russet_base::hash::KeyHasher;
use russet_base::{ManualClock, OwnedArgs, UnixMillis};
use russet_engine::keyspace::Keyspace;
use russet_protocol::{Value, ValueSink, decode};
use std::sync::{Arc, Mutex};

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

/// A server of one client without sockets.
pub(crate) struct Desk {
    pub clock: Arc<ManualClock>,
    pub worker: Worker,
    pub session: Session,
}

impl Desk {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        let keyspace = Keyspace::new(64, 16, KeyHasher::with_seed(7));
        let node =
            Arc::new(Node::new(Config::default(), keyspace, clock.clone(), Box::new(NoHost)));
        let address = || "127.0.0.1:1".to_owned();
        let card = Arc::new(ClientCard::new(1, address(), address(), 3, 0));
        node.clients.add(card.clone());
        let session = Session::new(card, Arc::new(NoMailbox), false);
        Desk { clock, worker: Worker::new(node), session }
    }

    /// The reply to one command, or None if the client is blocked now.
    pub fn try_run<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Option<Value> {
        let args: OwnedArgs = words.iter().collect();
        let mut sink = ValueSink::new(self.session.resp);
        self.worker.begin_batch();
        match self.worker.run(&mut self.session, args.as_args(), &mut sink) {
            Progress::Done => sink.into_value(),
            Progress::Blocked => None,
            Progress::Busy => panic!("one client cannot find a shard busy"),
        }
    }

    pub fn run<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        self.try_run(words).expect("the command does not block")
    }

    /// The reply as one line: `OK`, `(integer)`, arrays in brackets.
    pub fn say(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        self.run(&words).to_string()
    }
}

/// Another client of the same server. Its mail is kept for the test to read.
pub(crate) struct Guest {
    pub session: Session,
    mail: Arc<Mail>,
}

#[derive(Default)]
struct Mail(Mutex<Vec<Letter>>);

impl Mailbox for Mail {
    fn post(&self, letter: Letter) {
        self.0.lock().expect("no test panics while it posts").push(letter);
    }
}

impl Guest {
    /// Opens a connection to the desk's server.
    pub fn of(desk: &Desk) -> Self {
        let node = &desk.worker.node;
        let id = node.clients.len() as u64 + 1;
        let (address, local) = (format!("127.0.0.1:{id}"), "127.0.0.1:6379".to_owned());
        let card = Arc::new(ClientCard::new(id, address, local, 3, node.clock.now().0));
        let mail = Arc::new(Mail::default());
        card.attach(mail.clone());
        node.clients.add(card.clone());
        let session = Session::new(card, mail.clone(), false);
        Guest { session, mail }
    }

    /// All replies to one command, as [`Desk::say`] shows them; none if it has to wait.
    pub fn says(&mut self, desk: &mut Desk, line: &str) -> Vec<String> {
        let args: OwnedArgs = line.split(' ').filter(|word| !word.is_empty()).collect();
        let mut sink = ValueSink::new(self.session.resp);
        desk.worker.begin_batch();
        desk.worker.run(&mut self.session, args.as_args(), &mut sink);
        sink.into_values().iter().map(Value::to_string).collect()
    }

    pub fn letters(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.mail.0.lock().expect("no test panics while it reads"))
    }

    /// What was pushed to it since the last look, and what else came by its name.
    pub fn mail(&self) -> Vec<String> {
        let show = |letter: Letter| match letter {
            Letter::Push(bytes) if !self.session.takes_push(&bytes) => "dropped".to_owned(),
            Letter::Push(bytes) => match decode(&bytes) {
                Ok(Some((value, _))) => value.to_string(),
                other => format!("{other:?}"),
            },
            Letter::Kill => "kill".to_owned(),
            Letter::Resume => "resume".to_owned(),
            Letter::Unblock { with_error } => format!("unblock {with_error}"),
            _ => "other".to_owned(),
        };
        self.letters().into_iter().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Desk;

    #[test]
    fn a_value_is_read_back() {
        let mut desk = Desk::new();
        assert_eq!(desk.say("SET k v"), "+OK");
        assert_eq!(desk.say("GET k"), "\"v\"");
        assert_eq!(desk.say("DEL k k"), "1");
    }
}
