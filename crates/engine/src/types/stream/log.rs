//! The entries of a large stream: blocks in the order of their IDs, the one that grows apart.

use super::block::Block;
use super::id::{IdRange, StreamId};
use super::run::{Entry, Run};
use super::{BlockLimits, radix};
use crate::types::capacity::{allocated_bytes, tree_bytes};
use crate::types::cow_vec::{self, ARC_COUNTS_BYTES};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Which way entries are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Forward,
    Backward,
}

/// The entries of a stream and the counters that belong to them.
#[derive(Clone, Default)]
pub struct Log {
    /// All blocks but the last, by the ID that each began with.
    /// Shared with clones until one changes them.
    older: BTreeMap<StreamId, Arc<Block>>,
    /// What those take besides their places in the tree.
    older_bytes: usize,
    tail: Block,
    /// The key of `tail`.
    tail_first: StreamId,
    len: u64,
    pub last_id: StreamId,
    /// The greatest ID that was ever deleted by name, not by trimming; 0-0 for none.
    pub max_deleted_id: StreamId,
    /// How many were ever added.
    pub entries_added: u64,
}

/// What a block takes that is shared.
fn shared_bytes(block: &Block) -> usize {
    allocated_bytes(ARC_COUNTS_BYTES + size_of::<Block>()) + block.memory_bytes()
}

impl Log {
    /// The log of a stream that was packed: one block, nothing deleted.
    pub fn of_block(first: StreamId, block: Block) -> Self {
        let len = u64::from(block.measure.live);
        Log {
            older: BTreeMap::new(),
            older_bytes: 0,
            last_id: block.last,
            tail: block,
            tail_first: first,
            len,
            max_deleted_id: StreamId::MIN,
            entries_added: len,
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry. Its ID is greater than the last, and `pairs` are names and values by turns.
    pub fn append<'w>(
        &mut self,
        id: StreamId,
        pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
        limits: BlockLimits,
    ) {
        debug_assert!(id > self.last_id);
        let pairs_bytes = pairs.clone().map(<[u8]>::len).sum();
        if self.tail.measure.live == 0 {
            (self.tail, self.tail_first) = (Block::begin(id, pairs), id);
        } else if self.tail.measure.is_full(pairs_bytes, limits) {
            let mut full = std::mem::replace(&mut self.tail, Block::begin(id, pairs));
            full.finish();
            self.older_bytes += shared_bytes(&full);
            self.older.insert(std::mem::replace(&mut self.tail_first, id), Arc::new(full));
        } else {
            self.tail.append(self.tail_first, id, pairs);
        }
        self.len += 1;
        self.entries_added += 1;
        self.last_id = id;
    }

    /// Adds an entry to the last block, or begins a block with it, as a file has it.
    pub(super) fn append_loaded<'w>(
        &mut self,
        id: StreamId,
        pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
        begins_block: bool,
    ) {
        let entries_max = if begins_block { 1 } else { 0 };
        self.append(id, pairs, BlockLimits { bytes_max: 0, entries_max });
    }

    /// So many entries of the last block are deleted ones.
    pub(super) fn note_deleted(&mut self, count: u32) {
        self.tail.measure.dead = self.tail.measure.dead.saturating_add(count);
    }

    fn older(&self) -> impl DoubleEndedIterator<Item = (&StreamId, &Block)> {
        self.older.iter().map(|(first, block)| (first, &**block))
    }

