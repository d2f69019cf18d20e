//! What keeps the data beyond the process: the append-only log. When it is opened, loaded, switched
//! and closed; what is in its files is the business of the persistence crate.

pub(super) mod load;
mod retry;
mod scheduled;
mod switch;
#[cfg(test)]
mod tests;

use crate::node::Node;
use crate::node::config::{Directive, Undo};
use crate::node::snapshot::{AwaitedSave, Begun, EndOptions, Purpose, Use};
use retry::Retry;
use russet_engine::barrier::Barrier;
use russet_engine::journal::{Journal, Mode};
use russet_engine::keys::Keys;
use russet_persistence::data_file::Form;
use russet_persistence::log::{
    Log, LogDirectory, LogError, LogEvents, LogNames, LogStatus, LogView, Policy,
};
use russet_persistence::rdb::load::Report;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
pub(crate) use switch::SetBeside;

/// How often it is looked whether the log has all that was written.
const WRITTEN_NAP: Duration = Duration::from_millis(1);
const DIR_HAS_LOG: &str = "the append-only log is in the current one: switch it off first";
const IS_OFF: &str = "the append-only log is off";
const IS_REWRITING: &str = "Background append only file rewriting already in progress";

/// Without a disk nothing is ever read or written.
#[derive(Default)]
pub struct Durability {
    /// For those who begin a log while the server runs.
    node: OnceLock<Weak<Node>>,
    log: Mutex<Option<Arc<Log>>>,
    /// The directory of the log, from when it is opened until it is loaded.
    opened: Mutex<Option<LogDirectory>>,
    /// All data, while a transaction may begin a log.
    base: Mutex<Option<Vec<u8>>>,
    /// A log that begins, for whoever waits until it has.
    beginning: Mutex<Option<Arc<AwaitedSave>>>,
    /// What calls had set beside a log that they did not wait for to the end.
    given_up: Arc<Mutex<Vec<Undo>>>,
    /// Of rewrites that the growth of the log begins.
    retry: Mutex<Retry>,
    pub loading: LoadingFigures,
    pub scheduled: scheduled::Scheduled,
    /// The log has ended without its last writes.
    is_cut: AtomicBool,
}

/// What INFO shows of a load.
#[derive(Debug, Default)]
pub struct LoadingFigures {
    pub started_seconds: AtomicU64,
    /// What the data took in the memory of who saved it.
    pub saved_memory_bytes: AtomicU64,
    pub bytes_total: AtomicU64,
    pub bytes_loaded: AtomicU64,
    /// By the last load.
    pub commands: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl Durability {
    pub(crate) fn set_node(&self, node: &Arc<Node>) {
        let _is_first = self.node.set(Arc::downgrade(node));
    }

    /// For threads that outlive the call which begins them.
    pub(super) fn node(&self) -> Option<Arc<Node>> {
        self.node.get().and_then(Weak::upgrade)
    }

    pub fn log(&self) -> Option<Arc<Log>> {
        lock(&self.log).clone()
    }

    pub fn log_status(&self) -> Option<LogStatus> {
        self.log().map(|log| log.status())
    }

    /// Whether writes that were answered are lost: the log could not be written when it ended.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// About ten times in a second.
    pub fn tick(&self) {
        if let Some(log) = self.log() {
            log.tick();
        }
    }
}

type StartLog = fn(LogDirectory, Arc<Journal>, Policy, Arc<dyn LogEvents>) -> Result<Log, LogError>;

/// Passes what the log has to say on to the node.
struct Events(Weak<Node>);

impl LogEvents for Events {
    fn warn(&self, line: &str) {
        if let Some(node) = self.0.upgrade() {
            node.host.log(line);
        }
    }

    fn took(&self, event: &'static str, time: Duration) {
        if let Some(node) = self.0.upgrade()
            && node.latency.is_on()
        {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            node.latency.note(event, micros, || node.clock.now().seconds());
        }
    }
}

impl Node {
    fn log_names(&self) -> LogNames {
        LogNames {
            root: self.data_dir(),
            dir: self.config.string(Directive::AppendDirname),
            file: self.config.string(Directive::AppendFilename),
        }
    }

    fn log_policy(&self) -> Policy {
        match self.config.choice(Directive::AppendFsync) {
            "always" => Policy::Always,
            "no" => Policy::Never,
            _ => Policy::EverySecond,
        }
    }

    fn open_log(&self) -> Result<LogDirectory, String> {
        let disk = self.host.disk().ok_or("there is no directory for the log")?;
        LogDirectory::open(disk, self.log_names()).map_err(|error| error.to_string())
    }

