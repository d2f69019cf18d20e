//! ONCE: runs a command at most once for a request id. See docs/once.md for what it promises.
//!
//! The first run stores its reply in the shard of the command's first key, under the same locks as
//! its effect; a repeat within the time finds the reply there and changes nothing. A mark without a
//! reply is left in the shard of the request id, so that the id is known whatever key comes with it
//! the next time.

mod kept;
#[cfg(test)]
mod tests;

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::dispatch::{KnownKeys, plan_keys};
use crate::call::invoke::{Origin, invoke};
use crate::call::session::Session;
use crate::call::tally::Timing;
use crate::error::Refusal;
use crate::groups::scripting::code::{self, Code};
use crate::groups::transactions;
use crate::node::Node;
use crate::node::acl::DEFAULT_USER;
use crate::node::config::Directive;
use kept::Keeping;
use russet_base::escape::escape;
use russet_base::hash::KeyHasher;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, ONCE_ARGS, is_first_arg_only_key, keys as key_positions, resolve};
use russet_engine::keys::{Keys, KnownKey};
use russet_engine::keyspace::Location;
use russet_engine::once::OnceRecord;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::{RespWriter, Sink, decode};
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest request id.
const ID_BYTES_MAX: usize = 256;
/// Longest time that a reply is kept: ten years.
const TTL_MS_MAX: i64 = 315_360_000_000;

/// What ONCE STATS shows besides what is kept.
#[derive(Debug, Default)]
pub struct OnceStats {
    pub stored: AtomicU64,
    pub replayed: AtomicU64,
    pub mismatched: AtomicU64,
    pub refused_full: AtomicU64,
}

/// A call of ONCE, read.
struct Request<'a> {
    id: &'a [u8],
    ttl_ms: i64,
    command: Command,
    args: Args<'a>,
}

impl<'a> Request<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        if args.len() <= ONCE_ARGS || !eq_ignore_case(args.at(2), b"px") {
            return Err(Refusal::Syntax);
        }
        let id = args.at(1);
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(Refusal::text("ERR a request id has 1 to 256 bytes"));
        }
        let ttl_ms = num::parse_i64(args.at(3)).ok_or(Refusal::NotInteger)?;
        if !(1..=TTL_MS_MAX).contains(&ttl_ms) {
            return Err(Refusal::InvalidExpire("once"));
        }
        let inner = args.from(ONCE_ARGS);
        let unknown = || {
            let name = escape(inner.at(0)).into_owned();
            Refusal::text(format!("ERR unknown command '{name}'"))
        };
        let command = resolve(inner).map_err(|_| unknown())?;
        let spec = command.spec();
        if !spec.arity.allows(inner.len()) {
            return Err(Refusal::Arity(spec.full_name));
        }
        if !may_wrap(command, inner) {
            let text = "ERR ONCE takes commands that write, scripts, functions and EXEC";
            return Err(Refusal::text(text));
        }
        Ok(Request { id, ttl_ms, command, args: inner })
    }

    /// Of the user, the command and all its arguments; of an EXEC, of all that it runs. The user is
    /// part of it because a reply may show what another one could not read: that of a script, say.
    fn digest(&self, session: &Session) -> u128 {
        let mut digest = Digest::default();
        // Embedded clients have no user: what they keep is the default user's, too.
        let user = session.login.user().filter(|(user, _)| *user.name != *DEFAULT_USER);
        user.inspect(|(user, _)| digest.add_arg(&user.name));
        digest.add(self.args);
        if self.command == Command::Exec {
            transactions::queued(session).for_each(|(_, args)| digest.add(args));
        }
        digest.finish()
    }

    /// The first key of the command, or of the first of an EXEC's commands that has one.
    fn first_key<'s>(&'s self, session: &'s Session) -> Option<&'s [u8]> {
        match self.command {
            Command::Exec => {
                transactions::queued(session).find_map(|(command, args)| first_of(command, args))
            }
            command => first_of(command, self.args),
        }
    }
}

