//! XCLAIM and XAUTOCLAIM: pending entries change hands.

use super::delete::Ids;
use super::group::CONSUMER_CREATED;
use super::record::{self, Claimed, Reader};
use super::{access, integer_or, no_group, range_start, reply, shown, strict_id};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::Origin;
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::keys::Keys;
use russet_engine::types::stream::{ConsumerKey, Count, Group, IdRange, Log, StreamId};
use russet_protocol::Sink;
use smallvec::SmallVec;

/// Pending entries that XAUTOCLAIM looks at for each that it may claim.
const ATTEMPTS_PER_ENTRY: i64 = 10;
const AUTOCLAIM_COUNT_DEFAULT: i64 = 100;
const AUTOCLAIM_COUNT_MAX: i64 = i64::MAX / 16;

struct ClaimCall {
    idle_ms_min: i64,
    ids: Ids,
    delivered_ms: i64,
    count: Count,
    forces: bool,
    is_bare: bool,
    last_id: StreamId,
}

impl ClaimCall {
    /// `latest_ms` is the latest moment that an entry can have been delivered at.
    fn parse(args: Args, now_ms: i64, latest_ms: i64) -> Result<Self, Refusal> {
        let idle_ms_min =
            integer_or(args.at(4), "ERR Invalid min-idle-time argument for XCLAIM")?.max(0);
        let rest = args.from(5);
        // The first argument that is no ID begins the options.
        let ids: Ids = rest.iter().map_while(|arg| strict_id(arg, 0).ok()).collect();
        let (mut delivered_ms, mut retries) = (None, None);
        let (mut forces, mut is_bare, mut last_id) = (false, false, StreamId::MIN);
        let mut at = ids.len();
        while at < rest.len() {
            let arg = rest.at(at);
            let value = rest.get(at + 1);
            at += 1;
            if eq_ignore_case(arg, b"force") {
                forces = true;
                continue;
            }
            if eq_ignore_case(arg, b"justid") {
                is_bare = true;
                continue;
            }
            let unknown =
                || Refusal::text(format!("ERR Unrecognized XCLAIM option '{}'", shown(arg)));
            let value = value.ok_or_else(unknown)?;
            at += 1;
            if eq_ignore_case(arg, b"idle") {
                let idle_ms = integer_or(value, "ERR Invalid IDLE option argument for XCLAIM")?;
                delivered_ms = Some(now_ms.wrapping_sub(idle_ms));
            } else if eq_ignore_case(arg, b"time") {
                let at_ms = integer_or(value, "ERR Invalid TIME option argument for XCLAIM")?;
                delivered_ms = Some(at_ms);
            } else if eq_ignore_case(arg, b"retrycount") {
                let text = "ERR Invalid RETRYCOUNT option argument for XCLAIM";
                retries = u64::try_from(integer_or(value, text)?).ok();
            } else if eq_ignore_case(arg, b"lastid") {
                last_id = strict_id(value, 0)?;
            } else {
                return Err(unknown());
            }
        }
        // A moment that can't be is now: clients may reckon with clocks of their own.
        let delivered_ms = delivered_ms.filter(|at_ms| (0..=latest_ms).contains(at_ms));
        let count = match retries {
            Some(retries) => Count::Set(retries),
            None if is_bare => Count::Leave,
            None => Count::Add,
        };
        let delivered_ms = delivered_ms.unwrap_or(now_ms);
        Ok(ClaimCall { idle_ms_min, ids, delivered_ms, count, forces, is_bare, last_id })
    }
}

/// The consumer of this name, made if there is none. Published once the group is closed again.
pub fn consumer(group: &mut Group, name: &[u8], now_ms: i64) -> (ConsumerKey, bool) {
    let found = group.find_consumer(name);
    let key = found.unwrap_or_else(|| group.add_consumer(name, now_ms));
    group.mark_seen(key, now_ms);
    (key, found.is_none())
}

fn notify(keys: &mut Keys, key: &[u8], is_new_consumer: bool, changes: u64) {
    if is_new_consumer {
        keys.wrote_beside(key, 1, Some(CONSUMER_CREATED));
    }
    if changes > 0 {
        keys.wrote_beside(key, changes, None);
    }
}

pub fn xclaim(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name) = (args.at(1), args.at(2));
    if access::read(ctx.keys, key)?.is_none_or(|stream| stream.group(name).is_none()) {
        return Err(no_group(key, name));
    }
    let now_ms = ctx.keys.real_now().0;
    // What is done again was delivered when it was delivered the first time.
    let latest_ms = if ctx.origin == Origin::Load { i64::MAX } else { now_ms };
    let call = ClaimCall::parse(args, now_ms, latest_ms)?;
    let is_recording = ctx.keys.is_recording();
    let Some((mut group, log)) = access::open_known_group(ctx.keys, key, name)? else {
        return Err(no_group(key, name));
    };
    let is_moved = call.last_id > group.last_id;
    let mut changes = u64::from(is_moved);
    let mut claims = Claims::default();
    group.last_id = group.last_id.max(call.last_id);
    let (to, is_new) = consumer(&mut group, args.at(3), now_ms);
    let mark = ctx.reply.begin_array();
    let mut len = 0;
    for &id in &call.ids {
        if !log.contains(id) {
            if group.acknowledge(id) {
                changes += 1;
                claims.gone.push(id);
            }
            continue;
        }
        let is_claimed = match group.pending(id) {
            None => call.forces,
            Some(pending) => {
                let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
                pending.owner.is_none() || call.idle_ms_min == 0 || idle_ms >= call.idle_ms_min
            }
        };
        if is_claimed {
            group.claim(id, to, call.delivered_ms, call.count);
            group.mark_active(to, now_ms);
            show(ctx.reply, log, id, call.is_bare);
            len += 1;
            changes += 1;
            if is_recording {
                claims.claimed.extend(Claimed::of(&group, id));
            }
        }
    }
    ctx.reply.end_array(mark, len);
    drop(group);
    notify(ctx.keys, key, is_new, changes);
    claims.record(ctx.keys, Reader { key, group: name, consumer: args.at(3) }, is_new);
    if is_moved {
        record::position(ctx.keys, key, name);
    }
    DONE
}

