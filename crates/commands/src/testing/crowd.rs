//! Several clients of one server, each with a mailbox that the test empties by hand.

use super::{Desk, new_session};
use crate::blocking::{self, GiveUp};
use crate::dispatch::Progress;
use crate::mail::{Letter, Mailbox};
use crate::session::Session;
use russet_base::OwnedArgs;
use russet_engine::event::EventClasses;
use russet_engine::keyspace::Place;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::{RespWriter, ValueSink, decode};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Tray(Mutex<VecDeque<Letter>>);

impl Mailbox for Tray {
    fn post(&self, letter: Letter) {
        self.0.lock().unwrap().push_back(letter);
    }
}

struct Guest {
    session: Session,
    mail: Arc<Tray>,
}

/// A server of several clients without sockets. Clients are numbered from 0.
pub(crate) struct Crowd {
    desk: Desk,
    guests: Vec<Guest>,
}

impl Crowd {
    pub fn of(count: u64) -> Self {
        let desk = Desk::new();
        let guest = |id: u64| {
            let mail = Arc::new(Tray::default());
            Guest { session: new_session(&desk.worker.node, id + 2, mail.clone()), mail }
        };
        let guests = (0..count).map(guest).collect();
        Crowd { desk, guests }
    }

    /// One client's reply as one line, or `(blocked)`.
    pub fn say(&mut self, who: usize, line: &str) -> String {
        let args: OwnedArgs = line.split(' ').filter(|word| !word.is_empty()).collect();
        self.run(who, &args)
    }

    fn run(&mut self, who: usize, args: &OwnedArgs) -> String {
        let session = &mut self.guests[who].session;
        let mut sink = ValueSink::new(session.resp);
        self.desk.worker.read_clock();
        self.desk.worker.begin_batch();
        match self.desk.worker.run(session, args.as_args(), &mut sink) {
            Progress::Done => sink.into_value().unwrap().to_string(),
            Progress::Blocked => "(blocked)".to_owned(),
            Progress::Busy => "(busy)".to_owned(),
        }
    }

    /// Lets a client read one letter of its mail: the reply that came of it, `(blocked)` if it
    /// waits on, `(none)` without mail.
    pub fn read(&mut self, who: usize) -> String {
        let guest = &mut self.guests[who];
        let letter = guest.mail.0.lock().unwrap().pop_front();
        let of_state = |waiter: &Arc<_>, session: &Session| {
            session.blocked.as_ref().is_some_and(|state| Arc::ptr_eq(&state.waiter, waiter))
        };
        match letter {
            None => "(none)".to_owned(),
            Some(Letter::Served { waiter, reply }) if of_state(&waiter, &guest.session) => {
                guest.session.blocked = None;
                let (value, len) = decode(&reply).unwrap().unwrap();
                assert_eq!(len, reply.len());
                value.to_string()
            }
            Some(Letter::Push(bytes)) => decode(&bytes).unwrap().unwrap().0.to_string(),
            Some(Letter::Retry(waiter)) if of_state(&waiter, &guest.session) => self.retry(who),
            Some(Letter::ShardFree) if guest.session.blocked.is_some() => self.retry(who),
            Some(_) => "(stale)".to_owned(),
        }
    }

    fn retry(&mut self, who: usize) -> String {
        let args = self.guests[who].session.blocked.as_ref().unwrap().args.clone();
        self.run(who, &args)
    }

    /// Ends a client's wait from its own side.
    pub fn give_up(&mut self, who: usize, why: GiveUp) -> String {
        let mut reply = Vec::new();
        let session = &mut self.guests[who].session;
        let mut writer = RespWriter::new(&mut reply, session.resp);
        if blocking::give_up(session, why, &mut writer).is_none() {
            return "(too late)".to_owned();
        }
        decode(&reply).unwrap().map_or("(gone)".to_owned(), |(value, _)| value.to_string())
    }

    /// Publishes every event of a key from now on.
    pub fn notify_all(&self) {
        self.desk.worker.node.keyspace.set_notify_classes(EventClasses(u32::MAX));
    }

    pub fn deadline_ms(&self, who: usize) -> Option<i64> {
        let state = self.guests[who].session.blocked.as_ref().unwrap();
        state.deadline.map(|at| at.0 - self.desk.worker.now.0)
    }

    /// Runs `action` while somebody else holds the shard of `key`.
    pub fn while_busy<R>(&mut self, key: &str, action: impl FnOnce(&mut Self) -> R) -> R {
        let node = self.desk.worker.node.clone();
        let Place { shard, .. } = node.keyspace.place(key.as_bytes());
        let _held = node.keyspace.try_lock(&ShardSet::one(shard as usize)).unwrap();
        action(self)
    }

    /// What housekeeping does for those who wait.
    pub fn tend(&mut self) {
        self.desk.worker.tend();
    }

    /// Whether two keys live in different shards.
    pub fn are_apart(&self, one: &str, other: &str) -> bool {
        let shard = |key: &str| self.desk.worker.node.keyspace.place(key.as_bytes()).shard;
        shard(one) != shard(other)
    }
}
