//! The memory under all tables of an engine: chunks of 2 MiB from the system, cut into pages for
//! slabs and into smaller groups for the slot arrays of segments. What a page holds is the
//! business of whoever took it.
//!
//! Chunks are aligned to their size and marked for huge pages, because at millions of keys the
//! misses of the address cache cost more than the misses of the data cache.

use crate::used_memory::UsedMemory;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) const CHUNK_BYTES: usize = 2 * 1024 * 1024;
pub(super) const PAGE_BYTES: usize = 16 * 1024;
/// The unit in which segments grow.
pub(super) const GROUP_BYTES: usize = 512;
/// Addresses have this many bits: the rest of a slot word holds a fingerprint.
pub(super) const ADDRESS_BITS: u32 = 48;

const PAGES_PER_CHUNK: usize = CHUNK_BYTES / PAGE_BYTES;
const GROUPS_PER_PAGE: usize = PAGE_BYTES / GROUP_BYTES;
/// Wholly free chunks that are kept for the next growth instead of going back to the system.
const SPARE_CHUNKS: usize = 2;

const _: () = assert!(PAGES_PER_CHUNK == u128::BITS as usize);
const _: () = assert!(GROUPS_PER_PAGE == u32::BITS as usize);
// As docs/table.md has it.
const _: () = assert!(CHUNK_BYTES == 2 << 20 && PAGE_BYTES == 16 << 10 && GROUP_BYTES == 512);

/// Pages and groups for all tables of one engine. Share it in an `Arc`.
#[derive(Default)]
pub struct PagePool {
    state: Mutex<PoolState>,
    used: UsedMemory,
    mapped_bytes: AtomicUsize,
}

#[derive(Default)]
struct PoolState {
    chunks: BTreeMap<usize, Chunk>,
    /// Chunks with free pages and used ones. They are filled before a wholly free one is touched,
    /// lowest address first, so that the others drain.
    roomy: BTreeSet<usize>,
    wholly_free: Vec<usize>,
    /// Pages cut into groups that have a free group.
    roomy_group_pages: BTreeSet<usize>,
    free_pages: usize,
    free_groups: usize,
}

struct Chunk {
    base: NonNull<u8>,
    is_mapped: bool,
    /// One bit per page.
    free: u128,
    /// One bit per free group, for the pages that are cut into groups.
    free_groups: [u32; PAGES_PER_CHUNK],
}

// SAFETY: 1. A chunk is plain memory owned by its pool: no thread is tied to it.
unsafe impl Send for Chunk {}

impl PagePool {
    pub fn new() -> PagePool {
        PagePool::default()
    }

    /// What all tables of the engine publish the bytes that they take to.
    pub fn used(&self) -> &UsedMemory {
        &self.used
    }

    /// Bytes mapped from the system, used or not.
    pub fn mapped_bytes(&self) -> usize {
        self.mapped_bytes.load(Ordering::Relaxed)
    }

    /// Bytes in pages and groups that some table holds.
    pub fn used_bytes(&self) -> usize {
        let state = self.lock();
        state.chunks.len() * CHUNK_BYTES
            - state.free_pages * PAGE_BYTES
            - state.free_groups * GROUP_BYTES
    }

    /// Maps and touches a chunk ahead of need, so that no command pays for it. For a background
    /// thread: returns whether there was anything to do.
    pub fn prepare(&self) -> bool {
        {
            let state = self.lock();
            // A small pool stays small: its first chunk is not worth a spare.
            if !state.wholly_free.is_empty() || state.chunks.len() < 2 {
                return false;
            }
        }
        let chunk = Chunk::map(true);
        chunk.touch();
        self.adopt(&mut self.lock(), chunk);
        true
    }

    pub(super) fn take_page(&self) -> NonNull<u8> {
        let mut state = self.lock();
        self.page_from(&mut state)
    }

    /// # Safety
    /// 1. `page` came from `take_page` of this pool. 2. Nobody uses it any more.
    pub(super) unsafe fn give_page(&self, page: NonNull<u8>) {
        self.return_page(&mut self.lock(), page.addr().get());
    }

