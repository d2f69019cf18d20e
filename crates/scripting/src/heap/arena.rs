//! Objects of one kind by index. The permanent part lies below a mark; what a run makes lies above
//! it and goes in one cut.

use crate::limits::KEPT_BYTES_MAX;
use russet_base::shared::{shrink_spare, spare_bytes};

#[derive(Debug)]
pub struct Arena<T> {
    slots: Vec<T>,
    permanent: usize,
    free: Vec<u32>,
    free_permanent: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { slots: Vec::new(), permanent: 0, free: Vec::new(), free_permanent: Vec::new() }
    }
}

impl<T: Default> Arena<T> {
    pub fn add(&mut self, object: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = object;
                index
            }
            None => {
                self.slots.push(object);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// A permanent object; only while there is no run part.
    pub fn add_permanent(&mut self, object: T) -> u32 {
        assert_eq!(self.permanent, self.slots.len(), "permanent objects are made between runs");
        match self.free_permanent.pop() {
            Some(index) => {
                self.slots[index as usize] = object;
                index
            }
            None => {
                self.slots.push(object);
                self.permanent = self.slots.len();
                self.slots.len() as u32 - 1
            }
        }
    }

    #[inline(always)]
    pub fn at(&self, index: usize) -> &T {
        &self.slots[index]
    }

    #[inline(always)]
    pub fn at_mut(&mut self, index: usize) -> &mut T {
        &mut self.slots[index]
    }

    pub fn find(&self, index: usize) -> Option<&T> {
        self.slots.get(index)
    }

    #[inline(always)]
    pub fn is_permanent(&self, index: usize) -> bool {
        index < self.permanent
    }

    pub fn permanent_len(&self) -> usize {
        self.permanent
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn run_len(&self) -> usize {
        self.slots.len() - self.permanent
    }

    /// An object of the run; `None` if it is permanent.
    #[inline(always)]
    pub fn run_at_mut(&mut self, index: usize) -> Option<&mut T> {
        if self.is_permanent(index) { None } else { self.slots.get_mut(index) }
    }

    /// What the run has made.
    pub fn run_mut(&mut self) -> &mut [T] {
        &mut self.slots[self.permanent..]
    }

    pub fn make_permanent(&mut self) {
        self.free_permanent.append(&mut self.free);
        self.permanent = self.slots.len();
    }

    /// Ends the run.
    pub fn cut(&mut self) {
        self.slots.truncate(self.permanent);
        self.free.clear();
        self.shrink();
    }

    pub fn split_run(&mut self) -> Vec<T> {
        self.free.clear();
        let run = self.slots.split_off(self.permanent);
        self.shrink();
        run
    }

    /// Gives back what a large run left behind.
    fn shrink(&mut self) {
        shrink_spare(&mut self.slots, KEPT_BYTES_MAX);
        shrink_spare(&mut self.free, KEPT_BYTES_MAX);
    }

    /// Bytes of room that is not in use.
    pub fn spare_bytes(&self) -> usize {
        spare_bytes(&self.slots) + spare_bytes(&self.free) + spare_bytes(&self.free_permanent)
    }

    /// Frees the unmarked objects from `first` on; the bytes that they held.
    pub fn sweep(&mut self, first: usize, marks: &[bool], bytes_of: impl Fn(&T) -> usize) -> usize {
        let mut is_free = vec![false; marks.len()];
        for &index in self.free.iter().chain(&self.free_permanent) {
            if let Some(flag) = (index as usize).checked_sub(first).and_then(|i| is_free.get_mut(i))
            {
                *flag = true;
            }
        }
        let mut freed_bytes = 0;
        for (offset, marked) in marks.iter().enumerate() {
            if *marked || is_free[offset] {
                continue;
            }
            let index = first + offset;
            freed_bytes += bytes_of(&self.slots[index]);
            self.slots[index] = T::default();
            if index < self.permanent {
                self.free_permanent.push(index as u32);
            } else {
                self.free.push(index as u32);
            }
        }
        freed_bytes
    }
}
