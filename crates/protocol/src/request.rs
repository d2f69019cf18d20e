//! Requests: a parser that survives partial reads, and one that looks ahead over a pipeline.
//! Args stay where they arrived; nothing is scanned twice. Running them is the caller's business.

mod error;
mod inline;
#[cfg(test)]
mod long_tests;
mod scan;
mod short;
#[cfg(test)]
mod tests;

use russet_base::limits::{ARGUMENTS_MAX, BULK_BYTES_MAX, INLINE_BYTES_MAX, LONG_STRING_BYTES};
use russet_base::shared::shrink_beyond;
use russet_base::{Args, SharedArgs, SharedBytes, Span};

pub use error::ProtocolError;
use scan::{Outcome, Progress};

/// Most arguments that a client which has yet to authenticate may announce.
pub const UNAUTHENTICATED_ARGUMENTS_MAX: usize = 10;
/// Longest bulk string that a client which has yet to authenticate may announce.
pub const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 * 1024;
/// Spans kept between requests; a longer table, left by a huge command, is given back.
const SPANS_KEPT_MAX: usize = 512;
/// Scratch for unquoted inline arguments kept between requests.
const SCRATCH_KEPT_BYTES_MAX: usize = 1024;

/// What a client may send. A request is also kept under 4 GiB, since spans are 32 bits wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    pub bulk_bytes_max: usize,
    pub arguments_max: usize,
    /// Longest inline request, and longest header line of a multibulk request.
    pub inline_bytes_max: usize,
    /// Clients that have yet to authenticate are held to much smaller requests.
    pub authenticated: bool,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            bulk_bytes_max: BULK_BYTES_MAX,
            arguments_max: ARGUMENTS_MAX,
            inline_bytes_max: INLINE_BYTES_MAX,
            authenticated: true,
        }
    }
}

/// What one call of [`RequestParser::parse`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A whole command: its arguments are [`RequestParser::args`].
    Command { consumed: usize },
    /// A blank line or an empty multibulk: it gets no reply.
    Empty { consumed: usize },
    /// More bytes are wanted; `needed` is the least length of the buffer that can get further.
    Incomplete { needed: usize },
}

/// Parses one request at a time.
#[derive(Debug, Default)]
pub struct RequestParser {
    progress: Progress,
    spans: Vec<Span>,
    scratch: Vec<u8>,
    in_scratch: bool,
}

impl RequestParser {
    pub fn new() -> Self {
        RequestParser::default()
    }

    /// `buffer` begins where the request in progress begins: bytes are discarded only between
    /// requests. After an error the stream has lost its framing, and the connection must close.
    pub fn parse(&mut self, buffer: &[u8], limits: &RequestLimits) -> Result<Step, ProtocolError> {
        if !self.progress.is_under_way() {
            reset(&mut self.spans, SPANS_KEPT_MAX);
            reset(&mut self.scratch, SCRATCH_KEPT_BYTES_MAX);
        }
        let progress = &mut self.progress;
        match progress.advance(buffer, limits, &mut self.spans, &mut self.scratch)? {
            Outcome::Command { consumed, in_scratch } => {
                self.in_scratch = in_scratch;
                Ok(Step::Command { consumed })
            }
            Outcome::Empty { consumed } => Ok(Step::Empty { consumed }),
            Outcome::Incomplete { needed } => Ok(Step::Incomplete { needed }),
        }
    }

    /// The arguments of the command that [`RequestParser::parse`] has just found in this `buffer`.
    pub fn args<'a>(&'a self, buffer: &'a [u8]) -> Args<'a> {
        Args::new(if self.in_scratch { &self.scratch } else { buffer }, &self.spans)
    }
}

/// One command of a batch: where it lies, and where its spans end.
#[derive(Clone, Copy, Debug)]
struct Found {
    start: usize,
    end: usize,
    spans_end: usize,
    home: Home,
}

/// What the spans of a command are spans of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Its part of the buffer, which is RESP as this server would write it.
    Resp,
    /// Its part of the buffer, whatever stands between the arguments.
    Buffer,
    Scratch,
}

