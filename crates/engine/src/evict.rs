//! Eviction: which keys go when memory runs out. Some keys of a shard are looked at, the best
//! candidates of many such looks are kept, and the best of these and of those in sight go. Nothing
//! here waits: a shard that is busy is left for the next look.

use crate::access::last_used_seconds;
use crate::event::Event;
use crate::keys::{Effects, Keys};
use crate::keyspace::Keyspace;
use crate::shard::Shard;
use crate::store::raw::table::{EntryRef, Table};
use crate::value::Object;
use russet_base::clock::UnixMillis;
use russet_base::random::Random;
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// Candidates that are kept.
const CANDIDATES_MAX: usize = 16;
/// Keys that one look removes at most: its shard is held for a few microseconds.
const REMOVED_MAX: usize = 16;
/// Keys that one look takes into account at most, unless a single removal asks for more.
const SEEN_MAX: usize = 160;
/// So many keys are looked at for each that a setting asks for: keys side by side cost less than
/// those of other servers, which are anywhere.
const SEEN_PER_SAMPLE: usize = 2;
/// Buckets that one look goes through at most: keys that may go can be few.
const BUCKETS_MAX: usize = 64;
/// How many bits a rank has, and below it what decides between keys of one rank.
const RANK_BITS: u32 = u64::BITS - LOT_BITS;
const LOT_BITS: u32 = 16;
const RANK_MAX: u64 = (1 << RANK_BITS) - 1;
/// Looks after which it is counted again how many keys each shard has.
const LOOKS_PER_COUNT: u32 = 1024;

/// Which keys may go, and which of them go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Only keys with an expiry.
    pub is_volatile: bool,
    pub order: Order,
    /// Keys to look at for each that goes.
    pub samples: usize,
}

impl Choice {
    /// How many keys of a shard may go.
    fn count(self, keyspace: &Keyspace, shard: usize) -> u64 {
        match self.is_volatile {
            true => keyspace.gauges()[shard].expires.iter().map(|it| it.load(Relaxed)).sum(),
            false => keyspace.key_counts().in_shard(shard),
        }
    }

    /// How many keys of a table may go.
    fn count_in(self, table: &Table<Object>) -> usize {
        if self.is_volatile { table.expires_len() } else { table.len() }
    }

    /// Keys to look at for each that goes.
    fn seen_per_removal(self) -> usize {
        match self.order {
            // None is better than another. But a few are looked at, so that how many there are in
            // a bucket has no part in which go.
            Order::Random => self.samples.max(1),
            _ => self.samples.max(1) * SEEN_PER_SAMPLE,
        }
    }

    /// Keys of a table to look at, if so many bytes are to be freed.
    fn seen_for(self, table: &Table<Object>, bytes: u64) -> usize {
        let mean = (table.memory_bytes() / table.len().max(1)).max(1) as u64;
        let removals = usize::try_from(bytes.div_ceil(mean)).unwrap_or(REMOVED_MAX);
        let each = self.seen_per_removal();
        (removals.clamp(1, REMOVED_MAX) * each).min(SEEN_MAX.max(each)).min(self.count_in(table))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those that were not used, or not changed, for the longest time.
    Idle,
    /// Those that are used least often.
    Frequency,
    /// Those whose time is over soonest.
    Deadline,
    Random,
}

/// A key that could go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    db: usize,
    key: Box<[u8]>,
    /// See [`Keyspace::rank`].
    rank: u64,
}

/// A key that is looked at.
struct Seen<'t> {
    /// Its rank, and below it a lot that decides between keys of one rank. New keys take the first
    /// places that are free: in the order in which they are found, the newest would go.
    order: u64,
    entry: EntryRef<'t, Object>,
    db: u32,
}

impl Seen<'_> {
    #[inline]
    fn rank(&self) -> u64 {
        self.order >> LOT_BITS
    }
}

/// What a look has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub evicted: usize,
    /// Those whose time was over: they make room as well.
    pub expired: usize,
    /// So many of the candidates that are kept should go as well.
    pub candidates: usize,
}

impl Look {
    pub fn removed(self) -> usize {
        self.evicted + self.expired
    }
}

