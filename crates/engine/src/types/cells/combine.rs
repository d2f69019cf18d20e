//! Several tables of one hasher walked side by side: intersections, differences and unions. The
//! tables' cells stand in the same order, so that what is needed next lies where the walk just was,
//! and where the cells of two tables have the same span no key is hashed at all.

use super::build::Builder;
use super::cell::{Cell, Copied, Wanted as _};
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

/// The records of a cell by their fingerprints, for many look-ups.
struct Register {
    /// Where each record lies.
    starts: [u32; CELL_RECORDS_MAX],
    /// One more than the last record of each fingerprint; 0 for none.
    last: [u8; 256],
    /// The same for the record before it that has its fingerprint.
    before: [u8; CELL_RECORDS_MAX],
}

impl Register {
    fn new() -> Self {
        Register { starts: [0; CELL_RECORDS_MAX], last: [0; 256], before: [0; CELL_RECORDS_MAX] }
    }

    /// Takes the records of a cell; not if they are more, or longer, than cells usually have.
    fn fill<P: Payload>(&mut self, cell: &Cell) -> bool {
        if cell.len() > CELL_RECORDS_MAX || u32::try_from(cell.bytes()).is_err() {
            return false;
        }
        self.last.fill(0);
        let mut start = 0;
        for (index, (fingerprint, record)) in cell.iter::<P>().enumerate() {
            let last = &mut self.last[usize::from(fingerprint)];
            (self.starts[index], self.before[index]) = (start, *last);
            *last = index as u8 + 1;
            start += record.len() as u32;
        }
        true
    }

    /// Whether the cell whose records these are has a key.
    #[inline]
    fn has(&self, cell: &Cell, (fingerprint, key): Copied<'_>) -> bool {
        let mut next = self.last[usize::from(fingerprint)];
        while next > 0 {
            let index = usize::from(next - 1);
            if key.is_key_of(&cell.records()[self.starts[index] as usize..]) {
                return true;
            }
            next = self.before[index];
        }
        false
    }
}

/// Where the records of one span are found in another table.
enum Look<'a, P, H> {
    /// All in one cell, whose records are registered.
    Register(&'a Cell, &'a Register),
    /// All in this cell.
    Cell(&'a Cell),
    /// In several cells: the hash tells which.
    Table(&'a Cells<P, H>),
}

impl<'a, P: Payload, H: HashElement> Look<'a, P, H> {
    fn new(table: &'a Cells<P, H>, span: Span, register: &'a mut Register) -> Self {
        let cell = table.cell_at(span.start());
        if cell.span.depth() > span.depth() {
            Look::Table(table)
        } else if register.fill::<P>(cell) {
            Look::Register(cell, register)
        } else {
            Look::Cell(cell)
        }
    }

    #[inline]
    fn has(&self, (fingerprint, record): Copied<'_>) -> bool {
        let key = &record[..stored_bytes(record)];
        let cell = match self {
            Look::Register(cell, register) => return register.has(cell, (fingerprint, key)),
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
    /// Shows the wanted records to `visit`. All tables must be aligned.
    pub fn select(
        &self,
        others: &[&Self],
        wanted: Wanted,
        mut visit: impl FnMut(Element<'_>, &[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut registers = registers(others.len());
        for cell in self.cells_ahead(others) {
            let looks = looks(others, cell.span, &mut registers);
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
        let mut registers = registers(others.len());
        for cell in self.cells_ahead(others) {
            let looks = looks(others, cell.span, &mut registers);
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
        let mut register = Register::new();
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
                let look = Look::new(self, cell.span, &mut register);
                all.extend(cell.iter::<P>().filter(|copied| !look.has(*copied)));
            }
            builder.push(span, &all);
            next = u32::try_from(span.end()).ok();
        }
        builder.finish()
    }

    /// The cells in order; the memory of the next one, here and in other tables, is asked for while
    /// one is looked at.
    fn cells_ahead<'a>(&'a self, others: &'a [&'a Self]) -> impl Iterator<Item = &'a Cell> {
        let mut cells = self.cells();
        let mut next = cells.next();
        std::iter::from_fn(move || {
            let cell = next?;
            next = cells.next();
            if let Some(next) = next {
                next.prefetch();
                others.iter().for_each(|other| other.cell_at(next.span.start()).prefetch());
            }
            Some(cell)
        })
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

/// One for each of so many tables.
fn registers(tables: usize) -> Vec<Register> {
    (0..tables).map(|_| Register::new()).collect()
}

/// Where the records of a span are found in each of these tables.
fn looks<'a, P: Payload, H: HashElement>(
    tables: &'a [&'a Cells<P, H>],
    span: Span,
    registers: &'a mut [Register],
) -> Looks<'a, P, H> {
    let pairs = tables.iter().zip(registers);
    pairs.map(|(table, register)| Look::new(table, span, register)).collect()
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
