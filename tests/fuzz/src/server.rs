//! A server without sockets for a few clients, whose replies are read back from their bytes.

use russet_base::hash::KeyHasher;
use russet_base::{Args, ManualClock, OwnedArgs, UnixMillis};
use russet_commands::call::blocking::GiveUp;
use russet_commands::call::client::{After, Client};
use russet_commands::call::dispatch::{Progress, Worker};
use russet_commands::call::mail::{Letter, Mailbox};
use russet_commands::call::session::ReplyMode;
use russet_commands::node::clients::{ClientCard, ClientFlags};
use russet_commands::node::config::{Config, Startup};
use russet_commands::node::{BareHost, Node};
use russet_engine::keyspace::Keyspace;
use russet_protocol::{Output, Value, decode};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

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

pub(crate) struct Connected {
    pub(crate) client: Client,
    inbox: Arc<Inbox>,
    /// The transaction holds a call that is answered for each channel.
    queues_channels: bool,
}

pub struct FuzzServer {
    pub clock: Arc<ManualClock>,
    pub(crate) worker: Worker,
    pub(crate) clients: Vec<Connected>,
}

impl FuzzServer {
    /// `clients_len` clients, and one more of the server's own that asks about the outcome.
    pub fn new(clients_len: usize) -> FuzzServer {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        // The smallest limit, so that no string of half a gigabyte is made.
        let args = ["--proto-max-bulk-len", "1mb", "--enable-debug-command", "yes"];
        let args = args.map(OsString::from);
        let config = match Startup::parse(&args) {
            Ok(Startup::Run(config)) => *config,
            _ => Config::default(),
        };
        let keyspace = Keyspace::new(8, 16, KeyHasher::with_seed(11));
        let node = Arc::new(Node::new(config, keyspace, clock.clone(), Box::<BareHost>::default()));
        let worker = Worker::new(node);
        let mut server = FuzzServer { clock, worker, clients: Vec::new() };
        for _ in 0..=clients_len {
            let newcomer = server.newcomer();
            server.clients.push(newcomer);
        }
        server
    }

    fn newcomer(&self) -> Connected {
        let node = &self.worker.node;
        let (id, address) = (node.clients.next_id(), || "127.0.0.1:1".to_owned());
        let card = ClientCard::new(id, address(), address(), 3, self.worker.now.0);
        let inbox = Arc::new(Inbox::default());
        let client = Client::new(node, card, inbox.clone());
        Connected { client, inbox, queues_channels: false }
    }

    /// Runs one call of a client, unless it is blocked, and reads the mail of all. A call that is
    /// refused leaves the data as it was.
    pub fn run(&mut self, who: usize, args: &[Vec<u8>]) {
        if args.is_empty() || !self.clients[who].client.may_run() {
            return;
        }
        let args: OwnedArgs = args.iter().collect();
        let before = self.digest();
        let replies = self.execute(who, &args);
        let is_refused = matches!(replies.first(), Some(Value::Error(_)));
        if is_refused && !runs_others(args.as_args()) {
            assert_eq!(self.digest(), before, "refused: {}", shown(&args));
        }
        self.end_turn(who);
    }

    /// Of all that the server holds: exact expiry, groups, requests and functions, too.
    pub(crate) fn digest(&mut self) -> Value {
        let digest = self.ask(&[b"DEBUG", b"DIGEST", b"FULL"]);
        assert!(!matches!(digest, Value::Error(_)), "{digest:?}");
        digest
    }

    /// Everyone reads their mail, and a client that was closed is replaced.
    pub(crate) fn end_turn(&mut self, who: usize) {
        for index in 0..self.clients.len() {
            self.read_mail(index);
        }
        if self.clients[who].client.session.is_closing {
            self.replace(who);
        }
    }

    /// What the server's own client is answered.
    pub fn ask(&mut self, args: &[&[u8]]) -> Value {
        let own = self.clients.len() - 1;
        let args: OwnedArgs = args.iter().collect();
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
        let replies = whole_replies(&out.bytes_from(0));
        check_count(&mut self.clients[who], is_answered, (progress, args.as_args()), &replies);
        replies
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

/// Exactly one reply to each call, unless it waits, or CLIENT REPLY says otherwise, or it is one of
/// those that are answered for each channel, as peers do even inside EXEC. Behind the reply a
/// monitor gets the lines of its own calls.
pub(crate) fn check_count(
    connected: &mut Connected,
    was_answered: bool,
    (progress, args): (Progress, Args),
    replies: &[Value],
) {
    let is_answered = was_answered && connected.client.session.reply_mode == ReplyMode::On;
    let name = args.get(0).unwrap_or_default().to_ascii_uppercase();
    let is_of_channels = name.ends_with(b"SUBSCRIBE");
    let is_queued = matches!(replies, [Value::Status(text)] if text == b"QUEUED");
    connected.queues_channels |= is_of_channels && is_queued;
    let is_monitor = connected.client.session.card.has_flag(ClientFlags::MONITOR);
    let may_be_many = is_monitor
        || is_of_channels
        || (name == b"EXEC" && std::mem::take(&mut connected.queues_channels));
    let count = replies.len();
    let is_right = match progress {
        Progress::Done if !is_answered => true,
        Progress::Done if may_be_many => count >= 1,
        Progress::Done => count == 1,
        Progress::Blocked => count == 0 || is_monitor,
        Progress::Busy => panic!("one thread can't find a shard busy"),
    };
    assert!(is_right, "{progress:?}, {count} replies to {}: {replies:?}", shown_args(args));
}

/// Calls whose error may come after the effect of another call.
pub(crate) fn runs_others(args: Args) -> bool {
    let name = args.get(0).unwrap_or_default().to_ascii_uppercase();
    name.starts_with(b"EVAL") || name.starts_with(b"FCALL") || name == b"EXEC" || name == b"ONCE"
}

fn shown(args: &OwnedArgs) -> String {
    shown_args(args.as_args())
}

fn shown_args(args: Args) -> String {
    args.iter().map(|arg| format!("\"{}\" ", arg.escape_ascii())).collect()
}

pub(crate) fn whole_replies(mut bytes: &[u8]) -> Vec<Value> {
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
