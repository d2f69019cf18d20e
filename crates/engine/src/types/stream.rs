//! The stream's room: entries in blocks, consumer groups, and what is remembered of producers. A
//! small stream is packed into its table entry; see [`stored`].

mod block;
mod builder;
mod group;
mod id;
mod idempotency;
mod lag;
mod log;
mod name;
mod packed;
mod radix;
mod run;
pub mod stored;
#[cfg(test)]
mod tests;
mod trim;

pub use crate::types::element::Element;
pub use builder::StreamBuilder;
pub use group::{Consumer, ConsumerKey, Count, DELIVERIES_MAX, Group, Pending};
pub use id::{IdRange, IdText, StreamId};
pub use idempotency::Idempotency;
pub use log::{Log, Order};
pub use name::Name;
pub use packed::Packed;
pub use run::{Entry, Run};
pub use trim::{Threshold, Trim};

use crate::store::raw::prefetch::prefetch_whole;
use crate::types::capacity::{allocated_for, tree_bytes};
use name::name_bytes;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Deref, DerefMut};

/// Most bytes of one entry's names and values together.
pub const MEMBERS_BYTES_MAX: usize = 1 << 30;

/// What `stream-node-max-bytes` and `stream-node-max-entries` say; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLimits {
    pub bytes_max: usize,
    pub entries_max: u64,
}

/// What becomes of the pending lists when an entry is deleted: KEEPREF, DELREF, ACKED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They keep its ID.
    #[default]
    Keep,
    /// It is taken off them.
    Delete,
    /// It is deleted only once every group has read and acknowledged it.
    Respect,
}

/// In boxes, since a tree has room for eleven at once, and most streams have few.
pub type Groups = BTreeMap<Name, Box<Group>>;

/// What most streams have not.
#[derive(Default)]
struct Extras {
    groups: Groups,
    /// What the groups take besides their places in the tree.
    groups_bytes: usize,
    idempotency: Option<Idempotency>,
}

impl Clone for Extras {
    fn clone(&self) -> Self {
        let groups = self.groups.clone();
        // Copies have no room to spare.
        let groups_bytes = groups.iter().map(|(name, group)| group_bytes(name, group)).sum();
        Extras { groups, groups_bytes, idempotency: self.idempotency.clone() }
    }
}

impl Extras {
    fn memory_bytes(&self) -> usize {
        allocated_for::<Extras>(1)
            + tree_bytes::<Name, Box<Group>>(self.groups.len())
            + self.groups_bytes
            + self.idempotency.as_ref().map_or(0, Idempotency::memory_bytes)
    }
}

/// A group that is being changed: what it takes then is counted when it is let go.
pub struct OpenGroup<'a> {
    group: &'a mut Group,
    bytes_before: usize,
    groups_bytes: &'a mut usize,
}

impl<'a> OpenGroup<'a> {
    fn new(group: &'a mut Group, groups_bytes: &'a mut usize) -> Self {
        OpenGroup { bytes_before: group.memory_bytes(), group, groups_bytes }
    }
}

impl Deref for OpenGroup<'_> {
    type Target = Group;

    fn deref(&self) -> &Group {
        self.group
    }
}

impl DerefMut for OpenGroup<'_> {
    fn deref_mut(&mut self) -> &mut Group {
        self.group
    }
}

impl Drop for OpenGroup<'_> {
    fn drop(&mut self) {
        *self.groups_bytes = *self.groups_bytes + self.group.memory_bytes() - self.bytes_before;
    }
}

fn group_bytes(name: &[u8], group: &Group) -> usize {
    name_bytes(name) + allocated_for::<Group>(1) + group.memory_bytes()
}

/// A stream that does not lie inside its table entry.
#[derive(Clone, Default)]
pub struct Stream {
    pub log: Log,
    extras: Option<Box<Extras>>,
}

impl Stream {
    pub(crate) fn of_log(log: Log) -> Self {
        Stream { log, extras: None }
    }

    /// Hints that its groups will be needed soon.
    #[inline]
    pub(crate) fn prefetch_groups(&self) {
        if let Some(extras) = &self.extras {
            prefetch_whole(&**extras);
        }
    }

    /// Bytes on the heap, not its own box.
    pub fn memory_bytes(&self) -> usize {
        self.log.memory_bytes() + self.extras.as_ref().map_or(0, |extras| extras.memory_bytes())
    }

    #[cfg(test)]
    pub(crate) fn check_bytes(&self) {
        self.log.check_bytes();
        let Some(extras) = &self.extras else { return };
        extras.groups.values().for_each(|group| group.check_bytes());
        extras.idempotency.iter().for_each(Idempotency::check_bytes);
        let groups = extras.groups.iter().map(|(name, group)| group_bytes(name, group));
        assert_eq!(extras.groups_bytes, groups.sum::<usize>());
    }

    pub fn groups(&self) -> Option<&Groups> {
        self.extras.as_ref().map(|extras| &extras.groups)
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups()?.get(name).map(|group| &**group)
    }

    /// A group to change, and the entries that it reads.
    pub fn open_group(&mut self, name: &[u8]) -> Option<(OpenGroup<'_>, &Log)> {
        let extras = self.extras.as_mut()?;
        let group = extras.groups.get_mut(name)?;
        Some((OpenGroup::new(group, &mut extras.groups_bytes), &self.log))
    }

