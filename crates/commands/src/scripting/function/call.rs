//! FCALL and FCALL_RO.

use crate::ctx::{Ctx, Outcome};
use crate::error::Refusal;
use crate::scripting::eval::{MAY_WRITE, Words, refused};
use crate::scripting::function::Library;
use crate::scripting::machine::{Lua, Machine};
use crate::scripting::run::{Code, Request, on_machine, run};
use russet_base::{Args, num};

pub fn fcall(ctx: &mut Ctx, args: Args) -> Outcome {
    call(ctx, args, false)
}

pub fn fcall_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    call(ctx, args, true)
}

fn call(ctx: &mut Ctx, args: Args, is_read_only: bool) -> Outcome {
    let name = args.at(1);
    if let Some(libraries) = ctx.session.libraries.clone() {
        return on_machine(ctx, true, |ctx, machine| {
            let missing = || refused(ctx, args, Refusal::text("ERR Function not found"));
            let (library, index) = libraries.function(name).ok_or_else(missing)?;
            run_function(ctx, &mut machine.lua, (&library, index), (args, is_read_only))
        });
    }
    on_machine(ctx, true, |ctx, machine| {
        let Machine { lua, known, .. } = machine;
        if let Some((library, index)) = known.function(name) {
            return run_function(ctx, lua, (library, *index), (args, is_read_only));
        }
        let found = ctx.node.scripts.libraries().function(name);
        let missing = || refused(ctx, args, Refusal::text("ERR Function not found"));
        let (library, index) = found.ok_or_else(missing)?;
        known.add_function(library.clone(), index);
        run_function(ctx, lua, (&library, index), (args, is_read_only))
    })
}

fn run_function(
    ctx: &mut Ctx,
    lua: &mut Lua,
    (library, index): (&Library, usize),
    (args, is_read_only): (Args, bool),
) -> Outcome {
    let function = &library.functions[index];
    let may_run = !is_read_only || function.flags.no_writes;
    let words = words(args, may_run).map_err(|refusal| refused(ctx, args, refusal))?;
    let request = Request {
        code: Code::Function(library, index),
        name: &function.name,
        words,
        is_read_only: is_read_only || function.flags.no_writes,
        is_wide: function.is_wide,
        compile_micros: 0,
        stats: &function.stats,
    };
    run(ctx, lua, &request)
}

fn words(args: Args, may_run: bool) -> Result<Words, Refusal> {
    let count = num::parse_i64(args.at(2));
    let count = count.ok_or(Refusal::text("ERR Bad number of keys provided"))?;
    let words = Words::split(args, count)?;
    if may_run { Ok(words) } else { Err(Refusal::text(MAY_WRITE)) }
}
