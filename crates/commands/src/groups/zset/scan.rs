//! ZSCAN.

use super::access;
use super::reply;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::groups::scanning::{ScanOptions, Scanned, parse_cursor};
use russet_base::Args;
use russet_base::float::format_f64;
use russet_base::glob::Glob;

pub fn zscan(ctx: &mut Ctx, args: Args) -> Outcome {
    let cursor = parse_cursor(args.at(2))?;
    let Some(zset) = access::read(ctx.keys, args.at(1))? else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        ctx.reply.array(0);
        return DONE;
    };
    let options = ScanOptions::parse(args.from(3), Scanned::Zset)?;
    let glob = options.pattern.map(Glob::new).filter(|glob| !glob.is_star());
    let mut found = Vec::new();
    let count = usize::try_from(options.count).unwrap_or(usize::MAX);
    let next = zset.scan(cursor, count, |pair| {
        let is_wanted = glob.is_none_or(|glob| pair.member.with_bytes(|text| glob.matches(text)));
        if is_wanted {
            found.push((pair.member.to_vec(), pair.score));
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(if options.is_bare { found.len() } else { found.len() * 2 });
    let mut text = Vec::new();
    for (member, score) in &found {
        ctx.reply.bulk(member);
        if !options.is_bare {
            text.clear();
            // COMPAT: only a listpack shows scores as other commands do;
            // tests/wire/zset/zscan.wire.
            match zset.is_listpack() {
                true => format_f64(*score, &mut text),
                false => reply::write_17_digits(*score, &mut text),
            }
            ctx.reply.bulk(&text);
        }
    }
    DONE
}
