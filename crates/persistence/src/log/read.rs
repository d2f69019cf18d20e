//! One file of the log: its commands and annotations, and how much of it can be trusted.
//!
//! The end of a file is torn if it does not hold what it should and no line behind it proves that
//! it was once made durable; then it is cut. Anything else that is wrong is damage.

use super::LogError;
use super::items::{Fault, Item, command, next_item};
use super::once::{ONCE_TAG, OnceLines};
use super::sums::{SUM_TAG, SumLine, has_tag, look_ahead};
use super::trusted::Reporter;
use super::window::Window;
use russet_base::Args;
use russet_base::checksum::Checksum;
use std::io::{self, Read};

/// What a file holds that can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// What is behind this is torn.
    pub end: u64,
    /// Up to here a checksum vouches for it.
    pub checked_end: u64,
    /// What is wrong with what is behind `end`.
    pub why_cut: Option<&'static str>,
}

fn unreadable(error: io::Error) -> LogError {
    LogError::io("read it")(error)
}

/// The bytes since the last line with a checksum.
struct Block {
    sum: Checksum,
    start: u64,
}

impl Block {
    fn new(start: u64) -> Self {
        Block { sum: Checksum::default(), start }
    }
}

/// What is wrong with the bytes that can't be trusted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// They begin a command as it should be, and the file ends before it does.
    CutShort,
    OpenTransaction,
    /// They are no command.
    Malformed(&'static str),
    SumMisplaced,
    SumDiffers,
}

impl Wrong {
    fn why(self) -> &'static str {
        match self {
            Wrong::CutShort => "the file ends within a command",
            Wrong::OpenTransaction => "a transaction is not complete",
            Wrong::Malformed(why) => why,
            Wrong::SumMisplaced => "a checksum is not where it should be",
            Wrong::SumDiffers => "a checksum is wrong",
        }
    }
}

/// Whether a file has anything that looks like a checksum of ours. `source` gives its bytes.
pub fn looks_summed(source: impl Read) -> Result<bool, LogError> {
    has_tag(&mut Window::new(source, 0)).map_err(unreadable)
}

/// Goes through a file, of which `source` gives the bytes from `start` on, and finds what can be
/// trusted of it.
pub fn verify(source: impl Read, start: u64) -> Result<Verified, LogError> {
    verify_reporting(source, start, (true, &mut |_, _| {}))
}

