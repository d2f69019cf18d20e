//! Several strings at once.

use super::expiry::{Besides, ExpiryOptions};
use super::read::reply_text;
use super::write::store;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::num;
use russet_engine::event::Event;
use russet_engine::types::string;

/// Most keys that MSETEX accepts.
const COUNT_MAX: usize = i32::MAX as usize;

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
        ctx.keys.put_arg(key, (pairs, at + 1), None);
        ctx.keys.wrote(key, Event::string("set"));
    }
}

/// When MSETEX writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// NX: if none of the keys exists.
    Absent,
    /// XX: if all of them do.
    Present,
}

pub fn msetex(ctx: &mut Ctx, args: Args) -> Outcome {
    let bad_count = || Refusal::text("ERR invalid numkeys value or out of range");
    let count = num::parse_i64(args.at(1)).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=COUNT_MAX).contains(count)).ok_or_else(bad_count)?;
    let end = 2 + count * 2;
    if args.len() < end {
        return Err(Refusal::Syntax);
    }
    let mut condition = None;
    let mut expiry = ExpiryOptions::new(Besides::Keep);
    let mut at = end;
    while at < args.len() {
        let arg = args.at(at);
        let wanted = match () {
            () if arg.eq_ignore_ascii_case(b"NX") => Some(Condition::Absent),
            () if arg.eq_ignore_ascii_case(b"XX") => Some(Condition::Present),
            () => None,
        };
        at += match wanted {
            None => expiry.take(arg, args.get(at + 1)).ok_or(Refusal::Syntax)?,
            Some(wanted) if condition.is_none_or(|before| before == wanted) => {
                condition = Some(wanted);
                1
            }
            Some(_) => return Err(Refusal::Syntax),
        };
    }
    let deadline = expiry.deadline(ctx.keys.real_now(), ctx.command.spec().full_name)?;
    let keys = (0..count).map(|index| args.at(2 + index * 2));
    let is_met = condition.is_none_or(|condition| {
        let should_exist = condition == Condition::Present;
        keys.clone().all(|key| ctx.keys.exists(key) == should_exist)
    });
    if is_met {
        for (index, key) in keys.enumerate() {
            store(ctx, key, (args, 3 + index * 2), deadline);
        }
    }
    ctx.reply.int(i64::from(is_met));
    DONE
}
