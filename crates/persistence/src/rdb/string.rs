//! Strings, and values that are strings.

use super::error::Result;
use super::input::{Input, Text};
use super::output::Output;
use russet_engine::store::raw::table::NewValue;
use russet_engine::types::string;
use russet_engine::value::Object;
use std::io::{self, Read, Write};

type Put<'p> = &'p mut dyn FnMut(NewValue<'_, Object>);

pub fn read<R: Read>(input: &mut Input<R>, put: Put<'_>) -> Result<()> {
    let mut room = input.take_room();
    match input.text(&mut room)? {
        Text::Int(value) => put(NewValue::Int(value)),
        Text::Bytes(bytes) => put(string::encode_owned(bytes)),
    }
    input.keep_room(room);
    Ok(())
}

/// A value that is a short string and nothing else, as most are: it can be taken from where it is.
pub fn short(value: &[u8]) -> Option<NewValue<'_, Object>> {
    let (&len, text) = value.split_first()?;
    // A first byte below 64 is a length.
    (len < 1 << 6 && text.len() == usize::from(len)).then(|| string::encode(text))
}

pub fn write<W: Write>(output: &mut Output<W>, text: string::Text<'_>) -> io::Result<()> {
    match text {
        string::Text::Int(value) => output.int_string(value),
        text => text.with_bytes(|bytes| output.string(bytes)),
    }
}
