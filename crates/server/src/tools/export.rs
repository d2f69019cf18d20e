//! `russet export`: data as lines of JSON, or as commands.

use super::Ending;
use super::arguments::Arguments;
use super::data::{Data, Problem};
use russet_commands::node::offline::Visitor;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::Object;
use russet_persistence::disk::{Disk, FileSystem};
use russet_persistence::export::commands::{CommandOptions, CommandWriter};
use russet_persistence::export::json::JsonWriter;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const USAGE: &str = "\
Usage: russet export [--json | --commands [--replace]] [--output file]
                     <dump.rdb | appendonlydir | log file>

Writes all data to standard output, or to a new file. What has expired is left out.

  --json         a line of JSON for each key (this is so unless something else is asked for)
  --commands     commands in RESP: redis-cli --pipe loads them into any server
  --replace      deletes keys that are there before it makes them
  --output file  where to; the file must not be there

Ends with 0 if all was written, 1 if the data is damaged (what came before it is written), 2 if the
end of a log is torn and was left out, and 3 if it could not be done.
";

struct Options {
    path: PathBuf,
    output: Option<PathBuf>,
    is_commands: bool,
    replaces: bool,
}

fn options(arguments: Arguments) -> Result<Options, String> {
    let (mut output, mut is_commands, mut replaces) = (None, false, false);
    let path = arguments.file(|option, rest| {
        match option {
            "--json" => is_commands = false,
            "--commands" => is_commands = true,
            "--replace" => replaces = true,
            "--output" => output = Some(rest.value(option)?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if replaces && !is_commands {
        return Err("--replace is for --commands".to_owned());
    }
    Ok(Options { path, output, is_commands, replaces })
}

pub fn run(arguments: Arguments) -> Result<Ending, String> {
    let options = options(arguments)?;
    let data = match Data::open(&options.path) {
        Ok(data) => data,
        Err(problem) => return super::data::refuse(&options.path, &problem),
    };
    data.warnings().iter().for_each(|line| eprintln!("russet: {line}"));
    let output = options.output.as_deref().map(Output::create).transpose()?;
    let out: Box<dyn Write + '_> = match &output {
        None => Box::new(io::stdout().lock()),
        Some(output) => Box::new(&output.file),
    };
    let now_ms = data.offline.now().0;
    let format = match options.is_commands {
        true => {
            let replaces = options.replaces;
            let options = CommandOptions { replaces, hides_ms: Some(now_ms) };
            Format::Commands(CommandWriter::new(out, options))
        }
        false => Format::Json(JsonWriter::new(out, now_ms)),
    };
    let mut exporter = Exporter { format, now_ms, requests: 0 };
    let visited = data.visit("exporting", &mut exporter);
    let requests = exporter.requests;
    let finished = exporter.finish().map_err(|error| format!("cannot write: {error}"));
    // What can't be written is no fault of the data, of which the rest is kept if it is damaged.
    if !matches!(visited, Err(Problem::Other(_))) {
        finished?;
        output.map_or(Ok(()), Output::keep)?;
    }
    if let Err(problem) = visited {
        return super::data::refuse(&options.path, &problem);
    }
    if requests > 0 {
        eprintln!("russet: {requests} requests of ONCE are left out: nobody else knows them");
    }
    let is_torn = data.files.iter().any(|file| file.torn.is_some());
    Ok(if is_torn { Ending::Torn } else { Ending::Good })
}

/// A file that has its name once it is complete: until then it has another, and is removed if
/// nobody keeps it.
struct Output<'p> {
    path: &'p Path,
    temporary: PathBuf,
    file: File,
    is_kept: bool,
}

impl<'p> Output<'p> {
    fn create(path: &'p Path) -> Result<Self, String> {
        let fail = |why: &dyn Display| format!("cannot make {}: {why}", path.display());
        let name = path.file_name().ok_or_else(|| fail(&"it has no name"))?;
        if path.symlink_metadata().is_ok() {
            return Err(fail(&"it is there already"));
        }
        let temporary = format!("temp-{}-{}", std::process::id(), name.display());
        let temporary = path.with_file_name(temporary);
        let opened = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = opened.map_err(|error| fail(&error))?;
        Ok(Output { path, temporary, file, is_kept: false })
    }

    /// All is written.
    fn keep(mut self) -> Result<(), String> {
        let path = self.path;
        let fail = |error: io::Error| format!("cannot write {}: {error}", path.display());
        self.file.sync_all().map_err(fail)?;
        if path.symlink_metadata().is_ok() {
            return Err(fail(io::ErrorKind::AlreadyExists.into()));
        }
        FileSystem.rename(&self.temporary, path).map_err(fail)?;
        self.is_kept = true;
        let dir = path.parent().filter(|dir| *dir != Path::new(""));
        FileSystem.sync_dir(dir.unwrap_or(Path::new("."))).map_err(fail)
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // What can't be removed has a name that says what it is.
            let _removed = std::fs::remove_file(&self.temporary);
        }
    }
}

enum Format<W> {
    Json(JsonWriter<W>),
    Commands(CommandWriter<W>),
}

struct Exporter<W> {
    format: Format<W>,
    /// What expires at this moment or before is left out.
    now_ms: i64,
    requests: u64,
}

impl<W: Write> Exporter<W> {
    fn finish(self) -> io::Result<()> {
        match self.format {
            Format::Json(writer) => writer.finish().map(drop),
            Format::Commands(writer) => writer.finish().map(drop),
        }
    }
}

impl<W: Write> Visitor for Exporter<W> {
    fn library(&mut self, source: &[u8]) -> io::Result<()> {
        match &mut self.format {
            Format::Json(writer) => writer.library(source),
            Format::Commands(writer) => writer.library(source),
        }
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) -> io::Result<()> {
        self.requests += 1;
        Ok(())
    }

    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        if entry.expiry().is_some_and(|at_ms| at_ms <= self.now_ms) {
            return Ok(());
        }
        match &mut self.format {
            Format::Json(writer) => writer.entry(db, entry),
            Format::Commands(writer) => writer.entry(db, entry),
        }
    }
}

/// Who wants nothing but to know whether a file can be read.
pub struct Nobody;

impl Visitor for Nobody {
    fn library(&mut self, _source: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) -> io::Result<()> {
        Ok(())
    }

    fn entry(&mut self, _db: usize, _entry: &EntryRef<'_, Object>) -> io::Result<()> {
        Ok(())
    }
}
