//! An element of a collection and its stored form, which all packed encodings share: a head and a
//! payload. Lists put the length once more behind it (see `list/entry.rs`) to be walked backwards.
//!
//! The form is that of an entry of Redis's listpack without its last part:
//!
//! | head | meaning |
//! |---|---|
//! | `0vvvvvvv` | the integer v, 0..=127 |
//! | `10nnnnnn` | n bytes of payload, n < 64 |
//! | `110vvvvv` + 1 byte | 13-bit signed integer, high bits first |
//! | `1110nnnn` + 1 byte | n bytes of payload, n < 4096, high bits first |
//! | `0xf0` + 4 bytes | n bytes of payload, n little-endian |
//! | `0xf1`..`0xf4` + 2, 3, 4, 8 bytes | little-endian signed integer |

use russet_base::num;

/// An element as it is stored: text that is the canonical form of an `i64` is held as the number.
/// Make one from text with [`Element::parse`] only, or equal elements may compare unequal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element<'a> {
    Bytes(&'a [u8]),
    Int(i64),
}

impl<'a> Element<'a> {
    #[inline]
    pub fn parse(text: &'a [u8]) -> Self {
        // Most texts are no numbers by their first byte.
        match text {
            [b'0'..=b'9' | b'-', ..] => Self::parse_number(text),
            _ => Element::Bytes(text),
        }
    }

    #[inline(never)]
    fn parse_number(text: &'a [u8]) -> Self {
        match num::parse_i64(text) {
            Some(value) => Element::Int(value),
            None => Element::Bytes(text),
        }
    }

    /// Calls `f` with the element's text.
    #[inline]
    pub fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Element::Bytes(bytes) => f(bytes),
            Element::Int(value) => f(IntText::new(value).as_bytes()),
        }
    }

    pub fn to_vec(self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }
}

/// An integer's decimal text without an allocation.
pub struct IntText {
    digits: [u8; num::I64_TEXT_BYTES_MAX],
    start: usize,
}

impl IntText {
    #[inline]
    pub fn new(value: i64) -> Self {
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        let start = digits.len() - num::i64_bytes(value, &mut digits).len();
        IntText { digits, start }
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

const STRING_32: u8 = 0xf0;
const INT_16: u8 = 0xf1;
const INT_24: u8 = 0xf2;
const INT_32: u8 = 0xf3;
const INT_64: u8 = 0xf4;

/// Most bytes of a head.
pub const HEAD_BYTES_MAX: usize = 9;

/// An element's stored form, in two pieces so that the payload is not copied to build it.
pub struct Stored<'a> {
    head: [u8; HEAD_BYTES_MAX],
    head_len: u8,
    payload: &'a [u8],
}

impl<'a> Stored<'a> {
    #[inline]
    pub fn new(element: Element<'a>) -> Self {
        let mut stored = Stored { head: [0; HEAD_BYTES_MAX], head_len: 1, payload: &[] };
        match element {
            Element::Bytes(bytes) => stored.set_string(bytes),
            Element::Int(value) => stored.set_int(value),
        }
        stored
    }

    #[inline]
    fn set_string(&mut self, bytes: &'a [u8]) {
        self.payload = bytes;
        let len = bytes.len();
        if len < 64 {
            self.head[0] = 0x80 | len as u8;
        } else if len < 4096 {
            self.head[..2].copy_from_slice(&(0xe000 | len as u16).to_be_bytes());
            self.head_len = 2;
        } else {
            let len = u32::try_from(len).expect("arguments are spans of 32-bit length");
            self.head[0] = STRING_32;
            self.head[1..5].copy_from_slice(&len.to_le_bytes());
            self.head_len = 5;
        }
    }

    fn set_int(&mut self, value: i64) {
        let little = value.to_le_bytes();
        let mut put = |tag: u8, bytes: usize| {
            self.head[0] = tag;
            self.head[1..1 + bytes].copy_from_slice(&little[..bytes]);
            self.head_len = 1 + bytes as u8;
        };
        match value {
            0..=127 => put(value as u8, 0),
            -4096..=4095 => {
                let bits = 0xc000 | (value as u16 & 0x1fff);
                self.head[..2].copy_from_slice(&bits.to_be_bytes());
                self.head_len = 2;
            }
            -0x8000..=0x7fff => put(INT_16, 2),
            -0x80_0000..=0x7f_ffff => put(INT_24, 3),
            -0x8000_0000..=0x7fff_ffff => put(INT_32, 4),
            _ => put(INT_64, 8),
        }
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        usize::from(self.head_len) + self.payload.len()
    }

    #[inline]
    pub fn pieces(&self) -> [&[u8]; 2] {
        [&self.head[..usize::from(self.head_len)], self.payload]
    }

