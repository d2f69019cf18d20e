//! Random operations against the standard map, with good hashes and with poor ones.

use super::*;
use crate::types::cow_vec::{COPIED_ELEMENTS_MAX, take_copied_elements};
use crate::types::element::stored_bytes;
use russet_base::random::Random;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

/// A value in its stored form behind each key.
struct Value;

impl Payload for Value {
    fn bytes(run: &[u8]) -> usize {
        stored_bytes(run)
    }
}

/// Hashes of which only some bits differ.
#[derive(Clone, Copy, PartialEq)]
struct Masked(u64);

impl HashElement for Masked {
    fn hash_element(&self, element: Element<'_>) -> u64 {
        KeyHasher::with_seed(5).hash_element(element) & self.0
    }
}

const MASKS: [u64; 5] = [u64::MAX, 0, 0xff, 0x0000_0000_f000_00ff, 0xf000_0000_0000_0001];

impl<P: Payload, H: HashElement> Cells<P, H> {
    /// What must hold after every change.
    fn check(&self) {
        assert_eq!(self.directory.len(), 1 << self.depth);
        self.pool.check_bytes();
        let mut len = 0;
        let mut deepest = 0;
        for number in 0..self.pool.len() as u32 {
            let cell = &self.pool[number];
            len += cell.len();
            deepest += u32::from(cell.span.depth() == self.depth);
            assert!(self.directory[cell.span.slots(self.depth)].iter().all(|&at| at == number));
            assert!(cell.len() <= self.fullest as usize);
            for (index, (kept, record)) in cell.iter::<P>().enumerate() {
                let hash = self.hasher.hash_element(parts(record).0);
                assert_eq!(kept, fingerprint(hash));
                assert_eq!(self.number_at(position(hash)), number);
                assert_eq!(cell.record::<P>(cell.offset::<P>(index)), record);
            }
        }
        assert_eq!((len, deepest), (self.len, self.deepest));
    }
}

fn stored(text: &[u8]) -> Vec<u8> {
    Stored::new(Element::parse(text)).pieces().concat()
}

fn key(random: &mut Random, keys: u64) -> Vec<u8> {
    let number = random.below(keys);
    match number % 5 {
        0 => number.to_string().into_bytes(),
        1 => format!("-{number}0000000000").into_bytes(),
        2 => vec![b'x'; number as usize % 300],
        _ => format!("member:{number:08}").into_bytes(),
    }
}

fn contents<H: HashElement>(cells: &Cells<Value, H>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    cells.for_each(|key, payload| {
        assert!(all.insert(key.to_vec(), payload.to_vec()).is_none());
    });
    all
}

#[test]
fn as_a_map_whatever_the_hashes() {
    for (seed, mask) in MASKS.into_iter().enumerate() {
        let mut random = Random::from_seed(seed as u64);
        let mut cells = Cells::<Value, Masked>::new(Masked(mask));
        let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        let steps = if mask == u64::MAX { 60_000 } else { 6_000 };
        for step in 0..steps {
            // In turns it grows and shrinks.
            let grows = step * 6 / steps % 2 == 0;
            let keys = if mask == u64::MAX { 20_000 } else { 1_500 };
            let name = key(&mut random, keys);
            let element = Element::parse(&name);
            if random.chance(if grows { 0.8 } else { 0.1 }) {
                let value = stored(&vec![b'v'; random.index(40)]);
                let (head, rest) = value.split_at(1);
                if random.chance(0.5) {
                    let is_new = cells.insert(element, &[head, rest]);
                    assert_eq!(is_new, model.insert(name, value).is_none());
                } else {
                    let is_new = cells.add(element, &[&value]);
                    assert_eq!(is_new, !model.contains_key(&name));
                    model.entry(name).or_insert(value);
                }
            } else {
                let removed = cells.remove_with(element, <[u8]>::to_vec);
                assert_eq!(removed, model.remove(&name));
            }
            let name = key(&mut random, keys);
            let element = Element::parse(&name);
            assert_eq!(cells.find(element), model.get(&name).map(Vec::as_slice));
            assert_eq!(cells.contains(element), model.contains_key(&name));
            assert_eq!(cells.len(), model.len());
            if step % 997 == 0 {
                cells.check();
                assert_eq!(contents(&cells), model);
            }
        }
        cells.check();
        assert_eq!(contents(&cells.clone()), model);
        cells.retain(|key, _| key.with_bytes(|text| text.len() % 2 == 0));
        model.retain(|key, _| key.len() % 2 == 0);
        cells.check();
        assert_eq!(contents(&cells), model);
        while let Some(spot) = cells.random(&mut random) {
            let name = cells.at(spot).0.to_vec();
            assert!(model.remove(&name).is_some());
            cells.remove_at(spot);
        }
        assert!(model.is_empty() && cells.is_empty());
        assert_eq!(cells.pool.len(), 1, "it shrinks to nothing");
        assert!(cells.directory.len() < SLOTS_PER_CELL_MAX);
    }
}

