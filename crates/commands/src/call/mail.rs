//! How one client reaches another: a letter into the mailbox of the event loop that owns it.

use crate::node::clients::ClientCard;
use russet_base::SharedBytes;
use russet_engine::journal::Action;
use russet_engine::keys::{Caller, Effects, Keys};
use russet_engine::store::raw::lock::Wake;
use russet_engine::waiting::Waiter;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every message that a connection can get from outside.
pub enum Letter {
    /// Bytes for its socket: a published message, an invalidation, a line of MONITOR.
    Push(SharedBytes),
    /// A blocked call was served; these bytes are its reply.
    Served { waiter: Arc<Waiter>, reply: Vec<u8> },
    /// A blocked call may be served if it is tried again with its own locks.
    Retry(Arc<Waiter>),
    /// CLIENT UNBLOCK has ended this wait: it has been claimed, and only the answer is missing.
    Unblock { waiter: Arc<Waiter>, with_error: bool, receipt: Option<Receipt> },
    /// A shard that a set-aside command waits for may be free.
    ShardFree,
    /// CLIENT PAUSE is over.
    Resume(Option<Receipt>),
    /// CLIENT KILL.
    Kill(Option<Receipt>),
    /// It is to be closed: more messages wait for the log than may.
    Overdue,
    /// What this client asked of others has been done by all of them.
    Acknowledged,
    /// What its output, or its call, waits for is durable.
    Durable,
    /// What another thread does for its command is over.
    JobOver,
    /// The socket became ready while the connection was busy elsewhere.
    SocketReady,
}

/// Where a client's letters go. Posting never blocks and never fails: a client that is gone simply
/// does not read its mail.
pub trait Mailbox: Send + Sync {
    fn post(&self, letter: Letter);

    /// As `post`, for who posts many: the caller has to wake whoever is returned, when all letters
    /// are posted.
    fn post_asleep(&self, letter: Letter) -> Option<Arc<dyn Wake>> {
        self.post(letter);
        None
    }
}

/// What a client has asked of others and waits for.
pub struct Pending {
    /// Receipts that are still out, and one of the sender's own until all letters are posted.
    left: AtomicUsize,
    mailbox: Arc<dyn Mailbox>,
}

impl Pending {
    pub fn new(mailbox: Arc<dyn Mailbox>) -> Arc<Self> {
        Arc::new(Pending { left: AtomicUsize::new(0), mailbox })
    }

    /// The sender's own receipt; those that go with letters are made from it.
    pub fn receipt(self: &Arc<Self>) -> Receipt {
        self.left.fetch_add(1, Ordering::Relaxed);
        Receipt(self.clone())
    }

    pub fn is_over(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }
}

/// Goes with a letter whose sender waits until it has been acted on. Dropped, it says so: by the
/// client that has done what was asked, or with a letter that finds nobody.
pub struct Receipt(Arc<Pending>);

impl Receipt {
    pub fn another(&self) -> Self {
        self.0.receipt()
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.mailbox.post(Letter::Acknowledged);
        }
    }
}

/// Lets a shard's queue wake the connection that waits in it.
pub struct WakeByMail(pub Arc<dyn Mailbox>);

impl Wake for WakeByMail {
    fn wake(&self) {
        self.0.post(Letter::ShardFree);
    }
}

/// Lets a client go on that the journal has held back.
pub struct ResumeByMail(pub Arc<dyn Mailbox>);

impl Wake for ResumeByMail {
    fn wake(&self) {
        self.0.post(Letter::Resume(None));
    }
}

/// Tells a client that what it waits for is durable.
pub struct DurableByMail(pub Arc<dyn Mailbox>);

impl Wake for DurableByMail {
    fn wake(&self) {
        self.0.post(Letter::Durable);
    }
}

/// About what a letter takes that waits to be sent, besides its message.
const LETTER_BYTES: u64 = 128;
/// Messages of one call that are told apart when they are counted: one in each protocol, of a few
/// channels.
const COUNTED_MAX: usize = 8;

/// How what a call shows to others leaves: at once, or with `appendfsync always` when all that it
/// shows is durable.
pub struct Posting<'e> {
    outbox: Option<&'e mut Vec<(u64, Action)>>,
    /// Messages for the caller itself, to be sent behind its reply.
    own: &'e mut Vec<SharedBytes>,
    caller: Caller,
    /// So much waits already that nothing is added to it: see `Journal::is_flooded`.
    is_flooded: bool,
    /// Where the messages lie that are counted: one goes to many.
    counted: SmallVec<[usize; 2]>,
}

impl<'e> Posting<'e> {
    pub fn of(keys: &'e mut Keys) -> Self {
        let journal = keys.keyspace().journal();
        let is_strict = journal.is_strict();
        let is_flooded = is_strict && journal.is_flooded();
        let Effects { outbox, own_messages, caller, .. } = &mut *keys.effects;
        let outbox = is_strict.then_some(outbox);
        let counted = SmallVec::new();
        Posting { outbox, own: own_messages, caller: *caller, is_flooded, counted }
    }

    /// A message for a client.
    pub fn push(&mut self, card: &Arc<ClientCard>, bytes: SharedBytes) {
        if self.is_inline(card.id) {
            self.own.push(bytes);
        } else if let Some(mailbox) = card.mailbox() {
            self.post(&mailbox, Letter::Push(bytes));
        }
    }

    /// The same where the client's mailbox is known.
    pub fn push_to(&mut self, (id, mailbox): (u64, &Arc<dyn Mailbox>), bytes: SharedBytes) {
        match self.is_inline(id) {
            true => self.own.push(bytes),
            false => self.post(mailbox, Letter::Push(bytes)),
        }
    }

    fn is_inline(&self, id: u64) -> bool {
        self.caller.inline != 0 && self.caller.inline == id
    }

    pub fn post(&mut self, mailbox: &Arc<dyn Mailbox>, letter: Letter) {
        if self.outbox.is_none() {
            return mailbox.post(letter);
        }
        // Calls that only read have messages, too: a line of MONITOR, an event. They go on while
        // the log can't be written, and nobody would bound what waits because of them.
        if self.is_flooded && matches!(letter, Letter::Push(_)) {
            return mailbox.post(Letter::Overdue);
        }
        let bytes = self.bytes_of(&letter);
        let mailbox = mailbox.clone();
        if let Some(outbox) = &mut self.outbox {
            outbox.push((bytes, Box::new(move || mailbox.post_asleep(letter))));
        }
    }

    /// What a letter takes while it waits.
    fn bytes_of(&mut self, letter: &Letter) -> u64 {
        let Letter::Push(bytes) = letter else { return LETTER_BYTES };
        // The outbox keeps all of them, so none takes the place of another.
        let at = bytes.as_ptr().addr();
        if self.counted.contains(&at) {
            return LETTER_BYTES;
        }
        if self.counted.len() < COUNTED_MAX {
            self.counted.push(at);
        }
        LETTER_BYTES + bytes.len() as u64
    }

    /// Does something that others can see.
    pub fn act(&mut self, action: impl FnOnce() + Send + 'static) {
        match &mut self.outbox {
            None => action(),
            Some(_) if self.is_flooded => {}
            Some(outbox) => {
                let action = move || {
                    action();
                    None
                };
                outbox.push((LETTER_BYTES, Box::new(action)));
            }
        }
    }
}

/// The mailbox of a session that nobody else can reach: the embedded engine's, and tests'.
pub struct NoMailbox;

impl Mailbox for NoMailbox {
    fn post(&self, _letter: Letter) {}
}