/// Parses the complete commands of a pipeline in one pass, so that the caller can look ahead
/// (fetch what the next commands will touch) before it runs them.
///
/// Use: [`Batch::parse_batch`], run some or all of the commands, discard [`Batch::consumed`] bytes
/// from the front of the buffer, read more, repeat.
///
/// A long argument that is not here in whole need not go through the buffer: see
/// [`Batch::long_arg`]. The command that has it comes alone.
#[derive(Debug, Default)]
pub struct Batch {
    progress: Progress,
    /// Spans of one command after another, each relative to the start of its own command, and at
    /// the end those of the request in progress.
    spans: Vec<Span>,
    scratch: Vec<u8>,
    found: Vec<Found>,
    /// Long arguments of the first command, or of the request in progress.
    shared: SharedArgs,
    /// The first command was found before and must run: with a long argument, it can't be parsed
    /// anew.
    has_kept: bool,
    consumed: usize,
    needed: usize,
}

/// A long argument of which the buffer has only a part, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongArg {
    /// Where its bytes begin, counted from [`Batch::consumed`].
    pub start: usize,
    pub len: usize,
}

impl Batch {
    pub fn new() -> Self {
        Batch::default()
    }

    /// Finds up to `commands_max` complete commands and returns how many there are; 0 when more
    /// bytes are wanted. `buffer` begins where [`Batch::consumed`] of the call before ended.
    ///
    /// An error is reported only by the call that finds no command before it: the commands before
    /// it run first, and if one of them authenticates the client, the wider limits hold. Until then
    /// what was understood before the error is not looked at again, and long arguments are kept:
    /// the call may be repeated, with what follows [`Batch::consumed`] as after any other.
    pub fn parse_batch(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
        commands_max: usize,
    ) -> Result<usize, ProtocolError> {
        self.begin();
        let takes_short_way = short::is_within(limits);
        let mut start = self.found.last().map_or(0, |kept| kept.end);
        loop {
            // Once it has run, nobody but its value is to have a long argument.
            if !self.shared.is_empty() && !self.found.is_empty() {
                break;
            }
            if takes_short_way && !self.progress.is_under_way() {
                start = self.parse_short(buffer, start, commands_max);
            }
            if self.found.len() >= commands_max || start >= buffer.len() {
                break;
            }
            match self.parse_careful(&buffer[start..], start, limits) {
                Ok(Some(consumed)) => start += consumed,
                Ok(None) => break,
                Err(error) => {
                    self.consumed = start;
                    return Err(error);
                }
            }
        }
        self.consumed = start;
        Ok(self.found.len())
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The arguments of a command; `buffer` is the one that was parsed.
    #[inline]
    pub fn command<'a>(&'a self, index: usize, buffer: &'a [u8]) -> Args<'a> {
        let mut rest = self.commands(index, buffer);
        rest.next().expect("the caller counts to what `len` says")
    }

    /// The arguments of the commands from one on, in order; `buffer` is the one that was parsed.
    #[inline]
    pub fn commands<'a>(
        &'a self,
        from: usize,
        buffer: &'a [u8],
    ) -> impl Iterator<Item = Args<'a>> + Clone + 'a {
        let before = from.checked_sub(1).and_then(|last| self.found.get(last));
        let mut spans_start = before.map_or(0, |before| before.spans_end);
        self.found.get(from..).unwrap_or_default().iter().map(move |found| {
            let spans = &self.spans[spans_start..found.spans_end];
            spans_start = found.spans_end;
            match found.home {
                Home::Resp => Args::of_resp(&buffer[found.start..found.end], spans),
                Home::Buffer => {
                    Args::with_shared(&buffer[found.start..found.end], spans, &self.shared)
                }
                Home::Scratch => Args::new(&self.scratch, spans),
            }
        })
    }

    /// The argument that the request in progress is cut off in, if it is long. Its bytes may be
    /// taken out of the buffer, read apart, and handed to [`Batch::supply`].
    pub fn long_arg(&self) -> Option<LongArg> {
        let (start, len) = self.progress.bulk()?;
        (len >= LONG_STRING_BYTES).then_some(LongArg { start, len })
    }

    /// The bytes of [`Batch::long_arg`]. In the buffer its line end follows its header from now on.
    pub fn supply(&mut self, bytes: SharedBytes) {
        self.progress.skip_bulk();
        let span = self.shared.push(bytes);
        self.spans.push(span);
    }

    /// Bytes of the long arguments that were supplied and not run yet.
    pub fn supplied_bytes(&self) -> usize {
        self.shared.bytes_total()
    }

    /// Where the command ends that was found, and must run, although it was given up: with a long
    /// argument, it can't be parsed anew. 0 if there is none.
    pub fn kept_end(&self) -> usize {
        if self.has_kept { self.end(0) } else { 0 }
    }

    /// Where a command ends in the buffer: the bytes to discard for a caller that stops there.
    pub fn end(&self, index: usize) -> usize {
        self.found[index].end
    }

