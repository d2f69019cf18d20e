//! Records of requests that ran once, against what a map would hold.

use super::*;
use crate::types::cow_vec::take_copied_elements;

/// An id with a hash that many share.
fn id(text: &[u8]) -> (&[u8], u64) {
    (text, u64::from(text[0]) << 32)
}

fn record(expires: i64) -> OnceRecord<'static> {
    OnceRecord { digest: 7, reply: b"+OK\r\n", expires: UnixMillis(expires) }
}

/// Long ago: nothing is over yet.
const EARLY: UnixMillis = UnixMillis(0);

#[test]
fn records_go_when_their_time_is_over() {
    let totals = Arc::new(OnceTotals::default());
    let mut records = OnceRecords::new(totals.clone());
    records.put(0, id(b"a"), record(10), EARLY);
    records.put(0, id(b"b"), record(20), EARLY);
    records.put(1, id(b"a"), record(30), EARLY);
    assert_eq!(totals.records(), 3);
    assert_eq!(records.find(0, id(b"a"), UnixMillis(9)), Some(record(10)));
    assert_eq!(records.find(0, id(b"a"), UnixMillis(10)), None);
    assert_eq!(records.find(2, id(b"a"), UnixMillis(0)), None);
    assert_eq!(records.expire(UnixMillis(20), 1), 1);
    assert_eq!(records.expire(UnixMillis(20), 10), 1);
    assert_eq!(records.len(), 1);
    records.put(1, id(b"a"), record(40), EARLY);
    assert_eq!(records.len(), 1);
    records.clear(0);
    assert_eq!(records.len(), 1);
    records.clear(1);
    assert!(records.is_empty() && records.deadlines.is_empty());
    assert_eq!((totals.records(), totals.bytes(), totals.expired()), (0, 0, 2));
}

/// A few records that stayed kept the room of all that had been there, and it counts.
#[test]
fn records_that_go_give_their_room_back() {
    const COUNT: u64 = 100_000;
    let totals = Arc::new(OnceTotals::default());
    let mut records = OnceRecords::new(totals.clone());
    for at in 0..COUNT {
        let id = at.to_string();
        let expires = if at % 1000 == 0 { 40 } else { 20 };
        records.put(0, (id.as_bytes(), at << 32), record(expires), EARLY);
    }
    let full = totals.bytes();
    assert!(full > COUNT * 80, "{full}");
    while records.expire(UnixMillis(20), 1000) == 1000 {}
    assert_eq!((totals.records(), records.len()), (100, 100));
    assert!(totals.bytes() < full / 20, "{} of {full}", totals.bytes());
    assert!(records.find(0, (b"99000", 99_000 << 32), EARLY).is_some());
    while records.expire(UnixMillis(40), 1000) == 1000 {}
    assert_eq!((totals.records(), totals.bytes()), (0, 0));
}

/// `stored` counted requests and `expired` records, two for a request whose id and key are in
/// different shards; and one whose place a repeat took was not counted at all.
#[test]
fn a_request_counts_once_however_many_records_it_has() {
    let totals = Arc::new(OnceTotals::default());
    let mut homes = [OnceRecords::new(totals.clone()), OnceRecords::new(totals.clone())];
    let mark = |expires| OnceRecord { reply: b"", ..record(expires) };
    homes[0].put(0, id(b"a"), record(10), EARLY);
    homes[1].put(0, id(b"a"), mark(10), EARLY);
    assert_eq!((totals.records(), totals.expired()), (2, 0));
    homes.iter_mut().for_each(|records| assert_eq!(records.expire(UnixMillis(10), 9), 1));
    assert_eq!((totals.records(), totals.expired(), totals.bytes()), (0, 1, 0));
    // Two others that are over go first, so the third is there when it is used again.
    for name in [b"b", b"c", b"d"] {
        homes[0].put(0, id(name), record(20), EARLY);
    }
    homes[0].put(0, id(b"d"), record(40), UnixMillis(30));
    assert_eq!((totals.records(), totals.expired()), (1, 4));
}

/// DEBUG DIGEST FULL ended the server if a request had been forgotten whose place was free.
#[test]
fn what_is_shown_is_neither_a_mark_nor_a_free_slot() {
    let mut records = OnceRecords::new(Arc::default());
    records.put(0, id(b"gone"), record(10), EARLY);
    records.put(1, id(b"kept"), record(40), EARLY);
    records.put(1, id(b"mark"), OnceRecord { reply: b"", ..record(40) }, EARLY);
    assert_eq!(records.expire(UnixMillis(10), 9), 1);
    let mut shown = Vec::new();
    records.for_each(|db, id, record| shown.push((db, id.to_vec(), record.expires.0)));
    assert_eq!(shown, [(1, b"kept".to_vec(), 40)]);
}

