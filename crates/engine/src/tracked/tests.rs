//! The table against a map of sets, its limits, and readers that leave.

use super::*;
use russet_base::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const HASHER: KeyHasher = KeyHasher::with_seed(1);

fn tracked() -> TrackedKeys {
    TrackedKeys::new(Arc::default(), HASHER)
}

fn add(tracked: &mut TrackedKeys, key: &str, reader: Reader) -> bool {
    tracked.add((HASHER.hash(key.as_bytes()), key.as_bytes()), reader)
}

fn without_slot(id: u64) -> Reader {
    Reader { id, slot: None }
}

fn totals(tracked: &TrackedKeys) -> (u64, u64) {
    (tracked.totals.keys(), tracked.totals.readers())
}

fn forget(tracked: &mut TrackedKeys, slots: SlotSet, is_gone: &dyn Fn(u64) -> bool) {
    while !tracked.forget_readers(&Gone { slots, is_gone }) {}
}

#[test]
fn a_reader_is_notified_once_and_what_is_counted_goes_with_it() {
    let mut tracked = tracked();
    let (one, two) = (tracked.totals.slots.join(1), tracked.totals.slots.join(2));
    let three = without_slot(3);
    for (key, reader, is_new) in
        [("a", two, true), ("a", one, false), ("a", two, false), ("b", two, true)]
    {
        assert_eq!(add(&mut tracked, key, reader), is_new);
    }
    assert!(!add(&mut tracked, "a", three));
    assert_eq!(totals(&tracked), (2, 4));
    assert_eq!(tracked.take(b"a"), [1, 2, 3]);
    assert!(tracked.take(b"a").is_empty());
    add(&mut tracked, "a", three);
    tracked.totals.slots.leave(two);
    let left = tracked.totals.slots.take_left();
    forget(&mut tracked, left, &|_| false);
    assert_eq!(totals(&tracked), (1, 1));
    let other = tracked.take_other_than(b"a").expect("there is one key");
    assert_eq!((&*other.key, other.readers), (b"a".as_slice(), vec![3]));
    assert_eq!((totals(&tracked), tracked.totals.bytes()), ((0, 0), 0));
}

/// A client that has turned tracking off and on again has two slots for a while.
#[test]
fn a_client_with_two_slots_is_notified_once() {
    let mut tracked = tracked();
    let before = tracked.totals.slots.join(7);
    add(&mut tracked, "k", before);
    tracked.totals.slots.leave(before);
    let since = tracked.totals.slots.join(7);
    add(&mut tracked, "k", since);
    assert_eq!(tracked.take(b"k"), [7]);
}

#[test]
fn another_key_goes_first_and_what_is_gone_takes_no_room() {
    let mut tracked = tracked();
    for at in 0..1000 {
        add(&mut tracked, &format!("k{at}"), without_slot(1));
    }
    for _ in 0..999 {
        assert!(tracked.take_other_than(b"k7").is_some_and(|it| *it.key != *b"k7"));
    }
    let room = tracked.table.as_ref().map_or(0, |table| table.room());
    assert!(room <= 128, "{room}");
    tracked.clear();
    assert_eq!((totals(&tracked), tracked.totals.bytes()), ((0, 0), 0));
}

/// A key to forget was looked for from the beginning of the hash table each time. What was
/// there had gone before, so the walk became long, a read with a full table of one shard six
/// times as dear; and what it found was often a key that had just been read.
#[test]
fn keys_that_were_just_read_are_not_the_next_to_go() {
    const KEYS: usize = 1000;
    let mut tracked = tracked();
    let reader = tracked.totals.slots.join(1);
    let key_of = |at: usize| format!("k{at}");
    for at in 0..KEYS {
        add(&mut tracked, &key_of(at), reader);
    }
    let is_old = |key: &[u8]| (0..KEYS).any(|at| key_of(at).as_bytes() == key);
    for at in KEYS..2 * KEYS {
        add(&mut tracked, &key_of(at), reader);
        let forgotten = tracked.take_other_than(key_of(at).as_bytes()).expect("there are many");
        assert!(is_old(&forgotten.key), "{:?} was read just now", forgotten.key);
    }
    assert_eq!(totals(&tracked), (KEYS as u64, KEYS as u64));
    (KEYS..2 * KEYS).for_each(|at| assert_eq!(tracked.take(key_of(at).as_bytes()), [1]));
}

