//! A small hash in one run of bytes: a header, then for each field its name and its value in the
//! forms of `element.rs`, in the order in which they came. A hash some of whose fields expire has
//! a longer header and, before such a field, its deadline.
//!
//! | plain header | |
//! |---|---|
//! | nothing | to Redis it is a listpack |
//! | `0xfa` | to Redis it is a hashtable |
//! | `0xfb` | to Redis it is a listpack; the index of its fields follows: see `indexed.rs` |
//!
//! | expiring header | |
//! |---|---|
//! | 2 bytes | fields |
//! | 2 bytes | fields that have a deadline, at least one |
//! | 8 bytes | the bound: no field expires before it |
//!
//! | deadline | |
//! |---|---|
//! | `0xf8` + 6 bytes | milliseconds since the epoch, little-endian |
//! | `0xf9` + 8 bytes | the same, for moments beyond the year 10,000 |
//!
//! Heads of elements end at `0xf4`, so neither mark nor deadline can be taken for a field.

use super::indexed::{Found, INDEXED_BYTES_MAX, INDEXED_BYTES_MIN, INDEXED_FIELDS_MAX};
use super::{Lease, indexed};
use crate::types::blob::Blob;
use crate::types::element::{Element, Stored, decode, stored_bytes, text_bytes_max};
use crate::value::PackedTag;
use smallvec::SmallVec;

/// The longest hash without an index that stays inside its table entry, header included: some two
/// hundred short fields, which are found as fast as Redis finds them in a listpack, and take less
/// than in cells.
pub(super) const PACKED_BYTES_MAX: usize = 4096;

const HASHTABLE_MARK: u8 = 0xfa;
const EXPIRING_HEADER_BYTES: usize = 12;
const VOLATILE_AT: usize = 2;
const BOUND_AT: usize = 4;
const DEADLINE_SHORT: u8 = 0xf8;
const DEADLINE_LONG: u8 = 0xf9;
const DEADLINE_BYTES_MAX: usize = 9;

/// Bytes of a packed hash that is being built or rebuilt.
pub(super) type Scratch = SmallVec<[u8; 512]>;

/// Whether fields of this hash may expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Expiring,
}

impl Form {
    #[inline]
    pub(super) fn of_tag(tag: u8) -> Option<Form> {
        if tag == PackedTag::Hash as u8 {
            Some(Form::Plain)
        } else if tag == PackedTag::ExpiringHash as u8 {
            Some(Form::Expiring)
        } else {
            None
        }
    }

    #[inline]
    pub(super) fn tag(self) -> u8 {
        match self {
            Form::Plain => PackedTag::Hash as u8,
            Form::Expiring => PackedTag::ExpiringHash as u8,
        }
    }

    /// Bytes of the header of a hash of this form.
    #[inline]
    fn header_bytes(self, bytes: &[u8]) -> usize {
        match self {
            Form::Plain if indexed::is_indexed(bytes) => indexed::header_bytes(bytes),
            Form::Plain => usize::from(is_marked(bytes)),
            Form::Expiring => EXPIRING_HEADER_BYTES,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..) {
        Some([low, high, ..]) => u16::from_le_bytes([*low, *high]),
        _ => 0,
    }
}

/// How many fields there are. In a plain hash they are counted: a stored number would cost every
/// small hash more than it saves those who ask.
#[inline]
pub(super) fn len(bytes: &[u8], form: Form) -> usize {
    if form == Form::Expiring {
        return usize::from(u16_at(bytes, 0));
    }
    if indexed::is_indexed(bytes) {
        return indexed::len(bytes);
    }
    let (mut at, mut count) = (form.header_bytes(bytes), 0);
    while at < bytes.len() {
        at = end_of(bytes, end_of(bytes, at));
        count += 1;
    }
    count
}

/// Whether there are no fields.
#[inline]
pub(super) fn is_empty(bytes: &[u8], form: Form) -> bool {
    bytes.len() <= form.header_bytes(bytes)
}

/// Whether there are more fields than `max`.
#[inline]
pub(super) fn has_more_than(max: usize, bytes: &[u8], form: Form) -> bool {
    // No field is shorter than two bytes.
    bytes.len() / 2 > max && len(bytes, form) > max
}

/// Whether Redis would no longer call a plain hash a listpack.
#[inline]
pub(super) fn is_marked(bytes: &[u8]) -> bool {
    bytes.first() == Some(&HASHTABLE_MARK)
}

/// Notes that Redis would call it a hashtable, which it does anyway if fields expire.
pub(super) fn mark(blob: &mut impl Blob, form: Form) {
    if form == Form::Plain && !is_marked(blob.bytes()) {
        let header = form.header_bytes(blob.bytes());
        blob.splice(0, header, &[&[HASHTABLE_MARK]]);
    }
}

/// Fields with a deadline, of an expiring hash.
pub(super) fn volatile_len(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, VOLATILE_AT))
}

