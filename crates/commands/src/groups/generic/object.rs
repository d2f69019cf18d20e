//! OBJECT: how a value is kept.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::config::Directive;
use russet_base::Args;
use russet_engine::access::idle_seconds;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::{self, Object};

const HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Name the encoding in which the value is kept.",
    "FREQ <key>",
    "    Tell how often the key was used lately, on a logarithmic scale.",
    "IDLETIME <key>",
    "    Tell how many seconds the key has not been used for.",
    "REFCOUNT <key>",
    "    Tell how many references the value has.",
    "HELP",
    "    Print this help.",
];

pub fn object_help(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.array(HELP.len());
    HELP.iter().for_each(|line| ctx.reply.status(line));
    DONE
}

/// The key's entry: a look that is counted but leaves no other trace.
fn look<'k>(ctx: &'k mut Ctx, key: &[u8]) -> Option<EntryRef<'k, Object>> {
    match ctx.keys.exists(key) {
        true => ctx.keys.effects.hits += 1,
        false => ctx.keys.effects.misses += 1,
    }
    ctx.keys.peek(key)
}

pub fn object_encoding(ctx: &mut Ctx, args: Args) -> Outcome {
    match look(ctx, args.at(2)).map(|entry| value::encoding(&entry)) {
        Some(name) => ctx.reply.bulk(name.as_bytes()),
        None => ctx.reply.null(),
    }
    DONE
}

pub fn object_refcount(ctx: &mut Ctx, args: Args) -> Outcome {
    match look(ctx, args.at(2)) {
        Some(_) => ctx.reply.int(1),
        None => ctx.reply.null(),
    }
    DONE
}

/// Whether keys are to be judged by how often and not by how lately they are used.
fn is_lfu(ctx: &Ctx) -> bool {
    ctx.node.config.choice(Directive::MaxMemoryPolicy).ends_with("-lfu")
}

pub fn object_idletime(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(access) = look(ctx, args.at(2)).map(|entry| entry.access()) else {
        ctx.reply.null();
        return DONE;
    };
    if is_lfu(ctx) {
        return Err(Refusal::text(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
             when switching between policies at runtime LRU and LFU data will take some time to \
             adjust.",
        ));
    }
    ctx.reply.int(i64::from(idle_seconds(access, ctx.keys.now)));
    DONE
}

pub fn object_freq(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(access) = look(ctx, args.at(2)).map(|entry| entry.access()) else {
        ctx.reply.null();
        return DONE;
    };
    if !is_lfu(ctx) {
        return Err(Refusal::text(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        ));
    }
    ctx.reply.int(i64::from(ctx.node.keyspace.use_count(access, ctx.keys.now)));
    DONE
}
