//! XADD.

use super::trim::{TrimOptions, is_due, trim_stream};
use super::{GivenId, access, given_id, limits, reply};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::Origin;
use crate::error::Refusal;
use russet_base::hash::KeyHasher;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, OwnedArgs};
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::stream::{MEMBERS_BYTES_MAX, StreamId, Trim, stored};

/// Where the ID of a new entry comes from.
enum NewId {
    Auto,
    Given(GivenId),
}

/// `IDMP producer message` and `IDMPAUTO producer`.
struct Producer<'a> {
    name: &'a [u8],
    /// None: it is made of the fields.
    message: Option<&'a [u8]>,
}

struct AddCall<'a> {
    id: NewId,
    creates: bool,
    trim: Option<Trim>,
    producer: Option<Producer<'a>>,
    /// The first field's argument.
    fields_at: usize,
}

impl<'a> AddCall<'a> {
    fn parse(args: Args<'a>, origin: Origin, block_entries_max: u64) -> Result<Self, Refusal> {
        let mut trim_options = TrimOptions::default();
        let (mut creates, mut producer) = (true, None);
        let mut at = 2;
        let mut id = NewId::Auto;
        while at < args.len() {
            let arg = args.at(at);
            if arg == b"*" {
                break;
            }
            if let Some(next) = trim_options.take(args, at)? {
                at = next;
            } else if eq_ignore_case(arg, b"nomkstream") {
                creates = false;
                at += 1;
            } else if let Some((given, next)) = take_producer(args, at, producer.is_some())? {
                producer = Some(given);
                at = next;
            } else {
                id = NewId::Given(given_id(arg, 0)?);
                // What is done again has the ID that it was given the first time.
                if producer.is_some() && origin != Origin::Load {
                    return Err(Refusal::text(
                        "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs",
                    ));
                }
                break;
            }
        }
        let trim = trim_options.finish(block_entries_max)?;
        let fields_at = at + 1;
        let fields = args.len().saturating_sub(fields_at);
        let is_note = origin == Origin::Load && producer.is_some() && fields == 0;
        if !is_note && (fields < 2 || fields % 2 == 1) {
            return Err(Refusal::Arity("xadd"));
        }
        if matches!(id, NewId::Given(GivenId::Whole(StreamId::MIN))) {
            return Err(Refusal::text("ERR The ID specified in XADD must be greater than 0-0"));
        }
        Ok(AddCall { id, creates, trim, producer, fields_at })
    }

    /// The new entry's ID behind `last`.
    fn next_id(&self, last: StreamId, now_ms: u64) -> Result<StreamId, Refusal> {
        if last == StreamId::MAX {
            return Err(Refusal::text(
                "ERR The stream has exhausted the last possible ID, unable to add more items",
            ));
        }
        let id = match self.id {
            NewId::Auto if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
            NewId::Auto => last.next(),
            NewId::Given(GivenId::Open(ms)) if ms == last.ms => {
                last.seq.checked_add(1).map(|seq| StreamId::new(ms, seq))
            }
            NewId::Given(GivenId::Open(ms)) => Some(StreamId::new(ms, 0)),
            NewId::Given(GivenId::Whole(id)) => Some(id),
        };
        id.filter(|id| *id > last).ok_or(Refusal::text(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ))
    }
}

fn take_producer(
    args: Args<'_>,
    at: usize,
    is_again: bool,
) -> Result<Option<(Producer<'_>, usize)>, Refusal> {
    let left = args.len() - at - 1;
    let is_auto = eq_ignore_case(args.at(at), b"idmpauto") && left >= 1;
    let is_named = eq_ignore_case(args.at(at), b"idmp") && left >= 2;
    if !is_auto && !is_named {
        return Ok(None);
    }
    if is_again {
        return Err(Refusal::text("ERR syntax error, IDMP/IDMPAUTO specified multiple times"));
    }
    let name = args.at(at + 1);
    let message = is_named.then(|| args.at(at + 2));
    match (name, message) {
        (b"", None) => {
            Err(Refusal::text("ERR syntax error, IDMPAUTO requires a non-empty producer ID"))
        }
        (b"", Some(_)) => {
            Err(Refusal::text("ERR syntax error, IDMP requires a non-empty producer ID"))
        }
        (_, Some(b"")) => {
            Err(Refusal::text("ERR syntax error, IDMP requires a non-empty idempotent ID"))
        }
        _ => Ok(Some((Producer { name, message }, at + if is_named { 3 } else { 2 }))),
    }
}

/// What IDMPAUTO takes for a message's name: the same for the same fields in whatever order.
fn fields_digest<'w>(fields: impl Iterator<Item = &'w [u8]>) -> [u8; 16] {
    const SEEDS: [u64; 2] = [0x6964_6d70, 0x6175_746f];
    let (mut sums, mut mixes) = ([0u64; 2], [0u64; 2]);
    let mut fields = fields.peekable();
    let mut pair = Vec::new();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        pair.clear();
        pair.extend_from_slice(&(name.len() as u64).to_le_bytes());
        pair.extend_from_slice(name);
        pair.extend_from_slice(value);
        for at in 0..2 {
            let hash = KeyHasher::with_seed(SEEDS[at]).hash(&pair);
            sums[at] = sums[at].wrapping_add(hash);
            mixes[at] ^= hash.rotate_left(1);
        }
    }
    let halves = [sums[0] ^ mixes[1], sums[1] ^ mixes[0]];
    (u128::from(halves[0]) | u128::from(halves[1]) << 64).to_le_bytes()
}

