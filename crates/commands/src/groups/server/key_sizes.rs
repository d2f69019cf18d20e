//! INFO keysizes: how large keys are, by database and type.
//!
//! Nothing is counted while nobody asks. Who asks has the whole keyspace walked, in steps of some
//! tens of microseconds, each of which holds one shard.

use super::memory::entry_bytes;
use crate::call::ctx::Ctx;
use crate::groups::generic::Walk;
use russet_base::Args;
use russet_engine::keys::Keys;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::raw::table::{Cursor, EntryRef};
use russet_engine::types::{hash, list, set, string, zset};
use russet_engine::value::{Object, Type, type_of};
use std::fmt::Write;

/// Steps of a scan for which a shard is held.
const STEPS_MAX: usize = 64;
/// One for nothing, and one for each power of two.
const BINS: usize = 65;
/// The types that are counted, and the names they go by.
const TYPES: [(Type, &str); 5] = [
    (Type::String, "strings"),
    (Type::List, "lists"),
    (Type::Set, "sets"),
    (Type::Zset, "zsets"),
    (Type::Hash, "hashes"),
];

/// Whether INFO is asked for this section.
pub(crate) fn is_asked(args: Args) -> bool {
    args.from(1).iter().any(|arg| arg.eq_ignore_ascii_case(b"keysizes"))
}

/// How many keys are of which size: bin 0 is for nothing, bin `n` for what has `n` binary digits.
#[derive(Clone, Copy, Debug)]
struct Histogram([u64; BINS]);

impl Histogram {
    const EMPTY: Histogram = Histogram([0; BINS]);

    fn add(&mut self, size: usize) {
        let bin = usize::BITS - size.leading_zeros();
        self.0[bin as usize] += 1;
    }

    /// `1=2,16K=1`: the least size of each bin, and its keys. None if there are none.
    fn text(&self) -> Option<String> {
        let mut text = String::new();
        for (bin, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}{}={count}", label(bin));
        }
        Some(text).filter(|text| !text.is_empty())
    }
}

/// The least size of a bin, in the largest unit that it is a multiple of.
fn label(bin: usize) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    match bin.checked_sub(1) {
        None => "0".to_owned(),
        Some(power) => format!("{}{}", 1u64 << (power % 10), UNITS[power / 10]),
    }
}

/// What was counted in one database.
#[derive(Clone, Copy, Debug)]
struct OfType {
    /// Bytes of strings, elements of the others.
    lengths: Histogram,
    memory_bytes: Histogram,
}

#[derive(Debug)]
struct OfDatabase {
    db: usize,
    types: [OfType; TYPES.len()],
}

impl OfDatabase {
    fn new(db: usize) -> Self {
        let none = OfType { lengths: Histogram::EMPTY, memory_bytes: Histogram::EMPTY };
        OfDatabase { db, types: [none; TYPES.len()] }
    }

    fn add(&mut self, entry: &EntryRef<'_, Object>) {
        let kind = type_of(entry);
        let Some(at) = TYPES.iter().position(|(counted, _)| *counted == kind) else { return };
        self.types[at].lengths.add(length(entry, kind));
        self.types[at].memory_bytes.add(entry_bytes(entry));
    }
}

fn length(entry: &EntryRef<'_, Object>, kind: Type) -> usize {
    let length = match kind {
        Type::String => string::text(entry).map(|text| text.len()),
        Type::List => list::stored::list(entry).map(|list| list.len()),
        Type::Set => set::stored::set(entry).map(|set| set.len()),
        Type::Zset => zset::stored::zset(entry).map(|zset| zset.len()),
        Type::Hash => hash::stored::hash(entry).map(|hash| hash.len()),
        Type::Stream | Type::Bloom => Ok(0),
    };
    length.unwrap_or(0)
}

/// A count under way, or at its end.
#[derive(Debug)]
pub(crate) struct SizesWalk {
    databases: Vec<OfDatabase>,
    /// The shard that comes next, and where in it: which of the databases, and which keys.
    pub(crate) shard: usize,
    at: usize,
    cursor: Cursor,
}

impl SizesWalk {
    fn new(keyspace: &Keyspace) -> Self {
        let counts = keyspace.key_counts();
        let used = (0..keyspace.databases()).filter(|db| counts.total(*db) > 0);
        let databases = used.map(OfDatabase::new).collect();
        SizesWalk { databases, shard: 0, at: 0, cursor: Cursor::START }
    }

