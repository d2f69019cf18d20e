//! The journal: what calls change, in one total order for all threads, on its way to the log.
//!
//! A call encodes its records first (`record.rs`); while it still holds its shards it takes a
//! number with one atomic addition and hands the bytes over, without copying or allocating. A
//! batch of calls does so once. The number after it is the journal's offset behind the call. One
//! reader, the log, takes frames in that order, as far as all are complete. Files are its business.
//!
//! Who must not show anything before it is durable defers it here until the offset that it depends
//! on is: see [`Journal::defer`].

mod awaiting;
mod ring;
#[cfg(test)]
mod ring_orders;
mod sync;
#[cfg(test)]
mod tests;

use crate::barrier::{Barrier, Barriers};
use crate::record::Encoded;
use crate::store::raw::lock::Wake;
use awaiting::Awaiting;
use ring::Ring;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::Thread;
use std::time::Instant;

/// Frames that the journal has slots for.
const FRAMES_MAX: usize = 8192;
/// Frames that are waiting when writers are held back: the rest is for calls that are under way
/// then, one for each worker.
const FRAMES_WAITING_MAX: u64 = FRAMES_MAX as u64 - 1024;
/// Frames that are waiting when the reader is woken, though it would look by itself soon.
const FRAMES_URGENT: u64 = FRAMES_MAX as u64 / 4;
/// How many times the bytes that hold writers back may be messages while the log can be written.
const FLOOD: u64 = 4;

/// Buffers of frames that are kept for calls to come: what some milliseconds take. They are used
/// again last in, first out. If each went round with the ring, no call would find its buffer in the
/// processor's cache.
const SPARES_MAX: usize = 512;

/// What becomes of what calls change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Nobody reads the journal, and nothing is appended to it.
    Off = 0,
    /// It is made durable soon, and nobody waits for that.
    Lazy = 1,
    /// Nothing leaves before it is durable: `appendfsync always`.
    Strict = 2,
}

/// Actions after which those are woken who were told by them.
const WAKES_PUT_OFF_MAX: usize = 256;

/// What is done once an offset is durable. It may leave it to the caller to wake who was told: a
/// thread that is woken may take the processor from the one that has to tell all the others.
pub type Action = Box<dyn FnOnce() -> Option<Arc<dyn Wake>> + Send>;

/// Those whose output waits for something to become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeferredCount {
    /// How many wait.
    pub waiting: usize,
    /// How many there were, since the journal began, who need not wait any more.
    pub released: u64,
}

/// Something that others are to see, once an offset is durable.
struct Waiting {
    offset: u64,
    /// What it holds in memory, as far as that is counted.
    bytes: u64,
    action: Action,
}

#[derive(Default)]
struct Deferred {
    /// By offset, in the order in which they were deferred.
    queue: VecDeque<Waiting>,
    /// Some that were in the queue are being done: what comes now is done after them.
    is_releasing: bool,
    released: u64,
    /// The reader sleeps until so many wait; 0 if it does not.
    awaited: usize,
}

