//! `struct`: values to bytes and back by a format.

use super::format::{to_signed, to_unsigned};
use super::formatting::give_built;
use super::layout::{
    Format, FormatFault, INTEGER_BYTES_MAX, Item, append_integer, append_ordered, ordered,
    read_integer,
};
use super::string::prepare;
use super::{Entry, RESULT_SLOTS_MAX, grow};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::value::{StrRef, Value};

pub(super) const ENTRIES: &[Entry] = &[("pack", pack), ("size", size), ("unpack", unpack)];

/// What an item other than a string may take, padding included.
const ITEM_BYTES_MAX: usize = 2 * INTEGER_BYTES_MAX;
const FORMAT_BYTES_USUAL: usize = 32;

/// A format apart from the heap, which changes while the format is read.
enum FormatText {
    Short([u8; FORMAT_BYTES_USUAL], usize),
    Long(Vec<u8>),
}

impl FormatText {
    fn of(text: &[u8]) -> FormatText {
        let mut short = [0; FORMAT_BYTES_USUAL];
        match short.get_mut(..text.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(text);
                FormatText::Short(short, text.len())
            }
            None => FormatText::Long(text.to_vec()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            FormatText::Short(bytes, len) => &bytes[..*len],
            FormatText::Long(bytes) => bytes,
        }
    }
}

fn malformed(call: &mut Call, fault: &FormatFault) -> Fault {
    call.error(fault.text())
}

fn unknown(call: &mut Call, letter: u8) -> Fault {
    let mut text = b"invalid format option '".to_vec();
    text.extend_from_slice(&[letter, b'\'']);
    call.arg_error(1, text)
}

/// COMPAT: behind the last argument stands a nil.
fn check_given(call: &mut Call, position: usize, expected: &str) -> Result<(), Fault> {
    if call.is_none(position) {
        return Err(call.arg_error(position, format!("{expected} expected, got nil")));
    }
    Ok(())
}

fn number(call: &mut Call, position: usize) -> Result<f64, Fault> {
    check_given(call, position, "number")?;
    call.number(position)
}

/// Carries out options that neither take nor give a value.
fn control(call: &mut Call, format: &mut Format, item: Item) -> Result<(), Fault> {
    match item {
        Item::Unknown(letter) => Err(unknown(call, letter)),
        Item::Control => format.control().map_err(|fault| malformed(call, &fault)),
        _ => Ok(()),
    }
}

fn pack(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let text = FormatText::of(call.bytes(text));
    let mut out = std::mem::take(&mut call.state().library.formatted);
    out.clear();
    pack_all(call, Format::new(text.bytes()), &mut out)?;
    give_built(call, out)
}

fn pack_all(call: &mut Call, mut format: Format, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut position = 2;
    while let Some(item) = format.item().map_err(|fault| malformed(call, &fault))? {
        grow(call, out, ITEM_BYTES_MAX)?;
        out.resize(out.len() + format.padding(item, out.len()), 0);
        let order = format.order;
        match item {
            Item::Integer { bytes, .. } => {
                let number = number(call, position)?;
                let value =
                    if number < 0.0 { to_signed(number) as u64 } else { to_unsigned(number) };
                append_integer(value, bytes, order, out);
            }
            Item::Float => {
                let number = number(call, position)? as f32;
                append_ordered(number.to_le_bytes(), order, out);
            }
            Item::Double => {
                let number = number(call, position)?;
                append_ordered(number.to_le_bytes(), order, out);
            }
            Item::Padding => out.push(0),
            Item::Chars(_) | Item::Terminated => {
                check_given(call, position, "string")?;
                let text = call.string(position)?;
                append_text(call, text, position, item, out)?;
            }
            Item::Control | Item::Unknown(_) => control(call, &mut format, item)?,
        }
        if !matches!(item, Item::Padding | Item::Control | Item::Unknown(_)) {
            position += 1;
        }
    }
    Ok(())
}

/// COMPAT: the message about a short string names the argument behind it.
fn append_text(
    call: &mut Call,
    text: StrRef,
    position: usize,
    item: Item,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let len = call.bytes(text).len();
    let taken = if item.size() == 0 { len } else { item.size() };
    if taken > len {
        return Err(call.arg_error(position + 1, "string too short"));
    }
    grow(call, out, taken + 1)?;
    out.extend_from_slice(&call.bytes(text)[..taken]);
    if item == Item::Terminated {
        out.push(0);
    }
    Ok(())
}

