//! CLIENT PAUSE: holds back commands, and expiry with them, until a moment.

use crate::call::mail::{Letter, Mailbox, Receipt};
use crate::call::session::Session;
use crate::groups::scripting::code;
use crate::groups::transactions;
use crate::node::Node;
use crate::node::clients::{ClientCard, ClientFlags};
use russet_base::{Args, UnixMillis};
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_engine::keyspace::Keyspace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseKind {
    Write,
    All,
}

struct Held {
    card: Arc<ClientCard>,
    mailbox: Arc<dyn Mailbox>,
}

/// What a pause is, and whom it holds: under one lock, so that nobody is held by a pause that has
/// ended.
#[derive(Default)]
struct State {
    until: Option<(PauseKind, UnixMillis)>,
    /// Clients that were held back, to be notified when it is over.
    held: Vec<Held>,
}

#[derive(Default)]
pub struct Pause {
    /// Whether there may be a pause: one look for all commands while there is none.
    is_on: AtomicBool,
    state: Mutex<State>,
}

impl Pause {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Pauses, never for shorter or for less than before.
    pub fn start(&self, keyspace: &Keyspace, kind: PauseKind, end: UnixMillis) {
        let mut state = self.lock();
        state.until = Some(match state.until {
            Some((old, old_end)) => {
                let kind = if old == PauseKind::All { old } else { kind };
                (kind, old_end.max(end))
            }
            None => (kind, end),
        });
        self.is_on.store(true, Ordering::Relaxed);
        keyspace.set_paused(true);
    }

    /// Ends the pause. The clients that it held go on; if there are any, `ask` gives a receipt to
    /// who waits until they have.
    pub fn end(&self, keyspace: &Keyspace, ask: impl FnOnce() -> Option<Receipt>) {
        self.end_locked(self.lock(), keyspace, ask);
    }

    fn end_locked(
        &self,
        mut state: MutexGuard<'_, State>,
        keyspace: &Keyspace,
        ask: impl FnOnce() -> Option<Receipt>,
    ) {
        state.until = None;
        self.is_on.store(false, Ordering::Relaxed);
        keyspace.set_paused(false);
        let held = std::mem::take(&mut state.held);
        held.iter().for_each(|held| held.card.set_flag(ClientFlags::PAUSED, false));
        drop(state);
        let receipt = if held.is_empty() { None } else { ask() };
        for Held { mailbox, .. } in held {
            mailbox.post(Letter::Resume(receipt.as_ref().map(Receipt::another)));
        }
    }

    pub fn state(&self) -> Option<(PauseKind, UnixMillis)> {
        self.lock().until
    }

    /// Ends a pause whose time is over; called by the housekeeping.
    pub fn tick(&self, keyspace: &Keyspace, now: UnixMillis) {
        if self.is_on() {
            let state = self.lock();
            if state.until.is_some_and(|(_, end)| end <= now) {
                self.end_locked(state, keyspace, || None);
            }
        }
    }

    /// Whether this command must wait. If so the client will be notified.
    pub(crate) fn holds(
        &self,
        node: &Node,
        session: &Session,
        (command, args): (Command, Args),
    ) -> bool {
        if !self.is_on() {
            return false;
        }
        let now = node.clock.now();
        let Some((kind, _)) = self.state() else { return false };
        let would_hold = match kind {
            // DIFFERS: CLIENT itself gets through, or nobody could end the pause, and so does what
            // client libraries send before it on a new connection.
            PauseKind::All => !command.spec().flags.has(Flags::PASSES_PAUSE),
            PauseKind::Write => {
                reaches_replicas(node, command, args)
                    || transactions::any_queued(session, command, &|queued, args| {
                        reaches_replicas(node, queued, args)
                    })
            }
        };
        if !would_hold {
            return false;
        }
        // It may have ended meanwhile, or begun again: only clients in the list are notified.
        let mut state = self.lock();
        match state.until {
            None => return false,
            Some((_, end)) if end <= now => {
                self.end_locked(state, &node.keyspace, || None);
                return false;
            }
            Some(_) => {}
        }
        if !session.card.has_flag(ClientFlags::PAUSED) {
            session.card.set_flag(ClientFlags::PAUSED, true);
            state.held.push(Held { card: session.card.clone(), mailbox: session.mailbox.clone() });
        }
        true
    }
}

/// A pause of writes holds all that a replica would hear of, and scripts that may write.
fn reaches_replicas(node: &Node, command: Command, args: Args) -> bool {
    command.spec().reaches_replicas() || code::may_write(node, command, args)
}

#[cfg(test)]
mod tests {
    use super::PauseKind;
    use crate::call::mail::{Letter, Mailbox};
    use crate::call::session::Session;
    use crate::node::clients::ClientCard;
    use crate::testing::TestServer;
    use russet_base::{OwnedArgs, UnixMillis};
    use russet_catalog::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[derive(Default)]
    struct Letters(AtomicUsize);

    impl Mailbox for Letters {
        fn post(&self, letter: Letter) {
            if matches!(letter, Letter::Resume(_)) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// A client that was held back while the end of the pause went through the list of those to be
    /// told was put on a list that nobody read any more, and stayed paused for ever.
    #[test]
    fn who_is_held_back_is_notified_of_the_end() {
        const PAUSES: usize = 20_000;
        const TURNS_MAX: usize = 1 << 24;
        let node = &TestServer::new().worker.node;
        let letters = Arc::new(Letters::default());
        let card = ClientCard::new(9, String::new(), String::new(), 3, 0);
        let session = Session::new(Arc::new(card), letters.clone());
        let args: OwnedArgs = ["SET", "k", "v"].iter().collect();
        let (is_over, tries) = (&AtomicBool::new(false), &AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..PAUSES {
                    node.pause.start(&node.keyspace, PauseKind::Write, UnixMillis(i64::MAX));
                    node.pause.end(&node.keyspace, || None);
                    let seen = tries.load(Ordering::SeqCst);
                    let goes_on = (0..TURNS_MAX).any(|_| {
                        std::thread::yield_now();
                        tries.load(Ordering::SeqCst) > seen + 1
                    });
                    is_over.fetch_or(!goes_on, Ordering::SeqCst);
                    assert!(goes_on, "held back by a pause that is over");
                }
                is_over.store(true, Ordering::SeqCst);
            });
            let mut notified = 0;
            while !is_over.load(Ordering::SeqCst) {
                if node.pause.holds(node, &session, (Command::Set, args.as_args())) {
                    notified += 1;
                    while letters.0.load(Ordering::SeqCst) < notified
                        && !is_over.load(Ordering::SeqCst)
                    {
                        std::thread::yield_now();
                    }
                }
                tries.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}