    /// `GROUP_BYTES` bytes aligned to 64, contents undefined but initialised or zero.
    pub(super) fn take_group(&self) -> NonNull<u8> {
        let mut state = self.lock();
        let page = match state.roomy_group_pages.first() {
            Some(&page) => page,
            None => {
                let page = self.page_from(&mut state).addr().get();
                state.roomy_group_pages.insert(page);
                let (chunk, number) = state.chunk_of(page);
                chunk.free_groups[number] = u32::MAX;
                state.free_groups += GROUPS_PER_PAGE;
                page
            }
        };
        state.free_groups -= 1;
        let (chunk, number) = state.chunk_of(page);
        let group = chunk.free_groups[number].trailing_zeros() as usize;
        assert!(group < GROUPS_PER_PAGE, "a roomy group page has a free group");
        chunk.free_groups[number] &= !(1 << group);
        let is_full = chunk.free_groups[number] == 0;
        let base = chunk.base;
        if is_full {
            state.roomy_group_pages.remove(&page);
        }
        // SAFETY: 1. The offset is within the chunk: page number and group number are in range.
        unsafe { base.add(number * PAGE_BYTES + group * GROUP_BYTES) }
    }

    /// # Safety
    /// 1. `group` came from `take_group` of this pool. 2. Nobody uses it any more.
    pub(super) unsafe fn give_group(&self, group: NonNull<u8>) {
        let address = group.addr().get();
        let page = address & !(PAGE_BYTES - 1);
        let bit = 1u32 << ((address - page) / GROUP_BYTES);
        let mut state = self.lock();
        state.free_groups += 1;
        let (chunk, number) = state.chunk_of(page);
        assert!(chunk.free_groups[number] & bit == 0, "a group is given back once");
        chunk.free_groups[number] |= bit;
        let free = chunk.free_groups[number];
        if free == u32::MAX {
            chunk.free_groups[number] = 0;
            state.free_groups -= GROUPS_PER_PAGE;
            state.roomy_group_pages.remove(&page);
            self.return_page(&mut state, page);
        } else if free == bit {
            state.roomy_group_pages.insert(page);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // No foreign code runs under this lock, so the state is whole even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page_from(&self, state: &mut PoolState) -> NonNull<u8> {
        if state.roomy.is_empty() {
            if state.wholly_free.is_empty() {
                // The first chunk of an engine is mostly empty: ordinary pages cost less there.
                let chunk = Chunk::map(!state.chunks.is_empty());
                self.adopt(state, chunk);
            }
            state.roomy.extend(state.wholly_free.pop());
        }
        let address = *state.roomy.first().expect("a chunk was adopted if none was roomy");
        state.free_pages -= 1;
        let (chunk, _) = state.chunk_of(address);
        let number = chunk.free.trailing_zeros() as usize;
        assert!(number < PAGES_PER_CHUNK, "a roomy chunk has a free page");
        chunk.free &= !(1 << number);
        let is_full = chunk.free == 0;
        let base = chunk.base;
        if is_full {
            state.roomy.remove(&address);
        }
        // SAFETY: 1. The page lies within the chunk.
        unsafe { base.add(number * PAGE_BYTES) }
    }

    fn return_page(&self, state: &mut PoolState, page: usize) {
        state.free_pages += 1;
        let (chunk, number) = state.chunk_of(page);
        assert!(chunk.free & (1 << number) == 0, "a page is given back once");
        chunk.free |= 1 << number;
        let is_wholly_free = chunk.free == u128::MAX;
        let address = chunk.base.addr().get();
        if !is_wholly_free {
            state.roomy.insert(address);
            return;
        }
        state.roomy.remove(&address);
        if state.wholly_free.len() < SPARE_CHUNKS {
            state.wholly_free.push(address);
            return;
        }
        state.free_pages -= PAGES_PER_CHUNK;
        let chunk = state.chunks.remove(&address).expect("the chunk was found a moment ago");
        self.mapped_bytes.fetch_sub(CHUNK_BYTES, Ordering::Relaxed);
        chunk.unmap();
    }

    fn adopt(&self, state: &mut PoolState, chunk: Chunk) {
        let address = chunk.base.addr().get();
        state.wholly_free.push(address);
        state.free_pages += PAGES_PER_CHUNK;
        self.mapped_bytes.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
        let replaced = state.chunks.insert(address, chunk);
        assert!(replaced.is_none(), "two chunks never share an address");
    }
}

impl PoolState {
    /// The chunk that an address lies in, and the number of its page there.
    fn chunk_of(&mut self, address: usize) -> (&mut Chunk, usize) {
        let base = address & !(CHUNK_BYTES - 1);
        let chunk = self.chunks.get_mut(&base).expect("memory goes back to the pool it came from");
        (chunk, (address - base) / PAGE_BYTES)
    }
}

impl Drop for PoolState {
    fn drop(&mut self) {
        // Tables hold the pool in an `Arc`, so none is left by now.
        for (_, chunk) in std::mem::take(&mut self.chunks) {
            chunk.unmap();
        }
    }
}

impl Chunk {
    fn map(wants_huge_pages: bool) -> Chunk {
        let mapped = map_aligned(wants_huge_pages);
        let base = mapped.unwrap_or_else(|| {
            // SAFETY: 1. The layout has a size above zero.
            let base = unsafe { alloc(chunk_layout()) };
            NonNull::new(base).unwrap_or_else(|| handle_alloc_error(chunk_layout()))
        });
        let last = base.addr().get() + (CHUNK_BYTES - 1);
        assert!(last >> ADDRESS_BITS == 0, "user addresses have at most 48 bits");
        let free_groups = [0; PAGES_PER_CHUNK];
        Chunk { base, is_mapped: mapped.is_some(), free: u128::MAX, free_groups }
    }

