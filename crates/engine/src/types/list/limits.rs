//! When a list may be packed, and what OBJECT ENCODING calls it. The two are apart: we keep a list
//! in its table entry only while it is small, Redis says `listpack` up to `list-max-listpack-size`.

use super::entry::ENTRY_OVERHEAD_BYTES_MAX;

/// Longest packed list that stays inside its table entry, header included.
pub const PACKED_BYTES_MAX: usize = 1024;
/// A large list goes back to the packed form at this size: half, so that it does not flip-flop.
pub const REPACK_BYTES_MAX: usize = PACKED_BYTES_MAX / 2;
/// What Redis's listpack has besides its entries.
const LISTPACK_FRAME_BYTES: usize = 7;
/// With a limit by count, a listpack still may not pass this size.
const COUNTED_BYTES_MAX: usize = 8192;

/// A size in bytes and elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub bytes: usize,
    pub count: usize,
}

impl Extent {
    /// What is about to be added, measured as Redis does: the texts alone.
    pub fn of<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Self {
        texts.fold(Extent::default(), |sum, text| Extent {
            bytes: sum.bytes + text.len(),
            count: sum.count + 1,
        })
    }

    pub fn plus(self, other: Extent) -> Self {
        Extent { bytes: self.bytes + other.bytes, count: self.count + other.count }
    }
}

/// `list-max-listpack-size`: a count if positive, a size from 4 KiB (-1) to 64 KiB (-5) if
/// negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    pub listpack_size: i64,
}

impl Default for ListLimits {
    fn default() -> Self {
        ListLimits { listpack_size: -2 }
    }
}

impl ListLimits {
    /// The largest listpack, in bytes with its frame, and in elements.
    fn listpack_max(self) -> Extent {
        match self.listpack_size {
            0 => Extent { bytes: usize::MAX, count: 1 },
            count @ 1.. => Extent { bytes: usize::MAX, count: count as usize },
            // COMPAT: anything below -5 means -5; test `limits_follow_the_directive`.
            level => Extent { bytes: 4096 << (-1 - level.max(-5)), count: usize::MAX },
        }
    }

    /// Whether a list of these entries is no longer a listpack to Redis once it has grown to
    /// `size`.
    pub(super) fn is_outgrown(self, size: Extent) -> bool {
        let max = self.listpack_max();
        let bytes_max = if max.bytes == usize::MAX { COUNTED_BYTES_MAX } else { max.bytes };
        size.bytes.saturating_add(LISTPACK_FRAME_BYTES) > bytes_max || size.count > max.count
    }

    /// Whether a quicklist of this size becomes a listpack again: at half the limit after removals,
    /// at the limit itself when it was just loaded.
    /// DIFFERS: Redis moreover waits until all that is left lies in one of its nodes.
    pub(super) fn is_listpack_again(self, size: Extent, cause: Settling) -> bool {
        let max = self.listpack_max();
        let divisor = if cause == Settling::Shrunk { 2 } else { 1 };
        size.bytes.saturating_add(LISTPACK_FRAME_BYTES) <= max.bytes / divisor
            && size.count <= max.count / divisor
    }
}

/// Why a list's encoding is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    Shrunk,
    Built,
}

/// Whether a packed list whose entries have `size`, and to which `growth` (texts) is to be added,
/// may still be packed.
pub fn fits_packed(size: Extent, growth: Extent, limits: ListLimits) -> bool {
    let overhead = growth.count.saturating_mul(ENTRY_OVERHEAD_BYTES_MAX);
    let bytes = size.bytes.saturating_add(growth.bytes).saturating_add(overhead);
    bytes.saturating_add(super::packed::HEADER_BYTES) <= PACKED_BYTES_MAX
        && !limits.is_outgrown(size.plus(growth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_directive() {
        let outgrown = |listpack_size, bytes, count| {
            ListLimits { listpack_size }.is_outgrown(Extent { bytes, count })
        };
        assert!(!outgrown(-2, 8192 - 7, 9) && outgrown(-2, 8192 - 6, 1));
        assert!(!outgrown(-1, 4096 - 7, 9) && outgrown(-1, 4096 - 6, 1));
        assert!(!outgrown(-5, 65_536 - 7, 9) && outgrown(-6, 65_536 - 6, 1));
        assert!(!outgrown(i64::MIN, 65_536 - 7, 9));
        assert!(!outgrown(0, 1, 1) && outgrown(0, 2, 2));
        assert!(!outgrown(3, 10, 3) && outgrown(3, 10, 4) && outgrown(3, 8192, 1));
        assert!(!outgrown(i64::MAX, 10, 4));
    }

    #[test]
    fn shrinking_waits_for_half() {
        let limits = ListLimits { listpack_size: 3 };
        let of = |count| Extent { bytes: 2 * count, count };
        assert!(limits.is_listpack_again(of(1), Settling::Shrunk));
        assert!(!limits.is_listpack_again(of(2), Settling::Shrunk));
        assert!(limits.is_listpack_again(of(3), Settling::Built));
        assert!(!limits.is_listpack_again(of(4), Settling::Built));
        let limits = ListLimits::default();
        assert!(limits.is_listpack_again(Extent { bytes: 4089, count: 9 }, Settling::Shrunk));
        assert!(!limits.is_listpack_again(Extent { bytes: 4090, count: 9 }, Settling::Shrunk));
    }
}
