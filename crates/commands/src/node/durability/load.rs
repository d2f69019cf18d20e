//! Loads a log on all cores. One thread reads, and hands each command to the thread that has the
//! shards of its keys, so that what is done to a key is done in the order of the log. What needs
//! shards of several threads waits until all before it is done, and is run by itself; so is what
//! comes right behind it, for logs in which there is much of that.

mod batch;
mod held;
mod runner;

pub(super) use held::load_held;

use crate::groups::scripting;
use crate::node::Node;
use crate::node::load_pool::{Pool, Refused, with_pool, workers};
use batch::Batch;
use runner::{Counts, Runner, shown_name};
use russet_base::{Args, num};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, has_keys, keys as key_positions, resolve};
use russet_engine::keyspace::Location;
use russet_engine::store::shard_set::ShardSet;
use russet_persistence::log::Target;
use std::io::Read;
use std::sync::atomic::Ordering;

/// Commands that are run one after the other, with all shards, once one has to be.
const BATCH_CALLS_MAX: usize = 128;

/// Bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 256 * 1024;

/// Loads what `read` gives to the target that it gets; how many commands were run, too. Nobody may
/// use the data meanwhile, and no shard is held.
pub(in crate::node) fn load_with<R>(
    node: &Node,
    is_part: bool,
    read: impl FnOnce(&mut dyn Target) -> R,
) -> (R, u64) {
    let counts = Counts::default();
    let shards = node.keyspace.shards();
    let workers = workers();
    let make = |index: usize| {
        let mut own = ShardSet::EMPTY;
        (index..shards).step_by(workers).for_each(|shard| own.insert(shard));
        let mut runner = Runner::new(node, &counts, own);
        move |batch: &mut Batch| runner.run(batch)
    };
    let result = with_pool(workers, make, |pool| {
        // Should fewer threads be there, shards are not shared out as they are here.
        let is_alone = pool.workers() < workers.max(1);
        let mut loader = Loader {
            node,
            counts: &counts,
            batches: (0..pool.workers()).map(|_| Batch::default()).collect(),
            pool,
            is_alone,
            batch: Batch::default(),
            calls_left: 0,
            own: Runner::new(node, &counts, node.keyspace.all_shards()),
            reading: Reading { db: 0, is_lenient: is_part },
            is_part,
            keys: Vec::new(),
            unreported_bytes: 0,
        };
        read(&mut loader)
    });
    counts.end_file(node);
    (result, counts.commands.load(Ordering::Relaxed))
}

struct Loader<'l, 'p> {
    node: &'l Node,
    counts: &'l Counts,
    pool: &'l mut Pool<'p, Batch>,
    /// Whether the thread that reads does all the work.
    is_alone: bool,
    /// What was read for each thread.
    batches: Vec<Batch>,
    /// What is run with all shards.
    batch: Batch,
    /// Commands that are still to be added to it.
    calls_left: usize,
    own: Runner<'l>,
    reading: Reading,
    /// Whether what is before the file is not there, so that commands may fail.
    is_part: bool,
    /// Of the command under way: where its keys live, and which arguments they are.
    keys: Vec<(usize, Location)>,
    unreported_bytes: u64,
}

/// What was read so far means for what follows.
struct Reading {
    /// The database that is selected.
    db: usize,
    /// Whether another server has written the file, or it is a part of a log.
    is_lenient: bool,
}

/// What is known of a command before it is run.
enum Found {
    Runs(Command),
    /// It has done what it does.
    Done,
}

impl Reading {
    /// What is known of the next command.
    fn find(&mut self, (node, counts): (&Node, &Counts), args: Args) -> Result<Found, String> {
        let name = || shown_name(args);
        // What masters of replicas ask for is in logs of other servers, and changes nothing.
        if self.is_lenient && args.at(0).eq_ignore_ascii_case(b"replconf") {
            return Ok(Found::Done);
        }
        let command = resolve(args).map_err(|_| format!("unknown command '{}'", name()))?;
        if !command.spec().arity.allows(args.len()) {
            return Err(format!("'{}' has a wrong number of arguments", name()));
        }
        if command == Command::Select {
            let db = num::parse_i64(args.at(1)).and_then(|db| usize::try_from(db).ok());
            let databases = node.keyspace.databases();
            self.db = db.filter(|db| *db < databases).ok_or_else(|| {
                format!("there are {databases} databases (`databases`), and it is for another")
            })?;
            return Ok(Found::Done);
        }
        if is_loadable(command) {
            return Ok(Found::Runs(command));
        }
        // What was recorded here must run. A file of another server may have what changed nothing
        // there, either: that is passed over, with a warning.
        let why = format!("'{}' is no command that a log has", name());
        match self.is_lenient {
            true => counts.skip(node, &why),
            false => return Err(why),
        }
        Ok(Found::Done)
    }
}

