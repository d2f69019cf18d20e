//! The lines of a log file that say what stands before them, so that a flipped bit is found and a
//! torn end is told from damage. Other servers skip them, for they begin with `#`.
//!
//! `#RUSSET:SUM <sum> <bytes> <synced> <check>` and a line end: `sum` is the [`Checksum`] in 16
//! hexadecimal digits of the bytes since the beginning of the line of this kind before it, or of
//! the file; `bytes` is how many those were, `synced` how many bytes of the file had been made
//! durable when the line was written. `check` is the lower half, in 8 digits, of the checksum of
//! the text `<at> <sum> <bytes> <synced>`, where `at` is the line's own offset in the file: so a
//! line can be believed even if what stands before it was damaged.

use super::window::Window;
use memchr::memmem;
use russet_base::checksum::Checksum;
use std::io::{self, Read};

/// What every such line begins with.
pub const SUM_TAG: &str = "#RUSSET:SUM ";
/// No line of ours is longer.
const LINE_BYTES_MAX: usize = 128;

/// Follows what is written to a file, and writes the lines.
#[derive(Default)]
pub struct SumWriter {
    since_line: Checksum,
    bytes: u64,
    /// Length of the file.
    at: u64,
}

impl SumWriter {
    /// Follows what is written before the next line.
    pub fn add(&mut self, bytes: &[u8]) {
        self.since_line.add(bytes);
        self.bytes += bytes.len() as u64;
        self.at += bytes.len() as u64;
    }

    /// The line behind `block`, which follows what was written before.
    pub fn line(&mut self, block: &[u8], synced: u64) -> String {
        self.add(block);
        let line = line_text(self.at, (self.since_line.finish(), self.bytes), synced);
        self.since_line = Checksum::default();
        self.since_line.add(line.as_bytes());
        self.bytes = line.len() as u64;
        self.at += self.bytes;
        line
    }
}

fn line_text(at: u64, (sum, bytes): (u64, u64), synced: u64) -> String {
    let facts = format!("{sum:016x} {bytes} {synced}");
    let check = Checksum::of(format!("{at} {facts}").as_bytes()) as u32;
    format!("{SUM_TAG}{facts} {check:08x}\r\n")
}

/// A line as it was read, and believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumLine {
    pub sum: u64,
    /// Bytes before it that it is about.
    pub bytes: u64,
    pub synced: u64,
}

impl SumLine {
    /// The line that `text` begins with, which is at this offset of a file; None if it is none, or
    /// not as we have written it.
    pub fn read(text: &[u8], at: u64) -> Option<SumLine> {
        let (line, read) = SumLine::parse(text)?;
        let is_ours = line == line_text(at, (read.sum, read.bytes), read.synced);
        is_ours.then_some(read)
    }

    /// What the line says that `text` begins with, be it true or not, and its text.
    fn parse(text: &[u8]) -> Option<(&str, SumLine)> {
        let text = &text[..text.len().min(LINE_BYTES_MAX)];
        let end = memchr::memchr(b'\n', text)? + 1;
        let line = std::str::from_utf8(&text[..end]).ok()?;
        let mut parts = line.strip_prefix(SUM_TAG)?.split(' ');
        let sum = u64::from_str_radix(parts.next()?, 16).ok()?;
        let (bytes, synced) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((line, SumLine { sum, bytes, synced }))
    }
}

/// What the lines say that are ahead in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Whether there is anything that looks like a line of ours.
    pub has_tag: bool,
    /// How many bytes of the file were durable at some time, by all lines.
    pub synced: u64,
}

/// What stands between two lines.
#[derive(Default)]
struct Between {
    sum: Checksum,
    bytes: u64,
}

