//! Strings and counters.

use crate::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::string;

pub fn get(ctx: &mut Ctx, args: Args) -> Outcome {
    match ctx.keys.read(args.at(1)) {
        None => ctx.reply.null(),
        Some(entry) => string::text(&entry)?.with_bytes(|bytes| ctx.reply.bulk(bytes)),
    }
    DONE
}

pub fn set(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    ctx.keys.put_string(key, args.at(2), None);
    ctx.keys.wrote(key, Event::string("set"));
    ctx.reply.ok();
    DONE
}
