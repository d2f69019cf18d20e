//! The functions of `string` that take a pattern: `find`, `match`, `gmatch`, `gsub`.

use super::number::append_number;
use super::pattern::{Capture, Extent, Matcher, Progress, visible_len};
use super::string::position_from;
use super::{charge_bytes, grow, quick_whole, slot};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::heap::Heap;
use crate::value::{StrRef, Value};
use memchr::memmem::Finder;
use std::ops::Range;

/// Steps of a matcher between two charges.
const STEPS_PER_CHARGE: usize = 1000;
/// Bytes that make a string more than one to be searched.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// What every match of a pattern begins with: where it is not, no attempt is made.
enum Beginning {
    Anything,
    Byte(u8),
    /// All of the pattern, which stands for itself.
    Whole(Box<Finder<'static>>),
}

impl Beginning {
    fn of(pattern: &[u8]) -> Beginning {
        match pattern {
            [_, b'*' | b'?' | b'-', ..] => Beginning::Anything,
            [first, ..] if is_plain(first) => Beginning::Byte(*first),
            _ => Beginning::Anything,
        }
    }

    /// The same for a search of many matches, for which more can be prepared.
    fn of_many(pattern: &[u8]) -> Beginning {
        if pattern.is_empty() || !pattern.iter().all(is_plain) {
            return Beginning::of(pattern);
        }
        Beginning::Whole(Box::new(Finder::new(pattern).into_owned()))
    }
}

/// Whether a byte of a pattern stands for itself, unless a repetition follows.
fn is_plain(byte: &u8) -> bool {
    !SPECIALS.contains(byte) && !matches!(byte, b')' | 0)
}

/// A text that is searched, and with what.
struct Search {
    text: StrRef,
    pattern: StrRef,
    /// How much of the pattern counts.
    pattern_len: usize,
    /// Whether the pattern begins with `^`, which then is no part of it.
    is_anchored: bool,
    beginning: Beginning,
    /// Lent by the state, which keeps one for the next search.
    matcher: Box<Matcher>,
}

impl Search {
    fn new(call: &mut Call, text: StrRef, pattern: StrRef) -> Search {
        let is_anchored = call.bytes(pattern).first() == Some(&b'^');
        let beginning = match is_anchored {
            true => Beginning::Anything,
            false => Beginning::of(call.bytes(pattern)),
        };
        let pattern_len = visible_len(call.bytes(pattern));
        let matcher = call.state().library.matcher.take().unwrap_or_default();
        Search { text, pattern, pattern_len, is_anchored, beginning, matcher }
    }

    /// Ends a search that went well.
    fn end(self, call: &mut Call) {
        if self.matcher.is_small() {
            call.state().library.matcher = Some(self.matcher);
        }
    }

    /// Where a match that begins at `start` ends.
    fn match_at(&mut self, call: &mut Call, start: usize) -> Result<Option<usize>, Fault> {
        self.matcher.begin(start);
        loop {
            let mut steps = STEPS_PER_CHARGE;
            let pattern = &call.bytes(self.pattern)[..self.pattern_len];
            let pattern = &pattern[usize::from(self.is_anchored)..];
            let outcome = self.matcher.resume(call.bytes(self.text), pattern, &mut steps);
            call.charge(STEPS_PER_CHARGE - steps)?;
            match outcome {
                Ok(Progress::Matched(end)) => return Ok(Some(end)),
                Ok(Progress::Failed) => return Ok(None),
                Ok(Progress::Paused) => {}
                Err(text) => return Err(call.error(text)),
            }
        }
    }

    /// The first match that begins at `start` or later.
    fn first(&mut self, call: &mut Call, start: usize) -> Result<Option<Range<usize>>, Fault> {
        let len = call.bytes(self.text).len();
        let mut at = start;
        while at <= len {
            at = match &self.beginning {
                Beginning::Anything => at,
                Beginning::Byte(first) => {
                    let found = memchr::memchr(*first, &call.bytes(self.text)[at..]);
                    charge_bytes(call, found.unwrap_or(len - at))?;
                    let Some(found) = found else { return Ok(None) };
                    at + found
                }
                Beginning::Whole(whole) => {
                    self.matcher.begin(at);
                    let found = whole.find(&call.bytes(self.text)[at..]);
                    charge_bytes(call, found.unwrap_or(len - at))?;
                    let found = found.map(|found| at + found);
                    return Ok(found.map(|found| found..found + whole.needle().len()));
                }
            };
            if let Some(end) = self.match_at(call, at)? {
                return Ok(Some(at..end));
            }
            if self.is_anchored {
                break;
            }
            at += 1;
        }
        Ok(None)
    }

    /// How many values a match gives: its captures, or itself if it has none.
    fn value_count(&self) -> usize {
        self.matcher.captures().len().max(1)
    }

