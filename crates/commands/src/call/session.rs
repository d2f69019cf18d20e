//! One client's state, as commands see it: nothing of sockets or buffers.

use crate::call::blocking::BlockedState;
use crate::call::client::{AwaitedSync, Hold};
use crate::call::mail::{Mailbox, Pending, Receipt};
use crate::groups::generic::Walk;
use crate::groups::generic::migrate::Migration;
use crate::groups::pubsub::Subscriptions;
use crate::groups::string::large::Ahead;
use crate::groups::transactions::Transaction;
use crate::node::acl::{Acl, Login};
use crate::node::clients::{ClientCard, ClientFlags};
use crate::node::durability::SetBeside;
use crate::node::snapshot::AwaitedSave;
use crate::node::stats::WorkerStats;
use crate::node::tracking::Tracked;
use russet_base::SharedBytes;
use russet_catalog::Command;
use russet_engine::keys::Caller;
use russet_engine::keyspace::{KeyspaceWait, Location};
use russet_engine::watch::WatchFlag;
use russet_protocol::Resp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a command can't simply be run. All false on the ordinary path, so one look is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate(u8);

impl Gate {
    pub const NEEDS_AUTH: Gate = Gate(1);
    pub const IN_MULTI: Gate = Gate(2);
    /// In RESP2 a subscribed client may only subscribe, unsubscribe, ping, reset and quit.
    pub const SUBSCRIBED_RESP2: Gate = Gate(4);
    pub const REPLIES_OFF: Gate = Gate(8);
    /// More memory is used than may be, and nothing is left to evict.
    pub const OUT_OF_MEMORY: Gate = Gate(16);
    /// Its user may not do everything.
    pub const RESTRICTED: Gate = Gate(32);
    /// What may have a call refused when it is about to run.
    pub(crate) const REFUSES: Gate = Gate(Gate::NEEDS_AUTH.0 | Gate::OUT_OF_MEMORY.0);

    pub fn is_open(self) -> bool {
        self.0 == 0
    }

    /// As [`Gate::is_open`], but its user may have restrictions.
    pub fn is_open_to_user(self) -> bool {
        self.0 & !Gate::RESTRICTED.0 == 0
    }

    pub fn has(self, other: Gate) -> bool {
        self.0 & other.0 != 0
    }

    pub fn set(&mut self, other: Gate, on: bool) {
        if on {
            self.0 |= other.0;
        } else {
            self.0 &= !other.0;
        }
    }
}

/// CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    #[default]
    On,
    Off,
    /// The reply of SKIP itself is dropped, and then the next command's.
    SkipNext,
    SkipThis,
}

/// What was found out about a request before it is run: while it was read ahead, or while a batch
/// was planned that it did not become part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookedUp {
    pub command: Command,
    /// Where its key is, if it has one key only.
    pub location: Option<Location>,
}

pub struct Session {
    pub card: Arc<ClientCard>,
    pub mailbox: Arc<dyn Mailbox>,
    pub db: usize,
    pub resp: Resp,
    pub gate: Gate,
    /// Who it is; see [`Session::log_in`].
    pub(crate) login: Login,
    pub reply_mode: ReplyMode,
    pub transaction: Option<Box<Transaction>>,
    /// The last one, emptied, for the next.
    pub(crate) spare_transaction: Option<Box<Transaction>>,
    /// Keys this client watches, and the flag that their shards hold.
    pub watching: BTreeSet<(usize, Box<[u8]>)>,
    pub watch_flag: Arc<WatchFlag>,
    pub subscriptions: Subscriptions,
    /// CLIENT TRACKING.
    pub(crate) tracking: Option<Box<Tracked>>,
    /// Messages come through its mailbox only, never between replies.
    pub is_mailed: bool,
    /// Messages that its last call has sent to it, which come behind the reply.
    pub(crate) own_messages: Vec<SharedBytes>,
    /// CLIENT NO-TOUCH.
    pub is_silent: bool,
    /// What runs is a command that a script called.
    pub is_in_script: bool,
    /// Its next request, if somebody has looked at it already.
    pub(crate) next_call: Option<LookedUp>,
    /// Why its next command is not run now.
    pub hold: Hold,
    /// The journal's offset behind its last write.
    pub last_write: u64,
    /// The journal's offset that must be durable before its output is sent; see
    /// `call/held_output.rs`.
    pub depends_on: u64,
    /// KEYS or RANDOMKEY, stopped on its way through the shards.
    pub(crate) walk: Option<Box<Walk>>,
    /// WAITAOF: what the reply of the command under way waits for.
    pub(crate) awaited_sync: Option<Box<AwaitedSync>>,
    /// MIGRATE: the transfer that the command under way has begun.
    pub(crate) migration: Option<Arc<Migration>>,
    /// SAVE, SHUTDOWN: the save that the command under way waits for.
    pub(crate) save: Option<Arc<AwaitedSave>>,
    /// CONFIG SET: what it has set beside the log that it waits for.
    pub(crate) beside: Option<Box<SetBeside>>,
    /// The large SET under way waits, or has waited, until it is written.
    pub(crate) ahead: Option<Ahead>,
    /// What the command under way has asked of other clients: its reply waits for them.
    pub(crate) pending: Option<Arc<Pending>>,
    /// QUIT, a protocol error, or CLIENT KILL of itself: close when the replies are written.
    pub is_closing: bool,
    /// Close without sending anything more: it spoke HTTP, or asked for more than its hard limit
    /// allows.
    pub is_cut_off: bool,
}

