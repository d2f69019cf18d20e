//! The list's room: what a command can do with a list, whichever form it has. A small list is
//! packed into its table entry, one of medium size lies there with some room to spare, a large one
//! is an object of its own; moving a list from one form to another is done by its owner when
//! [`ListMut::outgrows`] or [`ListMut::shrink_form`] asks for it.

mod builder;
mod chunk;
mod entries;
mod entry;
mod large;
mod limits;
mod medium;
pub mod packed;
pub mod stored;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};

use crate::types::blob::Blob;

pub use crate::types::element::{Element, IntText};
pub use builder::ListBuilder;
pub use entries::{Entries, Quota, Run, is_sound};
pub use large::LargeList;
pub use limits::{Extent, Form, ListLimits, PACKED_BYTES_MAX, ShrinkCause};

/// The ends of a list: LEFT and RIGHT in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Front,
    Back,
}

/// Where LINSERT puts an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAt {
    Before,
    After,
}

/// `start stop` of LRANGE and LTRIM: inclusive, negative from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub start: i64,
    pub stop: i64,
}

impl Bounds {
    /// The indexes meant in a list of `len`; empty (at 0) if none are.
    pub fn within(self, len: usize) -> Range<usize> {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let from_end = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
        let start = from_end(self.start).max(0);
        let stop = from_end(self.stop).min(len - 1);
        if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
    }
}

/// The index meant by `index`, negative from the end, in a list of `len`.
pub fn resolve_index(index: i64, len: usize) -> Option<usize> {
    let at = if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(index).ok()?
    };
    (at < len).then_some(at)
}

impl Quota {
    /// LREM's count: from the front if positive, from the back if negative, all if zero.
    pub fn of(count: i64) -> Self {
        let limit = match count {
            0 => usize::MAX,
            _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        };
        Quota { limit, from_back: count < 0 }
    }
}

/// LPOS: which matches are wanted.
#[derive(Clone, Copy, Debug)]
pub struct PositionQuery {
    /// The rank of the first match to report, counted from the back if negative. Not zero.
    pub rank: i64,
    /// Most matches to report; `None` is all.
    pub count: Option<usize>,
    /// Most elements to compare; `None` is all.
    pub compared_max: Option<usize>,
}

