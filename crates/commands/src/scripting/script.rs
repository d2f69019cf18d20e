//! SCRIPT: the cache of scripts, and the end of those that run too long.

use super::cache::{RunStats, Script};
use super::compiling::Compiling;
use super::running::Ending;
use crate::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_base::told::told;
use russet_protocol::Sink;
use std::sync::Arc;

pub fn load(ctx: &mut Ctx, args: Args) -> Outcome {
    let known = ctx.node.scripts.cache().by_source(args.at(2));
    let script = match known {
        Some(script) => script,
        None => Arc::new(Script::compile(args.at(2), &Compiling::of_call(ctx, args))?),
    };
    let script = ctx.node.scripts.add_script(script, false);
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
    let is_mode = |word: &[u8]| eq_ignore_case(word, b"async") || eq_ignore_case(word, b"sync");
    if args.len() > 3 || args.get(2).is_some_and(|word| !is_mode(word)) {
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

/// Told to those who need what a slow script holds.
pub const BUSY_SCRIPT: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
pub const BUSY_FUNCTION: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// DIFFERS: there is no debugger for scripts; only NO is taken.
pub fn debug(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 4 {
        let written = told(args.at(1));
        return Err(Refusal::text(format!(
            "ERR unknown subcommand or wrong number of arguments for '{written}'. Try SCRIPT HELP."
        )));
    }
    let word = args.at(2);
    if let Some(engine) = args.get(3).filter(|engine| !eq_ignore_case(engine, b"lua")) {
        let engine = told(engine);
        return Err(Refusal::text(format!(
            "ERR No scripting engine found with name '{engine}' to enable debug"
        )));
    }
    if eq_ignore_case(word, b"no") {
        ctx.reply.ok();
        return DONE;
    }
    if eq_ignore_case(word, b"yes") || eq_ignore_case(word, b"sync") {
        return Err(Refusal::text("ERR Russet has no script debugger"));
    }
    Err(Refusal::text("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}

/// SCRIPT STATS: what the runs of each script came to, the costliest first.
pub fn stats(ctx: &mut Ctx, _args: Args) -> Outcome {
    let mut scripts: Vec<Arc<Script>> = ctx.node.scripts.cache().scripts().cloned().collect();
    scripts.sort_by_key(|script| std::cmp::Reverse(script.stats.totals().micros));
    ctx.reply.array(scripts.len());
    for script in scripts {
        ctx.reply.map(2 + RUN_STATS_FIELDS);
        ctx.reply.bulk(b"sha1");
        ctx.reply.bulk(&script.sha);
        write_run_stats(ctx.reply, &script.stats);
        ctx.reply.bulk(b"reach");
        ctx.reply.bulk(if script.is_wide { b"wide" } else { b"narrow" });
    }
    DONE
}

pub const RUN_STATS_FIELDS: usize = 5;

pub fn write_run_stats(reply: &mut dyn Sink, stats: &RunStats) {
    let totals = stats.totals();
    let fields = [
        ("calls", totals.calls),
        ("errors", totals.errors),
        ("microseconds", totals.micros),
        ("microseconds_max", totals.micros_max),
        ("operations", totals.operations),
    ];
    for (name, count) in fields {
        reply.bulk(name.as_bytes());
        reply.int(count as i64);
    }
}
