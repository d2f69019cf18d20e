//! FCALL and FCALL_RO.

use crate::call::ctx::{Ctx, Outcome};
use crate::error::Refusal;
use crate::groups::scripting::code::Code;
use crate::groups::scripting::eval::{MAY_WRITE, ScriptArgs, refused};
use crate::groups::scripting::run::{Request, on_machine, run};
use russet_base::{Args, num};

pub fn fcall(ctx: &mut Ctx, args: Args) -> Outcome {
    call(ctx, args, false)
}

pub fn fcall_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    call(ctx, args, true)
}

fn call(ctx: &mut Ctx, args: Args, is_read_only: bool) -> Outcome {
    let code = ctx.take_code(args);
    let Some(code @ Code::Function(found)) = &code else {
        return Err(refused(ctx, args, Refusal::text("ERR Function not found")));
    };
    let function = &found.library.functions[found.index];
    if function.flags.is_refused_without_memory(ctx.session) {
        return Err(refused(ctx, args, Refusal::OutOfMemory));
    }
    let may_run = !is_read_only || function.flags.no_writes;
    let script_args = script_args(args, may_run).map_err(|refusal| refused(ctx, args, refusal))?;
    let request = Request {
        code,
        name: &function.name,
        args: script_args,
        is_read_only: is_read_only || function.flags.no_writes,
        allows_oom: function.flags.allow_oom,
        is_wide: function.is_wide,
        compile_micros: 0,
        stats: &function.stats,
    };
    match &found.library.own {
        Some(own) => own.run(ctx, |ctx, lua| run(ctx, lua, &request)),
        None => on_machine(ctx, true, |ctx, machine| run(ctx, &mut machine.lua, &request)),
    }
}

fn script_args(args: Args, may_run: bool) -> Result<ScriptArgs, Refusal> {
    let count = num::parse_i64(args.at(2));
    let count = count.ok_or(Refusal::text("ERR Bad number of keys provided"))?;
    let split = ScriptArgs::split(args, count)?;
    if may_run { Ok(split) } else { Err(Refusal::text(MAY_WRITE)) }
}
