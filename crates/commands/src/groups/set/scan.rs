//! SSCAN: a walk over a set's members in steps.

use super::access;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::groups::scanning::{ScanOptions, Scanned, parse_cursor};
use russet_base::Args;
use russet_base::glob::Glob;
use russet_engine::types::set::SetRef;

/// Bytes that the members of one call usually take up.
const GATHERED_BYTES_USUAL: usize = 1024;

/// Members that were found: the reply needs the cursor, which is known last, before them.
struct Found {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

pub fn sscan(ctx: &mut Ctx, args: Args) -> Outcome {
    let cursor = parse_cursor(args.at(2))?;
    let Some(set) = access::read(ctx.keys, args.at(1))? else {
        ctx.reply.array(2);
        ctx.reply.bulk_int(0);
        ctx.reply.array(0);
        return DONE;
    };
    let options = ScanOptions::parse(args.from(3), Scanned::Set)?;
    let (cursor, found) = walk(set, cursor, &options);
    ctx.reply.array(2);
    ctx.reply.bulk_int(cursor as i64);
    ctx.reply.array(found.ends.len());
    let mut start = 0;
    for end in found.ends {
        ctx.reply.bulk(&found.bytes[start..end]);
        start = end;
    }
    DONE
}

fn walk(set: SetRef<'_>, cursor: u64, options: &ScanOptions) -> (u64, Found) {
    let glob = options.pattern.map(Glob::new).filter(|glob| !glob.is_star());
    let mut found = Found { bytes: Vec::with_capacity(GATHERED_BYTES_USUAL), ends: Vec::new() };
    let next = set.scan(cursor, options.count, &mut |member| {
        member.with_bytes(|text| {
            if glob.is_none_or(|glob| glob.matches(text)) {
                found.bytes.extend_from_slice(text);
                found.ends.push(found.bytes.len());
            }
        });
    });
    (next, found)
}
