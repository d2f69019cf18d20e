//! FCALL and FCALL_RO.

use crate::ctx::{Ctx, Outcome};
use crate::error::Refusal;
use crate::scripting::eval::{MAY_WRITE, Words, refused};
use crate::scripting::function::Library;
use crate::scripting::run::{Code, Request, run};
use russet_base::{Args, num};
use std::sync::Arc;

pub fn fcall(ctx: &mut Ctx, args: Args) -> Outcome {
    call(ctx, args, false)
}

pub fn fcall_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    call(ctx, args, true)
}

type Found<'a> = (Arc<Library>, usize, Words<'a>);

fn find<'a>(ctx: &Ctx, args: Args<'a>, is_read_only: bool) -> Result<Found<'a>, Refusal> {
    let found = ctx.node.scripts.libraries().function(args.at(1));
    let (library, index) = found.ok_or(Refusal::text("ERR Function not found"))?;
    let count = num::parse_i64(args.at(2));
    let count = count.ok_or(Refusal::text("ERR Bad number of keys provided"))?;
    let words = Words::split(args, count)?;
    if is_read_only && !library.functions[index].flags.no_writes {
        return Err(Refusal::text(MAY_WRITE));
    }
    Ok((library, index, words))
}

fn call(ctx: &mut Ctx, args: Args, is_read_only: bool) -> Outcome {
    let (library, index, words) = match find(ctx, args, is_read_only) {
        Ok(found) => found,
        Err(refusal) => return refused(ctx, args, refusal),
    };
    let function = &library.functions[index];
    let request = Request {
        code: Code::Function(&library, index),
        name: &function.name,
        words,
        is_read_only: is_read_only || function.flags.no_writes,
        is_wide: function.is_wide,
        stats: &function.stats,
    };
    run(ctx, request)
}
