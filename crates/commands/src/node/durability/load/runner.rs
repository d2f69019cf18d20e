//! Runs commands of a log, as they were recorded: at a time at which nothing has expired.

use super::batch::{Batch, Call};
use crate::call::ctx::Ctx;
use crate::call::invoke::{self, Origin};
use crate::call::mail::NoMailbox;
use crate::call::session::Session;
use crate::call::tally::{Tally, Timing};
use crate::groups::scripting::code;
use crate::node::Node;
use crate::node::clients::ClientCard;
use crate::node::load_pool::Refused;
use crate::node::snapshot::LOAD_TIME;
use crate::node::stats::WorkerStats;
use russet_base::Args;
use russet_base::escape::escape;
use russet_engine::keys::{Effects, Keys, KnownKey};
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::{Resp, RespWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// As many commands of a file that are passed over are reported one by one.
const SKIPPED_SHOWN_MAX: u64 = 20;
/// Commands whose keys are fetched ahead.
const CALLS_AHEAD: usize = 16;
/// Longest part of a name that is shown.
const NAME_SHOWN_MAX: usize = 64;

/// What all threads count.
#[derive(Default)]
pub struct Counts {
    pub commands: AtomicU64,
    /// Commands that were passed over.
    skipped: AtomicU64,
}

impl Counts {
    /// Notes that a command has no effect.
    pub fn skip(&self, node: &Node, why: &str) {
        if self.skipped.fetch_add(1, Ordering::Relaxed) < SKIPPED_SHOWN_MAX {
            node.host.log(&format!("A command of the log has no effect: {why}"));
        }
    }

    /// The end of a file: how many warnings were not given.
    pub fn end_file(&self, node: &Node) {
        let skipped = self.skipped.swap(0, Ordering::Relaxed);
        let hidden = skipped.saturating_sub(SKIPPED_SHOWN_MAX);
        if hidden > 0 {
            node.host.log(&format!("{hidden} more commands of the log have no effect"));
        }
    }
}

/// The name of a command, as it can be shown.
pub fn shown_name(args: Args) -> String {
    escape(&args.at(0)[..args.at(0).len().min(NAME_SHOWN_MAX)]).into_owned()
}

/// What one thread needs to run commands.
pub struct Runner<'r> {
    node: &'r Node,
    counts: &'r Counts,
    /// The shards of all commands that it runs.
    shards: ShardSet,
    session: Session,
    stats: Arc<WorkerStats>,
    tally: Tally,
    reply: Vec<u8>,
}

impl<'r> Runner<'r> {
    pub fn new(node: &'r Node, counts: &'r Counts, shards: ShardSet) -> Self {
        let card = ClientCard::new(0, String::new(), String::new(), -1, 0);
        Runner {
            node,
            counts,
            shards,
            session: Session::new(Arc::new(card), Arc::new(NoMailbox)),
            stats: node.stats.new_worker(),
            tally: Tally::default(),
            reply: Vec::new(),
        }
    }

    /// Runs a batch, and empties it.
    pub fn run(&mut self, batch: &mut Batch) -> Result<(), Refused> {
        let ran = self.run_all(batch);
        self.counts.commands.fetch_add(batch.calls.len() as u64, Ordering::Relaxed);
        batch.clear();
        ran
    }

    /// The same for who holds all shards. No record is made of what the log has.
    pub fn run_held(&mut self, batch: &mut Batch, keys: &mut Keys) -> Result<(), Refused> {
        let (effects, db) = (std::mem::take(keys.effects), keys.db);
        let (now, real_time) = (keys.now, keys.real_time);
        let ran = self.run_with(batch, keys, |_, _| {});
        (keys.db, keys.now, keys.real_time) = (db, now, real_time);
        *keys.effects = effects;
        batch.clear();
        ran
    }

    fn run_all(&mut self, batch: &Batch) -> Result<(), Refused> {
        let known = batch.known();
        let keyspace = &self.node.keyspace;
        let locked = keyspace.lock(self.shards.clone());
        let mut effects = Effects::default();
        let mut keys = keyspace.keys(locked, &mut effects, (0, self.node.clock.now()));
        self.run_with(batch, &mut keys, |keys, index| {
            if index.is_multiple_of(CALLS_AHEAD) {
                let end = batch.keys_start((index + CALLS_AHEAD).min(batch.calls.len()));
                let ahead: &[KnownKey] = &known[batch.keys_start(index)..end];
                keys.know(ahead);
                keys.prefetch_known();
            }
            let window = index - index % CALLS_AHEAD;
            keys.skip_to(batch.keys_start(index) - batch.keys_start(window));
        })
    }

    /// Runs calls, each after `ahead` has seen to its keys.
    fn run_with<'k>(
        &mut self,
        batch: &Batch,
        keys: &mut Keys<'k>,
        mut ahead: impl FnMut(&mut Keys<'k>, usize),
    ) -> Result<(), Refused> {
        keys.real_time = Some(self.node.clock.now());
        keys.now = LOAD_TIME;
        let mut db = None;
        for (index, call) in batch.calls.iter().enumerate() {
            // Counts are published for one database at a time.
            if db.replace(call.db).is_some_and(|before| before != call.db) {
                keys.publish();
            }
            keys.db = call.db;
            ahead(keys, index);
            let args = batch.args(index);
            self.node.delay_load();
            self.invoke(keys, *call, args);
            if let Some(text) = self.reply.strip_prefix(b"-") {
                let text = escape(text.trim_ascii_end());
                let why = format!("'{}': {text}", shown_name(args));
                match batch.is_lenient {
                    true => self.counts.skip(self.node, &why),
                    false => return Err((call.at, why)),
                }
            }
        }
        keys.publish();
        Ok(())
    }

    fn invoke(&mut self, keys: &mut Keys, call: Call, args: Args) {
        let Runner { node, session, stats, tally, reply, .. } = self;
        let command = call.command;
        reply.clear();
        let mut sink = RespWriter::new(&mut *reply, Resp::V3);
        session.db = call.db;
        let code = code::find(node, stats.number, command, args);
        let mut ctx = Ctx {
            keys,
            reply: &mut sink,
            session,
            node,
            stats,
            tally,
            timing: Timing::WithCaller,
            origin: Origin::Load,
            command,
            code: code.as_ref(),
            may_block: false,
        };
        invoke::invoke(&mut ctx, &args);
        // Nobody waits, and nobody is to hear of it.
        keys.effects.ready.clear();
        keys.effects.notices.clear();
        keys.effects.dirty = 0;
    }
}
