//! COMMAND DOCS: what a command is for, its history and its grammar.

use super::info::sorted_subcommands;
use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_catalog::arg::Arg;
use russet_catalog::{Command, Spec};
use russet_protocol::Sink;

pub fn docs(ctx: &mut Ctx, args: Args) -> Outcome {
    // COMPAT: a name that is asked for twice is listed twice, an unknown one not at all
    // (tests/wire/server/command.wire).
    let commands: Vec<Command> = if args.len() == 2 {
        super::named(ctx.node).collect()
    } else {
        args.from(2).iter().filter_map(|name| ctx.node.lookup_full(name)).collect()
    };
    ctx.reply.map(commands.len());
    commands.iter().for_each(|command| write_docs(ctx.reply, *command));
    DONE
}

/// A name and what belongs to it.
fn write_docs(reply: &mut dyn Sink, command: Command) {
    let spec = command.spec();
    reply.bulk(spec.full_name.as_bytes());
    reply.map(fields_len(command));
    write_text(reply, "summary", spec.summary);
    write_text(reply, "since", spec.since);
    write_text(reply, "group", spec.group.name());
    if !spec.complexity.is_empty() {
        write_text(reply, "complexity", spec.complexity);
    }
    write_state(reply, spec);
    if !spec.history.is_empty() {
        reply.bulk(b"history");
        reply.set(spec.history.len());
        for change in spec.history {
            reply.array(2);
            reply.bulk(change.version.as_bytes());
            reply.bulk(change.note.as_bytes());
        }
    }
    if !spec.args.is_empty() {
        reply.bulk(b"arguments");
        write_args(reply, spec.args);
    }
    let subcommands = sorted_subcommands(command);
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        subcommands.iter().for_each(|sub| write_docs(reply, *sub));
    }
}

fn fields_len(command: Command) -> usize {
    let spec = command.spec();
    let optional = [
        !spec.complexity.is_empty(),
        spec.internal || spec.deprecated.is_some(),
        !spec.history.is_empty(),
        !spec.args.is_empty(),
        command.is_container(),
    ];
    let deprecation = if spec.deprecated.is_some() { 2 } else { 0 };
    3 + optional.iter().filter(|is_there| **is_there).count() + deprecation
}

fn write_text(reply: &mut dyn Sink, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

/// Whether a command should be used, and what by.
fn write_state(reply: &mut dyn Sink, spec: &Spec) {
    if spec.internal || spec.deprecated.is_some() {
        reply.bulk(b"doc_flags");
        reply.set(usize::from(spec.internal) + usize::from(spec.deprecated.is_some()));
        if spec.deprecated.is_some() {
            reply.status("deprecated");
        }
        if spec.internal {
            reply.status("syscmd");
        }
    }
    if let Some(deprecation) = spec.deprecated {
        write_text(reply, "deprecated_since", deprecation.since);
        write_text(reply, "replaced_by", deprecation.replaced_by);
    }
}

fn write_args(reply: &mut dyn Sink, args: &[Arg]) {
    reply.array(args.len());
    args.iter().for_each(|arg| write_arg(reply, arg));
}

fn write_arg(reply: &mut dyn Sink, arg: &Arg) {
    let flags = [
        (arg.optional, "optional"),
        (arg.multiple, "multiple"),
        (arg.multiple_token, "multiple_token"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, it)| *it).collect();
    let optional = [
        !arg.display.is_empty(),
        arg.kind.key_spec().is_some(),
        arg.token.is_some(),
        !arg.since.is_empty(),
        !arg.deprecated_since.is_empty(),
        !flags.is_empty(),
        !arg.parts.is_empty(),
    ];
    reply.map(2 + optional.iter().filter(|is_there| **is_there).count());
    write_text(reply, "name", arg.name);
    write_text(reply, "type", arg.kind.name());
    if !arg.display.is_empty() {
        write_text(reply, "display_text", arg.display);
    }
    if let Some(index) = arg.kind.key_spec() {
        reply.bulk(b"key_spec_index");
        reply.int(i64::from(index));
    }
    if let Some(token) = arg.token {
        write_text(reply, "token", token);
    }
    if !arg.since.is_empty() {
        write_text(reply, "since", arg.since);
    }
    if !arg.deprecated_since.is_empty() {
        write_text(reply, "deprecated_since", arg.deprecated_since);
    }
    if !flags.is_empty() {
        reply.bulk(b"flags");
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.status(flag));
    }
    if !arg.parts.is_empty() {
        reply.bulk(b"arguments");
        write_args(reply, arg.parts);
    }
}