    /// Opens the files that there are to be. Until they are loaded calls that need the data are
    /// refused.
    pub fn open_files(self: &Arc<Self>) -> Result<(), String> {
        self.durability.set_node(self);
        if self.host.disk().is_none() {
            return Ok(());
        }
        self.remove_unfinished();
        if self.config.flag(Directive::AppendOnly) {
            *lock(&self.durability.opened) = Some(self.open_log()?);
        }
        self.keyspace.barriers().set(Barrier::Loading, true);
        Ok(())
    }

    /// Loads what the files hold, and begins to write the log, if there is one. What was found in
    /// the snapshot, if that was loaded.
    pub fn load_files(self: &Arc<Self>) -> Result<Option<Report>, String> {
        let report = match lock(&self.durability.opened).take() {
            Some(directory) => self.load_and_start_log(directory)?,
            None => self.load_snapshot()?,
        };
        self.keyspace.barriers().set(Barrier::Loading, false);
        Ok(report)
    }

    fn load_and_start_log(
        self: &Arc<Self>,
        mut directory: LogDirectory,
    ) -> Result<Option<Report>, String> {
        let is_new = directory.is_empty();
        let report = match is_new {
            // DIFFERS: a log that is new begins with what was saved, instead of empty.
            true => self.load_snapshot()?,
            false => {
                self.load_log(&directory)?;
                None
            }
        };
        self.with_all_keys(|keys| {
            if report.is_some() {
                self.write_base(&mut directory, keys)?;
            }
            self.start_log(directory)
        })?;
        Ok(report)
    }

    /// A load begins, of so many bytes.
    pub(super) fn begin_loading(&self, bytes: u64) {
        let figures = &self.durability.loading;
        let now_seconds = u64::try_from(self.clock.now().seconds()).unwrap_or(0);
        figures.started_seconds.store(now_seconds, Ordering::Relaxed);
        figures.bytes_total.store(bytes, Ordering::Relaxed);
        figures.bytes_loaded.store(0, Ordering::Relaxed);
    }

    /// Loads all that a log holds. No shard is held: calls that need the data are refused.
    fn load_log(&self, directory: &LogDirectory) -> Result<(), String> {
        self.begin_loading(directory.sizes().1);
        let may_cut = self.config.flag(Directive::AofLoadTruncated);
        let (loaded, commands) =
            load::load_with(self, false, |target| directory.load(target, may_cut));
        let loaded = loaded.map_err(|error| error.to_string())?;
        self.durability.loading.commands.store(commands, Ordering::Relaxed);
        loaded.warnings.iter().for_each(|line| self.host.log(line));
        Ok(())
    }

    /// DEBUG LOADAOF: loads the log again in place of the data. Every shard is held, and all that
    /// was written is in the journal.
    pub(crate) fn reload_log(&self, keys: &mut Keys) -> Result<(), String> {
        let log = self.durability.log().ok_or(IS_OFF)?;
        let disk = self.host.disk().ok_or(IS_OFF)?;
        // Its base is taken shard by shard, and would wait for those that are held here.
        if self.is_log_beginning() {
            return Err("the log has not begun yet".to_owned());
        }
        let journal = self.keyspace.journal();
        while journal.backlog_bytes() > 0 {
            if log.status().is_failed {
                return Err("the log can't be written".to_owned());
            }
            std::thread::sleep(WRITTEN_NAP);
        }
        let names = self.log_names();
        let view = LogView::of_log(&*disk, &names.root.join(&names.dir), &names.file);
        let view = view.map_err(|error| error.to_string())?;
        self.check_log(&view)?;
        keys.flush(0..self.keyspace.databases());
        // The log has them, too.
        self.scripts.remove_libraries();
        let loaded = load::load_held(self, keys, |target| view.load(target));
        loaded.map(drop).map_err(|error| error.to_string())
    }

    /// `key-load-delay`: keeps a load from ending, for tests.
    #[inline]
    pub(super) fn delay_load(&self) {
        let micros = self.config.int(Directive::KeyLoadDelay);
        if micros > 0 {
            self.host.sleep(Duration::from_micros(micros.unsigned_abs()));
        }
    }

    /// So many more bytes of a file were loaded.
    pub(super) fn loaded_bytes(&self, bytes: u64) {
        let figures = &self.durability.loading;
        let loaded = figures.bytes_loaded.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.host.loading(loaded, figures.bytes_total.load(Ordering::Relaxed));
    }

    /// What a base of the log is.
    fn base_form(&self) -> Form {
        let is_rdb = self.config.flag(Directive::AofUseRdbPreamble);
        if is_rdb { Form::Rdb } else { Form::Commands }
    }