/// The cut of a snapshot copied every record while it held their shard: 143 ms for 400,000.
#[test]
fn what_is_shared_stays_as_it_was_and_is_not_copied() {
    let mut records = OnceRecords::new(Arc::default());
    let name = |at: u64| at.to_string().into_bytes();
    for at in 0..10_000 {
        records.put(0, (&name(at), at << 32), record(10 + at as i64), EARLY);
    }
    take_copied_elements();
    let shared = records.share();
    assert_eq!(take_copied_elements(), 0);
    for at in 0..100 {
        records.put(1, (&name(at), at << 32), record(1_000_000), EARLY);
        assert!(take_copied_elements() <= CHUNK_SLOTS);
    }
    records.expire(UnixMillis(5_000), 10_000);
    records.swap((0, 1));
    let mut shown = Vec::new();
    shared.for_each(|db, id, kept| {
        let at: i64 = std::str::from_utf8(id).unwrap().parse().unwrap();
        assert_eq!((db, kept), (0, record(10 + at)));
        shown.push(at);
    });
    shown.sort_unstable();
    assert!(shown.iter().copied().eq(0..10_000));
}

/// The housekeeping took a few hundred at a visit: 12,000 in a second on one key were more, and
/// once it was full, requests were refused though nearly all records were over.
#[test]
fn records_do_not_pile_up_however_fast_they_come() {
    let totals = Arc::new(OnceTotals::default());
    let mut records = OnceRecords::new(totals.clone());
    for now in 0..100_000 {
        let name = now.to_string().into_bytes();
        records.put(0, id(&name), record(now / 10 + 50), UnixMillis(now / 10));
    }
    assert_eq!((records.len(), totals.records()), (500, 500));
    assert_eq!(totals.expired(), 99_500);
}

#[test]
fn the_index_finds_what_is_there_though_hashes_collide() {
    let mut random = russet_base::Random::from_seed(3);
    let mut index = Index::default();
    let mut model = std::collections::BTreeMap::new();
    for _ in 0..20_000 {
        let slot = random.below(200) as u32;
        match model.remove(&slot) {
            Some(hash) => index.remove(hash, slot),
            None => {
                let hash = [7, 8, 9, 15, 16, u32::MAX][random.below(6) as usize];
                index.add(hash, slot);
                model.insert(slot, hash);
            }
        }
        assert_eq!(index.used, model.len());
        let asked = random.below(200) as u32;
        for hash in [7, 15, u32::MAX] {
            let found = index.find(hash, |slot| slot == asked);
            assert_eq!(found, model.get(&asked).filter(|of| **of == hash).map(|_| asked));
        }
    }
}

#[test]
fn records_are_as_in_a_map() {
    use std::collections::HashMap as Map;
    let mut random = russet_base::Random::from_seed(5);
    let totals = Arc::new(OnceTotals::default());
    let mut records = OnceRecords::new(totals.clone());
    type Kept = (u128, Vec<u8>, i64);
    let mut model: Map<(usize, Vec<u8>), Kept> = Map::new();
    for now in 0..4_000 {
        let (db, name) = (random.below(2) as usize, random.below(40).to_string().into_bytes());
        let found = records.find(db, id(&name), UnixMillis(now));
        let live = model.get(&(db, name.clone())).filter(|(_, _, expires)| *expires > now);
        let expected = live.map(|(digest, reply, expires)| (*digest, reply.clone(), *expires));
        let shown = found.map(|it| (it.digest, it.reply.to_vec(), it.expires.0));
        assert_eq!(shown, expected);
        match random.below(20) {
            0 => {
                records.swap((0, 1));
                model = model.drain().map(|((db, id), it)| ((1 - db, id), it)).collect();
            }
            1 => {
                records.clear(db);
                model.retain(|(of, _), _| *of != db);
            }
            2..=5 => {
                records.expire(UnixMillis(now), 1000);
                model.retain(|_, (_, _, expires)| *expires > now);
                let bytes = |((_, id), (_, reply, _)): (&(usize, Vec<u8>), &Kept)| {
                    allocated_bytes(ARC_COUNTS_BYTES + id.len() + reply.len())
                };
                let bytes: usize = model.iter().map(bytes).sum();
                let expected = (model.len() as u64, (bytes as i64 + records.room_bytes) as u64);
                assert_eq!((totals.records(), totals.bytes()), expected);
                assert_eq!(records.len(), model.len());
            }
            _ if shown.is_none() => {
                let expires = now + 1 + random.below(60) as i64;
                let reply = vec![b'x'; random.below(30) as usize];
                let digest = u128::from(random.next_u64());
                let record = OnceRecord { digest, reply: &reply, expires: UnixMillis(expires) };
                records.put(db, id(&name), record, UnixMillis(now));
                model.insert((db, name), (digest, reply, expires));
            }
            _ => {}
        }
    }
}
