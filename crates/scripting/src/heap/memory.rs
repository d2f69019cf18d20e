//! The account of what a state holds, in bytes.

use super::Heap;
use crate::fault::{Fault, Refusal};
use crate::value::ThreadRef;

#[derive(Clone, Copy, Debug)]
pub struct Memory {
    used_bytes: usize,
    bytes_max: usize,
}

impl Memory {
    pub fn new(bytes_max: usize) -> Self {
        Memory { used_bytes: 0, bytes_max }
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// How much more is held than then.
    pub fn grown_since(&self, used_bytes: usize) -> isize {
        self.used_bytes.cast_signed() - used_bytes.cast_signed()
    }

    /// Before an allocation: whether it may be made.
    pub fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        let used = self.used_bytes.saturating_add(bytes);
        if used > self.bytes_max {
            return Err(Refusal::OutOfMemory);
        }
        self.used_bytes = used;
        Ok(())
    }

    /// What was freed.
    pub fn give(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.used_bytes, "freed more than was taken");
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }
}

impl Heap {
    /// Counts what a coroutine's stack is to grow by.
    pub(crate) fn take_stack(&mut self, thread: ThreadRef, bytes: usize) -> Result<(), Fault> {
        self.take(bytes)?;
        if self.threads.is_permanent(thread.index()) {
            self.grown_bytes += bytes.cast_signed();
        }
        Ok(())
    }

    /// The stack of a coroutine is gone, before the coroutine is.
    pub(crate) fn give_stack(&mut self, thread: ThreadRef, bytes: usize) {
        self.memory.give(bytes);
        if self.threads.is_permanent(thread.index()) {
            self.grown_bytes -= bytes.cast_signed();
        }
    }
}
