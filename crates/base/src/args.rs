//! A command's arguments as slices of the buffer that they arrived in.

use crate::limits::ARGUMENTS_MAX;
use crate::shared::{SharedBytes, shrink_beyond};
use std::ops::Index;

/// Where one argument lies in its buffer. One that starts behind every buffer is in a buffer of
/// its own: [`SharedArgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

/// Longest buffer that arguments are spans of: what a span can say beyond it tells an argument with
/// a buffer of its own.
pub const ARGS_BYTES_MAX: usize = u32::MAX as usize - ARGUMENTS_MAX;

/// The long arguments of a command: each has a buffer of its own, which can become a value without
/// being copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedArgs(Vec<SharedBytes>);

impl SharedArgs {
    /// Adds an argument and returns its span.
    pub fn push(&mut self, bytes: SharedBytes) -> Span {
        let span = Span { start: u32::MAX - self.0.len() as u32, len: bytes.len() as u32 };
        self.0.push(bytes);
        span
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all of them, and the room that they were listed in.
    pub fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0 = Vec::new();
        }
    }

    pub fn bytes_total(&self) -> usize {
        self.0.iter().map(|bytes| bytes.len()).sum()
    }

    fn at(&self, span: Span) -> Option<&SharedBytes> {
        self.0.get((u32::MAX - span.start) as usize)
    }
}

/// The arguments of one command: the name first. Copying an `Args` copies no bytes.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
    form: Form<'a>,
}

/// How a command came. With the reference inside, arguments are whole words, which are copied as
/// such.
#[derive(Clone, Copy)]
enum Form<'a> {
    /// The buffer has all the arguments.
    Plain,
    /// The buffer is the whole command in RESP, every length in its shortest form.
    Resp,
    /// Some arguments have buffers of their own.
    Shared(&'a SharedArgs),
}

impl<'a> Form<'a> {
    #[inline]
    fn shared(self) -> Option<&'a SharedArgs> {
        match self {
            Form::Shared(shared) => Some(shared),
            Form::Plain | Form::Resp => None,
        }
    }

    /// That of some of the arguments.
    #[inline]
    fn of_part(self) -> Form<'a> {
        match self {
            Form::Resp => Form::Plain,
            form => form,
        }
    }
}

impl<'a> Args<'a> {
    /// Every span must lie inside `buffer`; the parser that made them vouches for it.
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Self {
        Args { buffer, spans, form: Form::Plain }
    }

    /// As [`Args::new`], for a buffer that is the whole command in RESP, just as this server would
    /// write it; the parser that made the spans vouches for that, too.
    pub fn of_resp(buffer: &'a [u8], spans: &'a [Span]) -> Self {
        Args { buffer, spans, form: Form::Resp }
    }

    /// As [`Args::new`], for spans some of which may be of long arguments.
    pub fn with_shared(buffer: &'a [u8], spans: &'a [Span], shared: &'a SharedArgs) -> Self {
        let form = if shared.is_empty() { Form::Plain } else { Form::Shared(shared) };
        Args { buffer, spans, form }
    }

    pub fn len(self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    #[inline]
    pub fn at(self, index: usize) -> &'a [u8] {
        self.unescape(self.spans[index])
    }

    /// The whole command in RESP, if it came so.
    #[inline]
    pub fn resp(self) -> Option<&'a [u8]> {
        matches!(self.form, Form::Resp).then_some(self.buffer)
    }

    /// An argument that has a buffer of its own.
    #[inline]
    pub fn shared(self, index: usize) -> Option<&'a SharedBytes> {
        let shared = self.form.shared()?;
        self.spans.get(index).and_then(|span| shared.at(*span))
    }

    /// A long argument is found by the check that any other passes.
    #[inline(always)]
    fn unescape(self, span: Span) -> &'a [u8] {
        let start = span.start as usize;
        match self.buffer.get(start..start + span.len as usize) {
            Some(bytes) => bytes,
            None => self.shared_bytes_of(span),
        }
    }

    #[cold]
    #[inline(never)]
    fn shared_bytes_of(self, span: Span) -> &'a [u8] {
        let bytes = self.form.shared().and_then(|shared| shared.at(span));
        bytes.expect("a span lies in the buffer or names a long argument")
    }

    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        (index < self.spans.len()).then(|| self.at(index))
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone {
        self.spans.iter().map(move |span| self.unescape(*span))
    }

    /// The arguments from `start` on.
    pub fn from(self, start: usize) -> Args<'a> {
        Args { spans: self.spans.get(start..).unwrap_or(&[]), form: self.form.of_part(), ..self }
    }

    /// At most `count` arguments, the first ones.
    pub fn first(self, count: usize) -> Args<'a> {
        Args {
            spans: &self.spans[..count.min(self.spans.len())],
            form: self.form.of_part(),
            ..self
        }
    }

    /// Bytes from the first argument to the end of the last, what stands between them included.
    #[inline]
    pub fn extent_bytes(self) -> usize {
        if self.form.shared().is_some() {
            return self.bytes_total();
        }
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => {
                (last.start + last.len).saturating_sub(first.start) as usize
            }
            _ => 0,
        }
    }

    /// All the bytes of all the arguments, for accounting.
    pub fn bytes_total(self) -> usize {
        self.spans.iter().map(|span| span.len as usize).sum()
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}

