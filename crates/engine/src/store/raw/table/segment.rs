//! A segment: up to 1024 slot words in buckets of one cache line each, with open addressing. A slot
//! word is a pointer to an entry with a fingerprint in its upper bits, so that segments can be
//! searched, grown, shrunk and merged without touching entries.
//!
//! An entry's home bucket follows from its fingerprint and the number of buckets. When that is full
//! it sits in the next bucket with room, wrapping at the end, and every full bucket on the way
//! carries the mark "overflowed": a search goes on past a bucket only if it is marked.

use super::entry::RawEntry;
use super::pages::{ADDRESS_BITS, GROUP_BYTES, PagePool};
pub(super) use super::word::Word;
use super::word::{POINTER_MASK, SlotFlag};
use crate::store::raw::prefetch::prefetch;
use crate::types::capacity::{allocated_bytes, allocated_for};
use smallvec::SmallVec;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::offset_of;
use std::ptr::{NonNull, null_mut};

pub(super) const SLOTS: usize = 8;
pub(super) const BUCKETS_MAX: usize = GROUPS_MAX * GROUP_BUCKETS;
pub(super) const SLOTS_MAX: usize = BUCKETS_MAX * SLOTS;
/// Slot words between two arrangements: while a segment grows, shrinks, splits or merges.
pub(super) type Gathered = SmallVec<[Word; SLOTS_MAX]>;
const GROUPS_MAX: usize = 16;
const GROUP_BUCKETS: usize = GROUP_BYTES / size_of::<Bucket>();
/// Words of a full segment at which it grows: 57/64 = 0.89 of its slots.
const LOAD_MAX: (usize, usize) = (57, 64);

#[repr(C, align(64))]
struct Bucket {
    words: [Word; SLOTS],
}

impl Bucket {
    #[inline]
    fn is_overflowed(&self) -> bool {
        self.words[0].is_overflowed()
    }

    fn set_overflowed(&mut self, is_overflowed: bool) {
        self.words[0] = self.words[0].with_overflow(is_overflowed);
    }

    /// A slot's word without the bucket's mark.
    #[inline]
    fn word(&self, slot: usize) -> Word {
        self.words[slot].with_overflow_of(Word::EMPTY)
    }

    fn put(&mut self, slot: usize, word: Word) {
        self.words[slot] = word.with_overflow_of(self.words[slot]);
    }

    #[inline]
    fn vacancy(&self) -> Option<usize> {
        self.words.iter().position(|word| word.is_empty())
    }

    /// A bit for every slot that carries the fingerprint; empty slots may look like zero.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    fn matches(&self, fingerprint: u16) -> u32 {
        use std::arch::x86_64::*;
        let words = self.words.as_ptr().cast::<__m128i>();
        // SAFETY: 1. SSE2 is part of the x86-64 baseline. 2. A bucket is 64 bytes aligned to 64, so
        // that the four loads are in bounds and aligned.
        unsafe {
            let load = |at: usize| _mm_castsi128_ps(_mm_load_si128(words.add(at)));
            // The upper halves of all eight words, then their upper quarters, sign-extended so
            // that the signed pack is exact.
            let low = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(load(0), load(1)));
            let high = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(load(2), load(3)));
            let all = _mm_packs_epi32(_mm_srai_epi32::<16>(low), _mm_srai_epi32::<16>(high));
            let equal = _mm_cmpeq_epi16(all, _mm_set1_epi16(fingerprint as i16));
            _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) as u32
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline]
    fn matches(&self, fingerprint: u16) -> u32 {
        let mut found = 0;
        for (slot, word) in self.words.iter().enumerate() {
            found |= u32::from(word.fingerprint() == fingerprint) << slot;
        }
        found
    }
}

/// Where the entry is that a search will most likely find.
pub enum Likely<E> {
    Here(E),
    /// Behind its home bucket, which was full when it came.
    Passed,
    Absent,
}

/// The bucket where a search begins.
#[derive(Clone, Copy)]
pub(super) struct HomeBucket<'a> {
    segment: &'a Segment,
    bucket: &'a Bucket,
    fingerprint: u16,
    index: u16,
}