    /// A capture as a value; the first of none is the match itself.
    fn value(&self, call: &mut Call, index: usize, found: &Range<usize>) -> Result<Value, Fault> {
        match self.captured(call, index, found)? {
            Captured::Position(position) => Ok(Value::Number(position as f64)),
            Captured::Bytes(range) => call.heap().substring(self.text, range).map(Value::Str),
        }
    }

    fn captured(
        &self,
        call: &mut Call,
        index: usize,
        found: &Range<usize>,
    ) -> Result<Captured, Fault> {
        match self.matcher.captures().get(index) {
            None if index == 0 => Ok(Captured::Bytes(found.clone())),
            None => Err(call.error("invalid capture index")),
            Some(Capture { extent: Extent::Open, .. }) => Err(call.error("unfinished capture")),
            Some(Capture { start, extent: Extent::Position }) => Ok(Captured::Position(start + 1)),
            Some(Capture { start, extent: Extent::Bytes(len) }) => {
                Ok(Captured::Bytes(*start..start + len))
            }
        }
    }

    fn push_values(&self, call: &mut Call, found: &Range<usize>) -> Outcome {
        let count = self.value_count();
        for index in 0..count {
            let value = self.value(call, index, found)?;
            call.push(value)?;
        }
        Ok(count)
    }
}

/// What a capture stands for.
enum Captured {
    Position(usize),
    Bytes(Range<usize>),
}

/// The position, counted from 0, at which a search begins.
fn start_of(call: &mut Call, text: StrRef) -> Result<usize, Fault> {
    let start = call.integer_or(3, 1)?;
    let len = call.bytes(text).len();
    Ok(position_from(start, len).saturating_sub(1).min(len))
}

pub(super) fn find(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let pattern = call.string(2)?;
    let start = start_of(call, text)?;
    if call.arg(4).is_true() || !has_specials(call.bytes(pattern)) {
        return find_plain(call, text, pattern, start);
    }
    let mut search = Search::new(call, text, pattern);
    let mut count = 0;
    if let Some(found) = search.first(call, start)? {
        call.push(Value::Number((found.start + 1) as f64))?;
        call.push(Value::Number(found.end as f64))?;
        count = 2;
        if !search.matcher.captures().is_empty() {
            count += search.push_values(call, &found)?;
        }
    }
    search.end(call);
    if count == 0 { call.give(Value::Nil) } else { Ok(count) }
}

/// The bytes that the quick form searches at most: more is work that counts.
const QUICK_BYTES_MAX: usize = 1024;

/// Where a text that is no pattern begins in another; what comes behind it is not asked for.
pub(super) fn quick_find(heap: &Heap, args: &[Value]) -> Option<Value> {
    let (Value::Str(text), Value::Str(wanted)) = (*args.first()?, *args.get(1)?) else {
        return None;
    };
    let start = match args.get(2) {
        None => 1,
        Some(Value::Number(start)) => quick_whole(*start)?,
        Some(_) => return None,
    };
    let (text, wanted) = (heap.bytes(text), heap.bytes(wanted));
    let start = position_from(start, text.len()).saturating_sub(1).min(text.len());
    let is_plain = args.get(3).is_some_and(|plain| plain.is_true());
    if text.len() - start > QUICK_BYTES_MAX || !is_plain && has_specials(wanted) {
        return None;
    }
    let found = find_bytes(&text[start..], wanted);
    Some(found.map_or(Value::Nil, |found| Value::Number((start + found + 1) as f64)))
}

/// COMPAT: what stands behind a zero byte does not make a pattern of a string.
fn has_specials(pattern: &[u8]) -> bool {
    let visible = pattern.iter().take_while(|byte| **byte != 0);
    visible.into_iter().any(|byte| SPECIALS.contains(byte))
}

/// Places that are looked at before a search is prepared that takes linear time for any text.
const CANDIDATES: usize = 4;

fn find_bytes(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let Some(first) = wanted.first() else { return Some(0) };
    let mut at = 0;
    for _ in 0..CANDIDATES {
        at += memchr::memchr(*first, &text[at..])?;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    memchr::memmem::find(&text[at..], wanted).map(|found| at + found)
}

fn find_plain(call: &mut Call, text: StrRef, wanted: StrRef, start: usize) -> Outcome {
    let len = call.bytes(text).len();
    charge_bytes(call, len - start)?;
    let found = find_bytes(&call.bytes(text)[start..], call.bytes(wanted));
    let Some(found) = found else { return call.give(Value::Nil) };
    let first = start + found;
    let last = first + call.bytes(wanted).len();
    call.give_two((first + 1) as f64, last as f64)
}

pub(super) fn match_first(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let pattern = call.string(2)?;
    let start = start_of(call, text)?;
    let mut search = Search::new(call, text, pattern);
    let outcome = match search.first(call, start)? {
        Some(found) => search.push_values(call, &found),
        None => call.give(Value::Nil),
    };
    search.end(call);
    outcome
}

pub(super) fn gmatch(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let pattern = call.string(2)?;
    let kept = [Value::Str(text), Value::Str(pattern), Value::Number(0.0)];
    let iterator = call.heap().native(next_match, &kept)?;
    call.give(Value::Native(iterator))
}

/// The iterator of `gmatch`. It keeps the text, the pattern, and where to go on.
///
/// COMPAT: `^` at the beginning is a byte like any other here.
fn next_match(call: &mut Call) -> Outcome {
    let (Value::Str(text), Value::Str(pattern), Value::Number(start)) =
        (call.upvalue(0), call.upvalue(1), call.upvalue(2))
    else {
        return call.give_none();
    };
    let mut search = Search::new(call, text, pattern);
    search.is_anchored = false;
    let mut count = 0;
    if let Some(found) = search.first(call, start as usize)? {
        let next = if found.is_empty() { found.end + 1 } else { found.end };
        call.set_upvalue(2, Value::Number(next as f64));
        count = search.push_values(call, &found)?;
    }
    search.end(call);
    Ok(count)
}

pub(super) fn gsub(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let pattern = call.string(2)?;
    let len = call.bytes(text).len();
    let most = slot(call.integer_or(4, len as i64 + 1)?);
    let replacement = match call.arg(3) {
        Value::Number(_) | Value::Str(_) => Value::Str(call.string(3)?),
        value @ (Value::Function(_) | Value::Native(_) | Value::Table(_)) => value,
        _ => return Err(call.arg_error(3, "string/function/table expected")),
    };
    // An argument that was a number is a string that no stack shows.
    call.hold(Value::Str(text));
    call.hold(Value::Str(pattern));
    let mut search = Search::new(call, text, pattern);
    if !search.is_anchored {
        search.beginning = Beginning::of_many(call.bytes(pattern));
    }
    let mut out = Vec::new();
    let (mut at, mut count) = (0, 0);
    while count < most {
        let Some(found) = search.first(call, at)? else { break };
        if out.capacity() == 0 {
            grow(call, &mut out, len)?;
        }
        append_source(call, text, at..found.start, &mut out)?;
        count += 1;
        append_replacement(call, &search, found.clone(), replacement, &mut out)?;
        at = found.end;
        if found.is_empty() {
            if at == len {
                break;
            }
            append_source(call, text, at..at + 1, &mut out)?;
            at += 1;
        }
        if search.is_anchored {
            break;
        }
    }
    search.end(call);
    if count == 0 {
        return call.give_two(text, 0.0);
    }
    grow(call, &mut out, len - at)?;
    out.extend_from_slice(&call.bytes(text)[at..]);
    let result = call.heap().string_owned(out)?;
    call.give_two(result, f64::from(count))
}

fn append_replacement(
    call: &mut Call,
    search: &Search,
    found: Range<usize>,
    replacement: Value,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let value = match replacement {
        Value::Str(template) => return append_template(call, search, found, template, out),
        Value::Table(_) => {
            let key = search.value(call, 0, &found)?;
            call.index(replacement, key)?
        }
        function => {
            let mut args = Vec::with_capacity(search.value_count());
            for index in 0..search.value_count() {
                args.push(search.value(call, index, &found)?);
            }
            call.call(function, &args)?
        }
    };
    match value {
        Value::Nil | Value::Bool(false) => append_source(call, search.text, found, out),
        Value::Str(text) => {
            let len = call.bytes(text).len();
            append_source(call, text, 0..len, out)
        }
        Value::Number(number) => {
            append_number(number, out);
            Ok(())
        }
        other => {
            let text = format!("invalid replacement value (a {})", other.type_name());
            Err(call.error(text))
        }
    }
}

/// Adds a part of a string, if there is room for it.
fn append_source(
    call: &mut Call,
    text: StrRef,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    grow(call, out, range.len())?;
    out.extend_from_slice(&call.bytes(text)[range]);
    Ok(())
}

/// Adds a replacement in which `%1` stands for a capture and `%0` for the match.
fn append_template(
    call: &mut Call,
    search: &Search,
    found: Range<usize>,
    template: StrRef,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let len = call.bytes(template).len();
    grow(call, out, len)?;
    let mut at = 0;
    while at < len {
        let rest = &call.bytes(template)[at..];
        let plain = memchr::memchr(b'%', rest).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..plain]);
        let directive = rest.get(plain + 1).copied();
        at += plain + 2;
        match directive {
            _ if at - 2 == len => break,
            Some(b'0') => append_source(call, search.text, found.clone(), out)?,
            Some(digit @ b'1'..=b'9') => {
                match search.captured(call, usize::from(digit - b'1'), &found)? {
                    Captured::Position(position) => append_number(position as f64, out),
                    Captured::Bytes(range) => append_source(call, search.text, range, out)?,
                }
            }
            // COMPAT: behind a last `%` stands the zero byte that ends every string of C.
            other => out.push(other.unwrap_or(0)),
        }
    }
    Ok(())
}
