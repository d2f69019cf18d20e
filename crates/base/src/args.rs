//! A command's words as slices of the buffer that they arrived in.

use std::ops::Index;

/// Where one argument lies in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

/// The words of one command: the name first. Copying an `Args` copies no bytes.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// Every span must lie inside `buffer`; the parser that made them vouches for it.
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Self {
        Args { buffer, spans }
    }

    pub fn len(self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    pub fn at(self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        &self.buffer[span.start as usize..span.start as usize + span.len as usize]
    }

    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        (index < self.spans.len()).then(|| self.at(index))
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone {
        self.spans.iter().map(move |span| {
            &self.buffer[span.start as usize..span.start as usize + span.len as usize]
        })
    }

    /// The words from `start` on.
    pub fn from(self, start: usize) -> Args<'a> {
        Args { buffer: self.buffer, spans: self.spans.get(start..).unwrap_or(&[]) }
    }

    /// At most `count` words, the first ones.
    pub fn first(self, count: usize) -> Args<'a> {
        Args { buffer: self.buffer, spans: &self.spans[..count.min(self.spans.len())] }
    }

    /// Bytes from the first word to the end of the last, what stands between them included.
    #[inline]
    pub fn extent_bytes(self) -> usize {
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => {
                (last.start + last.len).saturating_sub(first.start) as usize
            }
            _ => 0,
        }
    }

    /// All the bytes of all the words, for accounting.
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

/// A command's words with a buffer of their own: queued by MULTI, kept by a blocked client, or
/// built by a caller inside the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.buffer, &self.spans)
    }

    pub fn push(&mut self, word: &[u8]) {
        self.spans.push(Span { start: self.buffer.len() as u32, len: word.len() as u32 });
        self.buffer.extend_from_slice(word);
    }

    /// Forgets all words and keeps the room.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.spans.clear();
    }

    /// Bytes this holds on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}

impl From<Args<'_>> for OwnedArgs {
    fn from(args: Args<'_>) -> Self {
        let mut owned = OwnedArgs {
            buffer: Vec::with_capacity(args.bytes_total()),
            spans: Vec::with_capacity(args.len()),
        };
        args.iter().for_each(|word| owned.push(word));
        owned
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Self {
        let mut owned = OwnedArgs::default();
        words.into_iter().for_each(|word| owned.push(word.as_ref()));
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_went_in() {
        let owned: OwnedArgs = ["SET", "key", ""].into_iter().collect();
        let args = owned.as_args();
        assert_eq!(args.len(), 3);
        assert_eq!((args.at(0), args.at(1), args.at(2)), (&b"SET"[..], &b"key"[..], &b""[..]));
        assert_eq!(args.get(3), None);
        assert_eq!(args.from(1).at(0), b"key");
        assert!(args.from(9).is_empty());
        assert_eq!(OwnedArgs::from(args), owned);
    }
}
