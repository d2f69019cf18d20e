//! How many elements the registers speak of: Otmar Ertl's improved estimator, from how often each
//! register value occurs ("New cardinality estimation algorithms for HyperLogLog sketches", 2017).
//! Every floating-point step is in the order that the peers have, so the last digit agrees too.

use super::header::{Encoding, Parts};
use super::registers::Registers;
use super::{Fault, REGISTERS, RUN_BITS, sparse};

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
            sparse::walk(parts.registers, |_, run| {
                histogram[usize::from(run.value)] += u32::from(run.len);
            })?;
            Ok(estimate(&histogram))
        }
    }
}

pub(super) fn of_registers(registers: &Registers) -> u64 {
    estimate(&histogram(registers))
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
    sum += registers * sigma(f64::from(histogram[0]) / registers);
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
