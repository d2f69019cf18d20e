//! RENAME, RENAMENX, COPY, MOVE: a value comes to another name or another database.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::generic::database;
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::store::raw::table::Removed;

fn same_key() -> Refusal {
    Refusal::text("ERR source and destination objects are the same")
}

pub fn rename(ctx: &mut Ctx, args: Args) -> Outcome {
    let (from, to) = (args.at(1), args.at(2));
    if !ctx.keys.exists(from) {
        return Err(Refusal::NoSuchKey);
    }
    if from != to {
        rename_existing(ctx, from, to);
    }
    ctx.reply.ok();
    DONE
}

pub fn renamenx(ctx: &mut Ctx, args: Args) -> Outcome {
    let (from, to) = (args.at(1), args.at(2));
    if !ctx.keys.exists(from) {
        return Err(Refusal::NoSuchKey);
    }
    let is_free = !ctx.keys.exists(to);
    if is_free {
        rename_existing(ctx, from, to);
    }
    ctx.reply.int(i64::from(is_free));
    DONE
}

fn rename_existing(ctx: &mut Ctx, from: &[u8], to: &[u8]) {
    if let Some(value) = ctx.keys.take(from) {
        ctx.keys.put_back(to, value);
        ctx.keys.wrote(from, Event::generic("rename_from"));
        ctx.keys.wrote_too(to, Event::generic("rename_to"));
    }
}

/// The arguments behind COPY's keys.
struct CopyOptions {
    db: usize,
    is_replacing: bool,
}

impl CopyOptions {
    fn parse(ctx: &Ctx, args: Args) -> Result<Self, Refusal> {
        let mut options = CopyOptions { db: ctx.keys.db, is_replacing: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg.eq_ignore_ascii_case(b"replace") {
                options.is_replacing = true;
            } else if arg.eq_ignore_ascii_case(b"db") {
                let index = args.next().ok_or(Refusal::Syntax)?;
                options.db = database(ctx.keys.keyspace(), index)?;
            } else {
                return Err(Refusal::Syntax);
            }
        }
        Ok(options)
    }
}

pub fn copy(ctx: &mut Ctx, args: Args) -> Outcome {
    let (from, to) = (args.at(1), args.at(2));
    let options = CopyOptions::parse(ctx, args.from(3))?;
    if from == to && options.db == ctx.keys.db {
        return Err(same_key());
    }
    // Nothing is cloned before it is sure that there is a place for it.
    let is_there = ctx.keys.read(from).is_some();
    let is_free =
        is_there && (options.is_replacing || !ctx.keys.in_db(options.db, |keys| keys.exists(to)));
    if !is_free {
        ctx.reply.int(0);
        return DONE;
    }
    let copied = ctx.keys.peek(from).map(|entry| Removed::copy_of(&entry));
    if let Some(value) = copied {
        ctx.keys.in_db(options.db, |keys| {
            keys.put_back(to, value);
            keys.wrote(to, Event::generic("copy_to"));
        });
    }
    ctx.reply.int(1);
    DONE
}

pub fn move_(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let db = database(ctx.keys.keyspace(), args.at(2))?;
    if db == ctx.keys.db {
        return Err(same_key());
    }
    let is_free = ctx.keys.exists(key) && !ctx.keys.in_db(db, |keys| keys.exists(key));
    if is_free && let Some(value) = ctx.keys.take(key) {
        ctx.keys.in_db(db, |keys| keys.put_back(key, value));
        ctx.keys.wrote(key, Event::generic("move_from"));
        ctx.keys.in_db(db, |keys| keys.wrote_too(key, Event::generic("move_to")));
    }
    ctx.reply.int(i64::from(is_free));
    DONE
}
