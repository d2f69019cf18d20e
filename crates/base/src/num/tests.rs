//! Texts that a real server was asked about, and laws over random numbers.

use super::*;
use crate::random::Random;

#[test]
fn strict_integers() {
    for value in [0, 1, -1, 9, 10, -10, 99, 100, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
        assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
    }
    for text in [
        "",
        "-",
        "+1",
        "01",
        "-0",
        "-01",
        "00",
        " 1",
        "1 ",
        "1a",
        "a",
        "1.0",
        "0x1",
        "--1",
        "1-",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "100000000000000000000",
        "18446744073709551616",
        "-18446744073709551616",
    ] {
        assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_i64(b"1\0"), None);
    assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
    assert_eq!(parse_u64(b"18446744073709551616"), None);
    assert_eq!(parse_u64(b"99999999999999999999"), None);
    assert_eq!((parse_u64(b"0"), parse_u64(b"-1"), parse_u64(b"01")), (Some(0), None, None));
}

/// Proved on XRANGE and SCAN.
/// Digits are read eight at a time: each byte at each place of each length, next to the standard
/// library.
#[test]
fn integers_are_read_as_the_standard_library_does() {
    for len in 1..=20 {
        for at in 0..len {
            for byte in 0..=u8::MAX {
                let mut text = b"98765432109876543210"[..len].to_vec();
                text[at] = byte;
                let is_strict =
                    text.iter().all(u8::is_ascii_digit) && (len == 1 || text[0] != b'0');
                let std = std::str::from_utf8(&text).ok().filter(|_| is_strict);
                let expected = std.and_then(|text| text.parse::<u64>().ok());
                assert_eq!(parse_u64(&text), expected, "{text:?}");
            }
        }
    }
}

