//! Loads an RDB file on all cores: one thread reads it and looks at its sum, others make values of
//! its bytes and put them where they belong, each into shards of its own.

use super::{Meeting, Overdue};
use crate::groups::scripting;
use crate::node::Node;
use crate::node::load_pool::{Pool, Refused, with_pool, workers};
use crate::node::offline::Strictness;
use russet_base::UnixMillis;
use russet_engine::access::NotedUse;
use russet_engine::keys::{Effects, Keys, KnownKey};
use russet_engine::keyspace::Location;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::NewValue;
use russet_engine::store::shard_set::ShardSet;
use russet_engine::value::Object;
use russet_persistence::rdb::load::{
    self, LoadOptions, LoadedKey, RawFound, RawReader, RawValue, Report, Target,
};
use russet_persistence::rdb::{Cause, Dialect, RdbError, Rules};
use std::io::Read;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys, or bytes of them, after which a batch is done.
const KEYS_MAX: usize = 4096;
const BYTES_MAX: usize = 1 << 20;
/// Keys that are fetched ahead.
const KEYS_AHEAD: usize = 16;
/// Keys of one shard for which it is worth to make room before they come.
const RESERVED_KEYS_MIN: usize = 64;
/// What a key takes in a file: so many more than there is room for are not believed.
const KEY_BYTES_MIN: u64 = 8;
/// Bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 256 * 1024;
pub(super) const TWICE: &str = "a key that is there twice";

/// A key of a batch.
struct RawKey {
    location: Location,
    /// The offset of its value in the file.
    at: u64,
    /// Its bytes in the batch: the key, then the value.
    start: usize,
    key_len: u32,
    db: u32,
    value_len: usize,
    kind: (u8, Dialect),
    /// Where in the batch it stands what is said of it, if anything is.
    said: Option<NonZeroU32>,
}

impl RawKey {
    fn key(&self) -> Range<usize> {
        self.start..self.start + self.key_len as usize
    }

    fn value(&self) -> Range<usize> {
        let start = self.key().end;
        start..start + self.value_len
    }
}

/// Expiry and use of a key.
type Said = (Option<UnixMillis>, Option<NotedUse>);

/// Keys of one thread.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    keys: Vec<RawKey>,
    said: Vec<Said>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.keys.len() >= KEYS_MAX || self.bytes.len() >= BYTES_MAX
    }

    fn add(&mut self, loaded: LoadedKey<'_>, location: Location, value: RawValue<'_>) {
        let LoadedKey { db, key, expiry, noted } = loaded;
        let said = (expiry.is_some() || noted.is_some()).then(|| {
            self.said.push((expiry, noted));
            NonZeroU32::new(self.said.len() as u32).expect("one was added")
        });
        self.keys.push(RawKey {
            location,
            at: value.at,
            start: self.bytes.len(),
            key_len: key.len() as u32,
            db: db as u32,
            value_len: value.bytes.len(),
            kind: (value.kind, value.dialect),
            said,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.bytes);
    }

    fn said(&self, raw: &RawKey) -> Said {
        raw.said.map_or((None, None), |number| self.said[number.get() as usize - 1])
    }

    /// The keys of each shard side by side, in the order of the file: what leads to a shard's
    /// entries is then fetched once for several of them.
    fn by_shard(&self, shards: usize) -> Vec<&RawKey> {
        let mut starts = vec![0; shards + 1];
        for raw in &self.keys {
            starts[usize::from(raw.location.shard) + 1] += 1;
        }
        for shard in 1..shards {
            starts[shard] += starts[shard - 1];
        }
        let mut sorted: Vec<&RawKey> = self.keys.iter().collect();
        for raw in &self.keys {
            let start = &mut starts[usize::from(raw.location.shard)];
            sorted[*start] = raw;
            *start += 1;
        }
        sorted
    }

    fn clear(&mut self) {
        self.bytes.clear();
        // A long value is not to take its room for ever.
        self.bytes.shrink_to(2 * BYTES_MAX);
        self.keys.clear();
        self.said.clear();
    }
}

/// What all threads count.
#[derive(Default)]
struct Counts {
    loaded: AtomicU64,
    expired: AtomicU64,
    empty: AtomicU64,
}

/// What one thread needs.
struct Filler<'f> {
    node: &'f Node,
    counts: &'f Counts,
    shards: ShardSet,
    rules: Rules,
    meeting: Meeting,
    overdue: Overdue,
}

