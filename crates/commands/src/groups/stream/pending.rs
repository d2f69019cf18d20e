//! XPENDING.

use super::{access, id_range, integer, no_group, reply};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::types::stream::{Group, IdRange, Pending, StreamId};
use russet_protocol::Sink;

/// Which pending entries are asked for.
struct Query<'a> {
    idle_ms_min: i64,
    range: IdRange,
    count: u64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Query<'a> {
    /// `args` are those behind the group; None if there are none.
    fn parse(args: Args<'a>) -> Result<Option<Self>, Refusal> {
        match args.len() {
            0 => return Ok(None),
            3..=6 => {}
            _ => return Err(Refusal::Syntax),
        }
        let (mut args, mut idle_ms_min) = (args, 0);
        if eq_ignore_case(args.at(0), b"idle") {
            idle_ms_min = integer(args.at(1))?;
            args = args.from(2);
            if args.len() < 3 {
                return Err(Refusal::Syntax);
            }
        }
        let count = u64::try_from(integer(args.at(2))?).unwrap_or(0);
        let range = id_range(args.at(0), args.at(1))?;
        Ok(Some(Query { idle_ms_min, range, count, consumer: args.get(3) }))
    }
}

pub fn xpending(ctx: &mut Ctx, args: Args) -> Outcome {
    let query = Query::parse(args.from(3))?;
    let (key, name) = (args.at(1), args.at(2));
    let now_ms = ctx.keys.now.0;
    let stream = access::read(ctx.keys, key)?;
    let group = stream.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| no_group(key, name))?;
    match query {
        None => summary(ctx.reply, group),
        Some(query) => list(ctx.reply, group, &query, now_ms),
    }
    DONE
}

fn summary(reply: &mut dyn Sink, group: &Group) {
    reply.array(4);
    reply.int(group.pending_len() as i64);
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply::id(reply, first);
    reply::id(reply, last);
    let busy = || group.consumers().filter(|consumer| consumer.pending_len() > 0);
    reply.array(busy().count());
    for consumer in busy() {
        reply.array(2);
        reply.bulk(&consumer.name);
        reply.bulk_int(consumer.pending_len() as i64);
    }
}

fn list(reply: &mut dyn Sink, group: &Group, query: &Query, now_ms: i64) {
    let is_wanted = |pending: &Pending| {
        let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
        query.idle_ms_min == 0 || pending.owner.is_none() || idle_ms >= query.idle_ms_min
    };
    let mark = reply.begin_array();
    let mut len = 0;
    let mut show = |id: StreamId, pending: &Pending| {
        reply.array(4);
        reply::id(reply, id);
        reply.bulk(owner_name(group, pending));
        reply.int(now_ms.saturating_sub(pending.delivered_ms).max(0));
        reply.int(pending.deliveries as i64);
        len += 1;
    };
    let most = usize::try_from(query.count).unwrap_or(usize::MAX);
    match query.consumer {
        None => {
            let wanted = group.pending_in(query.range).filter(|(_, pending)| is_wanted(pending));
            wanted.take(most).for_each(|(id, pending)| show(id, pending));
        }
        Some(name) => {
            if let Some(consumer) = group.find_consumer(name) {
                let all = group.pending_of(consumer, query.range);
                let wanted = all.filter(|(_, pending)| is_wanted(pending));
                wanted.take(most).for_each(|(id, pending)| show(id, pending));
            }
        }
    }
    reply.end_array(mark, len);
}

/// Empty for one that was given back.
pub fn owner_name<'g>(group: &'g Group, pending: &Pending) -> &'g [u8] {
    pending.owner.map_or(&[], |owner| &group.consumer(owner).name)
}
