//! What all clients of one process share.

pub mod acl;
pub mod client_memory;
pub mod clients;
pub mod config;
pub mod durability;
pub mod hot_keys;
pub mod latency;
mod load_pool;
pub mod memory_limit;
pub mod monitor;
pub mod offline;
pub mod outbound;
pub mod renames;
mod secrets;
pub mod slowlog;
pub mod snapshot;
pub mod stats;
pub mod tracking;

use crate::call::http_guard::HttpGuard;
use crate::call::mail::Posting;
use crate::call::pause::Pause;
use crate::groups::generic::migrate::Migrations;
use crate::groups::pubsub::hub::{Hub, Space};
use crate::groups::scripting::Scripts;
use crate::groups::scripting::once::OnceStats;
use crate::groups::server::command::CommandReplies;
use crate::groups::server::debug::Gathered;
use crate::node::acl::Acl;
use crate::node::client_memory::ClientMemory;
use crate::node::clients::Clients;
use crate::node::config::{Config, Directive};
use crate::node::durability::Durability;
use crate::node::hot_keys::HotKeys;
use crate::node::latency::LatencyMonitor;
use crate::node::memory_limit::MemoryLimit;
use crate::node::monitor::Monitors;
use crate::node::outbound::Connector;
use crate::node::renames::{Renames, lookup_named, resolve_named};
use crate::node::slowlog::{CostLog, LogKind};
use crate::node::snapshot::Saves;
use crate::node::stats::Stats;
use crate::node::tracking::Tracking;
use russet_base::{Args, Clock, Random};
use russet_catalog::{Command, Unknown};
use russet_engine::access::CounterPace;
use russet_engine::event::{EventClasses, Notice};
use russet_engine::keyspace::Keyspace;
use russet_engine::record::{RecordListener, Records};
use russet_persistence::disk::Disk;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// How DEBUG has the process end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// A write to memory that is not there.
    Fault,
    Panic,
    Assertion,
}

/// What only the process around the commands can know or do.
pub trait Host: Send + Sync {
    /// Bytes that the allocator has given out, and those resident in memory.
    fn allocator(&self) -> AllocatorReport {
        AllocatorReport::default()
    }

    /// SHUTDOWN: begins an orderly end of the process.
    fn shut_down(&self) {}

    /// A directive was changed by CONFIG SET; the host applies what concerns it.
    fn directive_changed(&self, _directive: Directive) -> Result<(), String> {
        Ok(())
    }

    /// Event-loop threads.
    fn threads(&self) -> usize {
        1
    }

    /// What the process is, and what it has used so far.
    fn process(&self) -> ProcessReport {
        ProcessReport::default()
    }

    /// What INFO tells about certificates.
    fn certificates(&self) -> CertificateReport {
        CertificateReport::default()
    }

    /// MEMORY PURGE: gives unused pages back to the system.
    fn purge(&self) {}

    /// About ten times in a second, from the housekeeping.
    fn tick(&self) {}

    /// MEMORY MALLOC-STATS: the allocator's own report.
    fn allocator_text(&self) -> String {
        String::new()
    }

    /// DEBUG SEGFAULT and its kin: ends the process; returns where that is not for us to end.
    fn crash(&self, _how: Crash) {}

    /// DEBUG SLEEP.
    fn sleep(&self, _time: std::time::Duration) {}

    /// DEBUG LOG: writes a line to the log.
    fn log(&self, _line: &str) {}

    /// Writes a line to the log that is no warning.
    fn note(&self, _line: &str) {}

    /// So many of so many bytes are loaded: now and then while data is.
    fn loading(&self, _loaded: u64, _total: u64) {}

    /// Where data files are; none if nothing is to be written.
    fn disk(&self) -> Option<Arc<dyn Disk>> {
        None
    }

    /// Opens connections to other servers; none if that can't be done.
    fn connector(&self) -> Option<Arc<dyn Connector>> {
        None
    }

    /// `redis.log`: writes a script's line to the log. The level is 0 for debug to 3 for warning.
    fn log_script(&self, _level: u8, _line: &str) {}
}

