//! XINFO: what is known of a stream, its groups and their consumers.

use super::pending::owner_name;
use super::{access, bad_subcommand, integer, no_such_group, reply};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::types::stream::{Consumer, Group, IdRange, Log, Order, StreamRef};
use russet_protocol::Sink;

const FULL_COUNT_DEFAULT: u64 = 10;

pub fn info_stream(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(2);
    let now_ms = ctx.keys.now.0;
    let stream = access::read(ctx.keys, key)?.ok_or(Refusal::NoSuchKey)?;
    let full = full_count(args)?;
    let has_idempotency = stream.idempotency().is_some();
    // DIFFERS: what only Redis tells, of producers and of entries given back, is left out of a
    // stream that has none, so that it reads as in Valkey.
    let common = 7 + if has_idempotency { 6 } else { 0 };
    ctx.reply.map(common + if full.is_some() { 2 } else { 3 });
    counters(ctx.reply, stream);
    producers(ctx.reply, stream, now_ms);
    match full {
        None => {
            ctx.reply.bulk(b"groups");
            ctx.reply.int(stream.groups().map_or(0, |groups| groups.len()) as i64);
            ctx.reply.bulk(b"first-entry");
            reply::edge(ctx.reply, stream, Order::Forward);
            ctx.reply.bulk(b"last-entry");
            reply::edge(ctx.reply, stream, Order::Backward);
        }
        Some(count) => {
            let most = (count > 0).then_some(count);
            ctx.reply.bulk(b"entries");
            reply::range(ctx.reply, stream, IdRange::ALL, (Order::Forward, most));
            full_groups(ctx.reply, stream, most);
        }
    }
    DONE
}

/// How much of everything FULL shows, 0 for all; None without FULL.
fn full_count(args: Args) -> Result<Option<u64>, Refusal> {
    let options = args.from(3);
    let is_full = || eq_ignore_case(options.at(0), b"full");
    match options.len() {
        0 => Ok(None),
        1 if is_full() => Ok(Some(FULL_COUNT_DEFAULT)),
        3 if is_full() && eq_ignore_case(options.at(1), b"count") => {
            let count = integer(options.at(2))?;
            Ok(Some(u64::try_from(count).unwrap_or(FULL_COUNT_DEFAULT)))
        }
        _ => Err(bad_subcommand("XINFO", args.at(1))),
    }
}

fn pair(reply: &mut dyn Sink, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.int(value as i64);
}

fn counters(reply: &mut dyn Sink, stream: StreamRef<'_>) {
    pair(reply, "length", stream.len());
    pair(reply, "radix-tree-keys", stream.blocks_len() as u64);
    pair(reply, "radix-tree-nodes", stream.radix_nodes() as u64);
    reply.bulk(b"last-generated-id");
    reply::id(reply, stream.last_id());
    reply.bulk(b"max-deleted-entry-id");
    reply::id(reply, stream.max_deleted_id());
    pair(reply, "entries-added", stream.entries_added());
    reply.bulk(b"recorded-first-entry-id");
    reply::id(reply, stream.first_entry_id().unwrap_or_default());
}

fn producers(reply: &mut dyn Sink, stream: StreamRef<'_>, now_ms: i64) {
    let Some(idempotency) = stream.idempotency() else { return };
    let mut live = idempotency.clone();
    live.sweep(u64::try_from(now_ms).unwrap_or(0));
    pair(reply, "idmp-duration", live.duration_s);
    pair(reply, "idmp-maxsize", live.messages_max);
    pair(reply, "pids-tracked", live.producers_len() as u64);
    pair(reply, "iids-tracked", live.messages_len() as u64);
    pair(reply, "iids-added", live.added);
    pair(reply, "iids-duplicates", live.duplicates);
}

fn read_and_lag(reply: &mut dyn Sink, log: &Log, group: &Group) {
    reply.bulk(b"entries-read");
    match group.entries_read {
        Some(read) => reply.int(read),
        None => reply.null(),
    }
    reply.bulk(b"lag");
    match log.lag(group) {
        Some(lag) => reply.int(lag),
        None => reply.null(),
    }
}

