//! Small blocks: pages cut into blocks of one size class, each page with its own free list. A
//! block's class follows from the size asked for, so that nothing but that size is needed to give
//! it back. Who shares a slab, and where large blocks come from, is up to `blocks`.

use super::pages::{PAGE_BYTES, PagePool};
use crate::store::raw::prefetch::{LINE_BYTES, prefetch_to_write};
use std::mem::offset_of;
use std::ptr::{NonNull, null_mut};

/// The largest block that lives in a page.
pub(super) const SLAB_BLOCK_MAX: usize = 1024;
pub(super) const FINE_STEP: usize = 8;
/// Up to here sizes come in steps of the same length.
pub(super) const FINE_MAX: usize = 256;
/// So much of the next block is asked for.
const PREFETCHED_MAX: usize = 4 * LINE_BYTES;
const CLASSES: usize = FINE_MAX / FINE_STEP + 2 * 8;

const HEADER_BYTES: usize = size_of::<PageHeader>();

#[repr(C)]
struct PageHeader {
    next: *mut PageHeader,
    previous: *mut PageHeader,
    /// Offset of the first free block in units of 8 bytes; 0 when there is none. A free block's
    /// first two bytes hold the offset of the next one.
    free: u16,
    used: u16,
    /// Blocks handed out at least once: the memory beyond them has not been touched.
    carved: u16,
    capacity: u16,
    class: u8,
}

// As docs/table.md has it.
const _: () = {
    assert!(HEADER_BYTES == 32 && FINE_MAX == 256 && SLAB_BLOCK_MAX == 1024);
    assert!(offset_of!(PageHeader, next) == 0 && offset_of!(PageHeader, previous) == 8);
    assert!(offset_of!(PageHeader, free) == 16 && offset_of!(PageHeader, used) == 18);
    assert!(offset_of!(PageHeader, carved) == 20 && offset_of!(PageHeader, capacity) == 22);
    assert!(offset_of!(PageHeader, class) == 24);
};

/// Bytes of the block that holds `bytes`: multiples of 8 up to 256, then eight steps per doubling.
#[inline]
pub(super) fn block_bytes(bytes: usize) -> usize {
    if bytes <= FINE_MAX {
        return bytes.next_multiple_of(FINE_STEP).max(FINE_STEP);
    }
    let step = 1usize << ((bytes - 1).ilog2() - 3);
    bytes.next_multiple_of(step)
}

#[inline]
fn class_of(block: usize) -> usize {
    if block <= FINE_MAX {
        return block / FINE_STEP - 1;
    }
    let doubling = (block - 1).ilog2();
    let step = ((block - 1) >> (doubling - 3)) & 7;
    FINE_MAX / FINE_STEP + (doubling as usize - 8) * 8 + step
}

/// Where the page of a block begins.
#[inline]
pub(super) fn page_of(block: NonNull<u8>) -> *mut u8 {
    block.as_ptr().map_addr(|address| address & !(PAGE_BYTES - 1))
}

pub(super) struct Slab {
    /// Pages with a free block, by class; allocation takes from the head.
    roomy: [*mut PageHeader; CLASSES],
    full: [*mut PageHeader; CLASSES],
    /// One empty page of no class, so that a class at a page's edge doesn't go to the pool and
    /// back with every key.
    spare: *mut PageHeader,
    pages: usize,
}

// SAFETY: 1. A slab owns its pages alone, and they are plain memory: no thread is tied to them.
unsafe impl Send for Slab {}

impl Slab {
    pub(super) fn new() -> Slab {
        Slab {
            roomy: [null_mut(); CLASSES],
            full: [null_mut(); CLASSES],
            spare: null_mut(),
            pages: 0,
        }
    }

    /// Bytes of pages held, spare included, and the slab's own.
    pub(super) fn page_bytes(&self) -> usize {
        self.pages * PAGE_BYTES + size_of::<Slab>()
    }

