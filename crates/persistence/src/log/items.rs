//! The pieces that a file of the log is made of: commands in RESP, and annotation lines.

use super::window::Window;
use memchr::memchr;
use russet_base::Span;
use russet_base::limits::ARGUMENTS_MAX;
use std::io::{self, Read};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A command; where its arguments are is told apart.
    Command,
    Annotation,
}

/// Why an item can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The file ends within it.
    Incomplete,
    /// It is nothing that belongs here.
    Malformed(&'static str),
}

/// Reads the item that the window begins with, for which it grows as needed, and says how long it
/// is. The spans of a command count from the beginning of the window.
pub(super) fn next_item<R: Read>(
    window: &mut Window<R>,
    spans: &mut Vec<Span>,
) -> io::Result<Result<(Item, usize), Fault>> {
    loop {
        match item(window.bytes(), spans) {
            Err(Fault::Incomplete) => {
                if !window.more()? {
                    return Ok(Err(Fault::Incomplete));
                }
            }
            done => return Ok(done),
        }
    }
}

fn item(bytes: &[u8], spans: &mut Vec<Span>) -> Result<(Item, usize), Fault> {
    match bytes.first() {
        None => Err(Fault::Incomplete),
        Some(b'#') => {
            let end = memchr(b'\n', bytes).ok_or(Fault::Incomplete)?;
            Ok((Item::Annotation, end + 1))
        }
        Some(b'*') => command(bytes, spans).map(|len| (Item::Command, len)),
        Some(_) => Err(Fault::Malformed("no command begins here")),
    }
}

/// Reads the command that `bytes` begins with; how long it is.
pub(super) fn command(bytes: &[u8], spans: &mut Vec<Span>) -> Result<usize, Fault> {
    spans.clear();
    let (count, mut at) = number(bytes, 0)?;
    if count == 0 || count > ARGUMENTS_MAX {
        return Err(Fault::Malformed("a command has too many arguments, or none"));
    }
    for _ in 0..count {
        match bytes.get(at) {
            None => return Err(Fault::Incomplete),
            Some(b'$') => {}
            Some(_) => return Err(Fault::Malformed("an argument has no length")),
        }
        let (len, start) = number(bytes, at)?;
        let end = start + len;
        if u32::try_from(end + 2).is_err() {
            return Err(Fault::Malformed("a command is too long"));
        }
        match bytes.get(end..end + 2) {
            None => return Err(Fault::Incomplete),
            Some(b"\r\n") => {}
            Some(_) => return Err(Fault::Malformed("an argument is longer than its length")),
        }
        spans.push(Span { start: start as u32, len: len as u32 });
        at = end + 2;
    }
    Ok(at)
}

/// The number behind the byte at `at`, and where the line behind it begins.
fn number(bytes: &[u8], at: usize) -> Result<(usize, usize), Fault> {
    const DIGITS_MAX: usize = 12;
    let mut value = 0;
    let digits = bytes.get(at + 1..).ok_or(Fault::Incomplete)?;
    for (index, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if index < DIGITS_MAX => value = value * 10 + usize::from(byte - b'0'),
            b'\r' if index > 0 => {
                return match bytes.get(at + 1 + index + 1) {
                    None => Err(Fault::Incomplete),
                    Some(b'\n') => Ok((value, at + 1 + index + 2)),
                    Some(_) => Err(Fault::Malformed("no number")),
                };
            }
            _ => return Err(Fault::Malformed("no number")),
        }
    }
    Err(Fault::Incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_and_measured() {
        let mut spans = Vec::new();
        let set = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n";
        let mut file = set.to_vec();
        file.extend_from_slice(b"#a line\r\n");
        assert_eq!(item(&file, &mut spans), Ok((Item::Command, set.len())));
        assert_eq!(spans.len(), 3);
        assert_eq!(item(&file[set.len()..], &mut spans), Ok((Item::Annotation, 9)));
        for end in 0..set.len() {
            assert_eq!(item(&set[..end], &mut spans), Err(Fault::Incomplete), "{end}");
        }
    }

    #[test]
    fn nonsense_is_no_item() {
        let mut spans = Vec::new();
        for text in [
            "x",
            "*0\r\n",
            "*-1\r\n",
            "*1234567890123\r\n",
            "*1048577\r\n",
            "*\r\n",
            "*1\n",
            "*1\rx",
            "*1\r\nx",
            "*1\r\n$1\r\nabc",
            "*1\r\n$99999999999\r\n",
        ] {
            let found = item(text.as_bytes(), &mut spans);
            assert!(matches!(found, Err(Fault::Malformed(_))), "{text}: {found:?}");
        }
    }
}
