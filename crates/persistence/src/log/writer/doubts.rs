//! What nobody can prove to be durable: a sync has failed that was to cover what was left to the
//! system, with `no`, and is not kept. Only a new base makes good for it.

use super::thread::Writer;
use std::sync::atomic::Ordering;

impl Writer {
    /// A sync has failed. Another one would prove nothing of what it was to cover, which is written
    /// again where it is kept; what the system was left with is not.
    pub(super) fn doubt(&mut self) {
        self.has_sync_failed = true;
        let left_end = std::mem::take(&mut self.left_end);
        if left_end > 0 {
            self.doubted_end = self.doubted_end.max(left_end);
            self.doubts += 1;
            self.report_need();
            self.events.warn(
                "What was written with appendfsync no may not be durable: the log is \
                              rewritten",
            );
        }
    }

    pub(super) fn note_doubts(&mut self) {
        self.doubts_covered = self.doubts;
    }

    /// A base holds all that was appended before it was begun.
    pub(super) fn end_doubts(&mut self) {
        if self.doubted_end > 0 && self.doubts == self.doubts_covered {
            let end = std::mem::take(&mut self.doubted_end);
            self.report_need();
            self.set_durable(end, 0);
        }
    }

    pub(super) fn report_need(&self) {
        let needs_base = self.doubted_end > 0 || self.has_lost_files;
        self.shared.needs_base.store(needs_base, Ordering::Release);
    }
}
