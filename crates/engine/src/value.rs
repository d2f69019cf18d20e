//! What an entry of the keyspace holds, seen from above the encodings.

use crate::store::raw::prefetch::prefetch_whole;
use crate::store::raw::table::{EntryRef, Measured, View};
use crate::types::bloom::Bloom;
use crate::types::capacity::{allocated_bytes, allocated_for};
use crate::types::hash::LargeHash;
use crate::types::list::LargeList;
use crate::types::set::LargeSet;
use crate::types::stream::Stream;
use crate::types::zset::LargeZset;
use crate::types::{hash, list, set, string, zset};
use russet_base::SharedBytes;

/// The types of Redis, as TYPE names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    String,
    List,
    Set,
    Zset,
    Hash,
    Stream,
    Bloom,
}

impl Type {
    pub const ALL: &'static [Type] =
        &[Type::String, Type::List, Type::Set, Type::Zset, Type::Hash, Type::Stream, Type::Bloom];

    pub fn name(self) -> &'static str {
        match self {
            Type::String => "string",
            Type::List => "list",
            Type::Set => "set",
            Type::Zset => "zset",
            Type::Hash => "hash",
            Type::Stream => "stream",
            // The name that the module of Redis goes by.
            Type::Bloom => "MBbloom--",
        }
    }
}

/// Unmapping this much memory, or freeing this many elements, takes some microseconds.
const COSTLY_BYTES_MIN: usize = 1024 * 1024;
const COSTLY_ELEMENTS_MIN: usize = 4096;
/// A shared string's counts, and where its bytes are.
const SHARED_BYTES_OVERHEAD: usize = 2 * size_of::<usize>() + size_of::<Vec<u8>>();

/// A value that is too large, or too rich, to lie inside its entry.
#[derive(Clone)]
pub enum Object {
    /// Requests and replies that wait to be sent may have its bytes, too: see
    /// [`string::edit`].
    String(SharedBytes),
    List(LargeList),
    Set(LargeSet),
    /// In a box of its own, which it alone is large enough to need.
    Zset(Box<LargeZset>),
    Hash(LargeHash),
    Stream(Box<Stream>),
    Bloom(Bloom),
}

/// The next size that the allocator has is 112 bytes, for every value that is not in its entry.
const _: () = assert!(size_of::<Object>() <= 96);

impl Object {
    pub(crate) fn string(bytes: Vec<u8>) -> Box<Object> {
        Box::new(Object::String(SharedBytes::new(bytes)))
    }

    pub fn kind(&self) -> Type {
        match self {
            Object::String(_) => Type::String,
            Object::List(_) => Type::List,
            Object::Set(_) => Type::Set,
            Object::Zset(_) => Type::Zset,
            Object::Hash(_) => Type::Hash,
            Object::Stream(_) => Type::Stream,
            Object::Bloom(_) => Type::Bloom,
        }
    }

    /// Hints that the box of a value that has one of its own will be needed soon.
    #[inline]
    pub(crate) fn prefetch_boxed(&self) {
        match self {
            Object::Zset(zset) => prefetch_whole(&**zset),
            Object::Stream(stream) => prefetch_whole(&**stream),
            _ => {}
        }
    }

    /// The same for what that box points to.
    #[inline]
    pub(crate) fn prefetch_behind_box(&self) {
        if let Object::Stream(stream) = self {
            stream.prefetch_groups();
        }
    }

    /// Whether freeing it costs more than handing it to another thread.
    pub(crate) fn is_costly_to_drop(&self) -> bool {
        match self {
            Object::String(bytes) => bytes.capacity() >= COSTLY_BYTES_MIN,
            Object::List(list) => list.len() >= COSTLY_ELEMENTS_MIN,
            Object::Set(set) => set.len() >= COSTLY_ELEMENTS_MIN,
            Object::Zset(zset) => zset.len() >= COSTLY_ELEMENTS_MIN,
            Object::Hash(hash) => hash.len() >= COSTLY_ELEMENTS_MIN,
            Object::Stream(stream) => stream.memory_bytes() >= COSTLY_BYTES_MIN,
            Object::Bloom(bloom) => bloom.memory_bytes() >= COSTLY_BYTES_MIN,
        }
    }
}

impl Measured for Object {
    fn memory_bytes(&self) -> usize {
        allocated_for::<Object>(1)
            + match self {
                Object::String(bytes) => {
                    allocated_bytes(SHARED_BYTES_OVERHEAD) + allocated_bytes(bytes.capacity())
                }
                Object::List(list) => list.memory_bytes(),
                Object::Set(set) => set.memory_bytes(),
                Object::Zset(zset) => allocated_for::<LargeZset>(1) + zset.memory_bytes(),
                Object::Hash(hash) => hash.memory_bytes(),
                Object::Stream(stream) => allocated_for::<Stream>(1) + stream.memory_bytes(),
                Object::Bloom(bloom) => bloom.memory_bytes(),
            }
    }
}

/// What a packed value inside an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PackedTag {
    /// A short string that was edited in place (APPEND, SETRANGE, SETBIT): `raw` in OBJECT
    /// ENCODING.
    EditedString = 0,
    List = 1,
    /// Integers only.
    IntSet = 2,
    Set = 3,
    Hash = 4,
    /// A hash some of whose fields expire.
    ExpiringHash = 5,
    Zset = 6,
    Stream = 7,
}

impl PackedTag {
    pub fn from_u8(tag: u8) -> PackedTag {
        match tag {
            0 => PackedTag::EditedString,
            1 => PackedTag::List,
            2 => PackedTag::IntSet,
            3 => PackedTag::Set,
            4 => PackedTag::Hash,
            5 => PackedTag::ExpiringHash,
            6 => PackedTag::Zset,
            7 => PackedTag::Stream,
            _ => unreachable!("tags are only ever written from this enum"),
        }
    }

    pub fn kind(self) -> Type {
        match self {
            PackedTag::EditedString => Type::String,
            PackedTag::List => Type::List,
            PackedTag::IntSet | PackedTag::Set => Type::Set,
            PackedTag::Hash | PackedTag::ExpiringHash => Type::Hash,
            PackedTag::Zset => Type::Zset,
            PackedTag::Stream => Type::Stream,
        }
    }
}

/// The key holds a value of another type than the command works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// The type of what an entry holds.
pub fn type_of(entry: &EntryRef<'_, Object>) -> Type {
    type_of_view(&entry.value())
}

pub fn type_of_view(view: &View<'_, Object>) -> Type {
    match view {
        View::Int(_) | View::Bytes(_) => Type::String,
        View::Packed(tag, _) => PackedTag::from_u8(*tag).kind(),
        View::Object(object) => object.kind(),
    }
}

/// As OBJECT ENCODING names it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    match type_of(entry) {
        Type::String => string::encoding(entry),
        Type::List => list::stored::encoding(entry),
        Type::Set => set::stored::encoding(entry),
        Type::Zset => zset::stored::encoding(entry),
        Type::Hash => hash::stored::encoding(entry),
        Type::Stream => "stream",
        // What Redis calls every value of a module.
        Type::Bloom => "raw",
    }
}
