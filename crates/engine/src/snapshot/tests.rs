//! Snapshots against copies of the keyspace that were made at the cut, whatever happens to it while
//! the walk goes on.

use super::{Batch, Walk};
use crate::keys::{Effects, Keys};
use crate::keyspace::Keyspace;
use crate::once::OnceRecord;
use crate::store::raw::table::{Cursor, EntryRef};
use crate::store::shard_set::ShardSet;
use crate::types::hash::{HashLimits, Lease, stored};
use crate::types::string;
use crate::value::Object;
use russet_base::clock::UnixMillis;
use russet_base::hash::KeyHasher;
use russet_base::random::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const DATABASES: usize = 3;
const SHARDS: usize = 4;
const START_MS: i64 = 1_000_000;
const LIMITS: HashLimits = HashLimits { entries: 8, value_bytes: 30 };

/// By database and key: value and expiry.
type Data = BTreeMap<(usize, Vec<u8>), (String, Option<i64>)>;

fn describe(entry: &EntryRef<'_, Object>) -> String {
    if let Ok(text) = string::text(entry) {
        return text.with_bytes(|bytes| String::from_utf8_lossy(bytes).into_owned());
    }
    let mut fields = BTreeMap::new();
    let hash = stored::hash(entry).expect("there are strings and hashes only");
    hash.for_each(|field| {
        fields.insert(field.name.to_vec(), (field.value.to_vec(), field.deadline_ms));
    });
    format!("{fields:?}")
}

fn add(data: &mut Data, db: usize, entry: &EntryRef<'_, Object>) {
    let key = (db, entry.key().to_vec());
    let before = data.insert(key, (describe(entry), entry.expiry()));
    assert!(before.is_none(), "each key once: {:?}", entry.key());
}

/// A keyspace, and its time.
struct TestStore {
    keyspace: Keyspace,
    now: UnixMillis,
    random: Random,
}

impl TestStore {
    fn new(seed: u64) -> Self {
        TestStore {
            keyspace: Keyspace::new(SHARDS, DATABASES, KeyHasher::with_seed(seed)),
            now: UnixMillis(START_MS),
            random: Random::from_seed(seed),
        }
    }

