//! What the process tells the commands about itself.

use crate::command_line::{self, CommandLine};
use crate::cpu::CpuMeter;
use crate::crash_report;
use crate::event_loop::Fleet;
use crate::idle_pages::IdlePages;
use crate::listen::{self, Listeners};
use crate::load_display::LoadDisplay;
use crate::log::{Level, Log};
use crate::oom_score::OomScore;
use crate::open_files::OpenFiles;
use crate::outbound::TcpConnector;
use crate::sampled::Sampled;
use crate::service::RussetService;
use crate::supervisor::Supervisor;
use crate::tls::{self, CertificateWatch};
use russet_commands::node::config::{Config, Directive};
use russet_commands::node::outbound::Connector;
use russet_commands::node::{AllocatorReport, CertificateReport, Crash, Host, Node, ProcessReport};
use russet_persistence::disk::{Disk, FileSystem};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
use tikv_jemalloc_ctl::{Access, AsName, arenas, epoch, stats, stats_print, version};

/// What the allocator calls the dirty pages of all arenas; 4096 stands for all of them.
const ALL_DIRTY_PAGES: &[u8] = b"stats.arenas.4096.pdirty\0";
const PAGE_SIZE: &[u8] = b"arenas.page\0";

/// What stays as it is.
struct ProcessFacts {
    executable: String,
    os: String,
    allocator: String,
    system_memory_bytes: u64,
}

impl ProcessFacts {
    fn find() -> ProcessFacts {
        let executable = std::env::current_exe().map(|path| path.display().to_string());
        ProcessFacts {
            executable: executable.unwrap_or_default(),
            os: os_name(),
            allocator: allocator_name(),
            system_memory_bytes: system_memory_bytes().unwrap_or(0),
        }
    }
}

/// The loops exist only after the node does, so the host learns of them later.
#[derive(Default)]
pub struct Process {
    pub fleet: OnceLock<Arc<Fleet<RussetService>>>,
    pub node: OnceLock<Weak<Node>>,
    pub stop: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub threads: OnceLock<usize>,
    pub log: OnceLock<Arc<Log>>,
    pub command_line: OnceLock<CommandLine>,
    oom_score: OomScore,
    pub listeners: Listeners,
    pub load_display: LoadDisplay,
    pub cpu: CpuMeter,
    allocator: Sampled<AllocatorReport>,
    facts: OnceLock<ProcessFacts>,
    pub idle_pages: Mutex<IdlePages>,
    pub connector: Arc<TcpConnector>,
    pub supervisor: OnceLock<Arc<Supervisor>>,
    /// All is loaded, and the process is not about to end.
    pub is_ready: AtomicBool,
    /// A signal has asked for the end, and it was not called off since.
    pub is_ending: AtomicBool,
    /// Counts on as long as housekeeping works.
    pub ticks: Arc<AtomicU64>,
    /// How far the load was when the supervisor was last notified, in percent.
    percent_reported: AtomicU64,
    pub certificate_watch: Mutex<CertificateWatch>,
    /// Held by who reads what outgoing connections are encrypted with, until it is in use: who is
    /// slow would put an older state in place of a newer one.
    outgoing: Mutex<()>,
}

impl Process {
    /// SIGHUP, or new certificates in their files: clients that connect from now on see these.
    pub fn reload_certificates(&self) {
        let node = self.node.get().and_then(Weak::upgrade);
        let (Some(fleet), Some(node), Some(log)) = (self.fleet.get(), node, self.log.get()) else {
            return;
        };
        if !uses_tls(&node.config) {
            return;
        }
        let reload = || {
            let _outgoing = self.lock_outgoing();
            let tls = tls::client_config(&node.config)?;
            let reloaded = listen::reload(&self.listeners, fleet, &node.config);
            reloaded.map_err(|obstacle| obstacle.to_string())?;
            self.connector.set_tls(tls);
            Ok(())
        };
        let reloaded: Result<(), String> = node.config.while_unchanged(reload);
        match reloaded {
            Ok(()) => log.say(Level::Notice, "The certificates of TLS were read again"),
            Err(why) => {
                let text = format!("{why}: the certificates stay as they were");
                log.say(Level::Warning, &text);
            }
        }
    }

    fn lock_outgoing(&self) -> MutexGuard<'_, ()> {
        self.outgoing.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Whether outgoing connections are encrypted if `tls-cluster` says so. They may not be if a
    /// reload has read the directives of a CONFIG SET that was refused then; so what they say now
    /// is read again.
    fn obeys_tls_cluster(&self, config: &Config) -> bool {
        if self.connector.is_encrypting() == config.flag(Directive::TlsCluster) {
            return true;
        }
        let _outgoing = self.lock_outgoing();
        match tls::client_config(config) {
            Ok(tls) => self.connector.set_tls(tls),
            Err(why) => {
                if let Some(log) = self.log.get() {
                    log.say(Level::Warning, &format!("cannot use TLS: {why}"));
                }
            }
        }
        self.connector.is_encrypting() == config.flag(Directive::TlsCluster)
    }

