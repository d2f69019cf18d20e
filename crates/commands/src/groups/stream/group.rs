//! XGROUP: groups and their consumers.

use super::{access, any_id, bad_subcommand, integer, no_such_group, record, strict_id};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;
use russet_engine::types::stream::{Group, StreamId, stored};

/// MKSTREAM and ENTRIESREAD.
#[derive(Default)]
struct GroupOptions {
    creates: bool,
    entries_read: Option<i64>,
}

impl GroupOptions {
    fn parse(args: Args, may_create: bool) -> Result<Self, Refusal> {
        let mut options = GroupOptions::default();
        let mut at = 5;
        while at < args.len() {
            let arg = args.at(at);
            if may_create && eq_ignore_case(arg, b"mkstream") {
                options.creates = true;
                at += 1;
            } else if eq_ignore_case(arg, b"entriesread") && at + 1 < args.len() {
                let read = integer(args.at(at + 1))?;
                if read < -1 {
                    return Err(Refusal::text("ERR value for ENTRIESREAD must be positive or -1"));
                }
                options.entries_read = (read >= 0).then_some(read);
                at += 2;
            } else {
                return Err(bad_subcommand("XGROUP", args.at(1)));
            }
        }
        Ok(options)
    }
}

fn key_required() -> Refusal {
    Refusal::text(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want \
         to use the MKSTREAM option to create an empty stream automatically.",
    )
}

/// Refuses unless the key and its group are there.
fn require_group(keys: &mut Keys, key: &[u8], group: &[u8]) -> Result<(), Refusal> {
    let stream = access::peek(keys, key)?.ok_or_else(key_required)?;
    stream.group(group).map(drop).ok_or_else(|| no_such_group(key, group))
}

pub fn create(ctx: &mut Ctx, args: Args) -> Outcome {
    // COMPAT: MKSTREAM, ENTRIESREAD and its number; tests/wire/stream/xgroup.wire.
    const ARGS_MAX: usize = 8;
    let options = GroupOptions::parse(args, true)?;
    let (key, name) = (args.at(2), args.at(3));
    let found = access::peek(ctx.keys, key)?.map(|stream| stream.last_id());
    if found.is_none() && !options.creates {
        return Err(key_required());
    }
    if args.len() > ARGS_MAX {
        return Err(bad_subcommand("XGROUP", args.at(1)));
    }
    let last_id = match args.at(4) {
        b"$" => found.unwrap_or(StreamId::MIN),
        arg => strict_id(arg, 0)?,
    };
    if found.is_none() {
        ctx.keys.put(key, stored::value(Default::default()), None);
        ctx.keys.wrote(key, Event::stream("xgroup-create"));
    }
    let group = Group::new(last_id, options.entries_read);
    let is_new = access::edit(ctx.keys, key)?.is_some_and(|stream| stream.add_group(name, group));
    if !is_new {
        return Err(Refusal::text("BUSYGROUP Consumer Group name already exists"));
    }
    if found.is_some() {
        ctx.keys.wrote_beside(key, 1, Some(Event::stream("xgroup-create")));
    }
    let (id, read) = (last_id.text(), IntText::new(options.entries_read.unwrap_or(-1)));
    let call: [&[u8]; 6] = [b"XGROUP", b"CREATE", key, name, id.as_bytes(), b"MKSTREAM"];
    ctx.keys.record(call.into_iter().chain([&b"ENTRIESREAD"[..], read.as_bytes()]));
    ctx.reply.ok();
    DONE
}

pub fn setid(ctx: &mut Ctx, args: Args) -> Outcome {
    let options = GroupOptions::parse(args, false)?;
    let (key, name) = (args.at(2), args.at(3));
    require_group(ctx.keys, key, name)?;
    if args.len() != 5 && args.len() != 7 {
        return Err(bad_subcommand("XGROUP", args.at(1)));
    }
    let given = match args.at(4) {
        b"$" => None,
        arg => Some(any_id(arg, 0)?),
    };
    if let Some((mut group, log)) = access::open_known_group(ctx.keys, key, name)? {
        group.last_id = given.unwrap_or(log.last_id);
        group.entries_read = options.entries_read;
    }
    ctx.keys.wrote_beside(key, 1, Some(Event::stream("xgroup-setid")));
    record::position(ctx.keys, key, name);
    ctx.reply.ok();
    DONE
}

pub fn destroy(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name) = (args.at(2), args.at(3));
    let stream = access::peek(ctx.keys, key)?.ok_or_else(key_required)?;
    let is_there = stream.group(name).is_some();
    if is_there {
        access::edit(ctx.keys, key)?.map(|stream| stream.remove_group(name));
        ctx.keys.wrote_beside(key, 1, Some(Event::stream("xgroup-destroy")));
        // Those who wait for entries of this group wait in vain.
        ctx.keys.recheck_waiters(key);
    }
    ctx.reply.int(i64::from(is_there));
    DONE
}

pub fn createconsumer(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name, consumer) = (args.at(2), args.at(3), args.at(4));
    require_group(ctx.keys, key, name)?;
    let now_ms = ctx.keys.real_now().0;
    let mut is_new = false;
    if let Some((mut group, _)) = access::open_known_group(ctx.keys, key, name)?
        && group.find_consumer(consumer).is_none()
    {
        group.add_consumer(consumer, now_ms);
        is_new = true;
    }
    if is_new {
        ctx.keys.wrote_beside(key, 1, Some(CONSUMER_CREATED));
    }
    ctx.reply.int(i64::from(is_new));
    DONE
}

pub const CONSUMER_CREATED: Event = Event::stream("xgroup-createconsumer");

pub fn delconsumer(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name, consumer) = (args.at(2), args.at(3), args.at(4));
    require_group(ctx.keys, key, name)?;
    let removed = access::open_known_group(ctx.keys, key, name)?
        .and_then(|(mut group, _)| group.remove_consumer(consumer));
    if removed.is_some() {
        ctx.keys.wrote_beside(key, 1, Some(Event::stream("xgroup-delconsumer")));
    }
    ctx.reply.int(removed.unwrap_or(0) as i64);
    DONE
}
