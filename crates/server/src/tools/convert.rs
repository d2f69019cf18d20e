//! `russet convert`: the same data in another kind of file.

use super::Ending;
use super::arguments::Arguments;
use super::data::{Data, Problem, refuse};
use russet_commands::node::config::{Config, Directive};
use russet_commands::node::offline::Visitor;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::Object;
use russet_persistence::disk::{Disk, DiskFile, FileSystem};
use russet_persistence::export::commands::{CommandOptions, CommandWriter};
use russet_persistence::export::survey::Survey;
use russet_persistence::log::manifest::{FileKind, LogFile, Manifest};
use russet_persistence::rdb::FieldTtlFormat;
use russet_persistence::rdb::save::{SaveOptions, Writer};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const USAGE: &str = "\
Usage: russet convert [--commands] [--field-ttl-format valkey|redis] <from> <to>

<from> is a dump.rdb, an appendonlydir or a log file; it is not changed. <to> must not be there.
Its name says what is made:

  name.rdb    an RDB file
  name.aof    a log in one file of commands, as servers before Redis 7 have it
  otherwise   a directory with a log, whose base is an RDB file, or with --commands one of commands

  --field-ttl-format   how RDB has fields of hashes that expire: as Valkey 9, or as Redis 7.4

Ends with 0 if all was written, 1 if <from> is damaged, 2 if its end is torn and was left out, and 3
if it could not be done. After 1 and 3 nothing is left of <to>.
";
/// How the files of a log are called, unless a directive says otherwise.
const LOG_NAME: &str = "appendonly.aof";

struct Options {
    from: PathBuf,
    to: PathBuf,
    is_commands: bool,
    field_ttl: FieldTtlFormat,
}

