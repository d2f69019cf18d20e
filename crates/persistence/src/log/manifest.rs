//! The manifest of a log: which files it consists of, in Redis's format, closed by a line with a
//! checksum of ours, which Redis takes for a comment.

use super::LogError;
use russet_base::checksum::Checksum;
use std::fmt::Write as _;

/// What closes a manifest of ours: `#RUSSET:SUM`, the checksum of all before it, and how many bytes
/// that is.
const SUM_TAG: &str = "#RUSSET:SUM ";
/// Longest manifest that is believed.
pub const MANIFEST_BYTES_MAX: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Base,
    /// A file that a newer base has replaced and that is to be removed.
    History,
    Increment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    pub name: String,
    pub number: u64,
    pub kind: FileKind,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub files: Vec<LogFile>,
}

impl Manifest {
    pub fn base(&self) -> Option<&LogFile> {
        self.files.iter().find(|file| file.kind == FileKind::Base)
    }

    pub fn increments(&self) -> impl DoubleEndedIterator<Item = &LogFile> {
        self.files.iter().filter(|file| file.kind == FileKind::Increment)
    }

    /// Whether this file is one of the log's.
    pub fn names(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for LogFile { name, number, kind } in &self.files {
            let name = quoted(name);
            let kind = match kind {
                FileKind::Base => 'b',
                FileKind::History => 'h',
                FileKind::Increment => 'i',
            };
            let _infallible = writeln!(text, "file {name} seq {number} type {kind}");
        }
        let (sum, len) = (Checksum::of(text.as_bytes()), text.len());
        let _infallible = writeln!(text, "{SUM_TAG}{sum:016x} {len}");
        text
    }

    pub fn parse(bytes: &[u8]) -> Result<Manifest, LogError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            LogError::manifest(error.valid_up_to(), "it is not a text of file names")
        })?;
        check_sum(text)?;
        let (mut manifest, mut at) = (Manifest::default(), 0);
        for line in text.split_inclusive('\n') {
            if !line.starts_with('#') {
                let file = parse_line(line).map_err(|why| LogError::manifest(at, why))?;
                manifest.add(file).map_err(|why| LogError::manifest(at, why))?;
            }
            at += line.len();
        }
        if manifest.files.is_empty() {
            return Err(LogError::manifest(0, "it names no file"));
        }
        Ok(manifest)
    }

    fn add(&mut self, file: LogFile) -> Result<(), &'static str> {
        if file.kind == FileKind::Base && self.base().is_some() {
            return Err("there is a second base");
        }
        let last = self.increments().next_back().map_or(0, |last| last.number);
        if file.kind == FileKind::Increment && file.number <= last {
            return Err("increments are not in order");
        }
        self.files.push(file);
        Ok(())
    }
}

/// Checks the line of ours, if there is one.
fn check_sum(text: &str) -> Result<(), LogError> {
    let Some(at) = text.rfind(SUM_TAG) else { return Ok(()) };
    let (sum, len) = (Checksum::of(&text.as_bytes()[..at]), at);
    let is_true = text[at..] == format!("{SUM_TAG}{sum:016x} {len}\n");
    match is_true {
        true => Ok(()),
        false => Err(LogError::manifest(at, "its checksum is wrong: it was damaged")),
    }
}

fn parse_line(line: &str) -> Result<LogFile, &'static str> {
    let line = line.strip_suffix('\n').ok_or("the last line is not complete")?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    let tokens = tokens_of(line).ok_or("quotes are not balanced")?;
    let (mut name, mut number, mut kind) = (None, None, None);
    let pairs = tokens.chunks_exact(2);
    if tokens.is_empty() || !pairs.remainder().is_empty() {
        return Err("a line is not made of pairs");
    }
    for pair in pairs {
        match pair[0].as_str() {
            "file" => name = Some(pair[1].clone()),
            "seq" => number = pair[1].parse().ok().filter(|number| *number > 0),
            "type" => {
                kind = match pair[1].as_str() {
                    "b" => Some(FileKind::Base),
                    "h" => Some(FileKind::History),
                    "i" => Some(FileKind::Increment),
                    _ => None,
                }
            }
            // Newer servers may say more.
            _ => {}
        }
    }
    let name = name.filter(|name| is_plain(name)).ok_or("a file has no name, or a path")?;
    let number = number.ok_or("a file has no number")?;
    let kind = kind.ok_or("a file is of no known type")?;
    Ok(LogFile { name, number, kind })
}

