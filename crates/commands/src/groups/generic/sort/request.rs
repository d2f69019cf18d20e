//! What a call of SORT asks for.

use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::keyspace::Keyspace;
use russet_engine::store::shard_set::ShardSet;
use smallvec::SmallVec;
use std::ops::Range;

/// A pattern of BY or GET: what to look at for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// Without a `*` it names no key.
    Nothing,
    /// The key that the element makes in the place of the `*`, or a field of the hash there.
    Key { before: &'a [u8], after: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    pub fn parse(arg: &'a [u8]) -> Self {
        if arg == b"#" {
            return Pattern::Element;
        }
        let Some(star) = arg.iter().position(|&byte| byte == b'*') else {
            return Pattern::Nothing;
        };
        let (before, after) = (&arg[..star], &arg[star + 1..]);
        // COMPAT: an arrow with nothing behind it is part of the name
        // (tests/wire/generic/sort.wire).
        match after.windows(2).position(|pair| pair == b"->") {
            Some(at) if at + 2 < after.len() => {
                Pattern::Key { before, after: &after[..at], field: Some(&after[at + 2..]) }
            }
            _ => Pattern::Key { before, after, field: None },
        }
    }

    /// The shards in which the keys that it names can be. A hash tag before the element is that of
    /// all of them.
    fn shards(self, keyspace: &Keyspace) -> ShardSet {
        match self {
            Pattern::Element | Pattern::Nothing => ShardSet::EMPTY,
            Pattern::Key { before, .. } => match keyspace.shard_of_prefix(before) {
                Some(shard) => ShardSet::one(shard),
                None => keyspace.all_shards(),
            },
        }
    }
}

/// How the elements are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they are stored.
    Stored,
    Numeric,
    Alpha,
}

/// LIMIT as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    start: i64,
    count: i64,
}

#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub key: &'a [u8],
    pub order: Order,
    pub is_descending: bool,
    /// What to order by instead of the element itself.
    pub by: Option<Pattern<'a>>,
    pub gets: SmallVec<[Pattern<'a>; 4]>,
    pub store: Option<&'a [u8]>,
    limit: Limit,
}

