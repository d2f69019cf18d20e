//! Bits against code that looks at them one by one.

use super::*;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let fill = [0, 0xff, 1][self.roll(3)];
        (0..len).map(|_| if self.roll(4) == 0 { self.roll(256) as u8 } else { fill }).collect()
    }
}

fn naive_bits(bytes: &[u8]) -> Vec<bool> {
    (0..bytes.len() * 8).map(|at| bytes[at / 8] >> (7 - at % 8) & 1 == 1).collect()
}

fn naive_range(len_bits: usize, span: BitSpan) -> std::ops::Range<usize> {
    let unit = if span.unit == Unit::Bit { 1 } else { 8 };
    let total = (len_bits / unit) as i64;
    let resolve = |bound: i64| if bound < 0 { (bound + total).max(0) } else { bound };
    let start = resolve(span.start);
    let end = resolve(span.end.unwrap_or(-1)).min(total - 1);
    if total == 0 || start > end { 0..0 } else { start as usize * unit..(end as usize + 1) * unit }
}

#[test]
fn ranges_agree_with_bit_by_bit() {
    let mut dice = Dice(99);
    for round in 0..20_000 {
        let len = [0, 1, 2, 9, 40, 700][dice.roll(6)];
        let bytes = dice.bytes(len);
        let bits = naive_bits(&bytes);
        let unit = if dice.roll(2) == 0 { Unit::Bit } else { Unit::Byte };
        let bound = if unit == Unit::Bit { len * 8 } else { len };
        let start = dice.roll(2 * bound + 5) as i64 - bound as i64 - 2;
        let end = dice.roll(2 * bound + 5) as i64 - bound as i64 - 2;
        let span = BitSpan { start, end: Some(end), unit };
        let range = naive_range(bits.len(), span);
        let ones = bits[range.clone()].iter().filter(|bit| **bit).count() as u64;
        if !(start < 0 && end < 0 && start > end) {
            assert_eq!(count(&bytes, Some(span)), ones, "{round} {span:?} {len}");
        }
        let wanted = dice.roll(2) == 0;
        let first = |range: std::ops::Range<usize>| {
            range.clone().find(|at| bits[*at] == wanted).map(|at| at as u64)
        };
        assert_eq!(position(&bytes, wanted, Some(span)), first(range), "{round} {span:?} {len}");
        let open = BitSpan { start, end: None, unit: Unit::Byte };
        let range = naive_range(bits.len(), open);
        let past = (!wanted && !range.is_empty()).then_some(len as u64 * 8);
        assert_eq!(position(&bytes, wanted, Some(open)), first(range).or(past), "{open:?} {len}");
    }
}

#[test]
fn ranges_have_redis_corner_cases() {
    let span = |start, end| Some(BitSpan { start, end: Some(end), unit: Unit::Byte });
    assert_eq!(count(b"\xff", span(-10, -20)), 0);
    assert_eq!(position(b"\xff", true, span(-10, -20)), Some(0));
    assert_eq!(count(b"\xff\xff", span(-10, -9)), 8);
    assert_eq!(count(b"\xff", span(i64::MIN, i64::MAX)), 8);
    assert_eq!(count(b"", span(0, -1)), 0);
    assert_eq!(position(b"", false, None), None);
    assert_eq!(position(b"\xff\xff", false, None), Some(16));
    assert_eq!(position(b"\xff\xff", false, span(0, -1)), None);
    assert_eq!(
        position(b"\xff", false, Some(BitSpan { start: 1, end: None, unit: Unit::Byte })),
        None
    );
    assert_eq!(count(b"foobar", None), 26);
}

#[test]
fn single_bits_are_set_and_read() {
    let mut bytes = Vec::new();
    assert!(!set_bit(&mut bytes, 7, true));
    assert!(set_bit(&mut bytes, 7, false));
    assert_eq!(bytes, [0]);
    assert!(!set_bit(&mut bytes, 300_000 * 8 + 1, true));
    assert_eq!(bytes.len(), 300_001);
    assert_eq!(bytes[300_000], 0x40);
    assert!(bit(&bytes, 300_000 * 8 + 1) && !bit(&bytes, 0) && !bit(&bytes, u64::MAX));
    assert_eq!(bytes_for_bit(0), 1);
    assert_eq!(bytes_for_bit(8), 2);
}

