//! How long keys have to live: the mean expiry of each shard's databases, estimated from samples,
//! so that nobody pays for it on the way of a command.

use crate::keyspace::Keyspace;
use crate::shard::ShardGauges;
use crate::store::raw::table::{Cursor, Table};
use crate::value::Object;
use russet_base::clock::UnixMillis;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Steps of a scan that one sample takes: some microseconds.
const STEPS_MAX: usize = 16;
/// What a sample adds to an estimate that others were made for: a fourth.
const SAMPLE_SHARE: i64 = 4;

/// The estimate for one database of one shard. Samples are taken by who holds the shard's lock.
#[derive(Default)]
pub(crate) struct MeanExpiry {
    /// In milliseconds since 1970; 0: no key that expires was seen yet. A moment and not a time
    /// left, so that it does not age.
    at_ms: AtomicI64,
    /// Where the next sample begins.
    cursor: AtomicU64,
}

impl MeanExpiry {
    /// What was seen is gone: the database was emptied or exchanged for another.
    pub(crate) fn forget(&self) {
        self.at_ms.store(0, Ordering::Relaxed);
        self.cursor.store(Cursor::START.bits(), Ordering::Relaxed);
    }

    fn sample(&self, table: &Table<Object>, now_ms: i64) {
        let mut cursor = Cursor::from_bits(self.cursor.load(Ordering::Relaxed));
        let is_from_start = cursor == Cursor::START;
        let (mut sum, mut count) = (0i128, 0i128);
        for _ in 0..STEPS_MAX {
            cursor = table.scan(cursor, &mut |entry| {
                if let Some(at_ms) = entry.expiry().filter(|&at_ms| at_ms > now_ms) {
                    sum += i128::from(at_ms);
                    count += 1;
                }
            });
            if cursor.is_end() {
                break;
            }
        }
        self.cursor.store(cursor.bits(), Ordering::Relaxed);
        let Some(mean) = sum.checked_div(count) else { return };
        let mean = i64::try_from(mean).unwrap_or(i64::MAX);
        let before = self.at_ms.load(Ordering::Relaxed);
        // One that saw the whole table needs no help from those before.
        let is_whole = is_from_start && cursor.is_end();
        let next = if before == 0 || is_whole {
            mean
        } else {
            before + (mean.saturating_sub(before)) / SAMPLE_SHARE
        };
        self.at_ms.store(next, Ordering::Relaxed);
    }
}

impl Keyspace {
    /// Takes a sample of one shard's keys. Skips a busy shard: there is a next time.
    pub fn sample_lifetimes(&self, shard: usize, now: UnixMillis) {
        let gauges = &self.gauges()[shard];
        let has_expiries = |db: &usize| {
            let is_any = gauges.expires[*db].load(Ordering::Relaxed) > 0;
            if !is_any {
                gauges.mean_expiry[*db].forget();
            }
            is_any
        };
        let mut databases = (0..self.databases()).filter(has_expiries).peekable();
        if databases.peek().is_none() {
            return;
        }
        if let Some(mut locked) = self.try_lock_now(shard) {
            let held = locked.shard();
            databases.for_each(|db| gauges.mean_expiry[db].sample(held.table(db), now.0));
        }
    }

    /// About how many milliseconds the keys of a database that expire have left, in the mean. 0 if
    /// there are none, or none was seen yet.
    pub fn mean_ttl_ms(&self, db: usize, now: UnixMillis) -> i64 {
        let (mut sum, mut count) = (0i128, 0i128);
        let weigh = |gauges: &ShardGauges| {
            let keys = gauges.expires[db].load(Ordering::Relaxed);
            let at_ms = gauges.mean_expiry[db].at_ms.load(Ordering::Relaxed);
            (at_ms > 0).then_some((i128::from(at_ms), i128::from(keys)))
        };
        for (at_ms, keys) in self.gauges().iter().filter_map(weigh) {
            sum += at_ms * keys;
            count += keys;
        }
        let mean = sum.checked_div(count).and_then(|mean| i64::try_from(mean).ok());
        mean.map_or(0, |at_ms| at_ms.saturating_sub(now.0).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Effects;
    use russet_base::hash::KeyHasher;

    const NOW: UnixMillis = UnixMillis(1_000_000);

    fn keyspace(keys: usize, ttl_ms: impl Fn(usize) -> Option<i64>) -> Keyspace {
        let keyspace = Keyspace::new(4, 2, KeyHasher::with_seed(1));
        let mut effects = Effects::default();
        let locked = keyspace.lock(keyspace.all_shards());
        let mut view = keyspace.keys(locked, &mut effects, (1, NOW));
        for at in 0..keys {
            let key = format!("key:{at}");
            let expiry = ttl_ms(at).map(|ms| UnixMillis(NOW.0 + ms));
            view.put_string(key.as_bytes(), b"v", expiry);
            view.changed(key.as_bytes());
        }
        view.publish();
        drop(view);
        keyspace
    }

    fn sample(keyspace: &Keyspace, times: usize) {
        for _ in 0..times {
            (0..keyspace.shards()).for_each(|shard| keyspace.sample_lifetimes(shard, NOW));
        }
    }

    #[test]
    fn few_keys_are_all_seen() {
        let keyspace = keyspace(4, |at| (at < 2).then_some((at as i64 + 1) * 1000));
        assert_eq!(keyspace.mean_ttl_ms(1, NOW), 0);
        sample(&keyspace, 1);
        assert_eq!(keyspace.mean_ttl_ms(1, NOW), 1500);
        assert_eq!(keyspace.mean_ttl_ms(0, NOW), 0);
        assert_eq!(keyspace.mean_ttl_ms(1, UnixMillis(NOW.0 + 1400)), 100);
        assert_eq!(keyspace.mean_ttl_ms(1, UnixMillis(NOW.0 + 9000)), 0);
    }

    /// The estimate of an emptied database was taken for that of the keys that came after.
    #[test]
    fn an_emptied_database_is_estimated_anew() {
        let keyspace = keyspace(400, |_| Some(1_000_000));
        sample(&keyspace, 1);
        assert!(keyspace.mean_ttl_ms(1, NOW) > 900_000);
        let mut effects = Effects::default();
        let locked = keyspace.lock(keyspace.all_shards());
        let mut view = keyspace.keys(locked, &mut effects, (1, NOW));
        view.flush(0..2);
        for at in 0..40 {
            let key = format!("key:{at}");
            view.put_string(key.as_bytes(), b"v", Some(UnixMillis(NOW.0 + 1000)));
            view.changed(key.as_bytes());
        }
        view.publish();
        drop(view);
        assert_eq!(keyspace.mean_ttl_ms(1, NOW), 0);
        sample(&keyspace, 1);
        assert_eq!(keyspace.mean_ttl_ms(1, NOW), 1000);
    }

    #[test]
    fn many_keys_are_estimated() {
        let keyspace = keyspace(20_000, |at| (at % 2 == 0).then_some((at as i64 % 200) * 100 + 50));
        sample(&keyspace, 100);
        let mean = keyspace.mean_ttl_ms(1, NOW);
        assert!((7000..13_000).contains(&mean), "{mean}");
    }
}