impl<'a> Request<'a> {
    pub fn parse(args: Args<'a>, may_store: bool) -> Result<Self, Refusal> {
        let mut request = Request {
            key: args.at(1),
            order: Order::Numeric,
            is_descending: false,
            by: None,
            gets: SmallVec::new(),
            store: None,
            limit: Limit { start: 0, count: -1 },
        };
        let (mut is_alpha, mut is_stored_order) = (false, false);
        let mut at = 2;
        while let Some(arg) = args.get(at) {
            let is = |name: &[u8]| eq_ignore_case(arg, name);
            let (first, second) = (args.get(at + 1), args.get(at + 2));
            at += 1;
            match (first, second) {
                _ if is(b"asc") => request.is_descending = false,
                _ if is(b"desc") => request.is_descending = true,
                _ if is(b"alpha") => is_alpha = true,
                (Some(start), Some(count)) if is(b"limit") => {
                    request.limit = Limit { start: integer(start)?, count: integer(count)? };
                    at += 2;
                }
                (Some(key), _) if may_store && is(b"store") => {
                    request.store = Some(key);
                    at += 1;
                }
                (Some(pattern), _) if is(b"by") => {
                    let pattern = Pattern::parse(pattern);
                    // COMPAT: once asked for, the stored order stays, whatever BY says later
                    // (tests/wire/generic/sort.wire).
                    is_stored_order |= !matches!(pattern, Pattern::Key { .. });
                    request.by = Some(pattern);
                    at += 1;
                }
                (Some(pattern), _) if is(b"get") => {
                    request.gets.push(Pattern::parse(pattern));
                    at += 1;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        request.order = match (is_stored_order, is_alpha) {
            (true, _) => Order::Stored,
            (false, true) => Order::Alpha,
            (false, false) => Order::Numeric,
        };
        Ok(request)
    }

    /// Orders by the text of the elements themselves.
    pub fn by_text(&mut self) {
        (self.order, self.by) = (Order::Alpha, None);
    }

    /// Which of `len` elements in order are wanted.
    pub fn range(&self, len: usize) -> Range<usize> {
        let within = |value: i64| usize::try_from(value).unwrap_or(usize::MAX).min(len);
        let start = within(self.limit.start.max(0));
        let end = match self.limit.count {
            ..0 => len,
            count => start.saturating_add(within(count)).min(len),
        };
        start..end
    }

    /// Every shard that the call may touch.
    pub fn shards(&self, keyspace: &Keyspace) -> ShardSet {
        let mut shards = ShardSet::EMPTY;
        for key in std::iter::once(self.key).chain(self.store) {
            shards.insert(usize::from(keyspace.locate(key).shard));
        }
        let by = self.by.filter(|_| self.order != Order::Stored);
        let patterns = self.gets.iter().copied().chain(by);
        patterns.fold(shards, |shards, pattern| shards.union(&pattern.shards(keyspace)))
    }
}

fn integer(arg: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(arg).ok_or(Refusal::NotInteger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::OwnedArgs;
    use russet_base::hash::KeyHasher;

    #[test]
    fn patterns() {
        let key = |before: &'static str, after: &'static str, field: Option<&'static str>| {
            let field = field.map(str::as_bytes);
            Pattern::Key { before: before.as_bytes(), after: after.as_bytes(), field }
        };
        for (arg, expected) in [
            ("#", Pattern::Element),
            ("##", Pattern::Nothing),
            ("key", Pattern::Nothing),
            ("a->b", Pattern::Nothing),
            ("*", key("", "", None)),
            ("w_*", key("w_", "", None)),
            ("w_*_*", key("w_", "_*", None)),
            ("h_*->f", key("h_", "", Some("f"))),
            ("h_*_x->f->g", key("h_", "_x", Some("f->g"))),
            ("h_*->", key("h_", "->", None)),
            ("a->*b", key("a->", "b", None)),
        ] {
            assert_eq!(Pattern::parse(arg.as_bytes()), expected, "{arg}");
        }
    }

    #[test]
    fn limits() {
        let range = |start: &str, count: &str| {
            let args: OwnedArgs = ["SORT", "k", "LIMIT", start, count].into_iter().collect();
            Request::parse(args.as_args(), true).unwrap().range(10)
        };
        assert_eq!(range("0", "3"), 0..3);
        assert_eq!(range("8", "5"), 8..10);
        assert_eq!(range("10", "5"), 10..10);
        assert_eq!(range("-4", "2"), 0..2);
        assert_eq!(range("3", "-1"), 3..10);
        assert_eq!(range("3", "0"), 3..3);
        let (max, min) = (i64::MAX.to_string(), i64::MIN.to_string());
        assert_eq!(range(&max, &max), 10..10);
        assert_eq!(range(&min, &min), 0..10);
    }

    #[test]
    fn only_patterns_without_a_tag_need_every_shard() {
        let keyspace = Keyspace::new(64, 1, KeyHasher::with_seed(7));
        let shards = |call: &str| {
            let args: OwnedArgs = call.split(' ').collect();
            Request::parse(args.as_args(), true).unwrap().shards(&keyspace)
        };
        let of = |key: &str| ShardSet::one(usize::from(keyspace.locate(key.as_bytes()).shard));
        assert_eq!(shards("SORT k DESC"), of("k"));
        assert_eq!(shards("SORT k STORE d"), of("k").union(&of("d")));
        assert_eq!(shards("SORT k BY nosort GET # GET x"), of("k"));
        assert_eq!(shards("SORT k BY {k}w_*"), of("k"));
        assert_eq!(shards("SORT k GET {t}*->f"), of("k").union(&of("t")));
        assert_eq!(shards("SORT k BY w_*"), keyspace.all_shards());
        assert_eq!(shards("SORT k GET *{k}"), keyspace.all_shards());
        assert_eq!(shards("SORT k GET {*}"), keyspace.all_shards());
    }
}
