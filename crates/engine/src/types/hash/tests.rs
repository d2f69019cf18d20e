//! Hashes in a keyspace against maps of the standard library, through every form and with fields
//! that expire.

use super::stored;
use super::{HashLimits, Lease};
use crate::keys::{Effects, Keys};
use crate::keyspace::Keyspace;
use crate::store::raw::table::{NewValue, View};
use crate::value::Object;
use russet_base::clock::UnixMillis;
use russet_base::hash::KeyHasher;
use russet_base::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

const DATABASES: usize = 2;
const START_MS: i64 = 1_000_000;

type Model = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>>;

/// A keyspace, what should be in it, and the time.
struct Pair {
    keyspace: Keyspace,
    model: Model,
    now: UnixMillis,
    random: Random,
    limits: HashLimits,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Pair {
            keyspace: Keyspace::new(2, DATABASES, KeyHasher::with_seed(seed)),
            model: Model::new(),
            now: UnixMillis(START_MS),
            random: Random::from_seed(seed),
            limits: HashLimits { entries: 20, value_bytes: 30 },
        }
    }

    fn with_keys<R>(&mut self, act: impl FnOnce(&mut Keys<'_>) -> R) -> R {
        let mut effects = Effects::default();
        let locked = self.keyspace.lock(self.keyspace.all_shards());
        let mut keys = self.keyspace.keys(locked, &mut effects, (0, self.now));
        let result = act(&mut keys);
        keys.publish();
        result
    }

    fn text(&mut self, of: u64) -> Vec<u8> {
        match self.random.below(4) {
            0 => self.random.below(of).to_string().into_bytes(),
            1 => format!("-{}", self.random.below(of) * 1_000_003).into_bytes(),
            2 => vec![b'a' + self.random.below(26) as u8; self.random.index(150)],
            _ => format!("field:{}", self.random.below(of)).into_bytes(),
        }
    }

    /// Fields whose time is over are gone from the model before anyone looks.
    fn expire_model(&mut self) {
        let now_ms = self.now.0;
        self.model.values_mut().for_each(|hash| {
            hash.retain(|_, (_, deadline)| deadline.is_none_or(|at_ms| at_ms > now_ms));
        });
        self.model.retain(|_, hash| !hash.is_empty());
    }

    fn set(&mut self, key: &[u8]) {
        let (name, value) = (self.text(200), self.text(1 << 40));
        let lease = match self.random.below(6) {
            0 => Lease::Until(self.now.0 + 1 + self.random.below(5000) as i64),
            1 => Lease::Keep,
            _ => Lease::None,
        };
        let hash = self.model.entry(key.to_vec()).or_default();
        let old = hash.get(&name).cloned();
        let deadline = match lease {
            Lease::None => None,
            Lease::Keep => old.as_ref().and_then(|old| old.1),
            Lease::Until(at_ms) => Some(at_ms),
        };
        hash.insert(name.clone(), (value.clone(), deadline));
        let limits = self.limits;
        let is_new = self.with_keys(|keys| {
            let pair = (&*name, &*value);
            let edited = keys.edit_hash(key, limits, |hash| hash.set(pair, lease)).unwrap();
            edited.unwrap_or_else(|| keys.put_hash(key, [pair].into_iter(), (lease, limits)) == 1)
        });
        assert_eq!(is_new, old.is_none());
    }

    fn change(&mut self, key: &[u8]) {
        let name = match self.model.get(key) {
            Some(hash) if !self.random.below(8).is_multiple_of(8) => {
                hash.keys().nth(self.random.index(hash.len())).unwrap().clone()
            }
            _ => self.text(200),
        };
        let deadline =
            (self.random.below(3) > 0).then(|| self.now.0 + 1 + self.random.below(5000) as i64);
        let (is_removal, limits) = (self.random.below(2) == 0, self.limits);
        let done = self.with_keys(|keys| {
            let edited = keys.edit_hash(key, limits, |hash| {
                let done = match is_removal {
                    true => hash.remove(&name),
                    false => hash.set_deadline(&name, deadline),
                };
                (done, hash.is_empty())
            });
            let (done, is_emptied) = edited.unwrap().unwrap_or((false, false));
            assert!(!is_emptied || keys.remove(key));
            done
        });
        let Some(hash) = self.model.get_mut(key) else { return assert!(!done) };
        match is_removal {
            true => assert_eq!(hash.remove(&name).is_some(), done),
            false => assert_eq!(hash.get_mut(&name).map(|f| f.1 = deadline).is_some(), done),
        }
        self.model.retain(|_, hash| !hash.is_empty());
    }

    fn whole(&mut self, key: &[u8], other: &[u8]) {
        match self.random.below(4) {
            0 => {
                self.model.remove(key);
                self.with_keys(|keys| keys.remove(key));
            }
            1 if key != other => {
                if let Some(hash) = self.model.remove(key) {
                    self.model.insert(other.to_vec(), hash);
                    self.with_keys(|keys| {
                        let taken = keys.take(key).unwrap();
                        keys.put_back(other, taken);
                    });
                }
            }
            2 => {
                self.model.remove(key);
                self.with_keys(|keys| keys.put_string(key, b"text", None));
                self.with_keys(|keys| keys.remove(key));
            }
            _ => self.with_keys(|keys| {
                keys.swap((0, 1));
                keys.swap((1, 0));
            }),
        }
    }

    fn check(&mut self, key: &[u8]) {
        self.expire_model();
        let expected = self.model.get(key).cloned();
        let seed = self.random.next_u64();
        let hasher = self.keyspace.hasher();
        self.with_keys(|keys| {
            let Some(entry) = keys.peek(key) else { return assert!(expected.is_none()) };
            let expected = expected.expect("the model has it, too");
            let hash = stored::hash(&entry).unwrap();
            assert_eq!(hash.len(), expected.len());
            let mut seen = BTreeMap::new();
            hash.for_each(|field| {
                seen.insert(field.name.to_vec(), (field.value.to_vec(), field.deadline_ms));
            });
            assert_eq!(seen, expected);
            let mut random = Random::from_seed(seed);
            for (name, (value, deadline)) in expected.iter().take(8) {
                assert_eq!(hash.value(name).map(|value| value.to_vec()).as_ref(), Some(value));
                assert_eq!(hash.deadline(name), Some(*deadline));
            }
            let mut picked = BTreeSet::new();
            let count = random.index(expected.len() + 2);
            hash.sample(count, &mut random, |field| {
                assert!(picked.insert(field.name.to_vec()), "each field once");
            });
            assert_eq!(picked.len(), count.min(expected.len()));
            assert!(hash.random(&mut random).is_some());
            let (mut cursor, mut scanned) = (0, BTreeSet::new());
            loop {
                let mut shown = 0;
                cursor = hash.scan((cursor, 3), hasher, |field| {
                    shown += 1;
                    scanned.insert(field.name.to_vec());
                });
                assert!(shown == 3 || cursor == 0, "{shown} shown");
                if cursor == 0 {
                    break;
                }
            }
            assert!(scanned.iter().eq(expected.keys()));
        });
        self.check_schedule();
    }

    /// Exactly the hashes with deadlines are scheduled, none too late.
    fn check_schedule(&mut self) {
        let now = self.now;
        let model = self.model.clone();
        let location_of = |keyspace: &Keyspace, key: &[u8]| keyspace.locate(key);
        let volatile: BTreeSet<Vec<u8>> = model
            .iter()
            .filter(|(_, hash)| hash.values().any(|field| field.1.is_some()))
            .map(|(key, _)| key.clone())
            .collect();
        let mut bounds = Vec::new();
        let mut scheduled = 0;
        self.with_keys(|keys| {
            for shard in keys.held().iter() {
                keys.expire_fields_of(shard);
                scheduled += keys.shard(shard).fields[0].len();
            }
            for key in &volatile {
                let location = location_of(keys.keyspace(), key);
                let shard = keys.shard(usize::from(location.shard));
                let entry = shard.tables[0].find(key, location.hash).expect("it is there");
                let bound = stored::bound_of(&entry.value()).expect("it has deadlines");
                assert!(shard.fields[0].has(key, bound), "scheduled at its bound");
                bounds.push(bound);
            }
        });
        assert_eq!(scheduled, volatile.len());
        assert!(bounds.iter().all(|&bound| bound > now.0), "what is due was removed");
    }
}