    fn with_keys<R>(&mut self, db: usize, act: impl FnOnce(&mut Keys<'_>) -> R) -> R {
        let mut effects = Effects::default();
        let locked = self.keyspace.lock(self.keyspace.all_shards());
        let mut keys = self.keyspace.keys(locked, &mut effects, (db, self.now));
        let result = act(&mut keys);
        keys.publish();
        result
    }

    /// All that is stored, whether or not its time is over.
    fn data(&mut self) -> Data {
        self.with_keys(0, |keys| {
            let mut data = Data::new();
            for shard in keys.held().iter() {
                for db in 0..DATABASES {
                    let mut cursor = Cursor::START;
                    loop {
                        let table = keys.shard(shard).table(db);
                        cursor = table.scan(cursor, &mut |entry| add(&mut data, db, &entry));
                        if cursor.is_end() {
                            break;
                        }
                    }
                }
            }
            data
        })
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key:{}", self.random.below(60)).into_bytes()
    }

    fn text(&mut self) -> Vec<u8> {
        match self.random.below(4) {
            0 => self.random.below(1000).to_string().into_bytes(),
            1 => vec![b'l'; 70_000 + self.random.index(9)],
            _ => vec![b'a' + self.random.below(26) as u8; self.random.index(100)],
        }
    }

    /// Does something to the keyspace.
    fn act(&mut self) {
        let (db, key, other) = (self.random.index(DATABASES), self.key(), self.key());
        let text = self.text();
        let deadline = UnixMillis(self.now.0 + self.random.below(3000) as i64);
        let deadline = (self.random.below(3) == 0).then_some(deadline);
        match self.random.below(13) {
            0..3 => self.with_keys(db, |keys| keys.put_string(&key, &text, deadline)),
            3 => self.with_keys(db, |keys| _ = keys.remove(&key)),
            4 => self.with_keys(db, |keys| {
                if let Some(taken) = keys.take(&key) {
                    keys.put_back(&other, taken);
                }
            }),
            5 => self.with_keys(db, |keys| {
                if let Some(mut entry) = keys.write(&key) {
                    entry.set_expiry(deadline.map(|at| at.0));
                }
            }),
            6 => self.with_keys(db, |keys| {
                if let Some(mut entry) = keys.write(&key) {
                    match string::text(&entry.as_ref()) {
                        Ok(_) => drop(entry.append(b"more")),
                        Err(_) => drop(entry.object_mut()),
                    }
                }
            }),
            7..10 => self.change_hash(db, &key, deadline),
            10 => self.now.0 += self.random.below(700) as i64,
            11 => self.expire(),
            _ => match self.random.below(12) {
                0 => self.with_keys(db, |keys| keys.flush(db..db + 1)),
                1 => self.with_keys(db, |keys| keys.flush(0..DATABASES)),
                2..7 => self.with_keys(db, |keys| keys.swap((db, (db + 1) % DATABASES))),
                _ => self.with_keys(db, |keys| {
                    keys.peek(&key);
                    keys.exists(&other);
                }),
            },
        }
    }

    fn change_hash(&mut self, db: usize, key: &[u8], deadline: Option<UnixMillis>) {
        let name = format!("field:{}", self.random.below(20)).into_bytes();
        let lease = deadline.map_or(Lease::None, |at| Lease::Until(at.0.max(self.now.0 + 1)));
        self.with_keys(db, |keys| {
            let pair = (&*name, &b"value"[..]);
            if let Ok(None) = keys.edit_hash(key, LIMITS, |hash| hash.set(pair, lease)) {
                keys.put_hash(key, [pair].into_iter(), (lease, LIMITS));
            }
        });
    }

    fn expire(&mut self) {
        for shard in 0..SHARDS {
            let mut effects = Effects::default();
            let step = (self.now, 16);
            if let Some((mut keys, _more)) = self.keyspace.expire_shard(shard, &mut effects, step) {
                keys.publish();
            }
        }
    }

    fn begin(&self) -> Walk {
        self.keyspace.begin_snapshot(|_| {}, Box::new(|| {})).expect("none is under way")
    }

    fn step(&self, walk: &mut Walk, data: &mut Data) -> bool {
        let batch = walk.step(&self.keyspace, &mut |db, entry| {
            add(data, db, &entry);
            1
        });
        let is_last = batch.is_last;
        take(walk, batch, data);
        is_last
    }
}

fn take(walk: &Walk, batch: Batch, data: &mut Data) {
    for mut kept in batch.kept {
        let db = kept.db();
        kept.for_each(|entry| add(data, db, &entry));
        walk.release(kept);
    }
}

/// Each path by which an entry can be changed: whoever forgets to hand it over first fails here.
#[test]
fn a_snapshot_has_what_there_was_at_the_cut() {
    let rounds = if cfg!(debug_assertions) { 150 } else { 1000 };
    for seed in 0..rounds {
        let mut store = TestStore::new(seed);
        (0..120).for_each(|_| store.act());
        for round in 0..3 {
            let expected = store.data();
            let mut walk = store.begin();
            let pace = 1 + store.random.index(20);
            let mut data = Data::new();
            let is_whole = loop {
                (0..pace).for_each(|_| store.act());
                if store.random.below(4) == 0 {
                    let batch = walk.collect(&store.keyspace);
                    take(&walk, batch, &mut data);
                }
                if store.step(&mut walk, &mut data) {
                    break true;
                }
                if round == 1 && store.random.below(10) == 0 {
                    break false;
                }
            };
            if is_whole {
                assert_eq!(data, expected, "seed {seed}");
                assert_eq!(walk.snapshot().copies_bytes(), 0);
            }
            walk.end(&store.keyspace);
            (0..30).for_each(|_| store.act());
        }
    }
}

/// What is left of a snapshot that was cancelled is in nobody's way.
#[test]
fn a_cancelled_snapshot_keeps_nothing() {
    let mut store = TestStore::new(3);
    (0..60).for_each(|at| {
        let key = format!("key:{at}");
        store.with_keys(0, |keys| keys.put_string(key.as_bytes(), b"old", None));
    });
    let walk = store.begin();
    assert!(store.keyspace.begin_snapshot(|_| {}, Box::new(|| {})).is_none(), "one at a time");
    store.with_keys(0, |keys| keys.put_string(b"key:1", b"new", None));
    assert!(walk.snapshot().copies_bytes() > 0);
    walk.snapshot().cancel();
    let before = walk.snapshot().copies_bytes();
    store.with_keys(0, |keys| keys.put_string(b"key:2", b"new", None));
    assert_eq!(walk.snapshot().copies_bytes(), before);
    walk.end(&store.keyspace);
    let expected = store.data();
    let (mut walk, mut data) = (store.begin(), Data::new());
    while !store.step(&mut walk, &mut data) {}
    assert_eq!(data, expected);
    walk.end(&store.keyspace);
}

/// Each SWAPDB had the walk begin anew with the shard that it was in: a loop of them kept a
/// snapshot from ever ending.
#[test]
fn databases_that_are_swapped_again_and_again_do_not_hold_up_the_walk() {
    const KEYS: usize = 20_000;
    let mut store = TestStore::new(4);
    for at in 0..KEYS {
        let key = format!("key:{at}");
        store.with_keys(at % 2, |keys| keys.put_string(key.as_bytes(), b"old", None));
    }
    let expected = store.data();
    let (mut walk, mut data, mut steps) = (store.begin(), Data::new(), 0);
    while !store.step(&mut walk, &mut data) {
        store.with_keys(0, |keys| keys.swap((0, 1 + steps % 2)));
        steps += 1;
        assert!(steps < KEYS, "the walk goes on");
    }
    assert_eq!(data, expected);
    walk.end(&store.keyspace);
}

/// A removed value is moved to the snapshot: its memory is counted there, and not in the keyspace.
#[test]
fn what_is_handed_over_is_counted_apart() {
    let mut store = TestStore::new(5);
    store.with_keys(0, |keys| keys.put_string(b"key", &vec![b'v'; 1 << 20], None));
    store.with_keys(0, |keys| keys.changed(b"key"));
    let full = store.keyspace.used_memory().bytes();
    let mut walk = store.begin();
    store.with_keys(0, |keys| {
        keys.remove(b"key");
        keys.changed(b"key");
    });
    assert!(store.keyspace.used_memory().bytes() + (1 << 20) <= full);
    assert!(store.keyspace.snapshots().copies_bytes().0 >= 1 << 20);
    let mut data = Data::new();
    while !store.step(&mut walk, &mut data) {}
    assert_eq!(data.len(), 1);
    assert_eq!(walk.snapshot().copies_bytes(), 0);
    assert!(walk.snapshot().peak_bytes() >= 1 << 20);
    walk.end(&store.keyspace);
}

/// A call that has begun before the cut and would go on in a shard which newer calls have held is
/// told that it is busy: what it did there would be in no snapshot, and what it did before in one.
#[test]
fn an_older_call_gets_no_shard_of_a_newer_one() {
    let store = TestStore::new(1);
    let keyspace = &store.keyspace;
    let key_in = |shard: u16| {
        let mut keys = (0..).map(|at: u32| format!("k{at}").into_bytes());
        keys.find(|key| keyspace.locate(key).shard == shard).expect("some key is there")
    };
    let (first, second) = (key_in(0), key_in(1));
    let (mut effects, mut newer) = (Effects::default(), Effects::default());
    let locked = keyspace.lock(ShardSet::one(0));
    let mut older = keyspace.keys(locked, &mut effects, (0, store.now));
    older.put_string(&first, b"v", None);
    let walk = store.begin();
    drop(keyspace.keys(keyspace.lock(ShardSet::one(1)), &mut newer, (0, store.now)));
    assert!(!older.try_hold(&second));
    assert!(keyspace.try_lock(&ShardSet::one(1)).is_ok(), "it is not held");
    assert!(older.try_hold(&key_in(2)), "no newer call was there");
    older.publish();
    drop(older);
    walk.end(keyspace);
}

/// Requests that ran once, and what is read at the cut, are part of it.
#[test]
fn requests_and_the_moment_of_the_cut_are_part_of_it() {
    let mut store = TestStore::new(2);
    let put = |store: &mut TestStore, id: &[u8], reply: &[u8]| {
        let location = store.keyspace.locate(id);
        let expires = UnixMillis(START_MS + 1000);
        let record = OnceRecord { digest: 7, reply, expires };
        let now = store.now;
        store.with_keys(1, |keys| {
            keys.shard(location.shard.into()).once.put(1, (id, location.hash), record, now);
        });
    };
    put(&mut store, b"old", b"+1");
    let calls: &'static AtomicU64 = Box::leak(Box::default());
    let count = || _ = calls.fetch_add(1, Ordering::Relaxed);
    let walk = store.keyspace.begin_snapshot(|_| {}, Box::new(count));
    let mut walk = walk.expect("none is under way");
    put(&mut store, b"new", b"+2");
    store.with_keys(1, |keys| keys.flush(0..DATABASES));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let mut requests = Vec::new();
    loop {
        let batch = walk.step(&store.keyspace, &mut |_, _| 1);
        requests.extend(batch.requests);
        if batch.is_last {
            break;
        }
    }
    let mut shown = Vec::new();
    for requests in requests {
        requests.for_each(|db, id, record| shown.push((db, id.to_vec(), record.reply.to_vec())));
    }
    assert_eq!(shown, [(1, b"old".to_vec(), b"+1".to_vec())]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    walk.end(&store.keyspace);
}

/// Threads move amounts between keys of different shards; each snapshot has the same sum.
#[test]
fn snapshots_under_load_are_of_one_moment() {
    const KEYS: u64 = 200;
    const AMOUNT: i64 = 100;
    let store = TestStore::new(9);
    let keyspace = Keyspace::new(16, DATABASES, KeyHasher::with_seed(9));
    let name = |at: u64| format!("account:{at}").into_bytes();
    let call = |names: &[Vec<u8>], act: &mut dyn FnMut(&mut Keys<'_>)| {
        let mut effects = Effects::default();
        let mut shards = ShardSet::EMPTY;
        names.iter().for_each(|name| shards.insert(keyspace.locate(name).shard.into()));
        let mut keys = keyspace.keys(keyspace.lock(shards), &mut effects, (0, store.now));
        act(&mut keys);
        keys.publish();
    };
    for at in 0..KEYS {
        call(&[name(at)], &mut |keys| {
            keys.put_string(&name(at), AMOUNT.to_string().as_bytes(), None);
        });
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (call, is_over) = (&call, &is_over);
            scope.spawn(move || {
                let mut random = Random::from_seed(thread);
                while !is_over.load(Ordering::Relaxed) {
                    let names = [name(random.below(KEYS)), name(random.below(KEYS))];
                    let amount = random.below(10) as i64;
                    call(&names, &mut |keys| {
                        for (name, change) in names.iter().zip([-amount, amount]) {
                            let mut entry = keys.write(name).expect("accounts stay");
                            let before = entry.int().expect("amounts are numbers");
                            entry.set_int(before + change);
                        }
                    });
                }
            });
        }
        for _ in 0..if cfg!(debug_assertions) { 50 } else { 300 } {
            let mut walk = keyspace.begin_snapshot(|_| {}, Box::new(|| {})).expect("one by one");
            let (mut sum, mut count) = (0, 0);
            let mut see = |entry: &EntryRef<'_, Object>| {
                sum += string::text(entry).expect("a number").int().expect("a number");
                count += 1;
            };
            loop {
                let batch = walk.step(&keyspace, &mut |_, entry| {
                    see(&entry);
                    1
                });
                for mut kept in batch.kept {
                    kept.for_each(|entry| see(&entry));
                    walk.release(kept);
                }
                if batch.is_last {
                    break;
                }
            }
            walk.end(&keyspace);
            assert_eq!((count, sum), (KEYS, KEYS as i64 * AMOUNT));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
