//! Data as a tool finds it: an RDB file, the directory of a log, or one file of a log.

use super::Ending;
use super::progress::{CountedDisk, Progress};
use russet_commands::node::offline::{Offline, VisitError, Visitor};
use russet_persistence::disk::{Disk, FileSystem};
use russet_persistence::log::{FileFound, LogError, LogView, starts_as_rdb};
use russet_persistence::rdb::RdbError;
use russet_persistence::rdb::load::Report;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The ends of names that say what a file is.
const RDB_END: &str = "rdb";
const MANIFEST_END: &str = "manifest";
/// The name of a file that is a part of a log.
const INCREMENT_END: &str = ".incr.aof";
/// Bytes that tell an RDB file.
const HEAD_BYTES: u64 = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Rdb,
    Directory,
    LogFile,
}

/// Why data can't be walked.
#[derive(Debug)]
pub enum Problem {
    Rdb(RdbError),
    Log(LogError),
    /// Nothing is wrong with the data.
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Rdb(error) => error.fmt(f),
            Problem::Log(error) => error.fmt(f),
            Problem::Other(text) => f.write_str(text),
        }
    }
}

/// What is wrong with a log before any of its files is looked at.
fn problem_of(error: LogError) -> Problem {
    match error {
        LogError::Io { .. } | LogError::InUse { .. } | LogError::Unexplained { .. } => {
            Problem::Other(error.to_string())
        }
        error => Problem::Log(error),
    }
}

pub struct Data {
    pub kind: Kind,
    pub path: PathBuf,
    pub offline: Offline,
    /// Bytes of all its files.
    pub bytes: u64,
    /// What was found in the files of a log, once it is loaded.
    pub files: Vec<FileFound>,
}

impl Data {
    /// What is there under this name.
    pub fn find(path: &Path) -> Result<Data, String> {
        let shown = path.display();
        let fail = |error| format!("cannot read {shown}: {error}");
        let facts = std::fs::metadata(path).map_err(fail)?;
        let has_end = |end| path.extension().is_some_and(|found| found == end);
        let (kind, path) = if facts.is_dir() {
            (Kind::Directory, path.to_owned())
        } else if has_end(MANIFEST_END) {
            (Kind::Directory, path.parent().unwrap_or(Path::new("")).to_owned())
        } else if has_end(RDB_END) {
            (Kind::Rdb, path.to_owned())
        } else {
            let mut head = Vec::new();
            let opened = File::open(path);
            let read = opened.and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
            read.map_err(fail)?;
            let is_rdb = starts_as_rdb(&head) && !goes_on(path).map_err(fail)?;
            (if is_rdb { Kind::Rdb } else { Kind::LogFile }, path.to_owned())
        };
        // A bare name is in the working directory.
        let path = if path == Path::new("") { PathBuf::from(".") } else { path };
        let bytes = match kind {
            Kind::Rdb | Kind::LogFile => facts.len(),
            Kind::Directory => LogView::of_directory(&FileSystem, &path).map_or(0, |v| v.bytes()),
        };
        Ok(Data { kind, path, offline: Offline::default(), bytes, files: Vec::new() })
    }

    /// As [`Data::find`], loaded if it must be before it can be walked.
    pub fn open(path: &Path) -> Result<Data, Problem> {
        let mut data = Data::find(path).map_err(Problem::Other)?;
        data.load()?;
        Ok(data)
    }

    /// Loads a log; there is nothing to load of an RDB file.
    pub fn load(&mut self) -> Result<(), Problem> {
        if self.kind == Kind::Rdb {
            return Ok(());
        }
        // Each file is verified first, and then run.
        let disk = CountedDisk(Progress::new("loading", 2 * self.bytes));
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let is_part = self.kind == Kind::LogFile && name.ends_with(INCREMENT_END);
        let view = self.view(&disk).map_err(problem_of)?;
        self.files = self.offline.load_log(&view, is_part).map_err(Problem::Log)?;
        Ok(())
    }

    /// The files of a log.
    pub fn view<'v>(&self, disk: &'v dyn Disk) -> Result<LogView<'v>, LogError> {
        match self.kind {
            Kind::Directory => LogView::of_directory(disk, &self.path),
            Kind::Rdb | Kind::LogFile => Ok(LogView::of_file(disk, &self.path)),
        }
    }

    /// Shows all of it. Of an RDB file the visitor learns what was found, and how many bytes follow
    /// it.
    pub fn visit(
        &self,
        doing: &'static str,
        visitor: &mut dyn Visitor,
    ) -> Result<Option<(Report, u64)>, Problem> {
        let fail = |error: std::io::Error| Problem::Other(error.to_string());
        if self.kind != Kind::Rdb {
            self.offline.visit_loaded(visitor).map_err(fail)?;
            return Ok(None);
        }
        let opened = File::open(&self.path);
        let file = opened.map_err(|error| {
            Problem::Other(format!("cannot read {}: {error}", self.path.display()))
        })?;
        let progress = Progress::new(doing, self.bytes);
        match self.offline.visit_rdb(progress.reading(file), visitor) {
            Ok(found) => Ok(Some(found)),
            Err(VisitError::File(error)) => Err(Problem::Rdb(error)),
            Err(VisitError::Visitor(error)) => Err(fail(error)),
        }
    }

    /// What is to be said about data that can be walked, but is not quite as it should be.
    pub fn warnings(&self) -> Vec<String> {
        let mut lines = self.offline.take_lines();
        for file in &self.files {
            lines.extend(file.warning.clone());
            if let Some((at, why)) = file.torn {
                let cut = file.bytes - at;
                let name = &file.name;
                lines.push(format!(
                    "The end of {name} is torn at byte {at} ({why}): the last {cut} bytes are left \
                     out, as by a server"
                ));
            }
        }
        lines
    }
}

/// Whether commands follow an RDB file: then it is a log. The last operation and a sum end the
/// file, so only a walk through it tells where that is.
fn goes_on(path: &Path) -> std::io::Result<bool> {
    let offline = Offline::default();
    let found = offline.visit_rdb(File::open(path)?, &mut super::export::Nobody);
    Ok(found.is_ok_and(|(_, behind)| behind > 0))
}

/// Says why data can't be used; what that means for the end of the tool.
pub fn refuse(path: &Path, problem: &Problem) -> Result<Ending, String> {
    match problem {
        Problem::Other(text) => Err(text.clone()),
        problem => {
            eprintln!("russet: {}: {problem}", path.display());
            Ok(Ending::Damaged)
        }
    }
}
