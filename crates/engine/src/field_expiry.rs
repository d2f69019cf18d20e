//! Fields of hashes that expire: which keys of a shard have such fields, when the next of them is
//! due, and their removal.
//!
//! Each hash with deadlines has exactly one record in the schedule of its database and shard, at
//! the hash's bound: the moment before which none of its fields expires. While no record is due,
//! no field of the shard is over, and a look-up costs one comparison more. When one is due, whoever
//! looks the key up removes what is over first, all of it or, of a large hash, a few fields: the
//! rest is hidden from readers and writers ([`Keys::hides_fields_ms`]) and goes with further
//! look-ups and with housekeeping, which also comes to the keys that nobody looks up. A hash of
//! which nothing else is left goes as one.
//!
//! DIFFERS: Valkey leaves such fields in place until its own housekeeping comes across them, so
//! that HLEN counts them and EXISTS sees a key of nothing else.

use crate::effects::Effects;
use crate::event::Event;
use crate::keys::{Keys, Use};
use crate::keyspace::Location;
use crate::shard::Shard;
use crate::store::raw::table::{Blocks, EntryMut, Gone, Inline, NewValue, Removed, View};
use crate::tracked::Cause;
use crate::types::capacity::{allocated_bytes, tree_bytes};
use crate::types::hash::stored::{self, Pair, Purged, Reclaimed};
use crate::types::hash::{HashEntry, HashLimits, Lease};
use crate::value::{Object, WrongType};
use russet_base::clock::UnixMillis;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Fields of a large hash that one look-up removes: some tens of microseconds.
const LOOKUP_FIELDS_MAX: usize = 64;
/// Hashes with fields that are over of which a look at a whole shard removes some.
const WALK_KEYS_MAX: usize = 64;

/// The hashes with deadlines of one database of a shard.
pub(crate) struct FieldSchedule {
    records: BTreeSet<(i64, Box<[u8]>)>,
    /// The first record's moment, the end of time without any.
    next_due_ms: i64,
    keys_bytes: usize,
    /// Where the bytes of all this are counted, and how many were.
    blocks: Arc<Blocks>,
    published: usize,
}

impl FieldSchedule {
    pub fn new(blocks: &Arc<Blocks>) -> Self {
        FieldSchedule {
            records: BTreeSet::new(),
            next_due_ms: i64::MAX,
            keys_bytes: 0,
            blocks: blocks.clone(),
            published: 0,
        }
    }

    pub fn empty_twin(&self) -> Self {
        FieldSchedule::new(&self.blocks)
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys_bytes + tree_bytes::<(i64, Box<[u8]>), ()>(self.records.len())
    }

    fn publish(&mut self) {
        let bytes = self.memory_bytes();
        let before = std::mem::replace(&mut self.published, bytes);
        self.blocks.used().add(bytes, bytes.wrapping_sub(before).cast_signed());
    }