/// The moment before which no field of an expiring hash expires.
pub(super) fn bound(bytes: &[u8]) -> i64 {
    let bytes = bytes.get(BOUND_AT..).and_then(|rest| rest.first_chunk());
    bytes.map_or(i64::MAX, |bytes| i64::from_le_bytes(*bytes))
}

/// A deadline's form.
pub(super) struct Deadline {
    bytes: [u8; DEADLINE_BYTES_MAX],
    len: usize,
}

impl Deadline {
    pub(super) fn new(at_ms: i64) -> Self {
        let mut bytes = [0; DEADLINE_BYTES_MAX];
        bytes[1..].copy_from_slice(&at_ms.to_le_bytes());
        let is_short = (0..1 << 48).contains(&at_ms);
        let (tag, len) = if is_short { (DEADLINE_SHORT, 7) } else { (DEADLINE_LONG, 9) };
        bytes[0] = tag;
        Deadline { bytes, len }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The deadline that may start `run`, and its bytes.
#[inline]
pub(super) fn read_deadline(run: &[u8]) -> (Option<i64>, usize) {
    let len = match run[0] {
        DEADLINE_SHORT => 7,
        DEADLINE_LONG => 9,
        _ => return (None, 0),
    };
    let mut wide = [0; 8];
    wide[..len - 1].copy_from_slice(&run[1..len]);
    (Some(i64::from_le_bytes(wide)), len)
}

/// One field where it lies.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// How many fields stand before it, if there is an index.
    index: usize,
    /// Where its deadline, or else its name, begins.
    start: usize,
    deadline_ms: Option<i64>,
    name: usize,
    value: usize,
    end: usize,
}

/// Where the element ends that starts at `at`.
#[inline(always)]
fn end_of(bytes: &[u8], at: usize) -> usize {
    at + stored_bytes(&bytes[at..])
}

#[inline(always)]
fn record_at(bytes: &[u8], start: usize, form: Form) -> Record {
    let (deadline_ms, deadline_len) = match form {
        Form::Plain => (None, 0),
        Form::Expiring => read_deadline(&bytes[start..]),
    };
    let name = start + deadline_len;
    let value = end_of(bytes, name);
    Record { index: 0, start, deadline_ms, name, value, end: end_of(bytes, value) }
}

/// Looks for a field by the bytes of its form: equal elements have equal forms.
#[inline]
fn find(bytes: &[u8], field: &Stored<'_>, form: Form) -> Option<Record> {
    if form == Form::Plain && indexed::is_indexed(bytes) {
        let found = indexed::find(bytes, field)?;
        return Some(Record { index: found.index, ..record_at(bytes, found.start, form) });
    }
    let needle = field.needle();
    let mut at = form.header_bytes(bytes);
    while at < bytes.len() {
        let record = record_at(bytes, at, form);
        if needle.starts(&bytes[record.name..]) {
            return Some(record);
        }
        at = record.end;
    }
    None
}

/// A field as it is read: its name, its value and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    pub name: Element<'a>,
    pub value: Element<'a>,
    pub deadline_ms: Option<i64>,
}

#[inline]
pub(super) fn value<'a>(bytes: &'a [u8], field: Element<'_>, form: Form) -> Option<Element<'a>> {
    let record = find(bytes, &Stored::new(field), form)?;
    Some(decode(&bytes[record.value..]).0)
}

/// When a field expires; see [`super::HashRef::deadline`].
pub(super) fn deadline(bytes: &[u8], field: Element<'_>, form: Form) -> Option<Option<i64>> {
    find(bytes, &Stored::new(field), form).map(|record| record.deadline_ms)
}

/// The fields one after the other.
#[derive(Clone)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    form: Form,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], form: Form) -> Self {
        Fields { bytes, at: form.header_bytes(bytes), form }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let (mut deadline_ms, mut at) = (None, self.at);
        if self.form == Form::Expiring {
            let (deadline, len) = read_deadline(&self.bytes[at..]);
            (deadline_ms, at) = (deadline, at + len);
        }
        let (name, name_len) = decode(&self.bytes[at..]);
        let (value, value_len) = decode(&self.bytes[at + name_len..]);
        self.at = at + name_len + value_len;
        Some(Field { name, value, deadline_ms })
    }
}

