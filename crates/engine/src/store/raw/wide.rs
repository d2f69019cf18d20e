//! Runs plain loops compiled a second time for AVX2, where the processor has it: vectors twice as
//! wide, and shifts by a different amount in each lane. What is computed is the same.

/// A computation without side effects of its own. Its `run`, and all that it calls, should be
/// `#[inline(always)]`: only what is inlined is compiled anew.
pub trait Work {
    type Output;

    fn run(self) -> Self::Output;
}

#[inline]
pub fn widely<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: 1. The processor has AVX2: it was asked just now.
        return unsafe { with_avx2(work) };
    }
    work.run()
}

/// Whether [`widely`] has wide vectors to work with.
#[inline]
pub fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// # Safety
/// 1. The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn with_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}
