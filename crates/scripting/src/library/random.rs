//! The generator behind `math.random`: the linear congruence of 48 bits that POSIX calls drand48,
//! written out so that a seed gives the same numbers everywhere.

use std::ops::RangeInclusive;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// The low bits that a seed sets.
const SEED_LOW: u64 = 0x330E;
/// The state before any seed.
const INITIAL: u64 = 0x1234_ABCD_330E;
/// The bound of what is drawn: 31 bits, less one.
const DRAWN_MAX: u32 = i32::MAX as u32;

/// A stream of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rand48(u64);

impl Default for Rand48 {
    fn default() -> Self {
        Rand48(INITIAL)
    }
}

impl Rand48 {
    pub fn from_seed(seed: i32) -> Self {
        Rand48(u64::from(seed as u32) << 16 | SEED_LOW)
    }

    /// A number of at least 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        let drawn = (self.0 >> 17) as u32;
        f64::from(drawn % DRAWN_MAX) / f64::from(DRAWN_MAX)
    }
}

/// The whole number of a range that a number from 0 to 1 stands for.
///
/// COMPAT: the width is that of a C int, so the widest range has none.
pub fn whole(unit: f64, range: RangeInclusive<i32>) -> f64 {
    let width = range.end().wrapping_sub(*range.start()).wrapping_add(1);
    (unit * f64::from(width)).floor() + f64::from(*range.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from a real server.
    #[test]
    fn the_numbers_are_those_of_the_peers() {
        let mut fresh = Rand48::default();
        assert_eq!(format!("{:.14}", fresh.unit()), "0.39646477363839");
        assert_eq!(format!("{:.14}", fresh.unit()), "0.84048536971234");
        assert_eq!(whole(fresh.unit(), 1..=10), 4.0);
        assert_eq!(whole(fresh.unit(), i32::MIN..=i32::MAX), -2147483648.0);
        for (seed, first, second) in [
            (0, "0.17082803611217", "0.74990198051087"),
            (7, "0.26644419658298", "0.68203523041775"),
            (-7, "0.07521187517569", "0.81776873106964"),
        ] {
            let mut seeded = Rand48::from_seed(seed);
            assert_eq!(format!("{:.14}", seeded.unit()), first);
            assert_eq!(format!("{:.14}", seeded.unit()), second);
        }
    }
}
