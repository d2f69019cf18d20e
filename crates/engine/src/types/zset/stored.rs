//! Sorted sets where they are stored: packed inside a table entry, or an object of their own. Moves
//! one from the packed form to the other when it outgrows it; none goes back, as in Redis.

use super::combine::{Members, Scored};
use super::limits::SCORE_GROWTH_BYTES_MAX;
use super::{
    Element, Extent, LargeZset, PACKED_BYTES_MAX, Pair, Upsert, ZsetLimits, ZsetMut, ZsetRef,
    entry, fits_packed, large, packed,
};
use crate::store::raw::table::{BlobMut, EntryMut, EntryRef, NewValue, View};
use crate::types::blob::Blob;
use crate::types::element::Stored;
use crate::types::set;
use crate::value::{Object, PackedTag, WrongType};
use smallvec::SmallVec;

/// The sorted set in an entry, to read.
#[inline]
pub fn zset<'a>(entry: &EntryRef<'a, Object>) -> Result<ZsetRef<'a>, WrongType> {
    match entry.value() {
        View::Packed(tag, bytes) if tag == PackedTag::Zset as u8 => Ok(ZsetRef::Packed(bytes)),
        View::Object(Object::Zset(zset)) => Ok(ZsetRef::Large(zset)),
        _ => Err(WrongType),
    }
}

/// As OBJECT ENCODING names it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    zset(entry).map_or("skiplist", ZsetRef::encoding)
}

/// Lets `edit` remove from the sorted set in an entry.
#[inline]
pub fn edit<R>(
    entry: &mut EntryMut<'_, Object>,
    edit: impl FnOnce(&mut ZsetMut<'_, BlobMut<'_>>) -> R,
) -> Result<R, WrongType> {
    if let Some(mut blob) = entry.packed_blob(PackedTag::Zset as u8) {
        return Ok(edit(&mut ZsetMut::Packed(&mut blob)));
    }
    match entry.object_mut() {
        Some(Object::Zset(zset)) => Ok(edit(&mut ZsetMut::Large(zset))),
        _ => Err(WrongType),
    }
}

/// Prepares for members of this extent.
/// COMPAT: many or long members turn a listpack into a skiplist even if none of them is added;
/// tests/wire/zset/encoding.wire. A value of another type may pass.
#[inline]
pub fn expect(
    entry: &mut EntryMut<'_, Object>,
    extent: Extent,
    limits: ZsetLimits,
) -> Result<(), WrongType> {
    if !limits.allow(extent) && zset(&entry.as_ref())?.is_listpack() {
        unpack(entry, false);
    }
    Ok(())
}

/// Makes a sorted set of its own of a packed one, and names its encoding.
fn unpack(entry: &mut EntryMut<'_, Object>, is_listpack: bool) {
    if let View::Packed(_, bytes) = entry.value() {
        let large = unpacked(bytes, is_listpack);
        entry.set_object(Box::new(Object::Zset(Box::new(large))));
    } else if let Some(Object::Zset(zset)) = entry.object_mut() {
        zset.is_listpack = is_listpack;
    }
}

fn unpacked(bytes: &[u8], is_listpack: bool) -> LargeZset {
    let pairs = packed::entries(bytes).map(|pair| (pair, large::hash(pair.member)));
    LargeZset::build(pairs, is_listpack)
}

/// Adds a member, or changes its score: `decide` is given the score that it has and says which one
/// it should have, if any.
#[inline]
pub fn upsert(
    entry: &mut EntryMut<'_, Object>,
    member: &[u8],
    limits: ZsetLimits,
    decide: impl FnOnce(Option<f64>) -> Option<f64>,
) -> Result<Upsert, WrongType> {
    if let Some(mut blob) = entry.packed_blob(PackedTag::Zset as u8) {
        return Ok(match upsert_packed(&mut blob, member, limits, decide) {
            Attempt::Done(upsert) => upsert,
            Attempt::Outgrown { score, is_listpack } => {
                unpack(entry, is_listpack);
                match entry.object_mut() {
                    Some(Object::Zset(zset)) => upsert_large(zset, member, limits, |_| Some(score)),
                    _ => Upsert::Left,
                }
            }
        });
    }
    match entry.object_mut() {
        Some(Object::Zset(zset)) => Ok(upsert_large(zset, member, limits, decide)),
        _ => Err(WrongType),
    }
}

/// What came of adding to a packed sorted set.
enum Attempt {
    Done(Upsert),
    /// It must take its other form first.
    Outgrown {
        score: f64,
        is_listpack: bool,
    },
}

#[inline]
fn upsert_packed(
    blob: &mut impl Blob,
    text: &[u8],
    limits: ZsetLimits,
    decide: impl FnOnce(Option<f64>) -> Option<f64>,
) -> Attempt {
    let member = Element::parse(text);
    let form = Stored::new(member);
    let bytes = blob.bytes();
    let found = packed::find(bytes, &form);
    let wanted = decide(found.map(|found| found.score)).filter(|score| {
        // Also between zeros of different signs there is no change.
        found.is_none_or(|found| found.score != *score)
    });
    let Some(score) = wanted else { return Attempt::Done(Upsert::Left) };
    let pair = Pair { score, member }.as_in_listpack();
    let entry = entry::Entry::of(pair.score, form);
    let growth = match found {
        Some(_) => SCORE_GROWTH_BYTES_MAX,
        None => entry.bytes(),
    };
    let count = packed::len(bytes) + usize::from(found.is_none());
    let is_listpack =
        found.is_some() || limits.allow(Extent { count, member_bytes_max: text.len() });
    if !is_listpack || !fits_packed(bytes.len() + growth, count) {
        return Attempt::Outgrown { score, is_listpack };
    }
    Attempt::Done(match found {
        Some(found) => {
            packed::rescore(blob, found, (pair, &entry));
            Upsert::Moved
        }
        None => {
            packed::insert(blob, (pair, &entry));
            Upsert::Added
        }
    })
}

