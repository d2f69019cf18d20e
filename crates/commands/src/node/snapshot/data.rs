//! All data as a file has it: written while every shard is held, or from a walk that goes on beside
//! calls.

use crate::groups::scripting::function::Libraries;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::UnixMillis;
use russet_engine::access::{NotedUse, idle_seconds};
use russet_engine::keys::Keys;
use russet_engine::shard::ShardGauges;
use russet_engine::snapshot::{Batch, Kept, Walk};
use russet_engine::store::raw::table::{Cursor, EntryRef};
use russet_engine::value::Object;
use russet_persistence::data_file::{DataWriter, Form};
use russet_persistence::rdb::FieldTtlFormat;
use russet_persistence::rdb::save::{SaveOptions, Written};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of copies that are fetched from shards which the walk has not come to.
const COLLECT_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// How long `rdb-key-save-delay` waits without a look at whether the snapshot is still wanted.
const DELAY_STEP: Duration = Duration::from_millis(10);

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Use {
    Dump,
    /// The base of a log.
    Base(Form),
}

impl Use {
    fn form(self) -> Form {
        match self {
            Use::Dump => Form::Rdb,
            Use::Base(form) => form,
        }
    }
}

/// What is noted of the use of keys, by the policy of eviction.
#[derive(Clone, Copy)]
struct NotedUses {
    is_lru: bool,
    is_lfu: bool,
    now: UnixMillis,
}

impl NotedUses {
    fn of(self, node: &Node, entry: &EntryRef<'_, Object>) -> Option<NotedUse> {
        match entry.access() {
            access if self.is_lru => {
                Some(NotedUse::IdleSeconds(idle_seconds(access, self.now).into()))
            }
            access if self.is_lfu => {
                Some(NotedUse::Count(node.keyspace.use_count(access, self.now)))
            }
            _ => None,
        }
    }
}

impl Node {
    pub(crate) fn save_options(&self) -> SaveOptions {
        let field_ttl = match self.config.choice(Directive::RdbFieldTtlFormat) {
            "redis" => FieldTtlFormat::Redis,
            _ => FieldTtlFormat::Valkey,
        };
        SaveOptions {
            compresses: self.config.flag(Directive::RdbCompression),
            has_sum: self.config.flag(Directive::RdbChecksum),
            field_ttl,
            has_expiring_fields: false,
        }
    }

    fn noted_uses(&self, now: UnixMillis) -> NotedUses {
        let policy = self.config.choice(Directive::MaxMemoryPolicy);
        NotedUses { is_lru: policy.ends_with("-lru"), is_lfu: policy.ends_with("-lfu"), now }
    }

    fn begin_file<W: io::Write>(
        &self,
        file: W,
        (options, purpose): (SaveOptions, Use),
        libraries: &Libraries,
    ) -> io::Result<DataWriter<W>> {
        let version = self.config.string(Directive::RedisVersion);
        let now = self.clock.now().seconds();
        let seconds = now.to_string();
        let memory = self.used_memory_bytes().to_string();
        let fields = [
            ("redis-ver", version.as_str()),
            ("redis-bits", "64"),
            ("ctime", &seconds),
            ("used-mem", &memory),
            ("aof-base", if purpose == Use::Dump { "0" } else { "1" }),
            ("russet-ver", env!("CARGO_PKG_VERSION")),
        ];
        let mut writer = DataWriter::begin(file, (purpose.form(), options), &fields)?;
        if self.config.flag(Directive::AofTimestampEnabled) {
            writer.timestamp(now)?;
        }
        for library in libraries.iter() {
            writer.function(&library.source)?;
        }
        Ok(writer)
    }

    /// Writes all data; every shard is held.
    pub(in crate::node) fn write_data<W: io::Write>(
        &self,
        file: W,
        keys: &mut Keys,
        purpose: Use,
    ) -> io::Result<(W, Written)> {
        let held: Vec<usize> = keys.held().iter().collect();
        let mut options = self.save_options();
        options.has_expiring_fields =
            held.iter().any(|shard| keys.shard(*shard).has_expiring_fields());
        let libraries = Arc::clone(&self.scripts.libraries());
        let mut writer = self.begin_file(file, (options, purpose), &libraries)?;
        for shard in &held {
            let mut outcome = Ok(());
            keys.shard(*shard).once.for_each(|db, id, record| {
                if outcome.is_ok() {
                    outcome = writer.request(db, id, record);
                }
            });
            outcome?;
        }
        for db in 0..self.keyspace.databases() {
            self.write_database(&mut writer, keys, (&held, db))?;
        }
        writer.finish()
    }