/// The most bytes that one more field can add.
pub(super) fn growth(name_len: usize, value_len: usize) -> usize {
    field_bytes_max(name_len, value_len) + DEADLINE_BYTES_MAX
}

/// The most bytes of a field without a deadline.
pub(super) fn field_bytes_max(name_len: usize, value_len: usize) -> usize {
    text_bytes_max(name_len) + text_bytes_max(value_len)
}

/// Whether a packed hash has no room for a field that is added or set.
#[inline]
pub(super) fn is_outgrown(bytes: &[u8], tag: u8, (name, value): (&[u8], &[u8])) -> bool {
    let total = bytes.len() + growth(name.len(), value.len());
    if tag != Form::Plain.tag() || !indexed::is_indexed(bytes) {
        return total > PACKED_BYTES_MAX;
    }
    let is_full = || indexed::len(bytes) == INDEXED_FIELDS_MAX;
    let is_new = || indexed::find(bytes, &Stored::new(Element::parse(name))).is_none();
    total + indexed::GROWTH_BYTES_MAX > INDEXED_BYTES_MAX || is_full() && is_new()
}

/// The most bytes of the fields, so many, of a new hash that is packed.
pub(super) fn bytes_max(fields: usize, is_hashtable: bool) -> usize {
    match is_hashtable || fields > INDEXED_FIELDS_MAX {
        true => PACKED_BYTES_MAX,
        false => INDEXED_BYTES_MAX - indexed::bytes_for(fields),
    }
}

/// Whether a hash is too long for the forms that have no index.
#[inline]
pub(super) fn needs_index(bytes: &[u8]) -> bool {
    bytes.len() > PACKED_BYTES_MAX
}

fn add_count(blob: &mut impl Blob, at: usize, by: i16) {
    let count = u16_at(blob.bytes(), at).wrapping_add_signed(by);
    blob.overwrite(at, &count.to_le_bytes());
}

/// Sets a field; whether it is new. The caller has seen to it that there is room, and that a hash
/// which is given a deadline is of the expiring form.
#[inline]
pub(super) fn set(
    blob: &mut impl Blob,
    form: Form,
    (name, value): (Element<'_>, Element<'_>),
    lease: Lease,
) -> bool {
    let (name, value) = (Stored::new(name), Stored::new(value));
    let Some(record) = find(blob.bytes(), &name, form) else {
        append(blob, form, (&name, &value), lease);
        return true;
    };
    let [head, payload] = value.pieces();
    if record.end - record.value == value.bytes() {
        blob.overwrite(record.value, head);
        blob.overwrite(record.value + head.len(), payload);
    } else {
        let before = record.end - record.value;
        blob.splice(record.value, before, &[head, payload]);
        if form == Form::Plain && indexed::is_indexed(blob.bytes()) {
            let growth = value.bytes() as isize - before as isize;
            indexed::note_growth(blob, record.index, growth);
        }
    }
    match lease {
        Lease::Keep => {}
        Lease::None if record.deadline_ms.is_none() => {}
        Lease::None => replace_deadline(blob, record, None),
        Lease::Until(at_ms) => replace_deadline(blob, record, Some(at_ms)),
    }
    false
}

#[inline]
fn append(
    blob: &mut impl Blob,
    form: Form,
    (name, value): (&Stored<'_>, &Stored<'_>),
    lease: Lease,
) {
    let ([name_head, name_payload], [head, payload]) = (name.pieces(), value.pieces());
    let at = blob.bytes().len();
    if form == Form::Expiring {
        add_count(blob, 0, 1);
    }
    if let Lease::Until(at_ms) = lease {
        let deadline = Deadline::new(at_ms);
        let pieces = [deadline.as_bytes(), name_head, name_payload, head, payload];
        blob.splice(at, 0, &pieces);
        count_deadline(blob, at_ms);
    } else if form == Form::Plain && indexed::is_indexed(blob.bytes()) {
        indexed::append(blob, name, &[name_head, name_payload, head, payload]);
    } else {
        blob.splice(at, 0, &[name_head, name_payload, head, payload]);
        if form == Form::Plain && gets_index(blob.bytes()) {
            indexed::add(blob);
        }
    }
}