    /// Leaves an empty one, and returns the full one to be dropped wherever there is time.
    pub fn take(&mut self) -> Self {
        let mut empty = self.empty_twin();
        empty.published = self.published;
        empty.publish();
        std::mem::replace(self, empty)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    #[inline]
    pub fn is_due(&self, now: UnixMillis) -> bool {
        self.next_due_ms <= now.0
    }

    /// Notes that a key's bound is no longer `before` but `after`.
    #[cold]
    fn change(&mut self, key: &[u8], (before, after): (Option<i64>, Option<i64>)) {
        let mut record = (before.unwrap_or(0), Box::from(key));
        let key_bytes = allocated_bytes(key.len());
        if before.is_some() && self.records.remove(&record) {
            self.keys_bytes -= key_bytes;
        }
        if let Some(at_ms) = after {
            record.0 = at_ms;
            self.keys_bytes += if self.records.insert(record) { key_bytes } else { 0 };
        }
        self.publish();
        self.next_due_ms = self.records.first().map_or(i64::MAX, |first| first.0);
    }

    #[cfg(test)]
    pub fn has(&self, key: &[u8], bound: i64) -> bool {
        self.records.contains(&(bound, key.into()))
    }

    /// Notes that a key with this bound is gone.
    #[inline]
    pub fn forget(&mut self, key: &[u8], bound: Option<i64>) {
        if bound.is_some() {
            self.change(key, (bound, None));
        }
    }

    /// Drops a record that led nowhere, for it must not keep the others waiting: its key is over as
    /// a whole and will be removed as such.
    fn drop_idle(&mut self, key: &[u8], (at_ms, fields): (i64, usize)) {
        if fields == 0 {
            self.change(key, (Some(at_ms), None));
        }
    }

    /// The first records that are due, each once.
    fn some_due(&self, now: UnixMillis) -> Vec<(i64, Box<[u8]>)> {
        let due = self.records.iter().take_while(|(at_ms, _)| *at_ms <= now.0);
        due.take(WALK_KEYS_MAX).cloned().collect()
    }

    /// The first record, if it is due.
    fn first_due(&self, now: UnixMillis) -> Option<(i64, Box<[u8]>)> {
        if !self.is_due(now) {
            return None;
        }
        self.records.first().cloned()
    }
}

/// How much may be removed at once, and by what time.
#[derive(Clone, Copy)]
struct Step {
    now: UnixMillis,
    fields_max: usize,
    /// Whether the names of what goes are wanted.
    is_recording: bool,
}

/// What a key has lost.
#[derive(Default)]
struct Loss {
    fields: usize,
    is_key_gone: bool,
    /// What the fields were called, if somebody wants to know and the key is still there.
    names: Vec<Box<[u8]>>,
    /// What a large hash of which nothing is left takes with it.
    object: Option<Box<Object>>,
}

impl Shard {
    /// Removes expired fields of a key, and the key with its last field.
    fn expire_fields(&mut self, db: usize, key: (&[u8], u64), step: Step) -> Loss {
        let (key, hash) = key;
        let Some(mut entry) = self.tables[db].find_mut(key, hash) else { return Loss::default() };
        let before = stored::bound_of(&entry.value());
        let is_due = before.is_some_and(|bound| bound <= step.now.0);
        // A key that is over as a whole takes its fields along, and nobody hears of them.
        let is_dead = entry.expiry().is_some_and(|at_ms| at_ms <= step.now.0);
        if !is_due || is_dead {
            return Loss::default();
        }
        if let View::Object(Object::Hash(hash)) = entry.value()
            && stored::is_over(&entry.value(), step.now.0)
        {
            // Millions of fields may be over at one moment: they go as one.
            let fields = hash.len();
            let object = match entry.is_unsaved() {
                true => self.snapshot.keep((db, key), entry.take_unsaved()),
                false => entry.take_object(),
            };
            drop(entry.delete());
            self.fields[db].change(key, (before, None));
            self.watched.touch(db, key);
            return Loss { fields, is_key_gone: true, object, ..Loss::default() };
        }
        if entry.is_unsaved() {
            self.snapshot.keep_copy((db, key), Removed::copy_of(&entry.as_ref()));
            entry.mark_saved();
        }
        let mut names = Vec::new();
        let limits = (step.now.0, step.fields_max);
        let Purged { fields, is_empty, is_news } = stored::purge(&mut entry, limits, &mut |name| {
            if step.is_recording {
                names.push(name.to_vec().into_boxed_slice());
            }
        });
        let after = stored::bound_of(&entry.value());
        if is_empty {
            drop(entry.delete());
        }
        self.fields[db].change(key, (before, after));
        // Those that were hidden have been over for all who have looked since.
        if is_news {
            self.watched.touch(db, key);
        }
        Loss { fields, is_key_gone: is_empty, names, object: None }
    }
}

/// The events and the record of what a key has lost.
fn record_loss(effects: &mut Effects, (db, key): (usize, &[u8]), loss: &Loss) {
    if loss.fields > 0 {
        effects.notice(db, key, Event::hash("hexpired"));
        effects.expired_fields(db, key, (!loss.is_key_gone).then_some(&loss.names));
    }
    if loss.is_key_gone {
        effects.notice(db, key, Event::DEL);
    }
}

impl Keys<'_> {
    /// Removes up to about `budget` expired fields of one held shard; whether more are due.
    pub(crate) fn expire_fields_step(&mut self, index: usize, budget: usize) -> bool {
        let (keyspace, now, effects) = (self.keyspace, self.now, &mut *self.effects);
        let gauges = &keyspace.gauges()[index];
        let shard = self.locked.shard(index);
        let (mut left, mut has_more) = (budget, false);
        for db in 0..shard.fields.end() {
            if !shard.fields[db].is_due(now) {
                continue;
            }
            let mut fields = 0;
            while let Some((at_ms, key)) = shard.fields[db].first_due(now) {
                has_more = left == 0;
                if has_more {
                    break;
                }
                let is_recording = effects.records.is_on();
                let step = Step { now, fields_max: left, is_recording };
                let loss = shard.expire_fields(db, (&key, keyspace.locate(&key).hash), step);
                shard.fields[db].drop_idle(&key, (at_ms, loss.fields));
                let cost = if loss.object.is_some() { 1 } else { loss.fields.max(1) };
                left = left.saturating_sub(cost);
                fields += loss.fields;
                if loss.fields > 0 {
                    effects.note_change(&mut shard.tracked, &key, Cause::GONE);
                }
                record_loss(effects, (db, &key), &loss);
                loss.object.into_iter().for_each(|object| keyspace.reclaimer().reclaim(object));
            }
            gauges.count_expired_fields(fields as u64);
            keyspace.publish_shard(index, shard, db);
        }
        has_more
    }

