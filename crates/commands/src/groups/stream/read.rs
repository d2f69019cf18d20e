//! XREAD and XREADGROUP: what they answer, at once or later.

use super::blocking;
use super::claim::consumer;
use super::group::CONSUMER_CREATED;
use super::reading::{ReadCall, Reader};
use super::record::{self, Claimed};
use super::{access, reply, shown, strict_id};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::keys::Keys;
use russet_engine::types::stream::{
    ConsumerKey, Count, Entry, Group, IdRange, Log, Order, StreamId, StreamRef,
};
use russet_protocol::{Resp, Sink};
use smallvec::SmallVec;
use std::ops::ControlFlow;

pub fn xread(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args)
}

pub fn xreadgroup(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args)
}

fn read(ctx: &mut Ctx, args: Args) -> Outcome {
    let call = ReadCall::parse(args, ctx.command, ctx.keys.now)?;
    let starts = starts(ctx.keys, &call)?;
    if answer(ctx.keys, ctx.reply, &call, &starts)? {
        return DONE;
    }
    blocking::wait(ctx, args, &call, &starts)
}

/// Where reading begins in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind this ID; for a group, in what is pending for the consumer.
    After(StreamId),
    /// `>`: what the group has not delivered yet.
    New,
}

pub type Starts = SmallVec<[Start; 4]>;

/// Looks up the streams and their groups, and refuses what can't be read.
pub fn starts(keys: &mut Keys, call: &ReadCall) -> Result<Starts, Refusal> {
    (0..call.streams_len())
        .map(|index| {
            let key = call.key(index);
            let stream = access::read(keys, key)?;
            if let Some(reader) = &call.reader
                && stream.is_none_or(|stream| stream.group(reader.group).is_none())
            {
                return Err(no_group_to_read(key, reader));
            }
            start(stream, call.id_arg(index), call.reader.is_some())
        })
        .collect()
}

pub fn no_group_to_read(key: &[u8], reader: &Reader) -> Refusal {
    let (key, group) = (shown(key), shown(reader.group));
    Refusal::text(format!(
        "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"
    ))
}

fn start(stream: Option<StreamRef<'_>>, arg: &[u8], reads_group: bool) -> Result<Start, Refusal> {
    let meaningless = |id: char| {
        Err(Refusal::text(format!(
            "ERR The {id} ID is meaningless in the context of XREADGROUP: you want to read the \
             history of this consumer by specifying a proper ID, or use the > ID to get new \
             messages. The {id} ID would just return an empty result set."
        )))
    };
    match arg {
        b"$" if reads_group => meaningless('$'),
        b"+" if reads_group => meaningless('+'),
        b"$" => Ok(Start::After(stream.map_or(StreamId::MIN, |stream| stream.last_id()))),
        b"+" => {
            let last = stream.and_then(|stream| stream.last_entry_id());
            Ok(Start::After(last.and_then(StreamId::previous).unwrap_or_default()))
        }
        b">" if reads_group => Ok(Start::New),
        b">" => Err(Refusal::text(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option.",
        )),
        _ => Ok(Start::After(strict_id(arg, 0)?)),
    }
}

/// Whether a stream has something for this call now.
pub fn has_something(
    keys: &mut Keys,
    call: &ReadCall,
    index: usize,
    start: Start,
) -> Result<bool, Refusal> {
    let now_ms = keys.real_now().0;
    let key = call.key(index);
    let Some(stream) = access::peek(keys, key)? else { return Ok(false) };
    let last = stream.last_entry_id();
    let Some(reader) = &call.reader else {
        return Ok(matches!(start, Start::After(id) if last.is_some_and(|last| last > id)));
    };
    if start != Start::New {
        return Ok(true);
    }
    let Some(group) = stream.group(reader.group) else { return Ok(false) };
    if last.is_some_and(|last| last > group.last_id) {
        return Ok(true);
    }
    let Some(idle_ms) = call.claim_idle_ms else { return Ok(false) };
    let oldest = oldest_pending_ms(keys, call, index)?;
    Ok(oldest.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) >= idle_ms))
}

/// When the entry that has been pending longest was delivered.
pub fn oldest_pending_ms(
    keys: &mut Keys,
    call: &ReadCall,
    index: usize,
) -> Result<Option<i64>, Refusal> {
    let Some(reader) = &call.reader else { return Ok(None) };
    let Some((mut group, log)) = access::open_group(keys, call.key(index), reader.group)? else {
        return Ok(None);
    };
    let oldest = group.by_age().find(|(id, _)| log.contains(*id));
    Ok(oldest.map(|(_, delivered_ms)| delivered_ms))
}

