//! What a running script asks of the server: `redis.call` and the rest of `redis`.

use super::api::Api;
use super::cache::sha1_hex;
use super::reply::{COUNTED, up_to_nul};
use super::run::Request;
use super::running::Run;
use super::sink::LuaSink;
use crate::call::ctx::Ctx;
use crate::call::invoke::{Origin, ScriptLimits, invoke, limit_refusal};
use crate::call::session::Gate;
use crate::call::tally::Timing;
use crate::node::Node;
use crate::node::acl::Context;
use crate::node::config::Directive;
use crate::node::renames::OwnNames;
use russet_base::OwnedArgs;
use russet_base::escape::{escape, unescape};
use russet_base::float::format_f64;
use russet_catalog::spec::Flags;
use russet_catalog::{Command, Unknown, has_keys, keys as key_positions, resolve};
use russet_engine::record::Destination;
use russet_engine::types::element::IntText;
use russet_protocol::Resp;
use russet_scripting::number::to_integer;
use russet_scripting::{Call, Fault, Host, Outcome, Tick, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const UNKNOWN_COMMAND: &str = "ERR Unknown command called from script";
/// Before what the user of a script may not do.
const ACL_FAILURE: &str = "ERR ACL failure in script: ";
const BAD_ARGUMENT: &str = "ERR Command arguments must be strings or integers";

/// One run of a script.
pub struct RunHost<'h, 'c, 'k> {
    ctx: &'h mut Ctx<'c, 'k>,
    request: &'h Request<'h>,
    /// By the wall clock, as it was read for the call.
    started: u64,
    /// By the monotonic clock, since somebody asked.
    started_micros: Option<u64>,
    /// Since it is slow.
    run: Option<Arc<Run>>,
    has_written: bool,
    pub resp: Resp,
    /// The keys that the script was given, where others are of interest.
    declared: Option<HashSet<Vec<u8>>>,
    command_args: OwnedArgs,
    /// Commands that were called.
    pub operations: u64,
}

/// What is to be done about keys that a script was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undeclared {
    Allow,
    Warn,
    Refuse,
}

fn undeclared(node: &Node) -> Undeclared {
    match node.config.choice(Directive::ScriptUndeclaredKeys) {
        "warn" => Undeclared::Warn,
        "refuse" => Undeclared::Refuse,
        _ => Undeclared::Allow,
    }
}

impl<'h, 'c, 'k> RunHost<'h, 'c, 'k> {
    /// `command_args` is room for the arguments of commands, which [`RunHost::end`] gives back.
    pub fn new(
        ctx: &'h mut Ctx<'c, 'k>,
        request: &'h Request<'h>,
        (started, command_args): (u64, OwnedArgs),
    ) -> Self {
        // Every key that is used is looked at only if the configuration asks for it.
        let is_of_interest = undeclared(ctx.node) != Undeclared::Allow;
        let keys = request.args.keys.iter();
        let declared = is_of_interest.then(|| keys.map(<[u8]>::to_vec).collect());
        RunHost {
            ctx,
            request,
            started,
            started_micros: None,
            run: None,
            has_written: false,
            resp: Resp::V2,
            declared,
            command_args,
            operations: 0,
        }
    }

    /// The run is over.
    pub fn end(self) -> OwnedArgs {
        if let Some(run) = &self.run {
            self.ctx.node.scripts.running.end(run);
        }
        self.command_args
    }

    /// When the run began, its compilation included. Most runs are over before anybody asks; the
    /// first time the wall clock tells how long ago it was.
    fn monotonic_start(&mut self) -> u64 {
        let clock = &self.ctx.node.clock;
        *self.started_micros.get_or_insert_with(|| {
            let elapsed = clock.now_micros().cast_unsigned().saturating_sub(self.started);
            let before = elapsed.saturating_add(self.request.compile_micros);
            clock.monotonic_micros().saturating_sub(before)
        })
    }

