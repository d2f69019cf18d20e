//! Commands that wait for a key to be fed, whatever its type: how they are parked, served by the
//! writer that feeds them, tried again, and given up.

use crate::call::client::Hold;
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::call::invoke::{Origin, WaitingCall, error_reply, publish_effects, serve};
use crate::call::mail::{Letter, Mailbox, Posting};
use crate::call::session::Session;
use crate::error::Refusal;
use crate::node::acl::User;
use crate::node::clients::{ClientCard, ClientFlags};
use crate::node::{Node, tracking};
use russet_base::clock::UnixMillis;
use russet_base::longdouble::LongDouble;
use russet_base::{Args, OwnedArgs, num};
use russet_catalog::{Command, resolve};
use russet_engine::keys::{Caller, Effects, Keys, ReadyKey};
use russet_engine::keyspace::KeyspaceWait;
use russet_engine::store::shard_set::ShardSet;
use russet_engine::tracked::Reader;
use russet_engine::value::{Type, WrongType, type_of};
use russet_engine::waiting::Waiter;
use russet_protocol::{Resp, Sink};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a blocked client wants with the key that feeds it.
pub trait BlockedCall: Send + Sync {
    /// Takes from `key`, which holds a value of the wanted type, and writes the reply.
    fn serve(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<(), Refusal>;

    /// Whether `key`, which holds a value of the wanted type, has enough for this call. One that
    /// has not is passed over, and keeps its place.
    fn is_satisfied(&self, _keys: &mut Keys, _key: &[u8]) -> bool {
        true
    }

    /// A further key that serving touches. If its shard is not free for the writer, the client is
    /// told to try again itself.
    fn also_needs(&self) -> Option<&[u8]> {
        None
    }

    /// Whether it is made again as a whole: served from all of its keys, not from the first that
    /// has something. Then `is_satisfied` and `serve` look at all of them, too.
    fn is_whole(&self) -> bool {
        false
    }

    /// What ends the wait when `key` is gone or has become something else; None to wait on.
    fn lost(&self, _key: &[u8], _found: Option<Type>) -> Option<Refusal> {
        None
    }

    /// When to look again though nobody has written.
    fn alarm(&self, _keys: &mut Keys) -> Option<UnixMillis> {
        None
    }

    /// The arguments by which it is made again.
    fn again(&self, args: Args) -> OwnedArgs {
        args.into()
    }

    /// The reply when the time is over.
    fn timed_out(&self, reply: &mut dyn Sink);
}

/// A call that pops from the first of its keys that has something, whatever the type.
pub trait BlockedPop: Send + Sync + 'static {
    const WANTS: Type;

