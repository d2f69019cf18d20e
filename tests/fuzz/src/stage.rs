//! A server without sockets for a few clients, whose replies are read back from their bytes.

use russet_base::hash::KeyHasher;
use russet_base::{ManualClock, OwnedArgs, UnixMillis};
use russet_commands::blocking::{self, GiveUp};
use russet_commands::clients::ClientCard;
use russet_commands::config::{Config, Directive, Startup};
use russet_commands::connection;
use russet_commands::dispatch::{Progress, Worker};
use russet_commands::mail::{Letter, Mailbox};
use russet_commands::node::{AllocatorReport, Host, Node};
use russet_commands::session::{ReplyMode, Session};
use russet_engine::keyspace::Keyspace;
use russet_protocol::{RespWriter, Value, decode};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

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

#[derive(Default)]
struct Tray(Mutex<VecDeque<Letter>>);

impl Tray {
    fn take(&self) -> Option<Letter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Mailbox for Tray {
    fn post(&self, letter: Letter) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(letter);
    }
}

struct Guest {
    session: Session,
    mail: Arc<Tray>,
}

pub struct Stage {
    pub clock: Arc<ManualClock>,
    worker: Worker,
    guests: Vec<Guest>,
}

impl Stage {
    /// `guests` clients, and one more of the stage's own that asks about the outcome.
    pub fn new(guests: usize) -> Stage {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        // The smallest limit, so that no string of half a gigabyte is made.
        let words = ["--proto-max-bulk-len", "1mb"].map(OsString::from);
        let config = match Startup::parse(&words) {
            Ok(Startup::Run(config)) => *config,
            _ => Config::default(),
        };
        let keyspace = Keyspace::new(8, 16, KeyHasher::with_seed(11));
        let node = Arc::new(Node::new(config, keyspace, clock.clone(), Box::new(NoHost)));
        let worker = Worker::new(node);
        let mut stage = Stage { clock, worker, guests: Vec::new() };
        for _ in 0..=guests {
            let guest = stage.newcomer();
            stage.guests.push(guest);
        }
        stage
    }

    fn newcomer(&self) -> Guest {
        let node = &self.worker.node;
        let (id, address) = (node.clients.next_id(), || "127.0.0.1:1".to_owned());
        let card = Arc::new(ClientCard::new(id, address(), address(), 3, self.worker.now.0));
        let mail = Arc::new(Tray::default());
        card.attach(mail.clone());
        node.clients.add(card.clone());
        Guest { session: Session::new(card, mail.clone(), false), mail }
    }

    /// Runs one call of a client, unless it is blocked, and reads the mail of all.
    pub fn run(&mut self, who: usize, words: &[Vec<u8>]) {
        if words.is_empty() {
            return;
        }
        if self.guests[who].session.blocked.is_none() {
            let args: OwnedArgs = words.iter().collect();
            self.execute(who, &args);
        }
        for index in 0..self.guests.len() {
            self.read_mail(index);
        }
        if self.guests[who].session.is_closing {
            self.replace(who);
        }
    }

    /// What the stage's own client is answered.
    pub fn ask(&mut self, words: &[&[u8]]) -> Value {
        let own = self.guests.len() - 1;
        let args: OwnedArgs = words.iter().collect();
        let replies = self.execute(own, &args);
        replies.into_iter().next().unwrap_or(Value::Null)
    }

    /// Keys of a database that have a time to live, those included that are over.
    pub fn volatile_keys(&self, db: usize) -> u64 {
        let gauges = self.worker.node.keyspace.gauges().iter();
        gauges
            .map(|shard| {
                shard.expires[db].load(Ordering::Relaxed)
                    + shard.volatile[db].load(Ordering::Relaxed)
            })
            .sum()
    }

    pub fn select(&mut self, db: usize) {
        let own = self.guests.len() - 1;
        self.guests[own].session.db = db;
    }