    fn write_database<W: io::Write>(
        &self,
        writer: &mut DataWriter<W>,
        keys: &mut Keys,
        (held, db): (&[usize], usize),
    ) -> io::Result<()> {
        let (mut len, mut expires) = (0, 0);
        for shard in held {
            let table = keys.shard(*shard).table(db);
            len += table.len() as u64;
            expires += table.expires_len() as u64;
        }
        if len == 0 {
            return Ok(());
        }
        writer.database(db, (len, expires))?;
        let uses = self.noted_uses(keys.now);
        for shard in held {
            let table = keys.shard(*shard).table(db);
            let mut cursor = Cursor::START;
            loop {
                let mut outcome = Ok(());
                cursor = table.scan(cursor, &mut |entry| {
                    if outcome.is_ok() {
                        outcome = writer.key(&entry, uses.of(self, &entry));
                    }
                });
                outcome?;
                if cursor.is_end() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes what a walk takes, which has all shards joined, and ends the walk. The number of keys
    /// is kept up to date in `keys_saved`.
    pub(super) fn write_walk<W: io::Write>(
        &self,
        file: W,
        (walk, libraries): (&mut Walk, &Libraries),
        (purpose, keys_saved): (Use, &AtomicU64),
    ) -> io::Result<(W, Written)> {
        let snapshot = walk.snapshot().clone();
        let mut options = self.save_options();
        options.has_expiring_fields = snapshot.has_expiring_fields();
        let mut writer = self.begin_file(file, (options, purpose), libraries)?;
        self.write_sizes(&mut writer)?;
        let parts = DataWriter::parts(purpose.form(), options);
        let mut parts = Parts { node: self, parts, uses: self.noted_uses(self.now()) };
        loop {
            let mut outcome = Ok(());
            let mut batch = walk.step(&self.keyspace, &mut |db, entry| {
                let before = parts.parts.pending_len();
                if outcome.is_ok() {
                    outcome = parts.key(db, &entry);
                }
                parts.parts.pending_len() - before
            });
            outcome?;
            if snapshot.copies_bytes() > COLLECT_BYTES_MIN {
                let more = walk.collect(&self.keyspace);
                batch.kept.extend(more.kept);
                batch.requests.extend(more.requests);
            }
            let is_last = batch.is_last;
            let saved = parts.write_to(&mut writer, (walk, batch))?;
            keys_saved.fetch_add(saved, Ordering::Relaxed);
            self.delay_save(saved, &|| snapshot.is_cancelled());
            if snapshot.is_cancelled() {
                return Err(io::Error::other("it was cancelled"));
            }
            if is_last {
                return writer.finish();
            }
        }
    }

    fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    /// How many keys there are, for who loads the file: about as many as at the cut.
    fn write_sizes<W: io::Write>(&self, writer: &mut DataWriter<W>) -> io::Result<()> {
        for db in 0..self.keyspace.databases() {
            let keys = self.keyspace.key_counts().total(db);
            let expires = |gauges: &ShardGauges| gauges.expires[db].load(Ordering::Relaxed);
            let expires = self.keyspace.gauges().iter().map(expires).sum();
            if keys > 0 {
                writer.database(db, (keys, expires))?;
            }
        }
        Ok(())
    }

    /// `rdb-key-save-delay`: so long for each key, or for as many keys a microsecond. A change of
    /// it holds at once.
    fn delay_save(&self, keys: u64, is_over: &dyn Fn() -> bool) {
        let started = Instant::now();
        loop {
            let micros = match self.config.int(Directive::RdbKeySaveDelay) {
                0 => return,
                each @ 1.. => keys.saturating_mul(each.unsigned_abs()),
                every => keys / every.unsigned_abs(),
            };
            let left = Duration::from_micros(micros).saturating_sub(started.elapsed());
            if left.is_zero() || is_over() {
                return;
            }
            std::thread::sleep(left.min(DELAY_STEP));
        }
    }
}

/// Parts of the file, encoded while a shard is held and written when it is not.
struct Parts<'n> {
    node: &'n Node,
    parts: DataWriter<Vec<u8>>,
    uses: NotedUses,
}

impl Parts<'_> {
    fn key(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.parts.select(db)?;
        self.parts.key(entry, self.uses.of(self.node, entry))
    }

    /// Writes what was encoded, and what was handed over; how many keys that are.
    fn write_to<W: io::Write>(
        &mut self,
        writer: &mut DataWriter<W>,
        (walk, batch): (&Walk, Batch),
    ) -> io::Result<u64> {
        let mut keys = self.parts.move_to(writer)?;
        for requests in &batch.requests {
            let mut outcome = Ok(());
            requests.for_each(|db, id, record| {
                if outcome.is_ok() {
                    outcome = writer.request(db, id, record);
                }
            });
            outcome?;
        }
        for mut kept in batch.kept {
            keys += self.kept(&mut kept, writer)?;
            walk.release(kept);
        }
        Ok(keys)
    }

    /// Writes what was handed over: no shard is held, so it need not be gathered first.
    fn kept<W: io::Write>(
        &mut self,
        kept: &mut Kept,
        writer: &mut DataWriter<W>,
    ) -> io::Result<u64> {
        let (mut keys, mut outcome) = (0, Ok(()));
        // Parts have selected databases of which the writer does not know.
        writer.deselect();
        self.parts.deselect();
        writer.select(kept.db())?;
        kept.for_each(|entry| {
            if outcome.is_ok() {
                keys += 1;
                outcome = writer.key(&entry, self.uses.of(self.node, &entry));
            }
        });
        outcome.map(|()| keys)
    }
}
