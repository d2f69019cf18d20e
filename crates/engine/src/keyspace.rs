//! All the shards together: locking, and the housekeeping that walks shard by shard. Which shard a
//! key lives in is decided in `placement`.

use crate::access::AccessPolicy;
use crate::barrier::{Barrier, Barriers};
use crate::event::EventClasses;
use crate::journal::Journal;
use crate::key_counts::KeyCounts;
use crate::keys::{Effects, Keys};
use crate::moving::MovingKeys;
use crate::once::{OnceRecords, OnceTotals};
use crate::placement::{LastTag, Placement};
use crate::reclaim::Reclaimer;
use crate::shard::{Shard, ShardGauges};
use crate::snapshot::Snapshots;
use crate::store::raw::lock::{Locked, LockedOne, Locks, Wait, Wake};
use crate::store::raw::table::{Blocks, Home, PagePool, Table};
use crate::store::shard_set::ShardSet;
use crate::tracked::{Gone, TrackedKeys, TrackedTotals};
use crate::used_memory::UsedMemory;
use crate::value::Object;
use russet_base::clock::UnixMillis;
use russet_base::hash::KeyHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Shards whose entries lie among each other: the fewer there are to a slab, the more memory is
/// left over in the last page of each size, and the more, the likelier two threads meet there.
const SHARDS_PER_SLAB: usize = 16;
/// Watchers, and as many waiters, that are looked at while a shard is locked to forget those who
/// are gone: some tens of microseconds.
const SWEEP_STEPS: usize = 256;

/// Where a key lives: its shard, and its hash inside the shard's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub shard: u16,
    pub hash: u64,
}

/// A command's wait for a busy shard.
pub type KeyspaceWait = Wait<Shard>;

pub struct Keyspace {
    locks: Arc<Locks<Shard>>,
    gauges: Box<[ShardGauges]>,
    key_counts: KeyCounts,
    once: Arc<OnceTotals>,
    tracked: Arc<TrackedTotals>,
    /// Someone tracks changes of all keys.
    wants_all_keys: AtomicBool,
    placement: Placement,
    databases: usize,
    pool: Arc<PagePool>,
    reclaimer: Reclaimer,
    notify: AtomicU32,
    barriers: Arc<Barriers>,
    journal: Arc<Journal>,
    moving: Arc<MovingKeys>,
    /// Whether anybody wants to know what calls change.
    is_recording: AtomicBool,
    pub(crate) access: AccessPolicy,
    draws: AtomicU64,
    snapshots: Snapshots,
}

impl Keyspace {
    /// `shards` is rounded up: see [`Keyspace::shards`].
    pub fn new(shards: usize, databases: usize, hasher: KeyHasher) -> Self {
        let placement = Placement::new(shards, hasher);
        let shards = placement.shards();
        let pool = Arc::new(PagePool::new());
        let slabs: Vec<_> = (0..shards.div_ceil(SHARDS_PER_SLAB))
            .map(|_| Arc::new(Blocks::new(pool.clone())))
            .collect();
        let once = Arc::<OnceTotals>::default();
        let tracked = Arc::<TrackedTotals>::default();
        let barriers = Arc::<Barriers>::default();
        let shard = |index: usize| {
            let tracked = TrackedKeys::new(tracked.clone(), hasher);
            let beside = (OnceRecords::new(once.clone()), tracked);
            Shard::new(&slabs[index % slabs.len()], hasher, beside)
        };
        Keyspace {
            locks: Arc::new(Locks::new((0..shards).map(shard))),
            once: once.clone(),
            tracked: tracked.clone(),
            wants_all_keys: AtomicBool::new(false),
            gauges: (0..shards).map(|_| ShardGauges::new(databases)).collect(),
            key_counts: KeyCounts::new(shards, databases),
            placement,
            databases,
            pool,
            reclaimer: Reclaimer::start(),
            notify: AtomicU32::new(0),
            journal: Arc::new(Journal::new(barriers.clone())),
            moving: Arc::new(MovingKeys::new(barriers.clone())),
            barriers,
            is_recording: AtomicBool::new(false),
            access: AccessPolicy::default(),
            draws: AtomicU64::new(0),
            snapshots: Snapshots::default(),
        }
    }

    pub fn shards(&self) -> usize {
        self.locks.len()
    }

    pub fn databases(&self) -> usize {
        self.databases
    }

    /// What keys are hashed with, and the members of large collections.
    pub fn hasher(&self) -> KeyHasher {
        self.placement.hasher()
    }

    pub fn all_shards(&self) -> ShardSet {
        self.locks.all().clone()
    }

    /// Where a key lives. What decides it is known to [`crate::placement`] alone.
    #[inline]
    pub fn locate(&self, key: &[u8]) -> Location {
        self.placement.locate(key)
    }