impl Session {
    /// A session that may do everything, until it is given a user.
    pub fn new(card: Arc<ClientCard>, mailbox: Arc<dyn Mailbox>) -> Self {
        Session {
            card,
            mailbox,
            db: 0,
            resp: Resp::V2,
            gate: Gate::default(),
            login: Login::unlimited(),
            reply_mode: ReplyMode::On,
            transaction: None,
            spare_transaction: None,
            watching: BTreeSet::new(),
            watch_flag: Arc::default(),
            subscriptions: Subscriptions::default(),
            tracking: None,
            is_mailed: false,
            own_messages: Vec::new(),
            is_silent: false,
            is_in_script: false,
            next_call: None,
            hold: Hold::None,
            last_write: 0,
            depends_on: 0,
            walk: None,
            awaited_sync: None,
            migration: None,
            save: None,
            beside: None,
            ahead: None,
            pending: None,
            is_closing: false,
            is_cut_off: false,
        }
    }

    /// Ends the connection at once: replies that are not sent yet never are.
    pub fn cut_off(&mut self) {
        self.is_closing = true;
        self.is_cut_off = true;
    }

    pub fn id(&self) -> u64 {
        self.card.id
    }

    /// The reply of the command under way waits until what is asked of other clients with letters
    /// that carry a receipt has been done.
    pub(crate) fn ask_others(&mut self) -> Receipt {
        // A transaction may ask more than once.
        self.pending.get_or_insert_with(|| Pending::new(self.mailbox.clone())).receipt()
    }

    /// Whether another thread does something for the command under way, or has done it.
    pub(crate) fn has_job(&self) -> bool {
        self.migration.is_some() || self.save.is_some() || self.ahead.is_some()
    }

    /// CLIENT PAUSE holds its command back. A place that it had in a shard's queue is given up, and
    /// so is what it has reserved: nobody else is to wait for a client that is held back.
    pub(crate) fn hold_for_pause(&mut self) {
        match &mut self.hold {
            Hold::Keys(state) => state.retry = None,
            hold => *hold = Hold::Pause,
        }
    }

    /// Its command, or the second try of its blocked call, waits for shards.
    pub(crate) fn hold_for_shards(&mut self, wait: KeyspaceWait) {
        match &mut self.hold {
            Hold::Keys(state) => state.retry = Some(wait),
            hold => *hold = Hold::Shards { wait, is_woken: false },
        }
    }

    /// The wait for shards that is under way: it goes on or is over.
    #[inline]
    pub(crate) fn take_wait(&mut self) -> Option<KeyspaceWait> {
        match &mut self.hold {
            Hold::None => None,
            Hold::Keys(state) => state.retry.take(),
            Hold::Shards { .. } => match std::mem::take(&mut self.hold) {
                Hold::Shards { wait, .. } => Some(wait),
                _ => None,
            },
            Hold::Pause | Hold::Others(_) | Hold::Durable(_) | Hold::Job => None,
        }
    }

