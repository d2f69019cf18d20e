//! KEYS, RANDOMKEY: by themselves they hold one shard at a time, in transactions and scripts all.

use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::groups::scanning::Found;
use crate::groups::server::key_sizes::SizesWalk;
use russet_base::Args;
use russet_base::glob::Glob;
use russet_catalog::Command;
use russet_engine::keys::Keys;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::raw::table::Cursor;
use russet_engine::store::shard_set::ShardSet;

#[cfg(test)]
mod tests;

/// A call under way that was stopped by a busy shard or found too little.
#[derive(Debug)]
pub(crate) enum Walk {
    /// KEYS has been through the shards before this one.
    Keys { next: usize, found: Found },
    /// INFO counts how large keys are.
    Sizes(SizesWalk),
    /// RANDOMKEY met a shard whose keys have all expired: now it looks at all shards.
    RandomOfAll,
}

/// The shards that KEYS must see for a pattern if it is to see all at one time.
pub(super) fn shards(keyspace: &Keyspace, pattern: &[u8]) -> ShardSet {
    keyspace.shard_of_pattern(pattern).map_or_else(|| keyspace.all_shards(), ShardSet::one)
}

/// The shards that a call by itself begins with, or goes on with.
pub(super) fn next_shards(
    keyspace: &Keyspace,
    (walk, db): (Option<&Walk>, usize),
    (command, args): (Command, Args),
) -> ShardSet {
    match (command, walk) {
        (Command::Keys, Some(Walk::Keys { next, .. })) => ShardSet::one(*next),
        (Command::Keys, _) => {
            ShardSet::one(keyspace.shard_of_pattern(args.at(1)).unwrap_or_default())
        }
        (Command::Info, Some(Walk::Sizes(walk))) => ShardSet::one(walk.shard),
        (Command::Info, _) => ShardSet::one(0),
        (Command::Randomkey, None) => {
            let counts = keyspace.key_counts();
            let draw = u128::from(keyspace.draw_u64()) * u128::from(counts.total(db));
            counts.shard_of_nth(db, (draw >> 64) as u64).map_or(ShardSet::EMPTY, ShardSet::one)
        }
        _ => keyspace.all_shards(),
    }
}

pub fn keys(ctx: &mut Ctx, args: Args) -> Outcome {
    let pattern = args.at(1);
    let glob = Glob::new(pattern);
    let shards = shards(ctx.keys.keyspace(), pattern);
    let (first, mut found) = match ctx.session.walk.take().map(|walk| *walk) {
        Some(Walk::Keys { next, found }) => (next, found),
        _ => (0, Found::default()),
    };
    if glob.is_literal() {
        if ctx.keys.exists(pattern) {
            found.add(pattern);
        }
        found.write(ctx.reply);
        return DONE;
    }
    for shard in shards.iter().filter(|shard| *shard >= first) {
        if !ctx.keys.held().contains(shard) && !ctx.keys.move_on(shard) {
            ctx.session.walk = Some(Box::new(Walk::Keys { next: shard, found }));
            return Ok(Flow::Again);
        }
        find_in(ctx.keys, shard, glob, &mut found);
    }
    found.write(ctx.reply);
    DONE
}

/// The keys of one shard that match. The shard is held throughout, so each is found once.
fn find_in(keys: &mut Keys, shard: usize, glob: Glob, found: &mut Found) {
    let is_star = glob.is_star();
    let mut cursor = Cursor::START;
    loop {
        cursor = keys.scan(shard, cursor, &mut |entry| {
            let key = entry.key();
            if is_star || glob.matches(key) {
                found.add(key);
            }
        });
        if cursor.is_end() {
            return;
        }
    }
}

pub fn randomkey(ctx: &mut Ctx, _args: Args) -> Outcome {
    let Ctx { keys, reply, session, .. } = ctx;
    let has_all = session.walk.take().is_some() || keys.holds_all() || keys.held().is_empty();
    if keys.with_random_key(|key| reply.bulk(key)).is_some() {
        return DONE;
    }
    if !has_all {
        session.walk = Some(Box::new(Walk::RandomOfAll));
        return Ok(Flow::Again);
    }
    reply.null();
    DONE
}