    /// `oom-score-adj`; false if the system does not let it be, and then the log says why.
    pub fn set_oom_score(&self, config: &Config) -> bool {
        let set = self.oom_score.apply(config);
        if let (Err(error), Some(log)) = (&set, self.log.get()) {
            log.say(Level::Warning, &format!("Unable to write oom_score_adj: {error}"));
        }
        set.is_ok()
    }

    fn reload_changed_certificates(&self) {
        let Some(node) = self.node.get().and_then(Weak::upgrade) else { return };
        let seconds = node.config.int(Directive::TlsAutoReloadInterval);
        if seconds == 0 || !uses_tls(&node.config) {
            return;
        }
        let interval = Duration::from_secs(seconds.unsigned_abs());
        let mut watch = self.certificate_watch.lock().unwrap_or_else(|poison| poison.into_inner());
        if watch.has_changed(interval, || tls::files(&node.config)) {
            self.reload_certificates();
        }
    }
}

fn uses_tls(config: &Config) -> bool {
    config.int(Directive::TlsPort) != 0 || config.flag(Directive::TlsCluster)
}

pub struct ProcessHost(pub Arc<Process>);

impl ProcessHost {
    /// Brings what CONFIG SET has changed to those whom it concerns.
    fn apply(&self, directive: Directive) -> Result<(), String> {
        match directive {
            _ if listen::concerns(directive) => {
                match (self.0.fleet.get(), self.0.node.get().and_then(Weak::upgrade)) {
                    (Some(fleet), Some(node)) => {
                        listen::apply(&self.0.listeners, fleet, &node, directive)
                    }
                    _ => Ok(()),
                }
            }
            Directive::MaxClients => self.check_clients(),
            Directive::OomScoreAdj | Directive::OomScoreAdjValues => {
                let Some(node) = self.0.node.get().and_then(Weak::upgrade) else { return Ok(()) };
                let set = self.0.set_oom_score(&node.config);
                let failed = "Failed to set current oom_score_adj. Check server logs.";
                set.then_some(()).ok_or_else(|| failed.to_owned())
            }
            Directive::CrashLogEnabled => {
                if let Some(node) = self.0.node.get().and_then(Weak::upgrade) {
                    crash_report::enable(&node.config);
                }
                Ok(())
            }
            Directive::LogLevel | Directive::LogFormat | Directive::LogTimestampFormat => {
                let node = self.0.node.get().and_then(Weak::upgrade);
                if let (Some(log), Some(node)) = (self.0.log.get(), node) {
                    log.configure(&node.config);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the system can have as many clients as `maxclients` says.
    fn check_clients(&self) -> Result<(), String> {
        let Some(node) = self.0.node.get().and_then(Weak::upgrade) else { return Ok(()) };
        let clients = u64::try_from(node.config.int(Directive::MaxClients)).unwrap_or(0);
        match OpenFiles::new(self.threads()).allow(clients) {
            allowed if allowed == clients => Ok(()),
            allowed => Err(format!(
                "The operating system is not able to handle the specified number of clients, try \
                 with {allowed}"
            )),
        }
    }
}

impl Host for ProcessHost {
    fn allocator(&self) -> AllocatorReport {
        self.0.allocator.get(allocator_report)
    }

    fn shut_down(&self) {
        if let Some(stop) = self.0.stop.get() {
            stop();
        }
    }

    fn directive_changed(&self, directive: Directive) -> Result<(), String> {
        let node = self.0.node.get().and_then(Weak::upgrade);
        let outgoing = node.as_ref().filter(|_| tls::is_outgoing(directive));
        let _outgoing = outgoing.map(|_| self.0.lock_outgoing());
        // Nothing is changed before both sides of TLS are known to work.
        let tls = outgoing.map(|node| tls::client_config(&node.config)).transpose();
        let tls = tls.map_err(|why| {
            self.log(&format!("cannot use TLS: {why}"));
            "Unable to update TLS configuration. Check server logs.".to_owned()
        })?;
        self.apply(directive)?;
        if let (Some(tls), Some(node)) = (tls, outgoing) {
            self.0.connector.set_tls(tls);
            self.0.listeners.look_at_certificates(&node.config);
        }
        if let (Some(line), Some(node)) = (self.0.command_line.get(), node)
            && command_line::concerns(directive)
        {
            line.show_title(&node.config);
        }
        Ok(())
    }

    fn threads(&self) -> usize {
        self.0.threads.get().copied().unwrap_or(1)
    }

    fn process(&self) -> ProcessReport {
        let facts = self.0.facts.get_or_init(ProcessFacts::find);
        let [cpu, children_cpu] = self.0.cpu.process();
        ProcessReport {
            id: std::process::id(),
            executable: facts.executable.clone(),
            os: facts.os.clone(),
            allocator: facts.allocator.clone(),
            system_memory_bytes: facts.system_memory_bytes,
            cpu,
            children_cpu,
            command_threads_cpu: self.0.cpu.loops(),
            supervisor: self.0.supervisor.get().and_then(|supervisor| supervisor.name()),
        }
    }

    fn certificates(&self) -> CertificateReport {
        self.0.listeners.certificates()
    }

    fn purge(&self) {
        purge_arenas();
        self.0.allocator.forget();
    }

    fn tick(&self) {
        self.0.ticks.fetch_add(1, Ordering::Relaxed);
        self.0.reload_changed_certificates();
        if let Some(node) = self.0.node.get().and_then(Weak::upgrade) {
            crash_report::note(&node);
        }
        let mut pages = self.0.idle_pages.lock().unwrap_or_else(|poison| poison.into_inner());
        if pages.turn(idle_bytes) {
            purge_arenas();
        }
    }

    fn allocator_text(&self) -> String {
        let mut text = Vec::new();
        let _written = stats_print::stats_print(&mut text, stats_print::Options::default());
        String::from_utf8_lossy(&text).into_owned()
    }

    fn crash(&self, how: Crash) {
        crash_report::crash(how);
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn log(&self, line: &str) {
        if let Some(log) = self.0.log.get() {
            log.say(Level::Warning, line);
        }
    }

    fn note(&self, line: &str) {
        if let Some(log) = self.0.log.get() {
            log.say(Level::Notice, line);
        }
    }

    fn loading(&self, loaded: u64, total: u64) {
        if let Some(log) = self.0.log.get() {
            self.0.load_display.show(log, (loaded, total));
        }
        let percent = 100 * loaded / total.max(1);
        if let Some(supervisor) = self.0.supervisor.get()
            && self.0.percent_reported.swap(percent, Ordering::Relaxed) != percent
        {
            supervisor.status(&format!("Loading: {percent} %"));
        }
    }

    fn disk(&self) -> Option<Arc<dyn Disk>> {
        Some(Arc::new(FileSystem))
    }

    fn connector(&self) -> Option<Arc<dyn Connector>> {
        let node = self.0.node.get().and_then(Weak::upgrade);
        let is_right = node.is_none_or(|node| self.0.obeys_tls_cluster(&node.config));
        is_right.then(|| self.0.connector.clone() as Arc<dyn Connector>)
    }

    fn log_script(&self, level: u8, line: &str) {
        if let Some(log) = self.0.log.get() {
            log.say(Level::from_number(level), line);
        }
    }
}

/// Bytes of pages that the allocator keeps for later, in all its arenas.
fn idle_bytes() -> u64 {
    let _advanced = epoch::advance();
    let read = |name: &[u8]| Access::<usize>::read(name.name()).unwrap_or(0);
    read(ALL_DIRTY_PAGES) as u64 * read(PAGE_SIZE) as u64
}

/// A decay time of zero makes an arena give its unused pages back at once; then the old one holds
/// again. An arena that does not exist refuses, which is no harm.
fn purge_arenas() {
    let count = arenas::narenas::read().unwrap_or(0);
    for arena in 0..count {
        for kind in ["dirty", "muzzy"] {
            let name = format!("arena.{arena}.{kind}_decay_ms\0");
            let name = name.name();
            if let Ok(before) = Access::<isize>::read(name) {
                let _purged = Access::<isize>::write(name, 0);
                let _restored = Access::<isize>::write(name, before);
            }
        }
    }
}

/// `jemalloc-5.3.0`: without the build that follows the version.
fn allocator_report() -> AllocatorReport {
    // The figures are cached until the epoch moves. Failing to read one is no reason to fail.
    let _advanced = epoch::advance();
    AllocatorReport {
        allocated_bytes: stats::allocated::read().unwrap_or(0) as u64,
        active_bytes: stats::active::read().unwrap_or(0) as u64,
        resident_bytes: stats::resident::read().unwrap_or(0) as u64,
        process_rss_bytes: resident_set_bytes().unwrap_or(0),
    }
}

fn allocator_name() -> String {
    let full = version::read().unwrap_or("");
    format!("jemalloc-{}", full.split('-').next().unwrap_or(full))
}

fn os_name() -> String {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        text.map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    format!("{} {} {}", read("ostype"), read("osrelease"), std::env::consts::ARCH)
}

fn system_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn resident_set_bytes() -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `tls-cluster yes` MIGRATE sent its password in plain text, since a reload of
    /// certificates had put an older state in place.
    #[test]
    fn no_connection_is_plain_if_the_directive_says_otherwise() {
        let (process, config) = (Process::default(), Config::default());
        assert!(process.obeys_tls_cluster(&config));
        // It names no certificates, so nothing can be encrypted either.
        config.replace_int(Directive::TlsCluster, 1);
        assert!(!process.obeys_tls_cluster(&config));
        config.replace_int(Directive::TlsCluster, 0);
        assert!(process.obeys_tls_cluster(&config));
    }
}
