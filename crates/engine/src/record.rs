//! What calls have changed, as commands that change it again in the same way: for the log, for
//! replicas, and for the test that a second engine comes to hold the same.
//!
//! A call is recorded as itself where running it again gives the same, else as what it came to:
//! with absolute times, with the members that were drawn at random, without conditions. Nothing is
//! gathered while nobody listens.

use russet_base::num::write_u64;
use russet_base::shared::shrink_beyond;
use russet_base::{Args, OwnedArgs, SharedBytes};
use std::ops::Range;

/// Bytes of encoded records that a worker keeps room for between calls.
const ENCODED_KEPT_BYTES_MAX: usize = 4 * 1024;
/// Records and long arguments that a worker keeps places for between calls.
const HEADS_KEPT_MAX: usize = 64;
const SPLICES_KEPT_MAX: usize = 16;
/// Bytes after which a list of arguments goes on in a further command.
const LIST_BYTES_MAX: usize = 1 << 20;
/// `*1` to `*9`: what is kept free for the count of arguments before they are counted.
const SHORT_COUNT_BYTES: usize = 2;

/// Who gets a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Destination {
    #[default]
    Everyone,
    LogOnly,
    ReplicasOnly,
    Nobody,
}

impl Destination {
    pub fn is_logged(self) -> bool {
        matches!(self, Destination::Everyone | Destination::LogOnly)
    }
}

/// One command that gives a change again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub db: usize,
    pub destination: Destination,
    pub args: OwnedArgs,
}

/// What is to be known of a record beside its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// Where its command begins.
    start: usize,
    db: u32,
    destination: Destination,
    ends_unit: bool,
}

impl Head {
    #[inline]
    fn new(start: usize, (db, destination): (usize, Destination)) -> Self {
        Head { start, db: db as u32, destination, ends_unit: false }
    }
}

/// Records as they go to the journal: commands in RESP, one behind the other. Long arguments that
/// have a buffer of their own are not copied: they are kept with their offset.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    bytes: Vec<u8>,
    heads: Vec<Head>,
    /// Places in `bytes`, in ascending order, and what belongs there.
    splices: Vec<(usize, SharedBytes)>,
    /// Of the call: snapshots of this version and those before have none of it. See
    /// [`crate::snapshot`].
    pub version: u64,
}

/// One record of [`Encoded`].
#[derive(Clone, Copy, Debug)]
pub struct EncodedRecord<'e> {
    pub db: usize,
    pub destination: Destination,
    /// Nothing that follows happened at once with it.
    pub ends_unit: bool,
    /// The command in RESP, without its long arguments.
    bytes: &'e [u8],
    /// Where `bytes` begins, as the places of the splices count.
    start: usize,
    splices: &'e [(usize, SharedBytes)],
}

impl<'e> EncodedRecord<'e> {
    /// The bytes of the command, piece by piece.
    #[inline]
    pub fn pieces(self, mut piece: impl FnMut(&'e [u8])) {
        let mut done = 0;
        for (at, shared) in self.splices {
            piece(&self.bytes[done..at - self.start]);
            piece(shared);
            done = at - self.start;
        }
        piece(&self.bytes[done..]);
    }

    /// The bytes of the command, if none of its arguments is apart.
    #[inline]
    pub fn whole(self) -> Option<&'e [u8]> {
        self.splices.is_empty().then_some(self.bytes)
    }

    /// Where it stands in its frame; see [`Encoded::run`].
    #[inline]
    pub fn place(self) -> Range<usize> {
        self.start..self.start + self.bytes.len()
    }

    /// The same with long arguments apart: bytes that were copied, and what follows them.
    #[inline]
    pub fn parts(self, mut part: impl FnMut(&'e [u8], Option<&'e SharedBytes>)) {
        let mut done = 0;
        for (at, shared) in self.splices {
            part(&self.bytes[done..at - self.start], Some(shared));
            done = at - self.start;
        }
        part(&self.bytes[done..], None);
    }

    /// The arguments of the command again.
    pub fn args(self) -> OwnedArgs {
        let mut text = Vec::with_capacity(self.bytes.len());
        self.pieces(|piece| text.extend_from_slice(piece));
        let mut args = OwnedArgs::default();
        let (count, mut rest) = read_number(&text);
        for _ in 0..count {
            let (len, behind) = read_number(rest);
            args.push(&behind[..len]);
            rest = &behind[len + 2..];
        }
        args
    }