#[test]
fn combinations_agree_with_bit_by_bit() {
    use BitOperation::*;
    let mut dice = Dice(5);
    for _ in 0..600 {
        let sources: Vec<Vec<u8>> = (0..1 + dice.roll(5))
            .map(|_| {
                let len = [0, 1, 33, 300, 4095, 4096, 5000][dice.roll(7)];
                dice.bytes(len)
            })
            .collect();
        let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let total = slices.iter().map(|source| source.len()).max().unwrap();
        for operation in [And, Or, Xor, Not, Diff, Diff1, AndOr, One] {
            if !operation.takes(slices.len()) {
                continue;
            }
            let out = combine(operation, &slices);
            assert_eq!(out.len(), total);
            for at in 0..total as u64 * 8 {
                let first = bit(slices[0], at);
                let set = slices.iter().filter(|source| bit(source, at)).count();
                let others = set - usize::from(first);
                let expected = match operation {
                    And => set == slices.len(),
                    Or => set > 0,
                    Xor => set % 2 == 1,
                    Not => !first,
                    Diff => first && others == 0,
                    Diff1 => !first && others > 0,
                    AndOr => first && others > 0,
                    One => set == 1,
                };
                assert_eq!(bit(&out, at), expected, "{operation:?} at {at}");
            }
        }
    }
    assert_eq!(BitOperation::parse(b"andOR"), Some(AndOr));
    assert_eq!(BitOperation::parse(b"nand"), None);
    assert!(!Not.takes(2) && !Diff.takes(1) && One.takes(1));
}

#[test]
fn fields_agree_with_bit_by_bit() {
    let mut dice = Dice(41);
    for _ in 0..20_000 {
        let bits = 1 + dice.roll(64);
        let signed = bits == 64 || dice.roll(2) == 0;
        let name = format!("{}{bits}", if signed { 'i' } else { 'u' });
        let field = Field::parse(name.as_bytes()).unwrap();
        let len = dice.roll(20);
        let mut bytes = dice.bytes(len);
        let offset = dice.roll(170) as u64;
        let naive = |bytes: &[u8]| {
            let read = (0..bits as u64)
                .fold(0u64, |value, at| value << 1 | u64::from(bit(bytes, offset + at)));
            let unused = 64 - bits;
            if signed { (read << unused) as i64 >> unused } else { read as i64 }
        };
        assert_eq!(field.read(&bytes, offset), naive(&bytes), "{name} at {offset}");
        let before = bytes.clone();
        let value = (dice.0 as i64) >> dice.roll(64);
        field.write(&mut bytes, offset, value);
        assert_eq!(bytes.len(), before.len().max(field.bytes_needed(offset)));
        assert_eq!(Some(field.read(&bytes, offset)), field.fitted(value, Overflow::Wrap));
        for at in (0..200).filter(|at| !(offset..offset + bits as u64).contains(at)) {
            assert_eq!(bit(&bytes, at), bit(&before, at), "{name} at {offset} spilled to {at}");
        }
    }
}

#[test]
fn set_and_increment_overflow_as_asked() {
    use Overflow::*;
    let field = |name: &str| Field::parse(name.as_bytes()).unwrap();
    let (u8_, i8_, i64_, u63, i1) =
        (field("u8"), field("i8"), field("i64"), field("u63"), field("i1"));
    assert_eq!(u8_.increased(255, 1, Wrap), Some(0));
    assert_eq!(u8_.increased(0, -1, Wrap), Some(255));
    assert_eq!(u8_.increased(250, 10, Sat), Some(255));
    assert_eq!(u8_.increased(5, -10, Sat), Some(0));
    assert_eq!(u8_.increased(250, 10, Fail), None);
    assert_eq!(i8_.increased(127, 1, Wrap), Some(-128));
    assert_eq!(i8_.increased(-128, -1, Sat), Some(-128));
    assert_eq!(i64_.increased(i64::MAX, 1, Wrap), Some(i64::MIN));
    assert_eq!(i64_.increased(i64::MIN, i64::MIN, Sat), Some(i64::MIN));
    assert_eq!(i64_.increased(i64::MIN, i64::MIN, Wrap), Some(0));
    assert_eq!(u63.increased(i64::MAX, 1, Wrap), Some(0));
    assert_eq!(u63.increased(i64::MAX, i64::MAX, Sat), Some(i64::MAX));
    assert_eq!(u8_.fitted(-1, Sat), Some(255));
    assert_eq!(u8_.fitted(-1, Fail), None);
    assert_eq!(u8_.fitted(257, Wrap), Some(1));
    assert_eq!(i8_.fitted(200, Wrap), Some(-56));
    assert_eq!(i1.fitted(1, Wrap), Some(-1));
    for refused in ["u64", "i65", "i0", "u0", "I8", "8", "", "i", "i08", "i-1", "x8"] {
        assert_eq!(Field::parse(refused.as_bytes()), None, "{refused}");
    }
}

#[test]
fn offsets_are_checked() {
    let max = 512 << 20;
    let u8_ = Field::parse(b"u8");
    assert_eq!(parse_offset(b"100", None, max), Some(100));
    assert_eq!(parse_offset(b"#3", u8_, max), Some(24));
    assert_eq!(parse_offset(b"#3", None, max), None);
    assert_eq!(parse_offset(b"-1", u8_, max), None);
    assert_eq!(parse_offset(b"4294967295", None, max), Some(4_294_967_295));
    assert_eq!(parse_offset(b"4294967296", None, max), None);
    assert_eq!(parse_offset(b"#9223372036854775807", u8_, max), None);
    assert_eq!(parse_offset(b"", u8_, max), None);
}