    /// What it waits for, if it is blocked on keys.
    #[inline]
    pub fn blocked(&self) -> Option<&BlockedState> {
        match &self.hold {
            Hold::Keys(state) => Some(state),
            _ => None,
        }
    }

    /// Counts calls that have run.
    #[inline]
    pub(crate) fn count_run(&self, stats: &WorkerStats, calls: u64) {
        stats.processed.add(calls);
        let before = self.card.commands.load(Ordering::Relaxed);
        self.card.commands.store(before + calls, Ordering::Relaxed);
    }

    /// What every connection begins as: the default user, who may have to log in first.
    pub fn begin_as_default(&mut self, acl: &Acl) {
        if !self.login.is_of_default(acl) {
            self.log_in(Login::of_default(acl));
        }
    }

    /// From now on its calls are those of this user.
    pub(crate) fn log_in(&mut self, login: Login) {
        self.card.names().user = login.name().to_vec();
        self.login = login;
        self.rights_changed();
    }

    /// Before a call: users may have been changed since the last.
    #[inline]
    pub(crate) fn refresh_rights(&mut self, acl: &Acl) {
        if self.login.is_outdated(acl) {
            self.fetch_rights(acl);
        }
    }

    #[cold]
    fn fetch_rights(&mut self, acl: &Acl) {
        self.login.refresh(acl);
        self.rights_changed();
    }

    fn rights_changed(&mut self) {
        self.gate.set(Gate::NEEDS_AUTH, self.login.needs_proof());
        self.gate.set(Gate::RESTRICTED, !self.login.rights().is_unrestricted());
    }

    pub fn is_authenticated(&self) -> bool {
        !self.gate.has(Gate::NEEDS_AUTH)
    }

    pub fn set_resp(&mut self, resp: Resp) {
        self.resp = resp;
        let version = if resp == Resp::V2 { 2 } else { 3 };
        self.card.resp.store(version, Ordering::Relaxed);
        self.subscriptions_changed();
    }

    /// Must be called when the number of subscriptions or the protocol changed.
    pub fn subscriptions_changed(&mut self) {
        let Subscriptions { channels, patterns, shard_channels } = &self.subscriptions;
        let (card, order) = (&self.card, Ordering::Relaxed);
        card.subscriptions.store(channels.len() as u32, order);
        card.patterns.store(patterns.len() as u32, order);
        card.shard_subscriptions.store(shard_channels.len() as u32, order);
        card.mark_uncounted();
        let closed = self.resp == Resp::V2 && self.subscriptions.count_all() > 0;
        self.gate.set(Gate::SUBSCRIBED_RESP2, closed);
    }

    /// The client whose call runs, for those who send messages. It counts for every client: a
    /// transaction may begin with what has messages sent to it, and others may redirect theirs.
    #[inline]
    pub(crate) fn caller(&self) -> Caller {
        let id = self.card.id;
        Caller { author: id, inline: if self.is_mailed { 0 } else { id } }
    }

    /// CLIENT CACHING was called for the next command.
    #[inline]
    pub(crate) fn has_caching_mark(&self) -> bool {
        self.tracking.as_ref().is_some_and(|tracked| tracked.is_next_marked)
    }

    /// A command is over. CLIENT CACHING counts for one, or for one transaction.
    #[inline]
    pub(crate) fn end_caching(&mut self, command: Option<Command>) {
        let is_about_clients = |it: Command| it.parent() == Some(Command::Client);
        if let Some(tracked) = &mut self.tracking
            && !command.is_some_and(is_about_clients)
            && !self.gate.has(Gate::IN_MULTI)
        {
            tracked.is_next_marked = false;
        }
    }

    /// Whether bytes that someone posted to this client may still be written. What was on its way
    /// when the client stopped listening, or changed its protocol, would be taken for the reply to
    /// its next command.
    pub fn takes_push(&self, bytes: &[u8]) -> bool {
        match (bytes.first(), self.resp) {
            (Some(b'+'), _) => self.card.has_flag(ClientFlags::MONITOR),
            (Some(b'*'), Resp::V2) => self.subscriptions.count_all() > 0,
            (Some(b'>'), Resp::V3) => true,
            _ => false,
        }
    }

    pub fn set_reply_mode(&mut self, mode: ReplyMode) {
        self.reply_mode = mode;
        self.gate.set(Gate::REPLIES_OFF, mode != ReplyMode::On);
    }
}