/// What may still be answered, over all the streams of a call.
struct Budget {
    entries: u64,
    /// Entries of the stream that is being read.
    entries_here: u64,
    sent: u64,
    sent_bytes: u64,
    bytes_max: u64,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.entries == 0 || (self.sent > 0 && self.sent_bytes >= self.bytes_max)
    }

    /// Whether one entry more may be answered. The first may, however long it is.
    fn allows(&self) -> bool {
        self.entries_here > 0 && !self.is_spent()
    }

    fn spend(&mut self, bytes: u64) {
        self.entries -= 1;
        self.entries_here -= 1;
        self.sent += 1;
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
    }
}

/// Answers with what the streams have; false, and nothing is written, if that is nothing.
pub fn answer(
    keys: &mut Keys,
    reply: &mut dyn Sink,
    call: &ReadCall,
    starts: &[Start],
) -> Result<bool, Refusal> {
    let mut budget = Budget {
        entries: call.count_total.unwrap_or(u64::MAX),
        entries_here: 0,
        sent: 0,
        sent_bytes: 0,
        bytes_max: call.bytes_max.unwrap_or(u64::MAX),
    };
    let mut answered: Option<(russet_protocol::Mark, usize)> = None;
    for (index, start) in starts.iter().enumerate() {
        if budget.is_spent() {
            break;
        }
        let key = call.key(index);
        access::read(keys, key)?;
        let is_served = has_something(keys, call, index, *start)?;
        if let Some(reader) = &call.reader {
            greet(keys, key, reader)?;
        }
        if !is_served {
            continue;
        }
        let (mark, len) = match answered.take() {
            Some(answered) => answered,
            None if reply.resp() == Resp::V2 => (reply.begin_array(), 0),
            None => (reply.begin_map(), 0),
        };
        answered = Some((mark, len + 1));
        if reply.resp() == Resp::V2 {
            reply.array(2);
        }
        reply.bulk(key);
        budget.sent_bytes += reply::bulk_bytes(key.len());
        budget.entries_here = call.count.unwrap_or(u64::MAX).min(budget.entries);
        serve_stream(keys, reply, (call, key, *start), &mut budget)?;
    }
    let Some((mark, len)) = answered else { return Ok(false) };
    match reply.resp() {
        Resp::V2 => reply.end_array(mark, len),
        Resp::V3 => reply.end_map(mark, len),
    }
    Ok(true)
}

/// Makes the consumer if there is none, and notes that it asked.
fn greet(keys: &mut Keys, key: &[u8], reader: &Reader) -> Result<(), Refusal> {
    let now_ms = keys.real_now().0;
    let is_new = match access::open_group(keys, key, reader.group)? {
        Some((mut group, _)) => consumer(&mut group, reader.consumer, now_ms).1,
        None => false,
    };
    if is_new {
        keys.wrote_beside(key, 1, Some(CONSUMER_CREATED));
        record::consumer_created(keys, reader.of(key));
    }
    Ok(())
}

/// The entries of one stream, as an array.
fn serve_stream(
    keys: &mut Keys,
    reply: &mut dyn Sink,
    (call, key, start): (&ReadCall, &[u8], Start),
    budget: &mut Budget,
) -> Result<(), Refusal> {
    let (now_ms, is_recording) = (keys.real_now().0, keys.is_recording());
    let Some(reader) = &call.reader else {
        if let (Some(stream), Start::After(id)) = (access::peek(keys, key)?, start) {
            plain(reply, stream, id, budget);
        }
        return Ok(());
    };
    let Some((mut group, log)) = access::open_group(keys, key, reader.group)? else {
        return Err(no_group_to_read(key, reader));
    };
    let (to, _) = consumer(&mut group, reader.consumer, now_ms);
    let delivered = Vec::new();
    let mut delivery =
        Delivery { group: &mut group, log, to, now_ms, budget, is_recording, delivered };
    match start {
        Start::After(id) => delivery.history(reply, id),
        Start::New => delivery.new_entries(reply, call),
    }
    let Delivery { delivered, .. } = delivery;
    let claims: Vec<_> = delivered.iter().filter_map(|id| Claimed::of(&group, *id)).collect();
    drop(group);
    keys.wrote_beside(key, 1, None);
    record::claimed(keys, reader.of(key), &claims);
    if start == Start::New {
        record::position(keys, key, reader.group);
    }
    Ok(())
}

