//! One bit: SETBIT and GETBIT.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::string::bytes_max;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::types::blob::Blob;
use russet_engine::types::{bits, string};

fn offset(ctx: &Ctx, arg: &[u8]) -> Result<u64, Refusal> {
    bits::parse_offset(arg, None, bytes_max(ctx)).ok_or(Refusal::BadBitOffset)
}

pub fn setbit(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let offset = offset(ctx, args.at(2))?;
    let is_on = match num::parse_i64(args.at(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Refusal::BadBit),
    };
    let len = bits::bytes_for_bit(offset);
    let (was_on, has_changed) = match ctx.keys.write(key) {
        Some(mut entry) => {
            let mut bytes = string::edit(&mut entry, len)?;
            let has_grown = bytes.bytes().len() < len;
            bytes.grow(len);
            let was_on = bits::set_bit(&mut bytes, offset, is_on);
            (was_on, has_grown || was_on != is_on)
        }
        None => {
            let mut bytes = vec![0; len];
            bits::set_bit(&mut bytes, offset, is_on);
            ctx.keys.put(key, string::adopt(&mut bytes), None);
            (false, true)
        }
    };
    if has_changed {
        ctx.keys.wrote(key, Event::string("setbit"));
    }
    ctx.reply.int(i64::from(was_on));
    DONE
}

pub fn getbit(ctx: &mut Ctx, args: Args) -> Outcome {
    let offset = offset(ctx, args.at(2))?;
    let is_on = match ctx.keys.read(args.at(1)) {
        None => false,
        Some(entry) => string::text(&entry)?.with_bytes(|bytes| bits::bit(bytes, offset)),
    };
    ctx.reply.int(i64::from(is_on));
    DONE
}
