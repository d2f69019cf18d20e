//! Streams: entries in listpacks, counters, groups. Five versions of it have been written; ours is
//! the second, which Redis 7.0 reads. What that one can't say goes into a file beside the value
//! (see `facts`), and makes a DUMP use a later version.
//!
//! A node's listpack begins with how many entries it has, how many of them are deleted, and the
//! names that most of them have: their number, each name, and 0. An entry is its flags, its
//! distance from the node's ID (milliseconds, number), its fields (how many and name and value by
//! turns, or the values alone), and the number of all these elements.

pub mod facts;
mod groups;

use super::error::{Malformed, Result};
use super::input::Input;
use super::kind;
use super::listpack::{Listpack, ListpackWriter};
use super::output::Output;
use super::value::{Found, Loading, Put, locate};
use facts::StreamFacts;
use russet_engine::types::element::Element;
use russet_engine::types::stream::{Run, StreamBuilder, StreamId, StreamRef};
use std::io::{self, Read, Write};
use std::ops::Range;

type Checked<T> = std::result::Result<T, Malformed>;

const ID_BYTES: usize = 16;
const FLAG_DELETED: i64 = 1;
const FLAG_SAME_NAMES: i64 = 2;
/// Elements of an entry besides its fields: flags, two distances; with names of its own their
/// number, too.
const ENTRY_ELEMENTS: i64 = 3;

/// What the versions have beyond the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    First,
    /// Counters of the stream, and how much groups have read.
    Counters,
    /// When consumers last got something.
    ActiveTimes,
    Producers,
    GivenBack,
}

impl Version {
    fn of(kind: u8) -> Version {
        match kind {
            kind::STREAM => Version::First,
            kind::STREAM_2 => Version::Counters,
            kind::STREAM_3 => Version::ActiveTimes,
            kind::REDIS_STREAM_4 => Version::Producers,
            _ => Version::GivenBack,
        }
    }
}

pub fn read<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    let version = Version::of(kind);
    let mut builder = StreamBuilder::new();
    let mut node = NodeReader::default();
    let mut room = Vec::new();
    for _ in 0..input.length()? {
        let master = input.string(&mut room)?;
        let master = id_of(master).ok_or_else(|| input.corrupt("a stream's node has no ID"))?;
        let bytes = input.string(&mut room)?;
        locate(input, node.read(master, bytes, &mut builder))?;
    }
    let len = input.length()?;
    if len != builder.stream.log.len() {
        return Err(input.corrupt("a stream of another length than it says"));
    }
    read_counters(input, version, &mut builder)?;
    groups::read(input, version, &mut builder.stream)?;
    if version >= Version::Producers {
        facts::read_producers(input, &mut builder.stream)?;
    }
    if let Some(facts) = loading.stream_facts {
        facts.apply(&mut builder.stream);
    }
    builder.put(put);
    Ok(Found::Value)
}

fn read_id<R: Read>(input: &mut Input<R>) -> Result<StreamId> {
    Ok(StreamId { ms: input.length()?, seq: input.length()? })
}

fn read_counters<R: Read>(
    input: &mut Input<R>,
    version: Version,
    builder: &mut StreamBuilder,
) -> Result<()> {
    let last_id = read_id(input)?;
    let log = &mut builder.stream.log;
    if last_id < log.last_id {
        return Err(input.corrupt("a stream with entries behind its last ID"));
    }
    log.last_id = last_id;
    if version >= Version::Counters {
        // The first ID is the one of the first entry that is there.
        read_id(input)?;
        let max_deleted_id = read_id(input)?;
        let entries_added = input.length()?;
        if max_deleted_id > last_id || entries_added < log.len() || entries_added > i64::MAX as u64
        {
            return Err(input.corrupt("a stream whose counters contradict each other"));
        }
        (log.max_deleted_id, log.entries_added) = (max_deleted_id, entries_added);
    }
    Ok(())
}

fn id_of(bytes: &[u8]) -> Option<StreamId> {
    let (ms, seq) = bytes.split_first_chunk::<8>()?;
    let seq: &[u8; ID_BYTES - 8] = seq.try_into().ok()?;
    Some(StreamId { ms: u64::from_be_bytes(*ms), seq: u64::from_be_bytes(*seq) })
}

/// Reads nodes; its buffers serve one after the other.
#[derive(Default)]
struct NodeReader {
    /// The texts of names and values.
    texts: Vec<u8>,
    names: Vec<Range<usize>>,
    pairs: Vec<Range<usize>>,
}

