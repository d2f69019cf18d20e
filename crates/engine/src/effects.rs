//! What a command did, for those who must hear of it: counted, published and served before the
//! shards are unlocked. Which changes there are is up to `keys`, who hears of them to the callers.

use crate::event::{Event, EventClasses, Notice};
use crate::journal::Action;
use crate::record::Records;
use crate::store::shard_set::ShardSet;
use crate::tracked::ChangedKey;
use russet_base::SharedBytes;
use russet_base::shared::shrink_beyond;
use std::collections::HashSet;

/// The client whose call runs, as far as messages are concerned that the call may send to it. A
/// number of 0 is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// What is changed is its doing.
    pub author: u64,
    /// Its messages are gathered and come with the reply; all others go through mailboxes.
    pub inline: u64,
}

/// Places for effects of each kind that a worker keeps between calls.
const EFFECTS_KEPT_MAX: usize = 512;

/// A key that someone waits for and that was touched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyKey {
    pub db: usize,
    pub key: Box<[u8]>,
}

/// What a command did, for those who must hear of it before the shards are unlocked. One is used
/// for many commands: the counters add up, the rest is empty again once it is published.
#[derive(Default)]
pub struct Effects {
    /// Changes to the data, as `rdb_changes_since_last_save` counts them.
    pub dirty: u64,
    pub hits: u64,
    pub misses: u64,
    pub notices: Vec<Notice>,
    pub ready: Vec<ReadyKey>,
    pub records: Records,
    /// How many records of what had expired were added, ever: no call's own.
    pub expiry_records: u64,
    /// What others are to get once the change is durable: gathered while nothing may be shown
    /// before.
    pub outbox: Vec<(u64, Action)>,
    /// The journal's offset behind what was appended last, until someone has noted it.
    pub appended: u64,
    /// The journal's offset that what was answered depends on beside the held shards, until someone
    /// has noted it.
    pub shown: u64,
    /// Keys that were changed and that clients may have copies of.
    pub changed: Vec<ChangedKey>,
    /// Every key may have been changed.
    pub are_all_changed: bool,
    pub caller: Caller,
    /// Messages for the caller, to be sent behind its reply.
    pub own_messages: Vec<SharedBytes>,
    /// Someone tracks changes of all keys.
    pub(crate) wants_all_keys: bool,
    /// The classes of events that someone asked for.
    pub(crate) wanted: EventClasses,
    /// The shards whose gauges are out of date.
    pub(crate) touched: ShardSet,
    /// The same for databases that the call has left.
    pub(crate) left: Vec<(usize, ShardSet)>,
    /// Databases that were emptied.
    pub(crate) emptied: Vec<usize>,
}

impl Effects {
    /// Clients must hear of what was done before the next command.
    #[inline]
    pub fn has_listeners(&self) -> bool {
        // One question, which is nearly always answered with no.
        let some = self.notices.len() | self.ready.len() | self.changed.len();
        some != 0 || self.are_all_changed
    }

    /// Nothing is left to do before the shards are unlocked.
    #[inline]
    pub fn is_published(&self) -> bool {
        self.touched.is_empty()
            && self.left.is_empty()
            && self.records.is_empty()
            && self.outbox.is_empty()
            && !self.has_listeners()
    }

    /// Leaves each ready key once, where it came first: a script can touch a key many times, and
    /// each time is a look at all who wait for it.
    pub fn dedup_ready(&mut self) {
        if self.ready.len() > 1 {
            let mut seen = HashSet::with_capacity(self.ready.len());
            let is_first: Vec<bool> = self.ready.iter().map(|ready| seen.insert(ready)).collect();
            let mut is_first = is_first.into_iter();
            self.ready.retain(|_| is_first.next() == Some(true));
        }
    }

    /// Between calls: gives back the room that one with many effects has made.
    #[inline]
    pub fn shrink(&mut self) {
        shrink_beyond(&mut self.notices, EFFECTS_KEPT_MAX);
        shrink_beyond(&mut self.ready, EFFECTS_KEPT_MAX);
        shrink_beyond(&mut self.changed, EFFECTS_KEPT_MAX);
        shrink_beyond(&mut self.own_messages, EFFECTS_KEPT_MAX);
        self.records.shrink();
        shrink_beyond(&mut self.outbox, EFFECTS_KEPT_MAX);
    }

    /// Notes that the gauges of a shard are out of date.
    pub(crate) fn mark_touched(&mut self, shard: usize) {
        self.touched.insert(shard);
    }

    /// The same for shards in a database that the call has left, or works on as a whole.
    pub(crate) fn leave(&mut self, db: usize, touched: &ShardSet) {
        match self.left.iter_mut().find(|(left, _)| *left == db) {
            Some((_, shards)) => *shards = std::mem::take(shards).union(touched),
            None => self.left.push((db, touched.clone())),
        }
    }

    /// A key is gone because its time was over: its event, and its record.
    pub(crate) fn expired(&mut self, db: usize, key: &[u8]) {
        self.notice(db, key, Event::EXPIRED);
        self.record_expiry(|records| records.push(db, [b"DEL", key]));
    }

    fn record_expiry(&mut self, push: impl FnOnce(&mut Records)) {
        let before = self.records.len();
        self.records.for_everyone(push);
        self.expiry_records += (self.records.len() - before) as u64;
    }

    /// Fields of a hash are gone because their time was over: their record, or that of the whole
    /// key if it went with them.
    pub(crate) fn expired_fields(&mut self, db: usize, key: &[u8], names: Option<&[Box<[u8]>]>) {
        self.record_expiry(|records| match names {
            Some(names) => records.push_list(db, &[b"HDEL", key], names),
            None => records.push(db, [b"DEL", key]),
        });
    }

    #[inline]
    pub(crate) fn notice(&mut self, db: usize, key: &[u8], event: Event) {
        if self.wanted.has_any(event.class) {
            self.notices.push(Notice { db, event, key: key.into() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that touched a key many times had everyone who waited for it looked at as often.
    #[test]
    fn a_key_that_was_touched_often_is_ready_once() {
        let ready = |db, key: &str| ReadyKey { db, key: key.as_bytes().into() };
        let mut effects = Effects::default();
        effects.ready.extend(["a", "b", "a", "c", "b", "a"].map(|key| ready(0, key)));
        effects.ready.push(ready(1, "a"));
        effects.dedup_ready();
        assert_eq!(effects.ready, [ready(0, "a"), ready(0, "b"), ready(0, "c"), ready(1, "a")]);
    }
}