    /// As [`Keyspace::locate`], for the keys of one call, one after the other.
    #[inline]
    pub fn locate_next<'a>(&self, key: &'a [u8], last: &mut Option<LastTag<'a>>) -> Location {
        self.placement.locate_next(key, last)
    }

    /// The only shard in which keys that match can be, if there is one.
    pub fn shard_of_pattern(&self, pattern: &[u8]) -> Option<usize> {
        self.placement.shard_of_pattern(pattern)
    }

    /// The only shard in which keys that begin so can be, if there is one.
    pub fn shard_of_prefix(&self, prefix: &[u8]) -> Option<usize> {
        self.placement.shard_of_prefix(prefix)
    }

    #[inline]
    pub fn try_lock(&self, wanted: &ShardSet) -> Result<Locked<'_, Shard>, usize> {
        self.locks.try_lock(wanted)
    }

    /// How often a call found each shard busy for so long that it had to queue.
    pub fn lock_waits(&self) -> impl Iterator<Item = u64> {
        self.locks.waits()
    }

    /// Wakes all who wait for one of these shards; see [`Locks::wake_waiters`].
    pub fn wake_waiters(&self, shards: &ShardSet) {
        shards.iter().for_each(|index| self.locks.wake_waiters(index));
    }

    /// One shard's lock if it is free and nobody waits for it: for work that can be put off.
    pub(crate) fn try_lock_now(&self, shard: usize) -> Option<LockedOne<'_, Shard>> {
        self.locks.try_lock_now(shard)
    }

    /// Nothing locked, to be added to with [`Keys::hold_known_now`].
    pub fn lock_none(&self) -> Locked<'_, Shard> {
        self.locks.lock_none()
    }

    /// The same, for a holder with a mark; see [`Locked::set_mark`].
    #[inline]
    pub fn lock_none_as(&self, mark: u32) -> Locked<'_, Shard> {
        let mut none = self.locks.lock_none();
        none.set_mark(mark);
        none
    }

    /// Hints that a key's shard will be locked soon.
    #[inline]
    pub fn prefetch_lock(&self, location: Location) {
        self.locks.prefetch(location.shard as usize);
    }

    /// Hints that keys will be needed soon, as far as their shards are free now.
    pub fn prefetch(&self, locations: &[(usize, Location)]) {
        let look = |&(db, location): &(usize, Location), hint: fn(&Table<Object>, u64)| {
            if let Some(mut locked) = self.locks.try_lock_now(location.shard as usize) {
                hint(&locked.shard().tables[db], location.hash);
            }
        };
        let bucket: fn(&Table<Object>, u64) = |table, hash| {
            table.home(hash).iter().for_each(Home::prefetch);
        };
        let entry: fn(&Table<Object>, u64) = |table, hash| {
            let _likely = table.home(hash).map(|home| home.prefetch_entry(false));
        };
        for hint in [Table::prefetch_segment, bucket, entry] {
            locations.iter().for_each(|at| look(at, hint));
        }
    }

    /// A wait for busy shards; `wake` is called when to poll again.
    pub fn wait(&self, wake: Arc<dyn Wake>) -> KeyspaceWait {
        Wait::new(self.locks.clone(), wake)
    }

    #[inline]
    pub fn poll<'a>(
        &'a self,
        wait: &mut KeyspaceWait,
        set: &ShardSet,
        may_reserve: bool,
    ) -> Option<Locked<'a, Shard>> {
        wait.poll(&self.locks, set, may_reserve)
    }

    /// Locks shards, sleeping if it must: for threads that serve nobody else.
    pub fn lock(&self, wanted: ShardSet) -> Locked<'_, Shard> {
        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(&self) {
                self.0.unpark();
            }
        }
        if let Ok(locked) = self.try_lock(&wanted) {
            return locked;
        }
        let mut wait = self.wait(Arc::new(Unpark(std::thread::current())));
        loop {
            if let Some(locked) = self.poll(&mut wait, &wanted, true) {
                return locked;
            }
            std::thread::park();
        }
    }

    pub fn gauges(&self) -> &[ShardGauges] {
        &self.gauges
    }

    pub fn key_counts(&self) -> &KeyCounts {
        &self.key_counts
    }

    /// Makes the counts and bytes of one database of a shard visible to those without its lock.
    pub(crate) fn publish_shard(&self, index: usize, shard: &mut Shard, db: usize) {
        let table = &mut shard.tables[db];
        table.take_changed();
        let bytes = table.take_unpublished();
        self.publish_gauges(index, shard, db);
        self.used_memory().add(index, bytes);
    }

    #[inline]
    pub(crate) fn publish_gauges(&self, index: usize, shard: &Shard, db: usize) {
        let table = &shard.tables[db];
        self.key_counts.set(db, index, table.len() as u64);
        self.key_counts.set_slot_bytes(db, index, table.slot_bytes() as u64);
        self.gauges[index].publish(shard, db);
    }

    /// The bytes in use, the tables' and everyone's who adds to it. Up to date with every call that
    /// has ended, and within some 64 KiB for each shard with those that have not.
    pub fn used_memory(&self) -> &UsedMemory {
        self.pool.used()
    }

    /// Bytes of the slots of all databases that have keys, as of the last write of each shard.
    pub fn slot_bytes(&self) -> u64 {
        (0..self.databases()).map(|db| self.key_counts.slot_bytes(db)).sum()
    }

    /// Has memory ready before a command needs it. For a thread that serves nobody.
    pub fn prepare_memory(&self) {
        self.pool.prepare();
    }

    pub fn reclaimer(&self) -> &Reclaimer {
        &self.reclaimer
    }

    /// A number for sampling keys: which one can't be told without the hasher's seed.
    pub fn draw_u64(&self) -> u64 {
        self.hasher().hash(&self.draws.fetch_add(1, Ordering::Relaxed).to_le_bytes())
    }

    /// Which classes of events someone may listen to (`notify-keyspace-events`).
    #[inline]
    pub fn notify_classes(&self) -> EventClasses {
        EventClasses(self.notify.load(Ordering::Relaxed))
    }

    pub fn set_notify_classes(&self, classes: EventClasses) {
        self.notify.store(classes.0, Ordering::Relaxed);
    }

    /// Whether what has expired may be removed now: keys, and parts of values. While it may not,
    /// nobody sees what has expired, but it stays where it is, without events or records.
    #[inline]
    pub fn may_expire(&self) -> bool {
        self.barriers.may_expire()
    }

    /// A pause begins or ends: meanwhile nothing may expire, for nothing may change.
    pub fn set_paused(&self, is_paused: bool) {
        self.barriers.set(Barrier::Pause, is_paused);
    }

    /// What may block calls.
    #[inline]
    pub fn barriers(&self) -> &Barriers {
        &self.barriers
    }

    /// Keys that are on their way to another server.
    pub fn moving(&self) -> &Arc<MovingKeys> {
        &self.moving
    }

    /// Where what calls change goes, in one order.
    #[inline]
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// The snapshot that is being taken.
    #[inline]
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Whether records of changes are gathered; see [`crate::record`].
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Acquire)
    }

    /// Calls that begin from now on gather their records, or no longer do.
    pub fn set_recording(&self, is_recording: bool) {
        self.is_recording.store(is_recording, Ordering::Release);
    }

    /// What is kept of requests that run at most once; see [`crate::once`].
    pub fn once_totals(&self) -> &OnceTotals {
        &self.once
    }

    /// How many keys are remembered that clients may have copies of.
    pub fn tracked_totals(&self) -> &TrackedTotals {
        &self.tracked
    }

    /// Whether calls gather the keys that they change, whoever has read them. A call that does not
    /// hold a shard yet gathers those of that shard.
    pub fn set_wants_all_keys(&self, wants: bool) {
        self.wants_all_keys.store(wants, Ordering::Release);
    }

    #[inline]
    pub(crate) fn wants_all_keys(&self) -> bool {
        self.wants_all_keys.load(Ordering::Acquire)
    }

    /// Forgets clients that are gone and have read keys of one shard, in steps between which it is
    /// unlocked. False if it is busy: then it is to be visited again.
    pub fn forget_readers(&self, shard: usize, gone: &Gone<'_>) -> bool {
        while let Some(mut locked) = self.try_lock_now(shard) {
            if locked.shard().tracked.forget_readers(gone) {
                return true;
            }
        }
        false
    }

    /// Forgets up to `budget` requests of one shard whose time is over, and says whether more may
    /// be. Skips a busy shard: it will be visited again.
    pub fn expire_once(&self, shard: usize, now: UnixMillis, budget: usize) -> bool {
        let locked = self.locks.try_lock_now(shard);
        locked.is_some_and(|mut locked| locked.shard().once.expire(now, budget) == budget)
    }

    /// Forgets those who no longer watch or wait for a key of one shard, in steps that let others
    /// have the shard between them. Whether anyone waits for one, or may, since the shard is busy.
    pub fn sweep_listeners(&self, shard: usize) -> bool {
        while let Some(mut locked) = self.try_lock_now(shard) {
            let held = locked.shard();
            let watched_has_more = held.watched.sweep(SWEEP_STEPS);
            let waiting_has_more = held.waiting.sweep(SWEEP_STEPS);
            if !watched_has_more && !waiting_has_more {
                return !held.waiting.is_empty();
            }
        }
        true
    }

    /// A view of locked shards for one command.
    #[inline]
    pub fn keys<'a>(
        &'a self,
        locked: Locked<'a, Shard>,
        effects: &'a mut Effects,
        (db, now): (usize, UnixMillis),
    ) -> Keys<'a> {
        Keys::new(self, locked, effects, (db, now))
    }

    /// Counts an expired entry that is out of its table, and frees what it held.
    #[cold]
    pub(crate) fn reclaim_expired(&self, shard: usize, object: Option<Box<Object>>) {
        self.count_expired(shard);
        if let Some(object) = object {
            self.reclaimer.reclaim(object);
        }
    }

    pub(crate) fn count_expired(&self, shard: usize) {
        self.gauges[shard].count_expired(1);
    }
}