impl Loader<'_, '_> {
    /// The thread that has all shards of a command, if there is one.
    fn worker_of(&mut self, (command, args): (Command, Args<'_>)) -> Option<usize> {
        if self.is_alone || self.pool.workers() == 0 || !is_plain(command) {
            return None;
        }
        let mut worker = None;
        let mut is_one = true;
        let found = key_positions(command, args, &mut |key| {
            let location = self.node.keyspace.locate(args.at(key.index));
            let own = self.pool.worker_of(location.shard);
            is_one &= worker.replace(own).is_none_or(|before| before == own);
            self.keys.push((key.index, location));
        });
        found.ok()?;
        worker.filter(|_| is_one)
    }

    fn add(&mut self, at: u64, call: (Command, Args<'_>)) -> Result<(), Refused> {
        self.keys.clear();
        let worker = match self.calls_left {
            0 => self.worker_of(call),
            _ => None,
        };
        let Some(worker) = worker else { return self.add_to_batch(at, call) };
        if !self.batches[worker].has_room_for(call.1) {
            self.send(worker);
        }
        let batch = &mut self.batches[worker];
        batch.is_lenient = self.reading.is_lenient;
        batch.push(call, (self.reading.db, at), &self.keys);
        if batch.is_full() {
            self.send(worker);
            self.pool.check()?;
        }
        Ok(())
    }

    /// Adds a command to what is run with all shards. Those that are run there run in order, so all
    /// that was read before the first of them is done first.
    fn add_to_batch(&mut self, at: u64, call: (Command, Args<'_>)) -> Result<(), Refused> {
        if !self.batch.has_room_for(call.1) {
            self.finish()?;
        }
        if self.calls_left == 0 {
            self.calls_left = BATCH_CALLS_MAX;
        }
        self.batch.is_lenient = self.reading.is_lenient;
        self.batch.push(call, (self.reading.db, at), &[]);
        self.calls_left -= 1;
        if self.calls_left == 0 || self.batch.is_full() {
            return self.finish();
        }
        Ok(())
    }

    fn send(&mut self, worker: usize) {
        let batch = std::mem::take(&mut self.batches[worker]);
        self.batches[worker] = self.pool.send(worker, batch);
    }

    /// Runs all that was read.
    fn finish(&mut self) -> Result<(), Refused> {
        for worker in 0..self.batches.len() {
            if !self.batches[worker].is_empty() {
                self.send(worker);
            }
        }
        self.pool.wait()?;
        self.calls_left = 0;
        match self.batch.is_empty() {
            true => Ok(()),
            false => self.own.run(&mut self.batch),
        }
    }
}

/// Logs of old servers have scripts, too.
fn is_loadable(command: Command) -> bool {
    runs_code(command) || command == Command::ScriptLoad || command.spec().reaches_replicas()
}

fn runs_code(command: Command) -> bool {
    matches!(command, Command::Eval | Command::Evalsha | Command::Fcall)
}

/// Whether a command needs the shards of its keys, and nothing else.
fn is_plain(command: Command) -> bool {
    let flags = command.spec().flags;
    has_keys(command)
        && !runs_code(command)
        && !matches!(command, Command::Once | Command::Exec)
        && !flags.has_any(Flags::ALL_SHARDS.or(Flags::FURTHER_SHARDS))
        && !scripting::changes_functions(command)
}

impl Target for Loader<'_, '_> {
    fn begin_file(&mut self, is_ours: bool) {
        self.counts.end_file(self.node);
        self.reading.is_lenient = !is_ours || self.is_part;
    }

    /// Commands of a transaction are run like any others: nobody looks on.
    fn command(&mut self, at: u64, args: Args<'_>) -> Result<(), Refused> {
        match self.reading.find((self.node, self.counts), args).map_err(|why| (at, why))? {
            Found::Runs(command) => self.add(at, (command, args)),
            Found::Done => Ok(()),
        }
    }

    fn end_file(&mut self) -> Result<(), Refused> {
        self.finish()
    }

    fn rdb(&mut self, source: &mut dyn Read) -> Result<u64, Refused> {
        self.finish()?;
        let loaded = self.node.load_base(source);
        let report = loaded.map_err(|error| (error.offset, error.to_string()))?;
        Ok(report.bytes)
    }

    fn progress(&mut self, bytes: usize) {
        self.unreported_bytes += bytes as u64;
        if self.unreported_bytes >= PROGRESS_BYTES {
            self.node.loaded_bytes(std::mem::take(&mut self.unreported_bytes));
        }
    }
}