fn run(seed: u64, rounds: usize, keys: u64) {
    let mut pair = Pair::new(seed);
    for round in 0..rounds {
        let key = format!("k{}", pair.random.below(keys)).into_bytes();
        let other = format!("k{}", pair.random.below(keys)).into_bytes();
        pair.expire_model();
        match pair.random.below(100) {
            0..60 => pair.set(&key),
            60..97 => pair.change(&key),
            97 => pair.whole(&key, &other),
            _ => {
                let passed = pair.random.below(800) as i64;
                pair.now = UnixMillis(pair.now.0 + passed);
                if passed % 3 == 0 {
                    let now = pair.now;
                    while (0..2).any(|shard| expire(&pair.keyspace, shard, now, 3)) {}
                }
            }
        }
        if round % 16 == 0 {
            pair.check(&key);
        }
    }
    pair.now = UnixMillis(pair.now.0 + 10_000);
    for key in 0..keys {
        pair.check(format!("k{key}").as_bytes());
    }
}

#[test]
fn hashes_behave_as_maps_do() {
    (0..8).for_each(|seed| run(seed, 4000, 4));
}

#[test]
fn many_small_hashes_behave_as_maps_do() {
    (10..12).for_each(|seed| run(seed, 6000, 60));
}

/// What housekeeping does; whether there is more to do.
fn expire(keyspace: &Keyspace, shard: usize, now: UnixMillis, budget: usize) -> bool {
    let mut effects = Effects::default();
    keyspace.expire_shard(shard, &mut effects, (now, budget)).is_some_and(|(_, has_more)| has_more)
}

