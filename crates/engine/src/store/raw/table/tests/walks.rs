//! Scan, random choice and expiry.

use super::*;
use std::collections::{HashMap, HashSet};

fn scan_all(table: &Table<u64>) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let mut cursor = Cursor::START;
    loop {
        cursor = table.scan(cursor, &mut |entry| seen.push(entry.key().to_vec()));
        assert!(cursor.bits() < 1 << Cursor::BITS);
        if cursor.is_end() {
            return seen;
        }
    }
}

#[test]
fn a_scan_of_a_quiet_table_sees_each_key_once() {
    let (mut table, _pool) = table();
    for number in 0..KEYS {
        let is_early = number < if cfg!(miri) { 10 } else { 40 };
        if is_early || number.is_multiple_of(KEYS / 7) || number + 1 == KEYS {
            let seen = scan_all(&table);
            let distinct: HashSet<_> = seen.iter().cloned().collect();
            assert_eq!((seen.len(), distinct.len()), (number, number));
        }
        put(&mut table, number, None);
    }
}

#[test]
fn a_scan_sees_all_that_stays_whatever_comes_and_goes() {
    for seed in 0..if cfg!(miri) { 3 } else { 60 } {
        let mut random = Random(seed);
        let (mut table, _pool) = table();
        let (stable, transient) = (random.below(KEYS / 8) + 1, random.below(KEYS) + 1);
        for number in 0..stable {
            put(&mut table, number, None);
        }
        let mut present: HashSet<usize> = HashSet::new();
        if seed % 2 == 0 {
            for number in stable..stable + transient {
                put(&mut table, number, None);
                present.insert(number);
            }
        }
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut cursor = Cursor::START;
        let mut is_growing = seed % 2 == 1;
        loop {
            cursor = table.scan(cursor, &mut |entry| {
                seen.insert(entry.key().to_vec());
            });
            if cursor.is_end() {
                break;
            }
            if random.below(40) == 0 {
                is_growing = !is_growing;
            }
            for _ in 0..random.below(transient / 4 + 1) {
                let number = stable + random.below(transient);
                if is_growing && present.insert(number) {
                    put(&mut table, number, None);
                } else if !is_growing && present.remove(&number) {
                    let key = key(number);
                    drop(table.remove(&key, hash(&key)));
                }
            }
        }
        table.check();
        for number in 0..stable {
            assert!(seen.contains(&key(number)), "seed {seed}: key {number} was missed");
        }
    }
}

#[test]
fn invented_cursors_do_no_harm() {
    let (mut table, _pool) = table();
    for number in 0..KEYS / 4 {
        put(&mut table, number, None);
    }
    let mut random = Random(3);
    let edges = [1, 65_535, 65_536, 1 << 39, (1 << 40) - 1, 1 << 40, 1 << 53, u64::MAX];
    let invented = (0..100).map(|_| random.next() >> (random.0 % 60)).chain(edges);
    for bits in invented.collect::<Vec<_>>() {
        let mut cursor = Cursor::from_bits(bits);
        let mut calls = 0;
        loop {
            cursor = table.scan(cursor, &mut |_| {});
            calls += 1;
            if cursor.is_end() {
                break;
            }
        }
        assert!(calls <= KEYS);
        if cfg!(miri) && calls > 300 {
            break;
        }
    }
}

#[test]
fn random_choice_is_fair() {
    for keys in [1, 5, 30, if cfg!(miri) { 100 } else { 2000 }] {
        let (mut table, _pool) = table();
        for number in 0..keys {
            put(&mut table, number, None);
        }
        let mut random = Random(5);
        let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
        let draws = if cfg!(miri) { 10 } else { 100 };
        for _ in 0..keys * draws {
            let entry = table.random(&mut || random.next()).expect("not empty");
            *counts.entry(entry.key().to_vec()).or_default() += 1;
        }
        if !cfg!(miri) {
            assert_eq!(counts.len(), keys);
            assert!(counts.values().all(|&count| count > draws / 3 && count < draws * 3));
        }
    }
}

#[test]
fn random_choice_ends_however_sparse_the_table() {
    let (mut table, _pool) = table();
    put(&mut table, 1, None);
    // A generator that always names an empty slot, if there is one.
    for fixed in [0, 1, u64::MAX, 1 << 40] {
        assert!(table.random(&mut || fixed).is_some());
    }
}