fn upsert_large(
    zset: &mut LargeZset,
    text: &[u8],
    limits: ZsetLimits,
    decide: impl FnOnce(Option<f64>) -> Option<f64>,
) -> Upsert {
    let member = Element::parse(text);
    let holding = zset.find(member);
    let Some(score) = decide(holding.map(|holding| holding.score())) else {
        return Upsert::Left;
    };
    let pair = Pair { score, member };
    match holding {
        Some(holding) if holding.score() == score => Upsert::Left,
        Some(holding) => {
            zset.rescore(holding, pair);
            Upsert::Moved
        }
        None => {
            let extent = Extent { count: zset.len() + 1, member_bytes_max: text.len() };
            zset.is_listpack &= limits.allow(extent);
            zset.insert(pair);
            Upsert::Added
        }
    }
}

/// A new sorted set before it is put under its key.
#[expect(clippy::large_enum_variant, reason = "a new small one is made without an allocation")]
pub enum Draft {
    Packed(ShortBytes),
    Large(Box<LargeZset>),
}

impl Draft {
    /// Made for members of this extent.
    pub fn new(extent: Extent, limits: ZsetLimits) -> Self {
        if limits.allow(extent) {
            Draft::Packed(ShortBytes(SmallVec::new()))
        } else {
            Draft::Large(Box::default())
        }
    }

    /// As [`upsert`].
    pub fn upsert(
        &mut self,
        member: &[u8],
        limits: ZsetLimits,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Upsert {
        match self {
            Draft::Packed(blob) => match upsert_packed(blob, member, limits, decide) {
                Attempt::Done(upsert) => upsert,
                Attempt::Outgrown { score, is_listpack } => {
                    let mut large = unpacked(blob.bytes(), is_listpack);
                    let upsert = upsert_large(&mut large, member, limits, |_| Some(score));
                    *self = Draft::Large(Box::new(large));
                    upsert
                }
            },
            Draft::Large(large) => upsert_large(large, member, limits, decide),
        }
    }

    /// Hands it over as a value; nothing if it is empty.
    pub fn put(self, put: impl FnOnce(NewValue<'_, Object>)) {
        match self {
            Draft::Packed(blob) if blob.0.is_empty() => {}
            Draft::Packed(blob) => put(NewValue::Packed(PackedTag::Zset as u8, &blob.0)),
            Draft::Large(large) if large.is_empty() => {}
            Draft::Large(large) => put(NewValue::Object(Box::new(Object::Zset(large)))),
        }
    }
}

/// A whole new sorted set: what a STORE command makes of its operands before it lets go of them.
pub enum Built {
    Packed(Vec<u8>),
    Large(Box<Object>),
}

impl Built {
    /// Of pairs that are in order, each member once. There is at least one.
    pub fn new(pairs: &[Scored<'_>], limits: ZsetLimits) -> Self {
        let text_bytes = |scored: &Scored<'_>| scored.pair.member.with_bytes(<[u8]>::len);
        let member_bytes_max = pairs.iter().map(text_bytes).max().unwrap_or(0);
        if !limits.allow(Extent { count: pairs.len(), member_bytes_max }) {
            let pairs = pairs.iter().map(|scored| (scored.pair, scored.hash));
            return Built::large(LargeZset::build(pairs, false));
        }
        let normal = |scored: &Scored<'_>| scored.pair.score + 0.0;
        let entry_bytes = |scored: &Scored<'_>| entry::Entry::new(scored.pair).bytes();
        let bytes_total = pairs.iter().map(entry_bytes).sum::<usize>() + packed::HEADER_BYTES;
        let pairs =
            pairs.iter().map(|scored| (Pair { score: normal(scored), ..scored.pair }, scored.hash));
        if !fits_packed(bytes_total, pairs.len()) {
            return Built::large(LargeZset::build(pairs, true));
        }
        Built::Packed(packed::build(pairs.map(|(pair, _)| pair)))
    }

    fn large(zset: LargeZset) -> Self {
        Built::Large(Box::new(Object::Zset(Box::new(zset))))
    }

    /// Hands it over as a value.
    pub fn put(self, put: impl FnOnce(NewValue<'_, Object>)) {
        match self {
            Built::Packed(bytes) => put(NewValue::Packed(PackedTag::Zset as u8, &bytes)),
            Built::Large(object) => put(NewValue::Object(object)),
        }
    }
}

/// The members of a set or a sorted set.
pub fn members<'a>(entry: &EntryRef<'a, Object>) -> Result<Members<'a>, WrongType> {
    zset(entry).map(Members::Zset).or_else(|_| set::stored::set(entry).map(Members::Set))
}

/// Bytes of a new packed sorted set, on the stack.
pub struct ShortBytes(SmallVec<[u8; PACKED_BYTES_MAX]>);

impl Blob for ShortBytes {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self.0[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        self.0.drain(at..at + remove);
        let mut to = at;
        for piece in insert {
            self.0.insert_from_slice(to, piece);
            to += piece.len();
        }
    }
}