/// Two hashes over calls, one after the other: how many arguments each has, and each argument.
#[derive(Default)]
struct Digest([u64; 2]);

impl Digest {
    fn add(&mut self, args: Args) {
        // Without it, two commands and one that has the arguments of both would be the same.
        self.mix([args.len() as u64; 2]);
        args.iter().for_each(|arg| self.add_arg(arg));
    }

    fn add_arg(&mut self, arg: &[u8]) {
        let hash = |seed| KeyHasher::with_seed(seed).hash(arg) ^ arg.len() as u64;
        self.mix([hash(1), hash(2)]);
    }

    fn mix(&mut self, hashes: [u64; 2]) {
        for (half, hash) in self.0.iter_mut().zip(hashes) {
            *half = (half.rotate_left(23) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

fn first_of(command: Command, args: Args<'_>) -> Option<&[u8]> {
    if is_first_arg_only_key(command) {
        return args.get(1);
    }
    let mut first = None;
    let _may_have_none = key_positions(command, args, &mut |key| {
        first.get_or_insert(args.at(key.index));
    });
    first
}

/// What may run under a request id: it writes, or may, and does not wait.
fn may_wrap(command: Command, args: Args) -> bool {
    let flags = command.spec().flags;
    match command {
        Command::Eval | Command::Evalsha | Command::Fcall | Command::Exec => true,
        Command::Xreadgroup => !asks_to_block(args),
        _ => flags.has(Flags::WRITE) && !flags.has_any(Flags::BLOCKING.or(Flags::NOSCRIPT)),
    }
}

/// Whether BLOCK is among the options of XREADGROUP; a group or consumer may have that name.
fn asks_to_block(args: Args) -> bool {
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        at += match () {
            () if eq_ignore_case(arg, b"block") => return true,
            () if eq_ignore_case(arg, b"streams") => return false,
            () if eq_ignore_case(arg, b"group") => 3,
            () if eq_ignore_case(arg, b"noack") => 1,
            () => 2,
        };
    }
    false
}

/// Whether this call ends a transaction: then it is not queued.
pub(crate) fn wraps_exec(command: Command, args: Args) -> bool {
    command == Command::Once
        && args.get(ONCE_ARGS).is_some_and(|name| eq_ignore_case(name, b"exec"))
}

/// The command that ONCE is to run.
pub(crate) fn wrapped(command: Command, args: Args) -> Option<Command> {
    let has_wrapped = command == Command::Once && args.len() > ONCE_ARGS;
    has_wrapped.then(|| resolve(args.from(ONCE_ARGS)).ok()).flatten()
}

/// Where a request is kept.
#[derive(Clone, Copy)]
struct Homes {
    /// The shard of the command's first key, or else of the id: for the reply.
    reply: usize,
    /// The shard of the id: for the mark.
    mark: usize,
    id_hash: u64,
}

/// Where a request is kept; planning has hashed id and keys already, in this order.
fn homes(keys: &mut Keys, session: &Session, request: &Request) -> Homes {
    let Location { shard, hash } = keys.locate(request.id);
    let mark = usize::from(shard);
    let first_key = request.first_key(session);
    let reply = first_key.map_or(mark, |key| usize::from(keys.locate(key).shard));
    Homes { reply, mark, id_hash: hash }
}

/// The shards of the command and of its record.
pub(crate) fn plan<'a>(
    (node, worker): (&Node, usize),
    session: &mut Session,
    args: Args<'a>,
    known: &mut KnownKeys<'a>,
) -> (ShardSet, Option<Code>) {
    let Ok(request) = Request::parse(args) else {
        return (kept::shards(&node.keyspace, args), None);
    };
    let mut code = None;
    let mark = node.keyspace.locate(request.id);
    let mut shards = ShardSet::one(mark.shard as usize);
    known.push(KnownKey { key: request.id, location: mark });
    match request.command {
        Command::Exec => {
            shards = shards.union(&transactions::plan((node, worker), session));
        }
        command => {
            code = code::find(node, worker, command, request.args);
            let call = (command, request.args);
            plan_keys(node, call, code.as_ref(), (&mut shards, known));
        }
    }
    // Where a command's keys were planned, the shard of its first key is among them.
    if (known.len() == 1 || request.command == Command::Exec)
        && let Some(key) = request.first_key(session)
    {
        shards.insert(node.keyspace.locate(key).shard as usize);
    }
    (shards, code)
}

/// The locations of the id and of the key, for a call that may be in a batch: its command
/// takes one key, and may itself.
pub(crate) fn keys_in_batch<'a>(
    node: &Node,
    args: Args<'a>,
    is_plain: impl FnOnce(Command, Args) -> bool,
) -> Option<[KnownKey<'a>; 2]> {
    let request = Request::parse(args).ok()?;
    if !is_first_arg_only_key(request.command) || !is_plain(request.command, request.args) {
        return None;
    }
    let located = |key| KnownKey { key, location: node.keyspace.locate(key) };
    Some([request.id, request.args.at(1)].map(located))
}

/// Fetches where a request will be looked for, and where its record goes.
pub(crate) fn prefetch(keys: &mut Keys, known: &[KnownKey]) {
    if let [id, key] = known {
        for shard in [id.location.shard, key.location.shard] {
            let db = keys.db;
            keys.shard(usize::from(shard)).once.touch(id.location.hash, db);
        }
    }
}

pub fn once(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() == 2 && eq_ignore_case(args.at(1), b"stats") {
        return stats(ctx);
    }
    if ctx.origin == Origin::Load {
        return kept::restore(ctx, args);
    }
    let outcome = Request::parse(args).and_then(|request| answer(ctx, &request));
    if outcome.is_err() && wraps_exec(Command::Once, args) {
        // Refused as a whole: what was queued is not left for a plain EXEC to run.
        transactions::discard_state(ctx.session);
    }
    outcome
}

fn answer(ctx: &mut Ctx, request: &Request) -> Outcome {
    if request.command == Command::Exec && ctx.session.transaction.is_none() {
        return Err(Refusal::text("ERR EXEC without MULTI"));
    }
    let homes = homes(ctx.keys, ctx.session, request);
    let digest = request.digest(ctx.session);
    let (db, now, counts) = (ctx.keys.db, ctx.keys.now, &ctx.node.once);
    let id = (request.id, homes.id_hash);
    let mark = ctx.keys.shard(homes.mark).once.find(db, id, now);
    if let Some(mark) = mark.map(|mark| mark.digest) {
        if request.command == Command::Exec {
            transactions::discard_state(ctx.session);
        }
        let home = if is_kept(ctx, homes.reply, (db, id)) { homes.reply } else { homes.mark };
        let record = ctx.keys.shard(home).once.find(db, id, now);
        let is_right = |record: &OnceRecord| record.digest == mark && !record.reply.is_empty();
        let Some(record) = record.filter(|record| is_right(record) && mark == digest) else {
            counts.mismatched.fetch_add(1, Ordering::Relaxed);
            return Err(Refusal::text(
                "ONCEMISMATCH the request id was used for another command, with other arguments, \
                 or by another user",
            ));
        };
        counts.replayed.fetch_add(1, Ordering::Relaxed);
        return replay(ctx.reply, record.reply);
    }
    if let Some(refusal) = is_full(ctx.node) {
        counts.refused_full.fetch_add(1, Ordering::Relaxed);
        return Err(refusal);
    }
    run(ctx, request, (homes, digest))
}

/// Whether a shard has the reply of a request. One that came out of a file, which does not say what
/// its first key was, has it in the shard of its id.
fn is_kept(ctx: &mut Ctx, shard: usize, (db, id): (usize, (&[u8], u64))) -> bool {
    let now = ctx.keys.now;
    let record = ctx.keys.shard(shard).once.find(db, id, now);
    record.is_some_and(|record| !record.reply.is_empty())
}

/// Why no further request can be kept. What runs now is still kept whole, so the bound in bytes is
/// passed by one reply of each worker at most.
fn is_full(node: &Node) -> Option<Refusal> {
    let kept = node.keyspace.once_totals();
    let bound = |directive| node.config.int(directive).unsigned_abs();
    if kept.records() >= bound(Directive::OnceRecordsMax) {
        return Some(Refusal::text("ONCEFULL too many request ids are kept (once-records-max)"));
    }
    if kept.bytes() >= bound(Directive::OnceBytesMax) {
        let text = "ONCEFULL what is kept of requests takes too much memory (once-bytes-max)";
        return Some(Refusal::text(text));
    }
    None
}

/// Answers with a reply that is there as bytes, whoever asks.
fn replay(sink: &mut dyn Sink, reply: &[u8]) -> Outcome {
    if let Some(mut out) = sink.wire() {
        out.extend_from_slice(reply);
    } else if let Ok(Some((value, _))) = decode(reply) {
        value.write(sink);
    }
    DONE
}

fn run(ctx: &mut Ctx, request: &Request, (homes, digest): (Homes, u128)) -> Outcome {
    let Some(start) = ctx.reply.wire().map(|out| out.len()) else {
        return run_apart(ctx, request, (homes, digest));
    };
    let dirty = ctx.keys.effects.dirty;
    let keeping = Keeping::new(ctx, request, (homes, digest));
    run_inner(ctx, request);
    let has_changed = ctx.keys.effects.dirty != dirty;
    let Ctx { keys, reply, node, .. } = ctx;
    if let Some(out) = reply.wire() {
        let bytes = out.bytes_from(start);
        if has_changed || is_answer(request.command, &bytes) {
            keeping.store(keys, node, &bytes);
        }
    }
    DONE
}

/// As `run`, for who does not take bytes.
fn run_apart(ctx: &mut Ctx, request: &Request, (homes, digest): (Homes, u128)) -> Outcome {
    let dirty = ctx.keys.effects.dirty;
    let keeping = Keeping::new(ctx, request, (homes, digest));
    let mut bytes = Vec::new();
    let mut writer = RespWriter::new(&mut bytes, ctx.reply.resp());
    let mut inner = Ctx {
        keys: ctx.keys,
        reply: &mut writer,
        session: ctx.session,
        node: ctx.node,
        stats: ctx.stats,
        tally: ctx.tally,
        timing: ctx.timing,
        origin: ctx.origin,
        command: ctx.command,
        code: ctx.code.take(),
        may_block: false,
    };
    run_inner(&mut inner, request);
    if ctx.keys.effects.dirty != dirty || is_answer(request.command, &bytes) {
        keeping.store(ctx.keys, ctx.node, &bytes);
    }
    replay(ctx.reply, &bytes)
}

/// Runs the command itself, as a part of ONCE.
fn run_inner(ctx: &mut Ctx, request: &Request) {
    let outer = (ctx.command, ctx.origin, ctx.timing, ctx.may_block);
    ctx.command = request.command;
    ctx.origin = Origin::Once;
    ctx.timing = Timing::WithCaller;
    ctx.may_block = false;
    invoke(ctx, &request.args);
    (ctx.command, ctx.origin, ctx.timing, ctx.may_block) = outer;
}

/// An error that changed nothing is no answer yet: the same request may succeed later. Nor is a
/// transaction that did not run because of a watched key.
fn is_answer(command: Command, reply: &[u8]) -> bool {
    match command {
        Command::Exec => reply.first() == Some(&b'*') && !reply.starts_with(b"*-1"),
        _ => reply.first() != Some(&b'-'),
    }
}

fn stats(ctx: &mut Ctx) -> Outcome {
    let (kept, counts) = (ctx.node.keyspace.once_totals(), &ctx.node.once);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let fields = [
        ("records", kept.records()),
        ("bytes", kept.bytes()),
        ("stored", count(&counts.stored)),
        ("replayed", count(&counts.replayed)),
        ("mismatched", count(&counts.mismatched)),
        ("refused_full", count(&counts.refused_full)),
        ("expired", kept.expired()),
    ];
    ctx.reply.map(fields.len());
    for (name, figure) in fields {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.int(figure as i64);
    }
    DONE
}
