//! A compilation that takes long is a slow run like any other: BUSY for those who wait for its
//! shards, if it holds any, and SCRIPT KILL or FUNCTION KILL ends it.

use super::cache::{Sha, sha1_hex};
use super::run::ARGS_SHOWN_MAX;
use super::running::Run;
use crate::call::ctx::Ctx;
use crate::error::Refusal;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::Args;
use russet_base::escape::escape;
use russet_engine::store::shard_set::ShardSet;
use russet_scripting::{Chunk, Purpose, Tick, compile_for};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Who compiles, and on whose behalf.
pub struct Compiling<'a> {
    node: &'a Node,
    /// The number of the worker that does it.
    pub worker: usize,
    /// The call that has it done.
    args: Args<'a>,
    shards: ShardSet,
    started_micros: u64,
    /// Since it is slow.
    run: RefCell<Option<Arc<Run>>>,
}

impl<'a> Compiling<'a> {
    /// Before the call has any shards.
    pub fn planned(node: &'a Node, args: Args<'a>) -> Self {
        Self::new((node, 0), args, ShardSet::EMPTY)
    }

    pub fn of_call<'c: 'a>(ctx: &Ctx<'c, '_>, args: Args<'a>) -> Self {
        Self::new((ctx.node, ctx.stats.number), args, ctx.keys.held().clone())
    }

    fn new((node, worker): (&'a Node, usize), args: Args<'a>, shards: ShardSet) -> Self {
        let started_micros = node.clock.monotonic_micros();
        Compiling { node, worker, args, shards, started_micros, run: RefCell::default() }
    }

    pub fn node(&self) -> &'a Node {
        self.node
    }

    pub fn elapsed_micros(&self) -> u64 {
        self.node.clock.monotonic_micros().saturating_sub(self.started_micros)
    }

    /// Compiles a script or a library; `failed` says before an error what could not be compiled.
    pub fn compile(
        &self,
        purpose: Purpose,
        (source, name): (&[u8], &[u8]),
        failed: &str,
    ) -> Result<Chunk, Refusal> {
        let is_function = purpose == Purpose::Library;
        let tick = || self.tick(is_function, source);
        compile_for(purpose, source, name, &tick).map_err(|error| match error.is_killed() {
            true => Refusal::text(killed_text(is_function)),
            false => Refusal::text(format!("ERR {failed}: {}", escape(error.message()))),
        })
    }

    fn tick(&self, is_function: bool, source: &[u8]) -> Tick {
        let mut run = self.run.borrow_mut();
        if let Some(run) = &*run {
            let is_to_end = run.is_to_end.load(Ordering::Acquire);
            return if is_to_end { Tick::Kill } else { Tick::Continue };
        }
        let busy_after_ms = self.node.config.int(Directive::BusyReplyThreshold);
        let busy_after = u64::try_from(busy_after_ms).unwrap_or(0).saturating_mul(1000);
        if self.elapsed_micros() >= busy_after {
            let args = self.args.iter().take(ARGS_SHOWN_MAX);
            *run = Some(self.node.scripts.running.begin(Run {
                shards: self.shards.clone(),
                is_function,
                name: sha1_hex(source).to_vec(),
                args: args.map(<[u8]>::to_vec).collect(),
                started_micros: self.started_micros,
                has_written: AtomicBool::new(false),
                is_to_end: AtomicBool::new(false),
            }));
            self.node.keyspace.wake_waiters(&self.shards);
        }
        Tick::Continue
    }
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            self.node.scripts.running.end(&run);
        }
    }
}

/// Scripts that were refused when their shards were chosen, for the calls that follow to be told so
/// without a second try.
#[derive(Debug, Default)]
pub struct RefusedScripts(Mutex<VecDeque<(Sha, Refusal)>>);

/// Refused scripts whose calls have not run yet. Calls beyond so many compile once more.
const REFUSED_SCRIPTS_MAX: usize = 16;

impl RefusedScripts {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Sha, Refusal)>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn add(&self, source: &[u8], refusal: Refusal) {
        let mut refused = self.lock();
        if refused.len() == REFUSED_SCRIPTS_MAX {
            refused.pop_front();
        }
        refused.push_back((sha1_hex(source), refusal));
    }

    pub fn find(&self, source: &[u8]) -> Option<Refusal> {
        let refused = self.lock();
        let at = position(&refused, source)?;
        Some(refused[at].1.clone())
    }

    pub fn take(&self, source: &[u8]) -> Option<Refusal> {
        let mut refused = self.lock();
        let at = position(&refused, source)?;
        refused.remove(at).map(|(_, refusal)| refusal)
    }
}

fn position(refused: &VecDeque<(Sha, Refusal)>, source: &[u8]) -> Option<usize> {
    if refused.is_empty() {
        return None;
    }
    let sha = sha1_hex(source);
    refused.iter().position(|(known, _)| *known == sha)
}

/// The reply to the caller of code that was ended.
pub fn killed_text(is_function: bool) -> &'static str {
    match is_function {
        true => "ERR Script killed by user with FUNCTION KILL.",
        false => "ERR Script killed by user with SCRIPT KILL.",
    }
}
