//! The active half of expiry: what nobody looks up is removed step by step, shard by shard. Its
//! effects are those of any other change: the shard stays locked until they are published, so that
//! an `expired` event comes before that of the write that follows.

use crate::field_expiry::bound_of_gone;
use crate::keys::{Effects, Keys, ReadyKey};
use crate::keyspace::Keyspace;
use crate::shard::Shard;
use crate::snapshot::ShardSnapshot;
use crate::store::raw::table::{Deleted, Gone};
use crate::tracked::Cause;
use crate::value::Object;
use russet_base::clock::UnixMillis;

impl Keyspace {
    /// Removes up to about `budget` expired keys, and as many fields, of one shard. The effects are
    /// to be published before the view is dropped. Also says whether more are due. None without
    /// anything to do, or if the shard is busy: it will be visited again.
    pub fn expire_shard<'a>(
        &'a self,
        shard: usize,
        effects: &'a mut Effects,
        (now, budget): (UnixMillis, usize),
    ) -> Option<(Keys<'a>, bool)> {
        let mut locked = self.lock_none();
        locked.try_add_now(shard)?;
        let mut keys = self.keys(locked, effects, (0, now));
        if !keys.may_expire() {
            return None;
        }
        let has_more = keys.expire_step(shard, budget) | keys.expire_fields_step(shard, budget);
        Some((keys, has_more))
    }
}

impl Keys<'_> {
    fn expire_step(&mut self, index: usize, budget: usize) -> bool {
        let (keyspace, now, effects) = (self.keyspace, self.now, &mut *self.effects);
        let gauges = &keyspace.gauges()[index];
        let held = self.locked.shard(index);
        let mut has_more = false;
        for db in 0..held.tables.end() {
            if held.tables[db].expires_len() == 0 {
                continue;
            }
            let mut count = 0;
            let Shard { tables, watched, tracked, waiting, fields, snapshot, .. } = held;
            has_more |= tables[db].expire_step(now.0, budget, &mut |gone, value| {
                let key = gone.key;
                fields[db].forget(key, bound_of_gone(&gone, value.object()));
                count += 1;
                watched.expire(db, key);
                effects.note_change(tracked, key, Cause::GONE);
                if waiting.is_awaited(db, key) {
                    effects.ready.push(ReadyKey { db, key: key.into() });
                }
                effects.expired(db, key);
                let left = match gone.is_unsaved {
                    true => keep_gone(snapshot, (db, gone), value),
                    false => value.into_object(),
                };
                if let Some(object) = left {
                    keyspace.reclaimer().reclaim(object);
                }
            });
            if count > 0 {
                gauges.count_expired(count);
                keyspace.publish_shard(index, held, db);
            }
        }
        has_more
    }
}

/// Hands an expired entry over to a snapshot that needs it. Gives an object back that is of no use.
#[cold]
fn keep_gone(
    snapshot: &mut ShardSnapshot,
    (db, gone): (usize, Gone<'_>),
    value: Deleted<Object>,
) -> Option<Box<Object>> {
    let (expiry, access) = (value.expiry(), gone.access);
    match gone.inline {
        None => snapshot.keep((db, gone.key), value.into_removed(access)?),
        Some(inline) => {
            snapshot.keep_value((db, gone.key), inline.to_new_value(), (expiry, access));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::raw::lock::Wake;
    use crate::store::shard_set::ShardSet;
    use russet_base::hash::KeyHasher;
    use std::sync::Arc;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(&self) {}
    }

    /// Housekeeping leaves a busy shard for the next time. Would it reserve one, as calls do that
    /// have waited for long, then clients who come meanwhile would wait for it.
    #[test]
    fn housekeeping_never_reserves() {
        const NOW: UnixMillis = UnixMillis(1_000_000);
        const BUDGET: usize = 16;
        let (keyspace, shard) = (Keyspace::new(4, 2, KeyHasher::with_seed(1)), 2);
        let mut only = ShardSet::EMPTY;
        only.insert(shard);
        let busy = keyspace.try_lock(&only).expect("nobody else is there");
        let bystander = keyspace.wait(Arc::new(Nobody));
        let mut effects = Effects::default();
        for _ in 0..100 {
            assert!(keyspace.expire_shard(shard, &mut effects, (NOW, BUDGET)).is_none());
            assert!(!keyspace.expire_once(shard, NOW, BUDGET));
            assert!(keyspace.sweep_listeners(shard), "someone may wait there");
            keyspace.sample_lifetimes(shard, NOW);
            assert_eq!(bystander.reservations(), 0);
        }
        drop(busy);
        assert!(keyspace.try_lock(&only).is_ok(), "who comes by takes it");
        assert!(keyspace.expire_shard(shard, &mut effects, (NOW, BUDGET)).is_some());
    }
}