    /// All data as a base in memory. Every shard is held.
    fn base_of(&self, keys: &mut Keys) -> Result<Vec<u8>, String> {
        let written = self.write_data(Vec::new(), keys, Use::Base(self.base_form()));
        written.map(|(base, _)| base).map_err(|error| error.to_string())
    }

    /// Begins a log anew with all data. Every shard is held.
    fn write_base(&self, directory: &mut LogDirectory, keys: &mut Keys) -> Result<(), String> {
        let base = self.base_of(keys)?;
        directory.begin_with_base(&base, self.base_form()).map_err(|error| error.to_string())
    }

    /// BGREWRITEAOF: replaces what the log holds by the data as it is now, in the background. A
    /// save that is under way comes first.
    pub(crate) fn rewrite_log(&self) -> Result<Begun, String> {
        let log = self.durability.log().ok_or(IS_OFF)?;
        if !log.is_rewriting() && self.saves.purpose() == Some(Purpose::Save) {
            self.schedule_rewrite()?;
            return Ok(Begun::Scheduled);
        }
        if !log.claim_rewrite() {
            return Err(IS_REWRITING.to_owned());
        }
        self.begin_rewrite_of(log).map(|()| Begun::Started)
    }

    /// The same at once, with every shard held while the data is encoded.
    fn rewrite_held(&self, keys: &mut Keys) -> Result<(), String> {
        let log = self.durability.log().ok_or(IS_OFF)?;
        if !log.claim_rewrite() {
            return Err(IS_REWRITING.to_owned());
        }
        match self.base_of(keys) {
            Ok(base) => {
                log.rewrite(base, self.base_form());
                Ok(())
            }
            Err(why) => {
                log.give_up_rewrite();
                Err(why)
            }
        }
    }

    /// About ten times in a second: rewrites a log that has grown as much as the directives say,
    /// and does what was scheduled and could not be done.
    pub(super) fn rewrite_if_grown(&self) {
        self.do_scheduled_alone();
        let Some(status) = self.durability.log_status() else { return };
        let percent = u64::try_from(self.config.int(Directive::AutoAofRewritePercentage));
        let percent = percent.unwrap_or(0);
        let min_bytes = self.config.memory(Directive::AutoAofRewriteMinSize);
        let grown = status.size_bytes.saturating_sub(status.rewritten_bytes);
        let is_due = percent > 0
            && status.size_bytes >= min_bytes
            && grown * 100 >= status.rewritten_bytes.max(1).saturating_mul(percent);
        let is_busy = status.is_rewriting || self.saves.purpose().is_some();
        // One that can't be written tries again by itself, unless its files are gone.
        let is_free = !is_busy && (!status.is_failed || status.needs_base);
        let may_try = |retry: &mut Retry| match status.needs_base {
            true => retry.may_try_soon(self.clock.now()),
            false => is_due && retry.may_try(self.clock.now(), status.is_rewrite_bad),
        };
        if is_free && may_try(&mut lock(&self.durability.retry)) {
            self.try_rewrite();
        }
    }

    /// Begins to write the log. Every shard is held.
    fn start_log(self: &Arc<Self>, directory: LogDirectory) -> Result<(), String> {
        self.start_log_with(directory, Log::start)?;
        self.keyspace.journal().set_mode(mode_of(self.log_policy()));
        Ok(())
    }

    /// The same for a log that begins in some way. Nobody waits for it.
    fn start_log_with(
        self: &Arc<Self>,
        directory: LogDirectory,
        start: StartLog,
    ) -> Result<Arc<Log>, String> {
        let journal = self.keyspace.journal();
        let events = Arc::new(Events(Arc::downgrade(self)));
        journal.set_backlog_bytes_max(self.config.memory(Directive::JournalBacklogMax));
        let log = start(directory, journal.clone(), self.log_policy(), events);
        let log = Arc::new(log.map_err(|error| error.to_string())?);
        log.set_timestamps(self.config.flag(Directive::AofTimestampEnabled));
        log.set_spares_disk(self.config.flag(Directive::NoAppendfsyncOnRewrite));
        log.set_base_form(self.base_form());
        journal.set_mode(Mode::Lazy);
        self.keyspace.set_recording(true);
        *lock(&self.durability.log) = Some(log.clone());
        Ok(log)
    }

    /// Ends the log, with all that was written. Every shard is held, so that nobody writes. False
    /// if some of it could not be made durable.
    fn stop_log(&self) -> bool {
        let Some(log) = lock(&self.durability.log).take() else { return true };
        log.stop();
        self.keyspace.set_recording(self.has_record_listener());
        let journal = self.keyspace.journal();
        let LogStatus { is_failed, needs_base, .. } = log.status();
        !needs_base && (!is_failed || journal.durable() == journal.offset())
    }

