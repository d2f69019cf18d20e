//! The hint that a cache line will be read soon. It reads nothing, so any address will do.

pub(in crate::store::raw) const LINE_BYTES: usize = 64;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(in crate::store::raw) fn prefetch(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: 1. SSE is part of the x86-64 baseline. 2. A prefetch never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

/// The line where a value begins.
#[inline]
pub fn prefetch_value<T>(value: &T) {
    prefetch((&raw const *value).cast());
}

/// All lines of a value of some hundred bytes.
#[inline]
pub fn prefetch_whole<T>(value: &T) {
    let start = (&raw const *value).cast::<u8>();
    for at in (0..size_of::<T>()).step_by(LINE_BYTES) {
        prefetch(start.wrapping_add(at));
    }
}

/// The lines of bytes that are about to be read from end to end, all at once: read in order, each
/// would be waited for. Of longer bytes the first ones.
#[inline]
pub fn prefetch_bytes(bytes: &[u8]) {
    const BYTES_MAX: usize = 1024;
    let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
    for at in (0..bytes.len()).step_by(LINE_BYTES) {
        prefetch(&raw const bytes[at]);
    }
}

/// The same for a line that will be written.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(in crate::store::raw) fn prefetch_to_write(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
    // SAFETY: 1. Processors without this instruction ignore it. 2. A prefetch never faults.
    unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(in crate::store::raw) fn prefetch_to_write(address: *const u8) {
    prefetch(address);
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(in crate::store::raw) fn prefetch(address: *const u8) {
    // SAFETY: 1. A prefetch never faults and changes no register or flag that Rust can see.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{0}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline(always)]
pub(in crate::store::raw) fn prefetch(_address: *const u8) {}
