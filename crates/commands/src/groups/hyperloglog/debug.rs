//! PFDEBUG and PFSELFTEST.

use super::sparse_bytes_max;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::escape::escape;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, Random};
use russet_engine::types::hyperloglog::stored::{self, Union};
use russet_engine::types::hyperloglog::{Encoding, Fault, REGISTERS, runs, self_test};
use std::fmt::Write;

pub fn pfdebug(ctx: &mut Ctx, args: Args) -> Outcome {
    let (subcommand, key) = (args.at(1), args.at(2));
    if eq_ignore_case(subcommand, b"simd") {
        return simd(ctx, key);
    }
    let Some(entry) = ctx.keys.peek(key) else {
        return Err(Refusal::text("ERR The specified key does not exist"));
    };
    let encoding = stored::encoding(&entry)?;
    if eq_ignore_case(subcommand, b"getreg") {
        getreg(ctx, key)
    } else if eq_ignore_case(subcommand, b"decode") {
        if encoding != Encoding::Sparse {
            return Err(Refusal::text("ERR HLL encoding is not sparse"));
        }
        let text = decode(stored::register_bytes(&entry)?)?;
        ctx.reply.bulk(text.as_bytes());
        DONE
    } else if eq_ignore_case(subcommand, b"encoding") {
        ctx.reply.status(match encoding {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        });
        DONE
    } else if eq_ignore_case(subcommand, b"todense") {
        let was_sparse = make_dense(ctx, key)?;
        ctx.reply.int(i64::from(was_sparse));
        DONE
    } else {
        let subcommand = escape(subcommand);
        Err(Refusal::text(format!("ERR Unknown PFDEBUG subcommand '{subcommand}'")))
    }
}

/// Registers are merged by one path here, which is always the wide one; the argument is accepted.
fn simd(ctx: &mut Ctx, switch: &[u8]) -> Outcome {
    if eq_ignore_case(switch, b"on") {
        ctx.reply.status("enabled");
    } else if eq_ignore_case(switch, b"off") {
        ctx.reply.status("disabled");
    } else {
        return Err(Refusal::text("ERR Argument must be ON or OFF"));
    }
    DONE
}

/// COMPAT: looking at the registers makes the value dense.
fn getreg(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    make_dense(ctx, key)?;
    let mut union = Union::default();
    union.add_all(ctx.keys.peek(key).into_iter())?;
    ctx.reply.array(REGISTERS);
    for register in union.registers().iter() {
        ctx.reply.int(i64::from(register));
    }
    DONE
}

fn make_dense(ctx: &mut Ctx, key: &[u8]) -> Result<bool, Refusal> {
    let Some(mut entry) = ctx.keys.write(key) else {
        return Ok(false);
    };
    let was_sparse = stored::make_dense(&mut entry)?;
    if was_sparse {
        ctx.keys.changed(key);
        ctx.keys.record([b"PFDEBUG", b"TODENSE", key]);
    }
    Ok(was_sparse)
}

/// The runs as text: `z:` and `Z:` zeros, `v:` a value and how often.
fn decode(registers: &[u8]) -> Result<String, Fault> {
    let mut text = String::new();
    for run in runs(registers) {
        let run = run?;
        let space = if text.is_empty() { "" } else { " " };
        let written = match (run.value, run.is_long_zeros()) {
            (0, false) => write!(text, "{space}z:{}", run.len),
            (0, true) => write!(text, "{space}Z:{}", run.len),
            (value, _) => write!(text, "{space}v:{value},{}", run.len),
        };
        debug_assert!(written.is_ok(), "a string takes any text");
    }
    Ok(text)
}

pub fn pfselftest(ctx: &mut Ctx, _args: Args) -> Outcome {
    self_test(&mut Random::from_entropy(), sparse_bytes_max(ctx)).map_err(Refusal::text)?;
    ctx.reply.ok();
    DONE
}