impl Filler<'_> {
    /// Loads a batch, and empties it.
    fn fill(&self, batch: &mut Batch) -> Result<(), Refused> {
        let filled = self.fill_all(batch);
        batch.clear();
        filled
    }

    fn fill_all(&self, batch: &Batch) -> Result<(), Refused> {
        let keyspace = &self.node.keyspace;
        let sorted = batch.by_shard(keyspace.shards());
        let known: Vec<KnownKey> = (sorted.iter())
            .map(|raw| KnownKey { key: &batch.bytes[raw.key()], location: raw.location })
            .collect();
        let mut reader = RawReader::new(self.overdue.load_time(self.node.clock.now()));
        let locked = keyspace.lock(self.shards.clone());
        let mut effects = Effects::default();
        let mut keys = keyspace.keys(locked, &mut effects, (0, self.node.clock.now()));
        self.overdue.set_time(&mut keys);
        let mut found_sums = [0; 3];
        let mut refused: Option<Refused> = None;
        for (index, raw) in sorted.into_iter().enumerate() {
            if keys.db != raw.db as usize {
                keys.publish();
                keys.db = raw.db as usize;
            }
            if index.is_multiple_of(KEYS_AHEAD) {
                keys.know(&known[index..known.len().min(index + KEYS_AHEAD)]);
                keys.prefetch_known();
            }
            keys.skip_to(index % KEYS_AHEAD);
            self.node.delay_load();
            match self.fill_one(batch, raw, (&mut reader, &mut keys)) {
                Ok(found) => found_sums[found as usize] += 1,
                // The first in the file, which need not be the first here.
                Err(next) if refused.as_ref().is_none_or(|first| next.0 < first.0) => {
                    refused = Some(next);
                }
                Err(_) => {}
            }
        }
        let Counts { loaded, expired, empty } = self.counts;
        for (count, found) in
            [(loaded, RawFound::Loaded), (expired, RawFound::Expired), (empty, RawFound::Empty)]
        {
            count.fetch_add(found_sums[found as usize], Ordering::Relaxed);
        }
        keys.publish();
        refused.map_or(Ok(()), Err)
    }

    fn fill_one<'b>(
        &self,
        batch: &'b Batch,
        raw: &RawKey,
        (reader, keys): (&mut RawReader<'b>, &mut Keys<'_>),
    ) -> Result<RawFound, Refused> {
        let (expiry, noted) = batch.said(raw);
        let key = &batch.bytes[raw.key()];
        let loaded = LoadedKey { db: keys.db, key, expiry, noted };
        let mut is_twice = false;
        let found = reader.read(&batch.bytes[raw.value()], raw.kind, &self.rules, &mut |value| {
            is_twice = !put(keys, loaded, value, self.meeting);
        });
        let found = found.map_err(|error| (raw.at + error.offset, reason_of(error)))?;
        if is_twice {
            return Err((raw.at + raw.value_len as u64, TWICE.to_owned()));
        }
        Ok(found)
    }
}

/// What is wrong with a value, without its offset.
fn reason_of(error: RdbError) -> String {
    match error.cause {
        Cause::Corrupt(reason) => reason.into_owned(),
        Cause::Unsupported(what) => format!("not supported: {what}"),
        Cause::Ended => "a value that ends too early".to_owned(),
        Cause::Read(error) => error.to_string(),
    }
}