    /// Makes the system back the whole chunk with memory now.
    fn touch(&self) {
        for page in 0..CHUNK_BYTES / 4096 {
            // SAFETY: 1. In bounds. 2. The chunk is not shared with anyone yet.
            unsafe { self.base.add(page * 4096).write_volatile(0) };
        }
    }

    fn unmap(self) {
        if self.is_mapped {
            unmap(self.base.as_ptr(), CHUNK_BYTES);
        } else {
            // SAFETY: 1. `map` allocated it with this layout. 2. The pool has forgotten it.
            unsafe { dealloc(self.base.as_ptr(), chunk_layout()) };
        }
    }
}

fn chunk_layout() -> Layout {
    Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("a power of two is a valid alignment")
}

#[cfg(all(unix, not(miri)))]
fn map_aligned(wants_huge_pages: bool) -> Option<NonNull<u8>> {
    let mut base = map_bytes(CHUNK_BYTES)?;
    if base.addr() & (CHUNK_BYTES - 1) != 0 {
        // The kernel gave an unaligned place: take twice as much and trim both ends.
        unmap(base, CHUNK_BYTES);
        let wide = map_bytes(2 * CHUNK_BYTES)?;
        let before = wide.addr().wrapping_neg() & (CHUNK_BYTES - 1);
        base = wide.wrapping_add(before);
        if before > 0 {
            unmap(wide, before);
        }
        unmap(base.wrapping_add(CHUNK_BYTES), CHUNK_BYTES - before);
    }
    #[cfg(target_os = "linux")]
    if wants_huge_pages {
        // SAFETY: 1. The range was mapped just now. 2. The advice changes no contents. A refusal
        // costs speed only, so the result is not looked at.
        unsafe { libc::madvise(base.cast(), CHUNK_BYTES, libc::MADV_HUGEPAGE) };
    }
    let _ = wants_huge_pages;
    NonNull::new(base)
}

#[cfg(all(unix, not(miri)))]
fn map_bytes(length: usize) -> Option<*mut u8> {
    // SAFETY: 1. An anonymous private mapping at an address of the kernel's choice touches no
    // existing memory.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    (base != libc::MAP_FAILED).then_some(base.cast())
}

#[cfg(all(unix, not(miri)))]
fn unmap(base: *mut u8, length: usize) {
    // SAFETY: 1. All callers pass a range that they mapped and that nobody uses any more.
    let result = unsafe { libc::munmap(base.cast(), length) };
    debug_assert_eq!(result, 0);
}

#[cfg(any(miri, not(unix)))]
fn map_aligned(_wants_huge_pages: bool) -> Option<NonNull<u8>> {
    None
}

#[cfg(any(miri, not(unix)))]
fn unmap(_base: *mut u8, _length: usize) {
    unreachable!("nothing is mapped on this platform");
}
