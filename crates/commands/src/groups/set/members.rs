//! Members by name: SADD, SREM, SISMEMBER, SMISMEMBER, SCARD, SMEMBERS, SMOVE.

use super::access::{self, Removed};
use super::{reply_all, rules};
use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::element::Element;
use russet_engine::types::set::stored;
use russet_engine::value::WrongType;

const ADDED: Event = Event::set("sadd");
const REMOVED: Event = Event::set("srem");

pub fn sadd(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let rules = rules(ctx);
    let added = access::add_quietly(ctx.keys, key, args.from(2), &rules)?;
    if added > 0 {
        ctx.keys.wrote_many(key, ADDED, added as u64);
    }
    ctx.reply.int(added as i64);
    DONE
}

pub fn srem(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let removed = access::remove_quietly(ctx.keys, key, args.from(2))?;
    let removed = removed.unwrap_or(Removed { count: 0, is_last: false });
    if removed.count > 0 {
        access::notify_removed(ctx.keys, key, REMOVED, removed);
    }
    ctx.reply.int(removed.count as i64);
    DONE
}

pub fn sismember(ctx: &mut Ctx, args: Args) -> Outcome {
    let set = access::read(ctx.keys, args.at(1))?;
    let is_member = set.is_some_and(|set| set.contains(Element::parse(args.at(2))));
    ctx.reply.int(i64::from(is_member));
    DONE
}

pub fn smismember(ctx: &mut Ctx, args: Args) -> Outcome {
    let set = access::read(ctx.keys, args.at(1))?;
    let members = args.from(2);
    ctx.reply.array(members.len());
    for member in members.iter() {
        let is_member = set.is_some_and(|set| set.contains(Element::parse(member)));
        ctx.reply.int(i64::from(is_member));
    }
    DONE
}

pub fn scard(ctx: &mut Ctx, args: Args) -> Outcome {
    let len = access::read(ctx.keys, args.at(1))?.map_or(0, |set| set.len());
    ctx.reply.int(len as i64);
    DONE
}

pub fn smembers(ctx: &mut Ctx, args: Args) -> Outcome {
    match access::read(ctx.keys, args.at(1))? {
        Some(set) => reply_all(ctx.reply, set),
        None => ctx.reply.set(0),
    }
    DONE
}

/// Whether the set under a key has a member; None without a key.
fn has(keys: &mut Keys, key: &[u8], member: Element<'_>) -> Result<Option<bool>, WrongType> {
    let Some(entry) = keys.write(key) else { return Ok(None) };
    Ok(Some(stored::set(&entry.as_ref())?.contains(member)))
}

pub fn smove(ctx: &mut Ctx, args: Args) -> Outcome {
    let (source, destination) = (args.at(1), args.at(2));
    let member = Element::parse(args.at(3));
    // COMPAT: without a source nobody looks at the destination's type; tests/wire/set/smove.wire.
    let Some(is_member) = has(ctx.keys, source, member)? else {
        ctx.reply.int(0);
        return DONE;
    };
    has(ctx.keys, destination, member)?;
    if is_member && source != destination {
        let rules = rules(ctx);
        if let Some(removed) = access::remove_quietly(ctx.keys, source, args.from(3))? {
            access::notify_removed(ctx.keys, source, REMOVED, removed);
        }
        let added = access::add_quietly(ctx.keys, destination, args.from(3), &rules)?;
        if added > 0 {
            ctx.keys.wrote_many(destination, ADDED, added as u64);
        }
    }
    ctx.reply.int(i64::from(is_member));
    DONE
}
