//! `CONFIG SET appendonly yes` while calls go on: the base of the new log is a snapshot that is
//! taken in the background, and who has asked for it waits. Until the base is complete there is no
//! log: what calls change behind the cut is kept, and nobody waits for it to be durable.

use super::lock;
use crate::node::Node;
use crate::node::config::Undo;
use crate::node::snapshot::AwaitedSave;
use russet_persistence::log::Log;
use std::sync::{Arc, Mutex};

const HAS_FAILED: &str = "the log could not be begun: its base was not written";
const WAS_DROPPED: &str = "the log was switched off before it had begun";

/// What a call has set beside the log that it waits for. However the call ends before the log has
/// begun, that is put back: here if nobody else does it.
pub(crate) struct SetBeside {
    undo: Option<Undo>,
    given_up: Arc<Mutex<Vec<Undo>>>,
}

impl SetBeside {
    pub(crate) fn into_undo(mut self) -> Undo {
        self.undo.take().unwrap_or_default()
    }
}

impl Drop for SetBeside {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take() {
            lock(&self.given_up).push(undo);
        }
    }
}

impl Node {
    pub(crate) fn set_beside(&self, undo: Undo) -> SetBeside {
        SetBeside { undo: Some(undo), given_up: self.durability.given_up.clone() }
    }

    /// Puts back what was set beside a log that is not to be; with every shard held. What another
    /// call's log has begun with stays.
    pub(crate) fn put_back(&self, undo: Undo) {
        if self.durability.log().is_none() {
            self.config.undo(undo, &mut |directive| self.directive_changed(directive));
        }
    }

    /// Puts back what nobody else will, once it is known whether there is a log.
    fn put_back_given_up(&self) {
        if self.is_log_beginning() || lock(&self.durability.given_up).is_empty() {
            return;
        }
        self.with_all_keys(|_| {
            let given_up = std::mem::take(&mut *lock(&self.durability.given_up));
            given_up.into_iter().for_each(|undo| self.put_back(undo));
        });
    }

    /// Begins a log, or joins those who wait for one that begins. Every shard is held, and all that
    /// was written is in the data. None if it can't be begun beside a snapshot that is under way,
    /// or there is one.
    pub(crate) fn begin_log(&self) -> Result<Option<Arc<AwaitedSave>>, String> {
        if let Some(begun) = &*lock(&self.durability.beginning) {
            return Ok(Some(begun.clone()));
        }
        let node = self.durability.node();
        let is_free = self.durability.log().is_none() && self.saves.purpose().is_none();
        let (Some(node), true, true) = (node, is_free, self.host.disk().is_some()) else {
            return Ok(None);
        };
        let log = node.start_log_with(self.open_log()?, Log::start_for_base)?;
        let _is_first = log.claim_rewrite();
        self.begin_rewrite_of(log).inspect_err(|_| self.drop_log())?;
        let begun = AwaitedSave::plain();
        *lock(&self.durability.beginning) = Some(begun.clone());
        Ok(Some(begun))
    }

    /// Looks whether the log has begun.
    pub(crate) fn look_at_beginning(&self) {
        let Some(begun) = lock(&self.durability.beginning).clone() else { return };
        if self.durability.log().is_some_and(|log| log.is_rewriting()) {
            return;
        }
        let status = self.durability.log_status();
        let is_good = status.is_some_and(|status| !status.is_rewrite_bad);
        begun.finish(if is_good { Ok(()) } else { Err(HAS_FAILED.to_owned()) });
    }

    /// About ten times in a second: the same, and ends a log whose client is gone.
    pub(in crate::node) fn tend_beginning(&self) {
        self.put_back_given_up();
        self.look_at_beginning();
        let is_nobodys = |begun: &mut Arc<AwaitedSave>| Arc::strong_count(begun) == 1;
        let may_be = lock(&self.durability.beginning).as_mut().is_some_and(is_nobodys);
        if !may_be {
            return;
        }
        // While others may join those who wait, it is not nobody's for sure.
        self.with_all_keys(|_| {
            if lock(&self.durability.beginning).take_if(is_nobodys).is_some() {
                self.give_up_log();
            }
        });
    }

    /// One of those who have waited for it knows how it went; whether it is the first.
    pub(crate) fn end_beginning(&self, begun: &Arc<AwaitedSave>) -> bool {
        let is_it = |other: &mut Arc<AwaitedSave>| Arc::ptr_eq(other, begun);
        lock(&self.durability.beginning).take_if(is_it).is_some()
    }

    /// There is no log to wait for any more.
    pub(super) fn drop_beginning(&self) {
        if let Some(begun) = lock(&self.durability.beginning).take() {
            begun.finish(Err(WAS_DROPPED.to_owned()));
        }
    }

    /// Whether there is a log to be, and none yet.
    pub(crate) fn is_log_beginning(&self) -> bool {
        lock(&self.durability.beginning).is_some()
    }

    /// The log that was begun is not to be. Every shard is held.
    pub(crate) fn give_up_log(&self) {
        if self.durability.log().is_some() {
            self.drop_log();
        }
    }
}
