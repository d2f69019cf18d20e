//! The index in front of the fields of a packed hash that has many: a fingerprint of each name, and
//! where every eighth field starts. With it a field is found about as fast as in cells, and the
//! hash stays in its table entry. Only a plain hash that is a listpack to Redis has one.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | `0xfb` |
//! | 2 | fields |
//! | 8 for each group of eight fields | their fingerprints, the last group filled up with zeros |
//! | 2 for each group | where its first field starts, from the first of all |

use crate::types::blob::Blob;
use crate::types::element::{Element, Stored, decode, stored_bytes};
use russet_base::hash::KeyHasher;
use smallvec::SmallVec;

/// A hash of more bytes gets an index; one of less than half as many has none.
pub(super) const INDEXED_BYTES_MIN: usize = 1024;
/// The longest one, index included, and its most fields.
pub(super) const INDEXED_BYTES_MAX: usize = 10 * 1024;
pub(super) const INDEXED_FIELDS_MAX: usize = 512;

/// The most bytes that one more field adds to the index.
pub(super) const GROWTH_BYTES_MAX: usize = GROUP + START_BYTES;

const MARK: u8 = 0xfb;
const GROUPS_AT: usize = 3;
/// Fields of a group: as many fingerprints as are compared at once.
const GROUP: usize = 8;
const START_BYTES: usize = 2;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Names that collide cost a longer look through a hash that is short: the seed need not be secret.
const HASHER: KeyHasher = KeyHasher::with_seed(0x6669_656c_6473);

type Header = SmallVec<[u8; 256]>;

/// Where a field lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub index: usize,
    pub start: usize,
}

#[inline]
pub(super) fn is_indexed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&MARK)
}

#[inline]
pub(super) fn len(bytes: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([bytes[1], bytes[2]]))
}

/// Bytes of the index of so many fields.
#[inline]
pub(super) fn bytes_for(fields: usize) -> usize {
    GROUPS_AT + fields.div_ceil(GROUP) * (GROUP + START_BYTES)
}

#[inline]
pub(super) fn header_bytes(bytes: &[u8]) -> usize {
    bytes_for(len(bytes))
}

#[inline]
fn fingerprint(name: &Stored<'_>) -> u8 {
    // An integer is all head.
    match name.pieces() {
        [head, []] => HASHER.hash(head) as u8,
        [_, text] => HASHER.hash(text) as u8,
    }
}

/// Where the offset of a group's first field stands.
#[inline]
fn start_at(fields: usize, group: usize) -> usize {
    GROUPS_AT + fields.div_ceil(GROUP) * GROUP + group * START_BYTES
}