fn size(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let text = FormatText::of(call.bytes(text));
    let mut format = Format::new(text.bytes());
    let mut offset = 0usize;
    while let Some(item) = format.item().map_err(|fault| malformed(call, &fault))? {
        call.charge(1)?;
        offset = offset.wrapping_add(format.padding(item, offset));
        match item {
            Item::Terminated => {
                return Err(call.arg_error(1, "option 's' has no fixed size"));
            }
            Item::Chars(0) => return Err(call.arg_error(1, "option 'c0' has no fixed size")),
            // COMPAT: letters and digits that are no option have no size.
            Item::Unknown(letter) if letter.is_ascii_alphanumeric() => {}
            _ => control(call, &mut format, item)?,
        }
        offset = offset.wrapping_add(item.size());
    }
    call.give(offset as f64)
}

/// What has been read, and how far.
struct Unpacking {
    data: StrRef,
    /// COMPAT: a position far beyond the end may come back to the beginning by its padding.
    offset: usize,
    /// Values that were pushed.
    results: usize,
}

fn unpack(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let data = call.string(2)?;
    let position = call.integer_or(3, 1)?;
    if position == 0 {
        return Err(call.arg_error(3, "offset must be 1 or greater"));
    }
    let text = FormatText::of(call.bytes(text));
    let mut format = Format::new(text.bytes());
    let offset = (position as usize).wrapping_sub(1);
    let mut unpacking = Unpacking { data, offset, results: 0 };
    while let Some(item) = format.item().map_err(|fault| malformed(call, &fault))? {
        call.charge(1)?;
        unpacking.offset = unpacking.offset.wrapping_add(format.padding(item, unpacking.offset));
        unpacking.check(call, item.size())?;
        if call.arg_count() + unpacking.results + 2 > RESULT_SLOTS_MAX {
            return Err(call.error("stack overflow (too many results)"));
        }
        let taken = unpacking.read(call, &mut format, item)?;
        unpacking.offset = unpacking.offset.wrapping_add(taken);
    }
    call.push(Value::Number(unpacking.offset.wrapping_add(1) as i64 as f64))?;
    Ok(unpacking.results + 1)
}

impl Unpacking {
    fn check(&self, call: &mut Call, size: usize) -> Result<(), Fault> {
        let len = call.bytes(self.data).len();
        if size <= len && self.offset <= len - size {
            return Ok(());
        }
        Err(call.arg_error(2, "data string too short"))
    }

    fn push(&mut self, call: &mut Call, value: Value) -> Result<(), Fault> {
        self.results += 1;
        call.push(value)
    }

    /// Reads one item, whose size was checked; gives the bytes that it took.
    fn read(&mut self, call: &mut Call, format: &mut Format, item: Item) -> Result<usize, Fault> {
        let order = format.order;
        let data = &call.bytes(self.data)[self.offset..];
        let value = match item {
            Item::Integer { bytes, is_signed } => read_integer(&data[..bytes], is_signed, order),
            Item::Float => {
                ordered(data, order).map_or(0.0, |bytes| f32::from_le_bytes(bytes).into())
            }
            Item::Double => ordered(data, order).map_or(0.0, f64::from_le_bytes),
            Item::Padding => return Ok(1),
            Item::Chars(count) => return self.read_chars(call, count),
            Item::Terminated => {
                let Some(len) = memchr::memchr(0, data) else {
                    return Err(call.error("unfinished string in data"));
                };
                self.push_text(call, len)?;
                return Ok(len + 1);
            }
            Item::Control | Item::Unknown(_) => {
                control(call, format, item)?;
                return Ok(0);
            }
        };
        self.push(call, Value::Number(value))?;
        Ok(item.size())
    }

    /// `c0` takes its length from the number read before it.
    fn read_chars(&mut self, call: &mut Call, count: usize) -> Result<usize, Fault> {
        let mut count = count;
        if count == 0 {
            let last = if self.results > 0 { call.pop() } else { Value::Nil };
            let Some(len) = call.heap().to_number(last) else {
                return Err(call.error("format 'c0' needs a previous size"));
            };
            self.results -= 1;
            count = to_unsigned(len) as usize;
            self.check(call, count)?;
        }
        self.push_text(call, count)?;
        Ok(count)
    }

    fn push_text(&mut self, call: &mut Call, len: usize) -> Result<(), Fault> {
        prepare(call, len)?;
        let text = call.heap().substring(self.data, self.offset..self.offset + len)?;
        self.push(call, Value::Str(text))
    }
}