    /// One of the arguments, from 0.
    pub fn arg(self, index: usize) -> Option<&'e [u8]> {
        let (count, mut rest) = read_number(self.bytes);
        let mut splices = self.splices.iter().peekable();
        for at in 0..count {
            let (len, behind) = read_number(rest);
            let place = self.start + self.bytes.len() - behind.len();
            let arg = match splices.next_if(|(splice, _)| *splice == place) {
                Some((_, shared)) => {
                    rest = behind.get(2..)?;
                    &shared[..]
                }
                None => {
                    rest = behind.get(len + 2..)?;
                    behind.get(..len)?
                }
            };
            if at == index {
                return Some(arg);
            }
        }
        None
    }

    /// The name of the command: none has so long a name that it would not be copied.
    #[inline]
    pub fn name(self) -> &'e [u8] {
        let (len, rest) = match self.bytes {
            // Fewer than ten arguments, and a name of fewer than ten bytes: nearly all.
            [b'*', _, b'\r', b'\n', b'$', len, b'\r', b'\n', rest @ ..] => {
                (usize::from(len - b'0'), rest)
            }
            _ => read_number(read_number(self.bytes).1),
        };
        rest.get(..len).unwrap_or_default()
    }
}

/// The number of a line `*3\r\n` or `$3\r\n` that was written here, and what is behind the line.
fn read_number(line: &[u8]) -> (usize, &[u8]) {
    let digits = line[1..].iter().take_while(|byte| byte.is_ascii_digit());
    let (len, number) = digits
        .fold((0, 0), |(len, number), digit| (len + 1, number * 10 + usize::from(digit - b'0')));
    (number, &line[1 + len + 2..])
}

impl Encoded {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of all records, long arguments included.
    pub fn bytes_total(&self) -> usize {
        self.bytes.len()
            + self.heads.len() * size_of::<Head>()
            + self.splices.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Whether these are the same records, with long arguments that are the same buffers.
    pub fn is_same(&self, other: &Encoded) -> bool {
        let same = |(left, right): (&(usize, SharedBytes), &(usize, SharedBytes))| {
            left.0 == right.0 && SharedBytes::ptr_eq(&left.1, &right.1)
        };
        self.bytes == other.bytes
            && self.heads == other.heads
            && self.splices.len() == other.splices.len()
            && self.splices.iter().zip(&other.splices).all(same)
    }

    /// Whether some arguments were not copied.
    pub fn has_long_args(&self) -> bool {
        !self.splices.is_empty()
    }

    /// Whether a long argument of both is the same buffer.
    pub fn shares_long_arg(&self, other: &Encoded) -> bool {
        let is_own =
            |long: &SharedBytes| self.splices.iter().any(|(_, own)| SharedBytes::ptr_eq(own, long));
        other.splices.iter().any(|(_, long)| is_own(long))
    }

    /// Whether nobody else has its long arguments.
    pub fn is_only_owner(&self) -> bool {
        self.splices.iter().all(|(_, long)| SharedBytes::strong_count(long) == 1)
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.heads.clear();
        self.splices.clear();
    }

    /// Empties it, and keeps room for what most calls need.
    pub fn recycle(&mut self) {
        self.clear();
        self.shrink();
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for so many bytes, but no more than is kept.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes.min(ENCODED_KEPT_BYTES_MAX));
    }

    fn shrink(&mut self) {
        shrink_beyond(&mut self.bytes, ENCODED_KEPT_BYTES_MAX);
        shrink_beyond(&mut self.heads, HEADS_KEPT_MAX);
        shrink_beyond(&mut self.splices, SPLICES_KEPT_MAX);
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = EncodedRecord<'_>> {
        let (mut heads, mut splices) = (self.heads.iter().peekable(), &self.splices[..]);
        std::iter::from_fn(move || {
            let &Head { start, db, destination, ends_unit } = heads.next()?;
            let end = heads.peek().map_or(self.bytes.len(), |next| next.start);
            let own = match splices {
                [] => splices,
                _ => splices.split_off(..splices.partition_point(|(at, _)| *at < end))?,
            };
            let (bytes, db) = (&self.bytes[start..end], db as usize);
            Some(EncodedRecord { db, destination, ends_unit, bytes, start, splices: own })
        })
    }

