//! The blocks of entries, shared by several tables: the memory that a class of blocks leaves unused
//! in its last page is then paid once for all of them, however finely the keyspace is split. One
//! short lock guards the small blocks; the global allocator has the large ones.

use super::pages::PagePool;
use super::slab::{SLAB_BLOCK_MAX, Slab, block_bytes};
use crate::used_memory::UsedMemory;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks for the tables that hold it. Share it in an `Arc`. Alone on its cache lines: the
/// neighbours belong to other tables, which other threads write.
#[repr(align(128))]
pub struct Blocks {
    slab: Mutex<Slab>,
    pool: Arc<PagePool>,
}

impl Blocks {
    pub fn new(pool: Arc<PagePool>) -> Blocks {
        Blocks { slab: Mutex::new(Slab::new()), pool }
    }

    /// Bytes of the pages that small blocks live in, free ones included.
    pub fn page_bytes(&self) -> usize {
        self.lock().page_bytes()
    }

    /// See [`PagePool::used`].
    pub fn used(&self) -> &UsedMemory {
        self.pool.used()
    }

    pub(super) fn pool(&self) -> &Arc<PagePool> {
        &self.pool
    }

    /// A block of `block_bytes(bytes)` bytes, aligned to 8, contents undefined.
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let block = block_bytes(bytes);
        if block <= SLAB_BLOCK_MAX {
            return self.lock().allocate(block, &self.pool);
        }
        let layout = large_layout(block);
        // SAFETY: 1. The size is above zero.
        let memory = unsafe { alloc(layout) };
        NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// # Safety
    /// 1. `memory` came from `allocate` of these blocks with a size of the same block size.
    /// 2. Nobody uses it any more.
    pub(super) unsafe fn release(&self, memory: NonNull<u8>, bytes: usize) {
        let block = block_bytes(bytes);
        if block <= SLAB_BLOCK_MAX {
            // SAFETY: 1. Blocks up to this size are the slab's, by the contract of this one.
            // 2. By the contract.
            unsafe { self.lock().release(memory, block, &self.pool) };
        } else {
            // SAFETY: 1. `allocate` used the same layout for this block size.
            unsafe { dealloc(memory.as_ptr(), large_layout(block)) };
        }
    }

    /// Gives memory back that was kept for the next block: one page would hold a chunk.
    pub(super) fn trim(&self) {
        self.lock().trim(&self.pool);
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Slab> {
        // No foreign code runs under this lock, so the slab is whole even after a panic.
        self.slab.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let slab = self.slab.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: 1. Tables hold their blocks in an `Arc` and give each back before they let go of
        // it, so that none is left.
        unsafe { slab.release_pages(&self.pool) };
    }
}

fn large_layout(block: usize) -> Layout {
    Layout::from_size_align(block, 8).expect("entries are far smaller than the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What threads do to one `Blocks` with no other lock between them.
    #[test]
    fn threads_share_blocks_of_every_size() {
        let pool = Arc::new(PagePool::new());
        let blocks = Blocks::new(Arc::clone(&pool));
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        std::thread::scope(|scope| {
            for thread in 1..=3u8 {
                let blocks = &blocks;
                scope.spawn(move || {
                    let mut live = Vec::new();
                    for round in 0..rounds {
                        let size = [8, 56, 57, 256, 257, 1024, 1025, 70_000][round % 8];
                        let block = blocks.allocate(size);
                        // SAFETY: 1. A fresh block of at least `size` bytes.
                        unsafe { block.as_ptr().write_bytes(thread, size) };
                        live.push((block, size));
                        if round % 3 == 2 {
                            let (block, size) = live.swap_remove(round % live.len());
                            // SAFETY: 1. Written above by this thread, and given back once.
                            unsafe {
                                assert_eq!([block.read(), block.add(size - 1).read()], [thread; 2]);
                                blocks.release(block, size);
                            }
                        }
                    }
                    for (block, size) in live {
                        // SAFETY: 1. As above.
                        unsafe {
                            assert_eq!([block.read(), block.add(size - 1).read()], [thread; 2]);
                            blocks.release(block, size);
                        }
                    }
                });
            }
        });
        assert!(pool.used_bytes() <= 16 * 1024, "one spare page stays");
        drop(blocks);
        assert_eq!(pool.used_bytes(), 0);
    }
}
