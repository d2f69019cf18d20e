//! Asking filters: BF.EXISTS, BF.MEXISTS, BF.CARD and BF.INFO.

use super::not_found;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::keys::Keys;
use russet_engine::types::bloom::{self, Bloom};
use russet_engine::value::WrongType;
use russet_protocol::{Resp, Sink};

/// The filter under a key, if there is one.
/// DIFFERS: another type is an error, as Redis documents it; its module takes it for no filter.
fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<&'k Bloom>, WrongType> {
    keys.read(key).map(|entry| bloom::stored(&entry)).transpose()
}

pub fn bf_exists(ctx: &mut Ctx, args: Args) -> Outcome {
    let bloom = read(ctx.keys, args.at(1))?;
    ctx.reply.boolean(bloom.is_some_and(|bloom| bloom.contains(args.at(2))));
    DONE
}

pub fn bf_mexists(ctx: &mut Ctx, args: Args) -> Outcome {
    let (bloom, items) = (read(ctx.keys, args.at(1))?, args.from(2));
    ctx.reply.array(items.len());
    for item in items.iter() {
        ctx.reply.boolean(bloom.is_some_and(|bloom| bloom.contains(item)));
    }
    DONE
}

pub fn bf_card(ctx: &mut Ctx, args: Args) -> Outcome {
    let items = read(ctx.keys, args.at(1))?.map_or(0, Bloom::len);
    ctx.reply.int(items as i64);
    DONE
}

#[derive(Clone, Copy)]
enum Fact {
    Capacity,
    Size,
    Filters,
    Items,
    Expansion,
}

impl Fact {
    const ALL: [Fact; 5] =
        [Fact::Capacity, Fact::Size, Fact::Filters, Fact::Items, Fact::Expansion];

    fn name(self) -> &'static [u8] {
        match self {
            Fact::Capacity => b"capacity",
            Fact::Size => b"size",
            Fact::Filters => b"filters",
            Fact::Items => b"items",
            Fact::Expansion => b"expansion",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Fact::Capacity => "Capacity",
            Fact::Size => "Size",
            Fact::Filters => "Number of filters",
            Fact::Items => "Number of items inserted",
            Fact::Expansion => "Expansion rate",
        }
    }

    fn reply(self, reply: &mut dyn Sink, bloom: &Bloom) {
        let value = match self {
            Fact::Capacity => Some(bloom.capacity() as i64),
            Fact::Size => Some(bloom.reported_bytes() as i64),
            Fact::Filters => Some(bloom.layers() as i64),
            Fact::Items => Some(bloom.len() as i64),
            Fact::Expansion => bloom.expansion().map(i64::from),
        };
        match value {
            Some(value) => reply.int(value),
            None => reply.null(),
        }
    }
}

pub fn bf_info(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 3 {
        return Err(Refusal::Arity(ctx.command.full_name()));
    }
    let bloom = read(ctx.keys, args.at(1))?.ok_or_else(not_found)?;
    let Some(arg) = args.get(2) else {
        ctx.reply.map(Fact::ALL.len());
        for fact in Fact::ALL {
            ctx.reply.status(fact.title());
            fact.reply(ctx.reply, bloom);
        }
        return DONE;
    };
    let fact = Fact::ALL.into_iter().find(|fact| eq_ignore_case(arg, fact.name()));
    let fact = fact.ok_or(Refusal::text("Invalid information value"))?;
    // RESP2 has the value alone, in an array of one.
    if ctx.reply.resp() == Resp::V3 {
        ctx.reply.map(1);
        ctx.reply.status(fact.title());
    } else {
        ctx.reply.array(1);
    }
    fact.reply(ctx.reply, bloom);
    DONE
}
