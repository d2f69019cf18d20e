//! Making room before a call: with `maxmemory` set, the thread that is about to run one removes
//! keys until no more is used than may be. If it can't, the session is marked, and what needs
//! memory is refused.

use crate::call::dispatch::Worker;
use crate::call::invoke::publish_effects;
use crate::call::session::{Gate, Session};
use crate::node::Node;
use crate::node::memory_limit::Eviction;
use russet_base::UnixMillis;
use russet_engine::evict::{Candidates, Choice, Look};
use russet_engine::keys::{Caller, Effects};
use russet_engine::keyspace::Keyspace;
use russet_protocol::Sink;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many keys go between two looks at the clock.
const REMOVED_PER_LOOK: usize = 16;
/// Looks in vain, per shard, before it is taken for granted that there is nothing to remove: each
/// may have met a busy shard, or one without keys.
const MISSES_PER_SHARD: usize = 4;

#[cold]
fn send_before_reply(session: &mut Session, sink: &mut dyn Sink) {
    if let Some(mut out) = sink.wire() {
        let messages = std::mem::take(&mut session.own_messages);
        let taken = messages.iter().filter(|bytes| session.takes_push(bytes));
        taken.for_each(|bytes| out.extend_from_slice(bytes));
    }
}

impl Worker {
    /// Makes room if there is a limit and more is used.
    #[inline]
    pub(crate) fn make_room(&mut self, session: &mut Session) {
        let is_marked = session.gate.has(Gate::OUT_OF_MEMORY);
        if self.node.memory_limit.is_set() || is_marked {
            // What goes is nobody's doing.
            self.effects.caller = Caller { author: 0, ..session.caller() };
            let has_room = self.evict();
            self.effects.caller = Caller::default();
            session.own_messages.append(&mut self.effects.own_messages);
            session.gate.set(Gate::OUT_OF_MEMORY, !has_room);
        }
    }

    /// The same before a command, with the client's own messages: they come before the reply. One
    /// that takes no replies gets them behind the command.
    #[inline]
    pub(super) fn make_room_before(&mut self, session: &mut Session, sink: &mut dyn Sink) {
        self.make_room(session);
        if !session.own_messages.is_empty() && !session.gate.has(Gate::REPLIES_OFF) {
            send_before_reply(session, sink);
        }
    }

    /// Removes keys until there is room, or for as long as one call may be held up. False if there
    /// is none and nothing is left to remove.
    pub fn evict(&mut self) -> bool {
        let Worker { node, effects, candidates, .. } = self;
        // While writers are held back, or the data is loaded, nothing is removed either.
        if excess_bytes(node) == 0 || !node.keyspace.barriers().may_evict() {
            return true;
        }
        let started = node.clock.monotonic_micros();
        let Eviction { choice, micros_max } = node.memory_limit.eviction();
        let Some(choice) = choice.filter(|choice| has_candidates(&node.keyspace, *choice)) else {
            return false;
        };
        let now = node.clock.now();
        let (mut misses, mut unlooked) = (0, 0);
        let has_room = loop {
            let excess_bytes = excess_bytes(node);
            if excess_bytes == 0 {
                break true;
            }
            let evicting = Evicting { node, effects, candidates, choice, now };
            let removed = evicting.step(excess_bytes);
            misses = if removed > 0 { 0 } else { misses + 1 };
            if misses > MISSES_PER_SHARD * node.keyspace.shards() {
                break has_candidates(&node.keyspace, choice);
            }
            unlooked += removed.max(1);
            let micros = || node.clock.monotonic_micros().saturating_sub(started);
            if unlooked >= REMOVED_PER_LOOK {
                unlooked = 0;
                if micros_max.is_some_and(|most| micros() > most) {
                    // The next call goes on with it, or housekeeping.
                    break true;
                }
            }
        };
        let micros = node.clock.monotonic_micros().saturating_sub(started);
        node.latency.note("eviction-cycle", micros, || now.seconds());
        has_room
    }
}

/// What it takes to remove keys.
struct Evicting<'a> {
    node: &'a Node,
    effects: &'a mut Effects,
    candidates: &'a mut Candidates,
    choice: Choice,
    now: UnixMillis,
}

impl Evicting<'_> {
    /// Removes some keys of one shard, and candidates that are better; how many.
    fn step(mut self, excess_bytes: u64) -> usize {
        match self.look(excess_bytes) {
            None => self.remove_candidates(1),
            Some(look) => look.removed() + self.remove_candidates(look.candidates),
        }
    }

    fn look(&mut self, excess_bytes: u64) -> Option<Look> {
        let Evicting { node, effects, candidates, choice, now } = self;
        let shard = candidates.next_shard(&node.keyspace, *choice)?;
        let wanted = (&mut **candidates, excess_bytes);
        let (mut keys, look) = node.keyspace.evict_some(shard, effects, (*choice, *now), wanted)?;
        publish_effects(&mut keys, node);
        count(node, look.evicted);
        Some(look)
    }

    /// Removes the best of the candidates; how many did go.
    fn remove_candidates(&mut self, most: usize) -> usize {
        let Evicting { node, effects, candidates, choice, now } = self;
        let mut removed = 0;
        for best in (0..most).map_while(|_| candidates.take_best()) {
            let gone = node.keyspace.evict(&best, effects, (*choice, *now));
            if let Some((mut keys, is_evicted)) = gone {
                publish_effects(&mut keys, node);
                count(node, usize::from(is_evicted));
                removed += 1;
            }
        }
        removed
    }
}

fn count(node: &Node, evicted: usize) {
    node.stats.evicted_keys.fetch_add(evicted as u64, Ordering::Relaxed);
}

fn excess_bytes(node: &Node) -> u64 {
    node.memory_limit.excess_bytes(node.used_memory_bytes())
}

/// Whether more is used than may be, and nothing can be removed.
pub(crate) fn is_out_of_memory(node: &Node) -> bool {
    let choice = || node.memory_limit.eviction().choice;
    node.memory_limit.is_set()
        && excess_bytes(node) > 0
        && !choice().is_some_and(|choice| has_candidates(&node.keyspace, choice))
}

fn has_candidates(keyspace: &Keyspace, choice: Choice) -> bool {
    let any = |counts: &[AtomicU64]| counts.iter().any(|count| count.load(Ordering::Relaxed) > 0);
    match choice.is_volatile {
        true => keyspace.gauges().iter().any(|gauges| any(&gauges.expires)),
        false => keyspace.key_counts().is_any(),
    }
}
