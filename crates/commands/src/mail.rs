//! How one client reaches another: a letter into the mailbox of the event loop that owns it.

use russet_base::SharedBytes;
use russet_engine::store::raw::lock::Wake;
use russet_engine::waiting::Waiter;
use std::sync::Arc;

/// Everything that can be told to a connection from outside.
pub enum Letter {
    /// Bytes for its socket: a published message, an invalidation, a line of MONITOR.
    Push(SharedBytes),
    /// A blocked call was served; these bytes are its reply.
    Served { waiter: Arc<Waiter>, reply: Vec<u8> },
    /// A blocked call may be served if it is tried again with its own locks.
    Retry(Arc<Waiter>),
    /// CLIENT UNBLOCK has ended this wait: it has been claimed, and only the answer is missing.
    Unblock { waiter: Arc<Waiter>, with_error: bool },
    /// A shard that a set-aside command waits for may be free.
    ShardFree,
    /// CLIENT PAUSE is over, or something else worth another look at the connection.
    Resume,
    /// CLIENT KILL.
    Kill,
    /// The socket became ready while the connection was busy elsewhere.
    SocketReady,
}

/// Where a client's letters go. Posting never blocks and never fails: a client that is gone simply
/// does not read its mail.
pub trait Mailbox: Send + Sync {
    fn post(&self, letter: Letter);
}

/// Lets a shard's queue wake the connection that waits in it.
pub struct WakeByMail(pub Arc<dyn Mailbox>);

impl Wake for WakeByMail {
    fn wake(&self) {
        self.0.post(Letter::ShardFree);
    }
}

/// The mailbox of a session that nobody else can reach: the embedded engine's, and tests'.
pub struct NoMailbox;

impl Mailbox for NoMailbox {
    fn post(&self, _letter: Letter) {}
}