fn full_groups(reply: &mut dyn Sink, stream: StreamRef<'_>, most: Option<u64>) {
    reply.bulk(b"groups");
    let StreamRef::Large(large) = stream else { return reply.array(0) };
    let Some(groups) = large.groups() else { return reply.array(0) };
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    reply.array(groups.len());
    for (name, group) in groups {
        let given_back = group.given_back_len();
        reply.map(7 + usize::from(given_back > 0));
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"last-delivered-id");
        reply::id(reply, group.last_id);
        read_and_lag(reply, &large.log, group);
        pair(reply, "pel-count", group.pending_len() as u64);
        if given_back > 0 {
            pair(reply, "nacked-count", given_back as u64);
        }
        reply.bulk(b"pending");
        reply.array(group.pending_len().min(most));
        for (id, pending) in group.pending_in(IdRange::ALL).take(most) {
            reply.array(4);
            reply::id(reply, id);
            reply.bulk(owner_name(group, pending));
            reply.int(pending.delivered_ms);
            reply.int(pending.deliveries as i64);
        }
        reply.bulk(b"consumers");
        reply.array(group.consumers_len());
        group.consumers().for_each(|consumer| full_consumer(reply, group, consumer, most));
    }
}

fn full_consumer(reply: &mut dyn Sink, group: &Group, consumer: &Consumer, most: usize) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(&consumer.name);
    reply.bulk(b"seen-time");
    reply.int(consumer.seen_ms);
    reply.bulk(b"active-time");
    reply.int(consumer.active_ms.unwrap_or(-1));
    pair(reply, "pel-count", consumer.pending_len() as u64);
    reply.bulk(b"pending");
    reply.array(consumer.pending_len().min(most));
    let Some(key) = group.find_consumer(&consumer.name) else { return };
    for (id, pending) in group.pending_of(key, IdRange::ALL).take(most) {
        reply.array(3);
        reply::id(reply, id);
        reply.int(pending.delivered_ms);
        reply.int(pending.deliveries as i64);
    }
}

pub fn info_groups(ctx: &mut Ctx, args: Args) -> Outcome {
    let stream = access::read(ctx.keys, args.at(2))?.ok_or(Refusal::NoSuchKey)?;
    let groups = match stream {
        StreamRef::Large(large) => large.groups().map(|groups| (groups, &large.log)),
        StreamRef::Packed(_) => None,
    };
    let Some((groups, log)) = groups else {
        ctx.reply.array(0);
        return DONE;
    };
    ctx.reply.array(groups.len());
    for (name, group) in groups {
        ctx.reply.map(6);
        ctx.reply.bulk(b"name");
        ctx.reply.bulk(name);
        pair(ctx.reply, "consumers", group.consumers_len() as u64);
        pair(ctx.reply, "pending", group.pending_len() as u64);
        ctx.reply.bulk(b"last-delivered-id");
        reply::id(ctx.reply, group.last_id);
        read_and_lag(ctx.reply, log, group);
    }
    DONE
}

pub fn info_consumers(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name) = (args.at(2), args.at(3));
    let now_ms = ctx.keys.now.0;
    let stream = access::read(ctx.keys, key)?.ok_or(Refusal::NoSuchKey)?;
    let group = stream.group(name).ok_or_else(|| no_such_group(key, name))?;
    ctx.reply.array(group.consumers_len());
    for consumer in group.consumers() {
        ctx.reply.map(4);
        ctx.reply.bulk(b"name");
        ctx.reply.bulk(&consumer.name);
        pair(ctx.reply, "pending", consumer.pending_len() as u64);
        ctx.reply.bulk(b"idle");
        ctx.reply.int(now_ms.saturating_sub(consumer.seen_ms).max(0));
        ctx.reply.bulk(b"inactive");
        ctx.reply.int(consumer.active_ms.map_or(-1, |at_ms| now_ms.saturating_sub(at_ms)));
    }
    DONE
}
