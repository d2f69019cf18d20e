//! When the functions were last changed, as an offset of the journal: with `appendfsync always`
//! replies that show them wait until that is durable.
//!
//! A change is seen by others before its record has an offset: functions are found without a lock.
//! Who finds one while a change is under way takes the shard of those who change them, and so waits
//! until it is over.

use super::REGISTRY_SHARD;
use crate::call::ctx::Ctx;
use crate::call::invoke::Origin;
use russet_engine::keys::Keys;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Changes {
    is_under_way: AtomicBool,
    last: AtomicU64,
}

impl Changes {
    /// Before a call changes something. It holds the shard of those who do.
    pub fn begin(&self, ctx: &Ctx) {
        // What is loaded is durable, and nobody looks on.
        if ctx.origin != Origin::Load {
            debug_assert!(ctx.keys.held().contains(REGISTRY_SHARD), "changes are in one order");
            self.is_under_way.store(true, Ordering::SeqCst);
        }
    }

    /// After a call whose records are in the journal, and before its shards are unlocked.
    pub fn end(&self, keys: &Keys) {
        if self.is_under_way() && keys.held().contains(REGISTRY_SHARD) {
            self.last.fetch_max(keys.effects.appended, Ordering::AcqRel);
            self.is_under_way.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    pub fn set_under_way(&self, is_under_way: bool) {
        self.is_under_way.store(is_under_way, Ordering::SeqCst);
    }

    /// Asked after the functions were looked at.
    pub fn is_under_way(&self) -> bool {
        self.is_under_way.load(Ordering::Acquire)
    }

    /// The offset that is durable if the functions are, as they were seen by who asks.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }
}
