//! What has to wait: a rewrite of the log for a save, and for the end of a transaction or ONCE, as
//! the peers have it; a switch of the log for the end of a transaction or ONCE. Their writes are in
//! the data already, but in the journal only when all of them are over: a base that was taken
//! meanwhile would hold them, and the log would have them once more.

use crate::node::Node;
use crate::node::config::{Directive, Requester};
use russet_engine::keys::Keys;
use russet_persistence::log::LogStatus;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub struct Scheduled {
    rewrite: AtomicBool,
    /// The rewrite has to be over before anyone goes on.
    is_urgent: AtomicBool,
    switch: AtomicBool,
}

impl Scheduled {
    pub fn has_rewrite(&self) -> bool {
        self.rewrite.load(Ordering::Relaxed)
    }

    fn has_switch(&self) -> bool {
        self.switch.load(Ordering::Relaxed)
    }
}

impl Node {
    /// BGREWRITEAOF that can't be done yet.
    pub(crate) fn schedule_rewrite(&self) -> Result<(), String> {
        let status = self.durability.log_status().ok_or(super::IS_OFF)?;
        if status.is_rewriting {
            return Err(super::IS_REWRITING.to_owned());
        }
        self.durability.scheduled.rewrite.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The data has changed without records: a log has to begin anew, after a rewrite that may be
    /// under way.
    pub(crate) fn schedule_new_base(&self) {
        let is_on = self.durability.log().is_some();
        self.cancel_rewrite();
        self.durability.scheduled.rewrite.store(is_on, Ordering::Relaxed);
        self.durability.scheduled.is_urgent.store(is_on, Ordering::Relaxed);
    }

    /// `CONFIG SET appendonly` that can't be done yet.
    pub(crate) fn schedule_log_switch(&self) {
        self.durability.scheduled.switch.store(true, Ordering::Relaxed);
    }

    /// Does what was scheduled, if it can be done now. Every write is in the journal.
    pub(crate) fn do_scheduled(&self, keys: &mut Keys) {
        let scheduled = &self.durability.scheduled;
        if self.may_do_scheduled() && keys.holds_all() {
            if self.may_switch_log() && scheduled.switch.swap(false, Ordering::Relaxed) {
                self.switch_log(keys);
            }
            if self.may_do_scheduled() && scheduled.is_urgent.swap(false, Ordering::Relaxed) {
                scheduled.rewrite.store(false, Ordering::Relaxed);
                let Some(log) = self.durability.log() else { return };
                if let Err(why) = self.rewrite_held(keys) {
                    self.host.log(&format!("No rewrite of the log: {why}"));
                }
                log.await_rewrite();
            }
        }
        self.do_scheduled_rewrite();
    }

    /// The same for who holds no shard.
    pub(super) fn do_scheduled_alone(&self) {
        let scheduled = &self.durability.scheduled;
        let needs_all = scheduled.has_switch() || scheduled.is_urgent.load(Ordering::Relaxed);
        match needs_all && self.may_do_scheduled() {
            true => self.with_all_keys(|keys| self.do_scheduled(keys)),
            false => self.do_scheduled_rewrite(),
        }
    }

    /// A rewrite that needs no shard.
    fn do_scheduled_rewrite(&self) {
        let scheduled = &self.durability.scheduled;
        if !scheduled.has_rewrite() || scheduled.is_urgent.load(Ordering::Relaxed) {
            return;
        }
        if self.saves.purpose().is_none() && self.may_do_scheduled() {
            scheduled.rewrite.store(false, Ordering::Relaxed);
            self.try_rewrite();
        }
    }

    /// Whether something is scheduled and nothing is in its way.
    pub(super) fn may_do_scheduled(&self) -> bool {
        let scheduled = &self.durability.scheduled;
        let may_rewrite = |status: LogStatus| !status.is_rewriting;
        self.may_switch_log()
            || scheduled.has_rewrite() && self.durability.log_status().is_none_or(may_rewrite)
    }

    /// Whether the log is to be switched, and none is about to begin: that may still fail.
    fn may_switch_log(&self) -> bool {
        self.durability.scheduled.has_switch() && !self.is_log_beginning()
    }

    /// Makes the log what `appendonly` says, or `appendonly` what the log is.
    fn switch_log(&self, keys: &mut Keys) {
        let is_wanted = self.config.flag(Directive::AppendOnly);
        if is_wanted == self.durability.log().is_some() {
            return;
        }
        let switched =
            self.prepare_log(keys).and_then(|()| self.log_directive_changed(Directive::AppendOnly));
        self.forget_base();
        let Err(why) = switched else { return };
        self.host.log(&format!("appendonly stays as it was: {why}"));
        let before: &[u8] = if is_wanted { b"no" } else { b"yes" };
        let pair: (&[u8], &[u8]) = (b"appendonly", before);
        // It had this value before.
        let _set = self.config.set(&[pair], Requester::Local, &mut |_| Ok(()));
    }

    pub(super) fn try_rewrite(&self) {
        if let Err(why) = self.rewrite_log() {
            self.host.log(&format!("No rewrite of the log: {why}"));
        }
    }
}