/// A host that has nothing to give but a disk, if that: for tests.
#[derive(Default)]
pub struct BareHost {
    pub disk: Option<Arc<dyn Disk>>,
}

impl Host for BareHost {
    fn disk(&self) -> Option<Arc<dyn Disk>> {
        self.disk.clone()
    }
}

/// What INFO reports about the process. Texts are empty where the system does not say.
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
    /// Who is told of start and end, if anyone is.
    pub supervisor: Option<&'static str>,
}

/// The certificates that connections over TLS are shown.
#[derive(Clone, Debug, Default)]
pub struct CertificateReport {
    pub server: Option<CertificateFacts>,
    /// That of connections which the server opens, if they have one of their own.
    pub client: Option<CertificateFacts>,
    /// Of those who vouch for clients, the one that expires first.
    pub authority: Option<CertificateFacts>,
}

#[derive(Clone, Debug)]
pub struct CertificateFacts {
    pub serial: String,
    /// Unix time in seconds.
    pub expires_at: i64,
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
    pub acl: Acl,
    /// Commands by other names than their own; None if there are none.
    pub renames: Option<Box<Renames>>,
    pub command_replies: CommandReplies,
    pub clients: Clients,
    pub hub: Hub,
    pub tracking: Tracking,
    pub monitors: Monitors,
    pub pause: Pause,
    pub stats: Stats,
    pub slowlog: CostLog,
    pub large_requests: CostLog,
    pub large_replies: CostLog,
    /// Calls that had to wait for shards that others held.
    pub shard_waits: CostLog,
    pub latency: LatencyMonitor,
    pub hot_keys: HotKeys,
    pub memory_limit: MemoryLimit,
    pub client_memory: ClientMemory,
    pub scripts: Scripts,
    pub once: OnceStats,
    pub durability: Durability,
    pub saves: Saves,
    pub migrations: Migrations,
    pub http_guard: HttpGuard,
    /// Who gets what calls have changed, beside the journal.
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

/// What counts as used memory of a server without data.
const STARTUP_BYTES_COUNTED_MAX: u64 = 1 << 20;
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
    Directive::CommandlogShardWaitLongerThan,
    Directive::CommandlogShardWaitMaxLen,
    Directive::LatencyMonitorThreshold,
    Directive::LatencyTracking,
    Directive::HotkeysTopK,
    Directive::MaxMemoryPolicy,
    Directive::MaxMemoryClients,
    Directive::LfuLogFactor,
];

