//! A value of any kind: what its number means, which kind is written for what is stored.

use super::error::{Malformed, RdbError, Result};
use super::input::Input;
use super::output::Output;
use super::stream::facts::StreamFacts;
use super::{Dialect, bloom, hash, kind, list, module, set, stream, string, zset};
use russet_engine::store::raw::table::{EntryRef, NewValue};
use russet_engine::types;
use russet_engine::types::hash::HashLimits;
use russet_engine::types::list::ListLimits;
use russet_engine::types::set::SetRules;
use russet_engine::types::zset::ZsetLimits;
use russet_engine::value::{Object, Type, type_of};
use std::io::{self, Read, Write};

/// What decides the forms of values that are read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub set: SetRules,
    pub hash: HashLimits,
    pub list: ListLimits,
    pub zset: ZsetLimits,
}

/// How deadlines of fields are written: two ways that exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldTtlFormat {
    #[default]
    Valkey,
    Redis,
}

impl FieldTtlFormat {
    /// The version of what contains such a hash.
    pub fn version(self) -> u16 {
        match self {
            FieldTtlFormat::Valkey => super::VERSION_VALKEY,
            FieldTtlFormat::Redis => super::VERSION_REDIS_FIELD_TTL,
        }
    }
}

/// How values are read.
#[derive(Clone, Copy)]
pub struct Loading<'l> {
    pub rules: &'l Rules,
    pub now_ms: i64,
    pub dialect: Dialect,
    /// What is known of the next stream besides its value.
    pub stream_facts: Option<&'l StreamFacts>,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Value,
    /// A hash without those of its fields that are over.
    Shortened,
    /// A collection of nothing, which no server keeps.
    Empty,
    /// A hash all of whose fields are over.
    Expired,
}

/// Who takes the value once it is whole.
pub type Put<'p> = &'p mut dyn FnMut(NewValue<'_, Object>);

/// Says where a malformed part stands.
pub fn locate<T, R: Read>(
    input: &Input<R>,
    outcome: std::result::Result<T, Malformed>,
) -> std::result::Result<T, RdbError> {
    outcome.map_err(|Malformed(reason)| input.corrupt(reason))
}

/// Reads a value of this kind and hands it to `put`, unless it is nothing or broken.
pub fn read<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    match kind {
        kind::STRING => string::read(input, put).map(|()| Found::Value),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            list::read(input, kind, loading, put)
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => set::read(input, kind, loading, put),
        kind::ZSET | kind::ZSET_2 | kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => {
            zset::read(input, kind, loading, put)
        }
        kind::HASH | kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK => {
            hash::read(input, kind, loading, put)
        }
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => stream::read(input, kind, loading, put),
        kind::MODULE => read_module(input, put),
        kind::MODULE_OLD => Err(input.unsupported("values of modules of before Redis 4.0")),
        _ => read_dialect(input, kind, loading, put),
    }
}

/// Kinds that Redis and Valkey number otherwise.
fn read_dialect<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    match (loading.dialect, kind) {
        (Dialect::Valkey, kind::VALKEY_HASH_TTL)
        | (
            Dialect::Redis,
            kind::REDIS_HASH_TTL_EARLY
            | kind::REDIS_HASH_TTL_LISTPACK_EARLY
            | kind::REDIS_HASH_TTL
            | kind::REDIS_HASH_TTL_LISTPACK,
        ) => hash::read(input, kind, loading, put),
        (Dialect::Redis, kind::REDIS_STREAM_4 | kind::REDIS_STREAM_5) => {
            stream::read(input, kind, loading, put)
        }
        _ => Err(input.unsupported(format!("a value of kind {kind}"))),
    }
}

fn read_module<R: Read>(input: &mut Input<R>, put: Put<'_>) -> Result<Found> {
    let (name, version) = module::name_of(input.length()?);
    if name.as_bytes() == bloom::NAME {
        return bloom::read(input, version, put);
    }
    Err(input.unsupported(format!("a value of the module type {name}")))
}

/// How values are written.
#[derive(Clone, Copy, Debug)]
pub struct Saving {
    pub field_ttl: FieldTtlFormat,
    /// Fields whose time is over by then are left out.
    pub hides_ms: i64,
    /// Whether what a stream's usual version can't say is said beside it.
    pub has_stream_facts: bool,
}

/// The kind by which a stored value is written.
pub fn kind_of(entry: &EntryRef<'_, Object>, saving: &Saving) -> u8 {
    match type_of(entry) {
        Type::String => kind::STRING,
        Type::List => kind::LIST_QUICKLIST_2,
        Type::Set => types::set::stored::set(entry).map_or(kind::SET, set::kind_of),
        Type::Zset => types::zset::stored::zset(entry).map_or(kind::ZSET_2, zset::kind_of),
        Type::Hash => types::hash::stored::hash(entry).map_or(kind::HASH, |found| {
            hash::kind_of(found.hiding(saving.hides_ms), saving.field_ttl)
        }),
        Type::Stream if saving.has_stream_facts => kind::STREAM_2,
        Type::Stream => {
            types::stream::stored::stream(entry).map_or(kind::STREAM_2, stream::kind_alone)
        }
        Type::Bloom => kind::MODULE,
    }
}

/// The version of RDB that has a kind.
pub fn version_of(kind: u8, saving: &Saving) -> u16 {
    match (kind, saving.field_ttl) {
        (kind::VALKEY_HASH_TTL, FieldTtlFormat::Valkey) => super::VERSION_VALKEY,
        (kind::REDIS_HASH_TTL, FieldTtlFormat::Redis) => super::VERSION_REDIS_FIELD_TTL,
        (kind::REDIS_STREAM_4, _) => 13,
        (kind::REDIS_STREAM_5, _) => super::VERSION_REDIS_MAX,
        _ => super::VERSION,
    }
}

/// Writes a value without its kind.
pub fn write<W: Write>(
    output: &mut Output<W>,
    entry: &EntryRef<'_, Object>,
    saving: &Saving,
) -> io::Result<()> {
    const KNOWN: &str = "the type was looked at just now";
    match type_of(entry) {
        Type::String => string::write(output, types::string::text(entry).expect(KNOWN)),
        Type::List => list::write(output, types::list::stored::list(entry).expect(KNOWN)),
        Type::Set => set::write(output, types::set::stored::set(entry).expect(KNOWN)),
        Type::Zset => zset::write(output, types::zset::stored::zset(entry).expect(KNOWN)),
        Type::Hash => {
            let found = types::hash::stored::hash(entry).expect(KNOWN).hiding(saving.hides_ms);
            hash::write(output, found, saving.field_ttl)
        }
        Type::Stream => {
            let found = types::stream::stored::stream(entry).expect(KNOWN);
            stream::write(output, found, kind_of(entry, saving))
        }
        Type::Bloom => bloom::write(output, types::bloom::stored(entry).expect(KNOWN)),
    }
}
