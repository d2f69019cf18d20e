//! Counts replies as they stream by, RESP2 and RESP3, without building them: a load generator
//! wants to know how many came and whether any was an error, nothing else.

/// Bytes of a header or error line that are kept while it arrives in pieces.
const LINE_KEPT_BYTES_MAX: usize = 256;

/// What the replies of a run were.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub errors: u64,
    pub nils: u64,
    pub first_error: Option<String>,
    /// Bytes came that are no reply at all.
    pub is_broken: bool,
}

/// The place of one connection in its stream of replies.
#[derive(Clone, Debug, Default)]
pub struct ReplyCounter {
    /// Values that the reply in progress still lacks.
    values_left: u64,
    /// Bytes of a bulk string, its line end included, that are still to be skipped.
    skip_bytes: usize,
    line: Vec<u8>,
}

impl ReplyCounter {
    /// Takes bytes as they come; returns how many replies they completed.
    pub fn feed(&mut self, mut bytes: &[u8], tally: &mut Tally) -> usize {
        let mut complete = 0;
        while !bytes.is_empty() {
            if self.skip_bytes > 0 {
                let skipped = self.skip_bytes.min(bytes.len());
                self.skip_bytes -= skipped;
                bytes = &bytes[skipped..];
            } else {
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                    self.keep(bytes);
                    return complete;
                };
                if self.line.is_empty() {
                    self.header(&bytes[..end], tally);
                } else {
                    self.keep(&bytes[..end]);
                    let line = std::mem::take(&mut self.line);
                    self.header(&line, tally);
                }
                bytes = &bytes[end + 1..];
            }
            complete += usize::from(self.values_left == 0 && self.skip_bytes == 0);
        }
        complete
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_KEPT_BYTES_MAX - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Takes a line without its line feed.
    #[inline]
    fn header(&mut self, line: &[u8], tally: &mut Tally) {
        let Some((kind, rest)) = line.split_first() else {
            tally.is_broken = true;
            return;
        };
        self.values_left = self.values_left.max(1) - 1;
        match kind {
            b'+' | b':' | b',' | b'#' | b'(' => {}
            b'-' => note_error(rest, tally),
            b'_' => tally.nils += 1,
            b'$' | b'=' | b'!' => match length(rest) {
                Some(bytes) => {
                    tally.errors += u64::from(*kind == b'!');
                    self.skip_bytes = bytes + 2;
                }
                None => tally.nils += 1,
            },
            b'*' | b'~' | b'>' => match length(rest) {
                Some(values) => self.values_left += values as u64,
                None => tally.nils += 1,
            },
            b'%' => self.values_left += 2 * length(rest).unwrap_or(0) as u64,
            b'|' => self.values_left += 2 * length(rest).unwrap_or(0) as u64 + 1,
            _ => tally.is_broken = true,
        }
    }
}

fn note_error(text: &[u8], tally: &mut Tally) {
    tally.errors += 1;
    if tally.first_error.is_none() {
        tally.first_error = Some(String::from_utf8_lossy(text).trim_end().to_owned());
    }
}

/// The number in a header line; `None` for the -1 of a nil.
#[inline]
fn length(digits: &[u8]) -> Option<usize> {
    let mut value = 0usize;
    for digit in digits {
        match digit {
            b'0'..=b'9' => value = value.saturating_mul(10) + usize::from(digit - b'0'),
            b'-' => return None,
            _ => break,
        }
    }
    // Far above any reply here; keeps a stray number from overflowing what follows.
    Some(value.min(1 << 40))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"+OK\r\n$5\r\nhe\nlo\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n-ERR no\r\n\
        %1\r\n+a\r\n_\r\n|1\r\n+k\r\n+v\r\n:7\r\n*0\r\n*-1\r\n";

    #[test]
    fn counts_the_same_wherever_the_stream_is_cut() {
        for size in 1..=STREAM.len() {
            let (mut counter, mut tally) = (ReplyCounter::default(), Tally::default());
            let complete: usize =
                STREAM.chunks(size).map(|bytes| counter.feed(bytes, &mut tally)).sum();
            assert_eq!(complete, 9, "in pieces of {size}");
            assert_eq!((tally.errors, tally.nils), (1, 3));
            assert_eq!(tally.first_error.as_deref(), Some("ERR no"));
            assert!(!tally.is_broken);
        }
    }

    #[test]
    fn bytes_that_are_no_reply_are_reported() {
        let (mut counter, mut tally) = (ReplyCounter::default(), Tally::default());
        counter.feed(b"HTTP/1.1 200 OK\r\n", &mut tally);
        assert!(tally.is_broken);
    }
}