    /// Pops from `key`, writes the reply and records it. False, and no reply, without a value.
    fn pop(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<bool, WrongType>;
}

impl<P: BlockedPop> BlockedCall for P {
    fn serve(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<(), Refusal> {
        self.pop(keys, reply, key)?;
        Ok(())
    }

    fn timed_out(&self, reply: &mut dyn Sink) {
        reply.null_array();
    }
}

/// Pops at once, or waits until one of the keys is fed.
pub fn pop_or_wait<'a, P: BlockedPop>(
    ctx: &mut Ctx,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    deadline: Option<UnixMillis>,
    call: P,
) -> Outcome {
    for key in keys.clone() {
        if call.pop(ctx.keys, ctx.reply, key)? {
            return DONE;
        }
    }
    if !ctx.may_block {
        call.timed_out(ctx.reply);
        return DONE;
    }
    let keys = keys.map(Box::from).collect();
    let request = BlockRequest { keys, wants: P::WANTS, deadline, call: Box::new(call) };
    Ok(Flow::Block(Box::new(request)))
}

/// A handler's wish to wait.
pub struct BlockRequest {
    pub keys: Vec<Box<[u8]>>,
    pub wants: Type,
    /// None: for ever.
    pub deadline: Option<UnixMillis>,
    pub call: Box<dyn BlockedCall>,
}

impl std::fmt::Debug for BlockRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockRequest").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

/// What hangs in the shards' queues.
struct Parked {
    call: Box<dyn BlockedCall>,
    keys: Arc<[Box<[u8]>]>,
    resp: Resp,
    card: Arc<ClientCard>,
    mailbox: Arc<dyn Mailbox>,
    /// How many clients are blocked: one fewer as soon as the wait is claimed.
    blocked_clients: Arc<AtomicU64>,
    /// It was asked to try again, and has not begun to.
    is_to_retry: AtomicBool,
    command: Command,
    /// Its user, and the version of its rights when these were last looked at.
    user: Option<Arc<User>>,
    rights_version: AtomicU64,
    /// Its client, if that tracks what this call reads.
    reader: Option<Reader>,
}

impl Parked {
    /// Whether its rights were changed since they were looked at: it may not be served before they
    /// are looked at again.
    fn has_other_rights(&self) -> bool {
        let version = self.rights_version.load(Ordering::Acquire);
        self.user.as_ref().is_some_and(|user| user.version() != version)
    }
}

/// What the session remembers while it waits.
pub struct BlockedState {
    pub waiter: Arc<Waiter>,
    pub keys: Arc<[Box<[u8]>]>,
    pub deadline: Option<UnixMillis>,
    pub args: OwnedArgs,
    /// The call is to be tried again and waits for its shards.
    pub retry: Option<KeyspaceWait>,
}

impl BlockedState {
    /// The command that waits. It was understood once, so it is understood again.
    pub fn command(&self) -> Option<Command> {
        resolve(self.args.as_args()).ok()
    }
}

/// A call has found nothing to take: its client waits, or goes on waiting.
pub(crate) fn wait(ctx: &mut Ctx, args: Args, request: BlockRequest) {
    if ctx.origin != Origin::Waiter {
        return park(ctx, args, request);
    }
    // A second try was in vain: its turn is over for now. Its rights were looked at again.
    if let (Hold::Keys(state), Some((_, version))) = (&ctx.session.hold, ctx.session.login.user()) {
        parked(&state.waiter).rights_version.store(version, Ordering::Release);
    }
    recheck_waiters(ctx);
}

/// A second try was answered: nobody else may answer, and those behind it get their turn.
pub(crate) fn end_retry(ctx: &mut Ctx) {
    recheck_waiters(ctx);
    if let Hold::Keys(state) = std::mem::take(&mut ctx.session.hold) {
        let was_waiting = claim(&state.waiter);
        debug_assert!(was_waiting, "its keys and its card were locked since it was seen waiting");
    }
}

/// A second try is refused before it is made. False if its client was served meanwhile, so that the
/// answer is in the mail.
pub(crate) fn end_refused(session: &mut Session) -> bool {
    let Hold::Keys(state) = &session.hold else { return true };
    let is_ours = claim(&state.waiter);
    if is_ours {
        session.hold = Hold::None;
    }
    is_ours
}

fn recheck_waiters(ctx: &mut Ctx) {
    if let Hold::Keys(state) = &ctx.session.hold {
        state.keys.iter().for_each(|key| ctx.keys.recheck_waiters(key));
    }
}

/// Parks a client in the queues of its keys. The shards of all of them are locked.
fn park(ctx: &mut Ctx, args: Args, request: BlockRequest) {
    let Ctx { keys, session, node, command, .. } = ctx;
    let BlockRequest { keys: awaited, wants, deadline, call } = request;
    let awaited: Arc<[Box<[u8]>]> = awaited.into();
    let (again, alarm) = (call.again(args), call.alarm(keys));
    let user = session.login.user();
    let parked = Parked {
        call,
        keys: awaited.clone(),
        resp: session.resp,
        card: session.card.clone(),
        mailbox: session.mailbox.clone(),
        blocked_clients: node.stats.blocked_clients.clone(),
        is_to_retry: AtomicBool::new(false),
        command: *command,
        user: user.map(|(user, _)| user.clone()),
        rights_version: AtomicU64::new(user.map_or(0, |(_, version)| version)),
        reader: tracking::reader_of(session, *command),
    };
    session.card.set_flag(ClientFlags::BLOCKED, true);
    node.stats.blocked_clients.fetch_add(1, Ordering::Relaxed);
    let waiter = Arc::new(Waiter::new(session.id(), keys.db, wants, Box::new(parked)));
    for key in awaited.iter() {
        keys.shard_of(key).waiting.add(key, &waiter);
    }
    if let (Some(at), Some(key)) = (alarm, awaited.first()) {
        let target = ReadyKey { db: keys.db, key: key.clone() };
        keys.shard_of(key).waiting.set_alarm(at, target);
    }
    *session.card.waiter() = Arc::downgrade(&waiter);
    session.card.note_blocked(args.bytes_total(), &awaited);
    let state = BlockedState { waiter, keys: awaited, deadline, args: again, retry: None };
    session.hold = Hold::Keys(Box::new(state));
}

/// A call begins to be tried again: what feeds it from now on is worth another try.
pub(crate) fn begin_retry(state: &BlockedState) {
    parked(&state.waiter).is_to_retry.store(false, Ordering::Release);
}

/// Ends a wait, if nobody else has: true for exactly one caller, who must then answer the client.
/// From here on the client counts as blocked no more.
pub(crate) fn claim(waiter: &Waiter) -> bool {
    let is_ours = waiter.claim();
    if is_ours {
        let Parked { card, blocked_clients, .. } = parked(waiter);
        card.set_flag(ClientFlags::BLOCKED, false);
        blocked_clients.fetch_sub(1, Ordering::Relaxed);
    }
    is_ours
}

/// How many keys clients wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AwaitedKeys {
    pub keys: usize,
    /// Those of them whose loss ends the wait of someone.
    pub keys_whose_loss_ends_a_wait: usize,
}