/// A name is that of a file in the log's own directory.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
}

fn quoted(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_graphic() && !['"', '\'', '#', '\\'].contains(&char);
    if name.chars().all(is_plain) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The text between double quotes, and how long it is with what it was written with.
fn unquoted(text: &str) -> Option<(String, usize)> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().enumerate();
    loop {
        match rest.next()? {
            (at, b'"') => return Some((String::from_utf8(bytes).ok()?, at + 1)),
            (at, b'\\') => match rest.next()?.1 {
                b'x' => {
                    let digits = text.get(at + 2..at + 4)?;
                    bytes.push(u8::from_str_radix(digits, 16).ok()?);
                    rest.nth(1);
                }
                b'n' => bytes.push(b'\n'),
                b'r' => bytes.push(b'\r'),
                b't' => bytes.push(b'\t'),
                b'a' => bytes.push(7),
                b'b' => bytes.push(8),
                other => bytes.push(other),
            },
            (_, byte) => bytes.push(byte),
        }
    }
}

/// The tokens of a line; those with spaces are in double quotes.
fn tokens_of(line: &str) -> Option<Vec<String>> {
    let (mut tokens, mut rest) = (Vec::new(), line.trim_start_matches(' '));
    while !rest.is_empty() {
        let token = if let Some(inside) = rest.strip_prefix('"') {
            let (token, len) = unquoted(inside)?;
            rest = &inside[len..];
            token
        } else {
            let end = rest.find(' ').unwrap_or(rest.len());
            let token = rest[..end].to_owned();
            rest = &rest[end..];
            token
        };
        tokens.push(token);
        rest = rest.trim_start_matches(' ');
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, number: u64, kind: FileKind) -> LogFile {
        LogFile { name: name.to_owned(), number, kind }
    }

    fn sample() -> Manifest {
        let files = vec![
            file("appendonly.aof.2.base.rdb", 2, FileKind::Base),
            file("a b.aof.1.incr.aof", 1, FileKind::History),
            file("appendonly.aof.7.incr.aof", 7, FileKind::Increment),
            file("appendonly.aof.8.incr.aof", 8, FileKind::Increment),
        ];
        Manifest { files }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Manifest::parse(sample().to_text().as_bytes()), Ok(sample()));
        let redis =
            "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i startoffset 7\n";
        let parsed = Manifest::parse(redis.as_bytes()).unwrap();
        assert_eq!(parsed.base().unwrap().name, "a.1.base.rdb");
        assert_eq!(parsed.increments().count(), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "# only a comment\n",
            "file a seq 1 type b",
            "file ../a seq 1 type b\n",
            "file a seq 0 type b\n",
            "file a seq 1 type x\n",
            "file a seq 1 type b\nfile b seq 2 type b\n",
            "file a seq 2 type i\nfile b seq 2 type i\n",
            "file \"a seq 1 type i\n",
            "file a seq 1 type\n",
        ] {
            assert!(Manifest::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Manifest::parse(b"file \xff seq 1 type i\n").is_err());
    }

    /// Each bit of a manifest, flipped: refused, or it still names the same files.
    #[test]
    fn a_flipped_bit_is_found() {
        let text = sample().to_text().into_bytes();
        for bit in 0..8 * text.len() {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(parsed) = Manifest::parse(&flipped) {
                assert_eq!(parsed, sample(), "bit {bit}");
            }
        }
    }
}
