//! The table against a model: `HashMap` with plain values, through random operations across all
//! kinds, sizes and shapes, with the structure checked from inside.

mod model;
mod walks;

use super::*;
use russet_base::hash::KeyHasher;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Large enough for splits and merges, small enough for the interpreter.
const KEYS: usize = if cfg!(miri) { 1000 } else { 20_000 };

const HASHER: KeyHasher = KeyHasher::with_seed(42);

#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

fn hash(key: &[u8]) -> u64 {
    HASHER.hash(key)
}

/// An object that counts how many of its kind are alive.
#[derive(Debug)]
struct Counted {
    number: u64,
    alive: Rc<Cell<i64>>,
}

impl Counted {
    fn new(number: u64, alive: &Rc<Cell<i64>>) -> Box<Counted> {
        alive.set(alive.get() + 1);
        Box::new(Counted { number, alive: Rc::clone(alive) })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
    }
}

impl Measured for u64 {
    fn memory_bytes(&self) -> usize {
        size_of::<u64>()
    }
}

impl Measured for Counted {
    fn memory_bytes(&self) -> usize {
        self.number as usize % 1000
    }
}

fn table<O>() -> (Table<O>, Arc<PagePool>) {
    let pool = Arc::new(PagePool::new());
    (Table::new(Arc::new(Blocks::new(Arc::clone(&pool))), HASHER), pool)
}

fn key(number: usize) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn put(table: &mut Table<u64>, number: usize, expiry: Option<i64>) {
    let key = key(number);
    table.insert(&key, hash(&key), NewValue::Int(number as i64), expiry);
}

#[test]
fn an_unused_table_is_small_and_owns_nothing() {
    assert!(size_of::<Table<u64>>() < 200);
    let (table, pool) = table::<u64>();
    assert_eq!((table.len(), table.memory_bytes(), pool.mapped_bytes()), (0, 0, 0));
    assert!(table.find(b"k", hash(b"k")).is_none());
    assert!(table.home(1).is_none());
    assert!(table.random(&mut || 7).is_none());
    assert!(table.scan(Cursor::START, &mut |_| unreachable!()).is_end());
}

/// A load knows how many keys come, as a rule: with as many, with fewer and with more the table is
/// as one that has grown, and takes about as much room.
#[test]
fn a_table_with_room_for_its_keys_is_as_one_that_grew() {
    for keys in [0, 1, 100, 900, 901, KEYS] {
        let (mut grown, _pool) = table::<u64>();
        (0..keys).for_each(|number| put(&mut grown, number, None));
        for expected in [keys / 2, keys, keys * 2] {
            let (mut table, _pool) = table::<u64>();
            table.reserve(expected);
            table.check();
            (0..keys).for_each(|number| put(&mut table, number, None));
            table.check();
            // It has held keys: there is nothing to be made any more.
            let slot_bytes = table.slot_bytes();
            table.reserve(expected * 4);
            assert!(keys == 0 || table.slot_bytes() == slot_bytes);
            if expected == keys {
                assert!(slot_bytes <= grown.slot_bytes() * 5 / 4, "{slot_bytes} for {keys}");
            }
            for number in 0..keys {
                let key = key(number);
                assert!(table.remove(&key, hash(&key)).is_some());
            }
            table.check();
        }
    }
}

#[test]
fn tables_can_be_sent_and_shared() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Table<Vec<u8>>>();
    is_sync::<Table<Vec<u8>>>();
    is_send::<PagePool>();
    is_sync::<PagePool>();
}

#[test]
fn every_size_around_every_block_boundary_reads_back() {
    let (mut table, _pool) = table::<u64>();
    let largest = if cfg!(miri) { 300 } else { 1400 };
    let mut sizes: Vec<usize> = (0..largest).collect();
    sizes.extend([4096, 65_534, 65_535, 65_536, 70_000]);
    for &size in &sizes {
        for expiry in [None, Some(size as i64)] {
            let key = format!("{size}/{expiry:?}").into_bytes();
            let value: Vec<u8> = (0..size).map(|at| (at * 7 + size) as u8).collect();
            table.insert(&key, hash(&key), NewValue::Bytes(&value), expiry);
        }
    }
    table.check();
    for &size in &sizes {
        for expiry in [None, Some(size as i64)] {
            let key = format!("{size}/{expiry:?}").into_bytes();
            let value: Vec<u8> = (0..size).map(|at| (at * 7 + size) as u8).collect();
            let entry = table.find(&key, hash(&key)).expect("inserted");
            assert_eq!((entry.key(), entry.expiry()), (&key[..], expiry));
            assert_eq!(entry.value(), View::Bytes(&value));
            let removed = table.remove(&key, hash(&key)).expect("inserted");
            assert_eq!((removed.expiry(), removed.value()), (expiry, View::Bytes(&value[..])));
        }
    }
    table.check();
    assert_eq!((table.len(), table.allocated_bytes()), (0, 0));
}