/// The best candidates of the looks so far. Each thread that evicts has its own, so that none waits
/// for another.
#[derive(Debug, Default)]
pub struct Candidates {
    /// What they are ranked by.
    choice: Option<Choice>,
    /// By rank, the best last.
    kept: Vec<Candidate>,
    /// For each shard the keys that may go there and in those before it, a while ago.
    counted: Vec<u64>,
    /// Looks until they are counted again.
    looks_left: u32,
    /// What the look under way removes: databases, and lengths of keys that stand in `names`.
    chosen: Vec<(usize, usize)>,
    names: Vec<u8>,
}

impl Candidates {
    pub fn take_best(&mut self) -> Option<Candidate> {
        self.kept.pop()
    }

    /// The shard to look at next: the more keys it has, the likelier, so that each key is as likely
    /// to be looked at as another. None if no key may go.
    pub fn next_shard(&mut self, keyspace: &Keyspace, choice: Choice) -> Option<usize> {
        if self.choice != Some(choice) {
            // They were ranked by another rule.
            self.kept.clear();
            (self.choice, self.looks_left) = (Some(choice), 0);
        }
        if self.looks_left == 0 {
            self.looks_left = LOOKS_PER_COUNT;
            self.counted.clear();
            self.counted.extend((0..keyspace.shards()).scan(0, |sum, shard| {
                *sum += choice.count(keyspace, shard);
                Some(*sum)
            }));
        }
        self.looks_left -= 1;
        let total = self.counted.last().copied().unwrap_or(0);
        if total == 0 {
            self.looks_left = 0;
            return None;
        }
        let at = ((u128::from(keyspace.draw_u64()) * u128::from(total)) >> 64) as u64;
        Some(self.counted.partition_point(|count| *count <= at))
    }

    /// Chooses among the keys that were looked at, and keeps the best of the others. Says how many
    /// of those that are kept should go as well: so many as are better.
    fn choose(&mut self, mut seen: SmallVec<[Seen<'_>; SEEN_MAX]>, choice: Choice) -> usize {
        let count = (seen.len() / choice.seen_per_removal()).clamp(1, REMOVED_MAX).min(seen.len());
        let best_first = |one: &Seen<'_>, other: &Seen<'_>| other.order.cmp(&one.order);
        if count < seen.len() {
            seen.select_nth_unstable_by(count, best_first);
        }
        seen[..count].sort_unstable_by(best_first);
        let (mut own, mut others) = (0, 0);
        while own + others < count {
            let kept = self.kept.iter().nth_back(others);
            match kept.is_some_and(|kept| kept.rank > seen[own].rank()) {
                true => others += 1,
                false => own += 1,
            }
        }
        self.chosen.clear();
        self.names.clear();
        for Seen { db, entry, .. } in &seen[..own] {
            self.chosen.push((*db as usize, entry.key().len()));
            self.names.extend_from_slice(entry.key());
        }
        for it in &seen[own..] {
            if self.is_wanted(it.rank()) {
                self.offer(it.db as usize, &it.entry, it.rank());
            }
        }
        others
    }

    /// Whether there is room for a candidate of this rank, or one that is worse.
    #[inline]
    fn is_wanted(&self, rank: u64) -> bool {
        self.kept.len() < CANDIDATES_MAX || self.kept.first().is_none_or(|worst| rank > worst.rank)
    }

    fn offer(&mut self, db: usize, entry: &EntryRef<'_, Object>, rank: u64) {
        let is_full = self.kept.len() >= CANDIDATES_MAX;
        // If it was used since it was seen, its rank has changed.
        let is_same = |it: &Candidate| it.db == db && *it.key == *entry.key();
        match self.kept.iter().position(is_same) {
            Some(at) if self.kept[at].rank == rank => return,
            Some(at) => drop(self.kept.remove(at)),
            None if is_full => drop(self.kept.remove(0)),
            None => {}
        }
        let at = self.kept.partition_point(|it| it.rank < rank);
        self.kept.insert(at, Candidate { db, key: entry.key().into(), rank });
    }
}

impl Keyspace {
    /// Looks at some keys of one shard, and removes the best of them until so many bytes are free.
    /// The effects are to be published before the view is dropped. None if the shard is busy or
    /// has no keys that may go.
    pub fn evict_some<'a>(
        &'a self,
        shard: usize,
        effects: &'a mut Effects,
        (choice, now): (Choice, UnixMillis),
        (candidates, bytes): (&mut Candidates, u64),
    ) -> Option<(Keys<'a>, Look)> {
        let mut locked = self.lock_none();
        let held = locked.try_add_now(shard)?;
        let seen = self.look(held, (choice, now), bytes);
        if seen.is_empty() {
            return None;
        }
        let mut look = Look { candidates: candidates.choose(seen, choice), ..Look::default() };
        let mut keys = self.keys(locked, effects, (0, now));
        let (mut names, mut freed) = (candidates.names.as_slice(), 0);
        for (db, key_bytes) in &candidates.chosen {
            let (key, rest) = names.split_at(*key_bytes);
            names = rest;
            let before = keys.table_bytes(shard, *db);
            match keys.evict(*db, key) {
                true => look.evicted += 1,
                false => look.expired += 1,
            }
            freed += before.saturating_sub(keys.table_bytes(shard, *db)) as u64;
            if freed >= bytes {
                break;
            }
        }
        Some((keys, look))
    }