impl AwaitedKeys {
    pub fn of(cards: &[Arc<ClientCard>]) -> Self {
        let mut keys: HashMap<(usize, Box<[u8]>), bool> = HashMap::new();
        for card in cards {
            let waiter = card.waiter().upgrade().filter(|waiter| !waiter.is_claimed());
            let Some(waiter) = waiter else { continue };
            let Parked { keys: awaited, call, .. } = parked(&waiter);
            for key in awaited.iter() {
                *keys.entry((waiter.db, key.clone())).or_default() |=
                    call.lost(key, None).is_some();
            }
        }
        let keys_whose_loss_ends_a_wait = keys.values().filter(|ends| **ends).count();
        AwaitedKeys { keys: keys.len(), keys_whose_loss_ends_a_wait }
    }
}

fn parked(waiter: &Waiter) -> &Parked {
    waiter.call.downcast_ref().expect("only park() makes waiters")
}

/// Serves those who wait for keys that the command touched, in the same critical section.
pub(crate) fn serve_ready(keys: &mut Keys, node: &Node) {
    let own_db = keys.db;
    keys.effects.dedup_ready();
    let mut at = 0;
    // Serving a move feeds a further key, which joins the end of the list.
    while at < keys.effects.ready.len() {
        let ready = keys.effects.ready[at].clone();
        keys.in_db(ready.db, |keys| serve_key(keys, &ready, node));
        at += 1;
    }
    keys.effects.ready.clear();
    debug_assert_eq!(keys.db, own_db);
}

