//! HELP of every container, written from the catalog.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::arg::{Arg, ArgKind};

/// A container called by its bare name: its arity has refused that already, unless it means
/// something of its own.
pub fn container(ctx: &mut Ctx, _args: Args) -> Outcome {
    Err(Refusal::Arity(ctx.command.full_name()))
}

/// The subcommands of the container that was asked, in the order of the alphabet, each with its
/// syntax and its summary.
pub fn help(ctx: &mut Ctx, _args: Args) -> Outcome {
    let Some(parent) = ctx.command.parent() else {
        return Err(Refusal::Syntax);
    };
    let mut subcommands = parent.subcommands().to_vec();
    subcommands.retain(|sub| *sub != ctx.command);
    subcommands.sort_by_key(|sub| sub.spec().name);
    let name = parent.spec().name.to_uppercase();
    // The head, two lines for each, and two for HELP itself.
    ctx.reply.array(1 + subcommands.len() * 2 + 2);
    ctx.reply.status(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for sub in subcommands {
        ctx.reply.status(&syntax(sub));
        ctx.reply.status(&format!("    {}.", sub.spec().summary));
    }
    ctx.reply.status("HELP");
    ctx.reply.status("    Print this help.");
    DONE
}

/// A subcommand's own name and its arguments: `SETNAME <connection-name>`.
fn syntax(command: Command) -> String {
    let spec = command.spec();
    let mut line = spec.name.to_uppercase();
    for arg in spec.args {
        line.push(' ');
        write_arg(&mut line, arg);
    }
    line
}

fn write_arg(line: &mut String, arg: &Arg) {
    if arg.optional {
        line.push('[');
    }
    if let Some(token) = arg.token {
        line.push_str(token);
        if arg.kind != ArgKind::PureToken {
            line.push(' ');
        }
    }
    match arg.kind {
        ArgKind::PureToken => {}
        // The brackets of an optional choice are enough.
        ArgKind::OneOf if arg.optional && arg.token.is_none() => {
            write_parts(line, arg.parts, "|");
        }
        ArgKind::OneOf => {
            line.push('(');
            write_parts(line, arg.parts, "|");
            line.push(')');
        }
        ArgKind::Block => write_parts(line, arg.parts, " "),
        _ => {
            line.push('<');
            line.push_str(arg.display);
            line.push('>');
        }
    }
    if arg.multiple {
        line.push_str(" ...");
    }
    if arg.optional {
        line.push(']');
    }
}

fn write_parts(line: &mut String, parts: &[Arg], between: &str) {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            line.push_str(between);
        }
        write_arg(line, part);
    }
}
