//! Publish and subscribe.

pub mod hub;
pub(crate) mod inspect;
pub(crate) mod publish;
pub(crate) mod subscribe;

#[cfg(test)]
mod tests;

use crate::call::session::Session;
use crate::node::Node;
use russet_catalog::Command;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

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

/// Whether this is how the client's last command showed its subscriptions. That is pushed, not
/// replied: a client that has turned its replies off gets it nevertheless.
pub fn is_confirmation(session: &Session, reply: &[u8]) -> bool {
    let last = usize::from(session.card.last_command.load(Ordering::Relaxed));
    let command = last.checked_sub(1).and_then(|at| Command::ALL.get(at));
    // A refusal or QUEUED is a reply like any other, and leaves the last command as it was.
    let is_collection = matches!(reply.first(), Some(b'*' | b'>'));
    is_collection
        && matches!(
            command,
            Some(
                Command::Subscribe
                    | Command::Unsubscribe
                    | Command::Psubscribe
                    | Command::Punsubscribe
                    | Command::Ssubscribe
                    | Command::Sunsubscribe
            )
        )
}

/// Ends all of a client's subscriptions without telling it: RESET, and disconnection.
pub(crate) fn unsubscribe_all(node: &Node, session: &mut Session) {
    let listening = std::mem::take(&mut session.subscriptions);
    let id = session.id();
    for channel in &listening.channels {
        node.hub.unsubscribe(hub::Space::Global, channel, id);
    }
    for pattern in &listening.patterns {
        node.hub.unsubscribe_pattern(pattern, id);
    }
    for channel in &listening.shard_channels {
        node.hub.unsubscribe(hub::Space::Shard, channel, id);
    }
    session.card.channel_bytes.store(0, Ordering::Relaxed);
    session.subscriptions_changed();
}