#[test]
fn expired_keys_go_and_others_stay() {
    let (mut table, _pool) = table();
    let (mut random, mut due) = (Random(8), HashMap::new());
    for number in 0..KEYS {
        let expiry = (!number.is_multiple_of(3)).then(|| random.below(10_000) as i64);
        put(&mut table, number, expiry);
        due.insert(key(number), expiry);
    }
    for now_ms in (0..11_000).step_by(700) {
        let mut calls = 0;
        while table.expire_step(now_ms, 1000, &mut |Gone { key, .. }, removed| {
            let expiry = due.remove(key).expect("known").expect("has an expiry");
            assert!(expiry <= now_ms && removed.expiry() == Some(expiry));
        }) {
            calls += 1;
        }
        assert!(calls <= KEYS);
        table.check();
        assert!(due.values().all(|expiry| expiry.is_none_or(|at_ms| at_ms > now_ms)));
        assert_eq!(table.len(), due.len());
        assert!(!table.expire_step(now_ms, 1000, &mut |_, _| unreachable!()));
    }
    assert_eq!(table.expires_len(), 0);
}

#[test]
fn expiries_set_and_cleared_during_a_sweep_are_honoured() {
    let (mut table, _pool) = table();
    let mut random = Random(21);
    for number in 0..KEYS / 4 {
        put(&mut table, number, Some(100_000));
    }
    let mut wanted: HashMap<usize, Option<i64>> = HashMap::new();
    for now_ms in (1000..20_000).step_by(97) {
        let mut gone = Vec::new();
        table.expire_step(now_ms, 50, &mut |left, _| gone.push(left.key.to_vec()));
        for gone in gone {
            let text = String::from_utf8(gone).expect("keys are text");
            let number: usize = text["key:".len()..].parse().expect("keys are numbered");
            let at_ms = wanted.insert(number, None).flatten().expect("was to expire");
            assert!(at_ms <= now_ms);
        }
        for _ in 0..20 {
            let number = random.below(KEYS / 4);
            let key = key(number);
            if let Some(mut entry) = table.find_mut(&key, hash(&key)) {
                let expiry = now_ms + random.below(3000) as i64;
                let expiry = (random.below(4) > 0).then_some(expiry);
                entry.set_expiry(expiry);
                wanted.insert(number, expiry);
            }
        }
    }
    // Within a second of the last expiry, everything that was due is gone.
    for now_ms in (24_000..25_200).step_by(100) {
        while table.expire_step(now_ms, 200, &mut |_, _| {}) {}
    }
    table.check();
    for (number, expiry) in wanted {
        let key = key(number);
        assert!(expiry.is_none() || table.find(&key, hash(&key)).is_none());
    }
}

#[test]
fn extreme_times_are_times_too() {
    let (mut table, _pool) = table();
    for (number, at_ms) in [i64::MIN, -1, 0, 1, i64::MAX].into_iter().enumerate() {
        put(&mut table, number, Some(at_ms));
    }
    let mut gone = 0;
    for now_ms in [i64::MIN, 0, 500, i64::MAX - 1, i64::MAX, 0] {
        while table.expire_step(now_ms, 10, &mut |_, _| gone += 1) {}
        table.check();
    }
    assert_eq!((gone, table.len()), (5, 0));
}

#[test]
fn keys_that_expire_all_along_are_gone_within_a_second() {
    let (mut table, _pool) = table();
    let (mut random, mut gone) = (Random(33), 0);
    for number in 0..KEYS {
        put(&mut table, number, Some(random.below(10_000) as i64));
    }
    for now_ms in (0..10_800).step_by(if cfg!(miri) { 200 } else { 25 }) {
        while table.expire_step(now_ms, 1000, &mut |_, _| gone += 1) {}
        if now_ms % 500 == 0 {
            table.check();
        }
    }
    assert_eq!((gone, table.len()), (KEYS, 0));
}

/// What was swept before the clock was set back rested until the old time was reached again.
#[test]
fn keys_expire_on_time_after_the_clock_was_set_back() {
    const DAY_MS: i64 = 86_400_000;
    let (mut table, _pool) = table();
    let mut gone = 0;
    let mut step = |table: &mut Table<u64>, now_ms| {
        while table.expire_step(now_ms, 100, &mut |_, _| gone += 1) {}
        table.check();
        gone
    };
    for number in 0..KEYS {
        let at_ms = if number % 2 == 0 { DAY_MS } else { 3 * DAY_MS };
        put(&mut table, number, Some(at_ms));
    }
    assert_eq!(step(&mut table, DAY_MS), KEYS.div_ceil(2));
    // A day back: one new key in each ten ends within a second of then.
    let late = (0..KEYS).step_by(10).map(|number| KEYS + number);
    late.clone().for_each(|number| put(&mut table, number, Some(900)));
    assert_eq!(step(&mut table, 500), KEYS.div_ceil(2));
    let late = late.count();
    assert_eq!(step(&mut table, 1000), KEYS.div_ceil(2) + late);
    assert_eq!(step(&mut table, 3 * DAY_MS), KEYS + late);
}