/// A list to read.
#[derive(Clone, Copy)]
pub enum ListRef<'a> {
    Packed(&'a [u8]),
    Medium(&'a [u8]),
    Large(&'a LargeList),
}

impl<'a> ListRef<'a> {
    /// The list that lies inside its table entry as these bytes.
    #[inline]
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        if medium::is_medium(bytes) { ListRef::Medium(bytes) } else { ListRef::Packed(bytes) }
    }

    #[inline]
    pub fn len(self) -> usize {
        match self {
            ListRef::Packed(bytes) => packed::len(bytes),
            ListRef::Medium(bytes) => medium::len(bytes),
            ListRef::Large(list) => list.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The size of the entries in bytes and elements.
    pub fn size(self) -> Extent {
        match self {
            ListRef::Packed(bytes) => packed::size(bytes),
            ListRef::Medium(bytes) => medium::run(bytes).size(),
            ListRef::Large(list) => list.size(),
        }
    }

    /// The name that OBJECT ENCODING gives. One that is not large is always within the listpack's
    /// limits, except that the directive may have been lowered since; Redis too looks only at the
    /// next edit.
    pub fn encoding(self) -> &'static str {
        match self {
            ListRef::Large(list) if list.is_quicklist() => "quicklist",
            _ => "listpack",
        }
    }

    pub fn index(self, index: usize) -> Option<Element<'a>> {
        match self {
            ListRef::Packed(bytes) => packed::index(bytes, index),
            ListRef::Medium(bytes) => medium::run(bytes).within(index..index + 1).next(),
            ListRef::Large(list) => list.index(index),
        }
    }

    /// Shows the elements of `range`, which is cut to the list, in order.
    pub fn for_each_in(self, range: Range<usize>, visit: impl FnMut(Element<'_>)) {
        match self {
            ListRef::Packed(bytes) => packed::range(bytes, range).for_each(visit),
            ListRef::Medium(bytes) => medium::run(bytes).within(range).for_each(visit),
            ListRef::Large(list) => list.for_each_in(range, visit),
        }
    }

    /// The same from the last of the range to the first.
    pub fn for_each_in_rev(self, range: Range<usize>, visit: impl FnMut(Element<'_>)) {
        match self {
            ListRef::Packed(bytes) => {
                let elements: packed::Gathered = packed::range(bytes, range).collect();
                elements.into_iter().rev().for_each(visit);
            }
            ListRef::Medium(bytes) => medium::run(bytes).within(range).rev().for_each(visit),
            ListRef::Large(list) => list.for_each_in_rev(range, visit),
        }
    }

    /// Shows all elements from one end until `visit` breaks off.
    pub fn scan(self, from: End, mut visit: impl FnMut(Element<'_>) -> ControlFlow<()>) {
        match self {
            ListRef::Packed(bytes) => {
                let mut elements = packed::elements(bytes);
                let _ = match from {
                    End::Front => elements.try_for_each(&mut visit),
                    End::Back => {
                        let elements: packed::Gathered = elements.collect();
                        elements.into_iter().rev().try_for_each(&mut visit)
                    }
                };
            }
            ListRef::Medium(bytes) => {
                let mut elements = Entries::new(medium::run(bytes).bytes);
                let _ = match from {
                    End::Front => elements.try_for_each(&mut visit),
                    End::Back => elements.rev().try_for_each(&mut visit),
                };
            }
            ListRef::Large(list) => list.scan(from, visit),
        }
    }

    /// LPOS: shows the indexes of the elements equal to `wanted`, in the order of the search.
    pub fn positions(
        self,
        wanted: Element<'_>,
        query: PositionQuery,
        mut visit: impl FnMut(usize),
    ) {
        let len = self.len();
        let from = if query.rank < 0 { End::Back } else { End::Front };
        let mut skip = query.rank.unsigned_abs().saturating_sub(1);
        let mut left = query.count.unwrap_or(usize::MAX);
        let compared_max = query.compared_max.unwrap_or(usize::MAX);
        if left == 0 || compared_max == 0 {
            return;
        }
        let mut compared = 0;
        self.scan(from, |element| {
            compared += 1;
            if element == wanted {
                if skip > 0 {
                    skip -= 1;
                } else {
                    visit(if from == End::Front { compared - 1 } else { len - compared });
                    left -= 1;
                }
            }
            if left == 0 || compared == compared_max {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    }
}

/// A list to change.
pub enum ListMut<'a, B: Blob> {
    /// Packed or of medium size, which an edit may change: once it is empty it is packed.
    InEntry(&'a mut B),
    Large(&'a mut LargeList),
}

#[inline]
fn is_medium(blob: &impl Blob) -> bool {
    medium::is_medium(blob.bytes())
}

impl<B: Blob> ListMut<'_, B> {
    pub fn as_ref(&self) -> ListRef<'_> {
        match self {
            ListMut::InEntry(blob) => ListRef::of_bytes(blob.bytes()),
            ListMut::Large(list) => ListRef::Large(list),
        }
    }

    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// To be asked before texts of extent `growth` are pushed, inserted or set: the larger form, if
    /// any, that the list must take first.
    #[must_use]
    pub fn outgrows(&mut self, growth: Extent, limits: ListLimits) -> Option<Form> {
        let form = match self {
            ListMut::InEntry(blob) if is_medium(*blob) => {
                limits::form_of_entries(medium::run(blob.bytes()).size(), growth, limits)
            }
            ListMut::InEntry(blob) => {
                let size = packed::size(blob.bytes());
                if limits::stays_packed(size, growth, limits) {
                    return None;
                }
                limits::form_of_packed(size, growth, limits)
            }
            ListMut::Large(list) => {
                list.grow(growth, limits);
                Form::Large
            }
        };
        (form > self.form()).then_some(form)
    }

    #[inline]
    fn form(&self) -> Form {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => Form::Medium,
            ListMut::InEntry(_) => Form::Packed,
            ListMut::Large(_) => Form::Large,
        }
    }

    /// To be asked after elements were removed or replaced: the smaller form, if any, that the list
    /// should now take.
    #[must_use]
    pub fn shrink_form(&mut self, limits: ListLimits, cause: ShrinkCause) -> Option<Form> {
        let form = match self {
            ListMut::InEntry(blob) if is_medium(*blob) => {
                limits::form_after_shrinking(medium::run(blob.bytes()).bytes.len())
            }
            ListMut::InEntry(_) => Form::Packed,
            ListMut::Large(list) => list.shrink_form(limits, cause),
        };
        (form < self.form()).then_some(form)
    }

    /// Pushes texts one after the other, as LPUSH and RPUSH do: the last one ends up outermost.
    pub fn push<'e>(&mut self, end: End, texts: impl DoubleEndedIterator<Item = &'e [u8]>) {
        self.push_elements(end, texts.map(Element::parse));
    }

    pub fn push_elements<'e>(
        &mut self,
        end: End,
        elements: impl DoubleEndedIterator<Item = Element<'e>>,
    ) {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => medium::push(*blob, end, elements),
            ListMut::InEntry(blob) => packed::push(*blob, end, elements),
            ListMut::Large(list) => list.push(end, elements),
        }
    }

    /// Removes up to `count` elements from one end, shown to `visit` from that end inwards.
    pub fn pop(&mut self, end: End, count: usize, visit: impl FnMut(Element<'_>)) {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => medium::pop(*blob, end, count, visit),
            ListMut::InEntry(blob) => packed::pop(*blob, end, count, visit),
            ListMut::Large(list) => list.pop(end, count, visit),
        }
    }

    /// Removes up to `count` elements from one end to be pushed elsewhere.
    pub fn take(&mut self, end: End, count: usize) -> Taken {
        let mut taken = Taken::default();
        self.pop(end, count, |element| taken.add(element));
        taken
    }

    /// LMOVE from a list to itself: one element from one end to an end. `false` if it is empty.
    pub fn rotate(&mut self, from: End, to: End) -> bool {
        if from == to || self.len() < 2 {
            return !self.is_empty();
        }
        let taken = self.take(from, 1);
        self.push_elements(to, taken.iter());
        true
    }

    /// Puts `element` beside the first one equal to `pivot`: the new length, or `None` without one.
    pub fn insert(
        &mut self,
        side: InsertAt,
        pivot: Element<'_>,
        element: Element<'_>,
    ) -> Option<usize> {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => {
                medium::insert(*blob, side, pivot, element)
            }
            ListMut::InEntry(blob) => packed::insert(*blob, side, pivot, element),
            ListMut::Large(list) => list.insert(side, pivot, element),
        }
    }

    /// Replaces the element at `index`; `false` if there is none.
    pub fn set(&mut self, index: usize, element: Element<'_>) -> bool {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => medium::set(*blob, index, element),
            ListMut::InEntry(blob) => packed::set(*blob, index, element),
            ListMut::Large(list) => list.set(index, element),
        }
    }

    /// Removes what equals `wanted`, within the quota; how many that were.
    pub fn remove(&mut self, quota: Quota, wanted: Element<'_>) -> usize {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => medium::remove(*blob, quota, wanted),
            ListMut::InEntry(blob) => packed::remove(*blob, quota, wanted),
            ListMut::Large(list) => list.remove(quota, wanted),
        }
    }

    /// Keeps only the elements of `range`, which is cut to the list.
    pub fn trim(&mut self, range: Range<usize>) {
        match self {
            ListMut::InEntry(blob) if is_medium(*blob) => medium::trim(*blob, range),
            ListMut::InEntry(blob) => packed::trim(*blob, range),
            ListMut::Large(list) => list.trim(range),
        }
    }
}

/// Elements taken out of a list, in the order in which they were popped.
#[derive(Clone, Default)]
pub struct Taken {
    entries: smallvec::SmallVec<[u8; 64]>,
    count: usize,
}

impl Taken {
    fn add(&mut self, element: Element<'_>) {
        let entry = entry::Entry::new(element);
        entry.pieces().iter().for_each(|piece| self.entries.extend_from_slice(piece));
        self.count += 1;
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// From the first popped to the last, or back.
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(&self.entries)
    }

    /// What pushing these adds, as [`ListMut::outgrows`] wants it.
    pub fn extent(&self) -> Extent {
        self.iter().fold(Extent::default(), |sum, element| Extent {
            bytes: sum.bytes + element.with_bytes(<[u8]>::len),
            count: sum.count + 1,
        })
    }
}
