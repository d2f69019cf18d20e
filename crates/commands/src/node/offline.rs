//! Data files without a server around them, for tools that look at them, convert them, or write out
//! what they hold. Nothing expires meanwhile, and no file is changed.

use super::config::{Config, Requester};
use super::durability::load::load_with;
use super::{Host, Node};
use crate::groups::scripting;
use russet_base::hash::KeyHasher;
use russet_base::{Random, SystemClock, UnixMillis};
use russet_engine::keys::{Effects, Keys};
use russet_engine::keyspace::Keyspace;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::{Cursor, EntryRef, NewValue};
use russet_engine::value::Object;
use russet_persistence::log::{FileFound, LogError, LogView};
use russet_persistence::rdb::load::{self, LoadOptions, LoadedKey, Report, Target};
use russet_persistence::rdb::{FieldTtlFormat, RdbError};
use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Databases that files may have.
const DATABASES: usize = 1024;
const SHARDS: usize = 64;
/// Keys of a file that are looked at between two times at which effects are forgotten.
const KEYS_PER_PUBLISH: u64 = 1024;

/// Who is shown what files hold. An error of its own ends the walk.
pub trait Visitor {
    /// The source of a library of functions.
    fn library(&mut self, source: &[u8]) -> io::Result<()>;
    /// A request that ran once.
    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) -> io::Result<()>;
    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()>;
}

#[derive(Debug)]
pub enum VisitError {
    File(RdbError),
    /// The visitor's own.
    Visitor(io::Error),
}

/// Room for the data of a file, or of a key at a time.
pub struct Offline {
    node: Node,
    lines: Arc<Mutex<Vec<String>>>,
}

/// Keeps what would be logged.
struct QuietHost(Arc<Mutex<Vec<String>>>);

impl Host for QuietHost {
    fn log(&self, line: &str) {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner()).push(line.to_owned());
    }
}

impl Default for Offline {
    fn default() -> Self {
        Offline::of_databases(DATABASES)
    }
}

/// What is asked of an RDB file.
#[derive(Clone, Copy, Debug)]
pub struct Strictness {
    pub checks_sum: bool,
    /// Whether a version that is not known is tried.
    pub tries_any_version: bool,
}

impl Default for Strictness {
    fn default() -> Self {
        Strictness { checks_sum: true, tries_any_version: false }
    }
}

impl Offline {
    /// Room for files that have no more databases than so many.
    pub(super) fn of_databases(databases: usize) -> Self {
        let hasher = KeyHasher::with_seed(Random::from_entropy().next_u64());
        let keyspace = Keyspace::new(SHARDS, databases, hasher);
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let host = Box::new(QuietHost(lines.clone()));
        let node = Node::new(Config::default(), keyspace, Arc::new(SystemClock::new()), host);
        Offline { node, lines }
    }

    /// Loads files as a server does that asks this of them.
    pub(super) fn set_strictness(&self, strictness: Strictness) {
        self.node.saves.skips_sums.store(!strictness.checks_sum, Ordering::Relaxed);
        if strictness.tries_any_version {
            let pair: (&[u8], &[u8]) = (b"rdb-version-check", b"relaxed");
            // A value that the directive knows.
            let _set = self.node.config.set(&[pair], Requester::Local, &mut |_| Ok(()));
        }
    }

