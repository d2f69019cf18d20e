//! What an entry of the keyspace holds, seen from above the encodings.

use crate::store::raw::table::{EntryRef, View};
use crate::types::list::{LargeList, ListRef};
use crate::types::string;

/// The types of Redis, as TYPE names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    String,
    List,
}

impl Type {
    pub const ALL: &'static [Type] = &[Type::String, Type::List];

    pub fn name(self) -> &'static str {
        match self {
            Type::String => "string",
            Type::List => "list",
        }
    }
}

/// Unmapping this much memory, or freeing this many elements, takes some microseconds.
const COSTLY_BYTES_MIN: usize = 1024 * 1024;
const COSTLY_ELEMENTS_MIN: usize = 4096;

/// A value that is too large, or too rich, to lie inside its entry.
#[derive(Clone)]
pub enum Object {
    String(Vec<u8>),
    List(LargeList),
}

impl Object {
    pub fn kind(&self) -> Type {
        match self {
            Object::String(_) => Type::String,
            Object::List(_) => Type::List,
        }
    }

    /// Whether freeing it costs more than handing it to another thread.
    pub(crate) fn is_costly_to_drop(&self) -> bool {
        match self {
            Object::String(bytes) => bytes.capacity() >= COSTLY_BYTES_MIN,
            Object::List(list) => list.len() >= COSTLY_ELEMENTS_MIN,
        }
    }

    /// Bytes on the heap, this object's own box included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Object>()
            + match self {
                Object::String(bytes) => bytes.capacity(),
                Object::List(list) => list.memory_bytes(),
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
}

impl PackedTag {
    pub fn from_u8(tag: u8) -> PackedTag {
        match tag {
            0 => PackedTag::EditedString,
            1 => PackedTag::List,
            _ => unreachable!("tags are only ever written from this enum"),
        }
    }

    pub fn kind(self) -> Type {
        match self {
            PackedTag::EditedString => Type::String,
            PackedTag::List => Type::List,
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
    match entry.value() {
        View::Packed(tag, bytes) if PackedTag::from_u8(tag) == PackedTag::List => {
            ListRef::Packed(bytes).encoding()
        }
        View::Object(Object::List(list)) => ListRef::Large(list).encoding(),
        _ => string::encoding(entry),
    }
}
