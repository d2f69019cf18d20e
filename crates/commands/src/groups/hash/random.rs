//! HRANDFIELD.

use super::{read, reply_element, reply_value};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::limits::SAMPLES_MAX;
use russet_base::random::Random;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::types::hash::Field;
use russet_protocol::{Resp, Sink};

/// What stands behind the key.
struct Wish {
    count: i64,
    with_values: bool,
}

impl Wish {
    fn parse(args: Args) -> Result<Self, Refusal> {
        let count = num::parse_i64(args.at(2)).ok_or(Refusal::NotInteger)?;
        if count == i64::MIN {
            return Err(Refusal::text(
                "ERR value is out of range, \
                 value must between -9223372036854775807 and 9223372036854775807",
            ));
        }
        let with_values = match args.len() {
            3 => false,
            4 if eq_ignore_case(args.at(3), b"withvalues") => true,
            _ => return Err(Refusal::Syntax),
        };
        // COMPAT: the reply must not have more than i64::MAX elements (hrandfield.wire).
        if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(Refusal::text("ERR value is out of range"));
        }
        Ok(Wish { count, with_values })
    }
}

pub fn hrandfield(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 2 {
        let wish = Wish::parse(args)?;
        return several(ctx, args.at(1), &wish);
    }
    let mut random = Random::from_seed(ctx.keys.keyspace().draw_u64());
    let field = match read(ctx.keys, args.at(1))? {
        None => None,
        Some(hash) => hash.random(&mut random),
    };
    reply_value(ctx.reply, field.map(|field| field.name));
    DONE
}

fn several(ctx: &mut Ctx, key: &[u8], wish: &Wish) -> Outcome {
    let mut random = Random::from_seed(ctx.keys.keyspace().draw_u64());
    let Some(hash) = read(ctx.keys, key)? else {
        ctx.reply.array(0);
        return DONE;
    };
    let (wanted, is_unique) = (wish.count.unsigned_abs(), wish.count >= 0);
    // DIFFERS: Redis goes on until the client's output buffer is full.
    if !is_unique && wanted > SAMPLES_MAX {
        return Err(Refusal::text("ERR value is out of range"));
    }
    let (reply, wanted) = (&mut *ctx.reply, usize::try_from(wanted).unwrap_or(usize::MAX));
    let count = if is_unique { wanted.min(hash.len()) } else { wanted };
    let is_nested = wish.with_values && reply.resp() == Resp::V3;
    reply.array(if wish.with_values && !is_nested { 2 * count } else { count });
    let show = |field: Field<'_>| show(reply, field, (wish.with_values, is_nested));
    if is_unique {
        hash.sample(count, &mut random, show);
    } else {
        hash.draw(count, &mut random, show);
    }
    DONE
}

fn show(reply: &mut dyn Sink, field: Field<'_>, (with_values, is_nested): (bool, bool)) {
    if is_nested {
        reply.array(2);
    }
    reply_element(reply, field.name);
    if with_values {
        reply_element(reply, field.value);
    }
}