#[test]
fn a_scan_sees_all_that_stays() {
    let mut random = Random::from_seed(11);
    for round in 0..40 {
        let count = [1, 3, 10, 50, 100, 1000][random.index(6)];
        let mut cells = Cells::<NoPayload>::new(KeyHasher::with_seed(round));
        let stay: BTreeSet<i64> = (0..500).collect();
        stay.iter().for_each(|&key| assert!(cells.add(Element::Int(key), &[])));
        let shrinks = round % 2 == 0;
        let others = 1_000..20_000i64;
        if shrinks {
            others.clone().for_each(|key| assert!(cells.add(Element::Int(key), &[])));
        }
        let (mut cursor, mut seen) = (0, BTreeSet::new());
        loop {
            let mut shown = 0;
            cursor = cells.scan(cursor, count, |key, _| {
                shown += 1;
                seen.insert(key.to_vec());
            });
            // Of so many keys two or three may share a position.
            let is_exact = (count..=count + 2).contains(&shown);
            assert!(is_exact || cursor == 0, "{shown} of {count}");
            assert!(cursor < 1 << 53);
            if cursor == 0 {
                break;
            }
            for _ in 0..random.index(300) {
                let other = Element::Int(1_000 + random.below(19_000) as i64);
                if shrinks {
                    cells.remove(other)
                } else {
                    cells.add(other, &[])
                };
            }
        }
        assert!(stay.iter().all(|key| seen.contains(key.to_string().as_bytes())));
    }
    assert_eq!(Cells::<NoPayload>::new(KeyHasher::with_seed(1)).scan(u64::MAX, 10, |_, _| ()), 0);
}

#[test]
fn each_record_is_drawn_as_often_as_the_others() {
    let mut random = Random::from_seed(12);
    let mut cells = Cells::<NoPayload>::new(KeyHasher::with_seed(3));
    (0..1_000).for_each(|key| assert!(cells.add(Element::Int(key), &[])));
    let mut drawn = HashMap::<Vec<u8>, f64>::new();
    for _ in 0..200_000 {
        let spot = cells.random(&mut random).expect("it is not empty");
        *drawn.entry(cells.at(spot).0.to_vec()).or_default() += 1.0;
    }
    assert_eq!(drawn.len(), 1_000);
    let chi_square: f64 = drawn.values().map(|times| (times - 200.0).powi(2) / 200.0).sum();
    // 999 degrees of freedom: a deviation of 44.7 is usual.
    assert!((800.0..1_200.0).contains(&chi_square), "{chi_square}");
}

