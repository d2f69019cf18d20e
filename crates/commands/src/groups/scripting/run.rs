//! One run, of a script or a function, from its arguments to its reply.

use super::cache::{RunStats, RunTotals};
use super::code::Code;
use super::compiling::killed_text;
use super::eval::{ScriptArgs, show};
use super::host::RunHost;
use super::machine::{Lua, Machine};
use super::reply;
use super::running::Run;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::escape::escape;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::Resp;
use russet_scripting::{Fault, Heap, State, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of a call that FUNCTION STATS shows.
pub const ARGS_SHOWN_MAX: usize = 32;
/// The field of an error object with its text, and what is said of one without.
const ERR: &[u8] = b"err";
const UNKNOWN: &str = "ERR unknown error";
/// Room for the arguments of commands that an interpreter keeps between runs.
const ARGS_KEPT_BYTES_MAX: usize = 4096;

/// All that a run is.
pub struct Request<'a> {
    pub code: &'a Code,
    /// The digest of the script, or the name of the function.
    pub name: &'a [u8],
    pub args: ScriptArgs<'a>,
    pub is_read_only: bool,
    /// It may take memory though there is none left.
    pub allows_oom: bool,
    pub is_wide: bool,
    /// What its compilation took, if this is its first run: that is part of its time.
    pub compile_micros: u64,
    pub stats: &'a RunStats,
}

impl Request<'_> {
    pub fn is_function(&self) -> bool {
        matches!(self.code, Code::Function(_))
    }

    /// What others see of the run once it is slow.
    pub fn describe(&self, shards: ShardSet, started_micros: u64, has_written: bool) -> Run {
        Run {
            shards,
            is_function: self.is_function(),
            name: self.name.to_vec(),
            args: self.args.all.iter().take(ARGS_SHOWN_MAX).map(<[u8]>::to_vec).collect(),
            started_micros,
            has_written: AtomicBool::new(has_written),
            is_to_end: AtomicBool::new(false),
        }
    }
}

