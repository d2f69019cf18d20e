//! Several strings at once.

use super::read::reply_text;
use crate::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::string;

pub fn mget(ctx: &mut Ctx, args: Args) -> Outcome {
    ctx.reply.array(args.len() - 1);
    for key in args.from(1).iter() {
        match ctx.keys.read(key).map(|entry| string::text(&entry)) {
            Some(Ok(text)) => reply_text(ctx.reply, text),
            Some(Err(_)) | None => ctx.reply.null(),
        }
    }
    DONE
}

pub fn mset(ctx: &mut Ctx, args: Args) -> Outcome {
    let pairs = pairs(ctx, args)?;
    write_all(ctx, pairs);
    ctx.reply.ok();
    DONE
}

pub fn msetnx(ctx: &mut Ctx, args: Args) -> Outcome {
    let pairs = pairs(ctx, args)?;
    let is_free = !pairs.iter().step_by(2).any(|key| ctx.keys.exists(key));
    if is_free {
        write_all(ctx, pairs);
    }
    ctx.reply.int(i64::from(is_free));
    DONE
}

/// Keys and values in turn.
fn pairs<'a>(ctx: &Ctx, args: Args<'a>) -> Result<Args<'a>, Refusal> {
    let pairs = args.from(1);
    if pairs.len() % 2 == 1 {
        return Err(Refusal::Arity(ctx.command.spec().full_name));
    }
    Ok(pairs)
}

fn write_all(ctx: &mut Ctx, pairs: Args) {
    for at in (0..pairs.len()).step_by(2) {
        let key = pairs.at(at);
        ctx.keys.put_string(key, pairs.at(at + 1), None);
        ctx.keys.wrote(key, Event::string("set"));
    }
}