#[test]
fn combined_as_sets_are() {
    let mut random = Random::from_seed(13);
    for round in 0..60 {
        let hasher = Masked(MASKS[if round < 40 { 0 } else { round % 5 }]);
        let sizes: [usize; 3] =
            std::array::from_fn(|_| [0, 10, 300, 3_000][random.index(4)] + random.index(10));
        let mut sets = Vec::new();
        for size in sizes {
            let mut cells = Cells::<NoPayload, Masked>::with_room_for(hasher, size);
            let mut model = BTreeSet::new();
            for _ in 0..size {
                let name = key(&mut random, 2_000);
                assert_eq!(cells.add(Element::parse(&name), &[]), model.insert(name));
            }
            cells.check();
            sets.push((cells, model));
        }
        let [(a, in_a), (b, in_b), (c, in_c)] = sets.as_slice() else { unreachable!() };
        let all = |cells: &Cells<NoPayload, Masked>| -> BTreeSet<Vec<u8>> {
            cells.check();
            cells.iter().map(|(key, _)| key.to_vec()).collect()
        };
        let both: BTreeSet<_> = in_a.intersection(in_b).cloned().collect();
        let all_three: BTreeSet<_> = both.intersection(in_c).cloned().collect();
        assert_eq!(all(&a.selected(&[b, c], Wanted::InAll)), all_three);
        let only_a = in_a.iter().filter(|key| !in_b.contains(*key) && !in_c.contains(*key));
        assert_eq!(all(&a.selected(&[b, c], Wanted::InNone)), only_a.cloned().collect());
        assert_eq!(all(&a.union(b)), in_a.union(in_b).cloned().collect());
        let mut seen = BTreeSet::new();
        let end = a.select(&[b], Wanted::InAll, |key, _| {
            assert!(seen.insert(key.to_vec()));
            ControlFlow::Continue(())
        });
        assert_eq!((end, seen), (ControlFlow::Continue(()), both));
    }
}

/// Huge records split down to one for each cell; the directory stays small beside them.
#[test]
fn huge_records_do_not_share_a_cell() {
    let mut cells = Cells::<Value>::new(KeyHasher::with_seed(9));
    let value = stored(&vec![b'v'; 100_000]);
    for key in 0..40 {
        assert!(cells.insert(Element::Int(key), &[&value]));
        cells.check();
    }
    assert!(cells.pool.iter().all(|cell| cell.len() <= 1));
    for key in 0..40 {
        assert!(!cells.insert(Element::Int(key), &[&[7]]));
        assert_eq!(cells.find(Element::Int(key)), Some([7].as_slice()));
    }
    cells.check();
    assert!(cells.memory_bytes() < 40_000);
}

#[test]
fn colliding_keys_do_not_grow_the_directory() {
    let mut cells = Cells::<NoPayload, Masked>::new(Masked(0));
    (0..3_000).for_each(|key| assert!(cells.add(Element::Int(key), &[])));
    assert!(cells.directory.len() <= 4_096, "{}", cells.directory.len());
    assert!(cells.contains(Element::Int(2_999)) && !cells.contains(Element::Int(3_000)));
}

/// A snapshot copied a large set or hash as a whole while it held the shard: 19 to 60 ms for a
/// million members.
#[test]
fn a_clone_copies_nothing_and_a_change_no_more_than_chunks() {
    const LEN: u64 = 100_000;
    let mut random = Random::from_seed(8);
    let (old, new) = (stored(b"old"), stored(b"new"));
    let name = |at: u64| format!("member:{at}").into_bytes();
    let mut cells = Cells::<Value>::new(KeyHasher::with_seed(3));
    for at in 0..LEN {
        cells.insert(Element::Bytes(&name(at)), &[&old]);
    }
    take_copied_elements();
    let clone = cells.clone();
    assert_eq!(take_copied_elements(), 0);
    for _ in 0..5_000 {
        let name = name(random.below(2 * LEN));
        match random.below(3) {
            0 => _ = cells.remove(Element::Bytes(&name)),
            _ => _ = cells.insert(Element::Bytes(&name), &[&new]),
        }
        assert!(take_copied_elements() <= COPIED_ELEMENTS_MAX);
    }
    cells.check();
    clone.check();
    assert!((0..LEN).all(|at| clone.find(Element::Bytes(&name(at))) == Some(&old[..])));
    assert_eq!(clone.len(), LEN as usize);
}
