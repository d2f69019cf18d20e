//! PFSELFTEST: the registers hold what was put into them, and estimates are as near as they should
//! be, dense and sparse alike. Random each time, unlike the unit tests.

use super::header::HEADER_BYTES;
use super::registers::Registers;
use super::{DENSE_REGISTER_BYTES, REGISTERS, dense, estimate, header, stored};
use russet_base::Random;

const CYCLES: usize = 20;
const ELEMENTS_MAX: u64 = 100_000;
/// How many standard errors an estimate may be off.
const ERRORS_MAX: f64 = 6.0;

/// What is wrong, in words for an operator.
pub fn self_test(random: &mut Random, sparse_bytes_max: usize) -> Result<(), String> {
    for _ in 0..CYCLES {
        test_packing(random)?;
    }
    test_estimates(random.next_u64(), sparse_bytes_max)
}

fn test_packing(random: &mut Random) -> Result<(), String> {
    let registers = Registers(std::array::from_fn(|_| random.next_u64() as u8 & 63));
    let mut packed = [0; DENSE_REGISTER_BYTES];
    dense::pack(&registers, &mut packed);
    let mut unpacked = Registers::default();
    dense::merge_into(&mut unpacked, &packed);
    match (0..REGISTERS).find(|index| registers.0[*index] != unpacked.0[*index]) {
        None => Ok(()),
        Some(index) => Err(format!(
            "TESTFAILED Register {index} should be {} but is {}",
            registers.0[index], unpacked.0[index]
        )),
    }
}

/// Counts ever more elements, in a value that begins sparse and in one that is dense throughout.
fn test_estimates(seed: u64, sparse_bytes_max: usize) -> Result<(), String> {
    let relative_error = 1.04 / (REGISTERS as f64).sqrt();
    let mut dense_bytes = vec![0; HEADER_BYTES + DENSE_REGISTER_BYTES];
    let mut checkpoint = 1;
    for count in 1..=ELEMENTS_MAX {
        let element = (count ^ seed).to_le_bytes();
        dense::set(&mut dense_bytes, HEADER_BYTES, super::hash::Mark::of(&element));
        if count != checkpoint {
            continue;
        }
        let mut registers = Registers::default();
        dense::merge_into(&mut registers, &dense_bytes[HEADER_BYTES..]);
        let estimate = estimate::of_registers(&registers);
        let off = estimate.abs_diff(count);
        if off > (relative_error * ERRORS_MAX * count as f64).ceil() as u64 {
            return Err(format!("TESTFAILED Too big error. card:{count} abserr:{off}"));
        }
        let elements: Vec<[u8; 8]> =
            (1..=count.min(10_000)).map(|n| (n ^ seed).to_le_bytes()).collect();
        let (built, _) = stored::build(elements.iter().map(<[u8; 8]>::as_slice), sparse_bytes_max);
        let sparse = header::parse(&built).and_then(estimate::of_parts);
        if count <= 10_000 && sparse != Ok(estimate) {
            return Err("TESTFAILED dense/sparse disagree".to_owned());
        }
        checkpoint *= 10;
    }
    Ok(())
}
