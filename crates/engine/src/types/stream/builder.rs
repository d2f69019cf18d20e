//! A stream that is made entry by entry, in the blocks that a file has it in.

use super::id::{IdRange, StreamId};
use super::log::Order;
use super::{BlockLimits, Stream, packed};
use crate::store::raw::table::NewValue;
use crate::types::blob::Blob;
use crate::types::element::Element;
use crate::value::{Object, PackedTag};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// A stream from its first entry on. Groups and counters are set in `stream` once all entries are
/// there.
#[derive(Default)]
pub struct StreamBuilder {
    pub stream: Stream,
    is_block_open: bool,
    has_gaps: bool,
}

impl StreamBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// The next entry begins a block.
    pub fn begin_block(&mut self) {
        self.is_block_open = false;
    }

    /// Adds an entry, given as names and values by turns; false if its ID is not greater
    /// than those before.
    #[must_use]
    pub fn append<'w>(
        &mut self,
        id: StreamId,
        pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    ) -> bool {
        let log = &mut self.stream.log;
        if id <= log.last_id {
            return false;
        }
        log.append_loaded(id, pairs, !self.is_block_open);
        self.is_block_open = true;
        true
    }

    /// So many entries of the block that is open are deleted ones, which Redis leaves in place.
    pub fn note_deleted(&mut self, count: u32) {
        if count > 0 && self.is_block_open {
            self.stream.log.note_deleted(count);
            self.has_gaps = true;
        }
    }

    /// Hands the stream over, packed if it is small and nothing but entries.
    pub fn put<R>(self, put: impl FnOnce(NewValue<'_, Object>) -> R) -> R {
        match self.packed() {
            Some(bytes) => put(NewValue::Packed(PackedTag::Stream as u8, &bytes.0)),
            None => put(super::stored::value(self.stream)),
        }
    }

    fn packed(&self) -> Option<PackedBytes> {
        let log = &self.stream.log;
        let is_plain = self.stream.extras.is_none()
            && !self.has_gaps
            && log.blocks_len() == 1
            && log.memory_bytes() <= 2 * packed::PACKED_BYTES_MAX
            && log.max_deleted_id == StreamId::MIN
            && log.entries_added == log.len()
            && log.last_entry_id() == Some(log.last_id);
        if !is_plain {
            return None;
        }
        // All of them are in one block, so none of them may end it.
        let limits = BlockLimits { bytes_max: 0, entries_max: 0 };
        let mut bytes: Option<PackedBytes> = None;
        let mut is_done = true;
        log.visit(IdRange::ALL, Order::Forward, |entry| {
            let mut pairs: SmallVec<[Vec<u8>; 8]> = SmallVec::new();
            entry.for_each_field(|name, value| {
                pairs.extend([name, value].map(Element::to_vec));
            });
            let pairs = pairs.iter().map(Vec::as_slice);
            is_done = match &mut bytes {
                Some(bytes) => packed::append(bytes, entry.id, pairs, limits),
                None => {
                    bytes = packed::begin(entry.id, pairs).map(PackedBytes);
                    bytes.is_some()
                }
            };
            if is_done { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        bytes.filter(|_| is_done)
    }
}

/// A packed stream on the stack.
struct PackedBytes(SmallVec<[u8; 512]>);

impl Blob for PackedBytes {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self.0[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        debug_assert!(at == self.0.len() && remove == 0, "entries are only ever added behind");
        insert.iter().for_each(|piece| self.0.extend_from_slice(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::stream::{Packed, StreamRef};

    /// Entries, each with its names and values by turns.
    type Model = Vec<(StreamId, Vec<Vec<u8>>)>;

    fn shown(stream: StreamRef<'_>) -> Model {
        let mut entries = Vec::new();
        stream.visit(IdRange::ALL, Order::Forward, |entry| {
            let mut pairs = Vec::new();
            entry.for_each_field(|name, value| pairs.extend([name.to_vec(), value.to_vec()]));
            entries.push((entry.id, pairs));
            ControlFlow::Continue(())
        });
        entries
    }

    /// A stream of so many entries, three to a block.
    fn build(count: u64) -> (StreamBuilder, Model) {
        let mut builder = StreamBuilder::new();
        let mut model = Vec::new();
        for at in 0..count {
            if at % 3 == 0 {
                builder.begin_block();
            }
            let id = StreamId::new(5 + at / 2, at);
            let pairs = vec![b"name".to_vec(), at.to_string().into_bytes()];
            assert!(builder.append(id, pairs.iter().map(Vec::as_slice)));
            model.push((id, pairs));
        }
        (builder, model)
    }

    #[test]
    fn blocks_are_those_of_the_file() {
        for count in [1, 3, 4, 100] {
            let (builder, model) = build(count);
            let blocks = StreamRef::Large(&builder.stream).blocks_len();
            assert_eq!(blocks as u64, count.div_ceil(3));
            let is_packed = builder.put(|value| match value {
                NewValue::Packed(_, bytes) => {
                    assert_eq!(shown(StreamRef::Packed(Packed(bytes))), model);
                    true
                }
                NewValue::Object(object) => {
                    let Object::Stream(stream) = &*object else { panic!("no stream") };
                    assert_eq!(shown(StreamRef::Large(stream)), model);
                    stream.check_bytes();
                    false
                }
                _ => panic!("no stream"),
            });
            assert_eq!(is_packed, count <= 3);
        }
        let (mut builder, _) = build(3);
        assert!(!builder.append(StreamId::new(1, 1), [&b"a"[..], b"b"].into_iter()));
        builder.stream.log.max_deleted_id = StreamId::new(5, 0);
        builder.put(|value| assert!(matches!(value, NewValue::Object(_))));
    }
}
