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

pub fn write<W: Write>(output: &mut Output<W>, text: string::Text<'_>) -> io::Result<()> {
    match text {
        string::Text::Int(value) => output.int_string(value),
        text => text.with_bytes(|bytes| output.string(bytes)),
    }
}
