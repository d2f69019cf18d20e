//! Streams where they are stored: packed inside a table entry, or an object of their own.

use super::packed::{self, Packed};
use super::{BlockLimits, Stream, StreamId, StreamRef};
use crate::store::raw::table::{EntryMut, EntryRef, NewValue, View};
use crate::value::{Object, PackedTag, WrongType};

/// The stream in an entry, to read.
#[inline]
pub fn stream<'a>(entry: &EntryRef<'a, Object>) -> Result<StreamRef<'a>, WrongType> {
    match entry.value() {
        View::Packed(tag, bytes) if tag == PackedTag::Stream as u8 => {
            Ok(StreamRef::Packed(Packed(bytes)))
        }
        View::Object(Object::Stream(stream)) => Ok(StreamRef::Large(stream)),
        _ => Err(WrongType),
    }
}

/// The stream in an entry, to change in any way; a packed one becomes large.
pub fn edit<'a>(mut entry: EntryMut<'a, Object>) -> Result<&'a mut Stream, WrongType> {
    if let View::Packed(tag, bytes) = entry.value()
        && tag == PackedTag::Stream as u8
    {
        let large = Stream::of_log(Packed(bytes).to_log());
        entry.set_object(Box::new(Object::Stream(Box::new(large))));
    }
    match entry.into_object_mut() {
        Some(Object::Stream(stream)) => Ok(stream),
        _ => Err(WrongType),
    }
}

/// Adds an entry, whose ID is greater than the last, and leaves a small stream packed. Shows the
/// stream as it is then.
#[inline]
pub fn append<'a, 'w>(
    mut entry: EntryMut<'a, Object>,
    id: StreamId,
    pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    limits: BlockLimits,
) -> Result<StreamRef<'a>, WrongType> {
    if matches!(entry.value(), View::Packed(tag, _) if tag == PackedTag::Stream as u8)
        && let Some(mut blob) = entry.blob()
        && packed::append(&mut blob, id, pairs.clone(), limits)
    {
        return stream(&entry.into_ref());
    }
    let large = edit(entry)?;
    large.log.append(id, pairs, limits);
    Ok(StreamRef::Large(large))
}

/// A new stream of one entry, handed to `put` as a value.
#[inline]
pub fn build<'w, R>(
    id: StreamId,
    pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    limits: BlockLimits,
    put: impl FnOnce(NewValue<'_, Object>) -> R,
) -> R {
    if let Some(bytes) = packed::begin(id, pairs.clone()) {
        return put(NewValue::Packed(PackedTag::Stream as u8, &bytes));
    }
    let mut stream = Stream::default();
    stream.log.append(id, pairs, limits);
    put(value(stream))
}

/// A stream as a value.
pub fn value(stream: Stream) -> NewValue<'static, Object> {
    NewValue::Object(Box::new(Object::Stream(Box::new(stream))))
}