    /// From the first to the last.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Run<'_>> {
        let tail = (self.tail.measure.live > 0).then_some((&self.tail_first, &self.tail));
        self.older().chain(tail).map(|(first, block)| block.run(*first))
    }

    /// How many blocks there are.
    pub fn blocks_len(&self) -> usize {
        self.older.len() + usize::from(self.tail.measure.live > 0)
    }

    /// The nodes that the blocks' keys would take up in Redis's radix tree.
    pub fn radix_nodes(&self) -> usize {
        let tail = (self.tail.measure.live > 0).then_some(self.tail_first);
        radix::nodes(self.older.keys().copied().chain(tail))
    }

    /// The key of the block that would hold this ID.
    fn block_of(&self, id: StreamId) -> Option<StreamId> {
        if self.tail.measure.live > 0 && self.tail_first <= id {
            return Some(self.tail_first);
        }
        self.older.range(..=id).next_back().map(|(first, _)| *first)
    }

    pub(super) fn block(&self, first: StreamId) -> Option<&Block> {
        if self.tail.measure.live > 0 && self.tail_first == first {
            return Some(&self.tail);
        }
        self.older.get(&first).map(|block| &**block)
    }

    /// Lets `edit` change the block with this key, if there is one.
    pub(super) fn edit_block<R>(
        &mut self,
        first: StreamId,
        edit: impl FnOnce(&mut Block) -> R,
    ) -> Option<R> {
        if self.tail.measure.live > 0 && self.tail_first == first {
            return Some(edit(&mut self.tail));
        }
        let block = cow_vec::to_change(self.older.get_mut(&first)?);
        let before = block.memory_bytes();
        let result = edit(block);
        self.older_bytes = self.older_bytes + block.memory_bytes() - before;
        Some(result)
    }

    /// The key of the first block whose key is not less than this.
    pub(super) fn block_from(&self, from: StreamId) -> Option<StreamId> {
        let older = self.older.range(from..).next().map(|(first, _)| *first);
        let tail = self.tail.measure.live > 0 && self.tail_first >= from;
        older.or(tail.then_some(self.tail_first))
    }

    /// Forgets a block whose entries are all gone, or go with it. Later entries go on in the block
    /// before the last, if it has room.
    pub(super) fn remove_block(&mut self, first: StreamId) {
        let removed = self.older.remove(&first);
        self.older_bytes -= removed.as_ref().map_or(0, |block| shared_bytes(block));
        if removed.is_none() {
            let last = self.older.pop_last();
            self.older_bytes -= last.as_ref().map_or(0, |(_, block)| shared_bytes(block));
            let (first, block) = last.unwrap_or_default();
            (self.tail_first, self.tail) = (first, Arc::unwrap_or_clone(block));
        }
    }

    /// Takes entries that were removed from a block, or went with it, off the count.
    pub(super) fn discount(&mut self, count: u64) {
        self.len -= count;
    }

    /// Deletes one entry by name; false if there is none.
    pub fn delete(&mut self, id: StreamId) -> bool {
        self.delete_all(&[id]) == 1
    }

    /// Deletes entries by name, given in ascending order; how many there were.
    pub fn delete_all(&mut self, ids: &[StreamId]) -> u64 {
        let before = self.len;
        let mut left = ids;
        while let Some(id) = left.first() {
            let Some(first) = self.block_of(*id) else {
                left = &left[1..];
                continue;
            };
            let own = match self.block_from_behind(first) {
                Some(next) => left.partition_point(|id| *id < next),
                None => left.len(),
            };
            let (here, others) = left.split_at(own);
            self.delete_in_block(first, here);
            left = others;
        }
        before - self.len
    }

    /// The key of the block behind one.
    fn block_from_behind(&self, first: StreamId) -> Option<StreamId> {
        first.next().and_then(|from| self.block_from(from))
    }

    fn delete_in_block(&mut self, first: StreamId, ids: &[StreamId]) {
        let (mut count, mut last) = (0, StreamId::MIN);
        let live = self.edit_block(first, |block| {
            block.delete(first, ids, |id| (count, last) = (count + 1, id));
            block.measure.live
        });
        if live == Some(0) {
            self.remove_block(first);
        }
        self.len -= count;
        self.max_deleted_id = self.max_deleted_id.max(last);
    }

    pub fn contains(&self, id: StreamId) -> bool {
        let mut is_there = false;
        self.visit(IdRange::one(id), Order::Forward, |_| {
            is_there = true;
            ControlFlow::Break(())
        });
        is_there
    }

    /// The first entry that is there.
    pub(super) fn first_entry_id(&self) -> Option<StreamId> {
        let tail = (self.tail.measure.live > 0).then_some((&self.tail_first, &self.tail));
        let (first, block) = self.older().next().or(tail)?;
        if block.measure.dead == 0 {
            return Some(*first);
        }
        block.entries(*first).next().map(|entry| entry.id)
    }

    /// The last entry, if it is known without a search.
    pub(super) fn last_untouched_id(&self) -> Option<StreamId> {
        let measure = self.tail.measure;
        (measure.live > 0 && measure.dead == 0).then_some(self.tail.last)
    }

    /// Shows the entries of a range until `visit` breaks off.
    pub fn visit(
        &self,
        range: IdRange,
        order: Order,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) {
        if range.first > range.last || self.is_empty() {
            return;
        }
        // The block before the range may extend into it.
        let start = self.older.range(..=range.first).next_back().map(|(first, _)| *first);
        let older = self.older.range(start.unwrap_or_default()..=range.last);
        let older = older.map(|(first, block)| (first, &**block));
        let has_tail = self.tail.measure.live > 0 && self.tail_first <= range.last;
        let tail = has_tail.then_some((&self.tail_first, &self.tail));
        let mut show = |(first, block): (&StreamId, &Block)| {
            visit_run(block.run(*first), range, order, &mut visit)
        };
        let _ = match order {
            Order::Forward => older.chain(tail).try_for_each(&mut show),
            Order::Backward => tail.into_iter().chain(older.rev()).try_for_each(&mut show),
        };
    }

    pub fn memory_bytes(&self) -> usize {
        tree_bytes::<StreamId, Arc<Block>>(self.older.len())
            + self.older_bytes
            + self.tail.memory_bytes()
    }

    #[cfg(test)]
    pub(super) fn check_bytes(&self) {
        assert_eq!(
            self.older_bytes,
            self.older.values().map(|block| shared_bytes(block)).sum::<usize>()
        );
    }
}

/// Shows the entries of one run that lie in the range.
pub(super) fn visit_run(
    run: Run<'_>,
    range: IdRange,
    order: Order,
    visit: &mut impl FnMut(Entry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut entries = run.entries().skip_while(|entry| entry.id < range.first);
    match order {
        Order::Forward => {
            for entry in entries {
                if entry.id > range.last {
                    return ControlFlow::Break(());
                }
                visit(entry)?;
            }
            ControlFlow::Continue(())
        }
        Order::Backward => {
            // Entries can only be read forwards; a block has no more than a hundred, usually.
            let mut found: SmallVec<[Entry<'_>; 32]> = SmallVec::new();
            found.extend(entries.by_ref().take_while(|entry| entry.id <= range.last));
            found.into_iter().rev().try_for_each(visit)
        }
    }
}
