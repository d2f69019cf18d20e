//! Whether files can be loaded: each is looked at as a whole before any of the data is given up
//! that it is to replace. Nothing of it stays.

use super::Meeting;
use crate::groups::scripting::function;
use crate::node::Node;
use crate::node::config::Directive;
use crate::node::offline::{Offline, Strictness, VisitError, Visitor};
use russet_engine::keys::Keys;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::Object;
use russet_persistence::log::{FileFound, LogView};
use russet_persistence::rdb::RdbError;
use russet_persistence::rdb::load::Report;
use std::io;
use std::sync::atomic::Ordering;

impl Node {
    /// Why [`Node::load`] would fail. With `meets`, keys of the file meet those that are there.
    pub(crate) fn check_snapshot(
        &self,
        keys: &mut Keys,
        meets: Option<Meeting>,
    ) -> Result<Option<Report>, String> {
        let db = keys.db;
        let is_refused = meets == Some(Meeting::Refuse);
        let mut check = Check { node: self, keys, is_refused };
        let found = self.load_file(|source| {
            let offline = Offline::of_databases(self.keyspace.databases());
            let found = offline.visit_rdb_with(source, self.strictness(), &mut check);
            found.map(|(report, _)| report).map_err(|error| match error {
                VisitError::File(error) => error,
                VisitError::Visitor(why) => RdbError::unusable(why.to_string()),
            })
        });
        keys.db = db;
        found
    }

    pub(super) fn strictness(&self) -> Strictness {
        let skips_sums = self.saves.skips_sums.load(Ordering::Relaxed);
        Strictness {
            checks_sum: self.config.flag(Directive::RdbChecksum) && !skips_sums,
            tries_any_version: self.config.choice(Directive::RdbVersionCheck) == "relaxed",
        }
    }

    /// Why a log that is being written could not be loaded: it is, beside the data, with all that
    /// commands do. All of it is written, so it has no torn end.
    pub(in crate::node) fn check_log(&self, view: &LogView<'_>) -> Result<(), String> {
        let offline = Offline::of_databases(self.keyspace.databases());
        offline.set_strictness(self.strictness());
        let files = offline.load_log(view, false).map_err(|error| error.to_string())?;
        for FileFound { name, torn, .. } in &files {
            if let Some((at, why)) = torn {
                return Err(format!("log file {name}: damaged at byte {at}: {why}"));
            }
        }
        Ok(())
    }
}

/// Compares what a file holds with what is there.
struct Check<'c, 'k> {
    node: &'c Node,
    keys: &'c mut Keys<'k>,
    /// Whether no key or library of the file may be there.
    is_refused: bool,
}

impl Visitor for Check<'_, '_> {
    fn library(&mut self, source: &[u8]) -> io::Result<()> {
        let checked = function::check_saved(self.node, source, self.is_refused);
        checked.map_err(|refusal| io::Error::other(refusal.wire().into_owned()))
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) -> io::Result<()> {
        Ok(())
    }

    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.keys.db = db;
        match self.is_refused && self.keys.peek_stored(entry.key()).is_some() {
            true => Err(io::Error::other(super::parallel::TWICE)),
            false => Ok(()),
        }
    }
}
