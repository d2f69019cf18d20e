//! Several tables of one hasher walked side by side: intersections, differences and unions. The
//! tables' cells stand in the same order, so that what is needed next lies where the walk just was,
//! and where the cells of two tables have the same span no key is hashed at all.

use super::build::Builder;
use super::cell::{Cell, Copied};
use super::span::{Span, position};
use super::{CELL_RECORDS_MAX, Cells, HashElement, Payload, parts};
use crate::types::element::{self, Element, stored_bytes};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// Which records of the first table are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Those that all other tables have.
    InAll,
    /// Those that no other table has.
    InNone,
}

/// Where the records of one span are found in another table.
enum Look<'a, P, H> {
    /// All in this cell.
    Cell(&'a Cell),
    /// In several cells: the hash tells which.
    Table(&'a Cells<P, H>),
}

impl<'a, P: Payload, H: HashElement> Look<'a, P, H> {
    fn new(table: &'a Cells<P, H>, span: Span) -> Self {
        let cell = table.cell_at(span.start());
        if cell.span.depth() <= span.depth() { Look::Cell(cell) } else { Look::Table(table) }
    }

    #[inline]
    fn has(&self, (fingerprint, record): Copied<'_>) -> bool {
        let key = &record[..stored_bytes(record)];
        let cell = match self {
            Look::Cell(cell) => cell,
            Look::Table(table) => {
                let hash = table.hasher.hash_element(element::decode(key).0);
                table.cell_at(position(hash))
            }
        };
        cell.find::<P>(fingerprint, &key).is_some()
    }
}

type Looks<'a, P, H> = SmallVec<[Look<'a, P, H>; 4]>;

impl<P: Payload, H: HashElement> Cells<P, H> {
    /// Whether both may be walked side by side.
    pub fn is_aligned_with(&self, other: &Self) -> bool {
        self.hasher == other.hasher
    }

    /// Shows the wanted records to `visit`. All tables must be aligned.
    pub fn select(
        &self,
        others: &[&Self],
        wanted: Wanted,
        mut visit: impl FnMut(Element<'_>, &[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for cell in self.cells() {
            let looks: Looks<'_, P, H> =
                others.iter().map(|other| Look::new(other, cell.span)).collect();
            for copied in cell.iter::<P>().filter(|copied| is_wanted(&looks, *copied, wanted)) {
                let (key, payload) = parts(copied.1);
                visit(key, payload)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A table of the wanted records, with their payloads here.
    #[must_use]
    pub fn selected(&self, others: &[&Self], wanted: Wanted) -> Self {
        let mut builder = Builder::new(self.hasher, self.len());
        let mut chosen = SmallVec::<[Copied<'_>; CELL_RECORDS_MAX]>::new();
        for cell in self.cells() {
            let looks: Looks<'_, P, H> =
                others.iter().map(|other| Look::new(other, cell.span)).collect();
            chosen.clear();
            chosen.extend(cell.iter::<P>().filter(|copied| is_wanted(&looks, *copied, wanted)));
            builder.push(cell.span, &chosen);
        }
        builder.finish()
    }

    /// A table of the records of both; where both have a key, with the payload here.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut builder = Builder::new(self.hasher, self.len() + other.len());
        let mut all = SmallVec::<[Copied<'_>; 2 * CELL_RECORDS_MAX]>::new();
        let mut next = Some(0);
        while let Some(start) = next {
            let (mine, theirs) = (self.cell_at(start), other.cell_at(start));
            // The wider of both: on the other side it may be several cells.
            let span = match mine.span.depth() <= theirs.span.depth() {
                true => mine.span,
                false => theirs.span,
            };
            all.clear();
            self.cells_of(span).for_each(|cell| all.extend(cell.iter::<P>()));
            for cell in other.cells_of(span) {
                let look = Look::new(self, cell.span);
                all.extend(cell.iter::<P>().filter(|copied| !look.has(*copied)));
            }
            builder.push(span, &all);
            next = u32::try_from(span.end()).ok();
        }
        builder.finish()
    }

    /// The cells that lie in a span, which no cell is wider than.
    fn cells_of(&self, span: Span) -> impl Iterator<Item = &Cell> {
        let mut next = u64::from(span.start());
        std::iter::from_fn(move || {
            if next >= span.end() {
                return None;
            }
            let cell = self.cell_at(next as u32);
            next = cell.span.end();
            Some(cell)
        })
    }
}

#[inline]
fn is_wanted<P: Payload, H: HashElement>(
    looks: &[Look<'_, P, H>],
    copied: Copied<'_>,
    wanted: Wanted,
) -> bool {
    match wanted {
        Wanted::InAll => looks.iter().all(|look| look.has(copied)),
        Wanted::InNone => !looks.iter().any(|look| look.has(copied)),
    }
}
