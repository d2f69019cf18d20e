//! The mailbox of an embedded client, and how its owner waits for mail: a thread sleeps, a future
//! leaves its waker. Published messages are kept apart from all other letters, within
//! `client-output-buffer-limit pubsub`.

use russet_base::SharedBytes;
use russet_base::limits::OUTPUT_BYTES_MAX;
use russet_commands::call::mail::{Letter, Mailbox};
use russet_commands::node::Node;
use russet_commands::node::config::ClientClass;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::time::Duration;

/// What a message that is not read yet takes up beside its bytes.
const MESSAGE_OVERHEAD_BYTES: u64 = 64;

/// What its owner waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    Letters,
    Messages,
}

/// How its owner waits.
#[derive(Default)]
enum Waiting {
    #[default]
    Nobody,
    Thread,
    Task(Waker),
}

#[derive(Default)]
struct State {
    letters: VecDeque<Letter>,
    messages: VecDeque<SharedBytes>,
    message_bytes: u64,
    /// Since when there have been more than the soft limit allows.
    soft_limit_since_ms: Option<i64>,
    /// There were too many messages: they are gone, and so is the client.
    is_cut_off: bool,
    /// The time of its wait is over.
    is_timed_out: bool,
    waiting: Waiting,
    /// Its owner is gone.
    is_closed: bool,
}

impl State {
    fn has(&self, awaited: Awaited) -> bool {
        let has_message = awaited == Awaited::Messages && !self.messages.is_empty();
        has_message || self.is_cut_off || self.is_timed_out || !self.letters.is_empty()
    }

    fn add_message(&mut self, bytes: SharedBytes, node: &Node) {
        let limit = node.config.output_buffer_limit(ClientClass::Pubsub);
        let before = self.message_bytes;
        self.message_bytes += bytes.len() as u64 + MESSAGE_OVERHEAD_BYTES;
        self.messages.push_back(bytes);
        let hard_bytes = if limit.hard_bytes == 0 { OUTPUT_BYTES_MAX } else { limit.hard_bytes };
        let mut is_over = self.message_bytes > hard_bytes;
        if limit.soft_bytes > 0 && self.message_bytes > limit.soft_bytes {
            let now = node.clock.now().0;
            let since = *self.soft_limit_since_ms.get_or_insert(now);
            is_over |= now - since > limit.soft_seconds as i64 * 1000;
        } else {
            self.soft_limit_since_ms = None;
        }
        if is_over {
            node.stats.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            self.is_cut_off = true;
            self.messages = VecDeque::new();
            self.message_bytes = 0;
        }
        count_messages(node, before, self.message_bytes);
    }
}

/// The memory in use follows what messages that are not read yet take up. One that several are to
/// read counts for each.
fn count_messages(node: &Node, before: u64, after: u64) {
    node.keyspace.used_memory().add(0, after as isize - before as isize);
}

pub(crate) struct Inbox {
    /// Letters may be there, or it is cut off: one look for a call that finds neither.
    has_letters: AtomicBool,
    state: Mutex<State>,
    arrived: Condvar,
    /// Weak, for what waits in the node's queues has the mailbox.
    node: Weak<Node>,
}

