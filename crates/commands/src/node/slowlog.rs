//! SLOWLOG and COMMANDLOG: the commands that took longest, and the largest requests and replies.

#[cfg(test)]
mod tests;

use crate::call::mail::Posting;
use crate::call::session::Session;
use crate::node::Node;
use crate::node::secrets::shown_args;
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_engine::keys::Keys;
use russet_engine::keyspace::KeyspaceWait;
use russet_engine::types::capacity::{allocated_bytes, allocated_for};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Most arguments of a command that are kept, and most bytes of each.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;
/// Below this threshold every command is timed by itself, not with its batch.
const PRECISE_BELOW_MICROS: i64 = 1000;

/// What a log looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Microseconds.
    Slow,
    /// Bytes of a command's arguments.
    LargeRequest,
    /// Bytes of a command's reply.
    LargeReply,
    /// Microseconds that a command waited for shards before it ran.
    ShardWait,
}

impl LogKind {
    pub fn named(name: &[u8]) -> Option<LogKind> {
        let known: [(&[u8], LogKind); 4] = [
            (b"slow", LogKind::Slow),
            (b"large-request", LogKind::LargeRequest),
            (b"large-reply", LogKind::LargeReply),
            (b"shard-wait", LogKind::ShardWait),
        ];
        let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| *kind)
    }
}

#[derive(Clone, Debug)]
pub struct CostEntry {
    pub id: u64,
    pub unix_seconds: i64,
    /// Microseconds or bytes.
    pub cost: u64,
    pub args: Vec<Vec<u8>>,
    pub client_address: String,
    pub client_name: Vec<u8>,
    /// Who held what it waited for, of the log that is about waits.
    pub holder: Option<Command>,
}

impl CostEntry {
    /// What it takes up besides its place in the log.
    fn memory_bytes(&self) -> usize {
        let args = self.args.iter().map(|arg| allocated_bytes(arg.capacity()));
        args.sum::<usize>()
            + allocated_for::<Vec<u8>>(self.args.capacity())
            + allocated_bytes(self.client_address.capacity())
            + allocated_bytes(self.client_name.capacity())
    }
}

/// The newest commands that cost more than a threshold.
pub struct CostLog {
    /// Negative: off.
    threshold: AtomicI64,
    kept: Arc<Kept>,
}

#[derive(Default)]
struct Kept {
    next_id: AtomicU64,
    len_max: AtomicI64,
    entries: Mutex<Entries>,
    /// What the entries take up.
    memory_bytes: AtomicU64,
}

#[derive(Default)]
struct Entries {
    newest_first: VecDeque<CostEntry>,
    /// What they take up besides their places.
    bytes: usize,
}

impl Entries {
    fn truncate(&mut self, len: usize) {
        while self.newest_first.len() > len {
            let oldest = self.newest_first.pop_back();
            self.bytes -= oldest.map_or(0, |oldest| oldest.memory_bytes());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes + allocated_for::<CostEntry>(self.newest_first.capacity())
    }
}

impl Default for CostLog {
    fn default() -> Self {
        CostLog { threshold: AtomicI64::new(-1), kept: Arc::default() }
    }
}

impl Kept {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn count_memory(&self, entries: &Entries) {
        self.memory_bytes.store(entries.memory_bytes() as u64, Ordering::Relaxed);
    }

    fn len_max(&self) -> usize {
        usize::try_from(self.len_max.load(Ordering::Relaxed)).unwrap_or(0)
    }

    fn add(&self, mut entry: CostEntry) {
        let len_max = self.len_max();
        let mut entries = self.entries();
        entry.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        entries.bytes += entry.memory_bytes();
        entries.newest_first.push_front(entry);
        entries.truncate(len_max);
        self.count_memory(&entries);
    }
}

impl CostLog {
    pub fn set_threshold(&self, threshold: i64) {
        self.threshold.store(threshold, Ordering::Relaxed);
    }

    pub fn set_len_max(&self, len_max: i64) {
        self.kept.len_max.store(len_max, Ordering::Relaxed);
        let mut entries = self.kept.entries();
        entries.truncate(usize::try_from(len_max).unwrap_or(0));
        self.kept.count_memory(&entries);
    }