fn put(keyspace: &Keyspace, fields: usize, lease: Lease) {
    let mut effects = Effects::default();
    let locked = keyspace.lock(keyspace.all_shards());
    let mut keys = keyspace.keys(locked, &mut effects, (0, UnixMillis(START_MS)));
    let texts: Vec<Vec<u8>> = (0..fields).map(|at| format!("f{at}").into_bytes()).collect();
    let pairs = texts.iter().map(|text| (&**text, &b"vvvvvvvv"[..]));
    assert_eq!(keys.put_hash(b"key", pairs, (lease, HashLimits::default())), fields);
}

fn with_value<R>(keyspace: &Keyspace, see: impl FnOnce(View<'_, Object>) -> R) -> R {
    let mut effects = Effects::default();
    let locked = keyspace.lock(keyspace.all_shards());
    let mut keys = keyspace.keys(locked, &mut effects, (0, UnixMillis(START_MS)));
    see(keys.peek(b"key").unwrap().value())
}

#[test]
fn ten_short_fields_take_twelve_bytes_each() {
    let keyspace = Keyspace::new(1, 1, KeyHasher::with_seed(1));
    put(&keyspace, 10, Lease::None);
    with_value(&keyspace, |value| {
        assert!(matches!(value, View::Packed(_, bytes) if bytes.len() == 120));
    });
}

/// What the shard says of expired fields, and of keys.
fn expired_and_keys(keyspace: &Keyspace) -> (u64, u64) {
    let gauges = &keyspace.gauges()[0];
    (gauges.expired_fields.load(Ordering::Relaxed), keyspace.key_counts().total(0))
}

#[test]
fn expired_fields_go_in_bounded_steps() {
    let keyspace = Keyspace::new(1, 1, KeyHasher::with_seed(1));
    put(&keyspace, 1000, Lease::Until(START_MS + 5));
    {
        let mut effects = Effects::default();
        let locked = keyspace.lock(keyspace.all_shards());
        let mut keys = keyspace.keys(locked, &mut effects, (0, UnixMillis(START_MS)));
        let stays = (&b"stays"[..], &b"v"[..]);
        let edited = keys.edit_hash(b"key", HashLimits::default(), |it| it.set(stays, Lease::None));
        assert_eq!(edited.ok(), Some(Some(true)));
    }
    assert!(with_value(&keyspace, |value| matches!(value, View::Object(_))));
    let later = UnixMillis(START_MS + 5);
    let mut steps = 0;
    while expire(&keyspace, 0, later, 64) {
        steps += 1;
        assert!(steps < 100);
    }
    assert!(steps >= 1000 / 64);
    assert_eq!(expired_and_keys(&keyspace), (1000, 1));
}

/// Whoever comes by, a client or housekeeping: to remove them one by one would keep it for long.
#[test]
fn a_hash_whose_fields_are_all_over_goes_as_one() {
    let later = UnixMillis(START_MS + 5);
    for is_client in [false, true] {
        let keyspace = Keyspace::new(1, 1, KeyHasher::with_seed(1));
        put(&keyspace, 1000, Lease::Until(START_MS + 5));
        if is_client {
            let mut effects = Effects::default();
            let locked = keyspace.lock(keyspace.all_shards());
            let mut keys = keyspace.keys(locked, &mut effects, (0, later));
            assert!(keys.read(b"key").is_none());
        }
        assert!(!expire(&keyspace, 0, later, 1));
        assert_eq!(expired_and_keys(&keyspace), (1000, 0));
    }
}

/// Three hundred fields took 7,027 bytes against Valkey's 6,332: what did not fit in 4 KB went into
/// cells, and so did what only might not have fitted.
#[test]
fn hashes_of_medium_size_stay_in_their_entry() {
    for (count, bytes_max) in [(100, 1900), (300, 5600), (512, 9600)] {
        let limits = HashLimits::default();
        let texts: Vec<_> =
            (0..count).map(|at| (format!("f{at:06}"), format!("value{at:03}"))).collect();
        let pairs = texts.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let hasher = KeyHasher::with_seed(1);
        let fields = stored::build(pairs.clone(), Lease::None, (limits, hasher), |value| {
            let NewValue::Packed(_, bytes) = value else { panic!("{count} fields are packed") };
            assert!(bytes.len() <= bytes_max, "{count}: {}", bytes.len());
        });
        assert_eq!(fields, count);
        let mut pair = Pair::new(7);
        pair.limits = limits;
        pair.with_keys(|keys| {
            assert_eq!(keys.put_hash(b"k", pairs.clone().take(1), (Lease::None, limits)), 1);
            for pair in pairs {
                keys.edit_hash(b"k", limits, |hash| hash.set(pair, Lease::None)).unwrap();
            }
            let entry = keys.peek(b"k").unwrap();
            assert!(matches!(entry.value(), View::Packed(..)), "{count} fields are packed");
            assert_eq!(stored::encoding(&entry), "listpack");
        });
        // One that is long to Redis, or that expires, needs another form.
        for (lease, value) in [(Lease::None, &[b'v'; 65][..]), (Lease::Until(START_MS + 9), b"v")] {
            pair.with_keys(|keys| {
                keys.edit_hash(b"k", limits, |hash| hash.set((b"f000007", value), lease)).unwrap();
                let entry = keys.peek(b"k").unwrap();
                assert_eq!(stored::encoding(&entry), "hashtable");
                assert_eq!(stored::hash(&entry).unwrap().len(), count);
            });
        }
    }
}