    /// Lets `edit` change the hash under a key, if there is one. Say what was done with
    /// [`Keys::wrote`].
    #[inline]
    pub fn edit_hash<R>(
        &mut self,
        key: &[u8],
        limits: HashLimits,
        edit: impl FnOnce(&mut HashEntry<'_, '_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let (hasher, now_ms) = (self.keyspace.hasher(), self.now.0);
        let Some(mut entry) = self.write(key) else { return Ok(None) };
        let before = stored::bound_of(&entry.value());
        let mut hash = HashEntry::new(&mut entry, (limits, hasher))?.hiding(now_ms);
        let result = edit(&mut hash);
        let after = hash.bound();
        if before.is_some() || after.is_some() {
            let reclaimed = hash.reclaimed();
            self.note_deadlines(key, (before, after), &reclaimed);
        }
        Ok(Some(result))
    }

    /// What an edit has done to the deadlines of a hash that has, or had, any.
    #[inline(never)]
    fn note_deadlines(
        &mut self,
        key: &[u8],
        bounds: (Option<i64>, Option<i64>),
        reclaimed: &Reclaimed,
    ) {
        self.reschedule(key, bounds);
        if !reclaimed.names.is_empty() || reclaimed.rest > 0 {
            self.note_reclaimed(key, reclaimed);
        }
    }

    /// Counts and records hidden fields that an edit has removed, or leaves nothing but them. The
    /// record comes before that of the call, so that it finds them gone, too.
    #[cold]
    fn note_reclaimed(&mut self, key: &[u8], Reclaimed { names, rest }: &Reclaimed) {
        self.count_expired_fields(key, names.len() + rest);
        let db = self.db;
        self.effects.records.for_everyone(|records| match rest {
            0 => records.push_list(db, &[b"HDEL", key], names),
            _ => records.push(db, [b"DEL", key]),
        });
    }

    /// Puts a new hash of these pairs under a key; how many fields it has.
    #[inline]
    pub fn put_hash<'p>(
        &mut self,
        key: &[u8],
        pairs: impl ExactSizeIterator<Item = Pair<'p>> + Clone,
        (lease, limits): (Lease, HashLimits),
    ) -> usize {
        let hasher = self.keyspace.hasher();
        stored::build(pairs, lease, (limits, hasher), |value| self.put(key, value, None))
    }

    /// Counts fields that were over as soon as they were given their deadline.
    pub fn count_expired_fields(&mut self, key: &[u8], fields: usize) {
        let index = usize::from(self.location(key).shard);
        self.keyspace.gauges()[index].count_expired_fields(fields as u64);
    }

    /// Notes that the moment before which no field of a key expires has changed.
    #[inline]
    pub(crate) fn reschedule(&mut self, key: &[u8], change: (Option<i64>, Option<i64>)) {
        if change.0 != change.1 {
            self.reschedule_changed(key, change);
        }
    }

