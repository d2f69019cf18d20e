//! The one way to a handler. However a call arrives, from a client, out of a transaction, a script
//! or ONCE, from a log or from a master, it is checked, run, recorded, counted and shown here. Its
//! shards are locked already.

use crate::call::blocking::{self, BlockedCall};
use crate::call::ctx::{Ctx, Flow, Outcome};
use crate::call::handlers;
use crate::call::mail::Posting;
use crate::call::room::is_out_of_memory;
use crate::call::session::{Gate, Session};
use crate::call::tally::{Timing, note_call, note_size};
use crate::error::Refusal;
use crate::groups::scripting::{once, shows_functions};
use crate::groups::transactions;
use crate::node::{Node, tracking};
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::{Flags, Recorded};
use russet_engine::keys::{Effects, Keys};
use russet_protocol::{Resp, RespWriter, Sink};
use std::mem::ManuallyDrop;

/// Who has a call run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Client,
    /// A transaction: a client sent it before.
    Transaction,
    Script(ScriptLimits),
    /// A call that waited for keys and is tried again. It was shown when it came.
    Waiter,
    /// ONCE, which is itself counted and shown.
    Once,
    /// A log that is read at start. Nothing stands in its way, nothing is counted or shown.
    Load,
}

/// What a script may do at the time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    pub is_read_only: bool,
    /// It may take memory though there is none left.
    pub may_exceed_memory: bool,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invoked {
    /// The reply is written; it may be an error.
    Done,
    /// Nothing is written: the client waits for keys.
    Blocked,
    /// Nothing is written: the same call is to be given again after a letter.
    Later,
    /// Nothing is written: it goes on when it has other shards. It is shown and counted at its end.
    Unfinished,
}

/// Runs a call whose shards are locked. Its arguments are handed on by reference and copied once,
/// for the handler.
#[inline(always)]
pub(crate) fn invoke(ctx: &mut Ctx, args: &Args) -> Invoked {
    let (command, timing, origin) = (ctx.command, ctx.timing, ctx.origin);
    if timing == Timing::Alone {
        return invoke_alone(ctx, args);
    }
    let invoked = run(ctx, args);
    if invoked == Invoked::Done {
        match timing {
            Timing::WithBatch => ctx.tally.add(command),
            _ if origin == Origin::Load => {}
            _ => ctx.stats.count_call(command, 0),
        }
    }
    invoked
}

/// As [`invoke`], for a call that a client has sent by itself. COMMANDLOG remembers it if it has
/// run and was large.
#[inline]
pub(crate) fn invoke_sent(ctx: &mut Ctx, args: Args) -> Invoked {
    let before = written(ctx);
    let invoked = invoke(ctx, &args);
    if invoked == Invoked::Done {
        let reply_bytes = written(ctx).saturating_sub(before);
        let call = (ctx.command, args);
        note_size((ctx.node, ctx.session), call, reply_bytes, Some(ctx.keys));
    }
    invoked
}

/// How far the reply has come, where it is bytes.
#[inline]
pub(crate) fn written(ctx: &mut Ctx) -> usize {
    ctx.reply.wire().map_or(0, |wire| wire.len())
}

/// Runs a call and times it by itself. One that waits is counted when it is over.
fn invoke_alone(ctx: &mut Ctx, args: &Args) -> Invoked {
    if matches!(ctx.origin, Origin::Script(_)) {
        // What the script has computed since the last reading is its own time.
        ctx.tally.read_clock(ctx.node);
    }
    let started = ctx.tally.start(ctx.node, ctx.stats);
    let invoked = run(ctx, args);
    if invoked == Invoked::Done {
        let micros = ctx.tally.elapsed_since(ctx.node, started, ctx.command);
        let call = (ctx.command, *args);
        note_call((ctx.node, ctx.session), ctx.stats, call, micros, Some(ctx.keys));
    }
    invoked
}

/// Checks a call, runs its handler, records and shows it.
#[inline(always)]
fn run(ctx: &mut Ctx, args: &Args) -> Invoked {
    let invoked = match ctx.keys.is_recording() {
        false => run_handler(ctx, args).0,
        true => run_recorded(ctx, args),
    };
    if ctx.node.monitors.is_on() && ctx.is_shown() && invoked != Invoked::Unfinished {
        ctx.node.monitors.feed(ctx, *args);
    }
    if ctx.session.tracking.is_some() && invoked == Invoked::Done {
        tracking::note_call(ctx, *args);
    }
    invoked
}

