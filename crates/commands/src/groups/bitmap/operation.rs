//! BITOP.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::bits::{self, BitOperation};
use russet_engine::types::string::{self, Text, TextBytes};
use smallvec::SmallVec;

pub fn bitop(ctx: &mut Ctx, args: Args) -> Outcome {
    let operation = BitOperation::parse(args.at(1)).ok_or(Refusal::Syntax)?;
    let (target, sources) = (args.at(2), args.from(3));
    if !operation.takes(sources.len()) {
        return Err(too_few_or_many(operation));
    }
    let mut result = combine(ctx, operation, sources)?;
    let len = result.len();
    record(ctx.keys, operation, (target, &result));
    if len > 0 {
        ctx.keys.put(target, string::adopt(&mut result), None);
        ctx.keys.wrote(target, Event::string("set"));
    } else if ctx.keys.remove(target) {
        ctx.keys.wrote(target, Event::DEL);
    }
    ctx.reply.int(len as i64);
    DONE
}

/// Servers that don't know an operation would pass over the call without a word.
fn record(keys: &mut Keys, operation: BitOperation, (target, result): (&[u8], &[u8])) {
    let is_known = matches!(
        operation,
        BitOperation::And | BitOperation::Or | BitOperation::Xor | BitOperation::Not
    );
    match result {
        _ if is_known || !keys.is_recording() => {}
        [] if !keys.exists(target) => {}
        [] => keys.record([b"DEL", target]),
        bytes => keys.record([b"SET", target, bytes]),
    }
}

/// The sources are read where they lie.
fn combine(ctx: &mut Ctx, operation: BitOperation, keys: Args) -> Result<Vec<u8>, Refusal> {
    let entries = ctx.keys.read_all(keys.iter());
    let mut texts: SmallVec<[TextBytes<'_>; 8]> = SmallVec::new();
    for entry in &entries {
        let text = entry.map_or(Ok(Text::Bytes(b"")), |entry| string::text(&entry))?;
        texts.push(text.into_bytes());
    }
    let sources: SmallVec<[&[u8]; 8]> = texts.iter().map(TextBytes::as_slice).collect();
    Ok(bits::combine(operation, &sources))
}

fn too_few_or_many(operation: BitOperation) -> Refusal {
    let name = operation.name();
    Refusal::text(match operation {
        BitOperation::Not => "ERR BITOP NOT must be called with a single source key.".to_owned(),
        _ => format!("ERR BITOP {name} must be called with at least two source keys."),
    })
}
