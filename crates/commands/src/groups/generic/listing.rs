//! KEYS, RANDOMKEY.

use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_base::glob::Glob;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::raw::table::Cursor;
use russet_engine::store::shard_set::ShardSet;

/// The shards that KEYS must see for a pattern.
pub(super) fn shards(keyspace: &Keyspace, pattern: &[u8]) -> ShardSet {
    keyspace.shard_of_pattern(pattern).map_or_else(|| keyspace.all_shards(), ShardSet::one)
}

pub fn keys(ctx: &mut Ctx, args: Args) -> Outcome {
    let pattern = args.at(1);
    let glob = Glob::new(pattern);
    let mark = ctx.reply.begin_array();
    let mut count = 0;
    if glob.is_literal() {
        if ctx.keys.exists(pattern) {
            ctx.reply.bulk(pattern);
            count = 1;
        }
        ctx.reply.end_array(mark, count);
        return DONE;
    }
    let is_star = glob.is_star();
    for shard in shards(ctx.keys.keyspace(), pattern).iter() {
        let mut cursor = Cursor::START;
        loop {
            cursor = ctx.keys.scan(shard, cursor, &mut |entry| {
                let key = entry.key();
                if is_star || glob.matches(key) {
                    ctx.reply.bulk(key);
                    count += 1;
                }
            });
            if cursor.is_end() {
                break;
            }
        }
    }
    ctx.reply.end_array(mark, count);
    DONE
}

pub fn randomkey(ctx: &mut Ctx, _args: Args) -> Outcome {
    let Ctx { keys, reply, .. } = ctx;
    if keys.with_random_key(|key| reply.bulk(key)).is_none() {
        reply.null();
    }
    DONE
}