    /// Looks at keys of a shard that may go, so many that those which go free so many bytes.
    fn look<'t>(
        &self,
        held: &'t Shard,
        (choice, now): (Choice, UnixMillis),
        bytes: u64,
    ) -> SmallVec<[Seen<'t>; SEEN_MAX]> {
        let mut seen = SmallVec::<[Seen<'t>; SEEN_MAX]>::new();
        for db in 0..held.tables.end() {
            let table = &held.tables[db];
            if choice.count_in(table) > 0 {
                let count = choice.seen_for(table, bytes);
                self.sample(table, (choice, count), &mut |entry| {
                    seen.push(Seen { order: 0, entry, db: db as u32 });
                });
            }
        }
        let mut random = Random::from_seed(self.draw_u64());
        // By now their memory was asked for, and is waited for once.
        for it in &mut seen {
            let drawn = random.next_u64();
            it.order = match choice.order {
                Order::Random => drawn,
                _ => {
                    // Those that may not go were not sampled.
                    let rank = self.rank(&it.entry, choice, now).unwrap_or(0);
                    rank << LOT_BITS | drawn >> RANK_BITS
                }
            };
        }
        seen
    }

    /// Visits the keys of some buckets that follow each other: where a key is says nothing of its
    /// use, and keys side by side are fetched together.
    fn sample<'t>(
        &self,
        table: &'t Table<Object>,
        (choice, count): (Choice, usize),
        visit: &mut impl FnMut(EntryRef<'t, Object>),
    ) {
        let mut left = count;
        let mut cursor = table.random_cursor(self.draw_u64());
        for _ in 0..BUCKETS_MAX {
            cursor = table.scan_inside(cursor, &mut |entry| {
                if !choice.is_volatile || entry.expiry().is_some() {
                    left = left.saturating_sub(1);
                    visit(entry);
                }
            });
            if left == 0 {
                return;
            }
        }
    }

    /// How soon a key should go, the higher the sooner; None if it may not. It does not change by
    /// itself as time passes, except that counters of uses go down, so that ranks of different
    /// moments can be compared.
    #[inline]
    fn rank(&self, entry: &EntryRef<'_, Object>, choice: Choice, now: UnixMillis) -> Option<u64> {
        if choice.is_volatile && entry.expiry().is_none() {
            return None;
        }
        Some(match choice.order {
            Order::Idle => RANK_MAX - last_used_seconds(entry.access(), now).min(RANK_MAX),
            Order::Frequency => self.rank_by_count(entry.access(), now),
            // One in the year 10889 is as good as any later one.
            Order::Deadline => RANK_MAX - (entry.expiry()?.max(0) as u64).min(RANK_MAX),
            // Whoever looks at it draws one, which holds for ever.
            Order::Random => RANK_MAX,
        })
    }

    /// Removes a candidate, unless its shard is busy, it is gone, or it was used meanwhile. The
    /// effects are to be published before the view is dropped. Also says whether it was evicted:
    /// one whose time was over has expired, and makes room as well.
    pub fn evict<'a>(
        &'a self,
        candidate: &Candidate,
        effects: &'a mut Effects,
        (choice, now): (Choice, UnixMillis),
    ) -> Option<(Keys<'a>, bool)> {
        let Candidate { db, key, rank } = candidate;
        let location = self.locate(key);
        let mut locked = self.lock_none();
        let held = locked.try_add_now(usize::from(location.shard))?;
        let entry = held.tables[*db].find(key, location.hash)?;
        if self.rank(&entry, choice, now).is_none_or(|now| now < *rank) {
            return None;
        }
        let mut keys = self.keys(locked, effects, (*db, now));
        let is_evicted = keys.evict(*db, key);
        Some((keys, is_evicted))
    }
}