fn serve_key(keys: &mut Keys, ready: &ReadyKey, node: &Node) {
    let key = &*ready.key;
    // Those who can't be served from it now are passed by, up to this one.
    let mut passed = 0;
    if keys.is_moving(key) {
        // It is looked at again when it has left, or stayed.
        return keys.shard_of(key).waiting.defer(ready);
    }
    end_lost(keys, ready);
    while let Some(found) = keys.peek(key).map(|entry| type_of(&entry)) {
        let Some((ticket, waiter)) = keys.shard_of(key).waiting.next(ready, found, passed) else {
            return;
        };
        let parked = parked(&waiter);
        let source = if parked.call.is_whole() {
            whole_source(keys, &waiter, key)
        } else {
            source(keys, &waiter, key)
        };
        if source == Source::Key(key) && !parked.call.is_satisfied(keys, key) {
            passed = ticket;
            continue;
        }
        let is_free = parked.call.also_needs().is_none_or(|other| keys.try_hold(other));
        if source == Source::Busy || !is_free || parked.has_other_rights() {
            // Those behind it are served when it has had its turn.
            keys.shard_of(key).waiting.defer(ready);
            // One letter is enough, however often it is fed before it is read: a try is costly.
            if !parked.is_to_retry.swap(true, Ordering::AcqRel) {
                parked.mailbox.post(Letter::Retry(waiter.clone()));
            }
            return;
        }
        if !claim(&waiter) {
            continue;
        }
        let from = match source {
            Source::Key(from) => Some(from),
            Source::WrongType | Source::Busy => None,
        };
        let Parked { call, command, resp, .. } = parked;
        let waiting = WaitingCall { call: &**call, command: *command, resp: *resp };
        // What it changes is its own doing, not the writer's.
        let caller = Caller { author: parked.card.id, inline: 0 };
        let writer = std::mem::replace(&mut keys.effects.caller, caller);
        let reply = serve(waiting, (keys, node), from);
        keys.effects.caller = writer;
        if let Some(reader) = parked.reader {
            let awaited = parked.keys.iter();
            awaited.for_each(|key| tracking::note_key(keys, (node, reader), key));
        }
        let letter = Letter::Served { waiter: waiter.clone(), reply };
        Posting::of(keys).post(&parked.mailbox, letter);
    }
}

/// Ends the waits that the loss of a key ends.
fn end_lost(keys: &mut Keys, ready: &ReadyKey) {
    let found = keys.peek(&ready.key).map(|entry| type_of(&entry));
    for waiter in keys.shard_of(&ready.key).waiting.others(ready, found) {
        let parked = parked(&waiter);
        if let Some(refusal) = parked.call.lost(&ready.key, found)
            && claim(&waiter)
        {
            let reply = error_reply(parked.resp, &refusal);
            let letter = Letter::Served { waiter: waiter.clone(), reply };
            Posting::of(keys).post(&parked.mailbox, letter);
        }
    }
}

/// Which of its keys a waiter is served from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source<'w> {
    Key(&'w [u8]),
    /// A key before it has become something else.
    WrongType,
    /// The shard of a key before it is not free for the writer.
    Busy,
}

/// COMPAT: the first of its keys that has something, as if the call were made again now; not the
/// one that was fed. Test: tests/wire/list/blpop.wire, "several keys fed at once".
fn source<'w>(keys: &mut Keys, waiter: &'w Waiter, fed: &'w [u8]) -> Source<'w> {
    let before = parked(waiter).keys.iter().take_while(|key| ***key != *fed);
    for key in before {
        if !keys.try_hold(key) {
            return Source::Busy;
        }
        match keys.peek(key).map(|entry| type_of(&entry)) {
            None => {}
            Some(found) if found == waiter.wants => return Source::Key(key),
            Some(_) => return Source::WrongType,
        }
    }
    Source::Key(fed)
}

/// For one that is served from all of its keys: each must be free for the writer.
fn whole_source<'w>(keys: &mut Keys, waiter: &'w Waiter, fed: &'w [u8]) -> Source<'w> {
    let is_free = parked(waiter).keys.iter().all(|key| keys.try_hold(key));
    if is_free { Source::Key(fed) } else { Source::Busy }
}

