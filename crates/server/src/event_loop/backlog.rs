//! What a client goes on sending while it waits. It is looked at once, as it comes: whole requests
//! are put aside in segments that are not moved again as more comes, and the one under way goes on
//! where its parser stopped, with its long arguments in buffers of their own. So neither the length
//! of what waits nor the length of one request in it makes a read cost more than its bytes.
//!
//! What is found here decides nothing but where bytes are kept. Requests are parsed again when they
//! are run, and an error is answered when its request's turn has come.

use super::input::Input;
use super::stream::Stream;
use russet_protocol::{ProtocolError, RequestLimits};
use std::collections::VecDeque;
use std::io;

/// Whole requests are gathered up to so many bytes; a longer one has a segment of its own. What is
/// run of a segment before its client waits again is cut off, and the rest of it moved.
const SEGMENT_BYTES_MAX: usize = 256 * 1024;
/// Requests that are looked at in one pass.
const SCAN_COMMANDS_MAX: usize = 64;

pub struct Backlog {
    whole: Segments,
    /// Begins where the last whole request ended.
    under_way: Input,
    refused: Option<Refused>,
}

/// The request under way is wrong, by these limits.
struct Refused {
    error: ProtocolError,
    limits: RequestLimits,
    /// What came behind it. By wider limits it may be right.
    behind: Segments,
}

/// The next of what has waited.
pub enum Next {
    /// More waits behind it.
    Whole(Input),
    Last(Input),
    /// Nothing behind it can be read.
    Refused(ProtocolError),
}

impl Backlog {
    /// `under_way` is what came and was not looked at, or not to its end.
    pub fn new(under_way: Input) -> Self {
        Backlog { whole: Segments::default(), under_way, refused: None }
    }

    pub fn len_bytes(&self) -> usize {
        let behind_bytes = self.refused.as_ref().map_or(0, |refused| refused.behind.len_bytes);
        self.whole.len_bytes + self.under_way.len_bytes() + behind_bytes
    }

    pub fn capacity_bytes(&self) -> usize {
        let behind = self.refused.as_ref().map_or(0, |refused| refused.behind.capacity_bytes);
        self.whole.capacity_bytes + self.under_way.capacity_bytes() + behind
    }

    /// As [`Input::read`], behind all that waits. What came is then to be looked at.
    pub fn read(&mut self, stream: &mut Stream, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
        let Some(refused) = &mut self.refused else {
            return self.under_way.read(stream, buffer);
        };
        let count = stream.read(buffer)?;
        refused.behind.append(&buffer[..count]);
        Ok((count, buffer.len()))
    }

    /// Looks at what has come since the last time.
    pub fn scan(&mut self, limits: &RequestLimits) {
        while self.refused.is_none() && self.under_way.long.is_none() && self.scan_once(limits) {}
    }

    /// Puts aside what is whole; whether there is more to look at.
    fn scan_once(&mut self, limits: &RequestLimits) -> bool {
        let Input { bytes, batch, .. } = &mut self.under_way;
        let (mut end, mut commands) = (0, 0);
        let found = loop {
            match batch.parse_batch(&bytes[end..], limits, SCAN_COMMANDS_MAX) {
                Ok(0) => break Ok(false),
                Ok(_) if batch.supplied_bytes() > 0 => break Ok(true),
                Ok(count) => {
                    commands += count;
                    end += batch.consumed();
                }
                Err(error) => break Err(error),
            }
        };
        if found == Ok(true) {
            debug_assert!(end == 0, "what was taken out of a request is of the first");
            self.put_aside_as_found();
            return true;
        }
        // Empty requests with no command before them in this pass need not be kept.
        end += batch.consumed();
        if commands > 0 {
            self.put_aside(end);
        } else {
            bytes.drain(..end);
        }
        if let Err(error) = found {
            let limits = limits.clone();
            self.refused = Some(Refused { error, limits, behind: Segments::default() });
            return false;
        }
        let mut bytes = std::mem::take(&mut self.under_way.bytes);
        let part = self.under_way.begin_long(&bytes);
        let is_taken = part.is_some();
        if let Some(part) = part {
            bytes.drain(part);
        }
        self.under_way.bytes = bytes;
        is_taken
    }

    /// The first request is whole, and its long arguments are with its batch: it stays found.
    fn put_aside_as_found(&mut self) {
        let Input { bytes, batch, .. } = &mut self.under_way;
        batch.truncate(0);
        let rest = bytes.split_off(batch.kept_end());
        bytes.shrink_to_fit();
        let request = std::mem::replace(&mut self.under_way, Input::of_bytes(rest));
        self.whole.push(request);
    }

    fn put_aside(&mut self, end: usize) {
        let bytes = &mut self.under_way.bytes;
        if end <= SEGMENT_BYTES_MAX {
            self.whole.append(&bytes[..end]);
            bytes.drain(..end);
            return;
        }
        let rest = bytes.split_off(end);
        let mut requests = std::mem::replace(bytes, rest);
        requests.shrink_to_fit();
        self.whole.push(Input::of_bytes(requests));
    }

    /// The next of what waits, for a client that may run. By which limits it was looked at does not
    /// matter: if they have changed, what was refused is looked at again with all that came after.
    pub fn next(&mut self, limits: &RequestLimits) -> Next {
        if let Some(input) = self.whole.pop() {
            let is_last = self.under_way.bytes.is_empty() && self.whole.list.is_empty();
            return if is_last { Next::Last(input) } else { Next::Whole(input) };
        }
        let mut input = std::mem::take(&mut self.under_way);
        match self.refused.take() {
            Some(refused) if refused.limits == *limits => return Next::Refused(refused.error),
            Some(refused) => {
                for segment in refused.behind.list {
                    input.bytes.extend_from_slice(&segment.bytes);
                }
            }
            None => {}
        }
        Next::Last(input)
    }
}

/// Input in pieces that are not moved as more comes.
#[derive(Default)]
struct Segments {
    list: VecDeque<Input>,
    len_bytes: usize,
    capacity_bytes: usize,
}

impl Segments {
    /// Adds bytes to the last segment if it has room for them, else as a segment of their own.
    fn append(&mut self, bytes: &[u8]) {
        let is_open = |last: &Input| {
            last.batch.kept_end() == 0 && last.bytes.len() + bytes.len() <= SEGMENT_BYTES_MAX
        };
        match self.list.pop_back() {
            Some(mut last) if is_open(&last) => {
                self.len_bytes -= last.len_bytes();
                self.capacity_bytes -= last.capacity_bytes();
                last.bytes.extend_from_slice(bytes);
                self.push(last);
            }
            last => {
                self.list.extend(last);
                self.push(Input::of_bytes(bytes.to_vec()));
            }
        }
    }

    fn push(&mut self, segment: Input) {
        self.len_bytes += segment.len_bytes();
        self.capacity_bytes += segment.capacity_bytes();
        self.list.push_back(segment);
    }

    fn pop(&mut self) -> Option<Input> {
        let segment = self.list.pop_front()?;
        self.len_bytes -= segment.len_bytes();
        self.capacity_bytes -= segment.capacity_bytes();
        Some(segment)
    }
}

#[cfg(test)]
mod tests;
