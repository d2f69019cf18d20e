//! Loads a log while all shards are held, one command after the other: DEBUG LOADAOF.

use super::batch::Batch;
use super::runner::{Counts, Runner};
use super::{Found, Reading};
use crate::node::Node;
use crate::node::load_pool::Refused;
use crate::node::snapshot::{Meeting, Overdue};
use russet_base::Args;
use russet_engine::keys::Keys;
use russet_engine::store::shard_set::ShardSet;
use russet_persistence::log::Target;
use std::io::Read;

/// Loads what `read` gives to the target that it gets, into shards that are empty.
pub(in crate::node::durability) fn load_held<R>(
    node: &Node,
    keys: &mut Keys,
    read: impl FnOnce(&mut dyn Target) -> R,
) -> R {
    let counts = Counts::default();
    let mut loader = HeldLoader {
        node,
        keys,
        counts: &counts,
        // It locks nothing.
        runner: Runner::new(node, &counts, ShardSet::EMPTY),
        batch: Batch::default(),
        reading: Reading { db: 0, is_lenient: false },
    };
    let result = read(&mut loader);
    counts.end_file(node);
    result
}

struct HeldLoader<'l, 'k> {
    node: &'l Node,
    keys: &'l mut Keys<'k>,
    counts: &'l Counts,
    runner: Runner<'l>,
    batch: Batch,
    reading: Reading,
}

impl HeldLoader<'_, '_> {
    fn run(&mut self) -> Result<(), Refused> {
        match self.batch.is_empty() {
            true => Ok(()),
            false => self.runner.run_held(&mut self.batch, self.keys),
        }
    }
}

impl Target for HeldLoader<'_, '_> {
    fn begin_file(&mut self, is_ours: bool) {
        self.reading.is_lenient = !is_ours;
    }

    fn command(&mut self, at: u64, args: Args<'_>) -> Result<(), Refused> {
        let found = self.reading.find((self.node, self.counts), args).map_err(|why| (at, why))?;
        let Found::Runs(command) = found else { return Ok(()) };
        if !self.batch.has_room_for(args) {
            self.run()?;
        }
        self.batch.is_lenient = self.reading.is_lenient;
        self.batch.push((command, args), (self.reading.db, at), &[]);
        if self.batch.is_full() { self.run() } else { Ok(()) }
    }

    fn end_file(&mut self) -> Result<(), Refused> {
        self.run()
    }

    fn rdb(&mut self, source: &mut dyn Read) -> Result<u64, Refused> {
        self.run()?;
        let loaded = self.node.load_from(self.keys, source, (Meeting::Refuse, Overdue::Keep));
        let report = loaded.map_err(|error| (error.offset, error.to_string()))?;
        Ok(report.bytes)
    }
}