    #[cold]
    fn reschedule_changed(&mut self, key: &[u8], change: (Option<i64>, Option<i64>)) {
        let (db, index) = (self.db, usize::from(self.location(key).shard));
        let shard = self.locked.shard(index);
        shard.fields[db].change(key, change);
        self.keyspace.gauges()[index].publish_volatile(db, shard.fields[db].len());
    }

    /// Removes fields of a key that are over, with their events. The caller has seen that some of
    /// its shard are. While expiry is held back, one who only reads leaves them where they are.
    /// True if nothing of the key is left to be seen then.
    #[cold]
    pub(crate) fn expire_fields(&mut self, key: &[u8], location: Location, look: Use) -> bool {
        if look == Use::Read && !self.may_expire() {
            let (db, now_ms) = (self.db, self.now.0);
            let found = self.shard(usize::from(location.shard)).table(db).find(key, location.hash);
            return found.is_some_and(|entry| stored::is_over(&entry.value(), now_ms));
        }
        self.expire_fields_at(key, location);
        false
    }

    /// Fields that expire at this moment or before are to be hidden from readers: they may not be
    /// removed now (CLIENT PAUSE), or were too many to be removed at once.
    #[inline]
    pub fn hides_fields_ms(&self) -> i64 {
        self.now.0
    }

    fn expire_fields_at(&mut self, key: &[u8], location: Location) -> usize {
        let (db, index) = (self.db, usize::from(location.shard));
        let is_recording = self.is_recording();
        let step = Step { now: self.now, fields_max: LOOKUP_FIELDS_MAX, is_recording };
        let shard = self.locked.shard(index);
        let loss = shard.expire_fields(db, (key, location.hash), step);
        if loss.fields > 0 {
            let gauges = &self.keyspace.gauges()[index];
            gauges.count_expired_fields(loss.fields as u64);
            gauges.publish_volatile(db, shard.fields[db].len());
            self.effects.mark_touched(index);
            self.effects.note_change(&mut shard.tracked, key, Cause::GONE);
        }
        record_loss(self.effects, (db, key), &loss);
        loss.object.into_iter().for_each(|object| self.keyspace.reclaimer().reclaim(object));
        loss.fields
    }

    /// Removes fields of a held shard that are over, for those who look at all its keys. Some are
    /// left, and hashes of which all is over too, if there are many.
    #[inline]
    pub fn expire_fields_of(&mut self, index: usize) {
        let (db, now) = (self.db, self.now);
        if self.may_expire() && self.shard(index).fields[db].is_due(now) {
            self.expire_due_fields_of(index);
        }
    }

    #[cold]
    fn expire_due_fields_of(&mut self, index: usize) {
        let (db, now) = (self.db, self.now);
        for (at_ms, key) in self.shard(index).fields[db].some_due(now) {
            let location = self.keyspace.locate(&key);
            let fields = self.expire_fields_at(&key, location);
            self.shard(index).fields[db].drop_idle(&key, (at_ms, fields));
        }
    }
}

/// The bound of a value that is about to be put under a key.
#[inline]
pub(crate) fn bound_of_new(value: &NewValue<'_, Object>) -> Option<i64> {
    match value {
        NewValue::Packed(tag, bytes) => stored::bound_of_packed(*tag, bytes),
        NewValue::Object(object) => stored::bound_of_object(object),
        NewValue::Int(_) | NewValue::Bytes(_) => None,
    }
}

/// The bound of what was in an entry that is out of its table.
pub(crate) fn bound_of_gone(gone: &Gone<'_>, object: Option<&Object>) -> Option<i64> {
    match (gone.inline, object) {
        (Some(Inline::Packed(tag, bytes)), _) => stored::bound_of_packed(tag, bytes),
        (_, Some(object)) => stored::bound_of_object(object),
        _ => None,
    }
}

/// The bound of what an entry holds.
#[inline]
pub(crate) fn bound_of_entry(entry: &EntryMut<'_, Object>) -> Option<i64> {
    match entry.value() {
        View::Int(_) | View::Bytes(_) => None,
        view => stored::bound_of(&view),
    }
}