    /// A block of this block size, aligned to 8, contents undefined.
    pub(super) fn allocate(&mut self, block: usize, pool: &PagePool) -> NonNull<u8> {
        let class = class_of(block);
        if self.roomy[class].is_null() {
            self.add_page(class, block, pool);
        }
        let page = self.roomy[class];
        // SAFETY: 1. `page` heads the roomy list, whose pages are live, ours alone, and have a
        // header. 2. A roomy page has either a free block or one not carved yet, so that both
        // offsets below are within the page. 3. A free block's first bytes hold an offset.
        unsafe {
            let offset = if (*page).free != 0 {
                let offset = usize::from((*page).free) * 8;
                (*page).free = page.byte_add(offset).cast::<u16>().read();
                offset
            } else {
                let offset = HEADER_BYTES + usize::from((*page).carved) * block;
                (*page).carved += 1;
                offset
            };
            (*page).used += 1;
            if (*page).used == (*page).capacity {
                unlink(&mut self.roomy[class], page);
                link(&mut self.full[class], page);
            }
            prefetch_next(page, block);
            NonNull::new_unchecked(page.byte_add(offset).cast())
        }
    }

    /// # Safety
    /// 1. `memory` came from `allocate(block)` of this slab. 2. Nobody uses it any more.
    pub(super) unsafe fn release(&mut self, memory: NonNull<u8>, block: usize, pool: &PagePool) {
        let page: *mut PageHeader = page_of(memory).cast();
        let offset = memory.addr().get() - page.addr();
        // SAFETY: 1. The block lies in a page, and pages are aligned to their size, so `page` is
        // its header. 2. The block's pointer was made from the page's, so it may reach the header.
        // 3. The page is in the list that its use count says.
        unsafe {
            let class = usize::from((*page).class);
            assert!(class == class_of(block), "a block goes back with the size it was made with");
            memory.cast::<u16>().write((*page).free);
            (*page).free = (offset / 8) as u16;
            if (*page).used == (*page).capacity {
                unlink(&mut self.full[class], page);
                link(&mut self.roomy[class], page);
            }
            (*page).used -= 1;
            if (*page).used == 0 {
                unlink(&mut self.roomy[class], page);
                self.retire(page, pool);
            }
        }
    }

    /// Gives the spare page back.
    pub(super) fn trim(&mut self, pool: &PagePool) {
        if let Some(spare) = NonNull::new(std::mem::replace(&mut self.spare, null_mut())) {
            self.pages -= 1;
            // SAFETY: 1. The page came from the pool. 2. A spare page has no live block and is in
            // no list.
            unsafe { pool.give_page(spare.cast()) };
        }
    }

    /// Gives all pages back, live blocks or not.
    ///
    /// # Safety
    /// 1. Nobody uses a block of this slab any more.
    pub(super) unsafe fn release_pages(&mut self, pool: &PagePool) {
        for class in 0..CLASSES {
            for list in [self.roomy[class], self.full[class]] {
                let mut page = list;
                while let Some(live) = NonNull::new(page) {
                    // SAFETY: 1. Pages in lists are live until given back just below.
                    page = unsafe { live.as_ref().next };
                    // SAFETY: 1. The page came from the pool. 2. By the contract, it is unused.
                    unsafe { pool.give_page(live.cast()) };
                }
            }
        }
        self.trim(pool);
        *self = Slab::new();
    }

    fn add_page(&mut self, class: usize, block: usize, pool: &PagePool) {
        let page = match NonNull::new(std::mem::replace(&mut self.spare, null_mut())) {
            Some(spare) => spare,
            None => {
                self.pages += 1;
                pool.take_page().cast::<PageHeader>()
            }
        };
        let header = PageHeader {
            next: null_mut(),
            previous: null_mut(),
            free: 0,
            used: 0,
            carved: 0,
            capacity: ((PAGE_BYTES - HEADER_BYTES) / block) as u16,
            class: class as u8,
        };
        // SAFETY: 1. The page is ours alone, large enough and aligned for a header.
        // 2. The list's pages are live.
        unsafe {
            page.write(header);
            link(&mut self.roomy[class], page.as_ptr());
        }
    }