/// The same for a file whose commands are run meanwhile. Reports how far it can be trusted, however
/// it goes on, and whether a checksum vouches for that.
///
/// Where a checksum follows, nothing before it can be trusted yet. In a file that has none, what
/// is no command makes it useless as a whole, so that all commands before can be run.
pub fn verify_while_loading(
    source: impl Read,
    start: u64,
    (looks_summed, mut reporter): (bool, Reporter<'_>),
) -> Result<Verified, LogError> {
    let verified = verify_reporting(
        source,
        start,
        (looks_summed, &mut |end, has_sums| {
            reporter.reached(end, has_sums);
        }),
    )?;
    reporter.report(verified.end, verified.checked_end > start);
    Ok(verified)
}

fn verify_reporting(
    source: impl Read,
    start: u64,
    (looks_summed, reached): (bool, &mut dyn FnMut(u64, bool)),
) -> Result<Verified, LogError> {
    let mut window = Window::new(source, start);
    let mut block = Block::new(start);
    let mut found = Verified { end: start, checked_end: start, why_cut: None };
    let (mut in_multi, mut synced) = (false, 0);
    let mut spans = Vec::new();
    // A checksum that is wrong, or bytes that are nothing: what is behind the last good checksum is
    // not to be believed at all.
    let (wrong, end) = loop {
        let item = next_item(&mut window, &mut spans).map_err(unreadable)?;
        let (bytes, at) = (window.bytes(), window.at());
        let len = match item {
            Err(Fault::Incomplete) if !bytes.is_empty() => break (Wrong::CutShort, found.end),
            Err(Fault::Incomplete) if in_multi => break (Wrong::OpenTransaction, found.end),
            Err(Fault::Incomplete) => return Ok(Verified { end: at, ..found }),
            Err(Fault::Malformed(why)) => break (Wrong::Malformed(why), found.checked_end),
            Ok((Item::Annotation, len)) => {
                if bytes.starts_with(SUM_TAG.as_bytes()) {
                    let line = SumLine::read(bytes, at);
                    let Some(line) = line.filter(|line| line.bytes == at - block.start) else {
                        break (Wrong::SumMisplaced, found.checked_end);
                    };
                    if line.sum != block.sum.finish() {
                        break (Wrong::SumDiffers, found.checked_end);
                    }
                    (block, synced) = (Block::new(at), synced.max(line.synced));
                    found.checked_end = at + len as u64;
                }
                len
            }
            Ok((Item::Command, len)) => {
                let name = Args::new(bytes, &spans).at(0);
                in_multi = match in_multi {
                    true => !name.eq_ignore_ascii_case(b"exec"),
                    false => name.eq_ignore_ascii_case(b"multi"),
                };
                len
            }
        };
        if looks_summed {
            block.sum.add(&bytes[..len]);
        }
        window.pass(len);
        if !in_multi {
            found.end = window.at();
            if !looks_summed || found.checked_end == found.end {
                reached(found.end, looks_summed);
            }
        }
    };
    let (at, why) = (window.at(), wrong.why());
    // What a command that is cut short goes on with is an argument, which may be a copy of a log.
    let believes_moved = wrong != Wrong::CutShort;
    let ahead = look_ahead(&mut window, believes_moved).map_err(unreadable)?;
    let synced = synced.max(ahead.synced);
    // A file without any checksum is another server's, or ours from before its first.
    let is_malformed = matches!(wrong, Wrong::Malformed(_));
    if is_malformed && found.checked_end == start && synced == 0 && !ahead.has_tag {
        return Err(LogError::damage(at, why));
    }
    if synced > found.checked_end {
        return Err(LogError::damage(found.checked_end, why));
    }
    Ok(Verified { end, why_cut: Some(why), ..found })
}

/// What can't be loaded: its offset in the file, and why.
pub type Refused = (u64, String);

/// Who gets the commands of a log.
pub trait Target {
    /// The commands of a file follow. Without checksums of ours it is another server's, which may
    /// hold commands that have failed, or that have never changed anything.
    fn begin_file(&mut self, _is_ours: bool) {}

    /// The next command. What is refused may be one that was given before.
    fn command(&mut self, at: u64, args: Args<'_>) -> Result<(), Refused>;

    /// Commands that happened at once follow, or were given. No file ends between them.
    fn edge_of_unit(&mut self, _is_begin: bool) {}

    /// All commands of the file were given. Those that were not run yet are now.
    fn end_file(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    /// The RDB file that a log begins with; how many bytes it has.
    fn rdb(&mut self, source: &mut dyn Read) -> Result<u64, Refused>;

    /// So many more bytes of the log have been read.
    fn progress(&mut self, _bytes: usize) {}
}

/// Runs the commands of what was verified, of which `source` gives the bytes from `start` on.
pub fn replay(source: impl Read, start: u64, target: &mut dyn Target) -> Result<(), LogError> {
    let mut window = Window::new(source, start);
    let mut once = OnceLines::default();
    let mut spans = Vec::new();
    let mut unit = Unit::default();
    loop {
        let item = next_item(&mut window, &mut spans).map_err(unreadable)?;
        let (bytes, at) = (window.bytes(), window.at());
        let len = match item {
            Err(Fault::Incomplete) if bytes.is_empty() => break,
            Err(_) => return Err(LogError::damage(at, "no command")),
            Ok((Item::Annotation, len)) => {
                if bytes.starts_with(ONCE_TAG.as_bytes()) {
                    let done = once.add(&bytes[..len]);
                    if let Some(request) = done.map_err(|why| LogError::damage(at, why))? {
                        match command(&request, &mut spans) {
                            Ok(len) if len == request.len() => {}
                            _ => return Err(LogError::damage(at, "a kept request can't be read")),
                        }
                        unit.add(at, Args::new(&request, &spans), target).map_err(refused)?;
                    }
                }
                len
            }
            Ok((Item::Command, len)) => {
                unit.add(at, Args::new(bytes, &spans), target).map_err(refused)?;
                len
            }
        };
        window.pass(len);
        target.progress(len);
    }
    target.end_file().map_err(refused)
}

fn refused((at, why): Refused) -> LogError {
    LogError::Command { at, why }
}

/// Whether a transaction is under way. Its commands are given as they come, however much they take:
/// it was verified that all of them are there.
#[derive(Default)]
struct Unit {
    is_open: bool,
}

impl Unit {
    fn add(&mut self, at: u64, args: Args<'_>, target: &mut dyn Target) -> Result<(), Refused> {
        let edge: &[u8] = if self.is_open { b"exec" } else { b"multi" };
        if args.at(0).eq_ignore_ascii_case(edge) {
            self.is_open = !self.is_open;
            target.edge_of_unit(self.is_open);
            return Ok(());
        }
        target.command(at, args)
    }
}
