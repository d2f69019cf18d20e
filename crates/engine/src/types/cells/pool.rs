//! Where the cells of one table lie, by number, without gaps. The pool grows in chunks, so that no
//! growth moves more than one of them.

use super::cell::Cell;
use std::ops::{Index, IndexMut};

const CHUNK: usize = 512;

#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// All but the last are full.
    chunks: Vec<Vec<Cell>>,
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
        if number as usize != self.len() {
            self[number] = last;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.chunks.iter().flatten()
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let cells: usize = self.chunks.iter().map(Vec::capacity).sum();
        let blocks: usize = self.iter().map(Cell::memory_bytes).sum();
        cells * size_of::<Cell>() + self.chunks.capacity() * size_of::<Vec<Cell>>() + blocks
    }
}

impl Index<u32> for Pool {
    type Output = Cell;

    #[inline]
    fn index(&self, number: u32) -> &Cell {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

impl IndexMut<u32> for Pool {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Cell {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}