impl HomeBucket<'_> {
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch((&raw const *self.bucket).cast());
    }

    /// Prefetches so many bytes of the entry that the fingerprint most likely means. If it must be
    /// behind this bucket, prefetches the next one instead: then
    /// [`HomeBucket::prefetch_passed_entry`] is to follow.
    #[inline]
    pub(super) fn prefetch_entry(&self, bytes: usize) -> Likely<RawEntry> {
        let found = self.bucket.matches(self.fingerprint);
        if found != 0 {
            let word = self.bucket.words[found.trailing_zeros() as usize & 7];
            word.prefetch(bytes);
            return if word.is_empty() { Likely::Absent } else { Likely::Here(word.entry()) };
        }
        if self.bucket.is_overflowed() {
            prefetch((&raw const *self.next()).cast());
            return Likely::Passed;
        }
        Likely::Absent
    }

    /// Prefetches so many bytes of the entry that the fingerprint most likely means in the bucket
    /// behind this one.
    #[inline(never)]
    pub(super) fn prefetch_passed_entry(&self, bytes: usize) {
        let bucket = self.next();
        let found = bucket.matches(self.fingerprint);
        if found != 0 {
            bucket.words[found.trailing_zeros() as usize & 7].prefetch(bytes);
        }
    }

    /// The entry that the fingerprint most likely means.
    #[inline]
    pub(super) fn likely_entry(&self) -> Option<RawEntry> {
        let found = self.bucket.matches(self.fingerprint);
        let word = self.bucket.words[found.trailing_zeros() as usize & 7];
        (found != 0 && !word.is_empty()).then(|| word.entry())
    }

    fn next(&self) -> &Bucket {
        self.segment.bucket(self.segment.after(usize::from(self.index)))
    }
}

/// A slot's place in its segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub(super) bucket: u16,
    pub(super) slot: u8,
}

impl Spot {
    pub(super) fn new(bucket: usize, slot: usize) -> Spot {
        Spot { bucket: bucket as u16, slot: slot as u8 }
    }
}

/// A search reads the first line and, for the upper half of the buckets, the second; so does who
/// adds or removes an entry without an expiry.
#[repr(C, align(64))]
pub(super) struct Segment {
    /// Groups of 8 buckets each, as many as there are buckets for; a segment of fewer than 8
    /// buckets has one shorter group. Above their addresses the first carries the number of
    /// buckets, the second that of entries.
    groups: [*mut Bucket; GROUPS_MAX],
    /// A lower bound of the expiries inside; `i64::MAX` if there is none.
    pub(super) expiry_min: i64,
    /// No sweep for expired entries before this time.
    pub(super) sweep_after: i64,
    /// Every entry that expires before this time has its "soon" bit set.
    pub(super) horizon: i64,
    pub(super) expires: u16,
    /// How many leading bits of the hash all entries here share.
    pub(super) depth: u8,
}

// As docs/table.md has it.
const _: () = assert!(size_of::<Segment>() == 192 && offset_of!(Segment, expiry_min) == 128);
const _: () = assert!(offset_of!(Segment, horizon) == 144 && offset_of!(Segment, depth) == 154);

/// Buckets that a segment with `len` entries should have.
pub(super) fn buckets_for(len: usize) -> usize {
    let mut count = 1;
    while len > capacity_of(count) {
        count = larger(count).expect("no segment is asked to hold more than it can");
    }
    count
}

/// Entries that a segment of so many buckets takes before it must grow.
pub(super) fn capacity_of(count: usize) -> usize {
    count * SLOTS * LOAD_MAX.0 / LOAD_MAX.1
}

/// The next size up: doubling while small, then one group at a time.
pub(super) fn larger(count: usize) -> Option<usize> {
    match count {
        BUCKETS_MAX.. => None,
        GROUP_BUCKETS.. => Some(count + GROUP_BUCKETS),
        _ => Some(count * 2),
    }
}

#[inline]
pub(super) fn home(fingerprint: u16, count: usize) -> usize {
    (usize::from(fingerprint) * count) >> 16
}

fn small_layout(count: usize) -> Layout {
    Layout::array::<Bucket>(count).expect("a few buckets fit anywhere")
}

impl Segment {
    pub(super) fn new(depth: u8, count: usize, pool: &PagePool) -> Box<Segment> {
        let mut segment = Box::new(Segment {
            groups: [null_mut(); GROUPS_MAX],
            expiry_min: i64::MAX,
            sweep_after: i64::MIN,
            horizon: i64::MIN,
            expires: 0,
            depth,
        });
        segment.take_groups(count, pool);
        segment
    }

