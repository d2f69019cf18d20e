//! COMMAND and COMMAND INFO: names, arity, flags and key specs.

use super::Rendered;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::node::Node;
use russet_base::{Args, SharedBytes};
use russet_catalog::Command;
use russet_catalog::spec::{Begin, Find, Flags, KeySpec};
use russet_protocol::{Resp, RespWriter, Sink};

/// Longest name of a category with its `@`, or more.
const CATEGORY_BYTES_MAX: usize = 16;

pub fn all(ctx: &mut Ctx, _args: Args) -> Outcome {
    let (node, resp) = (ctx.node, ctx.reply.resp());
    match ctx.reply.wire() {
        Some(mut wire) => wire.push_shared(&rendered(node, resp).bytes),
        None => {
            let commands: Vec<Command> = super::named(node).collect();
            ctx.reply.array(commands.len());
            commands.iter().for_each(|command| write_command(ctx.reply, *command));
        }
    }
    DONE
}

/// What is sent of all commands, made when it is first asked for.
fn rendered(node: &Node, resp: Resp) -> &Rendered {
    let render = || {
        let commands: Vec<Command> = super::named(node).collect();
        let mut each = vec![0..0; Command::COUNT].into_boxed_slice();
        let mut bytes = Vec::new();
        RespWriter::new(&mut bytes, resp).array(commands.len());
        for command in commands {
            let start = bytes.len();
            write_command(&mut RespWriter::new(&mut bytes, resp), command);
            each[command as usize] = start..bytes.len();
        }
        Rendered { bytes: SharedBytes::new(bytes), each }
    };
    node.command_replies.all[usize::from(resp == Resp::V3)].get_or_init(render)
}

pub fn info(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() == 2 {
        return all(ctx, args);
    }
    let names = args.from(2);
    ctx.reply.array(names.len());
    for name in names.iter() {
        match ctx.node.lookup_full(name) {
            Some(command) => write_kept(ctx, command),
            None => ctx.reply.null(),
        }
    }
    DONE
}

/// Writes what is kept of a command, or else makes it.
fn write_kept(ctx: &mut Ctx, command: Command) {
    let (node, resp) = (ctx.node, ctx.reply.resp());
    if let Some(mut wire) = ctx.reply.wire() {
        let rendered = rendered(node, resp);
        let kept = rendered.each[command as usize].clone();
        if !kept.is_empty() {
            return wire.extend_from_slice(&rendered.bytes[kept]);
        }
    }
    write_command(ctx.reply, command);
}

/// In the order of the alphabet, as other servers list them.
pub(super) fn sorted_subcommands(command: Command) -> Vec<Command> {
    let mut subcommands = command.subcommands().to_vec();
    subcommands.sort_by_key(|sub| sub.spec().name);
    subcommands
}

fn write_command(reply: &mut dyn Sink, command: Command) {
    let spec = command.spec();
    let range = spec.legacy_range();
    let mut flags = spec.flags;
    if range.is_partial {
        flags = flags.or(Flags::MOVABLE_KEYS);
    }
    reply.array(10);
    reply.bulk(spec.full_name.as_bytes());
    reply.int(spec.arity.as_printed());
    reply.set(flags.names().count());
    flags.names().for_each(|name| reply.status(name));
    reply.int(range.first);
    reply.int(range.last);
    reply.int(range.step);
    reply.set(spec.categories.names().count());
    let mut category = String::with_capacity(CATEGORY_BYTES_MAX);
    for name in spec.categories.names() {
        category.clear();
        category.extend(["@", name]);
        reply.status(&category);
    }
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.key_specs.len());
    spec.key_specs.iter().for_each(|keys| write_key_spec(reply, keys));
    let subcommands = sorted_subcommands(command);
    reply.array(subcommands.len());
    subcommands.iter().for_each(|sub| write_command(reply, *sub));
}

fn write_key_spec(reply: &mut dyn Sink, keys: &KeySpec) {
    let has_notes = !keys.notes.is_empty();
    reply.map(3 + usize::from(has_notes));
    if has_notes {
        reply.bulk(b"notes");
        reply.bulk(keys.notes.as_bytes());
    }
    reply.bulk(b"flags");
    reply.set(keys.access.names().count());
    keys.access.names().for_each(|name| reply.status(name));
    reply.bulk(b"begin_search");
    match keys.begin {
        Begin::Index(index) => {
            write_search(reply, "index", 1);
            write_field(reply, "index", i64::from(index));
        }
        Begin::Keyword { token, from } => {
            write_search(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(token.as_bytes());
            write_field(reply, "startfrom", i64::from(from));
        }
        Begin::Unknown => write_search(reply, "unknown", 0),
    }
    reply.bulk(b"find_keys");
    match keys.find {
        Find::Range { last, step, limit } => {
            write_search(reply, "range", 3);
            write_field(reply, "lastkey", i64::from(last));
            write_field(reply, "keystep", i64::from(step));
            write_field(reply, "limit", i64::from(limit));
        }
        Find::Count { at, first, step } => {
            write_search(reply, "keynum", 3);
            write_field(reply, "keynumidx", i64::from(at));
            write_field(reply, "firstkey", i64::from(first));
            write_field(reply, "keystep", i64::from(step));
        }
        Find::Unknown => write_search(reply, "unknown", 0),
    }
}

/// How a search is done; its numbers follow.
fn write_search(reply: &mut dyn Sink, kind: &str, fields: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn write_field(reply: &mut dyn Sink, name: &str, value: i64) {
    reply.bulk(name.as_bytes());
    reply.int(value);
}
