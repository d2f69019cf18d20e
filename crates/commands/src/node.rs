//! What all clients of one process share.

pub mod clients;
pub mod config;
pub mod latency;
pub mod monitor;
pub mod slowlog;
pub mod stats;

use crate::call::http_guard::HttpGuard;
use crate::call::pause::Pause;
use crate::groups::once::OnceStats;
use crate::groups::pubsub::hub::{Hub, Space};
use crate::groups::scripting::Scripts;
use crate::groups::server::debug::Gathered;
use crate::node::clients::Clients;
use crate::node::config::{Config, Directive};
use crate::node::latency::LatencyMonitor;
use crate::node::monitor::Monitors;
use crate::node::slowlog::{CostLog, LogKind};
use crate::node::stats::Stats;
use russet_base::{Clock, Random};
use russet_engine::access::CounterPace;
use russet_engine::event::{EventClasses, Notice};
use russet_engine::keyspace::Keyspace;
use russet_engine::record::{RecordListener, Records};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

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

    /// What the process is, and what it has used so far.
    fn process(&self) -> ProcessReport {
        ProcessReport::default()
    }

    /// MEMORY PURGE: gives unused pages back to the system.
    fn purge(&self) {}

    /// About ten times in a second, from the housekeeping.
    fn tick(&self) {}

    /// MEMORY MALLOC-STATS: the allocator's own report.
    fn allocator_text(&self) -> String {
        String::new()
    }

    /// DEBUG SLEEP.
    fn sleep(&self, _time: std::time::Duration) {}

    /// DEBUG LOG: writes a line to the log.
    fn log(&self, _line: &str) {}

    /// `redis.log`: writes a script's line to the log. The level is 0 for debug to 3 for warning.
    fn log_script(&self, _level: u8, _line: &str) {}
}

/// What INFO tells about the process. Texts are empty where the system does not say.
#[derive(Clone, Debug, Default)]
pub struct ProcessReport {
    pub id: u32,
    pub executable: String,
    /// Its name, release and machine, as `uname` has them.
    pub os: String,
    pub allocator: String,
    pub system_memory_bytes: u64,
    pub cpu: CpuTimes,
    /// Of processes that were started by this one and have ended.
    pub children_cpu: CpuTimes,
    /// Of the threads that run commands, taken together.
    pub command_threads_cpu: CpuTimes,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTimes {
    pub user_seconds: f64,
    pub system_seconds: f64,
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
    pub slowlog: CostLog,
    pub large_requests: CostLog,
    pub large_replies: CostLog,
    pub latency: LatencyMonitor,
    pub scripts: Scripts,
    pub once: OnceStats,
    pub http_guard: HttpGuard,
    /// Who gets what calls have changed.
    listener: RwLock<Option<Arc<dyn RecordListener>>>,
    /// DEBUG RECORD.
    gathered: Mutex<Option<Arc<Gathered>>>,
    pub clock: Arc<dyn Clock>,
    pub host: Box<dyn Host>,
    pub run_id: String,
    /// Names the history of the data, for replicas.
    pub replication_id: String,
    pub started_ms: i64,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub is_active_expire_off: AtomicBool,
    /// DEBUG PAUSE-CRON.
    pub is_housekeeping_paused: AtomicBool,
}

/// Of about ten ticks in a second, every how many-th looks at how long keys have to live.
const TICKS_PER_LIFETIME_SAMPLE: u64 = 10;

/// Directives whose values are kept elsewhere, too.
const CACHED: &[Directive] = &[
    Directive::NotifyKeyspaceEvents,
    Directive::SlowlogLogSlowerThan,
    Directive::CommandlogRequestLargerThan,
    Directive::CommandlogReplyLargerThan,
    Directive::SlowlogMaxLen,
    Directive::CommandlogLargeRequestMaxLen,
    Directive::CommandlogLargeReplyMaxLen,
    Directive::LatencyMonitorThreshold,
    Directive::LatencyTracking,
    Directive::MaxMemoryPolicy,
    Directive::LfuLogFactor,
];

impl Node {
    pub fn new(
        config: Config,
        keyspace: Keyspace,
        clock: Arc<dyn Clock>,
        host: Box<dyn Host>,
    ) -> Self {
        let started_ms = clock.now().0;
        let mut random = Random::from_entropy();
        let node = Node {
            keyspace,
            config,
            clients: Clients::default(),
            hub: Hub::default(),
            monitors: Monitors::default(),
            pause: Pause::default(),
            stats: Stats::default(),
            slowlog: CostLog::default(),
            large_requests: CostLog::default(),
            large_replies: CostLog::default(),
            latency: LatencyMonitor::default(),
            scripts: Scripts::default(),
            once: OnceStats::default(),
            http_guard: HttpGuard::default(),
            listener: RwLock::default(),
            gathered: Mutex::default(),
            clock,
            host,
            run_id: random.run_id(),
            replication_id: random.run_id(),
            started_ms,
            is_active_expire_off: AtomicBool::new(false),
            is_housekeeping_paused: AtomicBool::new(false),
        };
        CACHED.iter().for_each(|directive| node.refresh(*directive));
        node
    }

    pub fn log_of(&self, kind: LogKind) -> &CostLog {
        match kind {
            LogKind::Slow => &self.slowlog,
            LogKind::LargeRequest => &self.large_requests,
            LogKind::LargeReply => &self.large_replies,
        }
    }

