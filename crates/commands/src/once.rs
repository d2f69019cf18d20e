//! ONCE: runs a command at most once for a request id. See docs/once.md for what it promises.
//!
//! The first run stores its reply in the shard of the command's first key, under the same locks as
//! its effect; a repeat within the time finds the reply there and changes nothing. A mark without a
//! reply is left in the shard of the request id, so that the id is known whatever key comes with it
//! the next time.

use crate::config::Directive;
use crate::ctx::{Ctx, DONE, Flow, Outcome};
use crate::dispatch::plan_keys;
use crate::error::Refusal;
use crate::handlers;
use crate::node::Node;
use crate::session::Session;
use crate::transactions;
use russet_base::hash::KeyHasher;
use russet_base::text::eq_ignore_case;
use russet_base::told::told;
use russet_base::{Args, UnixMillis, num};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, keys as key_positions, resolve};
use russet_engine::keyspace::Place;
use russet_engine::once::OnceRecord;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::{RespWriter, decode};
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest request id.
const ID_BYTES_MAX: usize = 256;
/// Longest time that a reply is kept: ten years.
const TTL_MS_MAX: i64 = 315_360_000_000;
/// Longest reply that is kept. Of a longer one only the fact is.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// `ONCE id PX ttl`: the words before the command.
const OWN_WORDS: usize = 4;

/// What ONCE STATS shows.
#[derive(Debug, Default)]
pub struct OnceStats {
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub stored: AtomicU64,
    pub replayed: AtomicU64,
    pub mismatched: AtomicU64,
    pub refused_full: AtomicU64,
    pub expired: AtomicU64,
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
        if args.len() <= OWN_WORDS || !eq_ignore_case(args.at(2), b"px") {
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
        let inner = args.from(OWN_WORDS);
        let unknown = || {
            let name = told(inner.at(0)).into_owned();
            Refusal::text(format!("ERR unknown command '{name}'"))
        };
        let command = resolve(inner).map_err(|_| unknown())?;
        let spec = command.spec();
        if !spec.arity.allows(inner.len()) {
            return Err(Refusal::Arity(spec.full_name));
        }
        if !may_wrap(command) {
            let text = "ERR ONCE takes commands that write, scripts, functions and EXEC";
            return Err(Refusal::text(text));
        }
        Ok(Request { id, ttl_ms, command, args: inner })
    }

    /// Of the command and all its words; of an EXEC, of all that it runs.
    fn digest(&self, session: &Session) -> u128 {
        let mut text = Vec::new();
        let mut add = |args: Args| {
            for word in args.iter() {
                text.extend_from_slice(&(word.len() as u64).to_le_bytes());
                text.extend_from_slice(word);
            }
        };
        add(self.args);
        if self.command == Command::Exec {
            transactions::queued(session).for_each(|(_, words)| add(words));
        }
        let half = |seed: u64| u128::from(KeyHasher::with_seed(seed).hash(&text));
        half(1) << 64 | half(2)
    }
}

/// What may run under a request id: it writes, or may, and does not wait.
fn may_wrap(command: Command) -> bool {
    let flags = command.spec().flags;
    let runs_code =
        matches!(command, Command::Eval | Command::Evalsha | Command::Fcall | Command::Exec);
    runs_code || (flags.has(Flags::WRITE) && !flags.has_any(Flags::BLOCKING.and(Flags::NOSCRIPT)))
}

/// Whether this call ends a transaction: then it is not queued.
pub(crate) fn wraps_exec(command: Command, args: Args) -> bool {
    command == Command::Once
        && args.get(OWN_WORDS).is_some_and(|name| eq_ignore_case(name, b"exec"))
}

/// Where a request is kept.
#[derive(Clone, Copy)]
struct Homes {
    /// The shard of the command's first key, or else of the id: for the reply.
    reply: usize,
    /// The shard of the id: for the mark.
    mark: usize,
}

fn homes(node: &Node, session: &Session, request: &Request) -> Homes {
    let first_key = |command: Command, args: Args| {
        let mut first = None;
        let _may_have_none = key_positions(command, args, &mut |key| {
            first.get_or_insert(node.keyspace.place(args.at(key.index)).shard as usize);
        });
        first
    };
    let found = match request.command {
        Command::Exec => {
            transactions::queued(session).find_map(|(command, words)| first_key(command, words))
        }
        command => first_key(command, request.args),
    };
    let mark = node.keyspace.place(request.id).shard as usize;
    Homes { reply: found.unwrap_or(mark), mark }
}