/// Whether a hash without an index is better off with one.
#[inline]
fn gets_index(bytes: &[u8]) -> bool {
    bytes.len() > INDEXED_BYTES_MIN
        && !is_marked(bytes)
        && !has_more_than(INDEXED_FIELDS_MAX, bytes, Form::Plain)
}

fn count_deadline(blob: &mut impl Blob, at_ms: i64) {
    add_count(blob, VOLATILE_AT, 1);
    if at_ms < bound(blob.bytes()) {
        blob.overwrite(BOUND_AT, &at_ms.to_le_bytes());
    }
}

/// Gives a field a deadline or takes it away, in a hash of the expiring form.
fn replace_deadline(blob: &mut impl Blob, record: Record, deadline_ms: Option<i64>) {
    let old_len = record.name - record.start;
    if record.deadline_ms.is_some() {
        add_count(blob, VOLATILE_AT, -1);
    }
    let Some(at_ms) = deadline_ms else {
        return blob.splice(record.start, old_len, &[]);
    };
    blob.splice(record.start, old_len, &[Deadline::new(at_ms).as_bytes()]);
    count_deadline(blob, at_ms);
}

/// As [`replace_deadline`] for a field by its name; `false` if there is none.
pub(super) fn set_deadline(
    blob: &mut impl Blob,
    name: Element<'_>,
    deadline_ms: Option<i64>,
) -> bool {
    let Some(record) = find(blob.bytes(), &Stored::new(name), Form::Expiring) else {
        return false;
    };
    replace_deadline(blob, record, deadline_ms);
    true
}

/// Removes a field; `false` if there is none.
#[inline]
pub(super) fn remove(blob: &mut impl Blob, form: Form, name: Element<'_>) -> bool {
    let Some(record) = find(blob.bytes(), &Stored::new(name), form) else {
        return false;
    };
    if form == Form::Plain && indexed::is_indexed(blob.bytes()) {
        indexed::remove(blob, Found { index: record.index, start: record.start });
        if blob.bytes().len() < INDEXED_BYTES_MIN / 2 {
            indexed::drop_index(blob);
        }
        return true;
    }
    if form == Form::Expiring {
        add_count(blob, 0, -1);
    }
    if record.deadline_ms.is_some() {
        add_count(blob, VOLATILE_AT, -1);
    }
    blob.splice(record.start, record.end - record.start, &[]);
    true
}

/// The same hash in the expiring form, without any deadline yet.
pub(super) fn to_expiring(bytes: &[u8]) -> Scratch {
    let mut expiring = Scratch::new();
    expiring.extend_from_slice(&(len(bytes, Form::Plain) as u16).to_le_bytes());
    expiring.extend_from_slice(&0u16.to_le_bytes());
    expiring.extend_from_slice(&i64::MAX.to_le_bytes());
    expiring.extend_from_slice(&bytes[Form::Plain.header_bytes(bytes)..]);
    expiring
}

/// An expiring hash whose last deadline is gone, in the plain form.
pub(super) fn to_plain(bytes: &[u8]) -> Scratch {
    debug_assert_eq!(volatile_len(bytes), 0, "a plain hash has no deadlines");
    let mut plain = Scratch::from_slice(&[HASHTABLE_MARK]);
    plain.extend_from_slice(&bytes[EXPIRING_HEADER_BYTES..]);
    plain
}

/// An expiring hash without the fields that are over at `now_ms`, its bound exact again.
pub(super) fn without_expired(bytes: &[u8], now_ms: i64) -> Scratch {
    let mut kept = Scratch::from_slice(&bytes[..EXPIRING_HEADER_BYTES]);
    let (mut count, mut volatile, mut bound) = (0u16, 0u16, i64::MAX);
    let mut at = EXPIRING_HEADER_BYTES;
    while at < bytes.len() {
        let record = record_at(bytes, at, Form::Expiring);
        at = record.end;
        if let Some(deadline_ms) = record.deadline_ms {
            if deadline_ms <= now_ms {
                continue;
            }
            volatile += 1;
            bound = bound.min(deadline_ms);
        }
        count += 1;
        kept.extend_from_slice(&bytes[record.start..record.end]);
    }
    kept[..2].copy_from_slice(&count.to_le_bytes());
    kept[VOLATILE_AT..BOUND_AT].copy_from_slice(&volatile.to_le_bytes());
    kept[BOUND_AT..BOUND_AT + 8].copy_from_slice(&bound.to_le_bytes());
    kept
}