#[inline]
fn start(bytes: &[u8], group: usize) -> usize {
    let at = start_at(len(bytes), group);
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn start_bytes(start: usize) -> [u8; START_BYTES] {
    u16::try_from(start).expect("INDEXED_BYTES_MAX is far below 64 KiB").to_le_bytes()
}

/// Bytes of the field that starts `run`.
#[inline]
fn field_bytes(run: &[u8]) -> usize {
    let name = stored_bytes(run);
    name + stored_bytes(&run[name..])
}

/// Looks for a field by the form of its name.
#[inline]
pub(super) fn find(bytes: &[u8], name: &Stored<'_>) -> Option<Found> {
    let (fields, needle) = (len(bytes), name.needle());
    let (groups, _) = bytes[GROUPS_AT..start_at(fields, 0)].as_chunks::<GROUP>();
    let pattern = u64::from(fingerprint(name)) * LOW_BITS;
    for (group, word) in groups.iter().enumerate() {
        let differing = u64::from_le_bytes(*word) ^ pattern;
        // The high bit of each byte that is zero.
        let mut equal = !(((differing & !HIGH_BITS) + !HIGH_BITS) | differing) & HIGH_BITS;
        while equal != 0 {
            let index = group * GROUP + equal.trailing_zeros() as usize / 8;
            if index >= fields {
                return None;
            }
            let first = bytes_for(fields) + start(bytes, group);
            let start = (group * GROUP..index).fold(first, |at, _| at + field_bytes(&bytes[at..]));
            if needle.starts(&bytes[start..]) {
                return Some(Found { index, start });
            }
            equal &= equal - 1;
        }
    }
    None
}

/// Puts an index in front of the fields of a hash that has no header.
#[cold]
pub(super) fn add(blob: &mut impl Blob) {
    let run = blob.bytes();
    let (mut fingerprints, mut starts, mut at) = (Header::new(), Header::new(), 0);
    while at < run.len() {
        if fingerprints.len().is_multiple_of(GROUP) {
            starts.extend_from_slice(&start_bytes(at));
        }
        let name: Element<'_> = decode(&run[at..]).0;
        fingerprints.push(fingerprint(&Stored::new(name)));
        at += field_bytes(&run[at..]);
    }
    let fields = fingerprints.len();
    fingerprints.resize(fields.next_multiple_of(GROUP), 0);
    blob.splice(0, 0, &[&prefix(fields), &fingerprints, &starts]);
}

/// Takes the index away.
#[cold]
pub(super) fn drop_index(blob: &mut impl Blob) {
    let header = header_bytes(blob.bytes());
    blob.splice(0, header, &[]);
}

fn prefix(fields: usize) -> [u8; GROUPS_AT] {
    let [low, high] = u16::try_from(fields).expect("a field takes two bytes").to_le_bytes();
    [MARK, low, high]
}

/// Appends a field whose name is new, given in pieces.
pub(super) fn append(blob: &mut impl Blob, name: &Stored<'_>, pieces: &[&[u8]]) {
    let bytes = blob.bytes();
    let fields = len(bytes);
    let own = fingerprint(name);
    if fields.is_multiple_of(GROUP) {
        let start = start_bytes(bytes.len() - bytes_for(fields));
        let end = bytes_for(fields);
        blob.splice(end, 0, &[&start]);
        let mut group = [0; GROUP];
        group[0] = own;
        blob.splice(start_at(fields, 0), 0, &[&group]);
    } else {
        blob.overwrite(GROUPS_AT + fields, &[own]);
    }
    blob.overwrite(0, &prefix(fields + 1));
    let total = blob.bytes().len();
    blob.splice(total, 0, pieces);
}

/// To be called when the value of a field has another length, by how many bytes that it grew.
pub(super) fn note_growth(blob: &mut impl Blob, index: usize, growth: isize) {
    let fields = len(blob.bytes());
    for group in index / GROUP + 1..fields.div_ceil(GROUP) {
        let moved = start(blob.bytes(), group).wrapping_add_signed(growth);
        blob.overwrite(start_at(fields, group), &start_bytes(moved));
    }
}

/// Removes a field.
pub(super) fn remove(blob: &mut impl Blob, found: Found) {
    let bytes = blob.bytes();
    let fields = len(bytes);
    let removed = field_bytes(&bytes[found.start..]);
    let mut header = Header::from_slice(&bytes[..bytes_for(fields)]);
    // From the next group on each begins with what was its second field.
    for group in found.index / GROUP + 1..fields.div_ceil(GROUP) {
        let first = start(bytes, group);
        let second = first + field_bytes(&bytes[bytes_for(fields) + first..]);
        let at = start_at(fields, group);
        header[at..at + START_BYTES].copy_from_slice(&start_bytes(second - removed));
    }
    let own = GROUPS_AT + found.index;
    header.copy_within(own + 1..GROUPS_AT + fields, own);
    header[GROUPS_AT + fields - 1] = 0;
    if fields % GROUP == 1 {
        // The last group is empty now: its start goes, and so do its fingerprints.
        header.truncate(header.len() - START_BYTES);
        let starts = start_at(fields, 0);
        header.drain(starts - GROUP..starts);
    }
    header[..GROUPS_AT].copy_from_slice(&prefix(fields - 1));
    blob.splice(found.start, removed, &[]);
    if header.len() == bytes_for(fields) {
        blob.overwrite(0, &header);
    } else {
        blob.splice(0, bytes_for(fields), &[&header]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lease;
    use super::super::packed::{self, Fields, Form};
    use super::*;
    use russet_base::random::Random;
    use std::collections::BTreeMap;

    /// Panics unless the index says what a new one would say.
    fn check(bytes: &[u8]) {
        let mut again = bytes[header_bytes(bytes)..].to_vec();
        add(&mut again);
        assert_eq!(bytes, again);
    }

    fn word(random: &mut Random, of: u64) -> Vec<u8> {
        match random.below(4) {
            0 => random.below(of).to_string().into_bytes(),
            1 => format!("-{}", random.below(of) * 1_000_003).into_bytes(),
            2 => vec![b'a' + random.below(26) as u8; random.index(64)],
            _ => format!("field:{}", random.below(of)).into_bytes(),
        }
    }

    #[test]
    fn fields_are_those_of_a_map_across_the_border_of_the_index() {
        let mut forms = [0; 2];
        for seed in 0..20 {
            let mut random = Random::from_seed(seed);
            let (mut bytes, mut model) = (Vec::new(), BTreeMap::new());
            for step in 0..3000 {
                let is_growing = step % 1000 < 500;
                let (name, value) = (word(&mut random, 150), word(&mut random, 1 << 40));
                let named = Element::parse(&name);
                if random.chance(if is_growing { 0.7 } else { 0.3 }) {
                    let pair = (&name[..], &value[..]);
                    if packed::is_outgrown(&bytes, Form::Plain.tag(), pair) {
                        continue;
                    }
                    let pair = (named, Element::parse(&value));
                    let is_new = packed::set(&mut bytes, Form::Plain, pair, Lease::None);
                    assert_eq!(is_new, model.insert(name.clone(), value).is_none());
                } else {
                    let at = random.index(model.len() + 1);
                    let name = model.keys().nth(at).unwrap_or(&name).clone();
                    let is_there = packed::remove(&mut bytes, Form::Plain, Element::parse(&name));
                    assert_eq!(is_there, model.remove(&name).is_some());
                }
                let found = packed::value(&bytes, named, Form::Plain).map(Element::to_vec);
                assert_eq!(found.as_ref(), model.get(&name));
                assert_eq!(packed::len(&bytes, Form::Plain), model.len());
                assert!(bytes.len() <= INDEXED_BYTES_MAX);
                forms[usize::from(is_indexed(&bytes))] += 1;
                if is_indexed(&bytes) {
                    check(&bytes);
                } else {
                    assert!(bytes.len() <= INDEXED_BYTES_MIN);
                }
            }
            let all: BTreeMap<_, _> = Fields::new(&bytes, Form::Plain)
                .map(|field| (field.name.to_vec(), field.value.to_vec()))
                .collect();
            assert_eq!(all, model);
        }
        assert!(forms.iter().all(|seen| *seen > 3000), "{forms:?}");
    }
}