impl Keys<'_> {
    /// Removes a key to make room. False if its time was over.
    fn evict(&mut self, db: usize, key: &[u8]) -> bool {
        if db != self.db {
            return self.in_db(db, |keys| keys.evict(db, key));
        }
        // It is asked for several times, and hashed once.
        self.holds(key);
        let is_evicted = self.remove(key);
        if is_evicted {
            self.wrote_too(key, Event::EVICTED);
            self.record([b"DEL".as_slice(), key]);
        }
        self.effects.records.end_unit();
        is_evicted
    }

    fn table_bytes(&mut self, shard: usize, db: usize) -> usize {
        self.shard(shard).table(db).memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::NotedUse;
    use russet_base::hash::KeyHasher;

    const NOW: UnixMillis = UnixMillis(1_000_000_000);

    fn keyspace(keys: usize, expiry: impl Fn(usize) -> Option<i64>) -> Keyspace {
        filled(Keyspace::new(4, 2, KeyHasher::with_seed(7)), keys, expiry)
    }

    fn filled(keyspace: Keyspace, keys: usize, expiry: impl Fn(usize) -> Option<i64>) -> Keyspace {
        for index in 0..keys {
            let (mut effects, key) = (Effects::default(), format!("key:{index}"));
            let locked = keyspace.try_lock(&keyspace.all_shards()).expect("nobody else is there");
            // The first were used last.
            let used = UnixMillis(NOW.0 - index as i64 * 1000);
            let mut view = keyspace.keys(locked, &mut effects, (0, used));
            view.put_string(key.as_bytes(), b"value", expiry(index).map(UnixMillis));
            view.wrote_beside(key.as_bytes(), 0, None);
            view.publish();
        }
        keyspace
    }

    /// One look at a shard, and what follows from it; the keys that went, by their records.
    fn step(keyspace: &Keyspace, choice: Choice, candidates: &mut Candidates) -> Vec<String> {
        let mut effects = Effects::default();
        keyspace.set_recording(true);
        let mut left = 1;
        if let Some(shard) = candidates.next_shard(keyspace, choice)
            && let Some((mut keys, look)) =
                keyspace.evict_some(shard, &mut effects, (choice, NOW), (candidates, 1000))
        {
            keys.publish();
            left = look.candidates;
        }
        for _ in 0..left {
            let Some(best) = candidates.take_best() else { break };
            if let Some((mut keys, _)) = keyspace.evict(&best, &mut effects, (choice, NOW)) {
                keys.publish();
            }
        }
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).expect("made of text");
        effects.records.all().iter().map(|record| text(record.args.as_args().at(1))).collect()
    }

    /// Evicts about this many keys; the numbers of those that went.
    fn evict(keyspace: &Keyspace, choice: Choice, count: usize) -> Vec<usize> {
        let (mut candidates, mut gone) = (Candidates::default(), Vec::new());
        for _ in 0..10 * count.max(1000) {
            if gone.len() >= count {
                break;
            }
            let number =
                |key: String| -> usize { key["key:".len()..].parse().expect("made of a number") };
            gone.extend(step(keyspace, choice, &mut candidates).into_iter().map(number));
        }
        gone
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let choice = Choice { is_volatile: false, order: Order::Idle, samples: 10 };
        let gone = evict(&keyspace(1000, |_| None), choice, 100);
        assert!(gone.len() >= 100);
        let mean = gone.iter().sum::<usize>() / gone.len();
        assert!(mean > 850, "the mean of those that went is {mean}");
    }

    /// Shards were looked at alike, however many keys they had, and a key of a small one was looked
    /// at more often than others: of 2,000 keys in frequent use 300 were evicted before the last of
    /// 8,000 that nobody used.
    #[test]
    fn keys_in_frequent_use_stay_as_long_as_others_can_go() {
        let keyspace = filled(Keyspace::new(512, 1, KeyHasher::with_seed(7)), 10_000, |_| None);
        keyspace.count_uses(true);
        for index in 0..10_000 {
            let (mut effects, key) = (Effects::default(), format!("key:{index}"));
            let locked = keyspace.try_lock(&keyspace.all_shards()).expect("nobody else is there");
            let count = if index % 5 == 0 { 50 } else { 5 };
            let mut view = keyspace.keys(locked, &mut effects, (0, NOW));
            view.set_noted_use(key.as_bytes(), NotedUse::Count(count));
        }
        let choice = Choice { is_volatile: false, order: Order::Frequency, samples: 5 };
        let gone = evict(&keyspace, choice, 7_500);
        assert!(gone.len() >= 7_500);
        let hot = gone.iter().filter(|index| *index % 5 == 0).count();
        assert!(hot < 20, "{hot} keys in frequent use are gone");
    }

    /// A key is as likely to be looked at as another, whether it shares its shard with one key or
    /// with a thousand.
    #[test]
    fn all_keys_are_looked_at_alike() {
        let keyspace = keyspace(0, |_| None);
        let name = |index: usize| match index {
            0..1000 => format!("{{tag}}:{index}"),
            _ => format!("key:{index}"),
        };
        for index in 0..1100 {
            let mut effects = Effects::default();
            let locked = keyspace.try_lock(&keyspace.all_shards()).expect("nobody else is there");
            let mut view = keyspace.keys(locked, &mut effects, (0, NOW));
            view.put_string(name(index).as_bytes(), b"value", None);
            view.wrote_beside(name(index).as_bytes(), 0, None);
            view.publish();
        }
        let choice = Choice { is_volatile: false, order: Order::Random, samples: 5 };
        let mut candidates = Candidates::default();
        let (mut all, mut tagged) = (0, 0);
        for _ in 0..4000 {
            let shard = candidates.next_shard(&keyspace, choice).expect("there are keys");
            let mut locked = keyspace.try_lock_now(shard).expect("nobody else is there");
            let seen = keyspace.look(locked.shard(), (choice, NOW), 1);
            all += seen.len();
            tagged += seen.iter().filter(|it| it.entry.key().starts_with(b"{tag}")).count();
        }
        let share = tagged * 1000 / all;
        assert!((860..960).contains(&share), "{share} of 1000 were of the 1000 of 1100");
    }

    #[test]
    fn keys_without_expiry_stay_though_they_are_many() {
        let expiry = |index: usize| index.is_multiple_of(50).then_some(NOW.0 + 1 + index as i64);
        for order in [Order::Idle, Order::Frequency, Order::Deadline, Order::Random] {
            let keyspace = keyspace(2000, expiry);
            let choice = Choice { is_volatile: true, order, samples: 5 };
            let mut gone = evict(&keyspace, choice, 41);
            gone.sort_unstable();
            assert_eq!(gone, (0..40).map(|at| at * 50).collect::<Vec<_>>(), "{order:?}");
        }
    }

    #[test]
    fn what_is_used_meanwhile_stays() {
        let keyspace = keyspace(1, |_| None);
        let choice = Choice { is_volatile: false, order: Order::Idle, samples: 1 };
        let later = UnixMillis(NOW.0 + 60_000);
        let rank = u64::MAX - NOW.seconds().unsigned_abs();
        let best = Candidate { db: 0, key: b"key:0".as_slice().into(), rank };
        let mut effects = Effects::default();
        {
            let locked = keyspace.try_lock(&keyspace.all_shards()).expect("nobody else is there");
            keyspace.keys(locked, &mut effects, (0, later)).read(&best.key);
        }
        assert!(keyspace.evict(&best, &mut effects, (choice, later)).is_none());
    }
}
