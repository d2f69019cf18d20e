//! What an entry of the keyspace holds, seen from above the encodings.

use crate::types::list::LargeList;

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

/// A value that is too large, or too rich, to lie inside its entry.
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
    /// A short string that was edited in place (APPEND, SETRANGE, SETBIT): `raw` in OBJECT ENCODING.
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