impl NodeReader {
    fn read(&mut self, master: StreamId, bytes: &[u8], to: &mut StreamBuilder) -> Checked<()> {
        let mut list = Listpack::new(bytes)?;
        let (live, deleted) = (list.expect_int()?, list.expect_int()?);
        let names_len = list.expect_int()?;
        self.texts.clear();
        self.names.clear();
        for _ in 0..names_len.max(0) {
            let name = list.expect()?;
            let range = self.keep(name);
            self.names.push(range);
        }
        if names_len < 0 || list.expect_int()? != 0 {
            return Err(Malformed("a stream's node begins with no entry's names"));
        }
        to.begin_block();
        let (mut live_seen, mut deleted_seen) = (0, 0);
        let texts_len = self.texts.len();
        while let Some(flags) = list.next() {
            self.texts.truncate(texts_len);
            if self.read_entry((master, flags?), &mut list, to)? {
                live_seen += 1;
            } else {
                deleted_seen += 1;
            }
        }
        if (live_seen, deleted_seen) != (live, deleted) {
            return Err(Malformed("a stream's node has another number of entries than it says"));
        }
        to.note_deleted(u32::try_from(deleted_seen).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Whether it is there, and not deleted.
    fn read_entry(
        &mut self,
        (master, flags): (StreamId, Element<'_>),
        list: &mut Listpack<'_>,
        to: &mut StreamBuilder,
    ) -> Checked<bool> {
        let Element::Int(flags) = flags else {
            return Err(Malformed("a stream's entry without flags"));
        };
        let (ms, seq) = (list.expect_int()?, list.expect_int()?);
        let id = StreamId {
            ms: master.ms.wrapping_add_signed(ms),
            seq: master.seq.wrapping_add_signed(seq),
        };
        self.pairs.clear();
        let has_same_names = flags & FLAG_SAME_NAMES != 0;
        let (fields, mut elements) = match has_same_names {
            true => (self.names.len() as i64, ENTRY_ELEMENTS),
            false => (list.expect_int()?, ENTRY_ELEMENTS + 1),
        };
        if fields < 0 {
            return Err(Malformed("a stream's entry with less than no field"));
        }
        for at in 0..fields {
            if has_same_names {
                self.pairs.push(self.names[at as usize].clone());
            } else {
                let name = list.expect()?;
                let range = self.keep(name);
                self.pairs.push(range);
                elements += 1;
            }
            let value = list.expect()?;
            let range = self.keep(value);
            self.pairs.push(range);
            elements += 1;
        }
        if list.expect_int()? != elements {
            return Err(Malformed("a stream's entry of another length than it says"));
        }
        if flags & FLAG_DELETED != 0 {
            return Ok(false);
        }
        let pairs = self.pairs.iter().map(|range| &self.texts[range.clone()]);
        if fields == 0 || id < master || !to.append(id, pairs) {
            return Err(Malformed("a stream's entries are not in order"));
        }
        Ok(true)
    }

    fn keep(&mut self, element: Element<'_>) -> Range<usize> {
        let start = self.texts.len();
        element.with_bytes(|text| self.texts.extend_from_slice(text));
        start..self.texts.len()
    }
}

/// The first version that says all there is to say, for who has nothing beside the value.
pub fn kind_alone(stream: StreamRef<'_>) -> u8 {
    let given_back =
        stream.groups().into_iter().flatten().any(|(_, group)| group.given_back_len() > 0);
    match stream.idempotency() {
        _ if given_back => kind::REDIS_STREAM_5,
        Some(_) => kind::REDIS_STREAM_4,
        None => kind::STREAM_2,
    }
}

pub fn write<W: Write>(output: &mut Output<W>, stream: StreamRef<'_>, kind: u8) -> io::Result<()> {
    let version = Version::of(kind);
    output.length(stream.blocks().count() as u64)?;
    for block in stream.blocks() {
        output.length(ID_BYTES as u64)?;
        output.bytes(&block.first.to_be_bytes())?;
        output.string(&node_of(block))?;
    }
    output.length(stream.len())?;
    let first_id = stream.first_entry_id().filter(|_| !stream.is_empty()).unwrap_or_default();
    for id in [stream.last_id(), first_id, stream.max_deleted_id()] {
        output.length(id.ms)?;
        output.length(id.seq)?;
    }
    output.length(stream.entries_added())?;
    groups::write(output, stream, version)?;
    if version >= Version::Producers {
        StreamFacts::of(stream).write_producers(output)?;
    }
    Ok(())
}

/// A block as a listpack.
fn node_of(block: Run<'_>) -> Vec<u8> {
    let mut list = ListpackWriter::new();
    list.push_int(block.entries().count() as i64);
    list.push_int(0);
    let names_len = block.names().count() as i64;
    list.push_int(names_len);
    block.names().for_each(|name| list.push(name));
    list.push_int(0);
    for entry in block.entries() {
        let has_same_names = entry.has_block_names();
        list.push_int(if has_same_names { FLAG_SAME_NAMES } else { 0 });
        list.push_int(entry.id.ms.wrapping_sub(block.first.ms) as i64);
        list.push_int(entry.id.seq.wrapping_sub(block.first.seq) as i64);
        let fields = entry.fields_len as i64;
        if !has_same_names {
            list.push_int(fields);
        }
        entry.for_each_field(|name, value| {
            if !has_same_names {
                list.push(name);
            }
            list.push(value);
        });
        list.push_int(ENTRY_ELEMENTS + if has_same_names { fields } else { 1 + 2 * fields });
    }
    list.finish()
}
