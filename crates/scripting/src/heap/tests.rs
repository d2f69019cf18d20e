//! Tables against a map from the standard library.

use super::Heap;
use crate::value::Value;
use russet_base::Random;
use std::collections::BTreeMap;

/// A key that can be ordered: what the model knows it by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Whole(i64),
    Half(i64),
    Text(String),
    Truth(bool),
}

fn random_key(random: &mut Random, wide: u64) -> Key {
    match random.below(8) {
        0..=3 => Key::Whole(random.below(wide) as i64),
        4 => Key::Whole(-(random.below(wide) as i64)),
        5 => Key::Half(random.below(wide) as i64),
        6 => Key::Text(format!("key{}", random.below(wide))),
        _ => Key::Truth(random.chance(0.5)),
    }
}

fn value_of(heap: &mut Heap, key: &Key) -> Value {
    match key {
        Key::Whole(number) => Value::Number(*number as f64),
        Key::Half(number) => Value::Number(*number as f64 + 0.5),
        // A new string each time: equal strings are one key.
        Key::Text(text) => Value::Str(heap.string(text.as_bytes()).unwrap()),
        Key::Truth(truth) => Value::Bool(*truth),
    }
}

#[test]
fn a_table_is_a_map() {
    for seed in 0..60 {
        let mut random = Random::from_seed(seed);
        let mut heap = Heap::new(seed, 1 << 30);
        let mut model: BTreeMap<Key, f64> = BTreeMap::new();
        let table = heap.table(random.index(5), random.index(5)).unwrap();
        let wide = 1 + random.below(200);
        for step in 0..1500 {
            let key = random_key(&mut random, wide);
            let given = value_of(&mut heap, &key);
            match random.below(4) {
                0 => {
                    heap.set(table, given, Value::Nil).unwrap();
                    model.remove(&key);
                }
                1 | 2 => {
                    heap.set(table, given, Value::Number(f64::from(step))).unwrap();
                    model.insert(key.clone(), f64::from(step));
                }
                _ => {}
            }
            let found = match heap.get(table, given) {
                Value::Number(number) => Some(number),
                _ => None,
            };
            assert_eq!(found, model.get(&key).copied(), "seed {seed}, step {step}, {key:?}");
        }
        check_traversal(&heap, table, &model);
        check_border(&heap, table, &model);
    }
}

fn check_traversal(heap: &Heap, table: crate::value::TableRef, model: &BTreeMap<Key, f64>) {
    let mut seen: Vec<f64> = Vec::new();
    let mut key = Value::Nil;
    while let Some((next, value)) = heap.next(table, key).unwrap() {
        let Value::Number(number) = value else { panic!("only numbers were stored") };
        seen.push(number);
        key = next;
    }
    let mut wanted: Vec<f64> = model.values().copied().collect();
    seen.sort_by(f64::total_cmp);
    wanted.sort_by(f64::total_cmp);
    assert_eq!(seen, wanted);
}

fn check_border(heap: &Heap, table: crate::value::TableRef, model: &BTreeMap<Key, f64>) {
    let border = heap.len(table) as i64;
    assert!(border == 0 || model.contains_key(&Key::Whole(border)), "{border} is there");
    assert!(!model.contains_key(&Key::Whole(border + 1)), "{} is not", border + 1);
}

#[test]
fn what_is_freed_is_given_back() {
    let mut heap = Heap::new(0, 1 << 20);
    let before = heap.used_bytes();
    heap.make_permanent();
    let table = heap.table(100, 100).unwrap();
    for index in 0..500 {
        heap.set_index(table, index, Value::Number(1.0)).unwrap();
    }
    assert!(heap.used_bytes() > before + 8_000);
    let too_large = heap.table(1 << 20, 0);
    assert!(too_large.is_err(), "16 MiB in a state of one");
    let too_long = heap.string_owned(vec![0; 2 << 20]);
    assert!(too_long.is_err());
    assert!(heap.check_room(2 << 20).is_err());
}

/// Keys that a caller chooses must not meet in one chain. The hash of a number took no seed, and
/// its lower bits ignored the upper bits of the number, which are all that powers of two differ in.
#[test]
fn no_choice_of_numbers_makes_long_chains() {
    type Family = (&'static str, fn(i32) -> f64);
    let families: [Family; 5] = [
        ("powers of two", |n| 2f64.powi(n - 500)),
        ("multiples of a power of two", |n| f64::from(n) * 2f64.powi(40)),
        ("negative", |n| f64::from(-n)),
        ("halves", |n| f64::from(n) + 0.5),
        ("far from the array", |n| f64::from(n) * 4096.0 + 1e9),
    ];
    for seed in [0, 1, 0x9e37_79b9_7f4a_7c15] {
        for (name, number) in families {
            let mut heap = Heap::new(seed, 1 << 30);
            let table = heap.table(0, 1000).unwrap();
            for n in 0..1000 {
                heap.set(table, Value::Number(number(n)), Value::Bool(true)).unwrap();
            }
            let longest = heap.tables.at(table.index()).longest_search(&heap.strings);
            assert!(longest < 40, "{name}, seed {seed}: {longest} nodes to find one");
        }
    }
}
