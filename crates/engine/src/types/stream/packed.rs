//! A small stream inside its table entry: one block, of which nothing was ever deleted, and no
//! groups. Whatever else is done to it makes it large first.
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | the first ID, little-endian |
//! | 16..32 | the last ID |
//! | 32..34 | how many entries |
//! | 34..36 | the size that its listpack would have in Redis |
//! | 36.. | the run; see `run.rs` |

use super::BlockLimits;
use super::block::{Block, Measure};
use super::id::StreamId;
use super::log::Log;
use super::run::{Run, Scratch, put_entry, put_names};
use crate::types::blob::Blob;

/// Most bytes of a packed stream: larger ones grow more cheaply on their own.
pub const PACKED_BYTES_MAX: usize = 960;
const PREFIX_BYTES: usize = 36;

fn id_bytes(id: StreamId) -> [u8; 16] {
    (u128::from(id.ms) | u128::from(id.seq) << 64).to_le_bytes()
}

fn id_at(bytes: &[u8], at: usize) -> StreamId {
    let wide = bytes[at..].first_chunk().map_or(0, |chunk| u128::from_le_bytes(*chunk));
    StreamId { ms: wide as u64, seq: (wide >> 64) as u64 }
}

fn prefix(first: StreamId, last: StreamId, measure: Measure) -> [u8; PREFIX_BYTES] {
    let mut bytes = [0; PREFIX_BYTES];
    bytes[..16].copy_from_slice(&id_bytes(first));
    bytes[16..32].copy_from_slice(&id_bytes(last));
    bytes[32..34].copy_from_slice(&(measure.live as u16).to_le_bytes());
    bytes[34..36].copy_from_slice(&(measure.listpack_bytes as u16).to_le_bytes());
    bytes
}

/// A packed stream to read.
#[derive(Clone, Copy)]
pub struct Packed<'a>(pub &'a [u8]);

impl<'a> Packed<'a> {
    pub fn first_id(self) -> StreamId {
        id_at(self.0, 0)
    }

    pub fn last_id(self) -> StreamId {
        id_at(self.0, 16)
    }

    fn number_at(self, at: usize) -> u32 {
        u32::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    pub(super) fn len(self) -> u64 {
        u64::from(self.number_at(32))
    }

    fn measure(self) -> Measure {
        Measure { live: self.number_at(32), dead: 0, listpack_bytes: self.number_at(34) }
    }

    pub fn run(self) -> Run<'a> {
        Run::new(self.first_id(), &self.0[PREFIX_BYTES..])
    }

    pub fn to_log(self) -> Log {
        let block = Block::from_parts(self.last_id(), self.measure(), &self.0[PREFIX_BYTES..]);
        Log::of_block(self.first_id(), block)
    }
}

/// The bytes of a stream of one entry, if it is small enough to be packed.
pub fn begin<'w>(
    id: StreamId,
    pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
) -> Option<Scratch> {
    let pairs_bytes: usize = pairs.clone().map(<[u8]>::len).sum();
    if pairs_bytes > PACKED_BYTES_MAX {
        return None;
    }
    let mut bytes = Scratch::new();
    bytes.extend_from_slice(&[0; PREFIX_BYTES]);
    let listpack = put_names(&mut bytes, pairs.clone());
    let mut entry = Scratch::new();
    let grown = put_entry(&mut entry, Run::new(id, &bytes[PREFIX_BYTES..]), id, pairs);
    bytes.extend_from_slice(&entry);
    let mut measure = Measure { live: 0, dead: 0, listpack_bytes: listpack as u32 };
    measure.add(grown);
    bytes[..PREFIX_BYTES].copy_from_slice(&prefix(id, id, measure));
    (bytes.len() <= PACKED_BYTES_MAX).then_some(bytes)
}

/// Adds an entry behind the others; false, and nothing is done, if it does not fit.
pub fn append<'w>(
    blob: &mut impl Blob,
    id: StreamId,
    pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    limits: BlockLimits,
) -> bool {
    let packed = Packed(blob.bytes());
    let pairs_bytes: usize = pairs.clone().map(<[u8]>::len).sum();
    let mut measure = packed.measure();
    if blob.bytes().len() + pairs_bytes > PACKED_BYTES_MAX || measure.is_full(pairs_bytes, limits) {
        return false;
    }
    let mut entry = Scratch::new();
    measure.add(put_entry(&mut entry, packed.run(), id, pairs));
    let end = blob.bytes().len();
    if end + entry.len() > PACKED_BYTES_MAX {
        return false;
    }
    let prefix = prefix(packed.first_id(), id, measure);
    blob.overwrite(0, &prefix);
    blob.splice(end, 0, &[&entry]);
    true
}
