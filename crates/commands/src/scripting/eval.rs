//! EVAL, EVALSHA and their read-only forms.

use super::cache::Script;
use super::host::RunHost;
use super::machine::Machine;
use super::reply;
use super::running::Run;
use crate::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use russet_base::{Args, num};
use russet_protocol::Resp;
use russet_scripting::{Fault, Heap, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Words of a call that FUNCTION STATS shows.
const WORDS_SHOWN_MAX: usize = 32;

/// A script from the cache, or else compiled and put there.
pub fn find_or_compile(node: &Node, source: &[u8]) -> Result<Arc<Script>, Refusal> {
    if let Some(script) = node.scripts.cache().by_source(source) {
        return Ok(script);
    }
    let script = Arc::new(Script::compile(source)?);
    Ok(node.scripts.cache_mut().add(script, true))
}

fn find(node: &Node, sha: &[u8]) -> Result<Arc<Script>, Refusal> {
    let found = node.scripts.cache().by_sha(sha);
    found.ok_or(Refusal::text("NOSCRIPT No matching script."))
}

pub fn eval(ctx: &mut Ctx, args: Args) -> Outcome {
    let words = Words::parse(args)?;
    let script = find_or_compile(ctx.node, args.at(1))?;
    run(ctx, &script, words, false)
}

pub fn eval_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    let words = Words::parse(args)?;
    let script = find_or_compile(ctx.node, args.at(1))?;
    run(ctx, &script, words, true)
}

pub fn evalsha(ctx: &mut Ctx, args: Args) -> Outcome {
    let script = find(ctx.node, args.at(1))?;
    run(ctx, &script, Words::parse(args)?, false)
}

pub fn evalsha_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    let script = find(ctx.node, args.at(1))?;
    run(ctx, &script, Words::parse(args)?, true)
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
        let words = args.from(3);
        if count > words.len() as i64 {
            let text = "ERR Number of keys can't be greater than number of args";
            return Err(Refusal::text(text));
        }
        let count = usize::try_from(count)
            .map_err(|_| Refusal::text("ERR Number of keys can't be negative"))?;
        Ok(Words { all: args, keys: words.upto(count), rest: words.from(count) })
    }
}

fn run(ctx: &mut Ctx, script: &Script, words: Words, is_read_only: bool) -> Outcome {
    let is_wide = script.is_wide();
    if is_wide && ctx.keys.held() != ctx.node.keyspace.all_shards() {
        return Ok(Flow::Replan);
    }
    let node = ctx.node;
    node.scripts.count_run(is_wide);
    let mut machine = node.scripts.take_machine();
    machine.catch_up(node.scripts.cache().epoch);
    let is_read_only = is_read_only || script.flags.no_writes;
    let db = ctx.session.db;
    let started_micros = node.clock.monotonic_micros();
    let run = node.scripts.running.begin(Run {
        shards: ctx.keys.held(),
        is_function: false,
        name: script.sha.to_vec(),
        words: words.all.iter().take(WORDS_SHOWN_MAX).map(<[u8]>::to_vec).collect(),
        started_micros,
        is_slow: AtomicBool::new(false),
        has_written: AtomicBool::new(false),
        is_to_end: AtomicBool::new(false),
    });
    let mut host = RunHost::new(ctx, run.clone(), is_read_only);
    host.declare(words.keys.iter());
    let result = call(&mut machine, script, words, &mut host);
    let (resp, operations) = (host.resp, host.operations);
    node.scripts.running.end(&run);
    restore_db(ctx, db);
    let micros = node.clock.monotonic_micros().saturating_sub(started_micros);
    script.stats.count(micros, operations, result.is_err());
    let outcome = match result {
        Ok(value) => {
            let heap = machine.state.heap();
            reply::write(heap, value, resp == Resp::V3, ctx.reply);
            DONE
        }
        Err(fault) => Err(Refusal::text(error_text(&mut machine, fault))),
    };
    machine.state.end_run();
    node.scripts.give_machine(machine);
    outcome
}

fn call(
    machine: &mut Machine,
    script: &Script,
    words: Words,
    host: &mut RunHost,
) -> Result<Value, Fault> {
    let function = machine.function(script)?;
    machine.set_words(words.keys, words.rest)?;
    let results = machine.state.call(host, function, &[])?;
    Ok(results.first().copied().unwrap_or_default())
}

/// A script may select another database; for its caller nothing has changed.
pub fn restore_db(ctx: &mut Ctx, db: usize) {
    if ctx.session.db != db || ctx.keys.db != db {
        ctx.keys.publish();
        ctx.session.db = db;
        ctx.session.card.db.store(db as u32, Ordering::Relaxed);
        ctx.keys.db = db;
    }
}

/// What an error that nobody caught says, and where it was.
pub fn error_text(machine: &mut Machine, fault: Fault) -> String {
    let text = match fault {
        Fault::Error(value) => text_of(machine.state.heap(), value),
        Fault::Killed => "ERR Script killed by user with SCRIPT KILL.".to_owned(),
        Fault::Yield { .. } => "ERR attempt to yield across metamethod/C-call boundary".to_owned(),
    };
    match machine.state.origin() {
        Some(origin) => {
            let name = String::from_utf8_lossy(&origin.chunk_name).into_owned();
            format!("{text} script: on {name}:{}.", origin.line)
        }
        None => text,
    }
}

fn text_of(heap: &Heap, value: Value) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match value {
        Value::Str(string) => format!("ERR {}", lossy(heap.bytes(string))),
        Value::Number(number) => format!("ERR {}", plain(number)),
        Value::Table(table) => match heap.get_field(table, b"err") {
            Value::Str(string) => lossy(heap.bytes(string)),
            Value::Number(number) => plain(number),
            _ => "ERR unknown error".to_owned(),
        },
        Value::Bool(value) => format!("ERR {value}"),
        other => format!("ERR {}", other.type_name()),
    }
}

fn plain(number: f64) -> String {
    String::from_utf8_lossy(russet_scripting::number::TextBuffer::new().format(number)).into_owned()
}