/// What became of a call, and whether it was refused.
#[inline(always)]
fn run_handler(ctx: &mut Ctx, args: &Args) -> (Invoked, bool) {
    if let Some(refusal) = refusal_of(ctx, args) {
        return conclude(ctx, args, Err(refusal));
    }
    debug_assert!(ctx.is_allowed(*args), "whoever has a call run has looked at the user's rights");
    let outcome = ManuallyDrop::new(handlers::of(ctx.command)(ctx, *args));
    // Which needs no dropping: to find that out would be a call of its own.
    if matches!(*outcome, Ok(Flow::Done)) {
        return (Invoked::Done, false);
    }
    conclude(ctx, args, ManuallyDrop::into_inner(outcome))
}

/// The client waits, or is refused.
#[cold]
fn conclude(ctx: &mut Ctx, args: &Args, outcome: Outcome) -> (Invoked, bool) {
    match outcome {
        Ok(Flow::Done) => (Invoked::Done, false),
        Ok(Flow::Block(request)) => {
            blocking::wait(ctx, *args, *request);
            (Invoked::Blocked, false)
        }
        Ok(Flow::Later) => (Invoked::Later, false),
        Ok(Flow::Again) => (Invoked::Unfinished, false),
        Err(refusal) => {
            fail(ctx, &refusal);
            (Invoked::Done, true)
        }
    }
}

fn run_recorded(ctx: &mut Ctx, args: &Args) -> Invoked {
    let before = Before::of(ctx.keys.effects);
    if shows_functions(ctx.command) {
        // Its messages may leave before it ends: when it selects another database.
        ctx.keys.shows(ctx.node.scripts.changes.last());
    }
    let (invoked, is_refused) = run_handler(ctx, args);
    record(ctx, *args, (before, is_refused));
    if ctx.keys.keyspace().journal().is_strict() {
        note_shown(ctx);
    }
    invoked
}

/// Notes what a call's reply shows beside the shards that it holds. INFO says so itself.
fn note_shown(ctx: &mut Ctx) {
    if walks(ctx.command) || shows_figures(ctx.command) {
        ctx.keys.shows_all();
    } else if shows_functions(ctx.command) || ctx.command == Command::FunctionStats {
        ctx.keys.shows(ctx.node.scripts.changes.last());
    }
}

/// Whether a command looks at more of the keyspace than the shards that it holds at its end: it has
/// held others before, or reads counts without any.
pub(crate) fn walks(command: Command) -> bool {
    command.spec().flags.has_any(Flags::ALL_SHARDS.or(Flags::FURTHER_SHARDS))
}

/// Whether it shows keys, or how many there are, without looking at them.
pub(crate) fn shows_figures(command: Command) -> bool {
    matches!(command, Command::MemoryStats | Command::HotkeysGet)
}

/// Why a call is refused, whoever has it run: no login, no memory, a script that only reads. What
/// the user may not do was refused before: by the gate, by EXEC, or by the script's host.
#[inline]
fn refusal_of(ctx: &Ctx, args: &Args) -> Option<Refusal> {
    let is_read_only = matches!(ctx.origin, Origin::Script(limits) if limits.is_read_only);
    if !is_read_only && !ctx.session.gate.has(Gate::REFUSES) {
        return None;
    }
    let refusal = login_refusal(ctx.session, ctx.command);
    refusal.or_else(|| limit_refusal(ctx.session, (ctx.command, *args), ctx.origin))
}

/// The part of [`invoke`]'s check that is about the login. The gate asks it, too: what it refuses
/// is neither queued nor planned.
pub(crate) fn login_refusal(session: &Session, command: Command) -> Option<Refusal> {
    let must_log_in =
        session.gate.has(Gate::NEEDS_AUTH) && !command.spec().flags.has(Flags::NO_AUTH);
    must_log_in.then_some(Refusal::NoAuth)
}

/// The part of [`invoke`]'s check that is about memory and scripts that only read. The gate and the
/// host of scripts ask it before they look at the keys of a call.
#[cold]
pub(crate) fn limit_refusal(
    session: &Session,
    (command, args): (Command, Args),
    origin: Origin,
) -> Option<Refusal> {
    let is_out_of_memory = session.gate.has(Gate::OUT_OF_MEMORY);
    let needs_memory = match origin {
        // COMPAT: what goes to replicas is refused where writes are.
        Origin::Script(limits) if limits.is_read_only && command.spec().reaches_replicas() => {
            let text = "ERR Write commands are not allowed from read-only scripts.";
            return Some(Refusal::text(text));
        }
        Origin::Script(limits) => denies_oom(command) && !limits.may_exceed_memory,
        Origin::Client | Origin::Waiter => needs_memory(session, command, args),
        // EXEC and ONCE were asked for all that they run; a log has room for what had it before.
        Origin::Transaction | Origin::Once | Origin::Load => false,
    };
    (is_out_of_memory && needs_memory).then_some(Refusal::OutOfMemory)
}

