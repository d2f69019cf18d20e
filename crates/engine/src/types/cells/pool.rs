//! Where the cells of one table lie, by number, without gaps. The pool grows in chunks, so that no
//! growth moves more than one of them, and shares them with its clones until one changes them.

use super::cell::Cell;
use crate::types::cow_vec::CowVec;
use std::ops::Index;

/// Cells that are copied at once if they are shared: some tens of kilobytes.
const CHUNK: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    cells: CowVec<Cell, CHUNK>,
    /// What the cells take besides their places here.
    cell_bytes: usize,
}

impl Pool {
    #[inline]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Adds a cell; its number.
    pub fn push(&mut self, cell: Cell) -> u32 {
        let number = self.len();
        self.cell_bytes += cell.memory_bytes();
        self.cells.push(cell);
        u32::try_from(number).expect("a table has at most 1 << DEPTH_MAX cells")
    }

    /// Removes a cell. The last one takes its number.
    pub fn swap_remove(&mut self, number: u32) {
        let last = self.cells.pop().expect("there is a cell to remove");
        let removed = match number as usize == self.len() {
            true => last,
            false => std::mem::replace(self.cells.at_mut(number as usize), last),
        };
        self.cell_bytes -= removed.memory_bytes();
    }

    /// Puts another cell in the place of one.
    pub fn replace(&mut self, number: u32, cell: Cell) {
        self.edit(number, |slot| *slot = cell);
    }

    /// Changes a cell, and counts what it takes from then on.
    #[inline]
    pub fn edit<R>(&mut self, number: u32, edit: impl FnOnce(&mut Cell) -> R) -> R {
        let cell = self.cells.at_mut(number as usize);
        let (before, before_bytes) = (cell.capacity(), cell.memory_bytes());
        let result = edit(cell);
        if cell.capacity() != before {
            let bytes = cell.memory_bytes();
            self.cell_bytes = self.cell_bytes + bytes - before_bytes;
        }
        result
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter()
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes() + self.cell_bytes
    }

    #[cfg(test)]
    pub fn check_bytes(&self) {
        assert_eq!(self.cell_bytes, self.iter().map(Cell::memory_bytes).sum::<usize>());
    }
}

impl Index<u32> for Pool {
    type Output = Cell;

    #[inline]
    fn index(&self, number: u32) -> &Cell {
        &self.cells[number as usize]
    }
}
