//! What may hold calls back, whoever makes them: a pause, a journal that can't keep up or has
//! failed, data that is being loaded, keys that are moved away. One look tells a call that nothing
//! does. What each barrier means for a call is up to the callers.

use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Barrier {
    /// CLIENT PAUSE.
    Pause = 1,
    /// More was written than the log has made durable: see [`crate::journal`].
    Backlog = 2,
    /// What was written longest ago should have been durable by now.
    Late = 4,
    /// The log can't be written.
    Failed = 8,
    /// The data is not all there yet.
    Loading = 16,
    /// More was copied for a snapshot than it has written: see [`crate::snapshot`].
    Copies = 32,
    /// Snapshots fail.
    SaveFailed = 64,
    /// Keys are on their way to another server: see [`crate::moving`].
    Moving = 128,
}

/// While one of these is up nothing may be deleted because its time is over, only hidden.
const KEEPS_EXPIRED: u8 = Barrier::Pause as u8
    | Barrier::Backlog as u8
    | Barrier::Late as u8
    | Barrier::Failed as u8
    | Barrier::Copies as u8;
/// While one of these is up calls that write wait.
const DELAYS_WRITERS: u8 = Barrier::Backlog as u8 | Barrier::Late as u8 | Barrier::Copies as u8;

#[derive(Debug, Default)]
pub struct Barriers(AtomicU8);

impl Barriers {
    /// Whether no call is blocked by any of them.
    #[inline]
    pub fn are_down(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    #[inline]
    pub fn is_up(&self, barrier: Barrier) -> bool {
        self.0.load(Ordering::Relaxed) & barrier as u8 != 0
    }

    /// The same for who has just changed what it depends on, and would look at that if it is.
    #[inline]
    pub fn is_up_now(&self, barrier: Barrier) -> bool {
        self.0.load(Ordering::SeqCst) & barrier as u8 != 0
    }

    #[inline]
    pub fn may_expire(&self) -> bool {
        self.0.load(Ordering::Relaxed) & KEEPS_EXPIRED == 0
    }

    /// Whether calls that write are to wait, for the journal's sake.
    pub fn delays_writers(&self) -> bool {
        self.0.load(Ordering::SeqCst) & DELAYS_WRITERS != 0
    }

    /// Whether keys may be removed to make room.
    pub fn may_evict(&self) -> bool {
        self.0.load(Ordering::Relaxed) & !(Barrier::Moving as u8) == 0
    }

    /// Puts a barrier up, or takes it down; whether that changed anything.
    pub fn set(&self, barrier: Barrier, is_up: bool) -> bool {
        let bit = barrier as u8;
        let before = match is_up {
            true => self.0.fetch_or(bit, Ordering::SeqCst),
            false => self.0.fetch_and(!bit, Ordering::SeqCst),
        };
        (before & bit != 0) != is_up
    }
}