#[test]
fn loose_integers() {
    for (text, expected) in [
        ("01", Some(1)),
        ("+1", Some(1)),
        (" 1", Some(1)),
        ("\t+007", Some(7)),
        ("18446744073709551615", Some(u64::MAX)),
        ("-01", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("-1", None),
        ("1 ", None),
        ("", None),
        ("+", None),
        ("- 1", None),
    ] {
        assert_eq!(parse_u64_loose(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn integers_print_as_std_prints_them() {
    let check = |value: i64| {
        let expected = value.to_string();
        let mut out = b"x".to_vec();
        write_i64(&mut out, value);
        assert_eq!(out[1..], *expected.as_bytes());
        assert_eq!(i64_len(value), expected.len());
        assert_eq!(parse_i64(&out[1..]), Some(value));
        let mut out = Vec::new();
        write_u64(&mut out, value as u64);
        assert_eq!(out, (value as u64).to_string().as_bytes());
        assert_eq!(parse_u64(&out), Some(value as u64));
    };
    (-1100..1100).for_each(check);
    for power in 0..19 {
        let ten = 10i64.pow(power);
        [ten, ten - 1, ten + 1, -ten, -ten - 1, -ten + 1].into_iter().for_each(check);
    }
    [i64::MIN, i64::MAX].into_iter().for_each(check);
    let mut random = Random::from_seed(20);
    (0..10_000).for_each(|_| check((random.next_u64() >> random.below(64)) as i64));
}

/// Each asked of ZADD: Valkey 9 for all but the hexadecimal ones, which only Redis takes.
#[test]
fn floats() {
    for (text, expected) in [
        ("0x1p3", 8.0),
        ("0x10", 16.0),
        ("0X1P-2", 0.25),
        ("-0x1p3", -8.0),
        ("0x.8", 0.5),
        ("0x1p-1074", 5e-324),
        ("0x1.8p-1074", 1e-323),
        ("0x1.fffffffffffff7p1023", f64::MAX),
        ("0x0p9999", 0.0),
        ("inf", f64::INFINITY),
        ("+iNf", f64::INFINITY),
        ("-inf", f64::NEG_INFINITY),
        ("Infinity", f64::INFINITY),
        ("+INFINITY", f64::INFINITY),
        ("+1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1E5", 1e5),
        ("1e+5", 1e5),
        ("1e-5", 1e-5),
        ("1e05", 1e5),
        ("01", 1.0),
        ("00", 0.0),
        ("1.7976931348623157e308", f64::MAX),
        ("3e-324", 5e-324),
        ("1e-310", 1e-310),
        ("2.4703282292062328e-324", 5e-324),
        ("0e999999", 0.0),
        ("0e-99999999999", 0.0),
    ] {
        assert_eq!(parse_f64(text.as_bytes()), Some(expected), "{text}");
    }
    assert!(parse_f64(b"-0").unwrap().is_sign_negative());
    assert!(parse_f64(b"-0x0").unwrap().is_sign_negative());
    assert_eq!(parse_f64(format!("0.{}1e501", "0".repeat(500)).as_bytes()), Some(1.0));
    assert_eq!(
        parse_f64(format!("{}e-5900", "1".repeat(6000)).as_bytes()),
        Some(1.111111111111111e99)
    );
}

#[test]
fn texts_that_are_no_floats() {
    for text in [
        "",
        " ",
        "-",
        "+",
        ".",
        "e5",
        ".e1",
        "+.e1",
        "-e",
        "  1",
        " 1",
        "1 ",
        "\t1",
        "\u{b}1",
        "1e",
        "1e+",
        "1e1.5",
        "1.0e5x",
        "+-1",
        "++1",
        "1_0",
        "1,5",
        "1d",
        "1f",
        "1p3",
        "1\0",
        "\x001",
        "0x",
        "0x1p",
        "0x.",
        "nan",
        "-nan",
        "+nan",
        "nan(1)",
        "in",
        "infx",
        "infinit",
        "1e400",
        "1e309",
        "1.8e308",
        "1.7976931348623159e308",
        "1e-400",
        "2e-324",
        "2.4703282292062327e-324",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0x1p1024",
        "0x1p-1075",
        "0x1.fffffffffffff8p1023",
        "１",
    ] {
        assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_f64(b"\xff"), None);
    assert_eq!(parse_f64(b"1\xff"), None);
}

/// Short ones are read another way than long ones; both give what the standard library does.
#[test]
fn decimals_are_rounded_as_the_standard_library_does() {
    let mut random = Random::from_seed(13);
    for _ in 0..50_000 {
        let len = 1 + random.index(18);
        let mut text: Vec<u8> = (0..len).map(|_| b'0' + random.below(10) as u8).collect();
        if random.chance(0.8) {
            text[random.index(len)] = b'.';
        }
        let expected: Option<f64> = std::str::from_utf8(&text).unwrap().parse().ok();
        let found = parse_f64(&text).map(f64::to_bits);
        assert_eq!(found, expected.map(f64::to_bits), "{}", text.escape_ascii());
    }
}

#[test]
fn no_text_panics() {
    let mut random = Random::from_seed(12);
    let alphabet = b"0123456789.eE+-xXpPinfa \0\xff";
    for _ in 0..50_000 {
        let len = random.index(24);
        let text: Vec<u8> = (0..len).map(|_| alphabet[random.index(alphabet.len())]).collect();
        if let Some(value) = parse_f64(&text) {
            assert!(!value.is_nan());
        }
        let _ = (parse_i64(&text), parse_u64_loose(&text), parse_memory_bytes(&text));
    }
}

/// Proved on CONFIG SET maxmemory.
#[test]
fn memory_amounts() {
    for (text, expected) in [
        ("", Some(0)),
        ("kb", Some(0)),
        ("100b", Some(100)),
        ("1k", Some(1000)),
        ("1KB", Some(1024)),
        ("2mb", Some(2 << 20)),
        ("01mb", Some(1 << 20)),
        ("3M", Some(3_000_000)),
        ("1gB", Some(1 << 30)),
        ("1g", Some(1_000_000_000)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("20000000000gb", None),
        ("1 kb", None),
        ("+1", None),
        ("-1", None),
        ("1tb", None),
        ("1.5gb", None),
        ("0x10", None),
    ] {
        assert_eq!(parse_memory_bytes(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn human_amounts() {
    for (bytes, expected) in [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.00K"),
        (1152, "1.12K"), // 1.125 exactly: to even
        (1408, "1.38K"), // 1.375 exactly: to even
        (2621440, "2.50M"),
        ((1 << 20) - 1, "1024.00K"),
        (1 << 30, "1.00G"),
        (3 << 39, "1.50T"),
        (5 << 50, "5.00P"),
        (1 << 60, "1152921504606846976B"),
        (u64::MAX, "18446744073709551615B"),
    ] {
        assert_eq!(human_bytes(bytes), expected);
    }
}