    /// Bytes of the buffer that the commands, and the empty requests between them, take up.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// The least length, counted from [`Batch::consumed`], at which the request in progress can get
    /// further; 0 when none is in progress. It tells how much room a big bulk string wants.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Gives up the commands after the first `commands`: [`Batch::consumed`] is then where the last
    /// one kept ends, and the rest is parsed anew. For a client that blocks or closes half-way.
    pub fn truncate(&mut self, commands: usize) {
        if commands == 0 && !self.shared.is_empty() && !self.found.is_empty() {
            self.has_kept = true;
        } else if commands > 0 {
            self.shared.clear();
        }
        if commands >= self.found.len() {
            return;
        }
        self.consumed = commands.checked_sub(1).map_or(0, |last| self.found[last].end);
        self.found.truncate(commands.max(usize::from(self.has_kept)));
        self.forget_request_under_way();
    }

    /// Forgets what was run if that takes up much. For a client that may send nothing for long.
    #[inline]
    pub fn shrink(&mut self) {
        let is_large = self.spans.capacity() > SPANS_KEPT_MAX;
        if is_large && !self.has_kept && !self.progress.is_under_way() {
            self.found.clear();
            reset(&mut self.spans, SPANS_KEPT_MAX);
        }
    }

    /// As many whole requests of the common shape as follow one another; returns where they end.
    /// A function of its own, so that its few variables stay in registers.
    #[inline(never)]
    fn parse_short(&mut self, buffer: &[u8], start: usize, commands_max: usize) -> usize {
        let mut start = start;
        while self.found.len() < commands_max
            && let Some(consumed) = short::command(&buffer[start..], &mut self.spans)
        {
            let (end, spans_end) = (start + consumed, self.spans.len());
            self.found.push(Found { start, end, spans_end, home: Home::Resp });
            start = end;
        }
        start
    }

    /// One request the long way: it may be cut short, inline, or wrong. Returns the bytes it takes
    /// up, or `None` if no other can be looked at after it in this batch.
    #[inline(never)]
    fn parse_careful(
        &mut self,
        request: &[u8],
        start: usize,
        limits: &RequestLimits,
    ) -> Result<Option<usize>, ProtocolError> {
        match self.progress.advance(request, limits, &mut self.spans, &mut self.scratch) {
            Ok(Outcome::Command { consumed, in_scratch }) => {
                let (end, spans_end) = (start + consumed, self.spans.len());
                let home = if in_scratch { Home::Scratch } else { Home::Buffer };
                self.found.push(Found { start, end, spans_end, home });
                Ok(Some(consumed))
            }
            Ok(Outcome::Empty { consumed }) => Ok(Some(consumed)),
            Ok(Outcome::Incomplete { needed }) => {
                self.needed = needed;
                Ok(None)
            }
            Err(error) if self.found.is_empty() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Drops the batch before and moves what it had of the request in progress to the front.
    fn begin(&mut self) {
        self.consumed = 0;
        self.needed = 0;
        if std::mem::take(&mut self.has_kept) {
            return;
        }
        let spans_done = self.found.last().map_or(0, |found| found.spans_end);
        self.found.clear();
        if self.progress.is_under_way() {
            self.spans.drain(..spans_done);
        } else {
            reset(&mut self.spans, SPANS_KEPT_MAX);
            self.shared.clear();
        }
        // An inline request is split only once its line is whole, so a request in progress has
        // nothing in the scratch.
        reset(&mut self.scratch, SCRATCH_KEPT_BYTES_MAX);
    }

    fn forget_request_under_way(&mut self) {
        self.progress = Progress::default();
        self.needed = 0;
        self.spans.truncate(self.found.last().map_or(0, |found| found.spans_end));
    }
}

fn reset<T>(list: &mut Vec<T>, kept_max: usize) {
    list.clear();
    shrink_beyond(list, kept_max);
}

/// A request as a client sends it: a multibulk of `args`.
pub fn encode<W: AsRef<[u8]>>(args: &[W]) -> Vec<u8> {
    let bytes: usize = args.iter().map(|arg| arg.as_ref().len() + 16).sum();
    let mut out = Vec::with_capacity(bytes + 16);
    encode_into(args, &mut out);
    out
}

/// As [`encode`], added to what a pipeline holds already.
pub fn encode_into<W: AsRef<[u8]>>(args: &[W], out: &mut Vec<u8>) {
    crate::decimal::header(out, b'*', args.len());
    for arg in args {
        let arg = arg.as_ref();
        crate::decimal::header(out, b'$', arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
