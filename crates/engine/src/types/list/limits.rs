//! Which form a list has, and what OBJECT ENCODING calls it. The two are apart: we keep a list in
//! its table entry while it is not large, Redis says `listpack` up to `list-max-listpack-size`.

use super::chunk::CHUNK_BYTES;

/// Longest packed list that stays inside its table entry, header included.
pub const PACKED_BYTES_MAX: usize = 1024;
/// Most bytes of the entries of a list of medium size: they would fill one chunk. A little less,
/// for those of a packed list are estimated, by a byte too few for an element of 128 bytes.
pub const MEDIUM_BYTES_MAX: usize = CHUNK_BYTES - PACKED_BYTES_MAX / 128;
/// A list goes back to the packed form, or to the medium one, at this size: half, so that it does
/// not flip-flop.
pub const REPACK_BYTES_MAX: usize = PACKED_BYTES_MAX / 2;
pub const REMEDIUM_BYTES_MAX: usize = MEDIUM_BYTES_MAX / 2;
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
    pub(super) fn is_listpack_again(self, size: Extent, cause: ShrinkCause) -> bool {
        let max = self.listpack_max();
        let divisor = if cause == ShrinkCause::Shrunk { 2 } else { 1 };
        size.bytes.saturating_add(LISTPACK_FRAME_BYTES) <= max.bytes / divisor
            && size.count <= max.count / divisor
    }
}

/// Why a list's encoding is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShrinkCause {
    Shrunk,
    Built,
}

/// The forms of a list, from the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Inside its table entry; see `packed.rs`.
    Packed,
    /// Inside its table entry; see `medium.rs`.
    Medium,
    /// An object of its own; see `large.rs`.
    Large,
}

/// The size of texts in a packed list, at most: a head of one byte, which is two for texts of 64
/// bytes and five for texts of 4096.
fn stored_bytes_max(texts: Extent) -> usize {
    texts.bytes.saturating_add(texts.count).saturating_add(texts.bytes / 32)
}

/// The size of texts as entries, at most: their length once more, in a byte or two.
fn entry_bytes_max(texts: Extent) -> usize {
    stored_bytes_max(texts).saturating_add(texts.count)
}

/// Whether a packed list of this size surely stays one when `growth` (texts) is added. The usual
/// case, found with less than [`form_of_packed`] takes: no limit by size is below that of packed
/// lists.
#[inline]
pub fn stays_packed(size: Extent, growth: Extent, limits: ListLimits) -> bool {
    let bytes = size.bytes.saturating_add(stored_bytes_max(growth));
    limits.listpack_size < 0
        && bytes.saturating_add(super::packed::HEADER_BYTES) <= PACKED_BYTES_MAX
}

/// The smallest form for a packed list of this size to which `growth` (texts) is added.
pub fn form_of_packed(size: Extent, growth: Extent, limits: ListLimits) -> Form {
    let bytes = size.bytes.saturating_add(stored_bytes_max(growth));
    let entries = Extent { bytes: size.bytes + size.count, count: size.count };
    match form_of_entries(entries, growth, limits) {
        Form::Medium if bytes.saturating_add(super::packed::HEADER_BYTES) <= PACKED_BYTES_MAX => {
            Form::Packed
        }
        form => form,
    }
}

/// The same for a list whose entries have `size`, and that is not packed.
pub fn form_of_entries(size: Extent, growth: Extent, limits: ListLimits) -> Form {
    match size.bytes.saturating_add(entry_bytes_max(growth)) <= MEDIUM_BYTES_MAX
        && !limits.is_outgrown(size.plus(growth))
    {
        true => Form::Medium,
        false => Form::Large,
    }
}

/// Whether these texts may fit the medium form though [`form_of_packed`] says otherwise: integers
/// take as little as half of their texts, and no entry takes less than two bytes.
pub fn may_be_medium(texts: Extent) -> bool {
    texts.bytes <= 2 * MEDIUM_BYTES_MAX && texts.count <= MEDIUM_BYTES_MAX / 2
}

/// The form to which a list, whose entries have shrunk to so many bytes and which is a listpack to
/// Redis, goes back.
pub fn form_after_shrinking(entries_bytes: usize) -> Form {
    if entries_bytes <= REPACK_BYTES_MAX {
        Form::Packed
    } else if entries_bytes <= REMEDIUM_BYTES_MAX {
        Form::Medium
    } else {
        Form::Large
    }
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
    fn forms_are_chosen_by_bounds_that_hold() {
        use crate::types::element::{Element, Stored};
        use crate::types::list::entry::Entry;
        let digits = (1..=19).map(|len| vec![b'7'; len]);
        let texts =
            (0..=300).chain([4095, 4096, 16_376, 16_377, 16_384]).map(|len| vec![b'x'; len]);
        for text in digits.chain(texts) {
            let (element, extent) = (Element::parse(&text), Extent { bytes: text.len(), count: 1 });
            assert!(Stored::new(element).bytes() <= stored_bytes_max(extent), "{}", text.len());
            assert!(Entry::new(element).bytes() <= entry_bytes_max(extent), "{}", text.len());
        }
        let limits = ListLimits::default();
        let of = |bytes, count| form_of_packed(Extent::default(), Extent { bytes, count }, limits);
        assert_eq!((of(900, 90), of(1000, 90)), (Form::Packed, Form::Medium));
        assert_eq!((of(6000, 400), of(6000, 700)), (Form::Medium, Form::Large));
        assert_eq!(of(usize::MAX, usize::MAX), Form::Large);
    }

    #[test]
    fn shrinking_waits_for_half() {
        let limits = ListLimits { listpack_size: 3 };
        let of = |count| Extent { bytes: 2 * count, count };
        assert!(limits.is_listpack_again(of(1), ShrinkCause::Shrunk));
        assert!(!limits.is_listpack_again(of(2), ShrinkCause::Shrunk));
        assert!(limits.is_listpack_again(of(3), ShrinkCause::Built));
        assert!(!limits.is_listpack_again(of(4), ShrinkCause::Built));
        let limits = ListLimits::default();
        assert!(limits.is_listpack_again(Extent { bytes: 4089, count: 9 }, ShrinkCause::Shrunk));
        assert!(!limits.is_listpack_again(Extent { bytes: 4090, count: 9 }, ShrinkCause::Shrunk));
    }
}
