//! SLOWLOG and COMMANDLOG: reading the logs of costly commands.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::slowlog::LogKind;
use russet_base::{Args, num};
use russet_catalog::Command;

/// Entries that SLOWLOG GET shows by default.
const SHOWN: usize = 10;

pub(crate) fn slowlog_get(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 3 {
        return Err(Refusal::text(
            "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
        ));
    }
    let count = args.get(2).map(parse_count).transpose()?.unwrap_or(SHOWN);
    write_entries(ctx, LogKind::Slow, count)
}

pub(crate) fn slowlog_len(ctx: &mut Ctx, _args: Args) -> Outcome {
    write_len(ctx, LogKind::Slow)
}

pub(crate) fn slowlog_reset(ctx: &mut Ctx, _args: Args) -> Outcome {
    reset(ctx, LogKind::Slow)
}

pub(crate) fn commandlog_get(ctx: &mut Ctx, args: Args) -> Outcome {
    let count = parse_count(args.at(2))?;
    let kind = parse_kind(args.at(3))?;
    write_entries(ctx, kind, count)
}

pub(crate) fn commandlog_len(ctx: &mut Ctx, args: Args) -> Outcome {
    let kind = parse_kind(args.at(2))?;
    write_len(ctx, kind)
}

pub(crate) fn commandlog_reset(ctx: &mut Ctx, args: Args) -> Outcome {
    let kind = parse_kind(args.at(2))?;
    reset(ctx, kind)
}

/// How many entries are wanted; -1 is all.
fn parse_count(arg: &[u8]) -> Result<usize, Refusal> {
    match num::parse_i64(arg) {
        Some(-1) => Ok(usize::MAX),
        Some(count) if count >= 0 => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(Refusal::text("ERR count should be greater than or equal to -1")),
    }
}

fn parse_kind(arg: &[u8]) -> Result<LogKind, Refusal> {
    LogKind::named(arg).ok_or_else(|| {
        Refusal::text("ERR type should be one of the following: slow, large-request, large-reply")
    })
}

fn write_entries(ctx: &mut Ctx, kind: LogKind, count: usize) -> Outcome {
    let entries = ctx.node.log_of(kind).newest(count);
    ctx.reply.array(entries.len());
    for entry in entries {
        // DIFFERS: the log of waits has one more, the command that was waited for.
        let has_holder = kind == LogKind::ShardWait;
        ctx.reply.array(if has_holder { 7 } else { 6 });
        ctx.reply.int(i64::try_from(entry.id).unwrap_or(i64::MAX));
        ctx.reply.int(entry.unix_seconds);
        ctx.reply.int(i64::try_from(entry.cost).unwrap_or(i64::MAX));
        ctx.reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| ctx.reply.bulk(arg));
        ctx.reply.bulk(entry.client_address.as_bytes());
        ctx.reply.bulk(&entry.client_name);
        if has_holder {
            ctx.reply.bulk(entry.holder.map_or("", Command::full_name).as_bytes());
        }
    }
    DONE
}

fn write_len(ctx: &mut Ctx, kind: LogKind) -> Outcome {
    ctx.reply.int(ctx.node.log_of(kind).len() as i64);
    DONE
}

fn reset(ctx: &mut Ctx, kind: LogKind) -> Outcome {
    ctx.node.log_of(kind).reset();
    ctx.reply.ok();
    DONE
}
