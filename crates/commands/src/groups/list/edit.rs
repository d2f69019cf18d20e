//! Changing what is inside a list: LSET, LINSERT, LREM, LTRIM.

use super::access::{self, Shrunk};
use super::{integer, limits, symmetric};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::types::list::{Bounds, Element, Extent, InsertAt, Quota, resolve_index, stored};

/// The extent of one text.
fn extent_of(text: &[u8]) -> Extent {
    Extent { bytes: text.len(), count: 1 }
}

pub fn lset(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, text) = (args.at(1), args.at(3));
    let limits = limits(ctx);
    // COMPAT: the key is looked at before the index is read; tests/wire/list/lset.wire.
    let mut entry = ctx.keys.write(key).ok_or(Refusal::NoSuchKey)?;
    let len = stored::list(&entry.as_ref())?.len();
    let index = integer(args.at(2))?;
    let at = resolve_index(index, len).ok_or(Refusal::IndexOutOfRange)?;
    stored::make_room(&mut entry, extent_of(text), limits)?;
    stored::edit(&mut entry, |list| list.set(at, Element::parse(text)))?;
    stored::shrink_form(&mut entry, limits);
    ctx.keys.wrote(key, Event::list("lset"));
    ctx.reply.ok();
    DONE
}

pub fn linsert(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, arg) = (args.at(1), args.at(2));
    let side = if eq_ignore_case(arg, b"after") {
        InsertAt::After
    } else if eq_ignore_case(arg, b"before") {
        InsertAt::Before
    } else {
        return Err(Refusal::Syntax);
    };
    let limits = limits(ctx);
    let Some(mut entry) = ctx.keys.write(key) else {
        ctx.reply.int(0);
        return DONE;
    };
    let (pivot, element) = (Element::parse(args.at(3)), Element::parse(args.at(4)));
    stored::make_room(&mut entry, extent_of(args.at(4)), limits)?;
    match stored::edit(&mut entry, |list| list.insert(side, pivot, element))? {
        Some(len) => {
            ctx.keys.wrote(key, Event::list("linsert"));
            ctx.reply.int(len as i64);
        }
        None => ctx.reply.int(-1),
    }
    DONE
}

pub fn lrem(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let quota = Quota::of(symmetric(args.at(2))?);
    let wanted = Element::parse(args.at(3));
    let limits = limits(ctx);
    let shrunk = access::shrink_quietly(ctx.keys, key, limits, |list| list.remove(quota, wanted))?;
    let removed = shrunk.map_or(0, |shrunk| shrunk.removed);
    if let Some(shrunk @ Shrunk { removed: 1.., .. }) = shrunk {
        access::notify_shrunk(ctx.keys, key, Event::list("lrem"), shrunk);
    }
    ctx.reply.int(removed as i64);
    DONE
}

pub fn ltrim(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let bounds = Bounds { start: integer(args.at(2))?, stop: integer(args.at(3))? };
    let limits = limits(ctx);
    let shrunk = access::shrink_quietly(ctx.keys, key, limits, |list| {
        let len = list.len();
        list.trim(bounds.within(len));
        len - list.len()
    })?;
    match shrunk {
        // COMPAT: an event, but no change for WATCH (tests/wire/list/ltrim.wire).
        Some(Shrunk { removed: 0, .. }) => ctx.keys.also(key, Event::list("ltrim")),
        Some(shrunk) => access::notify_shrunk(ctx.keys, key, Event::list("ltrim"), shrunk),
        None => {}
    }
    ctx.reply.ok();
    DONE
}
