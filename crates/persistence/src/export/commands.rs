//! Values as commands in RESP that make them, all of them of Redis 7.0 but those for which it has
//! none: deadlines of fields (`HPEXPIREAT`, Redis 7.4 and Valkey 9) and Bloom filters (`RESTORE`).
//!
//! What no command can say is lost: when consumers of streams were last seen, what is remembered
//! of producers, and who used a key when.

mod stream;

use super::Sink;
use crate::log::base::SummedFile;
use crate::log::once;
use crate::rdb::FieldTtlFormat;
use crate::rdb::payload::{Dumping, dump};
use russet_base::{float, num};
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::types;
use russet_engine::types::element::Element;
use russet_engine::types::hash::HashRef;
use russet_engine::types::list::ListRef;
use russet_engine::types::set::SetRef;
use russet_engine::types::zset::{Direction, ZsetRef};
use russet_engine::value::{Object, Type, type_of};
use std::io::{self, Write};

/// Elements that one command adds.
const ELEMENTS_PER_COMMAND: usize = 64;
const KNOWN: &str = "the type was looked at just now";

#[derive(Clone, Copy, Debug, Default)]
pub struct CommandOptions {
    /// Whether what is there under the same keys is deleted first.
    pub replaces: bool,
    /// Fields whose time is over by then are left out.
    pub hides_ms: Option<i64>,
}

pub struct CommandWriter<W> {
    sink: Sink<W>,
    db: Option<usize>,
    options: CommandOptions,
}

/// A command that adds elements, and is given again when it is full.
struct Adding<'a> {
    start: [&'a [u8]; 2],
    args_per_element: usize,
    /// Elements that are still to come, and those of them in the command under way.
    left: usize,
    left_here: usize,
}

impl CommandWriter<SummedFile<Vec<u8>>> {
    /// What was written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        self.sink.write();
        std::mem::take(self.sink.out.file_mut())
    }

    /// Bytes since then.
    pub fn pending_len(&self) -> usize {
        self.sink.buffer.len() + self.sink.out.file().len()
    }
}

impl<W: Write> CommandWriter<W> {
    pub fn new(out: W, options: CommandOptions) -> Self {
        CommandWriter { sink: Sink::new(out), db: None, options }
    }

    fn begin(&mut self, args: usize) {
        self.head(b'*', args);
    }

    fn head(&mut self, kind: u8, number: usize) {
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        self.sink.put(&[kind]);
        self.sink.put(num::u64_bytes(number as u64, &mut digits));
        self.sink.put(b"\r\n");
    }

    fn arg(&mut self, arg: &[u8]) {
        self.head(b'$', arg.len());
        self.sink.put(arg);
        self.sink.put(b"\r\n");
    }

    fn number(&mut self, number: i64) {
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        self.arg(num::i64_bytes(number, &mut digits));
    }

    fn element(&mut self, element: Element<'_>) {
        element.with_bytes(|text| self.arg(text));
    }

    fn command(&mut self, args: &[&[u8]]) {
        self.begin(args.len());
        args.iter().for_each(|arg| self.arg(arg));
    }

    /// Makes room for another element.
    fn next_of(&mut self, adding: &mut Adding<'_>) {
        if adding.left_here == 0 {
            adding.left_here = adding.left.min(ELEMENTS_PER_COMMAND);
            self.begin(adding.start.len() + adding.left_here * adding.args_per_element);
            adding.start.iter().for_each(|arg| self.arg(arg));
        }
        adding.left_here -= 1;
        adding.left -= 1;
    }

    fn select(&mut self, db: usize) {
        if self.db.replace(db) != Some(db) {
            self.begin(2);
            self.arg(b"SELECT");
            self.number(db as i64);
        }
    }

    /// Says that what follows was so at this time, in seconds of Unix time.
    pub fn timestamp(&mut self, seconds: i64) -> io::Result<()> {
        self.sink.put(format!("#TS:{seconds}\r\n").as_bytes());
        self.sink.outcome()
    }

    /// A library of functions.
    pub fn library(&mut self, source: &[u8]) -> io::Result<()> {
        match self.options.replaces {
            true => self.command(&[b"FUNCTION", b"LOAD", b"REPLACE", source]),
            false => self.command(&[b"FUNCTION", b"LOAD", source]),
        }
        self.sink.outcome()
    }