    /// Whether the end of the process would lose writes that are on their way to a log that can't
    /// be written; an error says that it should not end.
    /// DIFFERS: the peers end, and lose them.
    pub(crate) fn check_log_at_end(&self, options: EndOptions) -> Result<(), String> {
        let would_lose_all = |status: LogStatus| status.needs_base && status.is_rewrite_bad;
        let is_failing = |status: LogStatus| {
            status.is_failed && (status.unsynced_bytes > 0 || would_lose_all(status))
        };
        let may_lose = options.is_forced || options.saves == Some(false);
        if may_lose || !self.durability.log_status().is_some_and(is_failing) {
            return Ok(());
        }
        let why = "the log can't be written, and its last writes would be lost";
        self.host.log(&format!("Not ending: {why}"));
        Err(why.to_owned())
    }

    /// The end: makes all that was written durable.
    pub fn close_files(&self) {
        self.end_snapshots();
        self.await_migrations();
        if let Some(log) = self.durability.log() {
            self.with_all_keys(|keys| self.end_log(&log, keys));
        }
        lock(&self.durability.opened).take();
    }

    fn end_log(&self, log: &Log, keys: &mut Keys) {
        log.check_files();
        if log.status().needs_base {
            self.host.log("Files of the log are gone: a new base is written before the end");
            if let Err(why) = self.rewrite_held(keys) {
                self.host.log(&format!("No rewrite of the log: {why}"));
            }
        }
        // What could not be made durable must not be shown as if it were.
        match self.stop_log() {
            true => self.keyspace.journal().set_mode(Mode::Off),
            false => self.durability.is_cut.store(true, Ordering::Relaxed),
        }
    }

    /// CONFIG SET of a directive of the log. For those that need it every shard is held; see
    /// `groups::server::config::shards`.
    pub(super) fn log_directive_changed(&self, directive: Directive) -> Result<(), String> {
        let Some(log) = self.durability.log() else { return self.switch_log_on(directive) };
        let journal = self.keyspace.journal();
        match directive {
            Directive::AppendFsync => {
                let policy = self.log_policy();
                // Stricter: first what comes is to wait, then it is made durable sooner.
                journal.set_mode(mode_of(policy));
                log.set_policy(policy);
            }
            Directive::AppendOnly if !self.config.flag(Directive::AppendOnly) => {
                drop(log);
                self.drop_log();
            }
            // It has begun, with its base.
            Directive::AppendOnly => journal.set_mode(mode_of(self.log_policy())),
            Directive::AofTimestampEnabled => log.set_timestamps(self.config.flag(directive)),
            Directive::NoAppendfsyncOnRewrite => log.set_spares_disk(self.config.flag(directive)),
            Directive::AofUseRdbPreamble => log.set_base_form(self.base_form()),
            Directive::JournalBacklogMax => {
                journal.set_backlog_bytes_max(self.config.memory(Directive::JournalBacklogMax));
            }
            // DIFFERS: the log would stay where it is, and a start would look for it elsewhere.
            Directive::Dir => return Err(DIR_HAS_LOG.to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Ends the log. Nothing waits for it any more, not even for one that can't be written.
    fn drop_log(&self) {
        self.drop_beginning();
        self.cancel_rewrite();
        let _is_whole = self.stop_log();
        self.keyspace.journal().set_mode(Mode::Off);
    }

    /// `CONFIG SET appendonly yes`: the log begins with all data as it is.
    fn switch_log_on(&self, directive: Directive) -> Result<(), String> {
        let is_on = directive == Directive::AppendOnly && self.config.flag(directive);
        let node = self.durability.node();
        let (true, Some(node)) = (is_on, node) else { return Ok(()) };
        let mut directory = self.open_log()?;
        // The caller has every shard, and gives nobody else its keys.
        let base = lock(&self.durability.base).take().ok_or("no data was given")?;
        let form = self.base_form();
        directory.begin_with_base(&base, form).map_err(|error| error.to_string())?;
        node.start_log(directory)
    }

    /// Before [`Node::directive_changed`] with every shard held: the data that a log would begin
    /// with.
    pub(crate) fn prepare_log(&self, keys: &mut Keys) -> Result<(), String> {
        if self.durability.log().is_none() && self.host.disk().is_some() {
            *lock(&self.durability.base) = Some(self.base_of(keys)?);
        }
        Ok(())
    }

    /// After it.
    pub(crate) fn forget_base(&self) {
        lock(&self.durability.base).take();
    }
}

fn mode_of(policy: Policy) -> Mode {
    if policy == Policy::Always { Mode::Strict } else { Mode::Lazy }
}
