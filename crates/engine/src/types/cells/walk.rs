//! Looking at many records: all of them in the order of their hashes, in steps for a scan, or some
//! at random.

use super::cell::{Cell, Found};
use super::span::Span;
use super::{Cells, HashElement, Payload, parts};
use crate::types::element::Element;
use crate::types::scan::show_in_order;
use russet_base::random::Random;
use std::ops::ControlFlow;

/// Where a record lies, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    cell: u32,
    index: u32,
}

impl<P: Payload, H: HashElement> Cells<P, H> {
    /// The cells in the order of their hashes.
    pub(super) fn cells(&self) -> impl Iterator<Item = &Cell> {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let cell = self.cell_at(next?);
            next = u32::try_from(cell.span.end()).ok();
            Some(cell)
        })
    }

    /// All keys with their payloads.
    pub fn iter(&self) -> impl Iterator<Item = (Element<'_>, &[u8])> {
        self.cells().flat_map(|cell| cell.iter::<P>().map(|(_, record)| parts(record)))
    }

    pub fn for_each(&self, mut visit: impl FnMut(Element<'_>, &[u8])) {
        for cell in self.cells() {
            for (_, record) in cell.iter::<P>() {
                let (key, payload) = parts(record);
                visit(key, payload);
            }
        }
    }

    /// As `for_each`, until `visit` breaks off.
    pub fn try_for_each(
        &self,
        mut visit: impl FnMut(Element<'_>, &[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.iter().try_for_each(|(key, payload)| visit(key, payload))
    }

    /// Shows `count` records, or a few more if they share one position, and returns the cursor to
    /// go on from; 0 begins a scan and ends it. A key that is there from the first call to the last
    /// is shown, whatever happens to others meanwhile: a cursor is a position in the order of the
    /// hashes, and all that lies between two cursors is shown between them.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        count: u64,
        mut visit: impl FnMut(Element<'a>, &'a [u8]),
    ) -> u64 {
        let mut cursor = cursor;
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        loop {
            let Ok(from) = u32::try_from(cursor) else {
                // None of ours.
                return 0;
            };
            let cell = self.cell_at(from);
            let records = cell.iter::<P>().map(|(_, record)| parts(record));
            if from == cell.span.start() && cell.len() <= left {
                left -= cell.len();
                records.for_each(|(key, payload)| visit(key, payload));
            } else {
                let by_position = records.map(|record| (self.position_of(record.0), record));
                let next = show_in_order(by_position, (from, left), |(key, payload)| {
                    left = left.saturating_sub(1);
                    visit(key, payload);
                });
                if let Some(next) = next {
                    return u64::from(next);
                }
            }
            cursor = cursor_behind(cell.span);
            if cursor == 0 || left == 0 {
                return cursor;
            }
        }
    }

    /// A record, each as likely as the other; none if there are none.
    pub fn random(&self, random: &mut Random) -> Option<Spot> {
        if self.is_empty() {
            return None;
        }
        // A cell is as likely as any other, so a place in it has to be one of as many places for
        // every cell; where there is no record, it is drawn again.
        let slots = (self.fullest as usize).min(self.len);
        loop {
            let cell = random.index(self.pool.len()) as u32;
            let index = random.index(slots);
            if index < self.pool[cell].len() {
                return Some(Spot { cell, index: index as u32 });
            }
        }
    }

    /// What lies at a spot.
    pub fn at(&self, spot: Spot) -> (Element<'_>, &[u8]) {
        let cell = &self.pool[spot.cell];
        parts(cell.record::<P>(cell.offset::<P>(spot.index as usize)))
    }

    /// Removes what lies at a spot. All other spots are void from then on.
    pub fn remove_at(&mut self, spot: Spot) {
        let index = spot.index as usize;
        let at = self.pool[spot.cell].offset::<P>(index);
        self.remove_found(spot.cell, Found { index, at });
    }
}

/// The cursor of the cell that comes after this span; 0 after the last.
pub(super) fn cursor_behind(span: Span) -> u64 {
    match span.end() {
        end if end > u64::from(u32::MAX) => 0,
        end => end,
    }
}
