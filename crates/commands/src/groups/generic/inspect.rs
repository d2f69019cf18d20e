//! EXISTS, TOUCH, TYPE.

use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::value::type_of;

pub fn exists(ctx: &mut Ctx, args: Args) -> Outcome {
    let found = args.from(1).iter().filter(|key| ctx.keys.inspect(key).is_some()).count();
    ctx.reply.int(found as i64);
    DONE
}

/// COMPAT: TOUCH leaves its trace even for a client that asked for none (CLIENT NO-TOUCH).
pub fn touch(ctx: &mut Ctx, args: Args) -> Outcome {
    let was_silent = std::mem::replace(&mut ctx.keys.is_silent, false);
    let found = args.from(1).iter().filter(|key| ctx.keys.read(key).is_some()).count();
    ctx.keys.is_silent = was_silent;
    ctx.reply.int(found as i64);
    DONE
}

pub fn type_(ctx: &mut Ctx, args: Args) -> Outcome {
    let found = ctx.keys.inspect(args.at(1)).map(|entry| type_of(&entry).name());
    ctx.reply.status(found.unwrap_or("none"));
    DONE
}
