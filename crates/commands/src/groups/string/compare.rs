//! Comparing strings: DIGEST and LCS.

use super::{bytes_max, integer};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::digest::Digest;
use russet_engine::types::lcs::{self, LcsError, Match, Pair};
use russet_engine::types::string::{self, Text, TextBytes};
use russet_protocol::Sink;

pub fn digest(ctx: &mut Ctx, args: Args) -> Outcome {
    match ctx.keys.read(args.at(1)) {
        None => ctx.reply.null(),
        Some(entry) => {
            let digest = string::text(&entry)?.with_bytes(Digest::of);
            ctx.reply.bulk(digest.as_bytes());
        }
    }
    DONE
}

#[derive(Default)]
struct LcsOptions {
    wants_len: bool,
    wants_ranges: bool,
    wants_range_len: bool,
    len_min: usize,
}

impl LcsOptions {
    fn parse(args: Args) -> Result<Self, Refusal> {
        let mut options = LcsOptions::default();
        let mut at = 3;
        while at < args.len() {
            let arg = args.at(at);
            let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
            match args.get(at + 1) {
                _ if is("IDX") => options.wants_ranges = true,
                _ if is("LEN") => options.wants_len = true,
                _ if is("WITHMATCHLEN") => options.wants_range_len = true,
                Some(number) if is("MINMATCHLEN") => {
                    options.len_min = usize::try_from(integer(number)?).unwrap_or(0);
                    at += 1;
                }
                _ => return Err(Refusal::Syntax),
            }
            at += 1;
        }
        if options.wants_len && options.wants_ranges {
            return Err(Refusal::text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

pub fn lcs(ctx: &mut Ctx, args: Args) -> Outcome {
    let bytes_max = bytes_max(ctx);
    let entries = ctx.keys.read_all(args.from(1).iter().take(2));
    let text = |index: usize| -> Result<TextBytes<'_>, Refusal> {
        let stored = entries.get(index).copied().flatten();
        let text = stored.map_or(Ok(Text::Bytes(b"")), |entry| string::text(&entry));
        let is_string = |_| Refusal::text("ERR The specified keys must contain string values");
        Ok(text.map_err(is_string)?.into_bytes())
    };
    let (first, second) = (text(0)?, text(1)?);
    let options = LcsOptions::parse(args)?;
    let pair = Pair { first: first.as_slice(), second: second.as_slice() };
    if options.wants_ranges {
        let (ranges, len) = lcs::matches(pair, options.len_min, bytes_max).map_err(refusal)?;
        reply_ranges(ctx.reply, &ranges, len, options.wants_range_len);
    } else if options.wants_len {
        ctx.reply.int(lcs::length(pair, bytes_max).map_err(refusal)? as i64);
    } else {
        ctx.reply.bulk(&lcs::text(pair, bytes_max).map_err(refusal)?);
    }
    DONE
}

fn reply_ranges(reply: &mut dyn Sink, ranges: &[Match], total: usize, with_len: bool) {
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(ranges.len());
    for range in ranges {
        reply.array(if with_len { 3 } else { 2 });
        for start in [range.first_start, range.second_start] {
            reply.array(2);
            reply.int(start as i64);
            reply.int((start + range.len - 1) as i64);
        }
        if with_len {
            reply.int(range.len as i64);
        }
    }
    reply.bulk(b"len");
    reply.int(total as i64);
}

fn refusal(error: LcsError) -> Refusal {
    Refusal::text(match error {
        LcsError::StringTooLong => "ERR String too long for LCS",
        LcsError::TableTooLarge => {
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
        }
    })
}