impl Inbox {
    pub fn new(node: &Arc<Node>) -> Self {
        Inbox {
            has_letters: AtomicBool::new(false),
            state: Mutex::default(),
            arrived: Condvar::new(),
            node: Arc::downgrade(node),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    #[inline]
    pub fn has_letters(&self) -> bool {
        self.has_letters.load(Ordering::Acquire)
    }

    pub fn next_letter(&self) -> Option<Letter> {
        let mut state = self.lock();
        state.is_timed_out = false;
        let letter = state.letters.pop_front();
        let is_worth_a_look = state.is_cut_off || !state.letters.is_empty();
        self.has_letters.store(is_worth_a_look, Ordering::Release);
        letter
    }

    /// Whether more messages came than its owner may have unread.
    pub fn is_cut_off(&self) -> bool {
        self.lock().is_cut_off
    }

    /// The next published message.
    pub fn next_message(&self) -> Option<SharedBytes> {
        let mut state = self.lock();
        let message = state.messages.pop_front()?;
        let before = state.message_bytes;
        state.message_bytes -= message.len() as u64 + MESSAGE_OVERHEAD_BYTES;
        if let Some(node) = self.node.upgrade() {
            count_messages(&node, before, state.message_bytes);
        }
        Some(message)
    }

    /// Sleeps until something is there, or the time is over.
    pub fn wait(&self, awaited: Awaited, time: Option<Duration>) {
        let mut state = self.lock();
        if !state.has(awaited) {
            state.waiting = Waiting::Thread;
            // Whoever wakes for no reason looks for mail, finds none and comes back.
            state = match time {
                None => self.arrived.wait(state).unwrap_or_else(|poison| poison.into_inner()),
                Some(time) => {
                    let waited = self.arrived.wait_timeout(state, time);
                    waited.unwrap_or_else(|poison| poison.into_inner()).0
                }
            };
        }
        state.is_timed_out = false;
        state.waiting = Waiting::Nobody;
    }

    /// Leaves a waker for when something comes; false if something is there already.
    pub fn register(&self, awaited: Awaited, waker: &Waker) -> bool {
        let mut state = self.lock();
        if state.has(awaited) {
            state.is_timed_out = false;
            state.waiting = Waiting::Nobody;
            return false;
        }
        if !matches!(&state.waiting, Waiting::Task(known) if known.will_wake(waker)) {
            state.waiting = Waiting::Task(waker.clone());
        }
        true
    }

    /// The time of a wait is over.
    pub fn time_out(&self) {
        let mut state = self.lock();
        state.is_timed_out = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.wake(waiting);
    }

    /// Nobody reads it any more.
    pub fn close(&self) {
        let left = {
            let mut state = self.lock();
            std::mem::replace(&mut *state, State { is_closed: true, ..State::default() })
        };
        if let Some(node) = self.node.upgrade() {
            count_messages(&node, left.message_bytes, 0);
        }
        // Outside of the lock: the end of a letter may post another.
        drop(left);
    }

    fn wake(&self, waiting: Waiting) {
        match waiting {
            Waiting::Nobody => {}
            Waiting::Thread => self.arrived.notify_one(),
            Waiting::Task(waker) => waker.wake(),
        }
    }
}

impl Mailbox for Inbox {
    fn post(&self, letter: Letter) {
        let mut state = self.lock();
        if state.is_closed || state.is_cut_off {
            drop(state);
            return drop(letter);
        }
        let mut unread = None;
        match letter {
            Letter::Push(bytes) => match self.node.upgrade() {
                Some(node) => {
                    state.add_message(bytes, &node);
                    self.has_letters.fetch_or(state.is_cut_off, Ordering::Release);
                }
                None => return,
            },
            letter => {
                // An idle client reads its mail when it is next used. Nobody is to wait for that:
                // the letter comes first then.
                let is_idle = matches!(state.waiting, Waiting::Nobody);
                let (letter, receipt) =
                    if is_idle { without_receipt(letter) } else { (letter, None) };
                unread = receipt;
                state.letters.push_back(letter);
                self.has_letters.store(true, Ordering::Release);
            }
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(unread);
        self.wake(waiting);
    }
}

fn without_receipt(letter: Letter) -> (Letter, Option<russet_commands::call::mail::Receipt>) {
    match letter {
        Letter::Kill(receipt) => (Letter::Kill(None), receipt),
        Letter::Resume(receipt) => (Letter::Resume(None), receipt),
        Letter::Unblock { waiter, with_error, receipt } => {
            (Letter::Unblock { waiter, with_error, receipt: None }, receipt)
        }
        other => (other, None),
    }
}
