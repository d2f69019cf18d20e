//! FUNCTION DUMP and RESTORE: all libraries as one payload, in the format that Redis and Valkey
//! exchange.

use super::edit::wrong_arity;
use super::load::{self, Source};
use super::{Libraries, Library};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::scripting::compiling::Compiling;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::text::eq_ignore_case;
use russet_persistence::rdb::payload::{self, FunctionsError};

pub fn dump(ctx: &mut Ctx, _args: Args) -> Outcome {
    let libraries = ctx.node.scripts.libraries();
    let payload =
        payload::dump_functions(libraries.iter().map(|library| library.source.as_slice()));
    drop(libraries);
    ctx.reply.bulk(&payload);
    DONE
}

/// What is done about libraries that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Append,
    Replace,
    Flush,
}

pub fn restore(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 4 {
        return Err(wrong_arity(args.at(1)));
    }
    let policy = match args.get(3) {
        None => Policy::Append,
        Some(arg) if eq_ignore_case(arg, b"append") => Policy::Append,
        Some(arg) if eq_ignore_case(arg, b"replace") => Policy::Replace,
        Some(arg) if eq_ignore_case(arg, b"flush") => Policy::Flush,
        Some(_) => {
            return Err(Refusal::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let sources = read_payload(args.at(2))?;
    let compiling = Compiling::of_call(ctx, args);
    let loaded = sources.iter().map(|source| load::parse(Source::of(source)?, &compiling));
    let loaded = loaded.collect::<Result<Vec<Library>, Refusal>>()?;
    drop(compiling);
    ctx.node.scripts.changes.begin(ctx);
    ctx.node.scripts.change_libraries(|libraries| merge(libraries, loaded, policy))?;
    ctx.keys.wrote_no_key();
    ctx.reply.ok();
    DONE
}

/// Adds what was restored; all of it or nothing.
fn merge(libraries: &mut Libraries, loaded: Vec<Library>, policy: Policy) -> Result<(), Refusal> {
    let mut merged = match policy {
        Policy::Flush => Libraries { epoch: libraries.epoch + 1, ..Libraries::default() },
        _ => libraries.clone(),
    };
    for library in loaded {
        if policy == Policy::Append && merged.has(&library.name) {
            let name = escape(&library.name);
            return Err(Refusal::text(format!("ERR Library {name} already exists")));
        }
        if let Some(function) = merged.clash(&library) {
            let function = escape(&function);
            return Err(Refusal::text(format!("ERR Function {function} already exists")));
        }
        merged.put(library);
    }
    *libraries = merged;
    Ok(())
}

/// The sources in a payload whose version and sum are right.
fn read_payload(payload: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
    payload::functions(payload).map_err(|error| {
        Refusal::text(match error {
            FunctionsError::Footer => "ERR DUMP payload version or checksum are wrong",
            FunctionsError::Kind => "ERR given type is not a function",
            FunctionsError::Source => "ERR Failed loading library data",
        })
    })
}
