//! The work of a compilation, counted, so that it can be ended in the middle of a long text.

use crate::host::Tick;
use crate::limits::COMPILE_STEPS_PER_TICK;
use crate::syntax::SyntaxError;
use std::cell::Cell;

/// Counts tokens, instructions and visits of the tree, and asks now and then whether to go on.
pub(crate) struct Meter<'m> {
    left: Cell<u32>,
    is_ended: Cell<bool>,
    tick: &'m dyn Fn() -> Tick,
}

impl<'m> Meter<'m> {
    pub(crate) fn new(tick: &'m dyn Fn() -> Tick) -> Self {
        Meter { left: Cell::new(COMPILE_STEPS_PER_TICK), is_ended: Cell::new(false), tick }
    }

    /// One step. Once the compilation is ended, every further step is refused, too.
    #[inline]
    pub(crate) fn step(&self) -> Result<(), SyntaxError> {
        match self.left.get() {
            0 => self.ask(),
            left => {
                self.left.set(left - 1);
                Ok(())
            }
        }
    }

    /// Whether all steps so far were allowed.
    pub(crate) fn check(&self) -> Result<(), SyntaxError> {
        if self.is_ended.get() { Err(SyntaxError::killed()) } else { Ok(()) }
    }

    #[cold]
    fn ask(&self) -> Result<(), SyntaxError> {
        if self.is_ended.get() || (self.tick)() == Tick::Kill {
            self.is_ended.set(true);
            return Err(SyntaxError::killed());
        }
        self.left.set(COMPILE_STEPS_PER_TICK);
        Ok(())
    }
}
