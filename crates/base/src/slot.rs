//! Cluster slots: which part of a key decides, and the slot that it gives. Keys of one hash tag
//! share a slot.

use crate::limits::SLOTS;

/// The part of a key that decides its slot: what stands between the first `{` and the next `}`
/// if that is not empty, else the whole key.
#[inline]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    if is_surely_untagged(key) { key } else { tag_within(key) }
}

/// Whether a key of usual length holds no `{`. Words of eight bytes, the last of which may overlap
/// the one before, are looked through in a few instructions; only to choose how to search costs a
/// general search more.
#[inline]
fn is_surely_untagged(key: &[u8]) -> bool {
    if let (Some(first), Some(last)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        if key.len() > 32 {
            return false;
        }
        let mut braces = braces(u64::from_ne_bytes(*first)) | braces(u64::from_ne_bytes(*last));
        if key.len() > 16 {
            let middle = |at: usize| {
                let word = key[at..].first_chunk().copied();
                word.map_or(0, u64::from_ne_bytes)
            };
            braces |= self::braces(middle(8)) | self::braces(middle(key.len() - 16));
        }
        braces == 0
    } else if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let [first, last] = [*first, *last].map(u32::from_ne_bytes).map(u64::from);
        braces(first | last << 32) == 0
    } else {
        // In three bytes a tag that is not empty has its brace in front.
        key.first() != Some(&b'{')
    }
}

/// Not zero if, and only if, one of the eight bytes is `{`: those become zero, and only a zero (or
/// a byte above one) borrows into its own high bit when one is taken from each.
#[inline]
fn braces(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let word = word ^ u64::from_ne_bytes([b'{'; 8]);
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[inline(never)]
fn tag_within(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let rest = &key[open + 1..];
    match memchr::memchr(b'}', rest) {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// The cluster slot of a key.
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

/// `CRC_STEPS[k][b]`: what a byte `b` followed by `k` zero bytes adds to the sum. With two such
/// tables two bytes are folded in at once, and neither lookup waits for the other.
static CRC_STEPS: [[u16; 256]; 2] = crc_steps();

const fn crc_steps() -> [[u16; 256]; 2] {
    const POLYNOMIAL: u16 = 0x1021;
    let mut steps = [[0u16; 256]; 2];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 16 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
            if bit % 8 == 0 {
                steps[bit / 8 - 1][byte] = crc;
            }
        }
        byte += 1;
    }
    steps
}

/// CRC-16/XMODEM: polynomial 0x1021, start 0, nothing reflected.
#[inline]
fn crc16(bytes: &[u8]) -> u16 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let mut crc = 0u16;
    for pair in pairs {
        let [high, low] = (crc ^ u16::from_be_bytes(*pair)).to_be_bytes();
        crc = CRC_STEPS[1][usize::from(high)] ^ CRC_STEPS[0][usize::from(low)];
    }
    for byte in last {
        crc = (crc << 8) ^ CRC_STEPS[0][usize::from((crc >> 8) as u8 ^ byte)];
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The definition, one bit at a time.
    fn crc16_by_bits(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
                if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 }
            })
        })
    }

    #[test]
    fn crc_of_the_check_string_and_of_random_bytes() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
        let mut random = Random::from_seed(16);
        for len in 0..300 {
            let mut bytes = vec![0u8; len];
            random.fill(&mut bytes);
            assert_eq!(crc16(&bytes), crc16_by_bits(&bytes), "{bytes:?}");
        }
    }

    #[test]
    fn tags() {
        for (key, tag) in [
            ("plain", "plain"),
            ("", ""),
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("}foo{bar}", "bar"),
            ("}{", "}{"),
            ("{", "{"),
            ("{}", "{}"),
            ("{a}", "a"),
            ("a{}", "a{}"),
        ] {
            assert_eq!(hash_tag(key.as_bytes()), tag.as_bytes(), "{key}");
        }
    }

    /// Tags of every length at every place in keys of every length.
    #[test]
    fn a_tag_is_found_wherever_it_stands() {
        for len in 0..70 {
            let plain = vec![b'k'; len];
            assert_eq!(hash_tag(&plain), plain);
            for (open, close) in (0..len).flat_map(|open| (open + 1..len).map(move |at| (open, at)))
            {
                let mut key = plain.clone();
                (key[open], key[close]) = (b'{', b'}');
                let tag = if close == open + 1 { &key[..] } else { &key[open + 1..close] };
                assert_eq!(hash_tag(&key), tag);
            }
        }
    }

    #[test]
    fn slots_as_cluster_keyslot_gives_them() {
        for (key, expected) in [
            ("", 0),
            ("foo", 12182),
            ("bar", 5061),
            ("hello", 866),
            ("somekey", 11058),
            ("foo{hash_tag}", 2515),
            ("bar{hash_tag}", 2515),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }
}
