//! A server without sockets for a few clients, whose replies are read back from their bytes.

use russet_base::hash::KeyHasher;
use russet_base::{ManualClock, OwnedArgs, UnixMillis};
use russet_commands::blocking::GiveUp;
use russet_commands::client::{After, Client};
use russet_commands::clients::ClientCard;
use russet_commands::config::{Config, Directive, Startup};
use russet_commands::dispatch::{Progress, Worker};
use russet_commands::mail::{Letter, Mailbox};
use russet_commands::node::{AllocatorReport, Host, Node};
use russet_commands::session::ReplyMode;
use russet_engine::keyspace::Keyspace;
use russet_protocol::{Output, Value, decode};
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
struct Inbox(Mutex<VecDeque<Letter>>);

impl Inbox {
    fn take(&self) -> Option<Letter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Mailbox for Inbox {
    fn post(&self, letter: Letter) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(letter);
    }
}

struct Connected {
    client: Client,
    inbox: Arc<Inbox>,
}

pub struct Stage {
    pub clock: Arc<ManualClock>,
    worker: Worker,
    clients: Vec<Connected>,
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
        let mut stage = Stage { clock, worker, clients: Vec::new() };
        for _ in 0..=guests {
            let newcomer = stage.newcomer();
            stage.clients.push(newcomer);
        }
        stage
    }

    fn newcomer(&self) -> Connected {
        let node = &self.worker.node;
        let (id, address) = (node.clients.next_id(), || "127.0.0.1:1".to_owned());
        let card = ClientCard::new(id, address(), address(), 3, self.worker.now.0);
        let inbox = Arc::new(Inbox::default());
        Connected { client: Client::new(node, card, inbox.clone(), false), inbox }
    }

    /// Runs one call of a client, unless it is blocked, and reads the mail of all.
    pub fn run(&mut self, who: usize, words: &[Vec<u8>]) {
        if words.is_empty() {
            return;
        }
        if self.clients[who].client.may_run() {
            let args: OwnedArgs = words.iter().collect();
            self.execute(who, &args);
        }
        for index in 0..self.clients.len() {
            self.read_mail(index);
        }
        if self.clients[who].client.session.is_closing {
            self.replace(who);
        }
    }

    /// What the stage's own client is answered.
    pub fn ask(&mut self, words: &[&[u8]]) -> Value {
        let own = self.clients.len() - 1;
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
        let own = self.clients.len() - 1;
        self.clients[own].client.session.db = db;
    }

    /// Whatever came of a call is whole replies, nothing more and nothing less.
    fn execute(&mut self, who: usize, args: &OwnedArgs) -> Vec<Value> {
        let client = &mut self.clients[who].client;
        let is_answered = client.session.reply_mode == ReplyMode::On;
        let mut out = Output::default();
        self.worker.read_clock();
        self.worker.begin_batch();
        let progress = client.run(&mut self.worker, args.as_args(), &mut out);
        self.worker.end_batch();
        match progress {
            // CLIENT REPLY OFF and SKIP are the only commands without an answer.
            Progress::Done if !is_answered || client.session.reply_mode != ReplyMode::On => {}
            Progress::Done => assert!(!out.is_empty(), "no answer to {}", shown(args)),
            Progress::Blocked => assert!(out.is_empty(), "a client that waits is told nothing"),
            Progress::Busy => panic!("one thread can't find a shard busy"),
        }
        whole_replies(&out.bytes_from(0))
    }

    fn read_mail(&mut self, who: usize) {
        while let Some(letter) = self.clients[who].inbox.take() {
            let is_answer = matches!(letter, Letter::Served { .. } | Letter::Unblock { .. });
            let mut out = Output::default();
            let client = &mut self.clients[who].client;
            let is_answered = is_answer && client.session.reply_mode == ReplyMode::On;
            match client.letter(&mut self.worker, letter, &mut out) {
                After::Continue => {
                    let replies = whole_replies(&out.bytes_from(0)).len();
                    assert!(!is_answered || replies == 1, "a call that waited has one reply");
                }
                After::Close if who + 1 < self.clients.len() => self.replace(who),
                After::Wait | After::Close => drop(whole_replies(&out.bytes_from(0))),
            }
        }
        self.clients[who].client.end_turn();
    }

    /// The time of a blocked client is over.
    pub fn time_out(&mut self, who: usize) {
        let mut out = Output::default();
        let client = &mut self.clients[who].client;
        let is_answered = client.session.reply_mode == ReplyMode::On;
        let after = client.give_up(&mut self.worker, GiveUp::TimedOut, &mut out);
        if after == After::Continue && is_answered {
            assert_eq!(
                whole_replies(&out.bytes_from(0)).len(),
                1,
                "a client that gives up is told so"
            );
        }
    }

    /// The client disconnects, and another comes in its place.
    pub fn replace(&mut self, who: usize) {
        self.clients[who].client.disconnect(&self.worker.node);
        self.clients[who] = self.newcomer();
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
