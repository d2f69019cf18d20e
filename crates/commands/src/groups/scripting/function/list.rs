//! FUNCTION LIST and STATS.

use super::Library;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::glob::Glob;
use russet_base::text::eq_ignore_case;
use russet_protocol::Sink;
use std::sync::Arc;

pub fn list(ctx: &mut Ctx, args: Args) -> Outcome {
    let (mut pattern, mut has_code) = (None, false);
    let mut rest = args.from(2).iter();
    while let Some(arg) = rest.next() {
        if !has_code && eq_ignore_case(arg, b"withcode") {
            has_code = true;
        } else if pattern.is_none() && eq_ignore_case(arg, b"libraryname") {
            let given = rest.next();
            pattern = Some(given.ok_or(Refusal::text("ERR library name argument was not given"))?);
        } else {
            let arg = escape(arg);
            return Err(Refusal::text(format!("ERR Unknown argument {arg}")));
        }
    }
    let glob = pattern.map(Glob::new);
    let libraries: Vec<Arc<Library>> = {
        let libraries = ctx.node.scripts.libraries();
        let is_wanted =
            |library: &&Arc<Library>| glob.as_ref().is_none_or(|glob| glob.matches(&library.name));
        libraries.iter().filter(is_wanted).cloned().collect()
    };
    ctx.reply.array(libraries.len());
    for library in libraries {
        write_library(ctx.reply, &library, has_code);
    }
    DONE
}

fn write_library(reply: &mut dyn Sink, library: &Library, has_code: bool) {
    reply.map(if has_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&function.name);
        reply.bulk(b"description");
        match &function.description {
            Some(text) => reply.bulk(text),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        reply.set(function.flags.names().count());
        function.flags.names().for_each(|name| reply.status(name));
    }
    if has_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.source);
    }
}

pub fn stats(ctx: &mut Ctx, _args: Args) -> Outcome {
    let scripts = &ctx.node.scripts;
    let libraries = scripts.libraries();
    ctx.reply.map(2);
    ctx.reply.bulk(b"running_script");
    match scripts.running.slowest() {
        None => ctx.reply.null(),
        Some(run) => {
            let now = ctx.node.clock.monotonic_micros();
            ctx.reply.map(3);
            ctx.reply.bulk(b"name");
            ctx.reply.bulk(&run.name);
            ctx.reply.bulk(b"command");
            ctx.reply.array(run.args.len());
            run.args.iter().for_each(|arg| ctx.reply.bulk(arg));
            ctx.reply.bulk(b"duration_ms");
            ctx.reply.int((now.saturating_sub(run.started_micros) / 1000) as i64);
        }
    }
    let (libraries_count, functions_count) = libraries.counts();
    ctx.reply.bulk(b"engines");
    ctx.reply.map(1);
    ctx.reply.bulk(b"LUA");
    ctx.reply.map(2);
    ctx.reply.bulk(b"libraries_count");
    ctx.reply.int(libraries_count as i64);
    ctx.reply.bulk(b"functions_count");
    ctx.reply.int(functions_count as i64);
    DONE
}