    /// Whether `run` starts with this form.
    #[inline]
    pub fn starts(&self, run: &[u8]) -> bool {
        run.first() == Some(&self.head[0]) && has_both(self.pieces(), run)
    }

    /// To look for this form among many others.
    #[inline]
    pub fn needle(&self) -> Needle<'_> {
        let head_len = usize::from(self.head_len);
        // Behind the head there are zeros.
        let [head @ .., _] = self.head;
        Needle::of_words(self.pieces(), (u64::from_le_bytes(head), head_len))
    }

    /// Writes the form over all of `out`, which must be `bytes()` long.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        if self.head_len == 1 {
            out[0] = self.head[0];
            out[1..].copy_from_slice(self.payload);
            return;
        }
        let (head, payload) = out.split_at_mut(usize::from(self.head_len));
        head.copy_from_slice(&self.head[..head.len()]);
        payload.copy_from_slice(self.payload);
    }
}

/// The most bytes that the form of a text can take: as an integer it takes no more.
pub fn text_bytes_max(len: usize) -> usize {
    len + match len {
        ..64 => 1,
        64..4096 => 2,
        _ => 5,
    }
}

/// Bytes, in two pieces, that are looked for at many places. Most of what lies there differs in its
/// first bytes, so these are compared as one word.
pub struct Needle<'a> {
    pieces: [&'a [u8]; 2],
    /// The first bytes, and which bits of a word they fill.
    word: u64,
    mask: u64,
}

impl<'a> Needle<'a> {
    #[inline]
    pub fn new(pieces: [&'a [u8]; 2]) -> Self {
        Self::of_words(pieces, (leading_word(pieces[0]), pieces[0].len()))
    }

    /// With the first bytes of the front piece as a word, and how long that piece is.
    #[inline]
    fn of_words(pieces: [&'a [u8]; 2], (front, front_len): (u64, usize)) -> Self {
        let back = pieces[1];
        let filled = (front_len + back.len()).min(size_of::<u64>());
        let shift = 8 * front_len.min(size_of::<u64>()) as u32;
        let word = front | leading_word(back).checked_shl(shift).unwrap_or(0);
        let mask = u64::MAX.checked_shr(64 - 8 * filled as u32).unwrap_or(0);
        Needle { pieces, word, mask }
    }

    /// Whether `run` starts with these bytes.
    #[inline(always)]
    pub fn starts(&self, run: &[u8]) -> bool {
        match run.first_chunk() {
            Some(first) if !self.may_start(u64::from_le_bytes(*first)) => false,
            Some(_) if self.mask != u64::MAX => true,
            Some(_) => has_both(self.pieces, run),
            None => self.starts_short(run),
        }
    }

    /// Whether a run that begins with these eight bytes may start with them. It does if they are
    /// fewer.
    #[inline(always)]
    pub fn may_start(&self, word: u64) -> bool {
        (word ^ self.word) & self.mask == 0
    }

    /// The same of a run of less than eight bytes.
    #[inline]
    fn starts_short(&self, run: &[u8]) -> bool {
        let [front, back] = self.pieces;
        front.len() + back.len() <= run.len() && self.may_start(leading_word(run))
    }
}

/// The first bytes as a number, the first of them lowest; zeros stand for those that are missing.
/// There is no loop: overlapping pieces agree where they overlap, so OR joins them.
#[inline]
fn leading_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let last = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
        return u64::from(u32::from_le_bytes(*first)) | last;
    }
    match *bytes {
        [] => 0,
        [a] => u64::from(a),
        [a, b, ref rest @ ..] => {
            let third = rest.first().map_or(0, |byte| u64::from(*byte));
            u64::from(a) | u64::from(b) << 8 | third << 16
        }
    }
}

/// Whether `run` starts with two pieces.
#[inline]
fn has_both([head, payload]: [&[u8]; 2], run: &[u8]) -> bool {
    run.len() >= head.len() + payload.len()
        && run[0] == head[0]
        && (head.len() == 1 || run[..head.len()] == *head)
        && is_same(payload, &run[head.len()..][..payload.len()])
}

/// Whether two payloads of one length are the same. Most of what is compared is short and differs,
/// mostly at its end: to call a function for that costs more than these words.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    if let (Some(end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        return end == other_end && (one.len() == 8 || one == other);
    }
    if let (Some(end), Some(other_end)) = (one.last_chunk::<4>(), other.last_chunk::<4>()) {
        return end == other_end && one.first_chunk::<4>() == other.first_chunk();
    }
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// The lengths of head and payload of the form that starts `run`.
#[inline(never)]
fn lengths(run: &[u8]) -> (usize, usize) {
    let tag = run[0];
    match tag {
        0..0x80 => (1, 0),
        0x80..0xc0 => (1, usize::from(tag & 0x3f)),
        0xc0..0xe0 => (2, 0),
        0xe0..0xf0 => (2, usize::from(u16::from_be_bytes([tag & 0x0f, run[1]]))),
        STRING_32 => (5, u32::from_le_bytes([run[1], run[2], run[3], run[4]]) as usize),
        INT_16 => (3, 0),
        INT_24 => (4, 0),
        INT_32 => (5, 0),
        _ => (9, 0),
    }
}

