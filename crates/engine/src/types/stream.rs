//! The stream's room: entries in blocks, consumer groups, and what is remembered of producers. A
//! small stream is packed into its table entry; see [`stored`].

mod block;
mod group;
mod id;
mod idempotency;
mod lag;
mod log;
mod packed;
mod radix;
mod run;
pub mod stored;
#[cfg(test)]
mod tests;
mod trim;

pub use crate::types::element::Element;
pub use group::{Consumer, ConsumerKey, Count, DELIVERIES_MAX, Group, Pending};
pub use id::{IdRange, IdText, StreamId};
pub use idempotency::Idempotency;
pub use log::{Log, Order};
pub use packed::Packed;
pub use run::Entry;
pub use trim::{Threshold, Trim};

use std::collections::BTreeMap;
use std::ops::ControlFlow;

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

pub type Groups = BTreeMap<Box<[u8]>, Group>;

/// What most streams have not.
#[derive(Clone, Default)]
struct Extras {
    groups: Groups,
    idempotency: Option<Idempotency>,
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

    pub fn memory_bytes(&self) -> usize {
        let extras = self.extras.as_ref().map_or(0, |extras| {
            let groups: usize = extras
                .groups
                .iter()
                .map(|(name, group)| name.len() + size_of::<Group>() + group.memory_bytes())
                .sum();
            let idempotency = extras.idempotency.as_ref();
            size_of::<Extras>() + groups + idempotency.map_or(0, Idempotency::memory_bytes)
        });
        size_of::<Stream>() + self.log.memory_bytes() + extras
    }

    pub fn groups(&self) -> Option<&Groups> {
        self.extras.as_ref().map(|extras| &extras.groups)
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups()?.get(name)
    }

    /// A group to change, and the entries that it reads.
    pub fn open_group(&mut self, name: &[u8]) -> Option<(&mut Group, &Log)> {
        let group = self.extras.as_mut()?.groups.get_mut(name)?;
        Some((group, &self.log))
    }

    /// False, and nothing is done, if there is one of this name.
    pub fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let groups = &mut self.extras.get_or_insert_default().groups;
        let is_new = !groups.contains_key(name);
        if is_new {
            groups.insert(name.into(), group);
        }
        is_new
    }

    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        self.extras.as_mut().is_some_and(|extras| extras.groups.remove(name).is_some())
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
        extras.groups.values_mut().fold(false, |any, group| group.acknowledge(id) | any)
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
        self.groups()?.get(name)
    }

    pub fn idempotency(self) -> Option<&'a Idempotency> {
        match self {
            StreamRef::Packed(_) => None,
            StreamRef::Large(stream) => stream.idempotency(),
        }
    }
}
