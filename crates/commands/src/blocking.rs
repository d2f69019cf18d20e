//! Commands that wait for a key to be fed, whatever its type: how they are parked, served by the
//! writer that feeds them, tried again, and given up.

use crate::error::Refusal;
use crate::mail::{Letter, Mailbox};
use crate::session::Session;
use russet_base::clock::UnixMillis;
use russet_base::{Args, OwnedArgs};
use russet_engine::keys::Keys;
use russet_engine::value::{Type, type_of};
use russet_engine::waiting::Waiter;
use russet_protocol::{Resp, RespWriter, Sink};
use std::sync::Arc;

/// What a blocked client wants with the key that feeds it.
pub trait BlockedCall: Send + Sync {
    /// Takes from `key`, which holds a value of the wanted type, and writes the reply.
    fn serve(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<(), Refusal>;

    /// A further key that serving touches. If its shard is not locked by the writer, the client is
    /// told to try again itself.
    fn also_needs(&self) -> Option<&[u8]> {
        None
    }

    /// The reply when the time is over.
    fn timed_out(&self, reply: &mut dyn Sink);
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
    resp: Resp,
    mailbox: Arc<dyn Mailbox>,
}

/// What the session remembers while it waits.
pub struct BlockedState {
    pub waiter: Arc<Waiter>,
    pub keys: Vec<Box<[u8]>>,
    pub deadline: Option<UnixMillis>,
    pub args: OwnedArgs,
}

/// Parks a client in the queues of its keys. The shards of all of them are locked.
pub(crate) fn park(keys: &mut Keys, session: &mut Session, args: Args, request: BlockRequest) {
    let parked =
        Parked { call: request.call, resp: session.resp, mailbox: session.mailbox.clone() };
    let waiter = Arc::new(Waiter::new(session.id(), keys.db, request.wants, Box::new(parked)));
    for key in &request.keys {
        keys.shard_of(key).waiting.add(key, &waiter);
    }
    let BlockRequest { keys, deadline, .. } = request;
    session.blocked = Some(BlockedState { waiter, keys, deadline, args: args.into() });
}

fn parked(waiter: &Waiter) -> &Parked {
    waiter.call.downcast_ref().expect("only park() makes waiters")
}

/// Serves those who wait for keys that the command touched, in the same critical section.
pub(crate) fn serve_ready(keys: &mut Keys) {
    let own_db = keys.db;
    let mut at = 0;
    // Serving a move feeds a further key, which joins the end of the list.
    while at < keys.effects.ready.len() {
        let ready = keys.effects.ready[at].clone();
        keys.in_db(ready.db, |keys| serve_key(keys, &ready.key));
        at += 1;
    }
    keys.effects.ready.clear();
    debug_assert_eq!(keys.db, own_db);
}

fn serve_key(keys: &mut Keys, key: &[u8]) {
    while let Some(found) = keys.peek(key).map(|entry| type_of(&entry)) {
        let db = keys.db;
        let Some(waiter) = keys.shard_of(key).waiting.first(db, key, found) else {
            return;
        };
        let parked = parked(&waiter);
        if let Some(other) = parked.call.also_needs()
            && !keys.holds(other)
        {
            // Those behind it are served when it has had its turn.
            parked.mailbox.post(Letter::Retry(waiter.clone()));
            return;
        }
        if !waiter.claim() {
            continue;
        }
        let mut reply = Vec::new();
        let mut writer = RespWriter::new(&mut reply, parked.resp);
        if let Err(refusal) = parked.call.serve(keys, &mut writer, key) {
            writer.error(&refusal.wire());
        }
        parked.mailbox.post(Letter::Served { waiter: waiter.clone(), reply });
    }
}

/// Why a blocked client is given up without having been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    TimedOut,
    UnblockedWithError,
    Disconnected,
}

/// Ends a session's wait from its own side. False if a writer served it first: the reply is in the
/// mail then.
pub fn give_up(session: &mut Session, why: GiveUp, reply: &mut dyn Sink) -> bool {
    let Some(state) = &session.blocked else {
        return false;
    };
    if !state.waiter.claim() {
        return false;
    }
    match why {
        GiveUp::TimedOut => parked(&state.waiter).call.timed_out(reply),
        GiveUp::UnblockedWithError => {
            reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        }
        GiveUp::Disconnected => {}
    }
    session.blocked = None;
    true
}
