//! Those who want to know when an offset is durable, whether or not it may be shown before.

use crate::store::raw::lock::Wake;
use std::sync::{Arc, Weak};

/// As many are kept before it is looked who waits no more.
const FEW: usize = 64;

#[derive(Default)]
pub(super) struct Awaiting {
    waiters: Vec<(u64, Weak<dyn Wake>)>,
    /// When there are so many, those who wait no more are forgotten: twice as many as were left
    /// the last time, so that each is looked at twice or so.
    full_at: usize,
}

impl Awaiting {
    pub fn add(&mut self, offset: u64, waiter: &Arc<dyn Wake>) {
        if self.waiters.len() >= self.full_at.max(FEW) {
            self.waiters.retain(|(_, waiter)| waiter.strong_count() > 0);
            self.full_at = 2 * self.waiters.len();
        }
        self.waiters.push((offset, Arc::downgrade(waiter)));
    }

    /// Takes those out whose offset is due.
    pub fn take(&mut self, is_due: impl Fn(u64) -> bool) -> Vec<Weak<dyn Wake>> {
        let due = self.waiters.extract_if(.., |(offset, _)| is_due(*offset));
        due.map(|(_, waiter)| waiter).collect()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiters.len()
    }
}
