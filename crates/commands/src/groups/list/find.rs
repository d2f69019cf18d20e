//! Reading without a range: LLEN, LINDEX, LPOS.

use super::{access, integer, natural, reply_element, symmetric};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::types::list::{Element, PositionQuery, resolve_index};

pub fn llen(ctx: &mut Ctx, args: Args) -> Outcome {
    let len = access::read(ctx.keys, args.at(1))?.map_or(0, |list| list.len());
    ctx.reply.int(len as i64);
    DONE
}

pub fn lindex(ctx: &mut Ctx, args: Args) -> Outcome {
    // COMPAT: the key is looked at before the index is read; tests/wire/list/lindex.wire.
    let Some(list) = access::read(ctx.keys, args.at(1))? else {
        ctx.reply.null();
        return DONE;
    };
    let index = integer(args.at(2))?;
    match resolve_index(index, list.len()).and_then(|at| list.index(at)) {
        Some(element) => reply_element(ctx.reply, element),
        None => ctx.reply.null(),
    }
    DONE
}

/// LPOS's options. `count` is None where a single position is asked for.
struct PositionOptions {
    rank: i64,
    count: Option<usize>,
    compared_max: usize,
}

fn position_options(args: Args) -> Result<PositionOptions, Refusal> {
    let mut options = PositionOptions { rank: 1, count: None, compared_max: 0 };
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or(Refusal::Syntax)?;
        if eq_ignore_case(name, b"rank") {
            options.rank = symmetric(value)?;
            if options.rank == 0 {
                return Err(Refusal::text(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                     second ... or use negative to start from the end of the list",
                ));
            }
        } else if eq_ignore_case(name, b"count") {
            let refusal = Refusal::text("ERR COUNT can't be negative");
            options.count = Some(natural(value, refusal)?);
        } else if eq_ignore_case(name, b"maxlen") {
            let refusal = Refusal::text("ERR MAXLEN can't be negative");
            options.compared_max = natural(value, refusal)?;
        } else {
            return Err(Refusal::Syntax);
        }
    }
    Ok(options)
}

pub fn lpos(ctx: &mut Ctx, args: Args) -> Outcome {
    let options = position_options(args.from(3))?;
    let list = access::read(ctx.keys, args.at(1))?;
    let wanted = Element::parse(args.at(2));
    let unless_zero = |value: usize| (value > 0).then_some(value);
    let query = PositionQuery {
        rank: options.rank,
        count: options.count.map_or(Some(1), unless_zero),
        compared_max: unless_zero(options.compared_max),
    };
    if options.count.is_none() {
        let mut found = None;
        if let Some(list) = list {
            list.positions(wanted, query, |at| found = Some(at));
        }
        match found {
            Some(at) => ctx.reply.int(at as i64),
            None => ctx.reply.null(),
        }
        return DONE;
    }
    let mark = ctx.reply.begin_array();
    let mut len = 0;
    if let Some(list) = list {
        list.positions(wanted, query, |at| {
            ctx.reply.int(at as i64);
            len += 1;
        });
    }
    ctx.reply.end_array(mark, len);
    DONE
}
