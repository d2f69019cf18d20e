//! COMMAND: the catalog, as clients ask for it.

pub(crate) mod docs;
pub(crate) mod info;

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use russet_base::glob::Glob;
use russet_base::{Args, SharedBytes};
use russet_catalog::spec::{Access, Categories, Flags};
use russet_catalog::{Command, KeyAt, KeysError, keys};
use std::ops::Range;
use std::sync::OnceLock;

/// What does not change as long as a node lives: made when it is first asked for.
#[derive(Default)]
pub struct CommandReplies {
    count: OnceLock<usize>,
    /// The reply to COMMAND, by protocol.
    all: [OnceLock<Rendered>; 2],
}

/// The reply to COMMAND, as it is sent, and what it says of each command.
struct Rendered {
    bytes: SharedBytes,
    /// By command; empty for a subcommand, and for what clients have no name for.
    each: Box<[Range<usize>]>,
}

pub fn count(ctx: &mut Ctx, _args: Args) -> Outcome {
    let node = ctx.node;
    let count = node.command_replies.count.get_or_init(|| named(node).count());
    ctx.reply.int(*count as i64);
    DONE
}

/// The commands that clients have a name for.
fn named(node: &Node) -> impl Iterator<Item = Command> {
    Command::top_level().filter(|command| node.has_name(*command))
}

/// Which names COMMAND LIST shows.
enum Wanted<'a> {
    All,
    /// Nothing here comes from a module.
    None,
    Category(Categories),
    Pattern(Glob<'a>),
}

pub fn list(ctx: &mut Ctx, args: Args) -> Outcome {
    let wanted = parse_wanted(args)?;
    let is_wanted = |command: &Command| match &wanted {
        Wanted::All => true,
        Wanted::None => false,
        Wanted::Category(category) => command.spec().categories.has(*category),
        Wanted::Pattern(glob) => glob.matches(command.full_name().as_bytes()),
    };
    let mark = ctx.reply.begin_array();
    let mut len = 0;
    let node = ctx.node;
    let has_name = |command: &Command| node.has_name(*command);
    for command in Command::ALL.iter().copied().filter(is_wanted).filter(has_name) {
        ctx.reply.bulk(command.full_name().as_bytes());
        len += 1;
    }
    ctx.reply.end_array(mark, len);
    DONE
}

fn parse_wanted(args: Args<'_>) -> Result<Wanted<'_>, Refusal> {
    if args.len() == 2 {
        return Ok(Wanted::All);
    }
    if args.len() != 5 || !args.at(2).eq_ignore_ascii_case(b"filterby") {
        return Err(Refusal::Syntax);
    }
    let (kind, value) = (args.at(3), args.at(4));
    if kind.eq_ignore_ascii_case(b"module") {
        return Ok(Wanted::None);
    }
    if kind.eq_ignore_ascii_case(b"aclcat") {
        let is_it = |(_, name): &&(Categories, &str)| value.eq_ignore_ascii_case(name.as_bytes());
        let category = Categories::NAMES.iter().find(is_it).map(|(category, _)| *category);
        return Ok(category.map_or(Wanted::None, Wanted::Category));
    }
    if kind.eq_ignore_ascii_case(b"pattern") {
        return Ok(Wanted::Pattern(Glob::ignoring_case(value)));
    }
    Err(Refusal::Syntax)
}

pub fn getkeys(ctx: &mut Ctx, args: Args) -> Outcome {
    let call = args.from(2);
    let found = keys_of(ctx.node, call)?;
    ctx.reply.array(found.len());
    found.iter().for_each(|key| ctx.reply.bulk(call.at(key.index)));
    DONE
}

pub fn getkeysandflags(ctx: &mut Ctx, args: Args) -> Outcome {
    let call = args.from(2);
    let found = keys_of(ctx.node, call)?;
    ctx.reply.array(found.len());
    for key in found {
        ctx.reply.array(2);
        ctx.reply.bulk(call.at(key.index));
        write_access(ctx, key.access);
    }
    DONE
}

fn write_access(ctx: &mut Ctx, access: Access) {
    ctx.reply.set(access.names().count());
    access.names().for_each(|name| ctx.reply.status(name));
}

fn keys_of(node: &Node, call: Args) -> Result<Vec<KeyAt>, Refusal> {
    let command = node.resolve(call).map_err(|_| Refusal::text("ERR Invalid command specified"))?;
    if !russet_catalog::has_keys(command) {
        return Err(no_keys());
    }
    if !command.spec().arity.allows(call.len()) {
        return Err(Refusal::text("ERR Invalid number of arguments specified for command"));
    }
    let mut found = Vec::new();
    match keys(command, call, &mut |key| found.push(key)) {
        Ok(()) => Ok(found),
        // COMPAT: a script may have no keys, and then nothing is wrong with its arguments.
        Err(_) if command.spec().flags.has(Flags::NO_MANDATORY_KEYS) => Ok(Vec::new()),
        Err(KeysError::NoKeys) => Err(no_keys()),
        Err(KeysError::Invalid) => {
            Err(Refusal::text("ERR Invalid arguments specified for command"))
        }
    }
}

fn no_keys() -> Refusal {
    Refusal::text("ERR The command has no key arguments")
}
