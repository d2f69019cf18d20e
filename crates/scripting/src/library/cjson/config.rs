//! The settings of `cjson`, and the functions that show and change them.
//!
//! DIFFERS: what a script sets on the global `cjson` holds for that run. A table that `cjson.new`
//! gave keeps its settings as long as it lives.

use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::library::slot;
use crate::value::{TableRef, Value};

/// What becomes of Infinity and NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OddNumbers {
    Refused,
    Written,
    Null,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub sparse_to_object: bool,
    pub sparse_ratio: i32,
    pub sparse_safe: i32,
    pub encode_depth_max: i32,
    pub decode_depth_max: i32,
    pub encode_odd_numbers: OddNumbers,
    pub decode_odd_numbers: bool,
    /// Shown and set, and otherwise without effect: no buffer outlives a call.
    pub keeps_buffer: bool,
    pub number_digits: i32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            sparse_to_object: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            encode_odd_numbers: OddNumbers::Refused,
            decode_odd_numbers: true,
            keeps_buffer: true,
            number_digits: 14,
        }
    }
}

impl Config {
    const FIELDS: usize = 9;

    fn to_numbers(self) -> [i32; Config::FIELDS] {
        [
            i32::from(self.sparse_to_object),
            self.sparse_ratio,
            self.sparse_safe,
            self.encode_depth_max,
            self.decode_depth_max,
            self.encode_odd_numbers as i32,
            i32::from(self.decode_odd_numbers),
            i32::from(self.keeps_buffer),
            self.number_digits,
        ]
    }

    fn from_numbers(numbers: [i32; Config::FIELDS]) -> Config {
        Config {
            sparse_to_object: numbers[0] != 0,
            sparse_ratio: numbers[1],
            sparse_safe: numbers[2],
            encode_depth_max: numbers[3],
            decode_depth_max: numbers[4],
            encode_odd_numbers: match numbers[5] {
                0 => OddNumbers::Refused,
                1 => OddNumbers::Written,
                _ => OddNumbers::Null,
            },
            decode_odd_numbers: numbers[6] != 0,
            keeps_buffer: numbers[7] != 0,
            number_digits: numbers[8],
        }
    }
}

/// The settings of the running function: those of the table it belongs to.
pub(super) fn current(call: &mut Call) -> Config {
    let Value::Table(own) = call.upvalue(0) else { return call.state().library.json };
    let mut numbers = [0; Config::FIELDS];
    for (index, number) in numbers.iter_mut().enumerate() {
        if let Value::Number(kept) = call.heap().element(own, index + 1) {
            *number = kept as i32;
        }
    }
    Config::from_numbers(numbers)
}

/// Writes settings into a table that scripts cannot reach.
pub(super) fn store(call: &mut Call, own: TableRef, config: &Config) -> Result<(), Fault> {
    for (index, number) in config.to_numbers().into_iter().enumerate() {
        call.heap().set_index(own, index + 1, Value::Number(f64::from(number)))?;
    }
    Ok(())
}

fn change(call: &mut Call, config: &Config) -> Result<(), Fault> {
    match call.upvalue(0) {
        Value::Table(own) => store(call, own, config),
        _ => {
            call.state().library.json = *config;
            Ok(())
        }
    }
}

fn begin(call: &mut Call, arguments_max: usize) -> Result<Config, Fault> {
    if call.arg_count() > arguments_max {
        return Err(call.arg_error(arguments_max + 1, "found too many arguments"));
    }
    Ok(current(call))
}

/// COMPAT: the message names the first argument, whichever it is about.
fn integer(
    call: &mut Call,
    position: usize,
    setting: &mut i32,
    (least, most): (i32, i32),
) -> Result<(), Fault> {
    if !call.is_none_or_nil(position) {
        let value = slot(call.integer(position)?);
        if !(least..=most).contains(&value) {
            let text = format!("expected integer between {least} and {most}");
            return Err(call.arg_error(1, text));
        }
        *setting = value;
    }
    Ok(())
}

/// Which of the choices the argument is; `true` is the second and `false` the first.
fn choice(call: &mut Call, position: usize, choices: &[&str]) -> Result<Option<usize>, Fault> {
    match call.arg(position) {
        Value::Nil => Ok(None),
        Value::Bool(value) => Ok(Some(usize::from(value))),
        _ => {
            let string = call.string(position)?;
            let given = call.bytes(string).to_vec();
            // Compared as strings of C, which end at a zero byte.
            let visible = given.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
            if let Some(found) = choices.iter().position(|choice| choice.as_bytes() == visible) {
                return Ok(Some(found));
            }
            let mut text = b"invalid option '".to_vec();
            text.extend_from_slice(&visible);
            text.push(b'\'');
            Err(call.arg_error(position, text))
        }
    }
}

fn flag(call: &mut Call, position: usize, setting: &mut bool) -> Result<(), Fault> {
    if let Some(index) = choice(call, position, &["off", "on"])? {
        *setting = index == 1;
    }
    Ok(())
}

pub(super) fn encode_sparse_array(call: &mut Call) -> Outcome {
    let mut config = begin(call, 3)?;
    // What was read before a refusal holds.
    flag(call, 1, &mut config.sparse_to_object)?;
    change(call, &config)?;
    integer(call, 2, &mut config.sparse_ratio, (0, i32::MAX))?;
    change(call, &config)?;
    integer(call, 3, &mut config.sparse_safe, (0, i32::MAX))?;
    change(call, &config)?;
    call.push(Value::Bool(config.sparse_to_object))?;
    call.push(Value::Number(f64::from(config.sparse_ratio)))?;
    call.push(Value::Number(f64::from(config.sparse_safe)))?;
    Ok(3)
}

pub(super) fn encode_max_depth(call: &mut Call) -> Outcome {
    let mut config = begin(call, 1)?;
    integer(call, 1, &mut config.encode_depth_max, (1, i32::MAX))?;
    change(call, &config)?;
    call.give(f64::from(config.encode_depth_max))
}

pub(super) fn decode_max_depth(call: &mut Call) -> Outcome {
    let mut config = begin(call, 1)?;
    integer(call, 1, &mut config.decode_depth_max, (1, i32::MAX))?;
    change(call, &config)?;
    call.give(f64::from(config.decode_depth_max))
}

pub(super) fn encode_number_precision(call: &mut Call) -> Outcome {
    let mut config = begin(call, 1)?;
    integer(call, 1, &mut config.number_digits, (1, 14))?;
    change(call, &config)?;
    call.give(f64::from(config.number_digits))
}

pub(super) fn encode_keep_buffer(call: &mut Call) -> Outcome {
    let mut config = begin(call, 1)?;
    flag(call, 1, &mut config.keeps_buffer)?;
    change(call, &config)?;
    call.give(config.keeps_buffer)
}

pub(super) fn encode_invalid_numbers(call: &mut Call) -> Outcome {
    let mut config = begin(call, 1)?;
    if let Some(index) = choice(call, 1, &["off", "on", "null"])? {
        config.encode_odd_numbers =
            [OddNumbers::Refused, OddNumbers::Written, OddNumbers::Null][index];
        change(call, &config)?;
    }
    match config.encode_odd_numbers {
        OddNumbers::Refused => call.give(false),
        OddNumbers::Written => call.give(true),
        OddNumbers::Null => call.give_bytes(b"null"),
    }
}

pub(super) fn decode_invalid_numbers(call: &mut Call) -> Outcome {
    let mut config = begin(call, 1)?;
    flag(call, 1, &mut config.decode_odd_numbers)?;
    change(call, &config)?;
    call.give(config.decode_odd_numbers)
}