    /// The commands of records that follow each other, by where the first begins and the last
    /// ends. None of their arguments may be apart.
    pub fn run(&self, places: Range<usize>) -> &[u8] {
        &self.bytes[places]
    }

    fn begin(&mut self, to: (usize, Destination)) {
        self.heads.push(Head::new(self.bytes.len(), to));
    }

    /// How many arguments come. The end of this line is written with the next.
    #[inline]
    fn count(&mut self, count: usize) {
        match count {
            0..10 => self.bytes.extend_from_slice(&[b'*', b'0' + count as u8]),
            _ => {
                self.bytes.push(b'*');
                write_u64(&mut self.bytes, count as u64);
            }
        }
    }

    /// Ends the line before an argument and says how long it is: at once, for most are so short
    /// that each step would cost as much as their bytes.
    #[inline]
    fn len_line(&mut self, len: usize) {
        let digit = |value: usize| b'0' + (value % 10) as u8;
        let (ones, tens, hundreds) = (digit(len), digit(len / 10), digit(len / 100));
        let line = match len {
            0..10 => [b'\r', b'\n', b'$', ones, b'\r', b'\n', 0, 0],
            10..100 => [b'\r', b'\n', b'$', tens, ones, b'\r', b'\n', 0],
            100..1000 => [b'\r', b'\n', b'$', hundreds, tens, ones, b'\r', b'\n'],
            _ => return self.long_len_line(len),
        };
        self.bytes.extend_from_slice(&line);
        let unused = usize::from(len < 10) + usize::from(len < 100);
        self.bytes.truncate(self.bytes.len() - unused);
    }

    #[cold]
    fn long_len_line(&mut self, len: usize) {
        self.bytes.extend_from_slice(b"\r\n$");
        write_u64(&mut self.bytes, len as u64);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// An argument without the end of its line.
    #[inline]
    fn arg(&mut self, arg: &[u8]) {
        self.len_line(arg.len());
        self.bytes.extend_from_slice(arg);
    }

    fn shared_arg(&mut self, arg: &SharedBytes) {
        self.len_line(arg.len());
        self.splices.push((self.bytes.len(), arg.clone()));
    }

    #[inline]
    fn end_line(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Arguments that are counted while they are written.
    fn counted_args<A: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = A>) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(b"*0");
        let mut count = 0;
        for arg in args {
            self.arg(arg.as_ref());
            count += 1;
        }
        self.end_line();
        if count < 10 {
            self.bytes[at + 1] = b'0' + count as u8;
        } else {
            let mut head = vec![b'*'];
            write_u64(&mut head, count);
            self.bytes.splice(at..at + SHORT_COUNT_BYTES, head);
        }
    }
}

/// The records of the call under way, in order, behind those of calls of the same batch. What
/// happened at once is one unit.
#[derive(Debug, Default)]
pub struct Records {
    is_on: bool,
    /// What a script has asked for with `redis.set_repl`.
    pub destination: Destination,
    encoded: Encoded,
    /// Records of the unit that is not closed.
    open: usize,
    /// Some of them are for the log.
    is_logged: bool,
}

impl Records {
    /// Records that someone listens to: for those who make some without a call.
    pub fn recording() -> Self {
        Records { is_on: true, ..Records::default() }
    }

    /// Whether anybody listens: if not, there is nothing to gather.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline]
    pub(crate) fn set_on(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.encoded.bytes.is_empty()
    }

    /// Records of the unit under way.
    pub fn len(&self) -> usize {
        self.open
    }

    /// Whether the log is to get any of them.
    pub fn has_logged(&self) -> bool {
        self.is_logged
    }

    /// All records, decoded.
    pub fn all(&self) -> Vec<Record> {
        let decode = |record: EncodedRecord| Record {
            db: record.db,
            destination: record.destination,
            args: record.args(),
        };
        self.encoded.iter().map(decode).collect()
    }

    /// Whether records were added that belong to a unit which is not closed.
    #[inline]
    pub fn has_open_unit(&self) -> bool {
        self.open > 0
    }

