//! Random operations on table and model side by side.

use super::*;
use crate::types::blob::Blob;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Int(i64),
    Bytes(Vec<u8>),
    Packed(u8, Vec<u8>),
    Object(u64),
}

type Model = HashMap<Vec<u8>, (Plain, Option<i64>, u32)>;

struct Pair {
    table: Table<Counted>,
    model: Model,
    alive: Rc<Cell<i64>>,
    random: Random,
    key_space: usize,
}

fn plain(view: View<'_, Counted>) -> Plain {
    match view {
        View::Int(value) => Plain::Int(value),
        View::Bytes(bytes) => Plain::Bytes(bytes.to_vec()),
        View::Packed(tag, bytes) => Plain::Packed(tag, bytes.to_vec()),
        View::Object(object) => Plain::Object(object.number),
    }
}

impl Pair {
    fn new(seed: u64, key_space: usize) -> Pair {
        Pair::with(table().0, seed, key_space)
    }

    fn with(table: Table<Counted>, seed: u64, key_space: usize) -> Pair {
        let alive = Rc::new(Cell::new(0));
        Pair { table, model: Model::new(), alive, random: Random(seed), key_space }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(self.key_space);
        match number % 97 {
            0 => [key(number), vec![b'x'; number % if cfg!(miri) { 300 } else { 3000 }]].concat(),
            1 => vec![],
            2 if number < 500 && !cfg!(miri) => [key(number), vec![b'y'; 66_000]].concat(),
            _ => key(number),
        }
    }

    fn expiry(&mut self) -> Option<i64> {
        (self.random.below(2) == 0).then_some(self.random.below(1000) as i64)
    }

    fn plain(&mut self) -> Plain {
        let mut len = self.random.below(40);
        if self.random.below(10) == 0 {
            len = self.random.below(1500);
        }
        let bytes = vec![self.random.next() as u8; len];
        match self.random.below(4) {
            0 => Plain::Int(self.random.next() as i64),
            1 => Plain::Bytes(bytes),
            2 => Plain::Packed(self.random.below(8) as u8, bytes),
            _ => Plain::Object(self.random.next()),
        }
    }

    fn new_value<'v>(&self, plain: &'v Plain) -> NewValue<'v, Counted> {
        match plain {
            Plain::Int(value) => NewValue::Int(*value),
            Plain::Bytes(bytes) => NewValue::Bytes(bytes),
            Plain::Packed(tag, bytes) => NewValue::Packed(*tag, bytes),
            Plain::Object(number) => NewValue::Object(Counted::new(*number, &self.alive)),
        }
    }

    fn put(&mut self) {
        let (key, value, expiry) = (self.key(), self.plain(), self.expiry());
        let with_expiry = self.random.below(2) == 0;
        let given = self.new_value(&value);
        match self.table.entry(&key, hash(&key)) {
            Slot::Occupied(mut entry) => {
                let known = self.model.get_mut(&key).expect("in both or in neither");
                if with_expiry {
                    entry.set_with_expiry(given, expiry);
                    *known = (value, expiry, known.2);
                } else {
                    entry.set(given);
                    known.0 = value;
                }
            }
            Slot::Vacant(vacant) => {
                let mut entry = vacant.insert(&key, given, expiry);
                entry.set_access(5);
                assert!(self.model.insert(key, (value, expiry, 5)).is_none());
            }
        }
    }

    fn edit(&mut self) {
        let (key, expiry, random) = (self.key(), self.expiry(), self.random.next());
        let entry = self.table.find_mut(&key, hash(&key));
        let known = self.model.get_mut(&key);
        let (Some(mut entry), Some(known)) = (entry, known) else {
            assert!(!self.model.contains_key(&key));
            return;
        };
        match random % 4 {
            0 => {
                entry.set_expiry(expiry);
                known.1 = expiry;
            }
            1 => {
                entry.set_access(random as u32);
                known.2 = random as u32 & 0xFF_FFFF;
            }
            2 => match &mut known.0 {
                Plain::Int(value) => {
                    let next = entry.int().expect("an integer").wrapping_add(3);
                    entry.set_int(next);
                    *value = value.wrapping_add(3);
                }
                Plain::Object(number) => {
                    entry.object_mut().expect("an object").number += 1;
                    *number += 1;
                }
                Plain::Bytes(bytes) | Plain::Packed(_, bytes) => {
                    assert!(entry.append(b"tail"));
                    bytes.extend_from_slice(b"tail");
                }
            },
            _ => match (&mut known.0, entry.blob()) {
                (Plain::Bytes(bytes) | Plain::Packed(_, bytes), Some(mut blob)) => {
                    let at = random as usize % (bytes.len() + 1);
                    let remove = (random >> 32) as usize % (bytes.len() - at + 1);
                    let piece = vec![7; (random >> 50) as usize % 50];
                    blob.splice(at, remove, &[&piece, b"!"]);
                    Blob::splice(bytes, at, remove, &[&piece, b"!"]);
                }
                (_, blob) => assert!(blob.is_none()),
            },
        }
    }

    fn remove(&mut self) {
        let key = self.key();
        let is_by_handle = self.random.below(2) == 0;
        let removed = if is_by_handle {
            self.table.find_mut(&key, hash(&key)).map(EntryMut::remove)
        } else {
            self.table.remove(&key, hash(&key))
        };
        let seen = removed.map(|r| (plain(r.value()), r.expiry(), r.access()));
        assert_eq!(seen, self.model.remove(&key));
    }

    fn check(&self) {
        self.table.check();
        assert_eq!(self.table.len(), self.model.len());
        let expires = self.model.values().filter(|known| known.1.is_some()).count();
        assert_eq!(self.table.expires_len(), expires);
        let mut objects = 0;
        for (key, known) in &self.model {
            let entry = self.table.find(key, hash(key)).expect("in both");
            assert_eq!(entry.key(), key);
            assert_eq!(&(plain(entry.value()), entry.expiry(), entry.access()), known);
            objects += i64::from(matches!(known.0, Plain::Object(_)));
        }
        assert_eq!(self.alive.get(), objects);
    }

    fn expire(&mut self, now_ms: i64) {
        let model = &mut self.model;
        let expired = &mut |gone: Gone<'_>, removed: Deleted<Counted>| {
            let known = model.remove(gone.key).expect("in both");
            let number = removed.object().map(|object| object.number);
            assert_eq!(number.is_some(), matches!(known.0, Plain::Object(n) if Some(n) == number));
            assert!(removed.expiry().is_some_and(|at_ms| at_ms <= now_ms));
        };
        while self.table.expire_step(now_ms, 300, expired) {}
    }
}

