//! Requests that ran once, as annotations: Redis 7.0 has no command for them and skips the lines.
//!
//! A record is the command in RESP, in hexadecimal, in lines of at most [`LINE_BYTES_MAX`] bytes,
//! for Redis reads an annotation into a buffer of 1,024. All lines but the last of a record begin
//! with `#RUSSET:ONCE+ `, the last with `#RUSSET:ONCE `.

pub(super) const ONCE_TAG: &str = "#RUSSET:ONCE";
const LAST: &str = "#RUSSET:ONCE ";
const CONTINUED: &str = "#RUSSET:ONCE+ ";
/// Longest line, its end included.
pub const LINE_BYTES_MAX: usize = 1000;
/// Bytes of a record in one line.
const PART_BYTES: usize = (LINE_BYTES_MAX - CONTINUED.len() - 2) / 2;
/// Longest record that is believed.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Writes a record as lines.
pub fn write(out: &mut Vec<u8>, record: &[u8]) {
    let mut parts = record.chunks(PART_BYTES).peekable();
    while let Some(part) = parts.next() {
        let tag = if parts.peek().is_some() { CONTINUED } else { LAST };
        out.extend_from_slice(tag.as_bytes());
        for byte in part {
            out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Puts the lines of a record together.
#[derive(Debug, Default)]
pub struct OnceLines(Vec<u8>);

impl OnceLines {
    /// Adds a line; the record if it was the last.
    pub fn add(&mut self, line: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
        let (is_last, digits) = match line.strip_prefix(LAST.as_bytes()) {
            Some(digits) => (true, digits),
            None => (false, line.strip_prefix(CONTINUED.as_bytes()).ok_or("no kept request")?),
        };
        let digits = digits.strip_suffix(b"\r\n").ok_or("a kept request has no end")?;
        if !digits.len().is_multiple_of(2) || self.0.len() > RECORD_BYTES_MAX {
            return Err("a kept request is too long, or half a byte too short");
        }
        for pair in digits.chunks_exact(2) {
            let text = std::str::from_utf8(pair).map_err(|_| "a kept request has no digits")?;
            let byte = u8::from_str_radix(text, 16).map_err(|_| "a kept request has no digits")?;
            self.0.push(byte);
        }
        Ok(is_last.then(|| std::mem::take(&mut self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_any_length_comes_back() {
        for len in [1, 40, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 70_000] {
            let record: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut text = Vec::new();
            write(&mut text, &record);
            let mut lines = OnceLines::default();
            let mut read = None;
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                assert!(line.len() <= LINE_BYTES_MAX && read.is_none());
                read = lines.add(line).unwrap();
            }
            assert_eq!(read, Some(record));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for line in
            ["#RUSSET:ONCE 0\r\n", "#RUSSET:ONCE zz\r\n", "#RUSSET:ONCEx\r\n", "#RUSSET:ONCE 00"]
        {
            assert!(OnceLines::default().add(line.as_bytes()).is_err(), "{line}");
        }
    }
}