    /// False, and nothing is done, if there is one of this name.
    pub fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let extras = self.extras.get_or_insert_default();
        let is_new = !extras.groups.contains_key(name);
        if is_new {
            extras.groups_bytes += group_bytes(name, &group);
            extras.groups.insert(name.into(), Box::new(group));
        }
        is_new
    }

    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        let Some(extras) = &mut self.extras else { return false };
        let removed = extras.groups.remove(name);
        extras.groups_bytes -= removed.as_ref().map_or(0, |group| group_bytes(name, group));
        removed.is_some()
    }

    /// None if no producer was ever named and no limits were ever set.
    pub fn idempotency(&self) -> Option<&Idempotency> {
        self.extras.as_ref()?.idempotency.as_ref()
    }

    pub fn idempotency_mut(&mut self) -> &mut Idempotency {
        self.extras.get_or_insert_default().idempotency.get_or_insert_default()
    }

    /// Takes an entry off all pending lists; false if it was on none.
    pub fn drop_references(&mut self, id: StreamId) -> bool {
        let Some(extras) = &mut self.extras else { return false };
        let mut is_any = false;
        for group in extras.groups.values_mut() {
            is_any |= OpenGroup::new(group, &mut extras.groups_bytes).acknowledge(id);
        }
        is_any
    }

    /// Whether some group has yet to read or to acknowledge an entry.
    pub fn is_referenced(&self, id: StreamId) -> bool {
        let Some(extras) = &self.extras else { return false };
        let mut groups = extras.groups.values();
        groups.any(|group| group.last_id < id || group.pending(id).is_some())
    }

    /// Does to the references of an entry what its deletion asks for. False: it must stay.
    pub fn release(&mut self, id: StreamId, references: References) -> bool {
        match references {
            References::Keep => {}
            References::Delete => {
                self.drop_references(id);
            }
            References::Respect => return !self.is_referenced(id),
        }
        true
    }
}

/// A stream to read, whichever form it has.
#[derive(Clone, Copy)]
pub enum StreamRef<'a> {
    Packed(Packed<'a>),
    Large(&'a Stream),
}

impl<'a> StreamRef<'a> {
    pub fn len(self) -> u64 {
        match self {
            StreamRef::Packed(packed) => packed.len(),
            StreamRef::Large(stream) => stream.log.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The greatest ID that was ever given out.
    pub fn last_id(self) -> StreamId {
        match self {
            StreamRef::Packed(packed) => packed.last_id(),
            StreamRef::Large(stream) => stream.log.last_id,
        }
    }

    pub fn max_deleted_id(self) -> StreamId {
        match self {
            StreamRef::Packed(_) => StreamId::MIN,
            StreamRef::Large(stream) => stream.log.max_deleted_id,
        }
    }

    pub fn entries_added(self) -> u64 {
        match self {
            StreamRef::Packed(packed) => packed.len(),
            StreamRef::Large(stream) => stream.log.entries_added,
        }
    }

    /// The first entry that is there.
    pub fn first_entry_id(self) -> Option<StreamId> {
        match self {
            StreamRef::Packed(packed) => Some(packed.first_id()),
            StreamRef::Large(stream) => stream.log.first_entry_id(),
        }
    }

    /// The last entry that is there.
    pub fn last_entry_id(self) -> Option<StreamId> {
        match self {
            StreamRef::Packed(packed) => Some(packed.last_id()),
            StreamRef::Large(stream) => stream.log.last_entry_id(),
        }
    }

    pub fn contains(self, id: StreamId) -> bool {
        let mut is_there = false;
        self.visit(IdRange::one(id), Order::Forward, |_| {
            is_there = true;
            ControlFlow::Break(())
        });
        is_there
    }

    /// Whether some of these entries may be there. A large stream is not searched for them.
    pub fn may_contain_any(self, ids: &[StreamId]) -> bool {
        match self {
            StreamRef::Packed(_) => ids.iter().any(|id| self.contains(*id)),
            StreamRef::Large(stream) => !stream.log.is_empty(),
        }
    }

    /// Shows the entries of a range until `visit` breaks off.
    pub fn visit(
        self,
        range: IdRange,
        order: Order,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) {
        match self {
            StreamRef::Packed(packed) => {
                let _ = log::visit_run(packed.run(), range, order, &mut visit);
            }
            StreamRef::Large(stream) => stream.log.visit(range, order, visit),
        }
    }

    /// The blocks, from the first to the last.
    pub fn blocks(self) -> impl Iterator<Item = Run<'a>> {
        let (packed, large) = match self {
            StreamRef::Packed(packed) => (Some(packed.run()), None),
            StreamRef::Large(stream) => (None, Some(stream.log.blocks())),
        };
        packed.into_iter().chain(large.into_iter().flatten())
    }

    pub fn blocks_len(self) -> usize {
        match self {
            StreamRef::Packed(_) => 1,
            StreamRef::Large(stream) => stream.log.blocks_len(),
        }
    }

    pub fn radix_nodes(self) -> usize {
        match self {
            StreamRef::Packed(packed) => radix::nodes(std::iter::once(packed.first_id())),
            StreamRef::Large(stream) => stream.log.radix_nodes(),
        }
    }

    pub fn groups(self) -> Option<&'a Groups> {
        match self {
            StreamRef::Packed(_) => None,
            StreamRef::Large(stream) => stream.groups(),
        }
    }

    pub fn group(self, name: &[u8]) -> Option<&'a Group> {
        self.groups()?.get(name).map(|group| &**group)
    }

    pub fn idempotency(self) -> Option<&'a Idempotency> {
        match self {
            StreamRef::Packed(_) => None,
            StreamRef::Large(stream) => stream.idempotency(),
        }
    }
}