/// What became of pending entries.
#[derive(Default)]
struct Claims {
    claimed: Vec<Claimed>,
    gone: Ids,
}

impl Claims {
    fn record(&self, keys: &mut Keys, reader: Reader, is_new_consumer: bool) {
        if is_new_consumer {
            record::consumer_created(keys, reader);
        }
        record::acknowledged(keys, reader.key, reader.group, &self.gone);
        record::claimed(keys, reader, &self.claimed);
    }
}

fn show(reply: &mut dyn Sink, log: &Log, id: StreamId, is_bare: bool) {
    if is_bare {
        reply::id(reply, id);
    } else {
        reply::one(reply, log, id);
    }
}

struct AutoclaimCall {
    idle_ms_min: i64,
    start: StreamId,
    count: i64,
    is_bare: bool,
}

impl AutoclaimCall {
    fn parse(args: Args) -> Result<Self, Refusal> {
        let idle_ms_min =
            integer_or(args.at(4), "ERR Invalid min-idle-time argument for XAUTOCLAIM")?.max(0);
        let start = range_start(args.at(5))?;
        let (mut count, mut is_bare) = (AUTOCLAIM_COUNT_DEFAULT, false);
        let mut rest = args.from(6).iter();
        while let Some(arg) = rest.next() {
            if eq_ignore_case(arg, b"justid") {
                is_bare = true;
            } else if eq_ignore_case(arg, b"count") {
                let given = num::parse_i64(rest.next().ok_or(Refusal::Syntax)?);
                let given = given.filter(|count| (1..=AUTOCLAIM_COUNT_MAX).contains(count));
                count = given.ok_or(Refusal::text("ERR COUNT must be > 0"))?;
            } else {
                return Err(Refusal::Syntax);
            }
        }
        Ok(AutoclaimCall { idle_ms_min, start, count, is_bare })
    }
}

pub fn xautoclaim(ctx: &mut Ctx, args: Args) -> Outcome {
    let call = AutoclaimCall::parse(args)?;
    let (key, name) = (args.at(1), args.at(2));
    access::read(ctx.keys, key)?;
    let (now_ms, is_recording) = (ctx.keys.real_now().0, ctx.keys.is_recording());
    let Some((mut group, log)) = access::open_group(ctx.keys, key, name)? else {
        return Err(no_group(key, name));
    };
    let (to, is_new) = consumer(&mut group, args.at(3), now_ms);
    let mut claims = Claims::default();
    let (mut claimed, mut gone): (Ids, Ids) = (SmallVec::new(), SmallVec::new());
    let (mut left, mut attempts) = (call.count, call.count.saturating_mul(ATTEMPTS_PER_ENTRY));
    let mut from = Some(call.start);
    let first_from = |group: &Group, from: Option<StreamId>| {
        let first = from.and_then(|from| group.pending_in(IdRange::from(from)).next());
        first.map(|(id, pending)| (id, *pending))
    };
    while attempts > 0 && left > 0 {
        let Some((id, pending)) = first_from(&group, from) else {
            from = None;
            break;
        };
        attempts -= 1;
        from = id.next();
        let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
        if !log.contains(id) {
            group.acknowledge(id);
            gone.push(id);
            left -= 1;
        } else if pending.owner.is_none() || call.idle_ms_min == 0 || idle_ms >= call.idle_ms_min {
            let count = if call.is_bare { Count::Leave } else { Count::Add };
            group.claim(id, to, now_ms, count);
            group.mark_active(to, now_ms);
            claimed.push(id);
            if is_recording {
                claims.claimed.extend(Claimed::of(&group, id));
            }
            left -= 1;
        }
    }
    let next = first_from(&group, from).map_or(StreamId::MIN, |(id, _)| id);
    ctx.reply.array(3);
    reply::id(ctx.reply, next);
    ctx.reply.array(claimed.len());
    claimed.iter().for_each(|id| show(ctx.reply, log, *id, call.is_bare));
    ctx.reply.array(gone.len());
    gone.iter().for_each(|id| reply::id(ctx.reply, *id));
    drop(group);
    notify(ctx.keys, key, is_new, (claimed.len() + gone.len()) as u64);
    claims.gone = gone;
    claims.record(ctx.keys, Reader { key, group: name, consumer: args.at(3) }, is_new);
    DONE
}