    /// What a server would have logged meanwhile.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap_or_else(|poison| poison.into_inner()))
    }

    pub fn now(&self) -> UnixMillis {
        self.node.clock.now()
    }

    /// Lets `action` have all keys, at a time at which nothing has expired.
    fn with_keys<R>(&self, action: impl FnOnce(&mut Keys) -> R) -> R {
        let keyspace = &self.node.keyspace;
        let locked = keyspace.lock(keyspace.all_shards());
        let mut effects = Effects::default();
        action(&mut keyspace.keys(locked, &mut effects, (0, UnixMillis(0))))
    }

    /// Shows what an RDB file holds, key by key: no more than one of them is in memory at a time.
    /// How many bytes follow the file is reported, too, if `source` goes on.
    pub fn visit_rdb(
        &self,
        source: impl Read,
        visitor: &mut dyn Visitor,
    ) -> Result<(Report, u64), VisitError> {
        self.visit_rdb_with(source, Strictness::default(), visitor)
    }

    pub(super) fn visit_rdb_with(
        &self,
        source: impl Read,
        Strictness { checks_sum, tries_any_version }: Strictness,
        visitor: &mut dyn Visitor,
    ) -> Result<(Report, u64), VisitError> {
        let rules = self.node.value_rules();
        let now = UnixMillis(0);
        let options = LoadOptions { rules: &rules, now, checks_sum, tries_any_version };
        self.with_keys(|keys| {
            let hashers = [0, 1].map(|_| KeyHasher::with_seed(Random::from_entropy().next_u64()));
            let mut walk = Walk {
                node: &self.node,
                keys,
                visitor,
                seen: HashSet::new(),
                hashers,
                failed: None,
            };
            let loaded = load::load_preamble(source, options, &mut walk);
            if let Some(error) = walk.failed.take() {
                return Err(VisitError::Visitor(error));
            }
            let (report, mut rest) = loaded.map_err(VisitError::File)?;
            let behind = io::copy(&mut rest, &mut io::sink()).map_err(VisitError::Visitor)?;
            Ok((report, behind))
        })
    }

    /// Loads all that a log holds. With `is_part` it is a part of one, whose commands may fail
    /// without what is before it.
    pub fn load_log(&self, view: &LogView<'_>, is_part: bool) -> Result<Vec<FileFound>, LogError> {
        load_with(&self.node, is_part, |target| view.load(target)).0
    }

    /// Shows all that was loaded.
    pub fn visit_loaded(&self, visitor: &mut dyn Visitor) -> io::Result<()> {
        for library in self.node.scripts.libraries().iter() {
            visitor.library(&library.source)?;
        }
        self.with_keys(|keys| {
            for shard in 0..self.node.keyspace.shards() {
                let mut outcome = Ok(());
                keys.shard(shard).once.for_each(|db, id, record| {
                    if outcome.is_ok() {
                        outcome = visitor.request(db, id, record);
                    }
                });
                outcome?;
            }
            for db in 0..self.node.keyspace.databases() {
                for shard in 0..self.node.keyspace.shards() {
                    if db < keys.shard(shard).databases_end() {
                        visit_table(keys, (shard, db), visitor)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// How deadlines of fields are written unless another way is asked for.
    pub fn field_ttl_format(&self) -> FieldTtlFormat {
        self.node.save_options().field_ttl
    }
}

fn visit_table(
    keys: &mut Keys,
    (shard, db): (usize, usize),
    visitor: &mut dyn Visitor,
) -> io::Result<()> {
    let table = keys.shard(shard).table(db);
    let mut cursor = Cursor::START;
    loop {
        let mut outcome = Ok(());
        cursor = table.scan(cursor, &mut |entry| {
            if outcome.is_ok() {
                outcome = visitor.entry(db, &entry);
            }
        });
        outcome?;
        if cursor.is_end() {
            return Ok(());
        }
    }
}

/// Shows each key of a file, and forgets it.
struct Walk<'w, 'k> {
    node: &'w Node,
    keys: &'w mut Keys<'k>,
    visitor: &'w mut dyn Visitor,
    /// Hashes of the keys so far: a file that has one twice is not loaded by a server.
    seen: HashSet<(u64, u64)>,
    hashers: [KeyHasher; 2],
    failed: Option<io::Error>,
}

impl Walk<'_, '_> {
    fn check(&mut self, outcome: io::Result<()>) -> Result<(), String> {
        outcome.map_err(|error| {
            let text = error.to_string();
            self.failed = Some(error);
            text
        })
    }

    fn is_new(&mut self, db: usize, key: &[u8]) -> bool {
        let hash = |hasher: KeyHasher| hasher.hash(key).wrapping_add(db as u64);
        let [one, other] = self.hashers.map(hash);
        self.seen.insert((one, other))
    }
}

impl Target for Walk<'_, '_> {
    fn databases(&self) -> usize {
        self.node.keyspace.databases()
    }

    fn key(&mut self, loaded: LoadedKey<'_>, value: NewValue<'_, Object>) -> Result<(), String> {
        let LoadedKey { db, key, expiry, noted } = loaded;
        if !self.is_new(db, key) {
            return Err("a key that is there twice".to_owned());
        }
        self.keys.put(key, value, expiry);
        if let Some(noted) = noted {
            self.keys.set_noted_use(key, noted);
        }
        let shown = match self.keys.peek_stored(key) {
            Some(entry) => self.visitor.entry(db, &entry),
            None => Ok(()),
        };
        self.keys.remove(key);
        if (self.seen.len() as u64).is_multiple_of(KEYS_PER_PUBLISH) {
            self.keys.effects.notices.clear();
        }
        self.check(shown)
    }

    fn function(&mut self, source: &[u8]) -> Result<(), String> {
        scripting::function::load_saved(self.node, source)
            .map_err(|refusal| refusal.wire().into_owned())?;
        let shown = self.visitor.library(source);
        self.check(shown)
    }

    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) {
        if self.failed.is_none() {
            self.failed = self.visitor.request(db, id, record).err();
        }
    }
}
