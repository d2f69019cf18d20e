//! The sixteen bytes in front of the registers: `HYLL`, the encoding, three bytes that are not
//! used, and the last estimate in little-endian order, whose highest bit says that it is out of
//! date.

use super::{DENSE_REGISTER_BYTES, Fault};

pub(super) const HEADER_BYTES: usize = 16;
/// Bytes of a whole dense value.
pub(super) const DENSE_BYTES: usize = HEADER_BYTES + DENSE_REGISTER_BYTES;
const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
pub(super) const ESTIMATE_AT: usize = 8;
/// The last byte of the estimate, with its highest bit.
pub(super) const STALE_AT: usize = 15;
pub(super) const STALE: u8 = 0x80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Dense,
    Sparse,
}

impl Encoding {
    fn code(self) -> u8 {
        match self {
            Encoding::Dense => 0,
            Encoding::Sparse => 1,
        }
    }
}

/// A header without an estimate, which is right for no element at all.
pub(super) fn empty(encoding: Encoding) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[ENCODING_AT] = encoding.code();
    header
}

/// The same header in front of registers of another encoding.
pub(super) fn with_encoding(
    mut header: [u8; HEADER_BYTES],
    encoding: Encoding,
) -> [u8; HEADER_BYTES] {
    header[ENCODING_AT] = encoding.code();
    header
}

/// A value whose header was checked: its encoding, its header and its registers.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub encoding: Encoding,
    pub header: &'a [u8; HEADER_BYTES],
    pub registers: &'a [u8],
}

impl Parts<'_> {
    /// The estimate that was kept, if nothing was added since.
    pub fn estimate(&self) -> Option<u64> {
        let [.., a, b, c, d, e, f, g, h] = *self.header;
        (h & STALE == 0).then(|| u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Parts<'_>, Fault> {
    let (header, registers) = bytes.split_first_chunk().ok_or(Fault::NotHyperLogLog)?;
    if !header.starts_with(MAGIC) {
        return Err(Fault::NotHyperLogLog);
    }
    let encoding = match header[ENCODING_AT] {
        0 if registers.len() == DENSE_REGISTER_BYTES => Encoding::Dense,
        1 => Encoding::Sparse,
        _ => return Err(Fault::NotHyperLogLog),
    };
    Ok(Parts { encoding, header, registers })
}
