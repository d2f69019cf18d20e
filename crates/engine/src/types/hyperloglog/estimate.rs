//! How many elements the registers speak of: Otmar Ertl's improved estimator, from how often each
//! register value occurs ("New cardinality estimation algorithms for HyperLogLog sketches", 2017).
//! Every floating-point step is in the order that the peers have, so the last digit agrees too.

use super::header::{Encoding, Parts};
use super::registers::Registers;
use super::{Fault, REGISTERS, RUN_BITS, sparse};
use crate::store::raw::wide::{Work, is_wide, widely};

/// How many registers hold each value that 6 bits can hold.
type Histogram = [u32; 64];

/// 0.5 / ln 2.
const ALPHA_INFINITE: f64 = std::f64::consts::LOG2_E / 2.0;

pub(super) fn of_parts(parts: Parts<'_>) -> Result<u64, Fault> {
    match parts.encoding {
        Encoding::Dense => {
            let mut registers = Registers::default();
            registers.merge(parts)?;
            Ok(of_registers(&registers))
        }
        Encoding::Sparse => {
            let mut histogram = [0; 64];
            sparse::walk(&[parts.registers], |span: sparse::Span| {
                histogram[usize::from(span.value)] += span.len as u32;
            })?;
            histogram[0] = REGISTERS as u32 - histogram.iter().sum::<u32>();
            Ok(estimate(&histogram))
        }
    }
}

pub(super) fn of_registers(registers: &Registers) -> u64 {
    if is_wide()
        && let Some(sum) = widely(PowerSum(registers))
    {
        return conclude(sum.powers, sum.zeros);
    }
    by_histogram(registers)
}

pub(super) fn by_histogram(registers: &Registers) -> u64 {
    estimate(&histogram(registers))
}

/// Up to this register the sum of all powers fits into the digits of a double, so that it is the
/// same in whichever order it was added up.
const EXACT_MAX: u8 = 38;

/// What the estimate needs of registers that are all small.
struct Sum {
    /// The sum of 2^-register over those that are not zero.
    powers: f64,
    zeros: u32,
}

struct PowerSum<'a>(&'a Registers);

impl Work for PowerSum<'_> {
    type Output = Option<Sum>;

    #[inline(always)]
    fn run(self) -> Option<Sum> {
        let registers = &self.0.0;
        let mut max = 0;
        for register in registers {
            max = (*register).max(max);
        }
        if max > EXACT_MAX {
            return None;
        }
        let mut total = 0;
        for register in registers {
            total += 1u64 << ((EXACT_MAX - register) & 63);
        }
        let mut zeros = 0;
        for chunk in registers.as_chunks::<128>().0 {
            let mut count = 0;
            for register in chunk {
                count += u8::from(*register == 0);
            }
            zeros += u32::from(count);
        }
        total -= u64::from(zeros) << EXACT_MAX;
        Some(Sum { powers: total as f64 / (1u64 << EXACT_MAX) as f64, zeros })
    }
}

/// Several counts are kept side by side: equal registers follow each other often, and a counter
/// that was just raised would have to be waited for.
fn histogram(registers: &Registers) -> Histogram {
    const SIDE_BY_SIDE: usize = 8;
    let mut counts = [[0u32; 64]; SIDE_BY_SIDE];
    for registers in registers.0.as_chunks::<SIDE_BY_SIDE>().0 {
        for (counts, register) in counts.iter_mut().zip(registers) {
            counts[usize::from(register & 63)] += 1;
        }
    }
    std::array::from_fn(|value| counts.iter().map(|counts| counts[value]).sum())
}

fn estimate(histogram: &Histogram) -> u64 {
    let registers = REGISTERS as f64;
    let longest = RUN_BITS as usize + 1;
    let mut sum = registers * tau((registers - f64::from(histogram[longest])) / registers);
    for count in histogram[1..longest].iter().rev() {
        sum += f64::from(*count);
        sum *= 0.5;
    }
    conclude(sum, histogram[0])
}

/// The estimate, from the sum of all powers and the number of zeros.
fn conclude(mut sum: f64, zeros: u32) -> u64 {
    let registers = REGISTERS as f64;
    sum += registers * sigma(f64::from(zeros) / registers);
    let estimate = ALPHA_INFINITE * registers * registers / sum;
    // Registers that no hash can fill may sum to nothing at all; the cast saturates.
    estimate.round() as u64
}

/// Corrects for registers that are still zero; their share is `x`.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Corrects for registers that can rise no more; the share of the others is `x`.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        let rest = 1.0 - x;
        z -= rest * rest * y;
        if z == before {
            return z / 3.0;
        }
    }
}