/// Lets `action` have the keys of some shards.
fn with_keys<R>(
    node: &Node,
    shards: &ShardSet,
    overdue: Overdue,
    action: impl FnOnce(&mut Keys<'_>) -> R,
) -> R {
    let keyspace = &node.keyspace;
    let locked = keyspace.lock(shards.clone());
    let mut effects = Effects::default();
    let mut keys = keyspace.keys(locked, &mut effects, (0, node.clock.now()));
    overdue.set_time(&mut keys);
    let result = action(&mut keys);
    keys.publish();
    result
}

/// Puts a key where it belongs; false if it is there and must not be.
pub(super) fn put(
    keys: &mut Keys,
    loaded: LoadedKey<'_>,
    value: NewValue<'_, Object>,
    meeting: Meeting,
) -> bool {
    let LoadedKey { key, expiry, noted, .. } = loaded;
    if meeting == Meeting::Replace {
        keys.put(key, value, expiry);
    } else if !keys.put_new(key, value, expiry) {
        return false;
    }
    if let Some(noted) = noted {
        keys.set_noted_use(key, noted);
    }
    keys.wrote_beside(key, 0, None);
    keys.effects.notices.clear();
    true
}

impl Node {
    /// Loads a file on all cores. No shard is held, and nobody may use the data meanwhile.
    pub(super) fn load_on_all_cores(
        &self,
        source: impl Read,
        overdue: Overdue,
    ) -> Result<Report, RdbError> {
        let (meeting, now) = (Meeting::Refuse, overdue.load_time(self.clock.now()));
        let rules = self.value_rules();
        let Strictness { checks_sum, tries_any_version } = self.strictness();
        let options = LoadOptions { rules: &rules, now, checks_sum, tries_any_version };
        let counts = Counts::default();
        let (workers, shards) = (workers(), self.keyspace.shards());
        let filler =
            |shards| Filler { node: self, counts: &counts, shards, rules, meeting, overdue };
        let make = |index: usize| {
            let mut own = ShardSet::EMPTY;
            (index..shards).step_by(workers).for_each(|shard| own.insert(shard));
            let filler = filler(own);
            move |batch: &mut Batch| filler.fill(batch)
        };
        let report = with_pool(workers, make, |pool| {
            let mut target = Loading {
                node: self,
                // Should fewer threads be there, shards are not shared out as they are here.
                is_alone: pool.workers() < workers.max(1),
                batches: (0..workers.max(1)).map(|_| Batch::default()).collect(),
                pool,
                own: filler(self.keyspace.all_shards()),
                reported_bytes: 0,
            };
            let loaded = load::load(source, options, &mut target);
            let finished = target.finish();
            match finished {
                // What threads have found comes first in the file, as a rule.
                Err((offset, reason)) => {
                    Err(RdbError { offset, cause: Cause::Corrupt(reason.into()) })
                }
                Ok(()) => loaded,
            }
        });
        let mut report = report?;
        report.keys_loaded += counts.loaded.into_inner();
        report.keys_expired += counts.expired.into_inner();
        report.keys_empty += counts.empty.into_inner();
        Ok(report)
    }
}

/// Hands what is read to the threads.
struct Loading<'l, 'p> {
    node: &'l Node,
    pool: &'l mut Pool<'p, Batch>,
    is_alone: bool,
    batches: Vec<Batch>,
    /// For what the thread that reads does itself.
    own: Filler<'l>,
    reported_bytes: u64,
}

impl Loading<'_, '_> {
    fn done(&mut self, worker: usize) -> Result<(), Refused> {
        if self.is_alone {
            return self.own.fill(&mut self.batches[worker]);
        }
        let batch = std::mem::take(&mut self.batches[worker]);
        self.batches[worker] = self.pool.send(worker, batch);
        self.pool.check()
    }

    fn finish(&mut self) -> Result<(), Refused> {
        for worker in 0..self.batches.len() {
            if !self.batches[worker].keys.is_empty() {
                self.done(worker)?;
            }
        }
        self.pool.wait()
    }
}

impl Target for Loading<'_, '_> {
    fn databases(&self) -> usize {
        self.node.keyspace.databases()
    }

    fn wants_raw(&self) -> bool {
        true
    }

    fn raw(&mut self, loaded: LoadedKey<'_>, value: RawValue<'_>) -> Result<(), String> {
        let location = self.node.keyspace.locate(loaded.key);
        let worker = if self.is_alone { 0 } else { self.pool.worker_of(location.shard) };
        let batch = &mut self.batches[worker];
        batch.add(loaded, location, value);
        match batch.is_full() {
            // The load ends, and the error is reported then.
            true => self.done(worker).map_err(|(_, why)| why),
            false => Ok(()),
        }
    }

    fn key(&mut self, loaded: LoadedKey<'_>, value: NewValue<'_, Object>) -> Result<(), String> {
        let shard = usize::from(self.node.keyspace.locate(loaded.key).shard);
        let (meeting, overdue) = (self.own.meeting, self.own.overdue);
        let is_put = with_keys(self.node, &ShardSet::one(shard), overdue, |keys| {
            keys.db = loaded.db;
            put(keys, loaded, value, meeting)
        });
        if is_put { Ok(()) } else { Err(TWICE.to_owned()) }
    }

    fn function(&mut self, source: &[u8]) -> Result<(), String> {
        scripting::function::load_saved(self.node, source)
            .map_err(|refusal| refusal.wire().into_owned())
    }

    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) {
        let Location { shard, hash } = self.node.keyspace.locate(id);
        let shard = usize::from(shard);
        let now = self.node.clock.now();
        with_keys(self.node, &ShardSet::one(shard), self.own.overdue, |keys| {
            keys.shard(shard).once.put(db, (id, hash), record, now);
        });
    }

    fn expect(&mut self, db: usize, keys: u64) {
        let bytes = self.node.durability.loading.bytes_total.load(Ordering::Relaxed);
        let (keys, shards) = (keys.min(bytes / KEY_BYTES_MIN), self.node.keyspace.shards());
        let shard_keys = keys as usize / shards;
        if shard_keys < RESERVED_KEYS_MIN {
            return;
        }
        for shard in 0..shards {
            with_keys(self.node, &ShardSet::one(shard), self.own.overdue, |keys| {
                keys.db = db;
                keys.reserve(shard, shard_keys);
            });
        }
    }

    fn memory(&mut self, bytes: u64) {
        self.node.durability.loading.saved_memory_bytes.store(bytes, Ordering::Relaxed);
    }

    fn progress(&mut self, bytes: u64) {
        if bytes.saturating_sub(self.reported_bytes) >= PROGRESS_BYTES {
            self.node.loaded_bytes(bytes - self.reported_bytes);
            self.reported_bytes = bytes;
        }
    }
}
