//! FUNCTION LOAD, DELETE, FLUSH and KILL.

use super::load::{self, Source};
use super::{Libraries, Library};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::scripting::compiling::Compiling;
use crate::groups::scripting::script::end_slow;
use crate::node::Node;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::text::eq_ignore_case;

/// A library is complete before it takes the place of another: a bad one changes nothing.
pub fn load(ctx: &mut Ctx, args: Args) -> Outcome {
    let (options, source) = (args.from(2).first(args.len() - 3), args.at(args.len() - 1));
    let mut is_replacing = false;
    for option in options.iter() {
        if !eq_ignore_case(option, b"replace") {
            let option = escape(option);
            return Err(Refusal::text(format!("ERR Unknown option given: {option}")));
        }
        is_replacing = true;
    }
    // COMPAT: what is wrong with the code of a library that is there already is not looked at; test
    // tests/wire/scripting/function.wire, "a name that is taken comes first".
    let source = Source::of(source)?;
    if !is_replacing && ctx.node.scripts.libraries().has(&source.name) {
        return Err(already_exists(&source.name));
    }
    let library = load::parse(source, &Compiling::of_call(ctx, args))?;
    let name = library.name.clone();
    ctx.node.scripts.changes.begin(ctx);
    ctx.node.scripts.change_libraries(|libraries| {
        if !is_replacing && libraries.has(&name) {
            return Err(already_exists(&name));
        }
        if let Some(function) = libraries.clash(&library) {
            let function = escape(&function);
            return Err(Refusal::text(format!("ERR Function {function} already exists")));
        }
        libraries.put(library);
        Ok(())
    })?;
    ctx.keys.wrote_no_key();
    ctx.reply.bulk(&name);
    DONE
}

fn already_exists(name: &[u8]) -> Refusal {
    let name = escape(name);
    Refusal::text(format!("ERR Library '{name}' already exists"))
}

pub fn delete(ctx: &mut Ctx, args: Args) -> Outcome {
    ctx.node.scripts.changes.begin(ctx);
    if !ctx.node.scripts.change_libraries(|libraries| libraries.remove(args.at(2))) {
        return Err(Refusal::text("ERR Library not found"));
    }
    ctx.keys.wrote_no_key();
    ctx.reply.ok();
    DONE
}

pub fn flush(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 3 {
        return Err(wrong_arity(args.at(1)));
    }
    let is_mode = |arg: &[u8]| eq_ignore_case(arg, b"async") || eq_ignore_case(arg, b"sync");
    if args.get(2).is_some_and(|arg| !is_mode(arg)) {
        return Err(Refusal::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    ctx.node.scripts.changes.begin(ctx);
    ctx.node.scripts.remove_libraries();
    ctx.keys.wrote_no_key();
    ctx.reply.ok();
    DONE
}

/// The subcommand as it was written, with too many arguments behind it.
pub(super) fn wrong_arity(subcommand: &[u8]) -> Refusal {
    Refusal::text(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try FUNCTION HELP.",
        escape(subcommand)
    ))
}

pub fn kill(ctx: &mut Ctx, _args: Args) -> Outcome {
    end_slow(ctx, true)
}

/// Loads a library out of a file, in place of one of its name.
pub fn load_saved(node: &Node, source: &[u8]) -> Result<(), Refusal> {
    let library = parse_saved(node, source)?;
    node.scripts.change_libraries(|libraries| {
        check_clash(libraries, &library)?;
        libraries.put(library);
        Ok(())
    })
}

/// Whether it could be loaded; with `is_new`, only if there is none of its name.
pub fn check_saved(node: &Node, source: &[u8], is_new: bool) -> Result<(), Refusal> {
    let library = parse_saved(node, source)?;
    let libraries = node.scripts.libraries();
    if is_new && libraries.has(&library.name) {
        return Err(already_exists(&library.name));
    }
    check_clash(&libraries, &library)
}

fn parse_saved(node: &Node, source: &[u8]) -> Result<Library, Refusal> {
    load::parse(Source::of(source)?, &Compiling::planned(node, Args::new(&[], &[])))
}

fn check_clash(libraries: &Libraries, library: &Library) -> Result<(), Refusal> {
    let Some(function) = libraries.clash(library) else { return Ok(()) };
    let function = escape(&function);
    Err(Refusal::text(format!("ERR Function {function} already exists")))
}