#[test]
fn keys_of_every_length_are_distinct() {
    let (mut table, _pool) = table::<u64>();
    let largest = if cfg!(miri) { 80 } else { 300 };
    let mut lengths: Vec<usize> = (0..largest).collect();
    lengths.extend([65_535, 65_536, 200_000]);
    for &length in &lengths {
        let mut key = vec![b'k'; length];
        table.insert(&key, hash(&key), NewValue::Int(length as i64), None);
        // A key that differs in one byte, at the end or in the middle, is another key.
        for at in [length.wrapping_sub(1), length / 2] {
            if let Some(byte) = key.get_mut(at) {
                *byte ^= 1;
                assert!(table.find(&key, hash(&key)).is_none());
                key[at] ^= 1;
            }
        }
    }
    for &length in &lengths {
        let key = vec![b'k'; length];
        let mut entry = table.find_mut(&key, hash(&key)).expect("inserted");
        assert_eq!(entry.int(), Some(length as i64));
        entry.set_expiry(Some(5));
        entry.set_bytes(&key);
        entry.set_access(0xFFAB_CDEF);
        assert_eq!((entry.value(), entry.access()), (View::Bytes(&key[..]), 0xAB_CDEF));
        assert_eq!((entry.key(), entry.expiry()), (&key[..], Some(5)));
    }
    table.check();
}

#[test]
fn objects_are_dropped_once_each() {
    let alive = Rc::new(Cell::new(0));
    let (mut table, pool) = table::<Counted>();
    for number in 0..200 {
        let key = key(number);
        let object = Counted::new(number as u64, &alive);
        table.insert(&key, hash(&key), NewValue::Object(object), None);
    }
    let find = |number| (key(number), hash(&key(number)));
    let (key, hashed) = find(0);
    let mut entry = table.find_mut(&key, hashed).expect("inserted");
    entry.set_expiry(Some(9));
    entry.object_mut().expect("an object").number = 77;
    assert!(matches!(entry.value(), View::Object(object) if object.number == 77));
    let taken = entry.take_object().expect("an object");
    assert_eq!((taken.number, entry.int(), alive.get()), (77, Some(0), 200));
    drop(taken);
    assert!(entry.take_object().is_none() && entry.object_mut().is_none());
    entry.set_object(Counted::new(1, &alive));
    entry.set_object(Counted::new(2, &alive));
    assert_eq!(alive.get(), 200);
    entry.set_bytes(b"text");
    assert_eq!(alive.get(), 199);
    let (key, hashed) = find(1);
    let object = table.remove(&key, hashed).and_then(Removed::into_object).expect("an object");
    assert_eq!((object.number, alive.get()), (1, 199));
    drop(object);
    let (key, hashed) = find(2);
    drop(table.remove(&key, hashed));
    assert_eq!(alive.get(), 197);
    let (key, hashed) = find(3);
    let mut entry = table.find_mut(&key, hashed).expect("inserted");
    entry.set_with_expiry(NewValue::Object(Counted::new(9, &alive)), Some(4));
    entry.set_with_expiry(NewValue::Int(4), None);
    assert_eq!(alive.get(), 196);
    table.check();
    let taken = table.take();
    assert_eq!((table.len(), taken.len()), (0, 198));
    drop(taken);
    assert_eq!((alive.get(), pool.used_bytes()), (0, 0));
}

#[test]
fn blobs_are_edited_in_place_and_across_blocks() {
    use crate::types::blob::Blob;
    let (mut table, _pool) = table::<u64>();
    let mut model: Vec<u8> = Vec::new();
    let mut random = Random(11);
    let hashed = hash(b"blob");
    table.insert(b"blob", hashed, NewValue::Packed(5, b""), Some(99));
    for step in 0..if cfg!(miri) { 300usize } else { 20_000 } {
        let mut entry = table.find_mut(b"blob", hashed).expect("inserted");
        let mut blob = entry.blob().expect("packed");
        let at = random.below(model.len() + 1);
        let remove = random.below(model.len() - at + 1).min(random.below(60));
        let grows = model.len() < 1500 && !step.is_multiple_of(7);
        let piece = vec![step as u8; random.below(if grows { 60 } else { 8 })];
        blob.splice(at, remove, &[&piece, b"", b"-"]);
        Blob::splice(&mut model, at, remove, &[&piece, b"", b"-"]);
        if model.len() > 4 {
            blob.overwrite(model.len() - 3, b"xyz");
            Blob::overwrite(&mut model, at.min(1), b"");
            let len = model.len();
            model[len - 3..].copy_from_slice(b"xyz");
        }
        assert_eq!(blob.bytes(), model);
        assert!(entry.append(b"+"));
        model.push(b'+');
        assert_eq!((entry.value(), entry.expiry()), (View::Packed(5, &model), Some(99)));
    }
    table.check();
}