    /// Frees the slots, not the entries.
    pub(super) fn dissolve(mut self, pool: &PagePool) {
        self.give_groups(pool);
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.groups[0].addr() >> ADDRESS_BITS
    }

    /// How many entries there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.groups[1].addr() >> ADDRESS_BITS
    }

    #[inline]
    fn set_len(&mut self, len: usize) {
        self.groups[1] = self.group(1).map_addr(|address| address | len << ADDRESS_BITS);
    }

    /// What it takes. Whole groups are cut from pages, a shorter one and the segment itself come
    /// from the allocator.
    pub(super) fn cost(&self) -> usize {
        let slots = self.count() * size_of::<Bucket>();
        let is_pooled = self.count() >= GROUP_BUCKETS;
        allocated_for::<Segment>(1) + if is_pooled { slots } else { allocated_bytes(slots) }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= capacity_of(self.count())
    }

    /// A group's pointer without what it carries.
    #[inline]
    fn group(&self, number: usize) -> *mut Bucket {
        self.groups[number].map_addr(|address| address & POINTER_MASK)
    }

    #[inline]
    fn bucket_pointer(&self, index: usize) -> *mut Bucket {
        assert!(index < self.count());
        let group = self.group(index / GROUP_BUCKETS % GROUPS_MAX);
        // In bounds: the index is below the count, for which there are groups.
        group.wrapping_add(index % GROUP_BUCKETS)
    }

    #[inline]
    fn bucket(&self, index: usize) -> &Bucket {
        // SAFETY: 1. Groups are allocated, aligned, and initialised by `take_groups`. 2. They
        // belong to this segment alone, and live as long as it or until `&mut self` changes them.
        unsafe { &*self.bucket_pointer(index) }
    }

    #[inline]
    fn bucket_mut(&mut self, index: usize) -> &mut Bucket {
        // SAFETY: 1. and 2. as in `bucket`.
        unsafe { &mut *self.bucket_pointer(index) }
    }

    #[inline]
    fn after(&self, index: usize) -> usize {
        if index + 1 == self.count() { 0 } else { index + 1 }
    }

    /// Where a search for the fingerprint begins. Its memory is not looked at.
    #[inline]
    pub(super) fn home(&self, fingerprint: u16) -> HomeBucket<'_> {
        let index = home(fingerprint, self.count());
        HomeBucket { segment: self, bucket: self.bucket(index), fingerprint, index: index as u16 }
    }

    /// Part of its callers: nearly always it reads one bucket and one entry, and to call it and to
    /// hand back what it found would be a good part of its cost. All else is apart, so that this
    /// has no loop.
    #[inline(always)]
    pub(super) fn find(&self, fingerprint: u16, key: &[u8]) -> Option<(Spot, RawEntry)> {
        let home = home(fingerprint, self.count());
        let bucket = self.bucket(home);
        let found = bucket.matches(fingerprint);
        if found == 0 && !bucket.is_overflowed() {
            return None;
        }
        let slot = found.trailing_zeros() as usize & 7;
        let word = bucket.words[slot];
        if found != 0 && !word.is_empty() && word.entry().has_key(key) {
            return Some((Spot::new(home, slot), word.entry()));
        }
        self.search(fingerprint, key)
    }

    /// Looks at every entry with the fingerprint, in the home bucket and wherever else it may be.
    #[inline(never)]
    fn search(&self, fingerprint: u16, key: &[u8]) -> Option<(Spot, RawEntry)> {
        let home = home(fingerprint, self.count());
        let mut index = home;
        loop {
            let bucket = self.bucket(index);
            let mut found = bucket.matches(fingerprint);
            while found != 0 {
                let slot = found.trailing_zeros() as usize & 7;
                let word = bucket.words[slot];
                if !word.is_empty() && word.entry().has_key(key) {
                    return Some((Spot::new(index, slot), word.entry()));
                }
                found &= found - 1;
            }
            if !bucket.is_overflowed() {
                return None;
            }
            index = self.after(index);
            if index == home {
                return None;
            }
        }
    }

    #[inline]
    pub(super) fn word(&self, spot: Spot) -> Option<Word> {
        let word = self.bucket(usize::from(spot.bucket)).word(usize::from(spot.slot));
        (!word.is_empty()).then_some(word)
    }

    /// Replaces a word by one with the same fingerprint.
    pub(super) fn replace(&mut self, spot: Spot, word: Word) {
        let bucket = self.bucket_mut(usize::from(spot.bucket));
        let slot = usize::from(spot.slot);
        debug_assert_eq!(bucket.words[slot].fingerprint(), word.fingerprint());
        bucket.put(slot, word);
    }

    /// Lets a slot that is in use hold an entry that moved.
    #[inline]
    pub(super) fn repoint(&mut self, spot: Spot, entry: RawEntry) {
        let word = &mut self.bucket_mut(usize::from(spot.bucket)).words[usize::from(spot.slot)];
        *word = word.pointing_to(entry);
    }

    /// Adds a word. The segment must not be at its last slot.
    pub(super) fn insert(&mut self, word: Word) -> Spot {
        let (count, len) = (self.count(), self.len());
        assert!(len < count * SLOTS);
        let mut index = home(word.fingerprint(), count);
        loop {
            let bucket = self.bucket_mut(index);
            if let Some(slot) = bucket.vacancy() {
                bucket.put(slot, word);
                self.set_len(len + 1);
                if word.has_expiry() {
                    self.expires += 1;
                }
                return Spot::new(index, slot);
            }
            bucket.set_overflowed(true);
            index = self.after(index);
        }
    }

    /// Takes a word out, and pulls entries that had passed by into the gap, so that marks don't
    /// outlive their reason and searches stay short however many keys come and go.
    pub(super) fn remove(&mut self, spot: Spot) -> Word {
        let word = self.word(spot).expect("only words that are there are removed");
        self.set_len(self.len() - 1);
        if word.has_expiry() {
            self.expires -= 1;
            if self.expires == 0 {
                self.expiry_min = i64::MAX;
            }
        }
        let mut gap = spot;
        loop {
            let at = usize::from(gap.bucket);
            self.bucket_mut(at).put(usize::from(gap.slot), Word::EMPTY);
            if !self.bucket(at).is_overflowed() {
                return word;
            }
            let Some((from, passed)) = self.first_that_passed(at) else {
                self.bucket_mut(at).set_overflowed(false);
                return word;
            };
            self.bucket_mut(at).put(usize::from(gap.slot), passed);
            gap = from;
        }
    }

    /// The first entry behind a bucket that would sit in it if there had been room.
    fn first_that_passed(&self, passed: usize) -> Option<(Spot, Word)> {
        let count = self.count();
        let mut index = passed;
        for distance in 1..count {
            index = self.after(index);
            let bucket = self.bucket(index);
            for slot in 0..SLOTS {
                let word = bucket.word(slot);
                if word.is_empty() {
                    continue;
                }
                let home = home(word.fingerprint(), count);
                let displacement = if index >= home { index - home } else { index + count - home };
                if displacement >= distance {
                    return Some((Spot::new(index, slot), word));
                }
            }
            if !bucket.is_overflowed() {
                return None;
            }
        }
        None
    }

    /// Calls back for each entry whose home is the given bucket.
    pub(super) fn each_of_home(&self, bucket: usize, visit: &mut impl FnMut(Word)) {
        let count = self.count();
        let mut index = bucket;
        for _ in 0..count {
            let at = self.bucket(index);
            for slot in 0..SLOTS {
                let word = at.word(slot);
                if !word.is_empty() && home(word.fingerprint(), count) == bucket {
                    visit(word);
                }
            }
            if !at.is_overflowed() {
                return;
            }
            index = self.after(index);
        }
    }

    /// A bit for every slot of a bucket whose entry has an expiry or, if asked so, one before the
    /// segment's horizon.
    pub(super) fn due_slots(&self, bucket: usize, is_soon_only: bool) -> u32 {
        let flag = if is_soon_only { SlotFlag::ExpiresSoon } else { SlotFlag::Expires };
        let words = self.bucket(bucket).words.iter().enumerate();
        words.fold(0, |due, (slot, word)| due | u32::from(word.has(flag)) << slot)
    }

    pub(super) fn words(&self) -> impl Iterator<Item = (Spot, Word)> + '_ {
        (0..self.count()).flat_map(move |index| {
            let bucket = self.bucket(index);
            (0..SLOTS).filter_map(move |slot| {
                let word = bucket.word(slot);
                (!word.is_empty()).then_some((Spot::new(index, slot), word))
            })
        })
    }

    pub(super) fn gather(&self, into: &mut Gathered) {
        into.extend(self.words().map(|(_, word)| word));
    }

    /// Empties the segment, gives it so many buckets, and fills it with the words.
    pub(super) fn rebuild(&mut self, words: &[Word], count: usize, pool: &PagePool) {
        assert!(words.len() <= capacity_of(count));
        let old = self.count();
        if old >= GROUP_BUCKETS && count >= GROUP_BUCKETS {
            self.resize_groups(count, pool);
        } else {
            self.give_groups(pool);
            self.take_groups(count, pool);
        }
        // How full each bucket is: to look for it would be most of the cost of growing.
        let mut filled = [0u8; BUCKETS_MAX];
        let mut expires = 0;
        for &word in words {
            let mut index = home(word.fingerprint(), count);
            while usize::from(filled[index]) == SLOTS {
                self.bucket_mut(index).set_overflowed(true);
                index = if index + 1 == count { 0 } else { index + 1 };
            }
            self.bucket_mut(index).put(usize::from(filled[index]), word);
            filled[index] += 1;
            expires += u16::from(word.has_expiry());
        }
        self.set_len(words.len());
        self.expires = expires;
        if self.expires == 0 {
            self.expiry_min = i64::MAX;
        }
    }

    fn set_count(&mut self, count: usize) {
        self.groups[0] = self.group(0).map_addr(|address| address | count << ADDRESS_BITS);
    }

    /// Changes the number of whole groups, and empties all of them; the number of entries is left
    /// to the caller.
    fn resize_groups(&mut self, count: usize, pool: &PagePool) {
        let (old, new) = (self.count() / GROUP_BUCKETS, count / GROUP_BUCKETS);
        assert!(count.is_multiple_of(GROUP_BUCKETS) && new <= GROUPS_MAX);
        for number in new..old {
            give_group(self.group(number), pool);
            self.groups[number] = null_mut();
        }
        for number in old..new {
            self.groups[number] = pool.take_group().cast().as_ptr();
        }
        self.set_count(count);
        for number in 0..new {
            let group = self.group(number);
            // SAFETY: 1. Each group has `GROUP_BUCKETS` buckets and is ours alone. 2. All zeroes
            // is the empty word.
            unsafe { group.write_bytes(0, GROUP_BUCKETS) };
        }
    }

    fn take_groups(&mut self, count: usize, pool: &PagePool) {
        debug_assert!(self.groups[0].is_null());
        if count >= GROUP_BUCKETS {
            return self.resize_groups(count, pool);
        }
        let layout = small_layout(count);
        // SAFETY: 1. The count is at least one, so the size is above zero.
        let group = unsafe { alloc_zeroed(layout) };
        if group.is_null() {
            handle_alloc_error(layout);
        }
        assert!(group.addr() & !POINTER_MASK == 0, "user addresses have at most 48 bits");
        self.groups[0] = group.cast();
        self.set_count(count);
    }

    fn give_groups(&mut self, pool: &PagePool) {
        let count = self.count();
        let groups: [_; GROUPS_MAX] = std::array::from_fn(|number| self.group(number));
        self.groups = [null_mut(); GROUPS_MAX];
        if count < GROUP_BUCKETS {
            // SAFETY: 1. `take_groups` allocated it with this layout. 2. It was forgotten above.
            return unsafe { dealloc(groups[0].cast(), small_layout(count)) };
        }
        for &group in &groups[..count / GROUP_BUCKETS] {
            give_group(group, pool);
        }
    }

    pub(super) fn note_expiry(&mut self, at_ms: i64) {
        self.expiry_min = self.expiry_min.min(at_ms);
    }

    /// When the segment should next be swept.
    pub(super) fn due_ms(&self) -> i64 {
        if self.expires == 0 { i64::MAX } else { self.expiry_min.max(self.sweep_after) }
    }

    #[cfg(test)]
    pub(super) fn is_reachable(&self, spot: Spot, word: Word) -> bool {
        let mut index = home(word.fingerprint(), self.count());
        while index != usize::from(spot.bucket) {
            if !self.bucket(index).is_overflowed() {
                return false;
            }
            index = self.after(index);
        }
        true
    }
}

fn give_group(group: *mut Bucket, pool: &PagePool) {
    let group = NonNull::new(group.cast()).expect("a segment has as many groups as it counts");
    // SAFETY: 1. All groups of whole size came from this pool. 2. The caller has forgotten it.
    unsafe { pool.give_group(group) };
}
