//! Strings: an integer or short bytes inside the entry, or a buffer of their own when long.

use crate::store::raw::table::{EntryMut, EntryRef, INLINE_VALUE_MAX, NewValue, View};
use crate::types::list::IntText;
use crate::value::{Object, PackedTag, Type, WrongType, type_of};
use russet_base::num;

/// Longest text that OBJECT ENCODING calls `embstr`.
pub const EMBEDDED_BYTES_MAX: usize = 44;
/// Longest text that can be an integer.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// A string's value, as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    #[inline]
    pub fn with_bytes<R>(self, action: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Text::Bytes(bytes) => action(bytes),
            Text::Int(value) => action(IntText::new(value).as_bytes()),
        }
    }

    pub fn len(self) -> usize {
        match self {
            Text::Bytes(bytes) => bytes.len(),
            Text::Int(value) => num::i64_len(value),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// As an integer, if it is one to the letter.
    pub fn int(self) -> Option<i64> {
        match self {
            Text::Int(value) => Some(value),
            Text::Bytes(bytes) => num::parse_i64(bytes),
        }
    }
}

/// The string in an entry.
#[inline]
pub fn text<'a>(entry: &EntryRef<'a, Object>) -> Result<Text<'a>, WrongType> {
    match entry.value() {
        View::Int(value) => Ok(Text::Int(value)),
        View::Bytes(bytes) => Ok(Text::Bytes(bytes)),
        View::Packed(tag, bytes) if tag == PackedTag::EditedString as u8 => Ok(Text::Bytes(bytes)),
        View::Object(Object::String(bytes)) => Ok(Text::Bytes(bytes)),
        _ => Err(WrongType),
    }
}

/// How a new string is stored.
#[inline]
pub fn encode(bytes: &[u8]) -> NewValue<'_, Object> {
    if bytes.len() <= INTEGER_TEXT_BYTES_MAX
        && let Some(value) = num::parse_i64(bytes)
    {
        return NewValue::Int(value);
    }
    if bytes.len() <= INLINE_VALUE_MAX {
        return NewValue::Bytes(bytes);
    }
    NewValue::Object(Box::new(Object::String(bytes.to_vec())))
}

/// As OBJECT ENCODING reports it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    match entry.value() {
        View::Int(_) => "int",
        View::Bytes(bytes) if bytes.len() <= EMBEDDED_BYTES_MAX => "embstr",
        _ => "raw",
    }
}

/// Lets `edit` change the string's bytes; the value is `raw` from then on.
pub fn edit(
    entry: &mut EntryMut<'_, Object>,
    edit: impl FnOnce(&mut Vec<u8>),
) -> Result<(), WrongType> {
    if type_of(&entry.as_ref()) != Type::String {
        return Err(WrongType);
    }
    if let Some(object) = entry.object_mut() {
        if let Object::String(bytes) = object {
            edit(bytes);
        }
        return Ok(());
    }
    let mut bytes = text(&entry.as_ref())?.with_bytes(<[u8]>::to_vec);
    edit(&mut bytes);
    if bytes.len() <= INLINE_VALUE_MAX {
        entry.set_packed(PackedTag::EditedString as u8, &bytes);
        return Ok(());
    }
    entry.set_object(Box::new(Object::String(bytes)));
    Ok(())
}
