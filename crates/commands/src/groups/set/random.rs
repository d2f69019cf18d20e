//! Members at random: SPOP, SRANDMEMBER.

use super::access::{self, Removed};
use super::{new_random, reply_all, reply_member, reply_members, rules};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::limits::SAMPLES_MAX;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::types::element::Element;
use russet_engine::types::set::stored;

const POPPED: Event = Event::set("spop");

pub fn spop(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    match args.get(2) {
        None => pop_one(ctx, key),
        Some(_) if args.len() > 3 => Err(Refusal::Syntax),
        Some(arg) => {
            let count = num::parse_i64(arg).and_then(|count| usize::try_from(count).ok());
            pop_many(ctx, key, count.ok_or(Refusal::NotPositive)?)
        }
    }
}

fn pop_one(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    let (mut random, is_recording) = (new_random(ctx), ctx.keys.is_recording());
    let Some(mut entry) = ctx.keys.write(key) else {
        ctx.reply.null();
        return DONE;
    };
    let reply = &mut *ctx.reply;
    let mut popped = Vec::new();
    let is_last = stored::edit(&mut entry, |set| {
        set.pop(&mut random, &mut |member| {
            if is_recording {
                popped = member.with_bytes(<[u8]>::to_vec);
            }
            reply_member(reply, member);
        });
        set.is_empty()
    })?;
    if is_last {
        ctx.keys.remove(key);
    }
    ctx.keys.record([b"SREM", key, &popped]);
    access::notify_removed(ctx.keys, key, POPPED, Removed { count: 1, is_last });
    DONE
}

fn pop_many(ctx: &mut Ctx, key: &[u8], count: usize) -> Outcome {
    let (rules, mut random) = (rules(ctx), new_random(ctx));
    let is_recording = ctx.keys.is_recording();
    let Some(mut entry) = ctx.keys.write(key) else {
        ctx.reply.set(0);
        return DONE;
    };
    let set = stored::set(&entry.as_ref())?;
    let count = count.min(set.len());
    if count == 0 {
        ctx.reply.set(0);
        return DONE;
    }
    let is_last = count == set.len();
    if is_last {
        reply_all(ctx.reply, set);
        ctx.keys.remove(key);
        ctx.keys.record([b"DEL", key]);
    } else {
        ctx.reply.set(count);
        let (mut done, mut popped) = (Ok(()), Vec::new());
        reply_members(ctx.reply, count, |visit| {
            let mut note = |member: Element<'_>| {
                if is_recording {
                    popped.push(member.with_bytes(<[u8]>::to_vec));
                }
                visit(member);
            };
            done = stored::pop_many(&mut entry, count, (&rules, &mut random), &mut note);
        });
        done?;
        ctx.keys.record_list(&[b"SREM", key], popped);
    }
    access::notify_removed(ctx.keys, key, POPPED, Removed { count, is_last });
    DONE
}

/// An integer whose negation is one, too.
fn symmetric(arg: &[u8]) -> Result<i64, Refusal> {
    match num::parse_i64(arg).ok_or(Refusal::NotInteger)? {
        i64::MIN => Err(Refusal::text(
            "ERR value is out of range, \
             value must between -9223372036854775807 and 9223372036854775807",
        )),
        value => Ok(value),
    }
}

pub fn srandmember(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let Some(arg) = args.get(2) else { return one(ctx, key) };
    if args.len() > 3 {
        return Err(Refusal::Syntax);
    }
    match symmetric(arg)? {
        count @ 0.. => different(ctx, key, count as usize),
        count => repeated(ctx, key, count.unsigned_abs()),
    }
}

fn one(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    let mut random = new_random(ctx);
    let member = access::read(ctx.keys, key)?.and_then(|set| set.random(&mut random));
    match member {
        Some(member) => reply_member(ctx.reply, member),
        None => ctx.reply.null(),
    }
    DONE
}

/// So many different members, or all.
fn different(ctx: &mut Ctx, key: &[u8], count: usize) -> Outcome {
    let mut random = new_random(ctx);
    let Some(set) = access::read(ctx.keys, key)? else {
        ctx.reply.array(0);
        return DONE;
    };
    ctx.reply.array(count.min(set.len()));
    reply_members(ctx.reply, count, |visit| set.sample(count, &mut random, visit));
    DONE
}

/// So many members, each drawn from all.
fn repeated(ctx: &mut Ctx, key: &[u8], count: u64) -> Outcome {
    let mut random = new_random(ctx);
    let Some(set) = access::read(ctx.keys, key)? else {
        ctx.reply.array(0);
        return DONE;
    };
    // DIFFERS: Redis goes on until the client's output buffer is full.
    if count > SAMPLES_MAX {
        return Err(Refusal::text("ERR value is out of range"));
    }
    ctx.reply.array(count as usize);
    reply_members(ctx.reply, count as usize, |visit| {
        for _ in 0..count {
            set.random(&mut random).into_iter().for_each(&mut *visit);
        }
    });
    DONE
}