/// Waves of growth and of deletion, so that segments split and merge.
fn wave(pair: &mut Pair, round: usize) {
    let puts = [8, 5, 2, 1][round % 4];
    for _ in 0..pair.key_space / 2 {
        match pair.random.below(12) {
            choice if choice < puts => pair.put(),
            choice if choice < 10 && puts > 2 => pair.edit(),
            _ => pair.remove(),
        }
    }
}

fn run(seed: u64, key_space: usize, rounds: usize) {
    let mut pair = Pair::new(seed, key_space);
    let mut now_ms = 0;
    for round in 0..rounds {
        wave(&mut pair, round);
        if round % 3 == 2 {
            now_ms += 40;
            pair.expire(now_ms);
        }
        pair.check();
    }
    let alive = Rc::clone(&pair.alive);
    drop(pair);
    assert_eq!(alive.get(), 0);
}

#[test]
fn tiny_tables_follow_the_model() {
    for seed in 0..if cfg!(miri) { 2 } else { 30 } {
        run(seed, 3 + seed as usize * 7, 12);
    }
}

#[test]
fn middling_tables_follow_the_model() {
    let rounds = if cfg!(miri) { 4 } else { 24 };
    run(100, if cfg!(miri) { 500 } else { 3000 }, rounds);
}

/// Each follows its own model, whatever the others do in the pages between: a neighbour that is
/// emptied at once takes nothing along.
#[test]
fn tables_that_share_blocks_follow_their_models() {
    let (first, pool) = table::<Counted>();
    let key_space = if cfg!(miri) { 100 } else { 800 };
    let others = (1..5).map(|seed| Pair::with(first.empty_twin(), seed, key_space));
    let mut pairs: Vec<Pair> = others.collect();
    pairs.push(Pair::with(first, 5, key_space));
    for round in 0..if cfg!(miri) { 4 } else { 40 } {
        // Out of step, so that one grows while another shrinks.
        pairs.iter_mut().enumerate().for_each(|(at, pair)| wave(pair, round + at));
        if round % 4 == 3 {
            let emptied = &mut pairs[round / 4 % 5];
            emptied.table.clear();
            emptied.model.clear();
        }
        pairs.iter().for_each(Pair::check);
    }
    while let Some(pair) = pairs.pop() {
        drop(pair);
        pairs.iter().for_each(Pair::check);
    }
    assert_eq!(pool.used_bytes(), 0);
}

#[cfg(not(miri))]
#[test]
fn large_tables_follow_the_model() {
    run(200, 30_000, 16);
}