fn options(arguments: Arguments) -> Result<Options, String> {
    let (mut is_commands, mut field_ttl) = (false, FieldTtlFormat::default());
    let paths = arguments.files(|option, rest| {
        match option {
            "--commands" => is_commands = true,
            "--field-ttl-format" => {
                field_ttl = match rest.value(option)?.to_str() {
                    Some("valkey") => FieldTtlFormat::Valkey,
                    Some("redis") => FieldTtlFormat::Redis,
                    _ => return Err(format!("{option} is valkey or redis")),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let [from, to] = <[PathBuf; 2]>::try_from(paths).map_err(|_| "from which file to which?")?;
    Ok(Options { from, to, is_commands, field_ttl })
}

pub fn run(arguments: Arguments) -> Result<Ending, String> {
    let options = options(arguments)?;
    let to = options.to.display();
    if std::fs::symlink_metadata(&options.to).is_ok() {
        return Err(format!("{to} is there already"));
    }
    let data = match Data::open(&options.from) {
        Ok(data) => data,
        Err(problem) => return refuse(&options.from, &problem),
    };
    data.warnings().iter().for_each(|line| eprintln!("russet: {line}"));
    // A walk before the one that writes: the head of an RDB file depends on what is in it.
    let mut count = Count(Survey::new(0, 0));
    if let Err(problem) = data.visit("reading", &mut count) {
        return refuse(&options.from, &problem);
    }
    if let Err(problem) = write(&data, &count.0, &options) {
        return match problem {
            Problem::Other(text) => Err(format!("cannot write {to}: {text}")),
            problem => refuse(&options.from, &problem),
        };
    }
    println!("{to}: {} keys", count.0.all.keys);
    let is_torn = data.files.iter().any(|file| file.torn.is_some());
    Ok(if is_torn { Ending::Torn } else { Ending::Good })
}

struct Count(Survey);

impl Visitor for Count {
    fn library(&mut self, _source: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) -> io::Result<()> {
        self.0.requests += 1;
        Ok(())
    }

    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.0.entry(db, entry);
        Ok(())
    }
}

fn other(error: io::Error) -> Problem {
    Problem::Other(error.to_string())
}

/// Writes beside the place where it is to be, and moves it there once it is complete.
fn write(data: &Data, survey: &Survey, options: &Options) -> Result<(), Problem> {
    let to = &options.to;
    let name = to.file_name().ok_or_else(|| Problem::Other("it has no name".to_owned()))?;
    let dir = match to.parent() {
        Some(dir) if dir != Path::new("") => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    let temporary = dir.join(format!("temp-{}-{}", std::process::id(), name.display()));
    let written = match to.extension().and_then(|end| end.to_str()) {
        Some("rdb") => write_rdb(data, survey, (&temporary, options)),
        Some("aof") => write_commands(data, survey, &temporary),
        _ => write_log(data, survey, (&temporary, options)),
    };
    let moved = written.and_then(|()| {
        let renamed = FileSystem.rename(&temporary, to);
        renamed.and_then(|()| FileSystem.sync_dir(&dir)).map_err(other)
    });
    if moved.is_err() {
        // Nothing is left of an attempt; what can't be removed has a name that says what it is.
        let _removed = match temporary.is_dir() {
            true => std::fs::remove_dir_all(&temporary),
            false => std::fs::remove_file(&temporary),
        };
    }
    moved
}

/// A directory with a base and a manifest.
fn write_log(
    data: &Data,
    survey: &Survey,
    (dir, options): (&Path, &Options),
) -> Result<(), Problem> {
    FileSystem.create_dir(dir).map_err(other)?;
    let end = if options.is_commands { "aof" } else { "rdb" };
    let name = format!("{LOG_NAME}.1.base.{end}");
    match options.is_commands {
        true => write_commands(data, survey, &dir.join(&name))?,
        false => write_rdb(data, survey, (&dir.join(&name), options))?,
    }
    let manifest = Manifest { files: vec![LogFile { name, number: 1, kind: FileKind::Base }] };
    let path = dir.join(format!("{LOG_NAME}.manifest"));
    let written = FileSystem.create(&path).and_then(|mut file| {
        file.write_all(manifest.to_text().as_bytes())?;
        file.sync_data()
    });
    written.and_then(|()| FileSystem.sync_dir(dir)).map_err(other)
}

fn write_rdb(
    data: &Data,
    survey: &Survey,
    (path, options): (&Path, &Options),
) -> Result<(), Problem> {
    let save = SaveOptions {
        compresses: true,
        has_sum: true,
        field_ttl: options.field_ttl,
        has_expiring_fields: survey.hashes_with_deadlines > 0,
    };
    let version = Config::default().string(Directive::RedisVersion);
    let seconds = data.offline.now().seconds().to_string();
    let memory = survey.all.memory_bytes.to_string();
    let fields = [
        ("redis-ver", version.as_str()),
        ("redis-bits", "64"),
        ("ctime", &seconds),
        ("used-mem", &memory),
        ("aof-base", "0"),
        ("russet-ver", env!("CARGO_PKG_VERSION")),
    ];
    let file = FileSystem.create(path).map_err(other)?;
    let writer = Writer::begin(file, save, &fields).map_err(other)?;
    let mut rdb = ToRdb { writer, survey, db: None };
    data.visit("writing", &mut rdb)?;
    let (file, _written) = rdb.writer.finish().map_err(other)?;
    file.sync_data().map_err(other)
}

struct ToRdb<'r> {
    writer: Writer<Box<dyn DiskFile>>,
    survey: &'r Survey,
    db: Option<usize>,
}

impl Visitor for ToRdb<'_> {
    fn library(&mut self, source: &[u8]) -> io::Result<()> {
        self.writer.function(source)
    }

    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) -> io::Result<()> {
        self.writer.request(db, id, record)
    }

    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        if self.db.replace(db) != Some(db) {
            let counts = self.survey.databases.get(&db).copied().unwrap_or_default();
            self.writer.database(db, (counts.keys, counts.with_expiry))?;
        }
        self.writer.key(entry, None)
    }
}

fn write_commands(data: &Data, survey: &Survey, path: &Path) -> Result<(), Problem> {
    let file = FileSystem.create(path).map_err(other)?;
    let mut commands = ToCommands(CommandWriter::new(file, CommandOptions::default()));
    data.visit("writing", &mut commands)?;
    let file = commands.0.finish().map_err(other)?;
    if survey.requests > 0 {
        eprintln!("russet: {} requests of ONCE are left out: no command has them", survey.requests);
    }
    file.sync_data().map_err(other)
}

struct ToCommands(CommandWriter<Box<dyn DiskFile>>);

impl Visitor for ToCommands {
    fn library(&mut self, source: &[u8]) -> io::Result<()> {
        self.0.library(source)
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) -> io::Result<()> {
        Ok(())
    }

    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.0.entry(db, entry)
    }
}
