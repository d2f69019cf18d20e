//! Where a key lives: the only place that maps keys to shards. All others ask a [`Placement`], so
//! that a server in cluster mode can map by slot with a change to this file alone: then a slot lies
//! in one shard, which can count its keys, list and move them.
//!
//! Keys of one hash tag share a shard, as they share a cluster slot: `{user:1}:name` and
//! `{user:1}:mail` are locked together.

use crate::keyspace::Location;
use russet_base::glob::Glob;
use russet_base::hash::KeyHasher;
use russet_base::limits::SHARDS_MAX;
use russet_base::slot::hash_tag;

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
        let shard_hash = if tag.len() == key.len() { hash } else { self.hash_of_tag(tag) };
        // Bits that neither the directory (the top) nor the fingerprint (the bottom) uses.
        Location { shard: ((shard_hash >> 16) & self.shard_mask) as u16, hash }
    }

    /// Apart, for most keys have no tag.
    #[inline(never)]
    fn hash_of_tag(&self, tag: &[u8]) -> u64 {
        self.hasher.hash(tag)
    }

    /// As [`Placement::locate`], for the keys of one call, one after the other: they often have one
    /// hash tag, and the same before it.
    #[inline]
    pub fn locate_next<'a>(&self, key: &'a [u8], last: &mut Option<LastTag<'a>>) -> Location {
        if let Some(last) = last
            && key.starts_with(last.head)
        {
            return Location { shard: last.shard, hash: self.hasher.hash(key) };
        }
        let location = self.locate(key);
        *last = tagged_head(key).map(|head| LastTag { head, shard: location.shard });
        location
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

/// Where a key with a hash tag was found: all that begin like it are there, too.
#[derive(Clone, Copy, Debug)]
pub struct LastTag<'a> {
    /// Up to and with the brace that closes the tag.
    head: &'a [u8],
    shard: u16,
}

/// What decides where a key with a hash tag is.
fn tagged_head(key: &[u8]) -> Option<&[u8]> {
    if hash_tag(key).len() == key.len() {
        return None;
    }
    let open = key.iter().position(|&byte| byte == b'{')?;
    let close = key[open..].iter().position(|&byte| byte == b'}')?;
    Some(&key[..=open + close])
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const RULE: Placement =
        Placement { hasher: KeyHasher::with_seed(5), shard_mask: SHARDS_MAX as u64 - 1 };

    #[test]
    fn a_key_is_found_where_it_is_whatever_was_before_it() {
        let keys = ["a{b}c", "a{b}d", "a{b", "a{}b{c}", "{a}", "{a}{b}", "{ab}", "a", "", "a{b}"];
        for first in keys {
            for second in keys {
                let mut last = None;
                for key in [first, second, first] {
                    let found = RULE.locate_next(key.as_bytes(), &mut last);
                    assert_eq!(found, RULE.locate(key.as_bytes()), "{first} {second}");
                }
            }
        }
    }

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
}
