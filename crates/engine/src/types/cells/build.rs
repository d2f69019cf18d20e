//! Tables made of whole cells, in the order of their hashes.

use super::cell::{Cell, Copied};
use super::pool::Pool;
use super::span::Span;
use super::{CELL_RECORDS_MAX, Cells, DEPTH_MAX, HashElement, Payload};
use super::{fit_in_one, is_overfull, joined};
use crate::types::element::{self, Element};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Takes records span by span, which must follow each other without a gap.
pub(super) struct Builder<P, H> {
    hasher: H,
    cells: Vec<Cell>,
    /// No cell is split to a depth beyond this one.
    depth_max: u32,
    payload: PhantomData<fn() -> P>,
}

impl<P: Payload, H: HashElement> Builder<P, H> {
    /// For about so many records.
    pub fn new(hasher: H, records: usize) -> Self {
        // As many slots as half the records: see `Cells::may_split`.
        let depth_max = (records / 2).max(1).ilog2().min(DEPTH_MAX);
        let cells = Vec::with_capacity(records / CELL_RECORDS_MAX);
        Builder { hasher, cells, depth_max, payload: PhantomData }
    }

    /// Adds the records of the next span: keys that are all different.
    pub fn push(&mut self, span: Span, records: &[Copied<'_>]) {
        let cell = Cell::of(span, records);
        if !is_overfull(&cell) || span.depth() >= self.depth_max {
            self.cells.push(cell);
            return self.join_last();
        }
        let mut sides = [SmallVec::<[Copied<'_>; 2 * CELL_RECORDS_MAX]>::new(), SmallVec::new()];
        for &(fingerprint, record) in records {
            let hash = self.hasher.hash_element(element::decode(record).0);
            sides[usize::from(span.is_in_upper_half(hash))].push((fingerprint, record));
        }
        let [lower, upper] = span.halves();
        self.push(lower, &sides[0]);
        self.push(upper, &sides[1]);
    }

    /// Joins the last cells while they are halves of one span and nearly empty.
    fn join_last(&mut self) {
        while let [.., lower, upper] = self.cells.as_slice() {
            let (true, Some(parent)) = (upper.span.is_upper(), upper.span.parent()) else { return };
            if upper.span.buddy() != Some(lower.span) || !fit_in_one(lower, upper) {
                return;
            }
            let cell = joined::<P>(parent, lower, upper);
            self.cells.truncate(self.cells.len() - 2);
            self.cells.push(cell);
        }
    }

    /// The table, once the spans have covered everything.
    pub fn finish(self) -> Cells<P, H> {
        Cells::with_cells(self.hasher, self.cells)
    }
}

impl<P: Payload, H: HashElement> Cells<P, H> {
    /// A table of cells that follow each other and cover everything.
    pub(super) fn with_cells(hasher: H, cells: Vec<Cell>) -> Self {
        let depth = cells.iter().map(|cell| cell.span.depth()).max().unwrap_or(0);
        let mut table = Cells {
            hasher,
            len: 0,
            directory: vec![0; 1 << depth].into(),
            depth,
            deepest: 0,
            fullest: 0,
            mark: false,
            pool: Pool::default(),
            payload: PhantomData,
        };
        let mut covered = 0;
        for cell in cells {
            table.len += cell.len();
            table.fullest = table.fullest.max(cell.len() as u32);
            table.deepest += u32::from(cell.span.depth() == depth);
            let slots = cell.span.slots(depth);
            debug_assert_eq!(slots.start, covered, "cells that follow each other");
            covered = slots.end;
            table.directory[slots].fill(table.pool.push(cell));
        }
        debug_assert_eq!(covered, 1 << depth, "cells that cover everything");
        table
    }

    /// Keeps only the records that `keep` says so of.
    pub fn retain(&mut self, mut keep: impl FnMut(Element<'_>, &[u8]) -> bool) {
        let mut builder = Builder::<P, H>::new(self.hasher, self.len);
        for cell in self.cells() {
            let kept: SmallVec<[Copied<'_>; CELL_RECORDS_MAX]> = cell
                .iter::<P>()
                .filter(|(_, record)| {
                    let (key, payload) = super::parts(record);
                    keep(key, payload)
                })
                .collect();
            builder.push(cell.span, &kept);
        }
        *self = Cells { mark: self.mark, ..builder.finish() };
    }
}