#[test]
fn memory_comes_back_after_mass_deletion() {
    let (mut table, pool) = table::<u64>();
    for number in 0..KEYS {
        put(&mut table, number, None);
    }
    table.check();
    let full = table.memory_bytes();
    for number in 0..KEYS {
        let key = key(number);
        assert!(table.remove(&key, hash(&key)).is_some());
    }
    table.check();
    assert!(table.memory_bytes() < 1000, "{} of {full} left", table.memory_bytes());
    assert!(pool.used_bytes() <= 16 * 1024, "one spare page stays");
    table.clear();
    assert_eq!((table.memory_bytes(), pool.used_bytes()), (0, 0));
}

#[test]
fn tables_of_several_threads_share_blocks() {
    let pool = Arc::new(PagePool::new());
    let blocks = Arc::new(Blocks::new(Arc::clone(&pool)));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let mut table: Table<u64> = Table::new(Arc::clone(&blocks), HASHER);
            scope.spawn(move || {
                let keys = || (0..KEYS).map(|number| (number, key(number)));
                for (number, key) in keys() {
                    let value = vec![thread; number % 300];
                    table.insert(&key, hash(&key), NewValue::Bytes(&value), None);
                }
                for (number, key) in keys().filter(|(number, _)| number % 3 == 0) {
                    let removed = table.remove(&key, hash(&key)).expect("inserted");
                    assert_eq!(removed.value(), View::Bytes(&vec![thread; number % 300]));
                }
                table.check();
                for (number, key) in keys().filter(|(number, _)| number % 3 != 0) {
                    let entry = table.find(&key, hash(&key)).expect("kept");
                    assert_eq!(entry.value(), View::Bytes(&vec![thread; number % 300]));
                }
            });
        }
    });
    drop(blocks);
    assert_eq!(pool.used_bytes(), 0);
}

/// What is in use was known to the allocator alone, and could not be asked before each write.
#[test]
fn what_tables_publish_adds_up_to_what_they_take() {
    let (mut table, pool) = table::<Counted>();
    let (alive, mut most) = (Rc::new(Cell::new(0)), 0);
    for (number, len) in
        [0, 10, 500, 990, 1100, 4000, 60_000].into_iter().cycle().take(700).enumerate()
    {
        let key = key(number);
        table.insert(&key, hash(&key), NewValue::Bytes(&vec![7; len]), None);
        let published = pool.used().bytes() as usize;
        most = most.max(table.memory_bytes().abs_diff(published));
    }
    assert!(most <= 64 * 1024, "{most} unpublished");
    assert!(table.memory_bytes() > 100 * 66_000);
    let (key, hashed) = (key(1), hash(&key(1)));
    let mut entry = table.find_mut(&key, hashed).expect("inserted");
    entry.set_object(Counted::new(10, &alive));
    entry.object_mut().expect("an object").number = 600;
    let before = table.memory_bytes();
    assert_eq!(table.take_changed(), Changed::Counts);
    assert_eq!(table.memory_bytes(), before + 590);
    table.check();
    let publish = |table: &mut Table<Counted>| pool.used().add(0, table.take_unpublished());
    publish(&mut table);
    assert_eq!(pool.used().bytes(), table.memory_bytes() as u64);
    // What waits to be dropped counts no longer, and is not counted off twice.
    let mut full = table.take();
    publish(&mut table);
    assert_eq!((pool.used().bytes(), table.memory_bytes()), (0, 0));
    drop(full.take());
    drop(full);
    assert_eq!((pool.used().bytes(), alive.get()), (0, 0));
}

/// An object that is changed again and again was measured twice for each change. It keeps its
/// figure now, which another object at the same address must not inherit.
#[test]
fn an_object_that_is_lent_again_is_measured_from_where_it_was() {
    let (mut table, _pool) = table::<Counted>();
    let alive = Rc::new(Cell::new(0));
    let (one, other) = (key(1), key(2));
    let set = |table: &mut Table<Counted>, key: &[u8], number| {
        let mut entry = table.find_mut(key, hash(key)).expect("inserted");
        entry.object_mut().expect("an object").number = number;
        table.check();
        table.take_changed();
        table.check();
    };
    table.insert(&one, hash(&one), NewValue::Object(Counted::new(10, &alive)), None);
    table.insert(&other, hash(&other), NewValue::Object(Counted::new(20, &alive)), None);
    let slots_and_blocks = table.memory_bytes() - 30;
    for number in [50, 40, 40, 900] {
        set(&mut table, &one, number);
        assert_eq!(table.memory_bytes(), slots_and_blocks + 20 + number as usize);
    }
    set(&mut table, &other, 30);
    set(&mut table, &one, 5);
    assert_eq!(table.memory_bytes(), slots_and_blocks + 35);
    for number in 1..10 {
        let mut entry = table.find_mut(&one, hash(&one)).expect("inserted");
        drop(entry.take_object());
        entry.set_object(Counted::new(100 * number, &alive));
        set(&mut table, &one, 7 * number);
        assert_eq!(table.memory_bytes(), slots_and_blocks + 30 + 7 * number as usize);
    }
}
