//! Publish and subscribe.

pub mod hub;

use std::collections::BTreeSet;

/// What one client is subscribed to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    pub channels: BTreeSet<Box<[u8]>>,
    pub patterns: BTreeSet<Box<[u8]>>,
    pub shard_channels: BTreeSet<Box<[u8]>>,
}

impl Subscriptions {
    /// As the replies of SUBSCRIBE and PSUBSCRIBE count.
    pub fn count_global(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    pub fn count_all(&self) -> usize {
        self.count_global() + self.shard_channels.len()
    }
}
