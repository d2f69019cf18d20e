//! Where a key lives: the only place that maps keys to shards. All others ask a [`Placement`], so
//! that a server in cluster mode can map by slot with a change to this file alone: then a slot lies
//! in one shard, which can count its keys, list and move them.
//!
//! Keys of one hash tag share a shard, as they share a cluster slot: `{user:1}:name` and
//! `{user:1}:mail` are locked together.

use crate::keyspace::Location;
use russet_base::glob::Glob;
use russet_base::hash::KeyHasher;
use russet_base::limits::{SHARDS_MAX, SLOTS};

/// The rule for one keyspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    hasher: KeyHasher,
    /// One less than the number of shards, a power of two.
    shard_mask: u64,
}

impl Placement {
    /// `shards` is rounded up to a power of two, at most [`SHARDS_MAX`].
    pub fn new(shards: usize, hasher: KeyHasher) -> Placement {
        let shards = shards.clamp(1, SHARDS_MAX).next_power_of_two();
        Placement { hasher, shard_mask: shards as u64 - 1 }
    }

    pub fn shards(&self) -> usize {
        self.shard_mask as usize + 1
    }

    pub fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    #[inline]
    pub fn locate(&self, key: &[u8]) -> Location {
        let hash = self.hasher.hash(key);
        let tag = hash_tag(key);
        let shard_hash = if tag.len() == key.len() { hash } else { self.hasher.hash(tag) };
        // Bits that neither the directory (the top) nor the fingerprint (the bottom) uses.
        Location { shard: ((shard_hash >> 16) & self.shard_mask) as u16, hash }
    }

    fn shard_of(&self, key: &[u8]) -> usize {
        usize::from(self.locate(key).shard)
    }

    /// The only shard in which keys that match can be: the key's own if the pattern is one, or that
    /// of a hash tag that all of them have.
    pub fn shard_of_pattern(&self, pattern: &[u8]) -> Option<usize> {
        let part = if Glob::new(pattern).is_literal() { pattern } else { fixed_tag(pattern)? };
        Some(self.shard_of(part))
    }

    /// The only shard in which keys that begin so can be: if the hash tag is in what they begin
    /// with.
    pub fn shard_of_prefix(&self, prefix: &[u8]) -> Option<usize> {
        (hash_tag(prefix).len() < prefix.len()).then(|| self.shard_of(prefix))
    }
}

/// The hash tag of every text that matches: nothing special stands before it or inside it.
fn fixed_tag(pattern: &[u8]) -> Option<&[u8]> {
    let is_plain = |part: &[u8]| Glob::new(part).is_literal();
    let open = pattern.iter().position(|&byte| byte == b'{')?;
    let (before, rest) = (&pattern[..open], &pattern[open + 1..]);
    let close = rest.iter().position(|&byte| byte == b'}')?;
    let tag = &rest[..close];
    (!tag.is_empty() && is_plain(before) && is_plain(tag)).then_some(tag)
}

/// The part of a key that decides its slot: what stands between the first `{` and the next `}`
/// if that is not empty, else the whole key.
#[inline]
fn hash_tag(key: &[u8]) -> &[u8] {
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
    use russet_base::random::Random;
    use std::collections::HashSet;

    const RULE: Placement =
        Placement { hasher: KeyHasher::with_seed(5), shard_mask: SHARDS_MAX as u64 - 1 };

    #[test]
    fn keys_of_one_tag_share_a_shard_and_no_other_part_matters() {
        for (one, other) in [("{a}x", "y{a}"), ("a", "{a}"), ("b{a}{c}", "{a}")] {
            assert_eq!(RULE.shard_of(one.as_bytes()), RULE.shard_of(other.as_bytes()));
        }
        let shards = |key: &str| {
            let shard = |at: u32| RULE.shard_of(format!("{key}{at}").as_bytes());
            (0..200).map(shard).collect::<HashSet<_>>().len()
        };
        assert!(shards("k") > 100);
        assert!(shards("{}") > 100, "an empty tag is none");
        assert_eq!(shards("{t}"), 1);
    }

    #[test]
    fn shards_are_a_power_of_two_and_every_key_has_one() {
        for (asked, made) in [(0, 1), (1, 1), (3, 4), (64, 64), (SHARDS_MAX + 1, SHARDS_MAX)] {
            let rule = Placement::new(asked, KeyHasher::with_seed(1));
            assert_eq!(rule.shards(), made);
            assert!((0..100).all(|key: u32| rule.shard_of(&key.to_le_bytes()) < made));
        }
    }

    #[test]
    fn patterns_and_prefixes_with_a_fixed_tag_concern_one_shard() {
        let of = |key: &str| Some(RULE.shard_of(key.as_bytes()));
        for (pattern, shard) in [
            ("k", of("k")),
            ("{t}*", of("t")),
            ("a{t}b*", of("t")),
            ("*{t}", None),
            ("{t*}", None),
            ("{}*", None),
            ("{t*", None),
            ("k*", None),
        ] {
            assert_eq!(RULE.shard_of_pattern(pattern.as_bytes()), shard, "{pattern}");
        }
        for (prefix, shard) in [("{t}", of("t")), ("a{t}b", of("t")), ("{t", None), ("", None)] {
            assert_eq!(RULE.shard_of_prefix(prefix.as_bytes()), shard, "{prefix}");
        }
    }

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
