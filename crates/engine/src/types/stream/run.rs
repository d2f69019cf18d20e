//! The bytes of a block: the field names of its first entry, then the entries. An entry with the
//! same names holds its values alone, and its ID is kept as its distance from the block's first.
//!
//! | part | form |
//! |---|---|
//! | names | how many (varint), their bytes (varint), each in the form of `element.rs` |
//! | entry | varint `bytes << 1 \| own`; then so many bytes: milliseconds behind the first ID |
//! | | (varint), number (varint; behind the first ID's if the milliseconds are the same); |
//! | | with `own`, how many fields (varint) and names between the values; else the values |
//!
//! What an entry would take up in a listpack of Redis is counted along: where a block ends can be
//! seen by clients (`XTRIM MAXLEN ~`), and Redis ends one by that size.

use super::id::StreamId;
use crate::types::element::{self, Element, Stored};
use smallvec::SmallVec;

/// What a new entry is encoded in: nearly all fit without an allocation.
pub type Scratch = SmallVec<[u8; 512]>;

/// Header and end mark of a listpack.
const LISTPACK_FRAME_BYTES: usize = 7;

/// Bytes of a listpack entry whose head and payload take up so much.
fn listpack_entry(stored: usize) -> usize {
    stored
        + match stored {
            0..=127 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        }
}

/// Bytes of a number in a listpack.
pub fn listpack_int(value: i64) -> usize {
    match value {
        0..=127 => 2,
        -4096..=4095 => 3,
        -0x8000..=0x7fff => 4,
        -0x80_0000..=0x7f_ffff => 5,
        -0x8000_0000..=0x7fff_ffff => 6,
        _ => 10,
    }
}

fn put_varint(out: &mut Scratch, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number that starts `bytes`, which are ours and whole, and what follows it.
#[inline]
fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let first = bytes[0];
    if first < 0x80 {
        return (u64::from(first), &bytes[1..]);
    }
    let mut value = u64::from(first & 0x7f);
    let (mut at, mut shift) = (1, 7);
    loop {
        let byte = bytes[at];
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (value, &bytes[at..]);
        }
        shift += 7;
    }
}

/// Appends a text's form and gives its size in a listpack.
#[inline]
fn put_text(out: &mut Scratch, text: &[u8]) -> usize {
    let stored = Stored::new(Element::parse(text));
    for piece in stored.pieces() {
        out.extend_from_slice(piece);
    }
    listpack_entry(stored.bytes())
}

/// Encodes the names of a new block; `pairs` are names and values by turns. Gives the size that an
/// empty listpack with these names would have.
pub fn put_names<'w>(
    out: &mut Scratch,
    pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
) -> usize {
    let mut listpack = LISTPACK_FRAME_BYTES;
    let count = pairs.len() / 2;
    let mut names = Scratch::new();
    for name in pairs.step_by(2) {
        listpack += put_text(&mut names, name);
    }
    put_varint(out, count as u64);
    put_varint(out, names.len() as u64);
    out.extend_from_slice(&names);
    // How many live and deleted, the number of names, and the zero behind them.
    listpack + 2 + 2 + listpack_int(count as i64) + 2
}

/// Encodes an entry. Gives its size in a listpack, the count of entries not included.
pub fn put_entry<'w>(
    out: &mut Scratch,
    run: Run<'_>,
    id: StreamId,
    pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
) -> usize {
    let has_own_names = !run.has_names(pairs.clone());
    let count = pairs.len() / 2;
    let (ms, seq) = distance(run.first, id);
    // The length is mostly one byte; it is put in front once it is known.
    let start = out.len();
    out.push(0);
    put_varint(out, ms);
    put_varint(out, seq);
    let parts = if has_own_names { 4 + 2 * count } else { 3 + count };
    let mut listpack = 2 + listpack_int(ms as i64) + listpack_int(parts as i64);
    listpack += listpack_int(id.seq.wrapping_sub(run.first.seq) as i64);
    if has_own_names {
        put_varint(out, count as u64);
        listpack += listpack_int(count as i64);
        pairs.for_each(|text| listpack += put_text(out, text));
    } else {
        pairs.skip(1).step_by(2).for_each(|text| listpack += put_text(out, text));
    }
    let head = ((out.len() - start - 1) as u64) << 1 | u64::from(has_own_names);
    let mut digits = Scratch::new();
    put_varint(&mut digits, head);
    out[start] = digits[0];
    if digits.len() > 1 {
        out.insert_from_slice(start + 1, &digits[1..]);
    }
    listpack
}

