//! Values of modules, which describe themselves: what is not known can be passed over.

use super::error::Result;
use super::input::Input;
use super::kind;
use super::output::Output;
use std::io::{self, Read, Write};

/// The letters of a type's name, six bits each.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const NAME_LETTERS: usize = 9;
const VERSION_BITS: u32 = 10;

/// A type of a module: its name in nine letters, and the version of its encoding.
pub fn id_of(name: &[u8; NAME_LETTERS], version: u64) -> u64 {
    let digit = |letter: u8| LETTERS.iter().position(|known| *known == letter).unwrap_or(0) as u64;
    name.iter().fold(0, |id, letter| id << 6 | digit(*letter)) << VERSION_BITS | version
}

/// The name and the version of a type.
pub fn name_of(id: u64) -> (String, u64) {
    let letter = |at: usize| {
        let digit = id >> (VERSION_BITS as usize + 6 * (NAME_LETTERS - 1 - at)) & 0x3f;
        char::from(LETTERS[digit as usize])
    };
    ((0..NAME_LETTERS).map(letter).collect(), id & ((1 << VERSION_BITS) - 1))
}

/// Passes over the parts of a value up to its end.
pub fn skip<R: Read>(input: &mut Input<R>) -> Result<()> {
    let mut room = Vec::new();
    loop {
        match input.length()? {
            kind::MODULE_END => return Ok(()),
            kind::MODULE_SIGNED | kind::MODULE_UNSIGNED => drop(input.length()?),
            kind::MODULE_FLOAT => drop(input.array::<4>()?),
            kind::MODULE_DOUBLE => drop(input.double()?),
            kind::MODULE_STRING => drop(input.string(&mut room)?),
            _ => return Err(input.corrupt("a part of a module's value of no known kind")),
        }
    }
}

fn expect<R: Read>(input: &mut Input<R>, part: u64) -> Result<()> {
    if input.length()? == part {
        return Ok(());
    }
    Err(input.corrupt("another part of a module's value than is due"))
}

pub fn unsigned<R: Read>(input: &mut Input<R>) -> Result<u64> {
    expect(input, kind::MODULE_UNSIGNED)?;
    input.length()
}

pub fn double<R: Read>(input: &mut Input<R>) -> Result<f64> {
    expect(input, kind::MODULE_DOUBLE)?;
    input.double()
}

pub fn string<'t, R: Read>(input: &mut Input<R>, room: &'t mut Vec<u8>) -> Result<&'t [u8]> {
    expect(input, kind::MODULE_STRING)?;
    input.string(room)
}

pub fn end<R: Read>(input: &mut Input<R>) -> Result<()> {
    expect(input, kind::MODULE_END)
}

pub fn write_unsigned<W: Write>(output: &mut Output<W>, value: u64) -> io::Result<()> {
    output.length(kind::MODULE_UNSIGNED)?;
    output.length(value)
}

pub fn write_double<W: Write>(output: &mut Output<W>, value: f64) -> io::Result<()> {
    output.length(kind::MODULE_DOUBLE)?;
    output.double(value)
}

pub fn write_string<W: Write>(output: &mut Output<W>, bytes: &[u8]) -> io::Result<()> {
    output.length(kind::MODULE_STRING)?;
    output.string(bytes)
}

pub fn write_end<W: Write>(output: &mut Output<W>) -> io::Result<()> {
    output.length(kind::MODULE_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_are_distinct() {
        let id = id_of(b"MBbloom--", 4);
        assert_eq!(name_of(id), ("MBbloom--".to_owned(), 4));
        assert_eq!(name_of(id_of(b"AAAAAAAAA", 1023)), ("AAAAAAAAA".to_owned(), 1023));
    }
}