    /// Whatever came of a call is whole replies, nothing more and nothing less.
    fn execute(&mut self, who: usize, args: &OwnedArgs) -> Vec<Value> {
        let session = &mut self.guests[who].session;
        let mut out = Vec::new();
        let mut writer = RespWriter::new(&mut out, session.resp);
        self.worker.read_clock();
        self.worker.begin_batch();
        let progress = self.worker.run(session, args.as_args(), &mut writer);
        self.worker.end_batch();
        match progress {
            // CLIENT REPLY OFF and SKIP are the only commands without an answer.
            Progress::Done if session.reply_mode != ReplyMode::On => {}
            Progress::Done => assert!(!out.is_empty(), "no answer to {}", shown(args)),
            Progress::Blocked => assert!(out.is_empty(), "a blocked client is told nothing"),
            Progress::Busy => panic!("one thread can't find a shard busy"),
        }
        whole_replies(&out)
    }

    fn read_mail(&mut self, who: usize) {
        while let Some(letter) = self.guests[who].mail.take() {
            let session = &mut self.guests[who].session;
            let waits_with = |waiter: &Arc<_>| {
                session.blocked.as_ref().is_some_and(|state| Arc::ptr_eq(&state.waiter, waiter))
            };
            match letter {
                Letter::Served { waiter, reply } if waits_with(&waiter) => {
                    session.blocked = None;
                    assert_eq!(whole_replies(&reply).len(), 1, "a served call has one reply");
                }
                Letter::Retry(waiter) if waits_with(&waiter) => self.retry(who),
                Letter::Unblock { waiter, with_error } if waits_with(&waiter) => {
                    let error = GiveUp::UnblockedWithError;
                    self.be_told(who, if with_error { error } else { GiveUp::TimedOut });
                }
                Letter::Kill if who + 1 < self.guests.len() => self.replace(who),
                Letter::Push(bytes) => {
                    whole_replies(&bytes);
                }
                _ => {}
            }
        }
    }

    fn retry(&mut self, who: usize) {
        let state = self.guests[who].session.blocked.as_ref();
        if let Some(args) = state.map(|state| state.args.clone()) {
            self.execute(who, &args);
        }
    }

    /// Ends the wait of a blocked client from its own side.
    pub fn give_up(&mut self, who: usize, why: GiveUp) {
        let mut out = Vec::new();
        let session = &mut self.guests[who].session;
        let mut writer = RespWriter::new(&mut out, session.resp);
        let is_over = blocking::give_up(session, why, &mut writer).is_some();
        if is_over && why != GiveUp::Disconnected {
            assert_eq!(whole_replies(&out).len(), 1, "a client that gives up is told so");
        }
    }

    /// The wait was ended by another client, and claimed by it.
    fn be_told(&mut self, who: usize, why: GiveUp) {
        let mut out = Vec::new();
        let session = &mut self.guests[who].session;
        let mut writer = RespWriter::new(&mut out, session.resp);
        let state = blocking::answer(session, why, &mut writer);
        assert!(state.is_some(), "it was waiting");
        assert_eq!(whole_replies(&out).len(), 1, "a client that is unblocked is told so");
    }

    /// The client disconnects, and another comes in its place.
    pub fn replace(&mut self, who: usize) {
        connection::disconnect(&self.worker.node, &mut self.guests[who].session);
        self.guests[who] = self.newcomer();
    }
}

fn shown(args: &OwnedArgs) -> String {
    let words = args.as_args();
    words.iter().map(|word| format!("\"{}\" ", word.escape_ascii())).collect()
}

fn whole_replies(mut bytes: &[u8]) -> Vec<Value> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        match decode(bytes) {
            Ok(Some((value, length))) => {
                replies.push(value);
                bytes = &bytes[length..];
            }
            other => panic!("not a whole reply: {other:?} at {}", bytes.escape_ascii()),
        }
    }
    replies
}