pub struct Journal {
    mode: AtomicU8,
    barriers: Arc<Barriers>,
    ring: OnceLock<Ring<Encoded>>,
    /// Empty frames with room.
    spares: Mutex<Vec<Encoded>>,
    /// Everything before this offset is durable.
    durable: AtomicU64,
    /// What was appended before strict mode began is durable when this is.
    strict_since: AtomicU64,
    /// The reader has taken the frames before this one.
    taken: AtomicU64,
    backlog_bytes: AtomicU64,
    backlog_bytes_max: AtomicU64,
    /// What of it are messages.
    message_bytes: AtomicU64,
    /// What may be waiting beyond that: it is on the disk before it is appended.
    ahead_bytes: AtomicU64,
    is_reader_asleep: AtomicBool,
    reader: Mutex<Option<Thread>>,
    deferred: Mutex<Deferred>,
    awaiting: Mutex<Awaiting>,
    /// Writers that are held back.
    delayed: Mutex<Vec<Arc<dyn Wake>>>,
    failure: Mutex<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl Journal {
    pub fn new(barriers: Arc<Barriers>) -> Self {
        Journal {
            mode: AtomicU8::new(Mode::Off as u8),
            barriers,
            ring: OnceLock::new(),
            spares: Mutex::default(),
            durable: AtomicU64::new(0),
            strict_since: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            backlog_bytes: AtomicU64::new(0),
            backlog_bytes_max: AtomicU64::new(u64::MAX),
            message_bytes: AtomicU64::new(0),
            ahead_bytes: AtomicU64::new(0),
            is_reader_asleep: AtomicBool::new(false),
            reader: Mutex::default(),
            deferred: Mutex::default(),
            awaiting: Mutex::default(),
            delayed: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    #[inline]
    pub fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Acquire) {
            0 => Mode::Off,
            1 => Mode::Lazy,
            _ => Mode::Strict,
        }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode.load(Ordering::Acquire) != Mode::Off as u8
    }

    /// Whether nothing may leave before it is durable.
    #[inline]
    pub fn is_strict(&self) -> bool {
        self.mode.load(Ordering::Acquire) == Mode::Strict as u8
    }

    pub fn barriers(&self) -> &Barriers {
        &self.barriers
    }

    /// Every shard must be held, so that no call is half-way.
    pub fn set_mode(&self, mode: Mode) {
        if mode != Mode::Off {
            self.ring.get_or_init(|| Ring::new(FRAMES_MAX));
        }
        if mode == Mode::Strict && !self.is_strict() {
            self.strict_since.store(self.offset(), Ordering::Release);
        }
        self.mode.store(mode as u8, Ordering::Release);
        if mode != Mode::Strict {
            self.release();
        }
        if mode == Mode::Off {
            self.wake_awaiting(|_| true);
        }
    }

    /// How much may be waiting before writers are held back.
    pub fn set_backlog_bytes_max(&self, bytes: u64) {
        self.backlog_bytes_max.store(bytes, Ordering::Release);
        self.look_at_backlog();
    }

    pub fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// So many bytes are on the disk before the call runs that appends them: they hold nobody back.
    pub fn add_ahead(&self, bytes: u64) {
        self.ahead_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// They were appended and are durable, or will not be appended.
    pub fn remove_ahead(&self, bytes: u64) {
        self.ahead_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[inline]
    fn is_backlog_over(&self, backlog_bytes: u64) -> bool {
        let max = self.backlog_bytes_max.load(Ordering::Relaxed);
        backlog_bytes > max.saturating_add(self.ahead_bytes.load(Ordering::Relaxed))
    }

    /// The offset behind all that was appended.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.ring.get().map_or(0, Ring::reserved)
    }

    #[inline]
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// What was appended before this is not known to any shard: it depends on this offset.
    pub fn strict_since(&self) -> u64 {
        self.strict_since.load(Ordering::Acquire)
    }

    /// Whether what depends on this offset may be shown.
    #[inline]
    pub fn is_released(&self, offset: u64) -> bool {
        offset <= self.durable() || !self.is_strict()
    }

    /// Appends a frame, in exchange for an empty one; the offset behind it.
    #[inline]
    pub fn append(&self, frame: &mut Encoded) -> u64 {
        let Some(ring) = self.ring.get() else { return 0 };
        let bytes = frame.bytes_total() as u64;
        // First: as soon as the frame is there the reader may take it, and count it as gone.
        let backlog_bytes = self.backlog_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let number = ring.push(frame);
        self.give_room(frame, bytes as usize);
        let waiting = number.saturating_sub(self.taken.load(Ordering::Relaxed));
        let is_much = waiting >= FRAMES_URGENT || self.is_backlog_over(backlog_bytes);
        if is_much {
            self.look_at_backlog();
        }
        // Who sees counts that are published after this sees the offset, too.
        fence(Ordering::Release);
        if (is_much || self.is_strict()) && self.is_reader_asleep.load(Ordering::SeqCst) {
            self.wake_reader();
        }
        number + 1
    }

    /// Room for the next frame, which may take as much as the last. Nobody waits for it.
    #[inline]
    fn give_room(&self, frame: &mut Encoded, bytes: usize) {
        let spare = self.spares.try_lock().ok().and_then(|mut spares| spares.pop());
        match spare {
            Some(spare) => *frame = spare,
            None => frame.reserve(bytes),
        }
    }

    /// Holds writers back if too much is waiting, and no longer if it is not.
    #[cold]
    fn look_at_backlog(&self) {
        self.look_at_backlog_and(|| ());
    }

    /// The same, and in a test what another thread does between look and barrier.
    fn look_at_backlog_and(&self, mut meanwhile: impl FnMut()) {
        let is_over = || {
            let waiting = self.offset().saturating_sub(self.taken.load(Ordering::SeqCst));
            waiting >= FRAMES_WAITING_MAX
                || self.is_backlog_over(self.backlog_bytes.load(Ordering::SeqCst))
        };
        loop {
            let was_over = is_over();
            meanwhile();
            self.raise(Barrier::Backlog, was_over);
            // What was taken away before the barrier was up was looked at by nobody else: see
            // `backlog_fell`.
            if is_over() == was_over {
                break;
            }
        }
    }

    /// Less is waiting than before.
    #[inline]
    fn backlog_fell(&self, bytes: u64) {
        self.backlog_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if self.barriers.is_up_now(Barrier::Backlog) {
            self.look_at_backlog();
        }
    }

    /// Whether so many messages are waiting that those who go on, since they only read, are not to
    /// add to them. What a log that works is behind with it will soon have written.
    #[inline]
    pub fn is_flooded(&self) -> bool {
        let max = self.backlog_bytes_max.load(Ordering::Relaxed);
        let bytes = self.message_bytes.load(Ordering::Relaxed);
        bytes > max && (self.barriers.is_up(Barrier::Failed) || bytes / FLOOD > max)
    }

    /// Puts a barrier up or takes it down. Those who wait are woken when none is left.
    pub fn raise(&self, barrier: Barrier, is_up: bool) {
        if self.barriers.set(barrier, is_up) && !is_up && !self.barriers.delays_writers() {
            let delayed = std::mem::take(&mut *lock(&self.delayed));
            delayed.iter().for_each(|writer| writer.wake());
        }
    }

    /// Has a writer wait while the journal can't keep up; false if it can.
    pub fn delay(&self, writer: Arc<dyn Wake>) -> bool {
        let mut delayed = lock(&self.delayed);
        // Whoever takes the last barrier down does that first and looks at the list then.
        let must_wait = self.barriers.delays_writers();
        if must_wait {
            delayed.push(writer);
        }
        must_wait
    }

    /// The log can't be written, and why; None: it can again.
    pub fn set_failure(&self, why: Option<String>) {
        let is_failed = why.is_some();
        *lock(&self.failure) = why.unwrap_or_default();
        self.raise(Barrier::Failed, is_failed);
    }

    pub fn failure(&self) -> String {
        lock(&self.failure).clone()
    }

    /// Does something as soon as an offset is durable: at once if it is, or if nobody is to wait
    /// for that. What was deferred earlier is done earlier.
    pub fn defer(&self, offset: u64, action: Action) {
        self.defer_message(offset, (0, action));
    }

    /// The same for a message of so many bytes: they are part of the backlog until it is sent.
    pub fn defer_message(&self, offset: u64, (bytes, action): (u64, Action)) {
        let mut deferred = lock(&self.deferred);
        if self.is_released(offset) && deferred.queue.is_empty() && !deferred.is_releasing {
            drop(deferred);
            if let Some(told) = action() {
                told.wake();
            }
            return;
        }
        let last = deferred.queue.back().map_or(0, |last| last.offset);
        deferred.queue.push_back(Waiting { offset: offset.max(last), bytes, action });
        let is_awaited = deferred.queue.len() == deferred.awaited;
        let backlog_bytes = self.backlog_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.message_bytes.fetch_add(bytes, Ordering::Relaxed);
        drop(deferred);
        if is_awaited {
            self.wake_reader();
        }
        if self.is_backlog_over(backlog_bytes) {
            self.look_at_backlog();
        }
        // It may have become durable between the look and the lock.
        if self.is_released(offset) {
            self.release();
        }
    }

    /// Wakes someone when an offset is durable, or when there is no log any more; false if it is
    /// durable now. Who drops `waiter` does not wait any more.
    pub fn when_durable(&self, offset: u64, waiter: &Arc<dyn Wake>) -> bool {
        let mut awaiting = lock(&self.awaiting);
        let must_wait = self.durable() < offset;
        if must_wait {
            awaiting.add(offset, waiter);
        }
        drop(awaiting);
        // The log may have ended between the look of the caller and the lock.
        if must_wait && !self.is_on() {
            self.wake_awaiting(|_| true);
        }
        must_wait
    }

    fn wake_awaiting(&self, is_due: impl Fn(u64) -> bool) {
        let due = lock(&self.awaiting).take(is_due);
        due.iter().filter_map(Weak::upgrade).for_each(|waiter| waiter.wake());
    }

    /// Whether what is deferred now waits behind something else.
    pub fn has_deferred(&self) -> bool {
        !lock(&self.deferred).queue.is_empty()
    }

    pub fn deferred_count(&self) -> DeferredCount {
        let deferred = lock(&self.deferred);
        DeferredCount { waiting: deferred.queue.len(), released: deferred.released }
    }

    /// For the reader: sleeps until so many wait for something to become durable, or until the
    /// deadline; how many do.
    pub fn await_deferred(&self, count: usize, deadline: Instant) -> usize {
        let mut deferred = lock(&self.deferred);
        while deferred.queue.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            deferred.awaited = count;
            drop(deferred);
            // Whoever else wakes it can wait until the deadline.
            std::thread::park_timeout(left);
            deferred = lock(&self.deferred);
        }
        deferred.awaited = 0;
        deferred.queue.len()
    }

    /// Does what was deferred and may be done.
    fn release(&self) {
        let mut deferred = lock(&self.deferred);
        if std::mem::replace(&mut deferred.is_releasing, true) {
            return;
        }
        loop {
            let is_due = |waiting: &&Waiting| self.is_released(waiting.offset);
            let due = deferred.queue.iter().take_while(is_due).count();
            let due: Vec<Waiting> = deferred.queue.drain(..due).collect();
            if due.is_empty() {
                deferred.is_releasing = false;
                return;
            }
            deferred.released += due.len() as u64;
            drop(deferred);
            let bytes: u64 = due.iter().map(|waiting| waiting.bytes).sum();
            run_all(due);
            if bytes > 0 {
                self.message_bytes.fetch_sub(bytes, Ordering::Relaxed);
                self.backlog_fell(bytes);
            }
            deferred = lock(&self.deferred);
        }
    }

    /// For the reader: all frames in this range that are complete, one after the other. `take`
    /// says whether it takes more. The number of the next frame.
    pub fn take(&self, range: Range<u64>, mut take: impl FnMut(&Encoded) -> bool) -> u64 {
        let (first, mut next) = (range.start, range.start);
        let Some(ring) = self.ring.get() else { return next };
        let (mut takes_more, mut spares) = (true, Vec::new());
        while takes_more && next < range.end {
            let mut frame = Encoded::default();
            if !ring.pop(next, |content| std::mem::swap(content, &mut frame)) {
                break;
            }
            next += 1;
            takes_more = take(&frame) && next - first < FRAMES_URGENT;
            if spares.len() < SPARES_MAX {
                frame.recycle();
                spares.push(frame);
            }
        }
        if next != first {
            let mut kept = lock(&self.spares);
            spares.truncate(SPARES_MAX.saturating_sub(kept.len()));
            kept.append(&mut spares);
            drop(kept);
            self.taken.store(next, Ordering::SeqCst);
            self.backlog_fell(0);
        }
        next
    }

    /// For the reader: everything before `offset` is durable, and `bytes` less are waiting.
    pub fn set_durable(&self, offset: u64, bytes: u64) {
        self.durable.fetch_max(offset, Ordering::AcqRel);
        self.backlog_fell(bytes);
        self.release();
        self.wake_awaiting(|at| at <= self.durable());
    }

    /// For the reader: this thread reads the journal from now on.
    pub fn set_reader(&self, reader: Option<Thread>) {
        *lock(&self.reader) = reader;
    }

    /// For the reader: sleeps for the time given, in strict mode until a call appends.
    pub fn sleep(&self, next: u64, time: std::time::Duration) {
        self.is_reader_asleep.store(true, Ordering::SeqCst);
        if self.offset() == next || !self.is_strict() {
            std::thread::park_timeout(time);
        }
        self.is_reader_asleep.store(false, Ordering::SeqCst);
    }

    /// Has the reader look at the journal now.
    #[cold]
    pub fn wake_reader(&self) {
        if let Some(reader) = &*lock(&self.reader) {
            reader.unpark();
        }
    }
}

/// Does all of this, and wakes who was told by it afterwards.
fn run_all(due: Vec<Waiting>) {
    let mut told: Vec<Arc<dyn Wake>> = Vec::new();
    for (index, waiting) in due.into_iter().enumerate() {
        told.extend((waiting.action)());
        if (index + 1).is_multiple_of(WAKES_PUT_OFF_MAX) {
            told.drain(..).for_each(|sleeper| sleeper.wake());
        }
    }
    told.iter().for_each(|sleeper| sleeper.wake());
}
