//! CLIENT PAUSE: holds back commands, and expiry with them, until a moment.

use crate::clients::{ClientCard, ClientFlags};
use crate::mail::{Letter, Mailbox};
use crate::node::Node;
use crate::session::Session;
use crate::{scripting, transactions};
use russet_base::{Args, UnixMillis};
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_engine::keyspace::Keyspace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseKind {
    Write,
    All,
}

struct Held {
    card: Arc<ClientCard>,
    mailbox: Arc<dyn Mailbox>,
}

#[derive(Default)]
pub struct Pause {
    is_on: AtomicBool,
    until: Mutex<Option<(PauseKind, UnixMillis)>>,
    /// Clients that were held back, to be told when it is over.
    held: Mutex<Vec<Held>>,
}

impl Pause {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Pauses, never for shorter or for less than before.
    pub fn start(&self, keyspace: &Keyspace, kind: PauseKind, end: UnixMillis) {
        let mut until = self.until.lock().unwrap_or_else(|poison| poison.into_inner());
        *until = Some(match *until {
            Some((old, old_end)) => {
                let kind = if old == PauseKind::All { old } else { kind };
                (kind, old_end.max(end))
            }
            None => (kind, end),
        });
        self.is_on.store(true, Ordering::Relaxed);
        keyspace.hold_expiry(true);
    }

    pub fn end(&self, keyspace: &Keyspace) {
        *self.until.lock().unwrap_or_else(|poison| poison.into_inner()) = None;
        self.is_on.store(false, Ordering::Relaxed);
        keyspace.hold_expiry(false);
        let held =
            std::mem::take(&mut *self.held.lock().unwrap_or_else(|poison| poison.into_inner()));
        for Held { card, mailbox } in held {
            card.set_flag(ClientFlags::PAUSED, false);
            mailbox.post(Letter::Resume);
        }
    }

    pub fn state(&self) -> Option<(PauseKind, UnixMillis)> {
        *self.until.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Ends a pause whose time is over; called by the housekeeping.
    pub fn tick(&self, keyspace: &Keyspace, now: UnixMillis) {
        if self.is_on() && self.state().is_some_and(|(_, end)| end <= now) {
            self.end(keyspace);
        }
    }

    /// Whether this command must wait. If so the client will be told.
    pub(crate) fn holds(
        &self,
        node: &Node,
        session: &Session,
        (command, args): (Command, Args),
    ) -> bool {
        if !self.is_on() {
            return false;
        }
        let Some((kind, end)) = self.state() else { return false };
        if end <= node.clock.now() {
            self.end(&node.keyspace);
            return false;
        }
        let is_held = match kind {
            // DIFFERS: CLIENT itself gets through, or nobody could end the pause.
            PauseKind::All => command.parent() != Some(Command::Client),
            PauseKind::Write => {
                reaches_replicas(node, command, args)
                    || transactions::any_queued(session, command, &|queued, args| {
                        reaches_replicas(node, queued, args)
                    })
            }
        };
        if is_held && !session.card.has_flag(ClientFlags::PAUSED) {
            session.card.set_flag(ClientFlags::PAUSED, true);
            let held = Held { card: session.card.clone(), mailbox: session.mailbox.clone() };
            self.held.lock().unwrap_or_else(|poison| poison.into_inner()).push(held);
        }
        is_held
    }
}

/// A pause of writes holds all that a replica would hear of, and scripts that may write.
fn reaches_replicas(node: &Node, command: Command, args: Args) -> bool {
    command.spec().flags.has(Flags::WRITE)
        || may_replicate(command)
        || scripting::may_write(node, command, args)
}

/// What is no write but goes to replicas all the same.
pub(crate) fn may_replicate(command: Command) -> bool {
    command.spec().flags.has(Flags::MAY_REPLICATE)
        || matches!(command, Command::Publish | Command::Spublish | Command::Pfcount)
}