/// Looks after those who wait and watch: forgets who no longer does, and passes on the turns of
/// those who were asked to try again but gave up instead. To be called now and then.
pub(crate) fn sweep(node: &Node, effects: &mut Effects, now: UnixMillis) {
    tracking::sweep(node, effects, now);
    for index in 0..node.keyspace.shards() {
        if !node.keyspace.sweep_listeners(index) {
            continue;
        }
        // A busy shard is visited again next time.
        let Ok(mut locked) = node.keyspace.try_lock(&ShardSet::one(index)) else {
            continue;
        };
        let shard = locked.shard(index);
        let mut deferred = shard.waiting.take_deferred();
        let due_alarms = shard.waiting.take_alarms(now);
        deferred.extend(due_alarms.iter().cloned());
        if deferred.is_empty() {
            continue;
        }
        let mut keys = node.keyspace.keys(locked, effects, (0, now));
        keys.effects.ready = deferred;
        publish_effects(&mut keys, node);
        due_alarms.iter().for_each(|target| set_alarms_again(&mut keys, target));
        // To look at the keys again may have expired some.
        publish_effects(&mut keys, node);
    }
}

/// Those who were woken by an alarm and wait on may want another.
fn set_alarms_again(keys: &mut Keys, target: &ReadyKey) {
    keys.in_db(target.db, |keys| {
        for waiter in keys.shard_of(&target.key).waiting.others(target, None) {
            let is_free = parked(&waiter).keys.iter().all(|key| keys.try_hold(key));
            let alarm = if is_free { parked(&waiter).call.alarm(keys) } else { Some(keys.now) };
            if let Some(at) = alarm {
                keys.shard_of(&target.key).waiting.set_alarm(at, target.clone());
            }
        }
    });
}

/// Reads a timeout in seconds: when it is over, or None for never.
pub fn deadline(arg: &[u8], now: UnixMillis) -> Result<Option<UnixMillis>, Refusal> {
    const OUT_OF_RANGE: Refusal = Refusal::Text(Cow::Borrowed("ERR timeout is out of range"));
    let ms = (timeout_seconds(arg)? * 1000.0).ceil();
    // 2^63 is the first float beyond an `i64`.
    if ms >= i64::MAX as f64 {
        return Err(OUT_OF_RANGE);
    }
    match ms as i64 {
        ..0 => Err(Refusal::TimeoutNegative),
        0 => Ok(None),
        ms => now.0.checked_add(ms).map(|at| Some(UnixMillis(at))).ok_or(OUT_OF_RANGE),
    }
}

fn timeout_seconds(arg: &[u8]) -> Result<f64, Refusal> {
    if let Some(seconds) = num::parse_f64(arg) {
        return Ok(seconds);
    }
    // Redis reads long doubles here, which go beyond floats at both ends.
    let value = LongDouble::parse(arg).ok_or(Refusal::TimeoutNotFloat)?;
    let mut text = Vec::new();
    value.write(&mut text);
    let (sign, digits) = match text.as_slice() {
        [b'-', digits @ ..] => (-1.0, digits),
        digits => (1.0, digits),
    };
    Ok(sign * if digits.first() == Some(&b'0') { f64::MIN_POSITIVE } else { f64::INFINITY })
}

/// Why a blocked client is given up without having been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    TimedOut,
    UnblockedWithError,
}

/// Ends another client's wait: from here on nobody feeds it. False if it does not wait, or no
/// longer. `session` is answered when that client has counted its call.
pub(crate) fn unblock(session: &mut Session, card: &ClientCard, with_error: bool) -> bool {
    let Some(waiter) = card.waiter().upgrade().filter(|waiter| claim(waiter)) else {
        return false;
    };
    let receipt = Some(session.ask_others());
    card.post(Letter::Unblock { waiter, with_error, receipt });
    true
}

/// The reply to a wait that ends without having been served.
pub(crate) fn give_up_reply(state: &BlockedState, why: GiveUp, reply: &mut dyn Sink) {
    match why {
        GiveUp::TimedOut => parked(&state.waiter).call.timed_out(reply),
        GiveUp::UnblockedWithError => {
            reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        }
    }
}
