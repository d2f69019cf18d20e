//! The promise of a filter: no item is forgotten, and no more strangers are taken for items than
//! was asked, with one layer and with many.

use super::{BITS_BYTES_MAX, Bloom, CAPACITY_MAX, Refused, Wish};

fn wish(error_rate: f64, capacity: u64, expansion: Option<u32>) -> Wish {
    Wish { error_rate, capacity, expansion }
}

/// Fills a filter with `items` different items and returns the share of others that it knows.
fn measured_error(bloom: &mut Bloom, items: u64) -> f64 {
    for item in 0..items {
        bloom.add(&item.to_le_bytes()).unwrap();
    }
    for item in 0..items {
        assert!(bloom.contains(&item.to_le_bytes()), "an item is never forgotten");
    }
    let strangers = 200_000u64;
    let wrong = (0..strangers).filter(|n| bloom.contains(format!("stranger {n}").as_bytes()));
    wrong.count() as f64 / strangers as f64
}

#[test]
fn a_full_single_layer_errs_less_than_asked() {
    for error_rate in [0.2, 0.1, 0.05, 0.01, 0.001] {
        let items = 20_000;
        // Items that were taken for others leave room, so it is never quite full.
        let mut bloom = Bloom::new(wish(error_rate, items, None)).unwrap();
        let measured = measured_error(&mut bloom, items);
        assert!(measured < error_rate, "{measured} for {error_rate}");
        assert!(measured > error_rate / 4.0, "wasteful: {measured} for {error_rate}");
        assert_eq!(bloom.layers(), 1);
    }
}

#[test]
fn many_layers_err_less_than_asked() {
    for (error_rate, expansion) in [(0.1, 1), (0.1, 2), (0.01, 2), (0.01, 1), (0.001, 4)] {
        let mut bloom = Bloom::new(wish(error_rate, 1_000, Some(expansion))).unwrap();
        let measured = measured_error(&mut bloom, 10_000);
        assert!(measured < error_rate, "{measured} for {error_rate} times {expansion}");
        assert!(bloom.layers() >= 3);
        assert!(bloom.capacity() >= 9_000);
    }
}

#[test]
fn a_filter_that_must_not_grow_is_full_one_day() {
    let mut bloom = Bloom::new(wish(0.01, 3, None)).unwrap();
    for item in [b"a", b"b", b"c"] {
        assert_eq!(bloom.add(item), Ok(true));
    }
    assert_eq!(bloom.add(b"a"), Ok(false));
    assert_eq!(bloom.add(b"d"), Err(Refused::Full));
    assert_eq!(bloom.len(), 3);
}

#[test]
fn memory_is_bounded_before_it_is_taken() {
    assert_eq!(Bloom::new(wish(1e-300, CAPACITY_MAX, None)).err(), Some(Refused::TooLarge));
    assert_eq!(Bloom::new(wish(f64::MIN_POSITIVE, u64::MAX, None)).err(), Some(Refused::TooLarge));
    let mut bloom = Bloom::new(wish(0.01, 1, Some(u32::MAX))).unwrap();
    assert_eq!(bloom.add(b"a"), Ok(true));
    assert_eq!(bloom.add(b"b"), Err(Refused::TooLarge));
    assert!(bloom.contains(b"a"));
    assert!(u64::try_from(bloom.memory_bytes()).unwrap() < BITS_BYTES_MAX);
}

#[test]
fn sizes_are_those_of_the_module() {
    // The example in the documentation of BF.INFO.
    let bloom = Bloom::new(wish(0.01, 100, Some(2))).unwrap();
    assert_eq!((bloom.capacity(), bloom.reported_bytes(), bloom.layers()), (100, 240, 1));
}
