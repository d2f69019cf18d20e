//! BITFIELD and BITFIELD_RO.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::string::{bytes_max, integer};
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::bits::{self, Field, Overflow};
use russet_engine::types::blob::Blob;
use russet_engine::types::string;
use russet_protocol::Sink;
use smallvec::SmallVec;

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    IncrBy(i64),
}

/// One operation of a call.
#[derive(Clone, Copy)]
struct Step {
    field: Field,
    offset: u64,
    action: Action,
    overflow: Overflow,
}

type Steps = SmallVec<[Step; 4]>;

fn parse(ctx: &Ctx, args: Args) -> Result<Steps, Refusal> {
    let bytes_max = bytes_max(ctx);
    let mut steps = Steps::new();
    let mut overflow = Overflow::default();
    let mut at = 2;
    while at < args.len() {
        let arg = args.at(at);
        let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        let left = args.len() - at - 1;
        if is("OVERFLOW") && left >= 1 {
            overflow = Overflow::parse(args.at(at + 1))
                .ok_or(Refusal::text("ERR Invalid OVERFLOW type specified"))?;
            at += 2;
            continue;
        }
        let is_get = is("GET");
        let args_len = if is_get { 3 } else { 4 };
        if !(is_get || is("SET") || is("INCRBY")) || left + 1 < args_len {
            return Err(Refusal::Syntax);
        }
        let field = Field::parse(args.at(at + 1)).ok_or(Refusal::BadFieldType)?;
        let offset = bits::parse_offset(args.at(at + 2), Some(field), bytes_max)
            .ok_or(Refusal::BadBitOffset)?;
        let action = match () {
            () if is_get => Action::Get,
            () if is("SET") => Action::Set(integer(args.at(at + 3))?),
            () => Action::IncrBy(integer(args.at(at + 3))?),
        };
        steps.push(Step { field, offset, action, overflow });
        at += args_len;
    }
    Ok(steps)
}

/// How long the string must be for all that is written, `None` if nothing is.
fn len_written(steps: &Steps) -> Option<usize> {
    let writes = steps.iter().filter(|step| !matches!(step.action, Action::Get));
    writes.map(|step| step.field.bytes_needed(step.offset)).max()
}

pub fn bitfield(ctx: &mut Ctx, args: Args) -> Outcome {
    let steps = parse(ctx, args)?;
    match len_written(&steps) {
        None => read(ctx, args.at(1), &steps),
        Some(len) => write(ctx, args.at(1), &steps, len),
    }
}

pub fn bitfield_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    let steps = parse(ctx, args)?;
    if len_written(&steps).is_some() {
        return Err(Refusal::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(ctx, args.at(1), &steps)
}

fn read(ctx: &mut Ctx, key: &[u8], steps: &Steps) -> Outcome {
    let reply = |reply: &mut dyn Sink, bytes: &[u8]| {
        reply.array(steps.len());
        steps.iter().for_each(|step| reply.int(step.field.read(bytes, step.offset)));
    };
    match ctx.keys.read(key) {
        None => reply(ctx.reply, b""),
        Some(entry) => string::text(&entry)?.with_bytes(|bytes| reply(ctx.reply, bytes)),
    }
    DONE
}

fn write(ctx: &mut Ctx, key: &[u8], steps: &Steps, len: usize) -> Outcome {
    let (changes, has_grown) = match ctx.keys.write(key) {
        Some(mut entry) => {
            let mut bytes = string::edit(&mut entry, len)?;
            let has_grown = bytes.bytes().len() < len;
            bytes.grow(len);
            (run(ctx.reply, &mut bytes, steps, has_grown), has_grown)
        }
        None => {
            let mut bytes = vec![0; len];
            let changes = run(ctx.reply, &mut bytes, steps, true);
            // COMPAT: the string is made even if every operation failed (test
            // `a_failed_bitfield_makes_its_string`).
            ctx.keys.put(key, string::adopt(&mut bytes), None);
            (changes, true)
        }
    };
    // DIFFERS: a string that was made or has grown has changed, even if every operation failed;
    // peers count and tell nothing then.
    let changes = changes.max(u64::from(has_grown));
    if changes > 0 {
        ctx.keys.wrote_many(key, Event::string("setbit"), changes);
    }
    DONE
}

/// Does all the steps and replies to each; how many changed something. In a string that has just
/// grown, every write is a change.
fn run(reply: &mut dyn Sink, bytes: &mut impl Blob, steps: &Steps, has_grown: bool) -> u64 {
    let mut changes = 0;
    reply.array(steps.len());
    for step in steps {
        let old = step.field.read(bytes.bytes(), step.offset);
        let new = match step.action {
            Action::Get => {
                reply.int(old);
                continue;
            }
            Action::Set(value) => step.field.fitted(value, step.overflow),
            Action::IncrBy(by) => step.field.increased(old, by, step.overflow),
        };
        let Some(new) = new else {
            reply.null();
            continue;
        };
        reply.int(if matches!(step.action, Action::Set(_)) { old } else { new });
        step.field.write(bytes, step.offset, new);
        changes += u64::from(has_grown || old != new);
    }
    changes
}