    pub fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.select(db);
        let (key, kind) = (entry.key(), type_of(entry));
        if self.options.replaces && !matches!(kind, Type::String | Type::Bloom) {
            self.command(&[b"DEL", key]);
        }
        match kind {
            Type::String => {
                let text = types::string::text(entry).expect(KNOWN);
                text.with_bytes(|text| self.command(&[b"SET", key, text]));
            }
            Type::List => self.list(key, types::list::stored::list(entry).expect(KNOWN)),
            Type::Set => self.set(key, types::set::stored::set(entry).expect(KNOWN)),
            Type::Zset => self.zset(key, types::zset::stored::zset(entry).expect(KNOWN)),
            Type::Hash => self.hash(key, types::hash::stored::hash(entry).expect(KNOWN)),
            Type::Stream => self.stream(key, types::stream::stored::stream(entry).expect(KNOWN)),
            Type::Bloom => self.payload(key, entry),
        }
        if let Some(at_ms) = entry.expiry() {
            self.begin(3);
            self.arg(b"PEXPIREAT");
            self.arg(key);
            self.number(at_ms);
        }
        self.sink.outcome()
    }

    fn list(&mut self, key: &[u8], list: ListRef<'_>) {
        let left = list.len();
        let mut adding = Adding { start: [b"RPUSH", key], args_per_element: 1, left, left_here: 0 };
        list.for_each_in(0..left, |element| {
            self.next_of(&mut adding);
            self.element(element);
        });
    }

    fn set(&mut self, key: &[u8], set: SetRef<'_>) {
        let left = set.len();
        let mut adding = Adding { start: [b"SADD", key], args_per_element: 1, left, left_here: 0 };
        set.for_each(&mut |member| {
            self.next_of(&mut adding);
            self.element(member);
        });
    }

    fn zset(&mut self, key: &[u8], zset: ZsetRef<'_>) {
        let left = zset.len();
        let mut adding = Adding { start: [b"ZADD", key], args_per_element: 2, left, left_here: 0 };
        let mut score = Vec::new();
        zset.for_each(0..left, Direction::Forward, |pair| {
            self.next_of(&mut adding);
            score.clear();
            float::format_f64(pair.score, &mut score);
            self.arg(&score);
            self.element(pair.member);
        });
    }

    fn hash(&mut self, key: &[u8], hash: HashRef<'_>) {
        let hash = self.options.hides_ms.map_or(hash, |now_ms| hash.hiding(now_ms));
        let left = hash.len();
        let mut adding = Adding { start: [b"HSET", key], args_per_element: 2, left, left_here: 0 };
        hash.for_each(|field| {
            self.next_of(&mut adding);
            self.element(field.name);
            self.element(field.value);
        });
        if !hash.may_expire() {
            return;
        }
        hash.for_each(|field| {
            if let Some(at_ms) = field.deadline_ms {
                self.begin(6);
                self.arg(b"HPEXPIREAT");
                self.arg(key);
                self.number(at_ms);
                self.arg(b"FIELDS");
                self.arg(b"1");
                self.element(field.name);
            }
        });
    }

    /// As RESTORE takes it: there are no commands for it.
    fn payload(&mut self, key: &[u8], entry: &EntryRef<'_, Object>) {
        let field_ttl = FieldTtlFormat::default();
        let payload = dump(entry, Dumping { compresses: true, field_ttl, hides_ms: i64::MIN });
        match self.options.replaces {
            true => self.command(&[b"RESTORE", key, b"0", &payload, b"REPLACE"]),
            false => self.command(&[b"RESTORE", key, b"0", &payload]),
        }
    }

    /// A request that ran once, as an annotation: there is no command for it.
    pub fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) -> io::Result<()> {
        self.select(db);
        let (expires, digest) = (record.expires.0.to_string(), format!("{:x}", record.digest));
        let call: [&[u8]; 6] =
            [b"ONCE", id, b"PXAT", expires.as_bytes(), digest.as_bytes(), record.reply];
        let mut writer = CommandWriter::new(Vec::new(), self.options);
        writer.command(&call);
        let mut lines = Vec::new();
        once::write(&mut lines, &writer.finish()?);
        self.part(&lines)
    }

    /// Adds commands that were written elsewhere.
    pub fn part(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.put(bytes);
        self.sink.outcome()
    }

    /// Which database is selected is not known any more.
    pub fn deselect(&mut self) {
        self.db = None;
    }

    /// Writes what is left, and gives the sink back.
    pub fn finish(self) -> io::Result<W> {
        self.sink.finish()
    }
}
