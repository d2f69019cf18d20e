//! Local variables that closures share.

use super::{CELL_BYTES, Heap};
use crate::fault::Refusal;
use crate::value::{CellRef, Value};

impl Heap {
    pub(crate) fn cell(&mut self, value: Value) -> Result<CellRef, Refusal> {
        self.memory.take(CELL_BYTES)?;
        Ok(CellRef(self.cells.add(value)))
    }

    #[inline(always)]
    pub(crate) fn cell_get(&self, cell: CellRef) -> &Value {
        self.cells.at(cell.index())
    }

    #[inline(always)]
    pub(crate) fn cell_set(&mut self, cell: CellRef, value: &Value) {
        // In one piece: it will be read in one.
        *self.cells.at_mut(cell.index()) = *value;
        if self.cells.is_permanent(cell.index()) {
            self.remember_cell(cell);
        }
    }

    /// A permanent cell got a value; if that is of the run, the end of the run must know.
    #[cold]
    fn remember_cell(&mut self, cell: CellRef) {
        if self.is_run(*self.cell_get(cell)) {
            self.remembered.cells.insert(cell);
        }
    }
}