fn denies_oom(command: Command) -> bool {
    command.spec().flags.has(Flags::DENYOOM)
}

/// Whether a call is refused when memory has run out: by its own flag, or by that of a command that
/// it runs. Scripts are asked for each of their commands.
fn needs_memory(session: &Session, command: Command, args: Args) -> bool {
    let is_exec = command == Command::Exec || once::wraps_exec(command, args);
    denies_oom(command)
        || once::wrapped(command, args).is_some_and(denies_oom)
        || is_exec && transactions::queued(session).any(|(command, _args)| denies_oom(command))
}

/// Answers with a refusal, and counts it.
#[cold]
fn fail(ctx: &mut Ctx, refusal: &Refusal) {
    let text = refusal.wire();
    ctx.stats.of(ctx.command).failed.add(1);
    if !matches!(refusal, Refusal::Counted(_)) {
        ctx.node.stats.count_error(&text);
    }
    ctx.reply.error(&text);
}

/// What the effects were before a call.
#[derive(Clone, Copy)]
struct Before {
    dirty: u64,
    records: i64,
}

impl Before {
    fn of(effects: &Effects) -> Self {
        Before { dirty: effects.dirty, records: own_records(effects) }
    }
}

/// How many records there are without those of keys and fields that a call has found expired.
fn own_records(effects: &Effects) -> i64 {
    effects.records.len() as i64 - effects.expiry_records as i64
}

/// Records what a call has changed, unless its handler has done so itself.
fn record(ctx: &mut Ctx, args: Args, (before, is_refused): (Before, bool)) {
    let db = ctx.keys.db;
    let effects = &mut *ctx.keys.effects;
    let has_changed = effects.dirty != before.dirty;
    let is_recorded = own_records(effects) > before.records;
    match ctx.command.spec().recorded {
        Recorded::Verbatim if has_changed && !is_recorded => {
            effects.records.push_args(db, args);
        }
        Recorded::ReplicasOnly if !is_refused => {
            effects.records.push_for_replicas(db, args);
        }
        Recorded::Verbatim | Recorded::ReplicasOnly | Recorded::Rewritten | Recorded::Never => {}
    }
    if own_records(effects) > before.records {
        ctx.stats.of(ctx.command).recorded.add(1);
    }
}

/// A call that waits for keys, as far as serving it is concerned.
pub(crate) struct WaitingCall<'a> {
    pub call: &'a dyn BlockedCall,
    pub command: Command,
    pub resp: Resp,
}

/// The reply to a client that waits, served out of the call that feeds it. What is taken is
/// recorded by the call's own room; the client counts it when it gets the reply. Without a key
/// there is one of another type.
pub(crate) fn serve(
    WaitingCall { call, command, resp }: WaitingCall<'_>,
    (keys, node): (&mut Keys, &Node),
    key: Option<&[u8]>,
) -> Vec<u8> {
    let mut reply = Vec::new();
    let served = match key {
        _ if denies_oom(command) && is_out_of_memory(node) => Err(Refusal::OutOfMemory),
        Some(key) => call.serve(keys, &mut RespWriter::new(&mut reply, resp), key),
        None => Err(Refusal::WrongType),
    };
    match served {
        Ok(()) => reply,
        Err(refusal) => error_reply(resp, &refusal),
    }
}

/// A refusal for a client that waits.
pub(crate) fn error_reply(resp: Resp, refusal: &Refusal) -> Vec<u8> {
    let mut reply = Vec::new();
    RespWriter::new(&mut reply, resp).error(&refusal.wire());
    reply
}

/// What follows from the effects of calls, while their shards are still locked: those who wait are
/// served, records and events passed on, gauges brought up to date.
#[inline]
pub(crate) fn publish_effects(keys: &mut Keys, node: &Node) {
    if !keys.effects.is_published() {
        publish(keys, node);
    }
}

fn publish(keys: &mut Keys, node: &Node) {
    publish_call(keys, node);
    // First: who reads counts without a lock depends on the offset that there is then.
    append(keys, node);
    keys.publish();
}

/// The same for a call of a batch, except for what is done once for all of them.
#[inline]
pub(crate) fn publish_call(keys: &mut Keys, node: &Node) {
    if keys.effects.has_listeners() {
        return publish_to_clients(keys, node);
    }
    keys.effects.records.end_unit();
}