/// A command's arguments with a buffer of their own: queued by MULTI, kept by a blocked client, or
/// built by a caller inside the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    spans: Vec<Span>,
    shared: SharedArgs,
}

impl OwnedArgs {
    pub fn as_args(&self) -> Args<'_> {
        Args::with_shared(&self.buffer, &self.spans, &self.shared)
    }

    /// Adds all arguments of a command. Long ones are not copied.
    pub fn extend(&mut self, args: Args) {
        if args.form.shared().is_none() {
            return args.iter().for_each(|arg| self.push(arg));
        }
        for (index, arg) in args.iter().enumerate() {
            match args.shared(index) {
                Some(bytes) => self.spans.push(self.shared.push(bytes.clone())),
                None => self.push(arg),
            }
        }
    }

    #[inline]
    pub fn push(&mut self, arg: &[u8]) {
        self.spans.push(Span { start: self.buffer.len() as u32, len: arg.len() as u32 });
        self.buffer.extend_from_slice(arg);
    }

    /// Adds a long argument without copying it.
    pub fn push_shared(&mut self, bytes: SharedBytes) {
        self.spans.push(self.shared.push(bytes));
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Forgets all arguments and keeps the room.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.spans.clear();
        self.shared.clear();
    }

    /// Gives room back beyond what arguments of so many bytes take.
    pub fn shrink_beyond(&mut self, bytes_max: usize) {
        shrink_beyond(&mut self.buffer, bytes_max);
        shrink_beyond(&mut self.spans, bytes_max / size_of::<Span>());
    }

    /// Bytes this holds on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.shared.bytes_total()
    }
}

impl From<Args<'_>> for OwnedArgs {
    fn from(args: Args<'_>) -> Self {
        let shared_bytes = args.form.shared().map_or(0, SharedArgs::bytes_total);
        let mut owned = OwnedArgs {
            buffer: Vec::with_capacity(args.bytes_total().saturating_sub(shared_bytes)),
            spans: Vec::with_capacity(args.len()),
            shared: SharedArgs::default(),
        };
        owned.extend(args);
        owned
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = W>>(args: I) -> Self {
        let mut owned = OwnedArgs::default();
        args.into_iter().for_each(|arg| owned.push(arg.as_ref()));
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn args_come_back_as_they_went_in() {
        let owned: OwnedArgs = ["SET", "key", ""].into_iter().collect();
        let args = owned.as_args();
        assert_eq!(args.len(), 3);
        assert_eq!((args.at(0), args.at(1), args.at(2)), (&b"SET"[..], &b"key"[..], &b""[..]));
        assert_eq!(args.get(3), None);
        assert_eq!(args.from(1).at(0), b"key");
        assert!(args.from(9).is_empty());
        assert_eq!(OwnedArgs::from(args), owned);
    }

    #[test]
    fn a_part_of_a_command_is_no_command() {
        let spans = [Span { start: 8, len: 3 }, Span { start: 17, len: 1 }];
        let args = Args::of_resp(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", &spans);
        assert!(args.resp().is_some() && args.at(1) == b"k");
        assert_eq!(args.from(1).resp(), None);
        assert_eq!(args.first(1).resp(), None);
        assert_eq!(OwnedArgs::from(args).as_args().resp(), None);
    }

    #[test]
    fn a_long_argument_is_never_copied() {
        let long = SharedBytes::new(vec![b'v'; 1000]);
        let mut shared = SharedArgs::default();
        let spans = [
            Span { start: 0, len: 3 },
            shared.push(long.clone()),
            Span { start: 3, len: 1 },
            shared.push(SharedBytes::new(b"other".to_vec())),
        ];
        let args = Args::with_shared(b"SETk", &spans, &shared);
        let owned = OwnedArgs::from(args.from(1));
        for (args, first) in [(args, 1), (owned.as_args(), 0)] {
            assert!(SharedBytes::ptr_eq(args.shared(first).unwrap(), &long));
            assert_eq!(args.at(first), &long[..]);
            assert_eq!(args.shared(first + 1), None);
            assert_eq!(args.at(first + 1), b"k");
            assert_eq!(args.iter().next_back(), Some(&b"other"[..]));
            assert_eq!(args.extent_bytes(), args.bytes_total());
        }
        assert_eq!(args.bytes_total(), 3 + 1000 + 1 + 5);
    }
}