    /// Counts the next keys of the shard, which is held.
    fn step(&mut self, keys: &mut Keys) {
        for _ in 0..STEPS_MAX {
            let Some(database) = self.databases.get_mut(self.at) else {
                (self.shard, self.at) = (self.shard + 1, 0);
                return;
            };
            let (shard, cursor) = (self.shard, self.cursor);
            self.cursor = keys.in_db(database.db, |keys| {
                keys.scan(shard, cursor, &mut |entry| database.add(&entry))
            });
            if self.cursor.is_end() {
                self.at += 1;
            }
        }
    }
}

/// Counts the keys of all databases; None if a shard is busy, and the call is to be given again.
pub(super) fn count(ctx: &mut Ctx) -> Option<SizesWalk> {
    let Ctx { keys, session, .. } = ctx;
    let mut walk = match session.walk.take().map(|walk| *walk) {
        Some(Walk::Sizes(walk)) => walk,
        _ => SizesWalk::new(keys.keyspace()),
    };
    while walk.shard < keys.keyspace().shards() {
        if !keys.held().contains(walk.shard) && !keys.move_on(walk.shard) {
            session.walk = Some(Box::new(Walk::Sizes(walk)));
            return None;
        }
        walk.step(keys);
        keys.release();
    }
    Some(walk)
}

impl SizesWalk {
    /// Names and values of the section's lines.
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let mut push = |name: String, histogram: &Histogram| {
            lines.extend(histogram.text().map(|text| (name, text)));
        };
        for OfDatabase { db, types } in &self.databases {
            for ((kind, name), of_type) in TYPES.iter().zip(types) {
                let unit = if *kind == Type::String { "sizes" } else { "items" };
                push(format!("db{db}_distrib_{name}_{unit}"), &of_type.lengths);
            }
            // What strings take up has no name of its own.
            for ((_, name), of_type) in TYPES.iter().zip(types).skip(1) {
                push(format!("db{db}_distrib_{name}_sizes"), &of_type.memory_bytes);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    #[test]
    fn bins_are_named_by_their_least_size() {
        let labels: Vec<String> = [0, 1, 2, 10, 11, 20, 21, 31, 64].map(label).into();
        assert_eq!(labels, ["0", "1", "2", "512", "1K", "512K", "1M", "1G", "8E"]);
        let mut histogram = Histogram::EMPTY;
        assert_eq!(histogram.text(), None);
        for size in [0, 1, 3, 2, 4, 1023, 1024, usize::MAX] {
            histogram.add(size);
        }
        let text = histogram.text();
        assert_eq!(text.as_deref(), Some("0=1,1=1,2=2,4=1,512=1,1K=1,8E=1"));
    }

    fn lines(server: &mut TestServer) -> Vec<String> {
        let reply = server.run(&["INFO", "keysizes"]);
        let text = String::from_utf8_lossy(reply.as_bytes().expect("INFO is text")).into_owned();
        let lines = text.lines().filter(|line| line.contains("_items:") || line.contains("string"));
        lines.map(str::to_owned).collect()
    }

    /// More keys than one step counts, and shards that are left and come back to.
    #[test]
    fn every_key_is_counted_once() {
        let mut server = TestServer::new();
        assert!(lines(&mut server).is_empty());
        (0..20_000).for_each(|at| drop(server.say(&format!("SET k{at} 12345"))));
        for line in [
            "SET empty x",
            "SETRANGE empty 4095 x",
            "RPUSH l a b c",
            "SADD s a b 3",
            "SADD ints 1 2 3 4",
            "ZADD z 1 a",
            "HSET h f v g v",
            "XADD stream * f v",
            "SELECT 3",
            "SET k 1",
            "PEXPIRE k 1",
        ] {
            server.say(line);
        }
        let before = [
            "db0_distrib_strings_sizes:4=20000,4K=1",
            "db0_distrib_lists_items:2=1",
            "db0_distrib_sets_items:2=1,4=1",
            "db0_distrib_zsets_items:1=1",
            "db0_distrib_hashes_items:2=1",
        ];
        let with_last: Vec<&str> =
            before.iter().copied().chain(["db3_distrib_strings_sizes:1=1"]).collect();
        assert_eq!(lines(&mut server), with_last);
        server.clock.advance_ms(2);
        assert_eq!(lines(&mut server), before, "what has expired is not shown");
        let all = server.say("INFO keysizes");
        for name in ["lists", "sets", "zsets", "hashes"] {
            assert!(all.contains(&format!("db0_distrib_{name}_sizes:")), "{all}");
        }
    }

    /// A transaction keeps the shards that it has: it can't walk.
    #[test]
    fn a_transaction_is_shown_no_sizes() {
        let mut server = TestServer::new();
        for line in ["SET k v", "MULTI", "GET k", "INFO keysizes"] {
            server.say(line);
        }
        let shown = server.say("EXEC");
        assert!(shown.contains("# Keysizes") && !shown.contains("distrib"), "{shown}");
    }
}
