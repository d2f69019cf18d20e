//! Strings: an integer or short bytes inside the entry, or a buffer of their own when long.

use crate::store::raw::table::{BlobMut, EntryMut, EntryRef, INLINE_VALUE_MAX, NewValue, View};
use crate::types::bits;
use crate::types::blob::Blob;
use crate::types::list::IntText;
use crate::value::{Object, PackedTag, WrongType};
use russet_base::limits::LONG_STRING_BYTES;
use russet_base::{Args, SharedBytes, num};
use smallvec::SmallVec;
use std::sync::Arc;

// A long argument is no value that could lie inside an entry.
const _: () = assert!(LONG_STRING_BYTES > INLINE_VALUE_MAX);

/// Longest text that OBJECT ENCODING calls `embstr`.
pub const EMBEDDED_BYTES_MAX: usize = 44;
/// Longest text that can be an integer.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// Longest edited string inside its entry: a longer one grows in a buffer with room to spare.
const EDITED_INLINE_MAX: usize = 1024;
/// Up to here an edited string's buffer doubles.
const DOUBLING_BYTES_MAX: usize = 1024 * 1024;

/// A string's value, as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    /// In a buffer of its own, which others may keep.
    Shared(&'a SharedBytes),
}

/// A string's bytes that can be kept beside those of others.
pub enum TextBytes<'a> {
    Stored(&'a [u8]),
    Written(IntText),
}

impl TextBytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            TextBytes::Stored(bytes) => bytes,
            TextBytes::Written(text) => text.as_bytes(),
        }
    }
}

impl<'a> Text<'a> {
    pub fn into_bytes(self) -> TextBytes<'a> {
        match self {
            Text::Bytes(bytes) => TextBytes::Stored(bytes),
            Text::Shared(bytes) => TextBytes::Stored(bytes),
            Text::Int(value) => TextBytes::Written(IntText::new(value)),
        }
    }

    #[inline]
    pub fn with_bytes<R>(self, action: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Text::Bytes(bytes) => action(bytes),
            Text::Shared(bytes) => action(bytes),
            Text::Int(value) => action(IntText::new(value).as_bytes()),
        }
    }

    pub fn len(self) -> usize {
        match self {
            Text::Bytes(bytes) => bytes.len(),
            Text::Shared(bytes) => bytes.len(),
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
            Text::Shared(bytes) => num::parse_i64(bytes),
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
        View::Object(Object::String(bytes)) => Ok(Text::Shared(bytes)),
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
    NewValue::Object(Object::string(bytes.to_vec()))
}

/// As [`encode`]; a long one moves out of `bytes`.
pub fn encode_owned(bytes: &mut Vec<u8>) -> NewValue<'_, Object> {
    if bytes.len() <= INLINE_VALUE_MAX {
        return encode(bytes);
    }
    NewValue::Object(Object::string(std::mem::take(bytes)))
}

/// As [`encode`], for an argument that may have a buffer of its own: then that is the value.
#[inline]
pub fn encode_arg(args: Args<'_>, index: usize) -> NewValue<'_, Object> {
    match args.shared(index) {
        Some(bytes) => NewValue::Object(Box::new(Object::String(bytes.clone()))),
        None => encode(args.at(index)),
    }
}

/// As OBJECT ENCODING reports it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    match entry.value() {
        View::Int(_) => "int",
        View::Bytes(bytes) if bytes.len() <= EMBEDDED_BYTES_MAX => "embstr",
        _ => "raw",
    }
}

/// A string's bytes, to be edited where they are.
pub enum Editable<'e> {
    Short(BlobMut<'e>),
    Long(&'e mut Vec<u8>),
}

impl Blob for Editable<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Editable::Short(blob) => blob.bytes(),
            Editable::Long(bytes) => bytes,
        }
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        match self {
            Editable::Short(blob) => blob.overwrite(at, with),
            Editable::Long(bytes) => bytes.overwrite(at, with),
        }
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        match self {
            Editable::Short(blob) => blob.splice(at, remove, insert),
            Editable::Long(bytes) => Blob::splice(*bytes, at, remove, insert),
        }
    }
}

impl Editable<'_> {
    /// Appends zeros until the string has at least `len` bytes.
    pub fn grow(&mut self, len: usize) {
        match self {
            Editable::Long(bytes) if bytes.len() < len => bytes.resize(len, 0),
            _ => bits::grow(self, len),
        }
    }

    /// Writes `bytes` at `at`, with zeros before them if the string is shorter; the new length.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.grow(at);
        let len = self.bytes().len();
        let (inside, beyond) = bytes.split_at(bytes.len().min(len - at));
        self.overwrite(at, inside);
        if !beyond.is_empty() {
            self.splice(len, 0, &[beyond]);
        }
        len + beyond.len()
    }
}

/// Makes the string in an entry editable, with room for `len` bytes if it is to grow. The value is
/// `raw` from then on.
pub fn edit<'e>(
    entry: &'e mut EntryMut<'_, Object>,
    len: usize,
) -> Result<Editable<'e>, WrongType> {
    let old = text(&entry.as_ref())?;
    let len = len.max(old.len());
    let is_ready = match entry.value() {
        View::Packed(..) => len <= EDITED_INLINE_MAX,
        View::Object(_) => true,
        _ => false,
    };
    if !is_ready {
        make_editable(entry, len)?;
    }
    if matches!(entry.value(), View::Object(_)) {
        let Some(Object::String(bytes)) = entry.object_mut() else {
            return Err(WrongType);
        };
        return Ok(Editable::Long(sole(bytes, len)));
    }
    entry.blob().map(Editable::Short).ok_or(WrongType)
}

/// The first edit of a string: later ones find its bytes in place.
#[cold]
fn make_editable(entry: &mut EntryMut<'_, Object>, len: usize) -> Result<(), WrongType> {
    let old = text(&entry.as_ref())?;
    if len <= EDITED_INLINE_MAX {
        let bytes: SmallVec<[u8; EDITED_INLINE_MAX]> = old.with_bytes(SmallVec::from_slice);
        entry.set_packed(PackedTag::EditedString as u8, &bytes);
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(len);
    old.with_bytes(|old| bytes.extend_from_slice(old));
    entry.set_object(Object::string(bytes));
    Ok(())
}

/// A string that nobody else has, with room for `len` bytes: a copy if somebody does.
fn sole(bytes: &mut SharedBytes, len: usize) -> &mut Vec<u8> {
    if Arc::get_mut(bytes).is_none() {
        let mut copy = Vec::with_capacity(bytes.len());
        copy.extend_from_slice(bytes);
        reserve(&mut copy, len);
        *bytes = Arc::new(copy);
    }
    let bytes = Arc::make_mut(bytes);
    reserve(bytes, len);
    bytes
}

/// Makes room in steps that grow with the string, so that many small additions cost few copies.
/// Short strings double; long ones take an eighth more, since their waste would be large.
fn reserve(bytes: &mut Vec<u8>, len: usize) {
    if len <= bytes.capacity() {
        return;
    }
    let spare = if len < DOUBLING_BYTES_MAX { len } else { len / 8 };
    bytes.reserve_exact(len + spare - bytes.len());
}

/// How a string that an edit built from nothing is stored. A long one moves out of `bytes`.
pub fn adopt(bytes: &mut Vec<u8>) -> NewValue<'_, Object> {
    if bytes.len() <= EDITED_INLINE_MAX {
        return NewValue::Packed(PackedTag::EditedString as u8, bytes);
    }
    NewValue::Object(Object::string(std::mem::take(bytes)))
}