fn distance(first: StreamId, id: StreamId) -> (u64, u64) {
    let ms = id.ms - first.ms;
    (ms, if ms == 0 { id.seq - first.seq } else { id.seq })
}

/// A block's bytes to read.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub first: StreamId,
    names_len: usize,
    names: &'a [u8],
    entries: &'a [u8],
}

impl<'a> Run<'a> {
    /// `first` is the ID of the entry that the block began with, which may be gone.
    pub fn new(first: StreamId, bytes: &'a [u8]) -> Self {
        let (names_len, rest) = varint(bytes);
        let (names_bytes, rest) = varint(rest);
        let (names, entries) = rest.split_at(names_bytes as usize);
        Run { first, names_len: names_len as usize, names, entries }
    }

    /// The same without so many bytes of entries at its start.
    pub fn without_front(self, bytes: usize) -> Self {
        Run { entries: &self.entries[bytes..], ..self }
    }

    /// Bytes before the first entry.
    pub fn entries_start(bytes: &[u8]) -> usize {
        let (_, rest) = varint(bytes);
        let (names_bytes, rest) = varint(rest);
        bytes.len() - rest.len() + names_bytes as usize
    }

    fn has_names<'w>(self, pairs: impl ExactSizeIterator<Item = &'w [u8]>) -> bool {
        if pairs.len() / 2 != self.names_len {
            return false;
        }
        let mut names = self.names;
        pairs.step_by(2).all(|given| {
            let (name, bytes) = element::decode(names);
            names = &names[bytes..];
            match name {
                Element::Bytes(text) => text == given,
                Element::Int(value) => Element::parse(given) == Element::Int(value),
            }
        })
    }

    /// The names that most of its entries have.
    pub fn names(self) -> impl Iterator<Item = Element<'a>> {
        let mut names = self.names;
        (0..self.names_len).map(move |_| {
            let (name, bytes) = element::decode(names);
            names = &names[bytes..];
            name
        })
    }

    pub fn entries(self) -> Entries<'a> {
        Entries { run: self, rest: self.entries, at: 0 }
    }
}

/// One entry to read.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub id: StreamId,
    /// How many names and values.
    pub fields_len: usize,
    names: Option<&'a [u8]>,
    content: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Whether its names are those of its block.
    pub fn has_block_names(self) -> bool {
        self.names.is_some()
    }

    /// Shows each name and its value.
    #[inline]
    pub fn for_each_field(self, mut visit: impl FnMut(Element<'a>, Element<'a>)) {
        let mut content = self.content;
        match self.names {
            Some(mut names) => {
                for _ in 0..self.fields_len {
                    let (name, bytes) = element::decode(names);
                    names = &names[bytes..];
                    let (value, bytes) = element::decode(content);
                    content = &content[bytes..];
                    visit(name, value);
                }
            }
            None => {
                for _ in 0..self.fields_len {
                    let (name, bytes) = element::decode(content);
                    content = &content[bytes..];
                    let (value, bytes) = element::decode(content);
                    content = &content[bytes..];
                    visit(name, value);
                }
            }
        }
    }
}

/// The entries of a run, from the first to the last.
#[derive(Clone)]
pub struct Entries<'a> {
    run: Run<'a>,
    rest: &'a [u8],
    /// Where `rest` begins, behind the names.
    at: usize,
}

impl Entries<'_> {
    pub fn position(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (head, rest) = varint(self.rest);
        let (body, rest) = rest.split_at((head >> 1) as usize);
        self.at += self.rest.len() - rest.len();
        self.rest = rest;
        let (ms, body) = varint(body);
        let (seq, body) = varint(body);
        let first = self.run.first;
        let seq = if ms == 0 { first.seq + seq } else { seq };
        let id = StreamId { ms: first.ms + ms, seq };
        Some(if head & 1 == 0 {
            let fields_len = self.run.names_len;
            Entry { id, fields_len, names: Some(self.run.names), content: body }
        } else {
            let (count, content) = varint(body);
            Entry { id, fields_len: count as usize, names: None, content }
        })
    }
}