    /// Bytes that its entries take up, without looking at them.
    pub fn memory_bytes(&self) -> u64 {
        self.kept.memory_bytes.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn is_precise(&self) -> bool {
        (0..PRECISE_BELOW_MICROS).contains(&self.threshold.load(Ordering::Relaxed))
    }

    /// Whether something of this cost belongs into the log.
    #[inline]
    pub fn wants(&self, cost: u64) -> bool {
        let threshold = self.threshold.load(Ordering::Relaxed);
        threshold >= 0 && cost >= threshold.unsigned_abs()
    }

    /// What belongs into the log costs at least this much: for those who ask for many at once.
    #[inline]
    pub fn cost_min(&self) -> u64 {
        u64::try_from(self.threshold.load(Ordering::Relaxed)).unwrap_or(u64::MAX)
    }

    /// Remembers a call if it cost much: when what it has changed may be seen, if `keys` has that.
    #[inline]
    pub fn note(
        &self,
        asker: (&Node, &Session),
        call: (Command, Args),
        cost: u64,
        keys: Option<&mut Keys>,
    ) {
        if self.wants(cost) && !call.0.spec().flags.has(Flags::SKIP_SLOWLOG) {
            self.add(asker, call, (cost, None), keys);
        }
    }

    /// A call that had to wait for its shards, and for whom, if that is known.
    pub fn note_wait(&self, asker: (&Node, &Session), call: (Command, Args), wait: &KeyspaceWait) {
        let micros = wait.waited_micros();
        if self.wants(micros) {
            self.add(asker, call, (micros, command_of(wait.holder())), None);
        }
    }

    #[cold]
    fn add(
        &self,
        (node, session): (&Node, &Session),
        call: (Command, Args),
        (cost, holder): (u64, Option<Command>),
        keys: Option<&mut Keys>,
    ) {
        // COMPAT: what is not kept takes no id; test `a_log_without_room_gives_no_ids`.
        if self.kept.len_max() == 0 {
            return;
        }
        let entry = CostEntry {
            id: 0,
            unix_seconds: node.clock.now().seconds(),
            cost,
            args: shortened(node, call),
            client_address: session.card.address.clone(),
            client_name: session.card.names().name.clone(),
            holder,
        };
        match keys {
            None => self.kept.add(entry),
            Some(keys) => {
                let kept = self.kept.clone();
                Posting::of(keys).act(move || kept.add(entry));
            }
        }
    }

    /// The newest `count`, newest first.
    pub fn newest(&self, count: usize) -> Vec<CostEntry> {
        self.kept.entries().newest_first.iter().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.kept.entries().newest_first.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn reset(&self) {
        let mut entries = self.kept.entries();
        *entries = Entries::default();
        self.kept.count_memory(&entries);
    }
}

/// By what a command that holds shards is known to those who wait for them; never 0.
#[inline]
pub(crate) fn mark_of(command: Command) -> u32 {
    command as u32 + 1
}

/// The command of a mark; None of one that is 0.
fn command_of(mark: u32) -> Option<Command> {
    Command::ALL.get((mark as usize).checked_sub(1)?).copied()
}

/// COMPAT: what is left out is counted in the last arg kept (tests/wire/server/slowlog.wire).
fn shortened(node: &Node, call: (Command, Args)) -> Vec<Vec<u8>> {
    let (mut shown, args): (Vec<Vec<u8>>, Args) = (Vec::new(), call.1);
    for (at, arg) in shown_args(node, call).enumerate() {
        if at == ARGS_MAX - 1 && args.len() > ARGS_MAX {
            let left_out = args.len() - ARGS_MAX + 1;
            shown.push(format!("... ({left_out} more arguments)").into_bytes());
            break;
        }
        if arg.len() <= ARG_BYTES_MAX {
            shown.push(arg.to_vec());
        } else {
            let mut cut = arg[..ARG_BYTES_MAX].to_vec();
            let left_out = arg.len() - ARG_BYTES_MAX;
            cut.extend_from_slice(format!("... ({left_out} more bytes)").as_bytes());
            shown.push(cut);
        }
    }
    shown
}
