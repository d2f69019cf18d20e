//! DBSIZE, FLUSHDB, FLUSHALL, SWAPDB: whole databases.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::Origin;
use crate::error::Refusal;
use crate::groups::generic::database_in_range;
use russet_base::{Args, num};

/// By itself it holds no shard, but with `appendfsync always`: the counts are kept. A transaction
/// or script that holds all of them may have changed what is not published yet.
pub fn dbsize(ctx: &mut Ctx, _args: Args) -> Outcome {
    let count = match ctx.keys.holds_all() {
        true => ctx.keys.count_all() as u64,
        false => ctx.keys.keyspace().key_counts().total(ctx.keys.db),
    };
    ctx.reply.int(count as i64);
    DONE
}

/// Recorded even if there was no key: what ONCE remembers goes, too.
pub fn flushdb(ctx: &mut Ctx, args: Args) -> Outcome {
    check_mode(args)?;
    let db = ctx.keys.db;
    ctx.keys.flush(db..db + 1);
    ctx.record_as_is(args);
    ctx.reply.ok();
    DONE
}

pub fn flushall(ctx: &mut Ctx, args: Args) -> Outcome {
    check_mode(args)?;
    let databases = ctx.keys.keyspace().databases();
    // What it would save is gone: what is left is saved soon.
    ctx.node.cancel_running_save();
    ctx.keys.flush(0..databases);
    if ctx.origin != Origin::Load {
        ctx.node.save_soon();
    }
    ctx.record_as_is(args);
    ctx.reply.ok();
    DONE
}

/// SYNC and ASYNC differ in nothing that a client can see: the keys are gone at once, and their
/// memory is freed by another thread.
fn check_mode(args: Args) -> Result<(), Refusal> {
    let is_mode =
        |arg: &[u8]| arg.eq_ignore_ascii_case(b"sync") || arg.eq_ignore_ascii_case(b"async");
    match args.len() {
        1 => Ok(()),
        2 if is_mode(args.at(1)) => Ok(()),
        _ => Err(Refusal::Syntax),
    }
}

pub fn swapdb(ctx: &mut Ctx, args: Args) -> Outcome {
    let index = |arg: &[u8]| num::parse_i64(arg).filter(|&index| i32::try_from(index).is_ok());
    let one = index(args.at(1)).ok_or(Refusal::text("ERR invalid first DB index"))?;
    let other = index(args.at(2)).ok_or(Refusal::text("ERR invalid second DB index"))?;
    let keyspace = ctx.keys.keyspace();
    let pair = (database_in_range(keyspace, one)?, database_in_range(keyspace, other)?);
    ctx.keys.swap(pair);
    ctx.reply.ok();
    DONE
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    /// Databases without keys are left alone; which these are is counted at the end of a call, and
    /// a transaction may have added some since.
    #[test]
    fn keys_that_are_not_counted_yet_are_flushed_and_swapped() {
        let mut server = TestServer::new();
        for line in ["MULTI", "SET k v", "FLUSHDB", "EXEC"] {
            server.say(line);
        }
        assert_eq!((server.say("GET k"), server.say("DBSIZE")), ("nil".into(), "0".into()));
        for line in ["MULTI", "SELECT 9", "SET k v", "SWAPDB 8 9", "EXEC"] {
            server.say(line);
        }
        assert_eq!((server.say("GET k"), server.say("DBSIZE")), ("nil".into(), "0".into()));
        server.say("SELECT 8");
        assert_eq!((server.say("GET k"), server.say("DBSIZE")), ("\"v\"".into(), "1".into()));
        server.say("SWAPDB 8 7");
        server.say("SWAPDB 7 3");
        server.say("SELECT 3");
        assert_eq!((server.say("GET k"), server.say("DBSIZE")), ("\"v\"".into(), "1".into()));
        server.say("FLUSHALL");
        assert_eq!((server.say("GET k"), server.say("DBSIZE")), ("nil".into(), "0".into()));
        server.say("SET k v");
        assert_eq!(server.say("DBSIZE"), "1");
    }
}
