//! Going through many entries: the scan in hash order that survives all changes of the table, the
//! sweep for expired entries, and a random entry.

use super::account::Measured;
use super::core::{Core, DEPTH_MAX, SlotPosition};
use super::entry::{Kind, RawEntry};
use super::face::Table;
use super::handle::EntryRef;
use super::removed::{Deleted, Gone, Inline};
use super::segment::{SLOTS, SLOTS_MAX, Segment, Spot, home};
use crate::store::raw::prefetch::{LINE_BYTES, prefetch};

/// A segment is not swept again within this time.
const SWEEP_INTERVAL_MS: i64 = 250;
/// What a sweep learns about which entries are next holds for this long at least.
const HORIZON_MS_MIN: i64 = 1000;
/// Home buckets that one call of `scan` looks at when they turn out empty.
const SCAN_BUCKETS_MAX: usize = 16;
/// Random slots that are tried before the search goes on in order.
const RANDOM_TRIES_MAX: usize = 512;

/// How far a scan has come: which leading bits of the hash, then which fingerprint. It fits in 40
/// bits; 0 is both the start and the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor(u64);

impl Cursor {
    pub const START: Cursor = Cursor(0);
    pub const BITS: u32 = 40;

    /// Any number will do: one that no scan returned leads to a scan of some part of the keys.
    pub fn from_bits(bits: u64) -> Cursor {
        Cursor(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn is_end(self) -> bool {
        self.0 == 0
    }

    fn new(position: Position) -> Cursor {
        let leading = 1u64 << position.depth | position.prefix;
        Cursor(leading << 16 | u64::from(position.fingerprint))
    }

    fn position(self) -> Option<Position> {
        let fingerprint = self.0 as u16;
        let leading = self.0 >> 16;
        if leading == 0 {
            return Some(Position { depth: 0, prefix: 0, fingerprint });
        }
        let depth = leading.ilog2() as u8;
        let prefix = leading - (1 << depth);
        (depth <= DEPTH_MAX).then_some(Position { depth, prefix, fingerprint })
    }
}

/// All keys with a smaller prefix have been visited, and those with this prefix and a smaller
/// fingerprint.
#[derive(Clone, Copy)]
struct Position {
    depth: u8,
    prefix: u64,
    fingerprint: u16,
}

impl Position {
    /// The same position in terms of the segment that now holds its prefix.
    fn in_segment(self, depth: u8) -> Position {
        if depth >= self.depth {
            // Split since: the first part from here on, the others from their beginning.
            return Position { depth, prefix: self.prefix << (depth - self.depth), ..self };
        }
        // Merged since: unless this was the last of the parts, the others are still to come.
        let rest = self.depth - depth;
        let is_last = (self.prefix + 1).trailing_zeros() >= u32::from(rest);
        let fingerprint = if is_last { self.fingerprint } else { 0 };
        Position { depth, prefix: self.prefix >> rest, fingerprint }
    }

    fn start_of_hashes(self) -> u64 {
        // Two shifts, because one by 64 has no meaning.
        (self.prefix << 1) << (63 - self.depth)
    }
}

/// The bucket whose entries a scan asks the memory for.
#[derive(Clone, Copy)]
enum Ahead {
    /// The one that it is about to visit: the entries are waited for together.
    This,
    /// The one after it, for a walk that goes on.
    Next,
}

/// The least fingerprint of keys whose home is this one of `count` buckets.
fn first_fingerprint(bucket: usize, count: usize) -> u16 {
    (bucket << 16).div_ceil(count) as u16
}

impl<O> Table<O> {
    /// Somewhere in the table, each bucket being as likely as another.
    pub fn random_cursor(&self, random: u64) -> Cursor {
        if self.core.directory_len() == 0 {
            return Cursor::START;
        }
        let segment = self.core.segment(self.core.index_of(random));
        let (depth, count) = (segment.depth, segment.count());
        // Two shifts, because one by 64 has no meaning.
        let prefix = (random >> 1) >> (63 - depth);
        // The beginning of a bucket, for a scan passes over what is before its cursor.
        let fingerprint = first_fingerprint(home(random as u16, count), count);
        Cursor::new(Position { depth, prefix, fingerprint })
    }

    /// Visits the keys of one home bucket, or of the first few that aren't all empty, and returns
    /// where to go on. Every key that is in the table from the first call to the last is visited
    /// at least once, whatever else happens to the table between calls, and once only if nothing
    /// does.
    pub fn scan(&self, cursor: Cursor, visit: &mut dyn FnMut(EntryRef<'_, O>)) -> Cursor {
        self.scan_raw(cursor, Ahead::Next, &mut |entry| {
            // SAFETY: 1. The entry lives in the table, which is borrowed meanwhile.
            // 2. The table's objects are `O`s.
            visit(unsafe { EntryRef::new(entry) });
        })
    }

    /// As [`Table::scan`], for who looks at how each entry is used: their memory is asked for at
    /// once. Who looks at them later, when more were asked for, waits once for all.
    pub fn scan_inside<'t>(
        &'t self,
        cursor: Cursor,
        visit: &mut impl FnMut(EntryRef<'t, O>),
    ) -> Cursor {
        self.scan_raw(cursor, Ahead::This, &mut |entry| {
            // SAFETY: 1. The entry lives in the table, which stays borrowed.
            // 2. The table's objects are `O`s.
            visit(unsafe { EntryRef::new(entry) });
        })
    }

    fn scan_raw(&self, cursor: Cursor, ahead: Ahead, visit: &mut impl FnMut(RawEntry)) -> Cursor {
        let Some(mut position) = cursor.position() else { return Cursor::START };
        if self.core.directory_len() == 0 {
            return Cursor::START;
        }
        let mut is_found = false;
        for _ in 0..SCAN_BUCKETS_MAX {
            let index = self.core.index_of(position.start_of_hashes());
            let segment = self.core.segment(index);
            position = position.in_segment(segment.depth);
            let (from, count) = (position.fingerprint, segment.count());
            let bucket = home(from, count);
            match ahead {
                Ahead::This => prefetch_heads(segment, bucket),
                Ahead::Next if bucket + 1 < count => prefetch_all(segment, bucket + 1),
                Ahead::Next => {}
            }
            segment.each_of_home(bucket, &mut |word| {
                if word.fingerprint() >= from {
                    is_found = true;
                    visit(word.entry());
                }
            });
            if bucket + 1 < count {
                position.fingerprint = first_fingerprint(bucket + 1, count);
            } else if position.prefix + 1 < 1 << position.depth {
                position.prefix += 1;
                position.fingerprint = 0;
            } else {
                return Cursor::START;
            }
            if is_found {
                break;
            }
        }
        Cursor::new(position)
    }

    /// As [`Table::scan`], for a snapshot: visits the entries that it needs and does not have, and
    /// marks them as saved. So each is visited once, whatever happens to the table between calls.
    pub fn save_step(&mut self, cursor: Cursor, visit: &mut dyn FnMut(EntryRef<'_, O>)) -> Cursor {
        let mark = self.core.mark;
        self.scan_raw(cursor, Ahead::Next, &mut |entry| {
            if entry.mark() != mark {
                // SAFETY: 1. The entry lives in the table, which is borrowed meanwhile. 2. The
                // table's objects are `O`s.
                visit(unsafe { EntryRef::new(entry) });
                entry.set_mark(mark);
            }
        })
    }

    /// A random entry, each as likely as any other.
    pub fn random(&self, random_u64: &mut dyn FnMut() -> u64) -> Option<EntryRef<'_, O>> {
        if self.is_empty() {
            return None;
        }
        let segments = self.core.directory_len() as u64;
        // A lone segment may be tiny; of many, each is tried as if it had the largest size.
        let lone_slots = self.core.segment(0).count() * SLOTS;
        let slots = if segments == 1 { lone_slots } else { SLOTS_MAX };
        for _ in 0..RANDOM_TRIES_MAX {
            let random = random_u64();
            let index = ((u128::from(random) * u128::from(segments)) >> 64) as usize;
            let slot = (random as u32 as usize * slots) >> 32;
            let segment = self.core.segment(index);
            let width = 1usize << (self.core.depth() - segment.depth);
            // A segment that stands in the directory several times counts once.
            if index & (width - 1) != 0 || slot >= segment.count() * SLOTS {
                continue;
            }
            if let Some(word) = segment.word(Spot::new(slot / SLOTS, slot % SLOTS)) {
                // SAFETY: 1. The entry lives in the table, which stays borrowed.
                // 2. The table's objects are `O`s.
                return Some(unsafe { EntryRef::new(word.entry()) });
            }
        }
        // Nearly all slots are empty: the first entry from a random segment on.
        let start = self.core.index_of(random_u64());
        let mut around = (start..self.core.directory_len()).chain(0..start);
        let word = around.find_map(|index| self.core.segment(index).words().next());
        // SAFETY: 1. and 2. as above.
        word.map(|(_, word)| unsafe { EntryRef::new(word.entry()) })
    }
}

impl<O: Measured> Table<O> {
    /// Removes keys that expired at or before `now_ms`, and hands each to the callback. Touches
    /// only segments that are due, at most `budget` slots and the rest of one segment.
    /// Returns whether there is more to do now.
    pub fn expire_step(
        &mut self,
        now_ms: i64,
        budget: usize,
        expired: &mut dyn FnMut(Gone<'_>, Deleted<O>),
    ) -> bool {
        let sweep = &mut self.core.sweep;
        // Then all that was put off until a time after the last step would rest until then.
        let is_set_back = now_ms < sweep.seen_ms.saturating_sub(SWEEP_INTERVAL_MS);
        sweep.seen_ms = now_ms;
        if sweep.position.is_none() || is_set_back {
            if self.core.expires == 0 || (sweep.due_ms > now_ms && !is_set_back) {
                return false;
            }
            sweep.position = Some(0);
            sweep.next_due_ms = i64::MAX;
        }
        let mut spent = 0;
        while let Some(position) = self.core.sweep.position {
            if spent >= budget {
                return true;
            }
            if self.core.directory_len() == 0 {
                self.core.sweep.position = None;
                break;
            }
            let index = self.core.index_of(position);
            let next = self.core.end_of(index);
            let segment = self.core.segment_mut(index);
            if segment.sweep_after > now_ms.saturating_add(SWEEP_INTERVAL_MS) {
                // The clock was set back: the time of the last sweep means nothing.
                segment.sweep_after = i64::MIN;
            }
            let is_rested = segment.sweep_after <= now_ms;
            spent += 1;
            let is_due = segment.expires > 0 && segment.expiry_min <= now_ms && is_rested;
            if is_due {
                spent += self.sweep_segment(index, now_ms, expired);
            }
            let due_ms = self.core.segment(index).due_ms();
            let sweep = &mut self.core.sweep;
            sweep.next_due_ms = sweep.next_due_ms.min(due_ms);
            sweep.position = next;
            if is_due {
                self.core.shrink(index, true);
            }
        }
        self.core.sweep.due_ms = self.core.sweep.next_due_ms;
        self.core.expires > 0 && self.core.sweep.due_ms <= now_ms
    }

    /// Removes what expired in one segment; returns how many slots it looked at.
    fn sweep_segment(
        &mut self,
        index: usize,
        now_ms: i64,
        expired: &mut dyn FnMut(Gone<'_>, Deleted<O>),
    ) -> usize {
        let mut looked_at = 0;
        let segment = self.core.segment_mut(index);
        let is_full = segment.horizon <= now_ms;
        segment.sweep_after = now_ms.saturating_add(SWEEP_INTERVAL_MS);
        let mut times = Times::default();
        let count = segment.count();
        for bucket in 0..count {
            prefetch_due(self.core.segment(index), (bucket + 1) % count, !is_full);
            looked_at += 1;
            let mut from = 0;
            loop {
                let due = self.core.segment(index).due_slots(bucket, !is_full) & (0xFF << from);
                if due == 0 {
                    break;
                }
                looked_at += 1;
                let spot = Spot::new(bucket, due.trailing_zeros() as usize);
                let position = SlotPosition::new(index, spot);
                match self.core.entry(position).expiry() {
                    Some(at_ms) if at_ms <= now_ms => {
                        // The slot is looked at again: it may have been filled from further on.
                        from = spot.slot;
                        self.expire(position, expired);
                    }
                    later => {
                        from = spot.slot + 1;
                        times.add(later.unwrap_or(i64::MAX), now_ms);
                    }
                }
            }
        }
        if is_full {
            mark_soon(&mut self.core, index, now_ms.saturating_add(times.horizon_ms()));
        }
        let segment = self.core.segment_mut(index);
        if segment.expires > 0 {
            let unseen = if is_full { i64::MAX } else { segment.horizon };
            segment.expiry_min = times.min.unwrap_or(i64::MAX).min(unseen);
        }
        looked_at
    }

    fn expire(&mut self, position: SlotPosition, expired: &mut dyn FnMut(Gone<'_>, Deleted<O>)) {
        let entry = self.core.detach_keeping_shape(position);
        // SAFETY: 1. Detached just now from this table, whose objects are `O`s.
        let deleted = unsafe { Deleted::of(&mut self.core, entry) };
        // Should the callback panic, the block is lost and nothing worse.
        let label = entry.label();
        let inline = match label.kind {
            Kind::Int => Some(Inline::Int(entry.int())),
            Kind::Bytes => Some(Inline::Bytes(entry.value())),
            Kind::Packed => Some(Inline::Packed(label.tag, entry.value())),
            Kind::Object => None,
        };
        let is_unsaved = entry.mark() != self.core.mark;
        let access = entry.access();
        expired(Gone { key: entry.key(), access, is_unsaved, inline }, deleted);
        // SAFETY: 1. Detached from this table, and the callback has ended.
        unsafe { self.core.release(entry) };
    }
}

/// What a sweep learns about the expiries that are still to come.
#[derive(Default)]
struct Times {
    min: Option<i64>,
    left_ms: i128,
    count: i128,
}

impl Times {
    fn add(&mut self, at_ms: i64, now_ms: i64) {
        self.min = Some(self.min.map_or(at_ms, |min| min.min(at_ms)));
        self.left_ms += i128::from(at_ms) - i128::from(now_ms);
        self.count += 1;
    }

    /// A quarter of the mean time left: few enough entries fall into it, and it holds long enough
    /// to pay for the look at all of them.
    fn horizon_ms(&self) -> i64 {
        let quarter = self.left_ms / self.count.max(1) / 4;
        i64::try_from(quarter).unwrap_or(i64::MAX).max(HORIZON_MS_MIN)
    }
}

/// Sets a new horizon, and the mark of each entry that expires before it.
fn mark_soon(core: &mut Core, index: usize, horizon: i64) {
    let segment = core.segment_mut(index);
    segment.horizon = horizon;
    for bucket in 0..segment.count() {
        for slot in 0..SLOTS {
            let spot = Spot::new(bucket, slot);
            let Some(word) = segment.word(spot).filter(|word| word.has_expiry()) else { continue };
            let is_soon = word.entry().expiry().is_some_and(|at_ms| at_ms < horizon);
            segment.replace(spot, word.with_expiry(true, is_soon));
        }
    }
}

/// Asks for the entries of a bucket that a walk is about to read.
fn prefetch_all(segment: &Segment, bucket: usize) {
    for slot in 0..SLOTS {
        if let Some(word) = segment.word(Spot::new(bucket, slot)) {
            word.prefetch(LINE_BYTES);
        }
    }
}

/// Asks for what the entries of a bucket begin with: how they are used, and most keys.
fn prefetch_heads(segment: &Segment, bucket: usize) {
    let words = (0..SLOTS).filter_map(|slot| segment.word(Spot::new(bucket, slot)));
    words.for_each(|word| prefetch(word.entry().pointer().as_ptr()));
}

/// Asks for the entries of a bucket that a sweep is about to read.
fn prefetch_due(segment: &Segment, bucket: usize, is_soon_only: bool) {
    let mut due = segment.due_slots(bucket, is_soon_only);
    while due != 0 {
        let spot = Spot::new(bucket, due.trailing_zeros() as usize);
        if let Some(word) = segment.word(spot) {
            word.prefetch(LINE_BYTES);
        }
        due &= due - 1;
    }
}