impl Between {
    fn add(&mut self, bytes: &[u8]) {
        self.sum.add(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The line behind it, if that tells the truth about it: both are as they were written,
    /// wherever in the file they are now.
    fn line(&self, text: &[u8]) -> Option<SumLine> {
        let (_, line) = SumLine::parse(text)?;
        (line.bytes == self.bytes && line.sum == self.sum.finish()).then_some(line)
    }
}

/// Looks for lines in all that follows, whatever stands between them. One that is not where it was
/// written, as bytes before it were put in or taken out, counts if it is right about the bytes
/// between it and the line before it, and if such lines are to be believed.
pub fn look_ahead<R: Read>(window: &mut Window<R>, believes_moved: bool) -> io::Result<Ahead> {
    let finder = memmem::Finder::new(SUM_TAG);
    let mut ahead = Ahead::default();
    let mut between: Option<Between> = None;
    let pass = |window: &mut Window<R>, between: &mut Option<Between>, len: usize| {
        if let Some(between) = between {
            between.add(&window.bytes()[..len]);
        }
        window.pass(len);
    };
    loop {
        if let Some(found) = finder.find(window.bytes()) {
            ahead.has_tag = true;
            pass(window, &mut between, found);
            window.fill(LINE_BYTES_MAX)?;
            let moved = || between.as_ref().filter(|_| believes_moved)?.line(window.bytes());
            if let Some(line) = SumLine::read(window.bytes(), window.at()).or_else(moved) {
                ahead.synced = ahead.synced.max(line.synced);
            }
            between = Some(Between::default());
            pass(window, &mut between, SUM_TAG.len());
            continue;
        }
        // The end may be the beginning of one.
        let len = window.bytes().len().saturating_sub(SUM_TAG.len() - 1);
        pass(window, &mut between, len);
        if !window.more()? {
            return Ok(ahead);
        }
    }
}

/// Whether anything that follows looks like a line of ours.
pub fn has_tag<R: Read>(window: &mut Window<R>) -> io::Result<bool> {
    let finder = memmem::Finder::new(SUM_TAG);
    while finder.find(window.bytes()).is_none() {
        // The end may be the beginning of one.
        window.pass(window.bytes().len().saturating_sub(SUM_TAG.len() - 1));
        if !window.more()? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut sums = SumWriter::default();
        let mut file = Vec::new();
        for block in [&b"first block"[..], b"second", b""] {
            let line = sums.line(block, file.len() as u64);
            file.extend_from_slice(block);
            file.extend_from_slice(line.as_bytes());
        }
        file
    }

    /// Whether the line at this offset tells the truth about the bytes before it.
    fn is_true(file: &[u8], at: usize) -> bool {
        let line = SumLine::read(&file[at..], at as u64).unwrap();
        Checksum::of(&file[at - line.bytes as usize..at]) == line.sum
    }

    #[test]
    fn lines_tell_the_truth() {
        let file = file();
        let offsets: Vec<usize> = memmem::find_iter(&file, SUM_TAG.as_bytes()).collect();
        assert_eq!(offsets.len(), 3);
        for at in &offsets {
            assert!(is_true(&file, *at));
        }
        let ahead = look_ahead(&mut Window::new(&file[..], 0), true).unwrap();
        assert_eq!(ahead, Ahead { has_tag: true, synced: offsets[2] as u64 });
        let none = look_ahead(&mut Window::new(&b"nothing #RUSSET:SU"[..], 0), true).unwrap();
        assert_eq!(none, Ahead::default());
    }

    #[test]
    fn lines_that_were_moved_count_if_what_is_before_them_is_whole() {
        let file = file();
        let offsets: Vec<usize> = memmem::find_iter(&file, SUM_TAG.as_bytes()).collect();
        let moved = [b"put in", &file[..]].concat();
        let ahead = |bytes: &[u8]| look_ahead(&mut Window::new(bytes, 0), true).unwrap().synced;
        assert_eq!(ahead(&moved), offsets[2] as u64);
        for at in 6 + offsets[1]..6 + offsets[2] {
            let mut damaged = moved.clone();
            damaged[at] ^= 1;
            assert!(ahead(&damaged) < offsets[2] as u64, "{at}");
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed_by_a_line_behind_it() {
        let file = file();
        let last = memmem::rfind(&file, SUM_TAG.as_bytes()).unwrap();
        let before = memmem::rfind(&file[..last], SUM_TAG.as_bytes()).unwrap();
        for bit in 8 * before..8 * last {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_true(&flipped, last), "bit {bit}");
        }
        for bit in 8 * last..8 * file.len() {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let line = SumLine::read(&flipped[last..], last as u64);
            assert_eq!(line, None, "bit {bit}");
        }
    }
}