/// XREAD's entries of one stream.
fn plain(reply: &mut dyn Sink, stream: StreamRef<'_>, after: StreamId, budget: &mut Budget) {
    let Some(first) = after.next() else { return reply.array(0) };
    if budget.bytes_max == u64::MAX {
        let count = (budget.entries_here < u64::MAX).then_some(budget.entries_here);
        let before = budget.entries;
        reply::range(reply, stream, IdRange::from(first), (Order::Forward, count));
        if before < u64::MAX {
            // A total was asked for, so what was sent must be known.
            let mut seen = 0;
            stream.visit(IdRange::from(first), Order::Forward, |_| {
                seen += 1;
                if seen == budget.entries_here { ControlFlow::Break(()) } else { GO_ON }
            });
            budget.entries -= seen;
            budget.sent += seen;
        }
        return;
    }
    let mark = reply.begin_array();
    let before = budget.sent;
    stream.visit(IdRange::from(first), Order::Forward, |entry| {
        if !budget.allows() {
            return ControlFlow::Break(());
        }
        reply::entry(reply, entry);
        budget.spend(reply::entry_bytes(entry));
        GO_ON
    });
    reply.end_array(mark, (budget.sent - before) as usize);
}

const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

/// One group's entries on their way to one consumer.
struct Delivery<'k, 'b> {
    group: &'k mut Group,
    log: &'k Log,
    to: ConsumerKey,
    now_ms: i64,
    budget: &'b mut Budget,
    is_recording: bool,
    /// Entries whose pending record has changed, while that is recorded.
    delivered: Vec<StreamId>,
}

impl Delivery<'_, '_> {
    fn note(&mut self, id: StreamId) {
        if self.is_recording {
            self.delivered.push(id);
        }
    }

    /// What is pending for the consumer behind an ID; an entry that is gone has no fields.
    fn history(&mut self, reply: &mut dyn Sink, after: StreamId) {
        let mark = reply.begin_array();
        let before = self.budget.sent;
        let mut from = after.next();
        while let Some(first) = from
            && self.budget.allows()
        {
            let next = self.group.pending_of(self.to, IdRange::from(first)).next();
            let Some((id, _)) = next else { break };
            let mut bytes = None;
            self.log.visit(IdRange::one(id), Order::Forward, |entry| {
                reply::entry(reply, entry);
                bytes = Some(reply::entry_bytes(entry));
                GO_ON
            });
            if bytes.is_some() {
                self.group.repeat(id, self.now_ms);
                self.note(id);
            } else {
                reply.array(2);
                reply::id(reply, id);
                reply.null_array();
            }
            self.budget.spend(bytes.unwrap_or(0));
            from = id.next();
        }
        reply.end_array(mark, (self.budget.sent - before) as usize);
    }

    /// What others have left pending for too long, if that is asked for, and then what is new.
    fn new_entries(&mut self, reply: &mut dyn Sink, call: &ReadCall) {
        let mark = reply.begin_array();
        let before = self.budget.sent;
        if let Some(idle_ms) = call.claim_idle_ms {
            self.take_over(reply, idle_ms);
        }
        let claims = call.claim_idle_ms.is_some();
        if let Some(first) = self.group.last_id.next() {
            let log = self.log;
            log.visit(IdRange::from(first), Order::Forward, |entry| {
                if !self.budget.allows() {
                    return ControlFlow::Break(());
                }
                self.hand_out(reply, entry, claims.then_some((0, 0)));
                log.advance(self.group, entry.id);
                if call.acknowledges {
                    self.group.deliver(entry.id, self.to, self.now_ms);
                    self.note(entry.id);
                }
                GO_ON
            });
        }
        reply.end_array(mark, (self.budget.sent - before) as usize);
    }

    /// With CLAIM, each entry shows how long it was idle and how often it was delivered.
    fn hand_out(&mut self, reply: &mut dyn Sink, entry: Entry<'_>, past: Option<(i64, i64)>) {
        match past {
            None => reply::entry(reply, entry),
            Some((idle_ms, deliveries)) => {
                reply.array(4);
                reply::parts(reply, entry);
                reply.int(idle_ms);
                reply.int(deliveries);
            }
        }
        self.budget.spend(reply::entry_bytes(entry));
    }

    fn take_over(&mut self, reply: &mut dyn Sink, idle_ms_min: i64) {
        let (log, now_ms) = (self.log, self.now_ms);
        let most = usize::try_from(self.budget.entries_here).unwrap_or(usize::MAX);
        let due: Vec<StreamId> = self
            .group
            .by_age()
            .take_while(|(_, at_ms)| now_ms.saturating_sub(*at_ms) >= idle_ms_min)
            .filter(|(id, _)| log.contains(*id))
            .map(|(id, _)| id)
            .take(most)
            .collect();
        for id in due {
            if !self.budget.allows() {
                return;
            }
            let Some(pending) = self.group.pending(id).copied() else { continue };
            let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
            log.visit(IdRange::one(id), Order::Forward, |entry| {
                self.hand_out(reply, entry, Some((idle_ms, pending.deliveries as i64)));
                GO_ON
            });
            self.group.claim(id, self.to, now_ms, Count::Add);
            self.group.mark_active(self.to, now_ms);
            self.note(id);
        }
    }
}
