//! How many entries a group has read, and how many it has still to read, where that is known:
//! deletions within the stream may hide it.

use super::group::Group;
use super::id::{IdRange, StreamId};
use super::log::{Log, Order};
use std::ops::ControlFlow;

impl Log {
    /// The first entry that is there; 0-0 if there is none.
    pub fn first_id(&self) -> StreamId {
        self.first_entry_id().unwrap_or_default()
    }

    /// The last entry that is there.
    pub fn last_entry_id(&self) -> Option<StreamId> {
        if let Some(last) = self.last_untouched_id() {
            return Some(last);
        }
        let mut last = None;
        self.visit(IdRange::ALL, Order::Backward, |entry| {
            last = Some(entry.id);
            ControlFlow::Break(())
        });
        last
    }

    /// Whether an entry behind this ID may have been deleted from within the stream.
    fn has_gap_behind(&self, id: StreamId) -> bool {
        !self.is_empty() && self.max_deleted_id != StreamId::MIN && id <= self.max_deleted_id
    }

    /// How many entries a group has read that has come to this one, if that is known.
    pub fn entries_read_up_to(&self, id: StreamId) -> Option<i64> {
        self.entries_up_to(id)
    }

    /// How many entries were ever added up to this one, if that is known.
    fn entries_up_to(&self, id: StreamId) -> Option<i64> {
        let (added, len) = (self.entries_added as i64, self.len() as i64);
        if added == 0 {
            return Some(0);
        }
        if self.is_empty() && id <= self.last_id {
            return Some(added);
        }
        if id != StreamId::MIN && id < self.max_deleted_id {
            return None;
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(added);
        }
        let first = self.first_id();
        if self.max_deleted_id == StreamId::MIN || self.max_deleted_id < first {
            if id < first {
                return Some(added - len);
            }
            if id == first {
                return Some(added - len + 1);
            }
        }
        None
    }

    /// How many entries a group has still to read.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !self.has_gap_behind(group.last_id) => read,
            _ => self.entries_up_to(group.last_id)?,
        };
        Some(self.entries_added as i64 - read)
    }

    /// Moves a group on to an entry that it has just read.
    pub fn advance(&self, group: &mut Group, id: StreamId) {
        if id <= group.last_id {
            return;
        }
        group.entries_read = match group.entries_read {
            Some(read)
                if group.last_id >= self.first_id() && !self.has_gap_behind(group.last_id) =>
            {
                Some(read + 1)
            }
            read if self.entries_added == 0 => read,
            _ => self.entries_up_to(id),
        };
        group.last_id = id;
    }
}