/// The shards of the command and of its record.
pub(crate) fn plan(
    node: &Node,
    session: &Session,
    args: Args,
    places: &mut Vec<(usize, Place)>,
) -> ShardSet {
    let Ok(request) = Request::parse(args) else { return ShardSet::EMPTY };
    let homes = homes(node, session, &request);
    let mut shards = ShardSet::one(homes.reply);
    shards.insert(homes.mark);
    match request.command {
        Command::Exec => shards = shards.union(transactions::plan(node, session, places)),
        command => plan_keys(node, command, request.args, &mut shards, places),
    }
    shards
}

pub fn once(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() == 2 && eq_ignore_case(args.at(1), b"stats") {
        return stats(ctx);
    }
    let request = Request::parse(args)?;
    if request.command == Command::Exec && ctx.session.transaction.is_none() {
        return Err(Refusal::text("ERR EXEC without MULTI"));
    }
    let homes = homes(ctx.node, ctx.session, &request);
    let digest = request.digest(ctx.session);
    let (db, now, counts) = (ctx.keys.db, ctx.keys.now, &ctx.node.once);
    let mut find = |shard: usize| ctx.keys.shard(shard).once.find(db, request.id, now).cloned();
    if let Some(mark) = find(homes.mark) {
        let record = find(homes.reply).filter(|record| record.digest == mark.digest);
        if request.command == Command::Exec {
            transactions::discard_state(ctx.session);
        }
        let Some(record) = record.filter(|record| record.digest == digest) else {
            counts.mismatched.fetch_add(1, Ordering::Relaxed);
            return Err(Refusal::text(
                "ONCEMISMATCH the request id was used for another command or other arguments",
            ));
        };
        counts.replayed.fetch_add(1, Ordering::Relaxed);
        return replay(ctx, &record.reply);
    }
    let records_max = ctx.node.config.int(Directive::OnceRecordsMax).unsigned_abs();
    if counts.records.load(Ordering::Relaxed) >= records_max {
        counts.refused_full.fetch_add(1, Ordering::Relaxed);
        return Err(Refusal::text("ONCEFULL too many request ids are kept (once-records-max)"));
    }
    run(ctx, &request, (homes, digest))
}

/// Answers with a reply that is there as bytes, whoever asks.
fn replay(ctx: &mut Ctx, reply: &[u8]) -> Outcome {
    if let Some(out) = ctx.reply.wire() {
        out.extend_from_slice(reply);
    } else if let Ok(Some((value, _))) = decode(reply) {
        value.write(ctx.reply);
    }
    DONE
}

fn run(ctx: &mut Ctx, request: &Request, (homes, digest): (Homes, u128)) -> Outcome {
    // A transaction may select another database: a repeat is looked for where the first began.
    let (db, dirty) = (ctx.keys.db, ctx.keys.effects.dirty);
    let mut bytes = Vec::new();
    let mut writer = RespWriter::new(&mut bytes, ctx.reply.resp());
    let mut inner = Ctx {
        keys: ctx.keys,
        reply: &mut writer,
        session: ctx.session,
        node: ctx.node,
        stats: ctx.stats,
        command: request.command,
        may_block: false,
    };
    match handlers::of(request.command)(&mut inner, request.args) {
        Ok(Flow::Done) => {}
        Ok(Flow::Replan) => return Ok(Flow::Replan),
        Ok(Flow::Block(_)) => unreachable!("no handler blocks when it may not"),
        Err(refusal) => crate::dispatch::fail(&mut inner, &refusal),
    }
    ctx.stats.count_call(request.command, 0);
    let has_changed = ctx.keys.effects.dirty != dirty;
    // An error that changed nothing is no answer yet: the same request may succeed later. Nor is a
    // transaction that did not run because of a watched key.
    let is_answer = match request.command {
        Command::Exec => bytes.first() == Some(&b'*') && !bytes.starts_with(b"*-1"),
        _ => bytes.first() != Some(&b'-'),
    };
    if has_changed || is_answer {
        let reply: Box<[u8]> = match bytes.len() {
            0..=REPLY_BYTES_MAX => bytes.as_slice().into(),
            len => format!("-ONCELARGE it ran; its reply of {len} bytes was not kept\r\n")
                .into_bytes()
                .into(),
        };
        store(ctx, (db, request), homes, (digest, reply));
    }
    replay(ctx, &bytes)
}

