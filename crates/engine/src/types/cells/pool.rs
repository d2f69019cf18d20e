//! Where the cells of one table lie, by number, without gaps. The pool grows in chunks, so that no
//! growth moves more than one of them.

use super::cell::Cell;
use crate::types::capacity::allocated_for;
use std::ops::Index;

const CHUNK: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// All but the last are full.
    chunks: Vec<Vec<Cell>>,
    /// What the cells take besides their places here.
    cell_bytes: usize,
}

impl Clone for Pool {
    fn clone(&self) -> Self {
        let chunks = self.chunks.clone();
        // Copies have no room to spare.
        let cell_bytes = chunks.iter().flatten().map(Cell::memory_bytes).sum();
        Pool { chunks, cell_bytes }
    }
}

impl Pool {
    #[inline]
    pub fn len(&self) -> usize {
        match self.chunks.last() {
            None => 0,
            Some(last) => (self.chunks.len() - 1) * CHUNK + last.len(),
        }
    }

    /// Adds a cell; its number.
    pub fn push(&mut self, cell: Cell) -> u32 {
        let number = self.len();
        self.cell_bytes += cell.memory_bytes();
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(cell),
            None => self.chunks.push(vec![cell]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(cell);
                self.chunks.push(chunk);
            }
        }
        u32::try_from(number).expect("a table has at most 1 << DEPTH_MAX cells")
    }

    /// Removes a cell. The last one takes its number.
    pub fn swap_remove(&mut self, number: u32) {
        let chunk = self.chunks.last_mut().expect("there is a cell to remove");
        let last = chunk.pop().expect("no chunk is empty");
        if chunk.is_empty() {
            self.chunks.pop();
        }
        let removed = match number as usize == self.len() {
            true => last,
            false => std::mem::replace(self.at_mut(number), last),
        };
        self.cell_bytes -= removed.memory_bytes();
    }

    /// Puts another cell in the place of one.
    pub fn replace(&mut self, number: u32, cell: Cell) {
        self.edit(number, |place| *place = cell);
    }

    /// Changes a cell, and counts what it takes from then on.
    #[inline]
    pub fn edit<R>(&mut self, number: u32, edit: impl FnOnce(&mut Cell) -> R) -> R {
        let cell = self.at_mut(number);
        let (before, before_bytes) = (cell.capacity(), cell.memory_bytes());
        let result = edit(cell);
        if cell.capacity() != before {
            let bytes = cell.memory_bytes();
            self.cell_bytes = self.cell_bytes + bytes - before_bytes;
        }
        result
    }

    #[inline]
    fn at_mut(&mut self, number: u32) -> &mut Cell {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.chunks.iter().flatten()
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let (full, last) = match self.chunks.split_last() {
            None => (0, 0),
            Some((last, full)) => (full.len(), last.capacity()),
        };
        full * allocated_for::<Cell>(CHUNK)
            + allocated_for::<Cell>(last)
            + allocated_for::<Vec<Cell>>(self.chunks.capacity())
            + self.cell_bytes
    }

    #[cfg(test)]
    pub fn check_bytes(&self) {
        assert_eq!(self.cell_bytes, self.iter().map(Cell::memory_bytes).sum::<usize>());
        let full = &self.chunks[..self.chunks.len().saturating_sub(1)];
        assert!(full.iter().all(|chunk| chunk.capacity() == CHUNK));
    }
}

impl Index<u32> for Pool {
    type Output = Cell;

    #[inline]
    fn index(&self, number: u32) -> &Cell {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}
