//! What all clients of one process share.

use crate::clients::Clients;
use crate::config::{Config, Directive};
use crate::monitor::Monitors;
use crate::pause::Pause;
use crate::pubsub::hub::{Hub, Space};
use crate::slowlog::Slowlog;
use crate::stats::Stats;
use russet_base::{Clock, Random};
use russet_engine::event::{EventClasses, Notice};
use russet_engine::keyspace::Keyspace;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What only the process around the commands can tell or do.
pub trait Host: Send + Sync {
    /// Bytes that the allocator has given out, and those resident in memory.
    fn allocator(&self) -> AllocatorReport;

    /// SHUTDOWN: begins an orderly end of the process.
    fn shut_down(&self);

    /// A directive was changed by CONFIG SET; the host applies what concerns it.
    fn directive_changed(&self, directive: Directive) -> Result<(), String>;

    /// Event-loop threads.
    fn threads(&self) -> usize;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct AllocatorReport {
    pub allocated_bytes: u64,
    pub active_bytes: u64,
    pub resident_bytes: u64,
    pub process_rss_bytes: u64,
}

pub struct Node {
    pub keyspace: Keyspace,
    pub config: Config,
    pub clients: Clients,
    pub hub: Hub,
    pub monitors: Monitors,
    pub pause: Pause,
    pub stats: Stats,
    pub slowlog: Slowlog,
    pub clock: Arc<dyn Clock>,
    pub host: Box<dyn Host>,
    pub run_id: String,
    pub started_ms: i64,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub is_active_expire_off: AtomicBool,
}

impl Node {
    pub fn new(
        config: Config,
        keyspace: Keyspace,
        clock: Arc<dyn Clock>,
        host: Box<dyn Host>,
    ) -> Self {
        let started_ms = clock.now().0;
        let classes = EventClasses(config.event_flags().0);
        keyspace.set_notify_classes(classes);
        let slowlog = Slowlog::default();
        slowlog.set_threshold(config.int(Directive::SlowlogLogSlowerThan));
        Node {
            keyspace,
            config,
            clients: Clients::default(),
            hub: Hub::default(),
            monitors: Monitors::default(),
            pause: Pause::default(),
            stats: Stats::default(),
            slowlog,
            clock,
            host,
            run_id: Random::from_entropy().run_id(),
            started_ms,
            is_active_expire_off: AtomicBool::new(false),
        }
    }

    /// What INFO calls used_memory: what the allocator gave out, and the entries of the tables,
    /// which have pages of their own.
    pub fn used_memory_bytes(&self) -> u64 {
        self.host.allocator().allocated_bytes + self.keyspace.memory_bytes()
    }

    /// Publishes what happened to keys, as `notify-keyspace-events` asks.
    pub fn publish_notices(&self, notices: &[Notice]) {
        let classes = self.keyspace.notify_classes();
        for notice in notices {
            let Notice { db, event, key } = notice;
            if classes.has_any(EventClasses::KEYSPACE) {
                let mut channel = format!("__keyspace@{db}__:").into_bytes();
                channel.extend_from_slice(key);
                self.hub.publish(Space::Global, &channel, event.name.as_bytes());
            }
            if classes.has_any(EventClasses::KEYEVENT) {
                let channel = format!("__keyevent@{db}__:{}", event.name);
                self.hub.publish(Space::Global, channel.as_bytes(), key);
            }
        }
    }
}
