//! What the table costs: nanoseconds per operation, the longest pause of an insertion, and resident
//! bytes per key for four shapes of entries. Run with `--release`, optionally with a key count.

use russet_base::hash::KeyHasher;
use russet_engine::store::raw::table::{
    Blocks, Cursor, Home, Measured, NewValue, PagePool, Slot, Table, View,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// As in the keyspace.
const SHARDS_PER_SLAB: usize = 16;
const HASHER: KeyHasher = KeyHasher::with_seed(0x5EED);
/// Searches whose cache misses overlap in the pipelined figures.
const BATCH: usize = 16;

/// Resident bytes of this process.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap_or("Rss: 0 kB");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) * 1024
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn scrambled(number: u64, keys: u64) -> u64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % keys
}

#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    is_int: bool,
    has_expiry: bool,
    target_bytes: f64,
}

const SHAPES: [Shape; 4] = [
    Shape { name: "32 B value", is_int: false, has_expiry: false, target_bytes: 68.0 },
    Shape { name: "32 B value + expiry", is_int: false, has_expiry: true, target_bytes: 76.0 },
    Shape { name: "int", is_int: true, has_expiry: false, target_bytes: 44.0 },
    Shape { name: "int + expiry", is_int: true, has_expiry: true, target_bytes: 52.0 },
];

fn value(shape: Shape, number: u64) -> NewValue<'static, NoObject> {
    if shape.is_int {
        return NewValue::Int(number as i64);
    }
    NewValue::Bytes(b"0123456789abcdef0123456789abcdef")
}

/// No value here is large enough to be an object.
struct NoObject;

impl Measured for NoObject {
    fn memory_bytes(&self) -> usize {
        0
    }
}

fn fill(tables: &mut [Table<NoObject>], shape: Shape, keys: u64) {
    let shards = tables.len() as u64;
    for number in 0..keys {
        let key = key(number);
        let hash = HASHER.hash(&key);
        let expiry = shape.has_expiry.then_some(1_700_000_000_000 + number as i64);
        let table = &mut tables[((hash >> 16) % shards) as usize];
        table.insert(&key, hash, value(shape, number), expiry);
    }
}

fn memory(keys: u64, shards: usize) {
    for shape in SHAPES {
        let before = resident_bytes();
        let pool = Arc::new(PagePool::new());
        let slabs: Vec<_> = (0..shards.div_ceil(SHARDS_PER_SLAB))
            .map(|_| Arc::new(Blocks::new(Arc::clone(&pool))))
            .collect();
        let mut tables: Vec<Table<NoObject>> = (0..shards)
            .map(|shard| Table::new(Arc::clone(&slabs[shard % slabs.len()]), HASHER))
            .collect();
        fill(&mut tables, shape, keys);
        let per_key = (resident_bytes() - before) as f64 / keys as f64;
        let counted = tables.iter().map(Table::memory_bytes).sum::<usize>() as f64 / keys as f64;
        let verdict = if per_key <= shape.target_bytes { "ok" } else { "OVER" };
        println!(
            "{keys:>9} keys, {shards:>3} shards, {:<20} {per_key:6.2} B/key resident, \
             {counted:6.2} counted (target {}) {verdict}",
            shape.name, shape.target_bytes
        );
    }
}

/// Nanoseconds that this thread has been running: other work on the machine doesn't count.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn report(name: &str, start_ns: u64, count: u64) {
    println!("  {name:<34} {:7.1} ns/op", (cpu_ns() - start_ns) as f64 / count as f64);
}

/// Times every insertion of a growing table, three times over: of each insertion the shortest time
/// counts, because the machine's other work disturbs a different one in each run.
fn growth(keys: u64, prepares: bool) -> Table<NoObject> {
    let mut shortest = vec![u32::MAX; keys as usize];
    let mut table = grow_once(&mut shortest, prepares);
    for _ in 0..2 {
        drop(table);
        table = grow_once(&mut shortest, prepares);
    }
    let total: u64 = shortest.iter().map(|&pause| u64::from(pause)).sum();
    shortest.sort_unstable();
    let at = |share: f64| f64::from(shortest[((keys - 1) as f64 * share) as usize]) / 1000.0;
    println!(
        "  insert with growth{:<16} {:7.1} ns/op, p99.9 {:.1} us, p99.999 {:.1} us, \
         longest {:.1} us",
        if prepares { ", prepared" } else { "" },
        total as f64 / keys as f64,
        at(0.999),
        at(0.99999),
        at(1.0)
    );
    table
}