fn store(
    ctx: &mut Ctx,
    (db, request): (usize, &Request),
    homes: Homes,
    (digest, reply): (u128, Box<[u8]>),
) {
    let expires = UnixMillis(ctx.keys.now.0.saturating_add(request.ttl_ms));
    let mut put = |shard: usize, reply: Box<[u8]>| {
        let records = &mut ctx.keys.shard(shard).once;
        let before = (records.len(), records.memory_bytes());
        records.put(db, request.id, OnceRecord { digest, reply, expires });
        let counts = &ctx.node.once;
        counts.records.fetch_add((records.len() - before.0) as u64, Ordering::Relaxed);
        let bytes = (records.memory_bytes() as u64).wrapping_sub(before.1 as u64);
        counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    put(homes.reply, reply);
    if homes.mark != homes.reply {
        put(homes.mark, Box::default());
    }
    ctx.node.once.stored.fetch_add(1, Ordering::Relaxed);
}

fn stats(ctx: &mut Ctx) -> Outcome {
    let counts = &ctx.node.once;
    let fields = [
        ("records", &counts.records),
        ("bytes", &counts.bytes),
        ("stored", &counts.stored),
        ("replayed", &counts.replayed),
        ("mismatched", &counts.mismatched),
        ("refused_full", &counts.refused_full),
        ("expired", &counts.expired),
    ];
    ctx.reply.map(fields.len());
    for (name, counter) in fields {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.int(counter.load(Ordering::Relaxed) as i64);
    }
    DONE
}

#[cfg(test)]
mod tests {
    use crate::testing::{Desk, Guest};
    use russet_base::UnixMillis;
    use std::sync::atomic::Ordering;

    fn kept(desk: &Desk) -> u64 {
        desk.worker.node.once.records.load(Ordering::Relaxed)
    }

    /// What housekeeping does; the records and bytes that it finds.
    fn keep_house(desk: &Desk, now: UnixMillis) -> (usize, usize) {
        let keyspace = &desk.worker.node.keyspace;
        let reports = (0..keyspace.shards()).map(|shard| keyspace.expire_once(shard, now, 100));
        reports.flatten().fold((0, 0), |(records, bytes), report| {
            (records + report.records, bytes + report.bytes)
        })
    }

    #[test]
    fn a_record_lives_from_its_run_to_the_end_of_its_time() {
        let mut desk = Desk::new();
        assert_eq!(desk.say("ONCE {k}1 PX 1000 INCR k"), "1");
        assert_eq!(kept(&desk), 1);
        desk.clock.advance_ms(999);
        // A repeat neither runs nor makes the time longer.
        assert_eq!(desk.say("ONCE {k}1 PX 5000 INCR k"), "1");
        desk.clock.advance_ms(1);
        assert_eq!(desk.say("ONCE {k}1 PX 1000 INCR k"), "2");
        let now = desk.worker.node.clock.now();
        let (records, bytes) = keep_house(&desk, now);
        assert_eq!(records, 1);
        assert!((100..1_000).contains(&bytes), "{bytes}");
        assert_eq!(keep_house(&desk, UnixMillis(now.0 + 1000)), (0, 0));
    }

    #[test]
    fn a_mark_stays_where_the_id_is_at_home() {
        let mut desk = Desk::new();
        // Of 32 ids some fall into another shard than the key: those leave a mark there.
        for id in 0..32 {
            assert_eq!(desk.say(&format!("ONCE id{id} PX 1000 INCR k")), (id + 1).to_string());
        }
        assert!((33..=64).contains(&kept(&desk)));
        for id in 0..32 {
            let line = format!("ONCE id{id} PX 1000 INCR other{id}");
            assert!(desk.say(&line).contains("ONCEMISMATCH"), "{line}");
        }
        assert_eq!(desk.say("GET k"), "\"32\"");
        assert_eq!(desk.say("DBSIZE"), "1");
    }

    #[test]
    fn another_client_gets_the_same_answer() {
        let mut desk = Desk::new();
        assert_eq!(desk.say("ONCE id PX 1000 RPUSH l a b c"), "3");
        let mut guest = Guest::of(&desk);
        assert_eq!(guest.says(&mut desk, "ONCE id PX 1000 RPUSH l a b c"), ["3"]);
        assert_eq!(guest.says(&mut desk, "ONCE p PX 1000 LPOP l 2"), desk_pops(&mut desk));
        assert_eq!(desk.say("LLEN l"), "1");
    }

    fn desk_pops(desk: &mut Desk) -> Vec<String> {
        vec![desk.say("ONCE p PX 1000 LPOP l 2")]
    }

    #[test]
    fn emptied_databases_have_no_records() {
        let mut desk = Desk::new();
        desk.say("ONCE id PX 1000 INCR k");
        desk.say("SELECT 1");
        desk.say("ONCE id PX 1000 INCR k");
        desk.say("FLUSHDB");
        assert_eq!(desk.say("ONCE id PX 1000 INCR k"), "1");
        assert_eq!(desk.say("GET k"), "\"1\"");
        desk.say("SELECT 0");
        desk.say("INCR k");
        assert_eq!(desk.say("ONCE id PX 1000 INCR k"), "1");
        assert_eq!(desk.say("GET k"), "\"2\"");
    }
}
