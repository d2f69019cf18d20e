//! HSCAN.

use super::{read, reply_element};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::groups::scanning::{ScanOptions, Scanned, parse_cursor};
use russet_base::Args;
use russet_base::glob::Glob;
use russet_engine::types::hash::Field;

pub fn hscan(ctx: &mut Ctx, args: Args) -> Outcome {
    let cursor = parse_cursor(args.at(2))?;
    let hasher = ctx.keys.keyspace().hasher();
    let Some(hash) = read(ctx.keys, args.at(1))? else {
        ctx.reply.array(2);
        ctx.reply.bulk_int(0);
        ctx.reply.array(0);
        return DONE;
    };
    let options = ScanOptions::parse(args.from(3), Scanned::Hash)?;
    let glob = options.pattern.map(Glob::new).filter(|glob| !glob.is_star());
    let mut found: Vec<Field<'_>> = Vec::new();
    let next = hash.scan((cursor, options.count), hasher, |field| {
        if glob.is_none_or(|glob| field.name.with_bytes(|name| glob.matches(name))) {
            found.push(field);
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(if options.is_bare { found.len() } else { 2 * found.len() });
    for field in found {
        reply_element(ctx.reply, field.name);
        if !options.is_bare {
            reply_element(ctx.reply, field.value);
        }
    }
    DONE
}