pub fn xadd(ctx: &mut Ctx, args: Args) -> Outcome {
    let limits = limits(ctx);
    let call = AddCall::parse(args, ctx.origin, limits.entries_max)?;
    let fields = args.from(call.fields_at).iter();
    let (key, now_ms) = (args.at(1), u64::try_from(ctx.keys.real_now().0).unwrap_or(0));
    if let Some(producer) = &call.producer {
        return match args.len() > call.fields_at {
            true => add_once(ctx, args, &call),
            false => note_message(ctx, key, producer, &call),
        };
    }
    let too_large = call.fields_bytes(args) > MEMBERS_BYTES_MAX;
    let too_large_refusal = || Refusal::text("ERR Elements are too large to be stored");
    let mut trim = call.trim;
    let id = match ctx.keys.write(key) {
        Some(entry) => {
            let last = stored::stream(&entry.as_ref())?.last_id();
            let id = call.next_id(last, now_ms)?;
            if too_large {
                return Err(too_large_refusal());
            }
            let stream = stored::append(entry, id, fields, limits)?;
            trim = trim.filter(|trim| is_due(stream, *trim));
            id
        }
        None if !call.creates => {
            ctx.reply.null();
            return DONE;
        }
        None => {
            let id = call.next_id(StreamId::MIN, now_ms)?;
            if too_large {
                return Err(too_large_refusal());
            }
            stored::build(id, fields, limits, |value| ctx.keys.put(key, value, None));
            id
        }
    };
    record_entry(ctx.keys, (args, &call), None, id);
    finish(ctx, key, trim, id)
}

/// Records a new entry, with its ID and what its producer called it.
fn record_entry(
    keys: &mut Keys,
    (args, call): (Args, &AddCall),
    message: Option<(&[u8], &[u8])>,
    id: StreamId,
) {
    if !keys.is_recording() {
        return;
    }
    let mut record: OwnedArgs = [b"XADD", args.at(1)].into_iter().collect();
    if let Some((producer, message)) = message {
        [b"IDMP", producer, message].iter().for_each(|arg| record.push(arg));
    }
    record.push(id.text().as_bytes());
    record.extend(args.from(call.fields_at));
    keys.effects.records.push_owned(keys.db, record);
}

impl AddCall<'_> {
    fn fields_bytes(&self, args: Args) -> usize {
        args.from(self.fields_at).bytes_total()
    }
}

/// Publishes the new entry, trims and replies.
fn finish(ctx: &mut Ctx, key: &[u8], trim: Option<Trim>, id: StreamId) -> Outcome {
    ctx.keys.wrote(key, Event::stream("xadd"));
    if let Some(trim) = trim
        && trim_stream(ctx.keys, key, trim)? > 0
    {
        ctx.keys.also(key, Event::stream("xtrim"));
    }
    reply::id(ctx.reply, id);
    DONE
}

/// Out of a log, behind an entry: how its producer called it.
fn note_message(ctx: &mut Ctx, key: &[u8], producer: &Producer, call: &AddCall) -> Outcome {
    let now_ms = u64::try_from(ctx.keys.real_now().0).unwrap_or(0);
    if let (Some(message), NewId::Given(GivenId::Whole(id))) = (producer.message, &call.id)
        && let Some(stream) = access::edit(ctx.keys, key)?
    {
        let idempotency = stream.idempotency_mut();
        idempotency.expire(producer.name, now_ms);
        idempotency.note(producer.name, message, *id);
        ctx.keys.wrote_beside(key, 1, None);
    }
    ctx.reply.null();
    DONE
}

/// XADD with a producer's name: a message that it has sent before is not added again.
fn add_once(ctx: &mut Ctx, args: Args, call: &AddCall) -> Outcome {
    let Some(producer) = &call.producer else { return Err(Refusal::Syntax) };
    let limits = limits(ctx);
    let fields = args.from(call.fields_at).iter();
    let (key, now_ms) = (args.at(1), u64::try_from(ctx.keys.real_now().0).unwrap_or(0));
    let digest;
    let message = match producer.message {
        Some(message) => message,
        None => {
            digest = fields_digest(fields.clone());
            &digest[..]
        }
    };
    let last = match access::peek(ctx.keys, key)? {
        None if !call.creates => {
            ctx.reply.null();
            return DONE;
        }
        None => StreamId::MIN,
        Some(stream) => stream.last_id(),
    };
    if let Some(stream) = access::edit(ctx.keys, key)? {
        let idempotency = stream.idempotency_mut();
        idempotency.expire(producer.name, now_ms);
        if let Some(id) = idempotency.find(producer.name, message) {
            ctx.keys.wrote_beside(key, 1, None);
            reply::id(ctx.reply, id);
            return DONE;
        }
    }
    let id = call.next_id(last, now_ms)?;
    if call.fields_bytes(args) > MEMBERS_BYTES_MAX {
        return Err(Refusal::text("ERR Elements are too large to be stored"));
    }
    if !ctx.keys.exists(key) {
        ctx.keys.put(key, stored::value(Default::default()), None);
    }
    if let Some(stream) = access::edit(ctx.keys, key)? {
        stream.log.append(id, fields, limits);
        stream.idempotency_mut().note(producer.name, message, id);
    }
    record_entry(ctx.keys, (args, call), Some((producer.name, message)), id);
    finish(ctx, key, call.trim, id)
}