/// What one machine may hold.
pub fn memory_max(node: &Node) -> usize {
    let bytes = node.config.memory(Directive::ScriptMemoryMax);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Does something on a machine that this worker has to itself meanwhile.
pub fn on_machine(
    ctx: &mut Ctx,
    is_for_functions: bool,
    action: impl FnOnce(&mut Ctx, &mut Machine) -> Outcome,
) -> Outcome {
    let (node, worker) = (ctx.node, ctx.stats.number);
    let mut machine = node.scripts.take_machine(worker, is_for_functions);
    machine.lua.state.set_memory_max(memory_max(node));
    let outcome = action(ctx, &mut machine);
    node.scripts.give_machine(worker, machine);
    outcome
}

pub fn run(ctx: &mut Ctx, lua: &mut Lua, request: &Request) -> Outcome {
    debug_assert!(!request.is_wide || ctx.keys.holds_all(), "its shards were planned by its code");
    show(ctx, request.args.all);
    let (node, stats) = (ctx.node, ctx.stats);
    let runs = if request.is_wide { &stats.wide_runs } else { &stats.narrow_runs };
    runs.add(1);
    let db = ctx.session.db;
    let timing = ctx.timing;
    let started = ctx.tally.script_start(node, timing);
    // The time that TIME gives it from beginning to end.
    if request.compile_micros == 0 {
        ctx.keys.fixed_micros.get_or_insert(started.cast_signed());
    }
    ctx.session.is_in_script = true;
    let destination = ctx.keys.effects.records.destination;
    let mut host = RunHost::new(ctx, request, (started, std::mem::take(&mut lua.command_args)));
    let result = call(lua, request, &mut host)
        .map_err(|fault| refusal(&mut lua.state, &mut host, fault, request.is_function()));
    let (resp, operations) = (host.resp, host.operations);
    lua.command_args = host.end();
    lua.command_args.clear();
    lua.command_args.shrink_beyond(ARGS_KEPT_BYTES_MAX);
    ctx.session.is_in_script = false;
    // What the script has asked for with `redis.set_repl` ends with it.
    ctx.keys.effects.records.destination = destination;
    restore_db(ctx, db);
    let micros = ctx.tally.end_script(node, timing, started);
    if request.is_wide {
        ctx.tally.add_wide(micros);
    }
    let errors = u64::from(result.is_err());
    let last_at = node.clock.monotonic_micros();
    let totals = RunTotals { calls: 1, errors, micros, micros_max: micros, operations, last_at };
    request.stats.count(stats.number, totals);
    let outcome = match result {
        Ok(value) => {
            let failed = &stats.of(ctx.command).failed;
            let count = |text: Option<&str>| {
                failed.add(1);
                text.into_iter().for_each(|text| node.stats.count_custom_error(text));
            };
            reply::write(lua.state.heap(), (value, resp == Resp::V3), ctx.reply, &count);
            DONE
        }
        Err(refusal) => Err(refusal),
    };
    lua.end_run();
    outcome
}

fn call(lua: &mut Lua, request: &Request, host: &mut RunHost) -> Result<Value, Fault> {
    let script_args = request.args;
    let results = match request.code {
        Code::Script(script) => {
            let function = lua.function(script)?;
            lua.set_keys_and_argv(script_args.keys, script_args.rest)?;
            lua.state.call(host, function, &[])?
        }
        Code::Function(function) => {
            let function = lua.library_function(&function.library, function.index)?;
            let args = [lua.args_table(script_args.keys)?, lua.args_table(script_args.rest)?];
            lua.state.call(host, function, &args)?
        }
    };
    Ok(results.first().copied().unwrap_or_default())
}

/// A script may select another database; for its caller nothing has changed.
fn restore_db(ctx: &mut Ctx, db: usize) {
    if ctx.session.db != db || ctx.keys.db != db {
        ctx.session.db = db;
        ctx.session.card.db.store(db as u32, Ordering::Relaxed);
        ctx.keys.select(db);
    }
}

/// What is answered to an error that nobody caught. The fields of an error object may be those of
/// its metatable.
fn refusal(state: &mut State, host: &mut RunHost, fault: Fault, is_function: bool) -> Refusal {
    let Fault::Error(Value::Table(error)) = fault else {
        return Refusal::text(error_text(state, fault, is_function));
    };
    let text = match state.error_field(host, error, ERR) {
        Ok(err) => text_of_field(state.heap(), err).unwrap_or(UNKNOWN.to_owned()),
        Err(Fault::Error(_)) => UNKNOWN.to_owned(),
        Err(fault) => return Refusal::text(error_text(state, fault, is_function)),
    };
    let text = with_origin(state, text);
    match state.error_field(host, error, reply::COUNTED) {
        Ok(Value::Bool(true)) => Refusal::Counted(text),
        _ => Refusal::text(text),
    }
}

/// What an error says, and where it was.
fn error_text(state: &State, fault: Fault, is_function: bool) -> String {
    let text = match fault {
        Fault::Error(value) => text_of(state.heap(), value),
        Fault::Killed => killed_text(is_function).to_owned(),
        Fault::Yield => "ERR attempt to yield across metamethod/C-call boundary".to_owned(),
    };
    with_origin(state, text)
}

fn with_origin(state: &State, text: String) -> String {
    match state.origin() {
        Some(origin) => {
            let name = escape(&origin.chunk_name).into_owned();
            format!("{text} script: on {name}:{}.", origin.line)
        }
        None => text,
    }
}

/// The text of an error value.
pub fn text_of(heap: &Heap, value: Value) -> String {
    match value {
        Value::Table(table) => {
            text_of_field(heap, heap.field(table, ERR)).unwrap_or(UNKNOWN.to_owned())
        }
        Value::Bool(value) => format!("ERR {value}"),
        _ => format!("ERR {}", text_of_field(heap, value).unwrap_or(value.type_name().to_owned())),
    }
}

/// What the field `err` of an error object says.
fn text_of_field(heap: &Heap, err: Value) -> Option<String> {
    match err {
        Value::Str(string) => Some(escape(reply::up_to_nul(heap.bytes(string))).into_owned()),
        Value::Number(number) => Some(plain(number)),
        _ => None,
    }
}

fn plain(number: f64) -> String {
    String::from_utf8_lossy(russet_scripting::number::TextBuffer::new().format(number)).into_owned()
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    /// What a script asks for with `redis.set_repl` was read and forgotten. It holds for what the
    /// script changes from there on, and no longer than the script; messages go to replicas only;
    /// what expires goes to everyone, for it is not the script's doing.
    #[test]
    fn a_script_decides_who_gets_its_records() {
        let mut server = TestServer::new();
        server.say("PSETEX old 5 v");
        server.clock.advance_ms(5);
        let call = |key: &str| format!("redis.call('set','{key}','1')");
        let script = [
            call("a"),
            "redis.call('publish','c','m')".to_owned(),
            "redis.set_repl(redis.REPL_AOF)".to_owned(),
            call("b"),
            "redis.call('publish','c','m')".to_owned(),
            "redis.set_repl(redis.REPL_REPLICA)".to_owned(),
            call("c"),
            "redis.call('spublish','c','m')".to_owned(),
            "redis.set_repl(redis.REPL_NONE)".to_owned(),
            call("d"),
            "redis.call('get','old')".to_owned(),
        ];
        let script = script.join(";");
        server.check_records(&[
            (
                &*format!("EVAL {script} 0"),
                "set a 1 | publish c m (ReplicasOnly) | set b 1 (LogOnly) \
                 | set c 1 (ReplicasOnly) | spublish c m (ReplicasOnly) | DEL old",
            ),
            ("EVAL redis.set_repl(redis.REPL_NONE);error('x') 0", ""),
            ("SET k v", "SET k v"),
            ("PUBLISH c m", "PUBLISH c m (ReplicasOnly)"),
        ]);
    }
}
