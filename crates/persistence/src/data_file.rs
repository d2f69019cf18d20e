//! A file of all data, in one of two forms: RDB, or commands in RESP as a log has them
//! (`aof-use-rdb-preamble no`). Whoever walks the data need not know which.
//!
//! Commands end with a line that vouches for all of them, as the other files of a log have it. What
//! no command can say is lost: see [`crate::export::commands`].

use crate::export::commands::{CommandOptions, CommandWriter};
use crate::log::base::SummedFile;
use crate::rdb::save::{SaveOptions, Writer, Written};
use russet_engine::access::NotedUse;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::Object;
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Rdb,
    Commands,
}

pub enum DataWriter<W: Write> {
    Rdb(Writer<W>),
    Commands(Commands<W>),
}

/// Data as commands.
pub struct Commands<W: Write> {
    writer: CommandWriter<SummedFile<W>>,
    /// The database that keys are in.
    db: usize,
    keys: u64,
}

impl<W: Write> Commands<W> {
    fn new(file: SummedFile<W>) -> Self {
        Commands { writer: CommandWriter::new(file, CommandOptions::default()), db: 0, keys: 0 }
    }
}

impl DataWriter<Vec<u8>> {
    /// Writes parts of a file, in memory, for [`DataWriter::move_to`].
    pub fn parts(form: Form, options: SaveOptions) -> Self {
        match form {
            Form::Rdb => DataWriter::Rdb(Writer::parts(options)),
            Form::Commands => DataWriter::Commands(Commands::new(SummedFile::new(Vec::new()))),
        }
    }

    /// Adds what was written since the last call to a file of the same form; how many keys that
    /// are.
    pub fn move_to<W: Write>(&mut self, file: &mut DataWriter<W>) -> io::Result<u64> {
        match (self, file) {
            (DataWriter::Rdb(parts), DataWriter::Rdb(file)) => parts.move_to(file),
            (DataWriter::Commands(parts), DataWriter::Commands(file)) => {
                let keys = std::mem::take(&mut parts.keys);
                file.keys += keys;
                file.writer.part(&parts.writer.take())?;
                Ok(keys)
            }
            _ => Err(io::Error::other("parts of another form than the file's")),
        }
    }

    /// Bytes since then.
    pub fn pending_len(&self) -> usize {
        match self {
            DataWriter::Rdb(writer) => writer.pending_len(),
            DataWriter::Commands(commands) => commands.writer.pending_len(),
        }
    }
}

impl<W: Write> DataWriter<W> {
    /// Begins a file. Only RDB has auxiliary fields.
    pub fn begin(
        file: W,
        (form, options): (Form, SaveOptions),
        fields: &[(&str, &str)],
    ) -> io::Result<Self> {
        Ok(match form {
            Form::Rdb => DataWriter::Rdb(Writer::begin(file, options, fields)?),
            Form::Commands => DataWriter::Commands(Commands::new(SummedFile::new(file))),
        })
    }

    /// The time of what follows, as a log notes it; RDB has it in a field.
    pub fn timestamp(&mut self, seconds: i64) -> io::Result<()> {
        match self {
            DataWriter::Rdb(_) => Ok(()),
            DataWriter::Commands(commands) => commands.writer.timestamp(seconds),
        }
    }

    /// The source of a library of functions.
    pub fn function(&mut self, source: &[u8]) -> io::Result<()> {
        match self {
            DataWriter::Rdb(writer) => writer.function(source),
            DataWriter::Commands(commands) => commands.writer.library(source),
        }
    }

    /// A request that ran once.
    pub fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) -> io::Result<()> {
        match self {
            DataWriter::Rdb(writer) => writer.request(db, id, record),
            DataWriter::Commands(commands) => commands.writer.request(db, id, record),
        }
    }

    /// Keys from here on are in this database, which has so many, and so many that expire.
    pub fn database(&mut self, db: usize, sizes: (u64, u64)) -> io::Result<()> {
        match self {
            DataWriter::Rdb(writer) => writer.database(db, sizes),
            DataWriter::Commands(_) => self.select(db),
        }
    }

    /// Keys from here on are in this database.
    pub fn select(&mut self, db: usize) -> io::Result<()> {
        match self {
            DataWriter::Rdb(writer) => writer.select(db),
            DataWriter::Commands(commands) => {
                commands.db = db;
                Ok(())
            }
        }
    }

    /// Which database is selected is not known any more.
    pub fn deselect(&mut self) {
        match self {
            DataWriter::Rdb(writer) => writer.deselect(),
            DataWriter::Commands(commands) => commands.writer.deselect(),
        }
    }

    pub fn key(&mut self, entry: &EntryRef<'_, Object>, noted: Option<NotedUse>) -> io::Result<()> {
        match self {
            DataWriter::Rdb(writer) => writer.key(entry, noted),
            DataWriter::Commands(commands) => {
                commands.keys += 1;
                commands.writer.entry(commands.db, entry)
            }
        }
    }

    /// Ends the file.
    pub fn finish(self) -> io::Result<(W, Written)> {
        match self {
            DataWriter::Rdb(writer) => writer.finish(),
            DataWriter::Commands(Commands { writer, keys, .. }) => {
                let (file, bytes) = writer.finish()?.finish()?;
                Ok((file, Written { keys, bytes }))
            }
        }
    }
}
