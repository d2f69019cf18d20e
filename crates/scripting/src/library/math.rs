//! `math` and `os.clock`. The functions of real numbers are those of the platform, as in Lua.

use super::{Entry, QuickEntry, slot};
use crate::call::{Call, Outcome};
use crate::library::random::{Rand48, whole};
use crate::value::Value;
use std::f64::consts::PI;

const RADIANS_PER_DEGREE: f64 = PI / 180.0;

pub(super) const ENTRIES: &[Entry] = &[
    ("abs", |call| real(call, f64::abs)),
    ("acos", |call| real(call, f64::acos)),
    ("asin", |call| real(call, f64::asin)),
    ("atan", |call| real(call, f64::atan)),
    ("atan2", |call| real_two(call, f64::atan2)),
    ("cos", |call| real(call, f64::cos)),
    ("cosh", |call| real(call, f64::cosh)),
    ("deg", |call| real(call, |number| number / RADIANS_PER_DEGREE)),
    ("exp", |call| real(call, f64::exp)),
    ("fmod", |call| real_two(call, remainder)),
    ("frexp", frexp),
    ("ldexp", ldexp),
    ("log", |call| real(call, f64::ln)),
    ("log10", |call| real(call, f64::log10)),
    ("mod", |call| real_two(call, remainder)),
    ("modf", modf),
    ("pow", |call| real_two(call, f64::powf)),
    ("rad", |call| real(call, |number| number * RADIANS_PER_DEGREE)),
    ("random", random),
    ("randomseed", randomseed),
    ("sin", |call| real(call, f64::sin)),
    ("sinh", |call| real(call, f64::sinh)),
    ("sqrt", |call| real(call, f64::sqrt)),
    ("tan", |call| real(call, f64::tan)),
    ("tanh", |call| real(call, f64::tanh)),
];

/// Those that scripts call most, with their quick forms.
pub(super) const QUICK_ENTRIES: &[QuickEntry] = &[
    ("ceil", |_, args| quick_real(args, ceil), |call| real(call, ceil)),
    ("floor", |_, args| quick_real(args, floor), |call| real(call, floor)),
    (
        "max",
        |_, args| quick_extreme(args, |number, best| number > best),
        |call| extreme(call, |number, best| number > best),
    ),
    (
        "min",
        |_, args| quick_extreme(args, |number, best| number < best),
        |call| extreme(call, |number, best| number < best),
    ),
];

pub(super) const VALUES: &[(&str, Value)] =
    &[("huge", Value::Number(f64::INFINITY)), ("pi", Value::Number(PI))];

pub(super) const OS_ENTRIES: &[Entry] = &[("clock", clock)];

/// The generator of a state. Scripts that set no seed share one stream.
///
/// DIFFERS: a seed holds for the run that set it, not for the scripts that come after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Randomness {
    shared: Rand48,
    seeded: Option<Rand48>,
}

impl Randomness {
    pub(crate) fn end_run(&mut self) {
        self.seeded = None;
    }

    fn stream(&mut self) -> &mut Rand48 {
        self.seeded.as_mut().unwrap_or(&mut self.shared)
    }
}

fn real(call: &mut Call, function: impl Fn(f64) -> f64) -> Outcome {
    let number = call.number(1)?;
    call.give(function(number))
}

fn quick_real(args: &[Value], function: impl Fn(f64) -> f64) -> Option<Value> {
    match args {
        [Value::Number(number)] => Some(Value::Number(function(*number))),
        _ => None,
    }
}

fn quick_extreme(args: &[Value], is_better: impl Fn(f64, f64) -> bool) -> Option<Value> {
    match args {
        [Value::Number(best), Value::Number(number)] => {
            Some(Value::Number(if is_better(*number, *best) { *number } else { *best }))
        }
        _ => None,
    }
}

/// COMPAT: of two bad arguments the second is named.
fn real_two(call: &mut Call, function: impl Fn(f64, f64) -> f64) -> Outcome {
    let second = call.number(2)?;
    let first = call.number(1)?;
    call.give(function(first, second))
}

/// Numbers below this have a fraction or can have one, and fit an integer.
const FRACTION_MAX: f64 = (1u64 << 52) as f64;

/// As `f64::floor`, which is a call into the C library on processors that may lack the instruction.
fn floor(number: f64) -> f64 {
    if number.abs() < FRACTION_MAX {
        let whole = number as i64 as f64;
        let below = if whole > number { whole - 1.0 } else { whole };
        return below.copysign(number);
    }
    number
}

fn ceil(number: f64) -> f64 {
    -floor(-number)
}

fn remainder(number: f64, divisor: f64) -> f64 {
    number % divisor
}

