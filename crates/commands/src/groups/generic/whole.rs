//! DBSIZE, FLUSHDB, FLUSHALL, SWAPDB: whole databases.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::generic::database_in_range;
use russet_base::{Args, num};

pub fn dbsize(ctx: &mut Ctx, _args: Args) -> Outcome {
    let count = ctx.keys.count_all();
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
    ctx.keys.flush(0..databases);
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
