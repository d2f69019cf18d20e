//! EVAL, EVALSHA and their read-only forms.

use super::cache::{SHA_DIGITS, Script};
use super::code::Code;
use super::compiling::Compiling;
use super::run::{Request, on_machine, run};
use crate::call::ctx::{Ctx, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use russet_base::{Args, num};
use std::sync::Arc;

/// The script of a call, from the cache, or else compiled and put there; None if it is refused. The
/// call itself gets the reason.
pub fn plan_script(node: &Node, args: Args) -> Option<Arc<Script>> {
    let source = args.at(1);
    if let Some(script) = node.scripts.cache().by_source(source) {
        return Some(script);
    }
    if node.scripts.refused.find(source).is_some() {
        return None;
    }
    match Script::compile(source, &Compiling::planned(node, args)) {
        Ok(script) => {
            let now = node.clock.monotonic_micros();
            Some(node.scripts.add_script(Arc::new(script), Some(now)))
        }
        Err(refusal) => {
            node.scripts.refused.add(source, refusal);
            None
        }
    }
}

pub fn eval(ctx: &mut Ctx, args: Args) -> Outcome {
    run_source(ctx, args, false)
}

pub fn eval_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    run_source(ctx, args, true)
}

pub fn evalsha(ctx: &mut Ctx, args: Args) -> Outcome {
    run_digest(ctx, args, false)
}

pub fn evalsha_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    run_digest(ctx, args, true)
}

fn run_source(ctx: &mut Ctx, args: Args, is_read_only: bool) -> Outcome {
    let call = (parsed(ctx, args)?, is_read_only);
    if let Some(code) = ctx.take_code(args) {
        return run_script(ctx, &code, call);
    }
    // It could not be compiled, as planning has found.
    let (scripts, source) = (&ctx.node.scripts, args.at(1));
    let refusal = match scripts.refused.take(source) {
        Some(refusal) => refusal,
        None => match Script::compile(source, &Compiling::of_call(ctx, args)) {
            Err(refusal) => refusal,
            // By now it can be: it was killed, or out of memory.
            Ok(_) => Refusal::text("ERR Error compiling script: it was interrupted, try again"),
        },
    };
    Err(refused(ctx, args, refusal))
}

fn run_digest(ctx: &mut Ctx, args: Args, is_read_only: bool) -> Outcome {
    // COMPAT: what can't be a digest is not found, whatever follows it; test
    // tests/wire/scripting/evalsha.wire, "what is no digest".
    if args.at(1).len() != SHA_DIGITS {
        return Err(refused(ctx, args, no_script()));
    }
    let call = (parsed(ctx, args)?, is_read_only);
    let Some(code) = ctx.take_code(args) else {
        return Err(refused(ctx, args, no_script()));
    };
    run_script(ctx, &code, call)
}

fn no_script() -> Refusal {
    Refusal::text("NOSCRIPT No matching script.")
}

fn parsed<'a>(ctx: &mut Ctx, args: Args<'a>) -> Result<ScriptArgs<'a>, Refusal> {
    ScriptArgs::parse(args).map_err(|refusal| refused(ctx, args, refusal))
}

/// A call that does not run is shown to those who monitor, too.
pub fn refused(ctx: &mut Ctx, args: Args, refusal: Refusal) -> Refusal {
    show(ctx, args);
    refusal
}

/// COMPAT: the call is shown before the commands that its code calls, not when it is over; test
/// tests/wire/server/monitor.wire, "scripts".
pub fn show(ctx: &mut Ctx, args: Args) {
    if ctx.node.monitors.is_on() {
        ctx.node.monitors.show(ctx, args);
    }
}

/// The arguments of a call: all of them, the keys, and the rest.
#[derive(Clone, Copy)]
pub struct ScriptArgs<'a> {
    pub all: Args<'a>,
    pub keys: Args<'a>,
    pub rest: Args<'a>,
}

impl<'a> ScriptArgs<'a> {
    /// `name script numkeys key... arg...`
    pub fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let count = num::parse_i64(args.at(2)).ok_or(Refusal::NotInteger)?;
        Self::split(args, count)
    }

    pub fn split(args: Args<'a>, count: i64) -> Result<Self, Refusal> {
        let rest = args.from(3);
        if count > rest.len() as i64 {
            let text = "ERR Number of keys can't be greater than number of args";
            return Err(Refusal::text(text));
        }
        let count = usize::try_from(count)
            .map_err(|_| Refusal::text("ERR Number of keys can't be negative"))?;
        Ok(ScriptArgs { all: args, keys: rest.first(count), rest: rest.from(count) })
    }
}

/// The reply to those who call by a read-only command what does not say that it only reads.
pub const MAY_WRITE: &str = "ERR Can not execute a script with write flag using *_ro command.";

fn run_script(ctx: &mut Ctx, code: &Code, (args, is_read_only): (ScriptArgs, bool)) -> Outcome {
    let Code::Script(script) = code else { return Err(refused(ctx, args.all, no_script())) };
    if is_read_only && script.flags.has_shebang && !script.flags.no_writes {
        return Err(refused(ctx, args.all, Refusal::text(MAY_WRITE)));
    }
    // One without flags is asked for each of its commands.
    if script.flags.has_shebang && script.flags.is_refused_without_memory(ctx.session) {
        return Err(refused(ctx, args.all, Refusal::OutOfMemory));
    }
    let request = Request {
        code,
        name: &script.sha,
        args,
        is_read_only: is_read_only || script.flags.no_writes,
        allows_oom: script.flags.allow_oom,
        is_wide: script.is_wide,
        compile_micros: script.take_compile_micros(),
        stats: &script.stats,
    };
    on_machine(ctx, false, |ctx, machine| run(ctx, &mut machine.lua, &request))
}