    /// What was recorded since the last call is a unit.
    #[inline]
    pub fn end_unit(&mut self) {
        if self.open > 0
            && let Some(last) = self.encoded.heads.last_mut()
        {
            last.ends_unit = true;
            self.open = 0;
        }
        self.destination = Destination::Everyone;
    }

    /// What is to be passed on. Its room is given back in exchange.
    pub fn encoded_mut(&mut self) -> &mut Encoded {
        debug_assert_eq!(self.open, 0, "units are closed before they are passed on");
        &mut self.encoded
    }

    /// A record begins here.
    #[inline]
    fn begin(&mut self, (db, destination): (usize, Destination)) {
        self.is_logged |= destination.is_logged();
        self.open += 1;
        self.encoded.begin((db, destination));
    }

    /// Adds a command, if anybody listens.
    pub fn push<A: AsRef<[u8]>>(&mut self, db: usize, args: impl IntoIterator<Item = A>) {
        if self.is_on && self.destination != Destination::Nobody {
            self.begin((db, self.destination));
            self.encoded.counted_args(args);
        }
    }

    /// As [`Records::push`], for the arguments of a call: long ones are not copied.
    #[inline]
    pub fn push_args(&mut self, db: usize, args: Args) {
        if self.is_on && self.destination != Destination::Nobody {
            self.push_for(db, args, self.destination);
        }
    }

    #[inline]
    fn push_for(&mut self, db: usize, args: Args, destination: Destination) {
        self.begin((db, destination));
        // As most calls come: what they were sent as is what is recorded.
        if let Some(command) = args.resp() {
            return self.encoded.bytes.extend_from_slice(command);
        }
        self.encoded.count(args.len());
        for (index, arg) in args.iter().enumerate() {
            match args.shared(index) {
                Some(shared) => self.encoded.shared_arg(shared),
                None => self.encoded.arg(arg),
            }
        }
        self.encoded.end_line();
    }

    /// As [`Records::push_args`], for arguments that were put together.
    pub fn push_owned(&mut self, db: usize, args: OwnedArgs) {
        self.push_args(db, args.as_args());
    }

    /// Adds `head` followed by a list of arguments, if anybody listens: as several commands, each
    /// with its part of the list, if the list is long. Nothing without a list.
    pub fn push_list<A: AsRef<[u8]>>(
        &mut self,
        db: usize,
        head: &[&[u8]],
        list: impl IntoIterator<Item = A>,
    ) {
        if !self.is_on {
            return;
        }
        let (mut args, mut bytes) = (OwnedArgs::default(), 0);
        for arg in list {
            let arg = arg.as_ref();
            if bytes >= LIST_BYTES_MAX {
                self.push_owned(db, std::mem::take(&mut args));
                bytes = 0;
            }
            if args.is_empty() {
                head.iter().for_each(|part| args.push(part));
            }
            args.push(arg);
            bytes += arg.len();
        }
        if !args.is_empty() {
            self.push_owned(db, args);
        }
    }

    /// Runs `action` with everyone as the destination, whatever a script has asked for: what goes
    /// because its time is over is not the script's change.
    pub(crate) fn for_everyone(&mut self, action: impl FnOnce(&mut Self)) {
        let asked = std::mem::take(&mut self.destination);
        action(self);
        self.destination = asked;
    }

    /// Adds a command that only replicas are to get: a published message.
    pub fn push_for_replicas(&mut self, db: usize, args: Args) {
        let destination = match self.destination {
            Destination::Everyone | Destination::ReplicasOnly => Destination::ReplicasOnly,
            Destination::LogOnly | Destination::Nobody => return,
        };
        if self.is_on {
            self.push_for(db, args, destination);
        }
    }

    /// All units were passed on, or nobody wants them.
    pub fn clear(&mut self) {
        self.encoded.clear();
        self.open = 0;
        self.is_logged = false;
        self.destination = Destination::Everyone;
    }

    #[inline]
    pub(crate) fn shrink(&mut self) {
        self.encoded.shrink();
    }
}

/// Who is to get what was changed, beside the journal: DEBUG RECORD, and tests.
pub trait RecordListener: Send + Sync {
    /// Units of records, in the order of the changes. The shards of their keys are locked, so units
    /// about one key come in the order in which they happened; nothing here may wait for a lock
    /// that is held while a shard is asked for.
    fn units(&self, records: &[Record]);
}

#[cfg(test)]
mod tests;
