//! Registers against a plain array of maxima, across every change of layout, and bytes that claim
//! to be a HyperLogLog.

use super::hash::Mark;
use super::header::{self, Encoding, HEADER_BYTES};
use super::registers::Registers;
use super::sparse::{self, Cursor, Set};
use super::{Fault, REGISTERS, dense, estimate, self_test, stored};
use crate::types::blob::Blob;
use russet_base::Random;

fn registers_of(bytes: &[u8]) -> Registers {
    let mut registers = Registers::default();
    registers.merge(header::parse(bytes).unwrap()).unwrap();
    registers
}

fn empty() -> Vec<u8> {
    stored::build(std::iter::empty(), 3000).0
}

#[test]
fn the_hash_is_the_one_that_every_redis_has() {
    // Proved by PFADD and GET on a real server.
    let (bytes, changes) = stored::build([b"a".as_slice(), b"b", b"c"].into_iter(), 3000);
    assert_eq!(changes, 3);
    assert_eq!(&bytes[HEADER_BYTES..], b"`\xf3\x80P\xb1\x84K\xfb\x80BZ");
}

#[test]
fn sparse_and_dense_hold_the_same_maxima() {
    let mut random = Random::from_seed(5);
    for sparse_bytes_max in [0, 40, 300, 3000, 20_000] {
        let mut model = [0u8; REGISTERS];
        let mut bytes = empty();
        let spread = 1 + random.below(REGISTERS as u64);
        for _ in 0..4000 {
            let register = random.below(spread) as usize;
            let run = 1 + random.next_u64().trailing_zeros().min(40) as u8 % 34;
            let mark = Mark { register, run };
            let is_sparse = header::parse(&bytes).unwrap().encoding == Encoding::Sparse;
            let expected = run > model[register];
            let changed = if is_sparse {
                match sparse::set(&mut bytes, mark, sparse_bytes_max, &mut Cursor::START.clone()) {
                    Ok(Set::NeedsDense) => break,
                    set => set == Ok(Set::Changed),
                }
            } else {
                dense::set(&mut bytes, HEADER_BYTES, mark)
            };
            assert_eq!(changed, expected);
            model[register] = model[register].max(run);
        }
        assert_eq!(registers_of(&bytes).0, model);
        assert!(bytes.len() <= sparse_bytes_max.max(18));
    }
}

#[test]
fn ascending_marks_are_found_from_the_last_one() {
    let mut random = Random::from_seed(6);
    for _ in 0..200 {
        let (mut one, mut other) = (empty(), empty());
        for _ in 0..random.below(60) {
            let mark = Mark { register: random.index(300), run: 1 + random.below(4) as u8 };
            for bytes in [&mut one, &mut other] {
                sparse::set(bytes, mark, 20_000, &mut Cursor::START.clone()).unwrap();
            }
        }
        let mut cursor = Cursor::START;
        for register in 0..300 {
            if random.chance(0.5) {
                let mark = Mark { register, run: 1 + random.below(4) as u8 };
                sparse::set(&mut one, mark, 20_000, &mut cursor).unwrap();
                sparse::set(&mut other, mark, 20_000, &mut Cursor::START.clone()).unwrap();
            }
        }
        assert_eq!(one, other);
    }
}

#[test]
fn packing_is_register_by_register() {
    let mut random = Random::from_seed(7);
    let registers = Registers(std::array::from_fn(|_| random.next_u64() as u8 & 63));
    let mut packed = [0; REGISTERS * 6 / 8];
    dense::pack(&registers, &mut packed);
    for (index, register) in registers.iter().enumerate() {
        assert_eq!(dense::register(&packed, index), register);
    }
    for index in [0, 1, 2, 3, 8191, REGISTERS - 1] {
        let mut raised = vec![0; packed.len()];
        assert!(dense::set(&mut raised, 0, Mark { register: index, run: 51 }));
        assert!(!dense::set(&mut raised, 0, Mark { register: index, run: 51 }));
        let mut unpacked = Registers::default();
        dense::merge_into(&mut unpacked, &raised);
        assert!(unpacked.iter().enumerate().all(|(at, it)| it == if at == index { 51 } else { 0 }));
    }
}

#[test]
fn both_ways_to_the_estimate_agree_to_the_last_digit() {
    let mut random = Random::from_seed(12);
    for round in 0..300u32 {
        let run_max = 1 + random.below(if round % 10 == 0 { 63 } else { 38 }) as u8;
        let share = random.unit();
        let registers = Registers(std::array::from_fn(|_| {
            let run = (random.next_u64() | 1 << 62).trailing_zeros() as u8 + random.below(9) as u8;
            if random.unit() < share { run.min(run_max) } else { 0 }
        }));
        assert_eq!(estimate::of_registers(&registers), estimate::by_histogram(&registers));
    }
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut random = Random::from_seed(8);
    for round in 0..3000 {
        let elements: Vec<[u8; 8]> = (0..random.below(300)).map(u64::to_le_bytes).collect();
        let mut bytes = stored::build(elements.iter().map(<[u8; 8]>::as_slice), 3000).0;
        match round % 3 {
            0 => bytes.truncate(random.index(bytes.len() + 1)),
            1 => {
                for _ in 0..=random.below(4) {
                    let at = random.index(bytes.len());
                    bytes[at] = random.next_u64() as u8;
                }
            }
            _ => bytes.extend((0..random.below(9)).map(|_| random.next_u64() as u8)),
        }
        let Ok(parts) = header::parse(&bytes) else { continue };
        let counted = estimate::of_parts(parts);
        let merged = Registers::default().merge(parts);
        assert_eq!(counted.is_ok(), merged.is_ok());
        if parts.encoding == Encoding::Sparse {
            let mark = Mark { register: random.index(REGISTERS), run: 1 + random.below(51) as u8 };
            let before = bytes.clone();
            let set = sparse::set(&mut bytes, mark, 3000, &mut Cursor::START.clone());
            if !matches!(set, Ok(Set::Changed)) {
                assert_eq!(bytes.bytes(), before);
            }
        }
    }
}

#[test]
fn wrong_headers_differ_from_wrong_registers() {
    let fault = |bytes: &[u8]| header::parse(bytes).and_then(estimate::of_parts).unwrap_err();
    assert_eq!(fault(b""), Fault::NotHyperLogLog);
    assert_eq!(fault(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0"), Fault::NotHyperLogLog);
    assert_eq!(fault(b"HYLX\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"), Fault::NotHyperLogLog);
    assert_eq!(fault(b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"), Fault::NotHyperLogLog);
    assert_eq!(fault(b"HYLL\0\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"), Fault::NotHyperLogLog);
    assert_eq!(fault(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f"), Fault::Corrupt);
    assert_eq!(fault(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff\0"), Fault::Corrupt);
    assert_eq!(fault(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xfe"), Fault::Corrupt);
}

#[test]
fn the_self_test_passes() {
    assert_eq!(self_test(&mut Random::from_seed(9), 3000), Ok(()));
}