fn grow_once(shortest: &mut [u32], prepares: bool) -> Table<NoObject> {
    let pool = Arc::new(PagePool::new());
    let mut table: Table<NoObject> = Table::new(Arc::new(Blocks::new(Arc::clone(&pool))), HASHER);
    for (number, shortest) in shortest.iter_mut().enumerate() {
        let key = key(number as u64);
        let hash = HASHER.hash(&key);
        let start = Instant::now();
        table.insert(&key, hash, value(SHAPES[0], number as u64), None);
        *shortest = (*shortest).min(start.elapsed().as_nanos() as u32);
        if prepares && number.is_multiple_of(4096) {
            pool.prepare();
        }
    }
    table
}

fn speed(keys: u64) {
    println!("{keys} keys of 16 B with 32 B values, one table, one thread:");
    drop(growth(keys, false));
    let mut table = growth(keys, true);
    let rounds = keys.clamp(1_000_000, 4_000_000);
    let start = cpu_ns();
    for number in 0..rounds {
        black_box(HASHER.hash(&key(scrambled(number, keys))));
    }
    report("(making and hashing a key)", start, rounds);
    let start = cpu_ns();
    for number in 0..rounds {
        let key = key(scrambled(number, keys));
        let entry = table.find(&key, HASHER.hash(&key)).expect("inserted");
        if let View::Bytes(bytes) = entry.value() {
            black_box(bytes[0]);
        }
    }
    report("find, hit", start, rounds);
    let start = cpu_ns();
    for number in 0..rounds {
        let key = key(keys + number);
        assert!(table.find(&key, HASHER.hash(&key)).is_none());
    }
    report("find, miss", start, rounds);
    pipelined(&table, keys, rounds);
    let start = cpu_ns();
    for number in 0..rounds {
        let key = key(scrambled(number, keys));
        match table.entry(&key, HASHER.hash(&key)) {
            Slot::Occupied(mut entry) => entry.set_bytes(b"ABCDEFGHABCDEFGHabcdefghabcdefgh"),
            Slot::Vacant(_) => unreachable!("all keys are there"),
        }
    }
    report("overwrite", start, rounds);
    walks(&mut table);
    let start = cpu_ns();
    for number in 0..keys {
        let key = key(number);
        table.delete(&key, HASHER.hash(&key)).expect("inserted");
    }
    report("delete all", start, keys);
    expiry(keys);
}

fn pipelined(table: &Table<NoObject>, keys: u64, rounds: u64) {
    let start = cpu_ns();
    let mut batch = [([0; 16], 0); BATCH];
    for first in (0..rounds).step_by(BATCH) {
        for (at, slot) in batch.iter_mut().enumerate() {
            let key = key(scrambled(first + at as u64, keys));
            *slot = (key, HASHER.hash(&key));
            table.home(slot.1).iter().for_each(Home::prefetch);
        }
        for (_, hash) in &batch {
            table.home(*hash).map(|home| home.prefetch_entry(false));
        }
        for (key, hash) in &batch {
            black_box(table.find(key, *hash).expect("inserted").access());
        }
    }
    report("find, hit, prefetched in sixteens", start, rounds);
}

fn walks(table: &mut Table<NoObject>) {
    let (start, mut seen, mut cursor) = (cpu_ns(), 0, Cursor::START);
    loop {
        cursor = table.scan(cursor, &mut |entry| seen += u64::from(!entry.key().is_empty()));
        if cursor.is_end() {
            break;
        }
    }
    report("scan", start, seen);
    let (start, mut state) = (cpu_ns(), 1u64);
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    for _ in 0..500_000 {
        black_box(table.random(&mut random).is_some());
    }
    report("random", start, 500_000);
}

/// Keys that live for about ten seconds, reclaimed by steps every 25 ms of simulated time.
fn expiry(keys: u64) {
    let mut table: Table<NoObject> =
        Table::new(Arc::new(Blocks::new(Arc::new(PagePool::new()))), HASHER);
    for number in 0..keys {
        let key = key(number);
        let expiry = Some(scrambled(number, 10_000) as i64);
        table.insert(&key, HASHER.hash(&key), NewValue::Int(1), expiry);
    }
    let (start, mut steps, mut gone) = (cpu_ns(), Vec::new(), 0);
    for now_ms in (0..10_800).step_by(25) {
        loop {
            let step = Instant::now();
            let is_more = table.expire_step(now_ms, 1000, &mut |_, _| gone += 1);
            steps.push(step.elapsed().as_micros());
            if !is_more {
                break;
            }
        }
    }
    assert_eq!((gone, table.len()), (keys, 0));
    report("expire, per key, ten seconds", start, keys);
    steps.sort_unstable();
    println!("  step of 1000 slots: p99 {} us", steps[steps.len() * 99 / 100]);
}

fn main() {
    let keys: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let keys = if keys.is_empty() { vec![1_000_000, 5_000_000] } else { keys };
    for &keys in &keys {
        memory(keys, 1);
        memory(keys, 64);
    }
    for &keys in &keys {
        speed(keys);
    }
}
