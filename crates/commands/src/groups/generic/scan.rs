//! SCAN: a walk over all keys in steps, each of which holds one shard at a time.
//!
//! A cursor is a shard in its low bits and, above them, how far the walk has come in that shard's
//! table. Shards are walked in ascending order; a table's own cursor keeps its promise whatever
//! happens to the table, and a key never changes its shard, so a key that is there from the first
//! call to the last is returned.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::scanning::{Found, INVALID_CURSOR, ScanOptions, Scanned};
use russet_base::glob::Glob;
use russet_base::limits::SHARDS_MAX;
use russet_base::{Args, num};
use russet_engine::keyspace::Keyspace;
use russet_engine::store::raw::table::{Cursor, EntryRef};
use russet_engine::store::shard_set::ShardSet;
use russet_engine::value::{Object, type_of};

/// Fruitless steps, for each key that was asked for, before a call gives up.
const STEPS_PER_KEY_MAX: u64 = 10;
const SHARD_BITS: u32 = SHARDS_MAX.ilog2();

// A client may keep a cursor in a double.
const _: () = assert!(SHARD_BITS + Cursor::BITS <= 53);

/// How far a walk over all shards has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Position {
    shard: usize,
    cursor: Cursor,
}

impl Position {
    fn parse(arg: &[u8]) -> Option<Self> {
        let number = num::parse_u64_loose(arg)?;
        let shard = number as usize % SHARDS_MAX;
        Some(Position { shard, cursor: Cursor::from_bits(number >> SHARD_BITS) })
    }

    fn number(self) -> u64 {
        self.cursor.bits() << SHARD_BITS | self.shard as u64
    }
}

/// Which shards a walk visits, and from where on.
struct Route {
    /// None: the walk is over before it begins.
    at: Option<Position>,
    /// The first shard behind the walk.
    end: usize,
}

impl Route {
    fn new(keyspace: &Keyspace, from: Position, pattern: Option<&[u8]>) -> Self {
        let only = pattern.and_then(|pattern| keyspace.shard_of_pattern(pattern));
        let (first, end) = only.map_or((0, keyspace.shards()), |shard| (shard, shard + 1));
        let at = match from.shard {
            shard if shard < first => Some(Position { shard: first, cursor: Cursor::START }),
            shard if shard < end => Some(from),
            _ => None,
        };
        Route { at, end }
    }

    /// Where the walk goes on when the table's own walk came to `cursor`.
    fn advance(&mut self, cursor: Cursor) {
        let Some(at) = &mut self.at else { return };
        at.cursor = cursor;
        if cursor.is_end() {
            at.shard += 1;
            if at.shard == self.end {
                self.at = None;
            }
        }
    }
}

/// What SCAN was asked.
struct Query<'a> {
    from: Position,
    options: ScanOptions<'a>,
}

impl<'a> Query<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let from = Position::parse(args.at(1)).ok_or(Refusal::text(INVALID_CURSOR))?;
        let options = ScanOptions::parse(args.from(2), Scanned::Keys)?;
        Ok(Query { from, options })
    }

    #[inline]
    fn wants(&self, entry: &EntryRef<'_, Object>, glob: Option<Glob>) -> bool {
        self.options.type_name.is_none_or(|name| type_of(entry).name() == name)
            && glob.is_none_or(|glob| glob.matches(entry.key()))
    }
}

/// The shard in which a call begins; none if its arguments are wrong, which the handler will say.
pub(super) fn first_shard(keyspace: &Keyspace, args: Args) -> ShardSet {
    let Ok(query) = Query::parse(args) else { return ShardSet::EMPTY };
    let route = Route::new(keyspace, query.from, query.options.pattern);
    route.at.map_or(ShardSet::EMPTY, |at| ShardSet::one(at.shard))
}

pub fn scan(ctx: &mut Ctx, args: Args) -> Outcome {
    let query = Query::parse(args)?;
    let mut route = Route::new(ctx.keys.keyspace(), query.from, query.options.pattern);
    let mut found = Found::with_room_for(query.options.count);
    match query.options.pattern.filter(|pattern| Glob::new(pattern).is_literal()) {
        Some(key) if route.at.is_some() => {
            // One key at most: no need to walk.
            route.at = None;
            if ctx.keys.peek(key).is_some_and(|entry| query.wants(&entry, None)) {
                found.add(key);
            }
        }
        _ => walk(ctx, &query, &mut route, &mut found),
    }
    ctx.reply.array(2);
    ctx.reply.bulk_int(route.at.map_or(0, Position::number) as i64);
    found.write(ctx.reply);
    DONE
}

fn walk(ctx: &mut Ctx, query: &Query, route: &mut Route, found: &mut Found) {
    let glob = query.options.pattern.map(Glob::new).filter(|glob| !glob.is_star());
    let wants_all = glob.is_none() && query.options.type_name.is_none();
    // Empty shards do not count, so that a small database is walked in one call.
    let shards = ctx.keys.keyspace().shards() as u64;
    let mut steps_left =
        query.options.count.saturating_mul(STEPS_PER_KEY_MAX).saturating_add(shards);
    let mut seen = 0;
    while let Some(Position { shard, mut cursor }) = route.at {
        // In a transaction the locks are those of all its commands, and stay as they are.
        let is_held = ctx.keys.held().contains(shard);
        let is_found = is_held || (ctx.may_block && ctx.keys.move_on(shard));
        if !is_found {
            return;
        }
        loop {
            cursor = ctx.keys.scan(shard, cursor, &mut |entry| {
                seen += 1;
                if wants_all || query.wants(&entry, glob) {
                    found.add(entry.key());
                }
            });
            steps_left -= 1;
            if cursor.is_end() || seen >= query.options.count || steps_left == 0 {
                break;
            }
        }
        route.advance(cursor);
        if seen >= query.options.count || steps_left == 0 {
            return;
        }
    }
}
