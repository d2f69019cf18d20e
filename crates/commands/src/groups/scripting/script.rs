//! SCRIPT: the cache of scripts, and the end of those that run too long.

use super::cache::{RunTotals, Script, Sha};
use super::compiling::Compiling;
use super::running::Ending;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::text::eq_ignore_case;
use russet_protocol::Sink;
use std::sync::Arc;

pub fn load(ctx: &mut Ctx, args: Args) -> Outcome {
    let known = ctx.node.scripts.cache().by_source(args.at(2));
    let script = match known {
        Some(script) => script,
        None => Arc::new(Script::compile(args.at(2), &Compiling::of_call(ctx, args))?),
    };
    let script = ctx.node.scripts.add_script(script, None);
    ctx.reply.bulk(&script.sha);
    DONE
}

pub fn exists(ctx: &mut Ctx, args: Args) -> Outcome {
    let cache = ctx.node.scripts.cache();
    ctx.reply.array(args.len() - 2);
    for sha in args.from(2).iter() {
        ctx.reply.int(i64::from(cache.by_sha(sha).is_some()));
    }
    DONE
}

pub fn show(ctx: &mut Ctx, args: Args) -> Outcome {
    match ctx.node.scripts.cache().by_sha(args.at(2)) {
        Some(script) => ctx.reply.bulk(&script.source),
        None => return Err(Refusal::text("NOSCRIPT No matching script.")),
    }
    DONE
}

pub fn flush(ctx: &mut Ctx, args: Args) -> Outcome {
    let is_mode = |arg: &[u8]| eq_ignore_case(arg, b"async") || eq_ignore_case(arg, b"sync");
    if args.len() > 3 || args.get(2).is_some_and(|arg| !is_mode(arg)) {
        return Err(Refusal::text("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    ctx.node.scripts.forget_scripts();
    ctx.node.scripts.drop_machines(false);
    ctx.reply.ok();
    DONE
}

pub fn kill(ctx: &mut Ctx, _args: Args) -> Outcome {
    end_slow(ctx, false)
}

/// Ends what runs too long: scripts, or functions.
pub fn end_slow(ctx: &mut Ctx, is_function: bool) -> Outcome {
    match ctx.node.scripts.running.end_slow(is_function) {
        Ending::Ended => ctx.reply.ok(),
        Ending::NoneRuns => {
            return Err(Refusal::text("NOTBUSY No scripts in execution right now."));
        }
        Ending::HaveWritten => {
            return Err(Refusal::text(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way using \
                 the SHUTDOWN NOSAVE command.",
            ));
        }
        Ending::OtherKind => {
            return Err(Refusal::text(match is_function {
                true => BUSY_SCRIPT,
                false => BUSY_FUNCTION,
            }));
        }
    }
    DONE
}

/// The reply to those who need what a slow script holds.
pub const BUSY_SCRIPT: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
pub const BUSY_FUNCTION: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// DIFFERS: there is no debugger for scripts; only NO is taken.
pub fn debug(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 4 {
        let written = escape(args.at(1));
        return Err(Refusal::text(format!(
            "ERR unknown subcommand or wrong number of arguments for '{written}'. Try SCRIPT HELP."
        )));
    }
    let arg = args.at(2);
    if let Some(engine) = args.get(3).filter(|engine| !eq_ignore_case(engine, b"lua")) {
        let engine = escape(engine);
        return Err(Refusal::text(format!(
            "ERR No scripting engine found with name '{engine}' to enable debug"
        )));
    }
    if eq_ignore_case(arg, b"no") {
        ctx.reply.ok();
        return DONE;
    }
    if eq_ignore_case(arg, b"yes") || eq_ignore_case(arg, b"sync") {
        return Err(Refusal::text("ERR Russet has no script debugger"));
    }
    Err(Refusal::text("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}

/// What runs: a script by its digest, or a function with its library.
enum Name {
    Script(Sha),
    Function(Vec<u8>, Vec<u8>),
}

/// SCRIPT STATS: what the runs of each script, and of each function that has run, came to, the
/// costliest first.
pub fn stats(ctx: &mut Ctx, _args: Args) -> Outcome {
    let mut rows: Vec<(Name, RunTotals, bool)> = Vec::new();
    for script in ctx.node.scripts.cache().scripts() {
        rows.push((Name::Script(script.sha), script.stats.totals(), script.is_wide));
    }
    for library in ctx.node.scripts.libraries().iter() {
        let functions = library.functions.iter().filter(|function| function.stats.has_run());
        rows.extend(functions.map(|function| {
            let name = Name::Function(function.name.clone(), library.name.clone());
            (name, function.stats.totals(), function.is_wide)
        }));
    }
    rows.sort_by_key(|(_, totals, _)| std::cmp::Reverse(totals.micros));
    ctx.reply.array(rows.len());
    for (name, totals, is_wide) in rows {
        write_row(ctx.reply, &name, totals, is_wide);
    }
    DONE
}

fn write_row(reply: &mut dyn Sink, name: &Name, totals: RunTotals, is_wide: bool) {
    let fields = [
        ("calls", totals.calls),
        ("errors", totals.errors),
        ("microseconds", totals.micros),
        ("microseconds_max", totals.micros_max),
        ("operations", totals.operations),
    ];
    let names = if matches!(name, Name::Script(_)) { 1 } else { 2 };
    reply.map(names + fields.len() + 1);
    match name {
        Name::Script(sha) => {
            reply.bulk(b"sha1");
            reply.bulk(sha);
        }
        Name::Function(function, library) => {
            reply.bulk(b"function");
            reply.bulk(function);
            reply.bulk(b"library");
            reply.bulk(library);
        }
    }
    for (name, count) in fields {
        reply.bulk(name.as_bytes());
        reply.int(count as i64);
    }
    reply.bulk(b"locks");
    reply.bulk(if is_wide { b"wide" } else { b"narrow" });
}