fn extreme(call: &mut Call, is_better: impl Fn(f64, f64) -> bool) -> Outcome {
    let mut best = call.number(1)?;
    for position in 2..=call.arg_count() {
        let number = call.number(position)?;
        if is_better(number, best) {
            best = number;
        }
    }
    call.give(best)
}

fn modf(call: &mut Call) -> Outcome {
    let number = call.number(1)?;
    let whole = number.trunc();
    let fraction = if number.is_infinite() { 0.0 } else { number - whole };
    call.give_two(whole, if number.is_nan() { number } else { fraction.copysign(number) })
}

fn frexp(call: &mut Call) -> Outcome {
    let (fraction, exponent) = split(call.number(1)?);
    call.give_two(fraction, f64::from(exponent))
}

fn ldexp(call: &mut Call) -> Outcome {
    let exponent = slot(call.integer(2)?);
    let number = call.number(1)?;
    call.give(scale(number, exponent))
}

/// A fraction of at least a half and below one, and the power of two that belongs to it.
fn split(number: f64) -> (f64, i32) {
    const EXPONENT_MASK: u64 = 0x7ff << 52;
    if number == 0.0 || !number.is_finite() {
        return (number, 0);
    }
    if !number.is_normal() {
        let (fraction, exponent) = split(number * 2f64.powi(64));
        return (fraction, exponent - 64);
    }
    let bits = number.to_bits();
    let exponent = ((bits & EXPONENT_MASK) >> 52) as i32 - 1022;
    (f64::from_bits(bits & !EXPONENT_MASK | 1022 << 52), exponent)
}

/// `number * 2^exponent`, rounded once.
fn scale(number: f64, exponent: i32) -> f64 {
    const UP: f64 = f64::from_bits((1023 + 1023) << 52);
    // Leaves 53 bits between it and the least number, so that only the last step rounds.
    const DOWN: f64 = f64::from_bits((1023 - 969) << 52);
    let (mut number, mut left) = (number, exponent.clamp(-5000, 5000));
    while left > 1023 {
        number *= UP;
        left -= 1023;
    }
    while left < -1022 {
        number *= DOWN;
        left += 969;
    }
    number * f64::from_bits(((1023 + left) as u64) << 52)
}

fn random(call: &mut Call) -> Outcome {
    // Drawn before the arguments are looked at: a refused call moves the stream too.
    let unit = call.state().library.random.stream().unit();
    match call.arg_count() {
        0 => call.give(unit),
        1 => {
            let high = slot(call.integer(1)?);
            if high < 1 {
                return Err(call.arg_error(1, "interval is empty"));
            }
            call.give(whole(unit, 1..=high))
        }
        2 => {
            let low = slot(call.integer(1)?);
            let high = slot(call.integer(2)?);
            if low > high {
                return Err(call.arg_error(2, "interval is empty"));
            }
            call.give(whole(unit, low..=high))
        }
        _ => Err(call.error("wrong number of arguments")),
    }
}

fn randomseed(call: &mut Call) -> Outcome {
    let seed = slot(call.integer(1)?);
    call.state().library.random.seeded = Some(Rand48::from_seed(seed));
    call.give_none()
}

/// DIFFERS: seconds since the state was made, not processor time of the whole process, which the
/// other threads' work would be part of.
fn clock(call: &mut Call) -> Outcome {
    let micros = call.state().library.clock_micros();
    call.give(micros as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_below_and_above() {
        let edges = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 1e15 + 0.5, -1e15 - 0.5, 1e300];
        for number in edges.into_iter().chain([f64::INFINITY, FRACTION_MAX, -FRACTION_MAX, 5e-324])
        {
            for number in [number, -number] {
                assert_eq!(floor(number).to_bits(), number.floor().to_bits(), "{number}");
                assert_eq!(ceil(number).to_bits(), number.ceil().to_bits(), "{number}");
            }
        }
    }

    #[test]
    fn numbers_are_split_and_put_together() {
        assert_eq!(split(8.0), (0.5, 4));
        assert_eq!(split(-0.75), (-0.75, 0));
        assert_eq!(split(5e-324), (0.5, -1073));
        for number in [1.0, 3.5e300, 1e-310, 5e-324, -f64::MAX, 0.1] {
            let (fraction, exponent) = split(number);
            assert_eq!(scale(fraction, exponent), number);
        }
        assert_eq!(scale(1.0, 2000), f64::INFINITY);
        assert_eq!(scale(1.0, -2000), 0.0);
        assert_eq!(scale(1.5, -1074), 1e-323);
        assert_eq!(scale(0.0, i32::MAX), 0.0);
        assert_eq!(scale(1.0, i32::MIN), 0.0);
    }
}
