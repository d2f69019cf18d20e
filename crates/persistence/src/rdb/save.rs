//! A whole file, written from its head to its sum. Our own facts stand in auxiliary fields, which
//! other servers pass over:
//!
//! | field | holds |
//! |---|---|
//! | `russet-once` | a request that ran once: 1, database, id, digest (16), deadline (8), reply |
//! | `russet-stream` | what the next key's stream has besides its value; see `stream/facts.rs` |
//!
//! Numbers are lengths, id and reply strings of RDB, fixed ones little-endian.

use super::load::{AUX_ONCE, AUX_STREAM, ONCE_VERSION};
use super::output::Output;
use super::stream::facts::StreamFacts;
use super::value::{self, FieldTtlFormat, Saving};
use super::{Dialect, VERSION, kind};
use russet_engine::access::NotedUse;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::types;
use russet_engine::value::{Object, Type, type_of};
use std::io::{self, Write};

#[derive(Clone, Copy, Debug)]
pub struct SaveOptions {
    pub compresses: bool,
    /// Whether the file ends with its sum; else with 0.
    pub has_sum: bool,
    pub field_ttl: FieldTtlFormat,
    /// Whether some hash has a field with a deadline: that takes a later version of RDB.
    pub has_expiring_fields: bool,
}

pub struct Writer<W> {
    output: Output<W>,
    saving: Saving,
    has_sum: bool,
    keys: u64,
    /// The database that is selected.
    db: Option<usize>,
}

impl Writer<Vec<u8>> {
    /// Writes parts of a file, in memory, for [`Writer::move_to`].
    pub fn parts(options: SaveOptions) -> Self {
        Writer::of_output(Output::to_bytes(options.compresses), options)
    }

    /// Adds what was written since the last call to a file; how many keys that are.
    pub fn move_to<W: Write>(&mut self, file: &mut Writer<W>) -> io::Result<u64> {
        let keys = std::mem::take(&mut self.keys);
        file.keys += keys;
        self.output.drain(|bytes| file.output.bytes(bytes))?;
        Ok(keys)
    }

    /// Bytes since then.
    pub fn pending_len(&self) -> usize {
        self.output.pending_len()
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub keys: u64,
    pub bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file with auxiliary fields.
    pub fn begin(sink: W, options: SaveOptions, fields: &[(&str, &str)]) -> io::Result<Self> {
        let version = match options.has_expiring_fields {
            true => options.field_ttl.version(),
            false => VERSION,
        };
        let mut output = Output::new(sink, options.compresses);
        let head = match Dialect::of_version(version) {
            Some(Dialect::Valkey) => format!("VALKEY{version:03}"),
            _ => format!("REDIS{version:04}"),
        };
        output.bytes(head.as_bytes())?;
        for (name, value) in fields {
            output.byte(kind::OP_AUX)?;
            output.string(name.as_bytes())?;
            output.string(value.as_bytes())?;
        }
        Ok(Writer::of_output(output, options))
    }

    fn of_output(output: Output<W>, options: SaveOptions) -> Self {
        let saving =
            Saving { field_ttl: options.field_ttl, hides_ms: i64::MIN, has_stream_facts: true };
        Writer { output, saving, has_sum: options.has_sum, keys: 0, db: None }
    }

    /// Which database is selected is not known any more.
    pub fn deselect(&mut self) {
        self.db = None;
    }

    /// Keys from here on are in this database.
    pub fn select(&mut self, db: usize) -> io::Result<()> {
        if self.db == Some(db) {
            return Ok(());
        }
        self.db = Some(db);
        self.output.byte(kind::OP_SELECT)?;
        self.output.length(db as u64)
    }

    /// The source of a library of functions.
    pub fn function(&mut self, source: &[u8]) -> io::Result<()> {
        self.output.byte(kind::OP_FUNCTION)?;
        self.output.string(source)
    }

    /// A request that ran once.
    pub fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) -> io::Result<()> {
        let mut field = Output::to_bytes(false);
        field.length(ONCE_VERSION)?;
        field.length(db as u64)?;
        field.string(id)?;
        field.bytes(&record.digest.to_le_bytes())?;
        field.millis(record.expires.0)?;
        field.string(record.reply)?;
        self.auxiliary(AUX_ONCE, field)
    }

    fn auxiliary(&mut self, name: &[u8], field: Output<Vec<u8>>) -> io::Result<()> {
        self.output.byte(kind::OP_AUX)?;
        self.output.string(name)?;
        self.output.string(&field.finish()?)
    }

    /// Keys from here on are in this database, which has so many, and so many that expire.
    pub fn database(&mut self, db: usize, (keys, expires): (u64, u64)) -> io::Result<()> {
        self.deselect();
        self.select(db)?;
        self.output.byte(kind::OP_RESIZE)?;
        self.output.length(keys)?;
        self.output.length(expires)
    }

    pub fn key(&mut self, entry: &EntryRef<'_, Object>, noted: Option<NotedUse>) -> io::Result<()> {
        if type_of(entry) == Type::Stream
            && let Ok(stream) = types::stream::stored::stream(entry)
        {
            let facts = StreamFacts::of(stream);
            if !facts.is_empty() {
                let mut field = Output::to_bytes(false);
                facts.write(&mut field)?;
                self.auxiliary(AUX_STREAM, field)?;
            }
        }
        if let Some(at_ms) = entry.expiry() {
            self.output.byte(kind::OP_EXPIRY_MS)?;
            self.output.millis(at_ms)?;
        }
        match noted {
            Some(NotedUse::IdleSeconds(seconds)) => {
                self.output.byte(kind::OP_IDLE)?;
                self.output.length(seconds)?;
            }
            Some(NotedUse::Count(count)) => self.output.bytes(&[kind::OP_FREQ, count])?,
            None => {}
        }
        self.output.byte(value::kind_of(entry, &self.saving))?;
        self.output.string(entry.key())?;
        self.keys += 1;
        value::write(&mut self.output, entry, &self.saving)
    }

    /// Ends the file.
    pub fn finish(mut self) -> io::Result<(W, Written)> {
        self.output.byte(kind::OP_END)?;
        let sum = self.output.sum()?;
        let sum = if self.has_sum { sum } else { 0 };
        self.output.bytes(&sum.to_le_bytes())?;
        let written = Written { keys: self.keys, bytes: self.output.offset() };
        Ok((self.output.finish()?, written))
    }
}