/// Whatever is done, the table says what a map of sets says, and each key is found.
#[test]
fn keys_and_readers_are_those_of_a_map_of_sets() {
    const KEYS: u64 = 3000;
    let mut random = Random::from_seed(11);
    let mut tracked = tracked();
    let readers: Vec<Reader> = (0..140).map(|id| tracked.totals.slots.join(id)).collect();
    let mut model: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    // Some names are too long for their records.
    let key_of = |at: u64| format!("{at}{}", "x".repeat(at as usize % 40));
    for at in 0..40_000 {
        let key = key_of(random.below(KEYS));
        match random.below(if at < 20_000 { 20 } else { 6 }) {
            0 | 1 => {
                let readers = model.remove(&key).unwrap_or_default();
                assert_eq!(tracked.take(key.as_bytes()), Vec::from_iter(readers));
            }
            2 => {
                let taken = tracked.take_other_than(key.as_bytes()).expect("there are some");
                let name = String::from_utf8(taken.key.into()).expect("it is text");
                assert_eq!(model.remove(&name).map(Vec::from_iter), Some(taken.readers));
            }
            _ => {
                let reader = readers[random.below(readers.len() as u64) as usize];
                let is_new = add(&mut tracked, &key, reader);
                assert_eq!(is_new, !model.contains_key(&key));
                model.entry(key).or_default().insert(reader.id);
            }
        }
        if at % 5000 == 4999 {
            // Two with slots are forgotten, and one without.
            let gone = [at / 5000, 64 + at / 5000, 128 + at / 5000].map(|id| id as u64);
            let slots = gone.iter().filter(|id| **id < 128).fold(0, |slots, id| slots | 1 << id);
            forget(&mut tracked, slots, &|id| gone.contains(&id));
            model.values_mut().for_each(|ids| ids.retain(|id| !gone.contains(id)));
            model.retain(|_, ids| !ids.is_empty());
        }
        let readers_len: usize = model.values().map(BTreeSet::len).sum();
        if at % 500 == 0 {
            assert_eq!(totals(&tracked), (model.len() as u64, readers_len as u64));
        }
    }
    for (key, ids) in model {
        assert_eq!(tracked.take(key.as_bytes()), Vec::from_iter(ids));
    }
    assert_eq!((totals(&tracked), tracked.totals.bytes()), ((0, 0), 0));
}

/// Between two steps keys come and go; all that were there before the first lose the reader.
#[test]
fn readers_are_forgotten_in_steps_while_keys_come_and_go() {
    const KEYS: usize = 5000;
    let mut tracked = tracked();
    let (gone, stays) = (tracked.totals.slots.join(1), tracked.totals.slots.join(2));
    for at in 0..KEYS {
        add(&mut tracked, &format!("k{at}"), gone);
        if at % 2 == 0 {
            add(&mut tracked, &format!("k{at}"), stays);
        }
    }
    let mut steps = 0;
    while !tracked.forget_readers(&Gone { slots: 1, is_gone: &|_| false }) {
        for at in 0..300 {
            tracked.take(format!("k{}", (steps * 300 + at) * 2).as_bytes());
            add(&mut tracked, &format!("new{steps} {at}"), stays);
        }
        steps += 1;
    }
    assert!(steps > 2);
    let (keys, readers) = totals(&tracked);
    assert_eq!((keys, readers), (KEYS as u64 / 2, KEYS as u64 / 2), "one reader each");
    assert_eq!(tracked.take(b"k1"), []);
    assert_eq!(tracked.take(b"k4998"), [2]);
}

#[test]
fn a_change_is_gathered_if_somebody_is_to_be_notified() {
    let (mut tracked, mut effects) = (tracked(), Effects::default());
    effects.note_change(&mut tracked, b"k", Cause::ChangedBy(1));
    add(&mut tracked, "other", without_slot(1));
    effects.note_change(&mut tracked, b"k", Cause::ChangedBy(1));
    assert!(effects.changed.is_empty());
    add(&mut tracked, "k", without_slot(1));
    effects.note_change(&mut tracked, b"k", Cause::ChangedBy(1));
    assert_eq!(effects.changed[0].readers, [1]);
    effects.wants_all_keys = true;
    effects.note_change(&mut tracked, b"k", Cause::GONE);
    assert!(effects.changed[1].readers.is_empty());
}