/// Bytes of integers with a tag of their own, by the last three bits of it.
const TAGGED_INT_BYTES: u64 = u64::from_le_bytes([9, 3, 4, 5, 9, 9, 9, 9]);

/// Bytes of the form that starts `run`. The usual ones are told apart without a table.
#[inline(always)]
pub fn stored_bytes(run: &[u8]) -> usize {
    match run[0] {
        0..0x80 => 1,
        tag @ 0x80..0xc0 => 1 + usize::from(tag & 0x3f),
        0xc0..0xe0 => 2,
        tag @ INT_16.. => usize::from((TAGGED_INT_BYTES >> (8 * (tag & 7))) as u8),
        _ => {
            let (head, payload) = lengths(run);
            head + payload
        }
    }
}

/// The element that starts `run`, which is known to be sound, and the bytes of its form.
#[inline]
pub fn decode(run: &[u8]) -> (Element<'_>, usize) {
    let tag = run[0];
    // Short strings are most of what collections hold.
    if tag & 0xc0 == 0x80 {
        let end = 1 + usize::from(tag & 0x3f);
        return (Element::Bytes(&run[1..end]), end);
    }
    let (head, payload) = lengths(run);
    let element = match tag {
        0..0x80 => Element::Int(i64::from(tag)),
        0xc0..0xe0 => {
            let bits = u16::from_be_bytes([tag, run[1]]) << 3;
            Element::Int(i64::from(bits as i16 >> 3))
        }
        0xe0..=STRING_32 => Element::Bytes(&run[head..head + payload]),
        _ => Element::Int(little_endian(&run[1..head])),
    };
    (element, head + payload)
}

/// As [`decode`], for bytes that come from outside: `None` if no whole form starts them.
pub fn decode_checked(run: &[u8]) -> Option<(Element<'_>, usize)> {
    let head = match *run.first()? {
        0..0xc0 => 1,
        0xc0..0xf0 => 2,
        INT_16 => 3,
        INT_24 => 4,
        STRING_32 | INT_32 => 5,
        INT_64 => 9,
        _ => return None,
    };
    (run.len() >= head && run.len() >= stored_bytes(run)).then(|| decode(run))
}

/// A little-endian signed integer of up to eight bytes.
fn little_endian(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (64 - 8 * bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_checked_to_their_last_byte() {
        for text in ["7", "-7", "1234567", "9223372036854775807", "", "text"] {
            let mut out = vec![0; Stored::new(Element::parse(text.as_bytes())).bytes()];
            Stored::new(Element::parse(text.as_bytes())).write(&mut out);
            assert_eq!(decode_checked(&out), Some(decode(&out)), "{text}");
            assert_eq!(decode_checked(&out[..out.len() - 1]), None, "{text}");
        }
        assert_eq!(decode_checked(&[0xf5, 0, 0, 0]), None);
    }

    #[test]
    fn no_form_is_longer_than_its_text_allows() {
        let digits = (1..=19).flat_map(|len| [b'1', b'9'].map(|digit| vec![digit; len]));
        let negative = (1..=18).map(|len| [&b"-"[..], &vec![b'8'; len]].concat());
        let texts = [0, 1, 63, 64, 4095, 4096, 70_000].map(|len| vec![b'x'; len]);
        for text in digits.chain(negative).chain(texts) {
            let bytes = Stored::new(Element::parse(&text)).bytes();
            assert!(bytes <= text_bytes_max(text.len()), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_needle_is_what_starts_with_it() {
        let text = b"abcdefghijkl";
        for head in 1..10 {
            for payload in 0..10 {
                let pieces = [&text[..head], &text[..payload]];
                let whole = pieces.concat();
                let needle = Needle::new(pieces);
                assert!(needle.starts(&whole), "{head} {payload}");
                let followed = [&whole[..], b"0123456789"].concat();
                assert!(needle.starts(&followed), "{head} {payload}");
                for at in 0..whole.len() {
                    let mut other = followed.clone();
                    other[at] ^= 1;
                    assert!(!needle.starts(&other), "{head} {payload} {at}");
                }
            }
        }
    }

    #[test]
    fn only_canonical_text_is_a_number() {
        for text in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"] {
            assert_eq!(num::parse_i64(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in
            ["", "-", "-0", "00", "+1", "01", " 1", "1 ", "9223372036854775808", "1e3", "0x1"]
        {
            assert_eq!(num::parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(num::parse_i64(b"-9223372036854775809"), None);
        assert_eq!(num::parse_i64(b"99999999999999999999"), None);
    }
}
