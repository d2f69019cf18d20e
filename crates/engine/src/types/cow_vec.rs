//! A vector in chunks that it shares with its clones. A chunk is copied when one of them changes
//! it. So a large value is cloned as fast as its chunks are counted, which is what a snapshot needs
//! of it, and the first change of each chunk afterwards copies that chunk alone.

use crate::types::capacity::{allocated_bytes, allocated_for};
use std::iter::once;
use std::ops::Index;
use std::sync::Arc;

/// Elements that the change of one element copies at most, if they are shared with a clone: some
/// tens of microseconds, a few hundred where a leaf of a sorted set is cut.
#[cfg(test)]
pub const COPIED_ELEMENTS_MAX: usize = 64 * 1024;

/// What an `Arc` has beside its value.
pub const ARC_COUNTS_BYTES: usize = 2 * size_of::<usize>();

#[cfg(test)]
thread_local! {
    static COPIED_ELEMENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts elements that were copied because they are shared.
#[inline]
fn count_copied(elements: impl FnOnce() -> usize) {
    #[cfg(test)]
    COPIED_ELEMENTS.set(COPIED_ELEMENTS.get() + elements());
    let _ = elements;
}

/// How many that are since the last call.
#[cfg(test)]
pub fn take_copied_elements() -> usize {
    COPIED_ELEMENTS.replace(0)
}

/// Part of a collection.
pub trait Part: Clone {
    /// How many of its elements lie here.
    fn elements(&self) -> usize;
}

/// Gives what is shared to its only owner, who has it copied if there are others.
#[inline]
pub fn to_change<T: Part>(shared: &mut Arc<T>) -> &mut T {
    if Arc::strong_count(shared) > 1 {
        count_copied(|| shared.elements());
    }
    Arc::make_mut(shared)
}

/// The same for bytes of so many elements.
#[inline]
pub fn bytes_to_change(shared: &mut Arc<[u8]>, elements: impl FnOnce() -> usize) -> &mut [u8] {
    if Arc::strong_count(shared) > 1 {
        count_copied(elements);
    }
    Arc::make_mut(shared)
}

/// A vector in chunks of `CHUNK`; all but the last are full.
#[derive(Debug)]
pub struct CowVec<T, const CHUNK: usize> {
    chunks: Vec<Arc<[T]>>,
}

impl<T, const CHUNK: usize> Default for CowVec<T, CHUNK> {
    fn default() -> Self {
        CowVec { chunks: Vec::new() }
    }
}

impl<T, const CHUNK: usize> Clone for CowVec<T, CHUNK> {
    fn clone(&self) -> Self {
        CowVec { chunks: self.chunks.clone() }
    }
}

impl<T, const CHUNK: usize> CowVec<T, CHUNK> {
    #[inline]
    pub fn len(&self) -> usize {
        match self.chunks.split_last() {
            None => 0,
            Some((last, full)) => full.len() * CHUNK + last.len(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Bytes on the heap, without those that its values have there.
    pub fn memory_bytes(&self) -> usize {
        let chunk_bytes = |len: usize| allocated_bytes(ARC_COUNTS_BYTES + len * size_of::<T>());
        let chunks = match self.chunks.split_last() {
            None => 0,
            Some((last, full)) => full.len() * chunk_bytes(CHUNK) + chunk_bytes(last.len()),
        };
        chunks + allocated_for::<Arc<[T]>>(self.chunks.capacity())
    }
}

impl<T: Part + Default, const CHUNK: usize> CowVec<T, CHUNK> {
    /// A value, to be changed: its chunk is copied first if a clone has it, too.
    #[inline]
    pub fn at_mut(&mut self, at: usize) -> &mut T {
        &mut Self::chunk_to_change(&mut self.chunks[at / CHUNK])[at % CHUNK]
    }

    #[inline]
    fn chunk_to_change(chunk: &mut Arc<[T]>) -> &mut [T] {
        if Arc::strong_count(chunk) > 1 {
            count_copied(|| chunk.iter().map(T::elements).sum());
        }
        Arc::make_mut(chunk)
    }

    pub fn push(&mut self, value: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => {
                let own = Self::chunk_to_change(last).iter_mut().map(std::mem::take);
                *last = own.chain(once(value)).collect();
            }
            _ => self.chunks.push(Arc::new([value])),
        }
    }

    /// Adds default values, as many as the last chunk has or as a chunk takes, for those who will
    /// fill them one by one: [`CowVec::push`] moves a chunk for each. How many there are then.
    pub fn grow(&mut self) -> usize {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => {
                let more = last.len().min(CHUNK - last.len());
                let own = Self::chunk_to_change(last).iter_mut().map(std::mem::take);
                *last = own.chain((0..more).map(|_| T::default())).collect();
            }
            last => {
                let first_len = if last.is_some() { CHUNK } else { 1 };
                self.chunks.push((0..first_len).map(|_| T::default()).collect());
            }
        }
        self.len()
    }

    pub fn pop(&mut self) -> Option<T> {
        let last = self.chunks.last_mut()?;
        let (popped, own) = Self::chunk_to_change(last).split_last_mut()?;
        let popped = std::mem::take(popped);
        if own.is_empty() {
            self.chunks.pop();
        } else {
            *last = own.iter_mut().map(std::mem::take).collect();
        }
        Some(popped)
    }
}

impl<T, const CHUNK: usize> Index<usize> for CowVec<T, CHUNK> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::random::Random;

    impl Part for u32 {
        fn elements(&self) -> usize {
            1
        }
    }

    /// Clones that are changed in turn, each against a vector of its own.
    #[test]
    fn clones_share_chunks_and_see_no_change_of_another() {
        const CHUNK: usize = 4;
        let mut random = Random::from_seed(1);
        let mut all = vec![(CowVec::<u32, CHUNK>::default(), Vec::new())];
        for step in 0..20_000 {
            let (which, count) = (random.index(all.len()), all.len());
            let (cow, model) = &mut all[which];
            take_copied_elements();
            match random.index(9) {
                0..3 => {
                    cow.push(step);
                    model.push(step);
                }
                3..5 => assert_eq!(cow.pop(), model.pop()),
                5 => {
                    let (before, grown) = (model.len(), cow.grow());
                    assert!(grown > before && grown <= (before * 2).clamp(1, before + CHUNK));
                    model.resize(grown, 0);
                }
                6..8 if !model.is_empty() => {
                    let at = random.index(model.len());
                    (*cow.at_mut(at), model[at]) = (step, step);
                }
                _ if count < 3 => {
                    let clone = all[which].clone();
                    all.push(clone);
                    assert_eq!(take_copied_elements(), 0, "a clone copies nothing");
                }
                _ => drop(all.swap_remove(which)),
            }
            assert!(take_copied_elements() <= CHUNK);
            if all.is_empty() {
                all.push(Default::default());
            }
            for (cow, model) in &all {
                assert_eq!(cow.len(), model.len());
                assert!(cow.iter().eq(model.iter()));
                assert!((0..model.len()).all(|at| cow[at] == model[at]));
            }
        }
    }
}
