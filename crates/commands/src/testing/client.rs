//! A further client of a [`TestServer`], for tests of what clients do to each other.

use super::TestServer;
use crate::call::mail::{Letter, Mailbox};
use crate::call::session::Session;
use crate::node::clients::ClientCard;
use russet_base::OwnedArgs;
use russet_protocol::{Value, ValueSink, decode};
use std::sync::{Arc, Mutex};

/// Another client of the same server. Its mail is kept for the test to read.
pub(crate) struct TestClient {
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

impl TestClient {
    /// Opens a connection to the test server.
    pub fn of(server: &TestServer) -> Self {
        let node = &server.worker.node;
        let id = node.clients.len() as u64 + 1;
        let (address, local) = (format!("127.0.0.1:{id}"), "127.0.0.1:6379".to_owned());
        let card = Arc::new(ClientCard::new(id, address, local, 3, node.clock.now().0));
        let mail = Arc::new(Mail::default());
        card.attach(mail.clone());
        node.clients.add(card.clone());
        let mut session = Session::new(card, mail.clone());
        session.begin_as_default(&node.acl);
        TestClient { session, mail }
    }

    /// All replies to one command, as [`TestServer::say`] shows them; none if it has to wait.
    pub fn says(&mut self, server: &mut TestServer, line: &str) -> Vec<String> {
        let args: OwnedArgs = line.split(' ').filter(|arg| !arg.is_empty()).collect();
        let mut sink = ValueSink::new(self.session.resp);
        server.worker.read_clock();
        server.worker.begin_batch();
        server.worker.run(&mut self.session, args.as_args(), &mut sink);
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
            Letter::Kill(_) => "kill".to_owned(),
            Letter::Resume(_) => "resume".to_owned(),
            Letter::Unblock { with_error, .. } => format!("unblock {with_error}"),
            _ => "other".to_owned(),
        };
        self.letters().into_iter().map(show).collect()
    }
}
