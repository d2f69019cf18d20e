//! EVAL, EVALSHA and their read-only forms.

use super::cache::{SHA_DIGITS, Script};
use super::compiling::Compiling;
use super::machine::Lua;
use super::run::{Code, Request, on_machine, run};
use crate::ctx::{Ctx, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use russet_base::{Args, num};
use std::sync::Arc;

/// The script of a call, from the cache, or else compiled and put there; None if it is refused. The
/// call itself is told why.
pub fn plan_script(node: &Node, args: Args) -> Option<Arc<Script>> {
    let source = args.at(1);
    if let Some(script) = node.scripts.cache().by_source(source) {
        return Some(script);
    }
    if node.scripts.refused.find(source).is_some() {
        return None;
    }
    match Script::compile(source, &Compiling::planned(node, args)) {
        Ok(script) => Some(node.scripts.add_script(Arc::new(script), true)),
        Err(refusal) => {
            node.scripts.refused.add(source, refusal);
            None
        }
    }
}

fn find_or_compile(ctx: &Ctx, args: Args) -> Result<Arc<Script>, Refusal> {
    let (scripts, source) = (&ctx.node.scripts, args.at(1));
    if let Some(script) = scripts.cache().by_source(source) {
        return Ok(script);
    }
    if let Some(refusal) = scripts.refused.take(source) {
        return Err(refusal);
    }
    let script = Script::compile(source, &Compiling::of_call(ctx, args))?;
    Ok(scripts.add_script(Arc::new(script), true))
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
    let (words, source) = (parsed(ctx, args)?, args.at(1));
    on_machine(ctx, false, |ctx, machine| {
        if let Some(script) = machine.known.script_of(source) {
            return run_script(ctx, &mut machine.lua, script, (words, is_read_only));
        }
        let script = find_or_compile(ctx, args);
        let script = script.map_err(|refusal| refused(ctx, args, refusal))?;
        machine.known.add_script(script.clone());
        run_script(ctx, &mut machine.lua, &script, (words, is_read_only))
    })
}

fn run_digest(ctx: &mut Ctx, args: Args, is_read_only: bool) -> Outcome {
    let sha = args.at(1);
    // COMPAT: what can't be a digest is not found, whatever follows it; test
    // tests/wire/scripting/evalsha.wire, "what is no digest".
    if sha.len() != SHA_DIGITS {
        return Err(refused(ctx, args, no_script()));
    }
    let words = parsed(ctx, args)?;
    on_machine(ctx, false, |ctx, machine| {
        if let Some(script) = machine.known.script(sha) {
            return run_script(ctx, &mut machine.lua, script, (words, is_read_only));
        }
        let found = ctx.node.scripts.cache().by_sha(sha);
        let missing = || refused(ctx, args, no_script());
        let script = found.ok_or_else(missing)?;
        machine.known.add_script(script.clone());
        run_script(ctx, &mut machine.lua, &script, (words, is_read_only))
    })
}

fn no_script() -> Refusal {
    Refusal::text("NOSCRIPT No matching script.")
}

fn parsed<'a>(ctx: &Ctx, args: Args<'a>) -> Result<Words<'a>, Refusal> {
    Words::parse(args).map_err(|refusal| refused(ctx, args, refusal))
}

/// A call that does not run is shown to those who monitor, too.
pub fn refused(ctx: &Ctx, args: Args, refusal: Refusal) -> Refusal {
    show(ctx, args);
    refusal
}

/// COMPAT: the call is shown before the commands that its code calls, not when it is over; test
/// tests/wire/server/monitor.wire, "scripts".
pub fn show(ctx: &Ctx, args: Args) {
    if ctx.node.monitors.is_on() {
        ctx.node.monitors.show(ctx.node, ctx.session, args);
    }
}

/// The words of a call: all of them, the keys, and the rest.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    pub all: Args<'a>,
    pub keys: Args<'a>,
    pub rest: Args<'a>,
}

impl<'a> Words<'a> {
    /// `name script numkeys key... arg...`
    pub fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let count = num::parse_i64(args.at(2)).ok_or(Refusal::NotInteger)?;
        Self::split(args, count)
    }

    pub fn split(args: Args<'a>, count: i64) -> Result<Self, Refusal> {
        let words = args.from(3);
        if count > words.len() as i64 {
            let text = "ERR Number of keys can't be greater than number of args";
            return Err(Refusal::text(text));
        }
        let count = usize::try_from(count)
            .map_err(|_| Refusal::text("ERR Number of keys can't be negative"))?;
        Ok(Words { all: args, keys: words.first(count), rest: words.from(count) })
    }
}

/// Told to those who call by a read-only command what does not say that it only reads.
pub const MAY_WRITE: &str = "ERR Can not execute a script with write flag using *_ro command.";

fn run_script(
    ctx: &mut Ctx,
    lua: &mut Lua,
    script: &Script,
    (words, is_read_only): (Words, bool),
) -> Outcome {
    if is_read_only && script.flags.has_shebang && !script.flags.no_writes {
        return Err(refused(ctx, words.all, Refusal::text(MAY_WRITE)));
    }
    let request = Request {
        code: Code::Script(script),
        name: &script.sha,
        words,
        is_read_only: is_read_only || script.flags.no_writes,
        is_wide: script.is_wide,
        compile_micros: script.take_compile_micros(),
        stats: &script.stats,
    };
    run(ctx, lua, &request)
}
