//! How threads reach a loop and its connections: a list of messages and a waker.

use super::Service;
use super::connection::Connection;
use super::stream::{Peer, Stream};
use super::turn::Verdict;
use mio::Waker;
use russet_commands::call::mail::{Letter, Mailbox};
use russet_engine::store::raw::lock::Wake;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Everything that can wake a loop besides its sockets.
pub enum Message<S: Service> {
    /// A new connection for this loop.
    Accepted(Stream, Peer),
    Letter {
        slot: usize,
        generation: u64,
        letter: Letter,
    },
    /// A connection that was checked out when its thread lost the loop.
    Returned(Box<Connection<S>>, Verdict),
    /// A connection from another loop.
    Moved(Box<Connection<S>>),
    /// Give some connections to another loop.
    Give(Give),
    /// Write what can be written, close everything, end.
    ShutDown,
    /// Stop accepting or begin again: the set of listeners changed.
    Listeners(Vec<super::Listener>),
    /// More connections wait to be accepted by the listener with this number.
    AcceptMore(usize),
}

/// How many connections a loop is to give away, and to which.
#[derive(Clone, Copy, Debug)]
pub struct Give {
    pub to: usize,
    pub count: usize,
}

pub struct Inbox<S: Service> {
    messages: Mutex<Vec<Message<S>>>,
    /// The loop is in its poller, or about to be: it has to be woken.
    is_asleep: AtomicBool,
    waker: Waker,
}

impl<S: Service> Inbox<S> {
    pub fn new(waker: Waker) -> Self {
        Inbox { messages: Mutex::default(), is_asleep: AtomicBool::new(false), waker }
    }

    pub fn post(&self, message: Message<S>) {
        if self.post_asleep(message) {
            self.wake();
        }
    }

    /// Posts without waking the loop. True if that is left to the caller.
    fn post_asleep(&self, message: Message<S>) -> bool {
        self.messages.lock().unwrap_or_else(|poison| poison.into_inner()).push(message);
        self.is_asleep.swap(false, Ordering::SeqCst)
    }

    pub fn take(&self) -> Vec<Message<S>> {
        let mut messages = self.messages.lock().unwrap_or_else(|poison| poison.into_inner());
        std::mem::take(&mut *messages)
    }

    /// Announces that the loop is going to sleep. False if there is mail: it must not.
    pub fn may_sleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        let is_empty = self.messages.lock().unwrap_or_else(|poison| poison.into_inner()).is_empty();
        if !is_empty {
            self.is_asleep.store(false, Ordering::SeqCst);
        }
        is_empty
    }

    pub fn is_awake(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

impl<S: Service> Wake for Inbox<S> {
    fn wake(&self) {
        // The only failure is a full counter, and then the loop is being woken anyway.
        drop(self.waker.wake());
    }
}

/// Where one connection's letters go. It stays valid when the connection is gone: letters to an old
/// generation are thrown away.
pub struct Address<S: Service> {
    pub(super) inbox: Arc<Inbox<S>>,
    pub(super) slot: usize,
    pub(super) generation: u64,
}

impl<S: Service> Mailbox for Address<S> {
    fn post(&self, letter: Letter) {
        let (slot, generation) = (self.slot, self.generation);
        self.inbox.post(Message::Letter { slot, generation, letter });
    }

    fn post_asleep(&self, letter: Letter) -> Option<Arc<dyn Wake>> {
        let (slot, generation) = (self.slot, self.generation);
        let must_wake = self.inbox.post_asleep(Message::Letter { slot, generation, letter });
        must_wake.then(|| self.inbox.clone() as Arc<dyn Wake>)
    }
}