#[inline(never)]
fn publish_to_clients(keys: &mut Keys, node: &Node) {
    if !keys.effects.ready.is_empty() {
        // The command may have taken long, and what it fed may have expired meanwhile.
        keys.now = node.clock.now();
        blocking::serve_ready(keys, node);
    }
    keys.effects.records.end_unit();
    notify_listeners(keys, node);
}

/// Notifies those who have copies of keys, or listen to events, of what was changed so far: at the
/// end of a call, and before a message that it publishes, which may be about these changes.
pub(crate) fn notify_listeners(keys: &mut Keys, node: &Node) {
    if !keys.effects.changed.is_empty() || keys.effects.are_all_changed {
        tracking::publish_changes(keys, node);
    }
    publish_notices(keys, node);
}

/// Publishes the events so far: at the end of a call, and before it changes which are published.
pub(crate) fn publish_notices(keys: &mut Keys, node: &Node) {
    if !keys.effects.notices.is_empty() {
        let notices = std::mem::take(&mut keys.effects.notices);
        node.publish_notices(&notices, &mut Posting::of(keys));
        keys.effects.notices = notices;
        keys.effects.notices.clear();
    }
}

/// Passes the records of calls on, and what others are to get when these are durable.
#[inline]
pub(crate) fn append(keys: &mut Keys, node: &Node) {
    if !keys.effects.records.is_empty() || !keys.effects.outbox.is_empty() {
        append_records(keys, node);
    }
}

#[inline(never)]
fn append_records(keys: &mut Keys, node: &Node) {
    let journal = node.keyspace.journal();
    let version = keys.version();
    if !keys.effects.records.is_empty()
        && let Some(offset) = node.pass_on(&mut keys.effects.records, version)
    {
        keys.effects.appended = offset;
        if journal.is_strict() {
            keys.set_last_write(offset);
        }
    }
    if !keys.effects.outbox.is_empty() {
        let offset = keys.last_write().max(keys.effects.shown);
        let outbox = std::mem::take(&mut keys.effects.outbox);
        outbox.into_iter().for_each(|message| journal.defer_message(offset, message));
    }
}

/// Before the shards are unlocked: what the client's output depends on from now on.
#[inline]
pub(crate) fn note_dependence(keys: &mut Keys, session: &mut Session, command: Command) {
    if keys.is_recording() {
        note_offsets(keys, session, command);
    }
}

#[inline(never)]
fn note_offsets(keys: &mut Keys, session: &mut Session, command: Command) {
    let appended = std::mem::take(&mut keys.effects.appended);
    let shown = std::mem::take(&mut keys.effects.shown);
    session.last_write = session.last_write.max(appended);
    // These show nothing. What SAVE says it has done is durable without the log, and who changes a
    // log that can't be written must not wait for it.
    let shows_nothing = matches!(command, Command::Save | Command::Shutdown | Command::ConfigSet);
    if !keys.keyspace().journal().is_strict() || shows_nothing {
        return;
    }
    let held = if keys.held().is_empty() { 0 } else { keys.last_write() };
    session.depends_on = session.depends_on.max(held).max(shown);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;
    use russet_base::OwnedArgs;
    use russet_catalog::resolve;

    fn is_refused(session: &Session, line: &str, origin: Origin) -> bool {
        let args: OwnedArgs = line.split(' ').collect();
        let command = resolve(args.as_args()).expect("there is such a command");
        limit_refusal(session, (command, args.as_args()), origin).is_some()
    }

    /// The checks for memory and for scripts that only read stood beside `invoke`, each where a
    /// call came from: a further origin would have had none.
    #[test]
    fn limits_depend_on_who_has_a_call_run() {
        let script = |is_read_only, may_exceed_memory| {
            Origin::Script(ScriptLimits { is_read_only, may_exceed_memory })
        };
        let mut session = TestServer::new().session;
        let reads = script(true, true);
        assert!(
            is_refused(&session, "SET k v", reads) && is_refused(&session, "PUBLISH c m", reads)
        );
        assert!(!is_refused(&session, "GET k", reads));
        assert!(!is_refused(&session, "SET k v", Origin::Client));
        session.gate.set(Gate::OUT_OF_MEMORY, true);
        let refused = |origin| is_refused(&session, "SET k v", origin);
        assert!(
            refused(Origin::Client) && refused(Origin::Waiter) && refused(script(false, false))
        );
        let whole = [script(false, true), Origin::Transaction, Origin::Once, Origin::Load];
        assert!(!whole.into_iter().any(refused));
        assert!(is_refused(&session, "ONCE id PX 1000 SET k v", Origin::Client));
        assert!(!is_refused(&session, "DEL k", Origin::Client));
    }
}