    fn retire(&mut self, page: *mut PageHeader, pool: &PagePool) {
        if self.spare.is_null() {
            self.spare = page;
            return;
        }
        self.pages -= 1;
        let page = NonNull::new(page).expect("a page that was in a list is not null");
        // SAFETY: 1. The page came from the pool. 2. It has no live block and is in no list.
        unsafe { pool.give_page(page.cast()) };
    }
}

/// Asks for the block that is handed out next, of which nothing is near: the more classes and slabs
/// there are, the longer ago is the last use of its neighbours.
///
/// # Safety
/// 1. `page` is a live header.
#[inline]
unsafe fn prefetch_next(page: *const PageHeader, block: usize) {
    // SAFETY: 1. By the contract.
    let (free, carved) = unsafe { ((*page).free, (*page).carved) };
    let offset = match free {
        0 => HEADER_BYTES + usize::from(carved) * block,
        free => usize::from(free) * 8,
    };
    // Of a full page this is what lies behind it, which does no harm.
    let next = page.cast::<u8>().wrapping_add(offset);
    for at in (0..block.min(PREFETCHED_MAX)).step_by(LINE_BYTES) {
        prefetch_to_write(next.wrapping_add(at));
    }
}

/// # Safety
/// 1. `page` and the pages of the list are live headers. 2. `page` is in no list.
unsafe fn link(head: &mut *mut PageHeader, page: *mut PageHeader) {
    // SAFETY: 1. By the contract.
    unsafe {
        (*page).previous = null_mut();
        (*page).next = *head;
        if !(*head).is_null() {
            (**head).previous = page;
        }
    }
    *head = page;
}

/// # Safety
/// 1. `page` is in the list of `head`, whose pages are live headers.
unsafe fn unlink(head: &mut *mut PageHeader, page: *mut PageHeader) {
    // SAFETY: 1. By the contract, the neighbours are live headers or null.
    unsafe {
        let (previous, next) = ((*page).previous, (*page).next);
        if previous.is_null() {
            *head = next;
        } else {
            (*previous).next = next;
        }
        if !next.is_null() {
            (*next).previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_dense_and_blocks_hold_what_they_must() {
        let mut last = (0, 0);
        for bytes in 0..=SLAB_BLOCK_MAX {
            let block = block_bytes(bytes);
            assert!(block >= bytes && block.is_multiple_of(8) && block_bytes(block) == block);
            assert!(bytes <= FINE_MAX || block * 8 <= bytes * 9 + 8, "{bytes} -> {block}");
            let class = class_of(block);
            assert!(class < CLASSES);
            if block != last.0 {
                assert_eq!(class, if last.0 == 0 { 0 } else { last.1 + 1 });
            }
            last = (block, class);
        }
        assert_eq!(last.1, CLASSES - 1);
    }

    #[test]
    fn pages_come_back_when_their_blocks_do() {
        let pool = PagePool::new();
        let mut slab = Slab::new();
        for size in [8, 56, 128, 129, 1000, 1024].map(block_bytes) {
            let count = if cfg!(miri) { 40 } else { 3000 };
            let blocks: Vec<_> = (0..count).map(|_| slab.allocate(size, &pool)).collect();
            assert!(slab.page_bytes() > count * size);
            for (number, block) in blocks.iter().enumerate() {
                // SAFETY: 1. Fresh blocks of at least `size` bytes.
                unsafe { block.as_ptr().write_bytes(number as u8, size) };
            }
            for (number, block) in blocks.into_iter().enumerate() {
                // SAFETY: 1. Written above, and each is given back once.
                unsafe {
                    assert_eq!(block.add(size - 1).read(), number as u8);
                    slab.release(block, size, &pool);
                }
            }
            assert!(pool.used_bytes() <= PAGE_BYTES, "one spare page stays");
        }
        // SAFETY: 1. No block is left.
        unsafe { slab.release_pages(&pool) };
        assert_eq!(pool.used_bytes(), 0);
    }
}