    /// `redis.call` and `redis.pcall`.
    fn call(&mut self, call: &mut Call<'_>, is_protected: bool) -> Outcome {
        self.operations += 1;
        let error = match self.read_args(call) {
            Ok(()) => match self.run_command(call)? {
                Ok(value) => return call.give(value),
                Err(text) => counted_error(call, &text)?,
            },
            Err(text) => error_table(call, text)?,
        };
        if is_protected { call.give(error) } else { Err(Fault::Error(error)) }
    }

    /// The arguments of the command, numbers as text.
    fn read_args(&mut self, call: &Call<'_>) -> Result<(), &'static str> {
        self.command_args.clear();
        if call.arg_count() == 0 {
            return Err("ERR Please specify at least one argument for this call");
        }
        let (heap, args) = call.args();
        for arg in args {
            match *arg {
                Value::Str(string) => self.command_args.push(heap.bytes(string)),
                Value::Number(value) => push_number(&mut self.command_args, value),
                _ => return Err(BAD_ARGUMENT),
            }
        }
        Ok(())
    }

    /// Runs the command in `command_args`; its reply, or the text of its error.
    fn run_command(&mut self, call: &mut Call<'_>) -> Result<Result<Value, String>, Fault> {
        let command = match self.check() {
            Ok(command) => command,
            Err(text) => {
                self.count_rejected(&text);
                return Ok(Err(text));
            }
        };
        let origin = self.origin();
        if !self.has_written && command.spec().flags.has(Flags::WRITE) {
            self.begin_to_write()?;
        }
        let ctx = &mut *self.ctx;
        let args = self.command_args.as_args();
        ctx.keys.select(ctx.session.db);
        let is_wanted = call.has_wanted_results();
        let mut sink = LuaSink::new(call.heap(), self.resp, is_wanted);
        let mut inner = Ctx {
            keys: ctx.keys,
            reply: &mut sink,
            session: ctx.session,
            node: ctx.node,
            stats: ctx.stats,
            tally: ctx.tally,
            // Else its time is part of the script's only.
            timing: if ctx.node.slowlog.is_precise() { Timing::Alone } else { Timing::WithCaller },
            origin,
            command,
            code: None,
            may_block: false,
        };
        invoke(&mut inner, &args);
        ctx.stats.processed.add(1);
        let commands = &ctx.session.card.commands;
        commands.store(commands.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        sink.finish()
    }

    fn count_rejected(&self, text: &str) {
        if let Ok(command) = resolve(self.command_args.as_args()) {
            self.ctx.stats.of(command).rejected.add(1);
        }
        // COMPAT: it is counted as what it is (tests/wire/acl/scripts.wire).
        let counted = if text.starts_with(ACL_FAILURE) { "NOPERM" } else { text };
        self.ctx.node.stats.count_error(counted);
    }

    /// The command that the arguments mean, if a script may call it, with its keys in locked
    /// shards.
    fn check(&mut self) -> Result<Command, String> {
        self.take_own_name()?;
        let args = self.command_args.as_args();
        let command = resolve(args).map_err(|unknown| match unknown {
            Unknown::Command => UNKNOWN_COMMAND.to_owned(),
            Unknown::Subcommand(parent) => format!(
                "ERR unknown subcommand '{}'. Try {} HELP.",
                escape(up_to_nul(args.get(1).unwrap_or_default())),
                parent.spec().name.to_uppercase()
            ),
        })?;
        let spec = command.spec();
        if !spec.arity.allows(args.len()) {
            return Err("ERR Wrong number of args calling command from script".to_owned());
        }
        if spec.flags.has(Flags::NOSCRIPT) && !self.may_debug(command) {
            return Err("ERR This Redis command is not allowed from script".to_owned());
        }
        // A script holds shards, not users: what changes meanwhile counts from its next call on.
        self.ctx.session.refresh_rights(&self.ctx.node.acl);
        let context = Context::Script;
        let checked = self.ctx.node.check_rights(self.ctx.session, (command, args), context);
        checked.map_err(|(_, text)| format!("{ACL_FAILURE}{text}"))?;
        let session = &*self.ctx.session;
        if (self.request.is_read_only || session.gate.has(Gate::OUT_OF_MEMORY))
            && let Some(refusal) = limit_refusal(session, (command, args), self.origin())
        {
            return Err(refusal.wire().into_owned());
        }
        self.check_keys(command)?;
        Ok(command)
    }

    /// `rename-command`: from here on the command has its own name.
    #[inline]
    fn take_own_name(&mut self) -> Result<(), String> {
        let Some(renames) = &self.ctx.node.renames else { return Ok(()) };
        match renames.translate(self.command_args.as_args()) {
            OwnNames::AsIs => {}
            OwnNames::Translated(own) => self.command_args = own,
            OwnNames::Unknown(_) => return Err(UNKNOWN_COMMAND.to_owned()),
        }
        Ok(())
    }

    /// From here on the run can't be ended from outside. (A published message can't be taken back
    /// either, but data is whole without it.)
    fn begin_to_write(&mut self) -> Result<(), Fault> {
        if let Some(run) = &self.run
            && !self.ctx.node.scripts.running.may_write(run)
        {
            return Err(Fault::Killed);
        }
        self.has_written = true;
        Ok(())
    }

    /// Who has its calls run. It may take memory though there is none left if it says so, or if it
    /// has begun to write and is to be whole.
    fn origin(&self) -> Origin {
        Origin::Script(ScriptLimits {
            is_read_only: self.request.is_read_only,
            may_exceed_memory: self.request.allows_oom || self.has_written,
        })
    }

    fn may_debug(&self, command: Command) -> bool {
        command == Command::Debug && self.ctx.node.scripts.may_debug.load(Ordering::Relaxed)
    }

    fn check_keys(&mut self, command: Command) -> Result<(), String> {
        let flags = command.spec().flags;
        let is_whole = flags.has_any(Flags::ALL_SHARDS.or(Flags::FURTHER_SHARDS));
        if !is_whole && !has_keys(command) {
            return Ok(());
        }
        if is_whole && !self.holds_all() {
            return Err(outside(command.spec().full_name.as_bytes()));
        }
        // A wide script has not begun before it held all.
        if self.request.is_wide && self.declared.is_none() {
            return Ok(());
        }
        let args = self.command_args.as_args();
        let (mut stray, mut undeclared) = (None, None);
        let keys = &mut *self.ctx.keys;
        let declared = &self.declared;
        let _refused_by_the_handler = key_positions(command, args, &mut |key| {
            let key = args.at(key.index);
            if !keys.holds(key) {
                stray = Some(key);
            }
            if declared.as_ref().is_some_and(|declared| !declared.contains(key)) {
                undeclared = Some(key);
            }
        });
        if let Some(key) = stray {
            return Err(outside(key));
        }
        let undeclared = undeclared.map(<[u8]>::to_vec);
        undeclared.map_or(Ok(()), |key| self.found_undeclared(&key))
    }

    fn holds_all(&self) -> bool {
        self.ctx.keys.holds_all()
    }

    fn found_undeclared(&mut self, key: &[u8]) -> Result<(), String> {
        let node = self.ctx.node;
        node.scripts.undeclared_keys.fetch_add(1, Ordering::Relaxed);
        let name = escape(self.request.name).into_owned();
        if undeclared(node) == Undeclared::Refuse {
            return Err(format!(
                "ERR Script {name} used the key '{}' that it was not given in KEYS",
                escape(key)
            ));
        }
        node.host.log(&format!("script {name} used an undeclared key like {}", pattern_of(key)));
        Ok(())
    }

    fn log(&mut self, call: &mut Call<'_>) -> Outcome {
        if call.arg_count() < 2 {
            return Err(raise(call, "ERR redis.log() requires two arguments or more."));
        }
        let Value::Number(level) = call.arg(1) else {
            return Err(raise(call, "ERR First argument must be a number (log level)."));
        };
        if !(0.0..=3.0).contains(&level) {
            return Err(raise(call, "ERR Invalid log level."));
        }
        let mut line = Vec::new();
        for position in 2..=call.arg_count() {
            if let Value::Str(_) | Value::Number(_) = call.arg(position) {
                let text = call.string(position)?;
                if !line.is_empty() {
                    line.push(b' ');
                }
                line.extend_from_slice(call.bytes(text));
            }
        }
        self.ctx.node.host.log_script(level as u8, &String::from_utf8_lossy(&line));
        call.give_none()
    }

    fn set_resp(&mut self, call: &mut Call<'_>) -> Outcome {
        if call.arg_count() != 1 {
            return Err(raise(call, "ERR redis.setresp() requires one argument."));
        }
        // COMPAT: a fraction is dropped, and a text that reads as a number is one; test
        // tests/wire/scripting/api.wire, "setresp".
        let given = call.arg(1);
        let version = call.heap().to_number(given).map(to_integer);
        self.resp = match version {
            Some(2) => Resp::V2,
            Some(3) => Resp::V3,
            _ => return Err(raise(call, "ERR RESP version must be 2 or 3.")),
        };
        call.give_none()
    }

    /// Who gets the records of what the script changes from here on.
    fn set_repl(&mut self, call: &mut Call<'_>) -> Outcome {
        if call.arg_count() != 1 {
            return Err(raise(call, "ERR redis.set_repl() requires one argument."));
        }
        let destination = match call.arg(1) {
            Value::Number(0.0) => Destination::Nobody,
            Value::Number(1.0) => Destination::LogOnly,
            Value::Number(2.0) => Destination::ReplicasOnly,
            Value::Number(3.0) => Destination::Everyone,
            _ => {
                return Err(raise(
                    call,
                    "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or \
                     REPL_NONE.",
                ));
            }
        };
        self.ctx.keys.effects.records.destination = destination;
        call.give_none()
    }

    fn acl_check(&mut self, call: &mut Call<'_>) -> Outcome {
        if let Err(text) = self.read_args(call) {
            return Err(raise(call, text));
        }
        let args = self.command_args.as_args();
        let Ok(command) = self.ctx.node.resolve(args) else {
            return Err(raise(call, "ERR Invalid command passed to redis.acl_check_cmd()"));
        };
        self.ctx.session.refresh_rights(&self.ctx.node.acl);
        let asked = self.ctx.node.call_of(self.ctx.session, (command, args));
        let is_allowed = self.ctx.session.login.rights().check(&asked).is_ok();
        call.give(is_allowed)
    }
}

impl Host for RunHost<'_, '_, '_> {
    fn tick(&mut self) -> Tick {
        let node = self.ctx.node;
        let Some(run) = &self.run else {
            let busy_after_ms = node.config.int(Directive::BusyReplyThreshold);
            let busy_after = u64::try_from(busy_after_ms).unwrap_or(0).saturating_mul(1000);
            let (started, now) = (self.monotonic_start(), node.clock.monotonic_micros());
            if now.saturating_sub(started) >= busy_after {
                let shards = self.ctx.keys.held();
                let run = self.request.describe(shards.clone(), started, self.has_written);
                self.run = Some(node.scripts.running.begin(run));
                // Those who wait for one of its shards get BUSY.
                node.keyspace.wake_waiters(shards);
            }
            return Tick::Continue;
        };
        // COMPAT: time stands still in a script until it is slow; test
        // tests/wire/scripting/script.wire, "a script that has written can't be killed".
        self.ctx.keys.fixed_micros = None;
        match run.is_to_end.load(Ordering::Acquire) {
            true => Tick::Kill,
            false => Tick::Continue,
        }
    }

    fn native(&mut self, number: u16, call: &mut Call<'_>) -> Outcome {
        match Api::of(number) {
            Some(Api::Call) => self.call(call, false),
            Some(Api::Pcall) => self.call(call, true),
            Some(Api::ErrorReply) => single_field(call, "err"),
            Some(Api::StatusReply) => single_field(call, "ok"),
            Some(Api::Sha1Hex) => sha1_of(call),
            Some(Api::Log) => self.log(call),
            Some(Api::SetResp) => self.set_resp(call),
            Some(Api::ReplicateCommands) => call.give(true),
            Some(Api::SetRepl) => self.set_repl(call),
            Some(Api::Breakpoint) => call.give(false),
            Some(Api::Debug) => call.give_none(),
            Some(Api::AclCheckCmd) => self.acl_check(call),
            Some(Api::RegisterFunction) | None => Err(raise(
                call,
                "ERR redis.register_function can only be called on FUNCTION LOAD command",
            )),
        }
    }
}

/// Whole numbers up to this size have all their digits as arguments of commands.
const WHOLE_MAX: f64 = (1u64 << 62) as f64;

/// COMPAT: whole numbers as integers, larger ones and others in the fewest digits that mean them;
/// what is no number keeps its sign; test tests/wire/scripting/eval.wire, "numbers as arguments".
fn push_number(args: &mut OwnedArgs, value: f64) {
    let whole = value as i64;
    if whole as f64 == value && value.abs() <= WHOLE_MAX {
        return args.push(IntText::new(whole).as_bytes());
    }
    if value.is_nan() {
        return args.push(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    let mut text = Vec::new();
    format_f64(value, &mut text);
    args.push(&text);
}

/// A script's own proof that it reaches no other keys did not hold.
fn outside(key: &[u8]) -> String {
    format!("ERR Script reached for '{}' outside the keys it holds", escape(key))
}

/// A key with its digits and long parts blurred, so that no user data reaches the log.
fn pattern_of(key: &[u8]) -> String {
    let mut parts = Vec::new();
    for part in key.split(|byte| *byte == b':') {
        let is_name = part.len() <= 16 && part.iter().all(|byte| byte.is_ascii_alphabetic());
        parts.push(if is_name { String::from_utf8_lossy(part).into_owned() } else { "*".into() });
    }
    parts.join(":")
}

fn error_table(call: &mut Call<'_>, text: &str) -> Result<Value, Fault> {
    let heap = call.heap();
    let table = heap.table(0, 2)?;
    let text = heap.string(&unescape(text))?;
    heap.set_field(table, b"err", Value::Str(text))?;
    Ok(Value::Table(table))
}

/// The error of a command, which was counted. It comes as a client would see it: in one line.
fn counted_error(call: &mut Call<'_>, text: &str) -> Result<Value, Fault> {
    let error = error_table(call, &text.replace(['\r', '\n'], " "))?;
    if let Value::Table(table) = error {
        call.heap().set_field(table, COUNTED, Value::Bool(true))?;
    }
    Ok(error)
}

/// An error of the `redis` functions: a table, like those of commands.
pub fn raise(call: &mut Call<'_>, text: &str) -> Fault {
    match error_table(call, text) {
        Ok(table) => Fault::Error(table),
        Err(fault) => fault,
    }
}

/// `redis.error_reply` and `redis.status_reply`.
fn single_field(call: &mut Call<'_>, name: &str) -> Outcome {
    let text = match call.arg(1) {
        Value::Str(text) if call.arg_count() == 1 => call.bytes(text).to_vec(),
        _ => {
            let error = error_table(call, "ERR wrong number or type of arguments")?;
            return call.give(error);
        }
    };
    let text = match name {
        "err" => with_code(up_to_nul(&text)),
        _ => text,
    };
    let heap = call.heap();
    let table = heap.table(0, 1)?;
    let text = heap.string(&text)?;
    heap.set_field(table, name.as_bytes(), Value::Str(text))?;
    call.give(table)
}

/// COMPAT: a single word gets the code ERR before it, and a minus in front is dropped.
fn with_code(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match text.contains(&b' ') {
        true => text.to_vec(),
        false => [b"ERR ", text].concat(),
    }
}

fn sha1_of(call: &mut Call<'_>) -> Outcome {
    if call.arg_count() != 1 {
        return Err(raise(call, "ERR wrong number of arguments"));
    }
    // COMPAT: what is no text has the digest of an empty one.
    let sha = match call.arg(1) {
        Value::Str(_) | Value::Number(_) => {
            let text = call.string(1)?;
            sha1_hex(call.bytes(text))
        }
        _ => sha1_hex(b""),
    };
    call.give_bytes(&sha)
}