impl Node {
    pub fn new(
        config: Config,
        keyspace: Keyspace,
        clock: Arc<dyn Clock>,
        host: Box<dyn Host>,
    ) -> Self {
        let started = clock.now();
        let started_ms = started.0;
        let mut random = Random::from_entropy();
        let acl = Acl::new(&config);
        let renames = Some(config.renames()).filter(|renames| !renames.is_empty());
        let renames = renames.cloned().map(Box::new);
        let node = Node {
            keyspace,
            config,
            acl,
            renames,
            command_replies: CommandReplies::default(),
            clients: Clients::default(),
            hub: Hub::default(),
            tracking: Tracking::default(),
            monitors: Monitors::default(),
            pause: Pause::default(),
            stats: Stats::default(),
            slowlog: CostLog::default(),
            large_requests: CostLog::default(),
            large_replies: CostLog::default(),
            shard_waits: CostLog::default(),
            latency: LatencyMonitor::default(),
            hot_keys: HotKeys::default(),
            memory_limit: MemoryLimit::default(),
            client_memory: ClientMemory::default(),
            scripts: Scripts::default(),
            once: OnceStats::default(),
            durability: Durability::default(),
            saves: Saves::new(started),
            migrations: Migrations::default(),
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

    /// The command that a call means, in the names that clients use.
    pub fn resolve(&self, args: Args) -> Result<Command, Unknown> {
        resolve_named(self.renames.as_deref(), args)
    }

    /// The command of a name as clients use it: `get`, `client|list`.
    pub fn lookup_full(&self, full_name: &[u8]) -> Option<Command> {
        lookup_named(self.renames.as_deref(), full_name)
    }

    /// Whether clients have a name for a command.
    pub fn has_name(&self, command: Command) -> bool {
        self.renames.as_ref().is_none_or(|renames| renames.has(command))
    }

    /// Whether a call may be in other names than the commands' own.
    #[inline]
    pub fn may_be_renamed(&self, command: Command) -> bool {
        self.renames.as_ref().is_some_and(|renames| renames.may_concern(command))
    }

    pub fn log_of(&self, kind: LogKind) -> &CostLog {
        match kind {
            LogKind::Slow => &self.slowlog,
            LogKind::LargeRequest => &self.large_requests,
            LogKind::LargeReply => &self.large_replies,
            LogKind::ShardWait => &self.shard_waits,
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
            Directive::CommandlogShardWaitLongerThan => self.shard_waits.set_threshold(number),
            Directive::CommandlogShardWaitMaxLen => self.shard_waits.set_len_max(number),
            Directive::LatencyMonitorThreshold => self.latency.set_threshold_ms(number),
            Directive::LatencyTracking => self.stats.set_tracking(number != 0),
            Directive::MaxMemoryPolicy => {
                let policy = self.config.choice(Directive::MaxMemoryPolicy);
                self.keyspace.count_uses(policy.ends_with("-lfu"));
                self.keyspace.ignore_reads(policy.ends_with("-lrm"));
                self.memory_limit.refresh(&self.config);
            }
            Directive::MaxMemory => {
                self.memory_limit.refresh(&self.config);
                self.refresh_client_memory();
            }
            Directive::MaxMemorySamples | Directive::MaxMemoryEvictionTenacity => {
                self.memory_limit.refresh(&self.config);
            }
            Directive::MaxMemoryClients => self.refresh_client_memory(),
            Directive::LfuLogFactor | Directive::LfuDecayTime => {
                let number = |of| u32::try_from(self.config.int(of)).unwrap_or(u32::MAX);
                self.keyspace.set_counter_pace(CounterPace {
                    log_factor: number(Directive::LfuLogFactor),
                    decay_minutes: number(Directive::LfuDecayTime),
                });
            }
            Directive::RequirePass => {
                self.acl.set_default_password(&self.config.text(Directive::RequirePass));
            }
            Directive::HotkeysTopK | Directive::HotkeysWindowSeconds => self.refresh_top_keys(),
            Directive::Save | Directive::StopWritesOnBgsaveError => self.refresh_save_barrier(),
            _ => {}
        }
    }

    /// A directive has a new value: those who keep it or act on it are notified.
    pub fn directive_changed(&self, directive: Directive) -> Result<(), String> {
        self.refresh(directive);
        self.log_directive_changed(directive)?;
        self.host.directive_changed(directive)
    }

    /// What must be noted about ten times in a second.
    pub fn tick(&self) {
        self.stats.sample(self.clock.monotonic_micros());
        self.host.tick();
        self.durability.tick();
        self.save_if_due();
        self.tend_beginning();
        self.rewrite_if_grown();
        self.end_migrations();
        self.end_hot_keys_if_due();
        self.end_hot_key_window_if_due();
        let turns = self.stats.housekeeping_turns.fetch_add(1, Ordering::Relaxed);
        self.note_memory();
        self.limit_client_memory();
        // A look into every shard takes time.
        if turns.is_multiple_of(TICKS_PER_LIFETIME_SAMPLE) {
            let (now, shards) = (self.clock.now(), self.keyspace.shards());
            (0..shards).for_each(|shard| self.keyspace.sample_lifetimes(shard, now));
        }
    }

    fn note_memory(&self) {
        let used = self.used_memory_bytes();
        let is_exceeded = self.memory_limit.is_exceeded_by(used);
        self.memory_limit.note(is_exceeded, self.clock.monotonic_micros());
        if self.stats.memory_peak_bytes.fetch_max(used, Ordering::Relaxed) < used {
            let now = self.clock.now().seconds();
            self.stats.memory_peak_seconds.store(now, Ordering::Relaxed);
        }
    }

    /// Notes what the process takes before anything is stored. For its host, once, before it serves
    /// anyone: what a request takes must not be taken for it.
    ///
    /// DIFFERS: no more of it counts than a server of Redis takes. Threads and shards take more,
    /// and a `maxmemory` that leaves room for data there is to leave some here.
    pub fn note_startup_memory(&self) {
        let counted_bytes = self.host.allocator().allocated_bytes.min(STARTUP_BYTES_COUNTED_MAX);
        self.stats.memory_startup_bytes.store(counted_bytes, Ordering::Relaxed);
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
        self.acl.denied.reset();
        self.stats.expired_before.store(self.expired_ever(), Ordering::Relaxed);
        let fields = self.expired_fields_ever();
        self.stats.expired_fields_before.store(fields, Ordering::Relaxed);
        self.keyspace.reclaimer().reset_counts();
        self.scripts.reset_evicted();
    }

    /// What INFO calls used_memory: what the process took at its start and what was counted since.
    /// A dozen loads, so that it can be asked before each write. What Lua machines hold is reported
    /// apart.
    #[inline]
    pub fn used_memory_bytes(&self) -> u64 {
        self.stats.memory_startup_bytes.load(Ordering::Relaxed) + self.counted_bytes()
    }

    fn counted_bytes(&self) -> u64 {
        let logs = [&self.slowlog, &self.large_requests, &self.large_replies, &self.shard_waits];
        self.keyspace.used_memory().bytes()
            + self.keyspace.once_totals().bytes()
            + self.keyspace.tracked_totals().bytes()
            + self.scripts.code_bytes()
            + logs.iter().map(|log| log.memory_bytes()).sum::<u64>()
            + self.hot_keys.memory_bytes()
    }

    /// From now on this one gets what calls have changed; None: nobody does. Every shard must be
    /// held, so that no call is half-way.
    pub fn set_record_listener(&self, listener: Option<Arc<dyn RecordListener>>) {
        self.keyspace.set_recording(listener.is_some() || self.keyspace.journal().is_on());
        *self.listener.write().unwrap_or_else(|poison| poison.into_inner()) = listener;
    }

    fn has_record_listener(&self) -> bool {
        self.listener.read().unwrap_or_else(|poison| poison.into_inner()).is_some()
    }

    /// What DEBUG RECORD has gathered.
    pub(crate) fn gathered(&self) -> MutexGuard<'_, Option<Arc<Gathered>>> {
        self.gathered.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Hands over the records of calls of a version; the journal's offset behind them, if it got
    /// any.
    pub(crate) fn pass_on(&self, records: &mut Records, version: u64) -> Option<u64> {
        let listener = self.listener.read().unwrap_or_else(|poison| poison.into_inner());
        if let Some(listener) = &*listener {
            listener.units(&records.all());
        }
        drop(listener);
        let journal = self.keyspace.journal();
        let is_appended = journal.is_on() && records.has_logged();
        let offset = is_appended.then(|| {
            records.encoded_mut().version = version;
            journal.append(records.encoded_mut())
        });
        records.clear();
        offset
    }

    /// Publishes what happened to keys, as `notify-keyspace-events` asks.
    pub fn publish_notices(&self, notices: &[Notice], posting: &mut Posting) {
        let classes = self.keyspace.notify_classes();
        for notice in notices {
            let Notice { db, event, key } = notice;
            if classes.has_any(EventClasses::KEYSPACE) {
                let mut channel = format!("__keyspace@{db}__:").into_bytes();
                channel.extend_from_slice(key);
                self.hub.publish(Space::Global, &channel, event.name.as_bytes(), posting);
            }
            if classes.has_any(EventClasses::KEYEVENT) {
                let channel = format!("__keyevent@{db}__:{}", event.name);
                self.hub.publish(Space::Global, channel.as_bytes(), key, posting);
            }
        }
    }
}