    /// Pushes a directive's value to the places where it is kept for quick reading.
    fn refresh(&self, directive: Directive) {
        let number = self.config.int(directive);
        match directive {
            Directive::NotifyKeyspaceEvents => {
                self.keyspace.set_notify_classes(EventClasses(self.config.event_flags().0));
            }
            Directive::SlowlogLogSlowerThan => self.slowlog.set_threshold(number),
            Directive::CommandlogRequestLargerThan => self.large_requests.set_threshold(number),
            Directive::CommandlogReplyLargerThan => self.large_replies.set_threshold(number),
            Directive::SlowlogMaxLen => self.slowlog.set_len_max(number),
            Directive::CommandlogLargeRequestMaxLen => self.large_requests.set_len_max(number),
            Directive::CommandlogLargeReplyMaxLen => self.large_replies.set_len_max(number),
            Directive::LatencyMonitorThreshold => self.latency.set_threshold_ms(number),
            Directive::LatencyTracking => self.stats.set_tracking(number != 0),
            Directive::MaxMemoryPolicy => {
                let policy = self.config.choice(Directive::MaxMemoryPolicy);
                self.keyspace.count_uses(policy.ends_with("-lfu"));
            }
            Directive::LfuLogFactor | Directive::LfuDecayTime => {
                let number = |of| u32::try_from(self.config.int(of)).unwrap_or(u32::MAX);
                self.keyspace.set_counter_pace(CounterPace {
                    log_factor: number(Directive::LfuLogFactor),
                    decay_minutes: number(Directive::LfuDecayTime),
                });
            }
            _ => {}
        }
    }

    /// A directive has a new value: those who keep it or act on it are told.
    pub fn directive_changed(&self, directive: Directive) -> Result<(), String> {
        self.refresh(directive);
        self.host.directive_changed(directive)
    }

    /// What must be noted about ten times in a second.
    pub fn tick(&self) {
        self.stats.sample(self.clock.monotonic_micros());
        self.host.tick();
        let turns = self.stats.housekeeping_turns.fetch_add(1, Ordering::Relaxed);
        self.note_memory();
        // A look into every shard takes time.
        if turns.is_multiple_of(TICKS_PER_LIFETIME_SAMPLE) {
            let (now, shards) = (self.clock.now(), self.keyspace.shards());
            (0..shards).for_each(|shard| self.keyspace.sample_lifetimes(shard, now));
        }
    }

    fn note_memory(&self) {
        let used = self.used_memory_bytes();
        if self.stats.memory_peak_bytes.fetch_max(used, Ordering::Relaxed) < used {
            let now = self.clock.now().seconds();
            self.stats.memory_peak_seconds.store(now, Ordering::Relaxed);
        }
    }

    /// Notes what the process takes before anything is stored. For its host, once, before it serves
    /// anyone: what a request takes must not be taken for it.
    pub fn note_startup_memory(&self) {
        let allocated_bytes = self.host.allocator().allocated_bytes;
        self.stats.memory_startup_bytes.store(allocated_bytes, Ordering::Relaxed);
    }

    /// Keys that expired since the start or the last CONFIG RESETSTAT.
    pub fn expired_keys(&self) -> u64 {
        let before = self.stats.expired_before.load(Ordering::Relaxed);
        self.expired_ever().saturating_sub(before)
    }

    fn expired_ever(&self) -> u64 {
        let gauges = self.keyspace.gauges().iter();
        gauges.map(|gauges| gauges.expired.load(Ordering::Relaxed)).sum()
    }

    /// Fields of hashes that expired since the start or the last CONFIG RESETSTAT.
    pub fn expired_fields(&self) -> u64 {
        let before = self.stats.expired_fields_before.load(Ordering::Relaxed);
        self.expired_fields_ever().saturating_sub(before)
    }

    fn expired_fields_ever(&self) -> u64 {
        let gauges = self.keyspace.gauges().iter();
        gauges.map(|gauges| gauges.expired_fields.load(Ordering::Relaxed)).sum()
    }

    /// CONFIG RESETSTAT.
    pub fn reset_stats(&self) {
        self.stats.reset();
        self.stats.expired_before.store(self.expired_ever(), Ordering::Relaxed);
        let fields = self.expired_fields_ever();
        self.stats.expired_fields_before.store(fields, Ordering::Relaxed);
        self.keyspace.reclaimer().reset_counts();
    }

    /// What INFO calls used_memory: what the process took at its start and what was counted since.
    /// A dozen loads, so that it can be asked before each write. What Lua machines hold is reported
    /// apart.
    #[inline]
    pub fn used_memory_bytes(&self) -> u64 {
        self.stats.memory_startup_bytes.load(Ordering::Relaxed) + self.counted_bytes()
    }

    fn counted_bytes(&self) -> u64 {
        let once_bytes = self.keyspace.once_totals().bytes();
        self.keyspace.used_memory().bytes() + once_bytes + self.scripts.source_bytes()
    }

    /// From now on this one gets what calls have changed; None: nobody does. Every shard must be
    /// held, so that no call is half-way.
    pub fn set_record_listener(&self, listener: Option<Arc<dyn RecordListener>>) {
        self.keyspace.set_recording(listener.is_some());
        *self.listener.write().unwrap_or_else(|poison| poison.into_inner()) = listener;
    }

    /// What DEBUG RECORD has gathered.
    pub(crate) fn gathered(&self) -> MutexGuard<'_, Option<Arc<Gathered>>> {
        self.gathered.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Hands over the records of a call, or of several that happened as one.
    #[cold]
    pub(crate) fn pass_on(&self, records: &mut Records) {
        let listener = self.listener.read().unwrap_or_else(|poison| poison.into_inner());
        if let Some(listener) = &*listener {
            listener.unit(records.all());
        }
        drop(listener);
        records.clear();
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
