//! What data consists of: counts by type and database, sizes, the largest keys.

use russet_engine::store::raw::table::{EntryRef, Measured, View};
use russet_engine::types;
use russet_engine::value::{Object, Type, type_of};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Keys of one kind, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub keys: u64,
    pub with_expiry: u64,
    /// Of these, those whose time is over.
    pub expired: u64,
    /// Elements, fields, members or entries; none of strings.
    pub elements: u64,
    /// What they take in the memory of a server.
    pub memory_bytes: u64,
}

impl Counts {
    fn add(&mut self, size: Size, expiry: Option<i64>, now_ms: i64) {
        self.keys += 1;
        self.with_expiry += u64::from(expiry.is_some());
        self.expired += u64::from(expiry.is_some_and(|at_ms| at_ms <= now_ms));
        self.elements += size.elements;
        self.memory_bytes += size.memory_bytes;
    }
}

#[derive(Clone, Copy)]
struct Size {
    elements: u64,
    memory_bytes: u64,
}

/// A key that is among the largest: the largest comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LargeKey {
    pub memory_bytes: u64,
    pub db: usize,
    pub key: Vec<u8>,
    pub type_name: &'static str,
    pub elements: u64,
}

#[derive(Debug)]
pub struct Survey {
    now_ms: i64,
    largest_max: usize,
    types: Vec<(&'static str, Counts)>,
    pub databases: BTreeMap<usize, Counts>,
    pub all: Counts,
    largest: BinaryHeap<Reverse<LargeKey>>,
    pub libraries: u64,
    /// Requests that ran once.
    pub requests: u64,
    /// Hashes with a field that has a deadline.
    pub hashes_with_deadlines: u64,
}

impl Survey {
    /// `now_ms` decides what has expired.
    pub fn new(now_ms: i64, largest_max: usize) -> Self {
        Survey {
            now_ms,
            largest_max,
            types: Type::ALL.iter().map(|kind| (kind.name(), Counts::default())).collect(),
            databases: BTreeMap::new(),
            all: Counts::default(),
            largest: BinaryHeap::new(),
            libraries: 0,
            requests: 0,
            hashes_with_deadlines: 0,
        }
    }

    pub fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) {
        let kind = type_of(entry);
        let size = Size { elements: elements_of(entry), memory_bytes: memory_of(entry) };
        let (expiry, now_ms) = (entry.expiry(), self.now_ms);
        let of_type = self.types.iter_mut().find(|(name, _)| *name == kind.name());
        let of_type = of_type.map(|(_, counts)| counts);
        let of_db = self.databases.entry(db).or_default();
        for counts in [Some(&mut self.all), of_type, Some(of_db)].into_iter().flatten() {
            counts.add(size, expiry, now_ms);
        }
        if kind == Type::Hash && has_deadlines(entry) {
            self.hashes_with_deadlines += 1;
        }
        let least = self.largest.peek().map_or(u64::MAX, |Reverse(key)| key.memory_bytes);
        if self.largest.len() >= self.largest_max {
            if size.memory_bytes <= least {
                return;
            }
            self.largest.pop();
        }
        self.largest.push(Reverse(LargeKey {
            memory_bytes: size.memory_bytes,
            db,
            key: entry.key().to_vec(),
            type_name: kind.name(),
            elements: size.elements,
        }));
    }

    /// The types that there are.
    pub fn types(&self) -> impl Iterator<Item = (&'static str, Counts)> {
        self.types.iter().copied().filter(|(_, counts)| counts.keys > 0)
    }

    /// The largest keys, the largest of them first.
    pub fn largest(&self) -> Vec<LargeKey> {
        let mut largest: Vec<LargeKey> = self.largest.iter().map(|one| one.0.clone()).collect();
        largest.sort_by(|one, other| other.cmp(one));
        largest
    }
}

/// What a key takes of a table's slots: eight bytes, and four of five are in use as a rule.
const SLOT_SHARE_BYTES: usize = 10;

fn memory_of(entry: &EntryRef<'_, Object>) -> u64 {
    let apart = match entry.value() {
        View::Object(object) => object.memory_bytes(),
        _ => 0,
    };
    (entry.block_bytes() + SLOT_SHARE_BYTES + apart) as u64
}

fn elements_of(entry: &EntryRef<'_, Object>) -> u64 {
    let count = match type_of(entry) {
        Type::String => Ok(0),
        Type::List => types::list::stored::list(entry).map(|list| list.len()),
        Type::Set => types::set::stored::set(entry).map(|set| set.len()),
        Type::Zset => types::zset::stored::zset(entry).map(|zset| zset.len()),
        Type::Hash => types::hash::stored::hash(entry).map(|hash| hash.len()),
        Type::Stream => types::stream::stored::stream(entry).map(|log| log.len() as usize),
        Type::Bloom => types::bloom::stored(entry).map(|bloom| bloom.len()),
    };
    count.unwrap_or(0) as u64
}

/// Whether some field of a hash has a deadline.
fn has_deadlines(entry: &EntryRef<'_, Object>) -> bool {
    let Ok(hash) = types::hash::stored::hash(entry) else { return false };
    let mut has = false;
    if hash.may_expire() {
        hash.for_each(|field| has |= field.deadline_ms.is_some());
    }
    has
}
