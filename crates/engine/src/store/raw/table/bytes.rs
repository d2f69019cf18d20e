//! Bytes of keys and values, most of them few, compared and copied without the calls that the
//! general ways make.

/// Writes pieces one behind the other; where they end. Most are some bytes long: to call a function
/// for each would be most of the cost.
///
/// # Safety
/// 1. There is room for all of them at `to`, and they do not overlap it.
#[inline]
pub(super) unsafe fn write_pieces(mut to: *mut u8, pieces: &[&[u8]]) -> *mut u8 {
    for piece in pieces {
        let len = piece.len();
        let words = (piece.first_chunk::<8>(), piece.last_chunk::<8>());
        // SAFETY: 1. By the contract. 2. What is written lies where it lies in the piece.
        unsafe {
            match (*piece, words) {
                ([only], _) => to.write(*only),
                (_, (Some(first), Some(last))) if len <= 16 => {
                    to.cast::<[u8; 8]>().write(*first);
                    to.add(len - 8).cast::<[u8; 8]>().write(*last);
                }
                ([first, second], _) => to.cast::<[u8; 2]>().write([*first, *second]),
                _ => to.copy_from_nonoverlapping(piece.as_ptr(), len),
            }
            to = to.add(len);
        }
    }
    to
}

/// Equality of two slices of one length, without the call that the general comparison makes: most
/// keys are a few words long.
#[inline]
pub(super) fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    debug_assert_eq!(one.len(), other.len());
    // The two ends meet or overlap.
    match one.len() {
        8..=16 => has_same_ends::<8>(one, other),
        17..=32 => has_same_ends::<16>(one, other),
        33..=64 => has_same_ends::<32>(one, other),
        _ => one == other,
    }
}

#[inline(always)]
fn has_same_ends<const BYTES: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<BYTES>() == other.first_chunk()
        && one.last_chunk::<BYTES>() == other.last_chunk()
}
