//! Counting and finding bits: BITCOUNT and BITPOS.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::string::integer;
use russet_base::Args;
use russet_engine::types::bits::{self, BitSpan, Unit};
use russet_engine::types::string;

/// `[start [end [BYTE|BIT]]]`.
/// COMPAT: the unit is read before the end, so a bad unit is told first.
fn span(args: Args) -> Result<Option<BitSpan>, Refusal> {
    if args.len() > 3 {
        return Err(Refusal::Syntax);
    }
    let Some(start) = args.get(0) else {
        return Ok(None);
    };
    let start = integer(start)?;
    let unit = match args.get(2) {
        None => Unit::Byte,
        Some(arg) if arg.eq_ignore_ascii_case(b"BYTE") => Unit::Byte,
        Some(arg) if arg.eq_ignore_ascii_case(b"BIT") => Unit::Bit,
        Some(_) => return Err(Refusal::Syntax),
    };
    let end = args.get(1).map(integer).transpose()?;
    Ok(Some(BitSpan { start, end, unit }))
}

pub fn bitcount(ctx: &mut Ctx, args: Args) -> Outcome {
    let span = span(args.from(2))?;
    let count = match ctx.keys.read(args.at(1)) {
        None => 0,
        Some(entry) => string::text(&entry)?.with_bytes(|bytes| bits::count(bytes, span)),
    };
    ctx.reply.int(count as i64);
    DONE
}

pub fn bitpos(ctx: &mut Ctx, args: Args) -> Outcome {
    let wanted = match integer(args.at(2))? {
        0 => false,
        1 => true,
        _ => return Err(Refusal::text("ERR The bit argument must be 1 or 0.")),
    };
    let span = span(args.from(3))?;
    let position = match ctx.keys.read(args.at(1)) {
        // A missing string is nothing but zeros.
        None => (!wanted).then_some(0),
        Some(entry) => {
            string::text(&entry)?.with_bytes(|bytes| bits::position(bytes, wanted, span))
        }
    };
    ctx.reply.int(position.map_or(-1, |position| position as i64));
    DONE
}
