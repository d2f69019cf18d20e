//! The hint that a cache line will be read soon. It reads nothing, so any address will do.

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(in crate::store::raw) fn prefetch(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: 1. SSE is part of the x86-64 baseline. 2. A prefetch never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
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
