//! Copies of what the store has, as many as fit. A copy is only kept if its key was not invalidated
//! since its reader began: what the reader brings may be older than what was invalidated.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Invalidations are counted for so many groups of keys. Two keys of one group cost a copy that is
/// not kept now and then, never one that is kept wrongly.
const GROUPS: usize = 1024;
/// What a copy takes beside its key and content, roughly.
const COPY_BYTES: usize = 160;

/// The most that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub entries_max: usize,
    pub bytes_max: usize,
}

pub(super) struct Copies<T> {
    limits: Limits,
    hasher: RandomState,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    /// Until then, by the kit's clock, every invalidation is known to have come. Nothing is served
    /// or begun after it.
    trusted_until: Duration,
    /// How often a key of each group was invalidated.
    invalidations: Vec<u64>,
    positions: HashMap<Vec<u8>, usize>,
    copies: Vec<Option<Copy<T>>>,
    free: Vec<usize>,
    /// Where the search for what is to go continues: what was used since it last came by stays.
    hand: usize,
    bytes: usize,
}

struct Copy<T> {
    key: Vec<u8>,
    content: Content<T>,
    was_used: bool,
}

/// What is kept under a key.
pub(super) struct Content<T> {
    pub value: T,
    pub bytes: usize,
    /// When it is to be read anew, by the kit's clock.
    pub until: Duration,
}

impl<T> Copy<T> {
    fn bytes(&self) -> usize {
        COPY_BYTES + self.key.len() + self.content.bytes
    }
}

/// Taken before a key is read from the store: what is read may be kept if the key was not
/// invalidated since.
#[derive(Debug)]
pub(super) struct Ticket {
    group: usize,
    invalidations: u64,
}

impl<T: Clone> Copies<T> {
    pub fn new(limits: Limits) -> Self {
        let kept = Kept {
            trusted_until: Duration::ZERO,
            invalidations: vec![0; GROUPS],
            positions: HashMap::new(),
            copies: Vec::new(),
            free: Vec::new(),
            hand: 0,
            bytes: 0,
        };
        Copies { limits, hasher: RandomState::new(), kept: Mutex::new(kept) }
    }

    /// A copy that may be served now.
    pub fn find(&self, key: &[u8], now: Duration) -> Option<T> {
        let mut kept = self.lock();
        if now >= kept.trusted_until {
            return None;
        }
        let position = *kept.positions.get(key)?;
        let copy = kept.copies[position].as_mut()?;
        if now >= copy.content.until {
            kept.remove(key);
            return None;
        }
        copy.was_used = true;
        Some(copy.content.value.clone())
    }

    /// None if invalidations do not come at the moment.
    pub fn ticket(&self, key: &[u8], now: Duration) -> Option<Ticket> {
        let group = self.group(key);
        let kept = self.lock();
        (now < kept.trusted_until)
            .then(|| Ticket { group, invalidations: kept.invalidations[group] })
    }

    /// False if the key was invalidated since, or there is no room for it.
    pub fn keep(&self, ticket: &Ticket, key: &[u8], content: Content<T>) -> bool {
        let copy = Copy { key: key.to_vec(), content, was_used: false };
        let bytes = copy.bytes();
        let mut kept = self.lock();
        let is_late = kept.invalidations[ticket.group] != ticket.invalidations;
        if is_late || bytes > self.limits.bytes_max || self.limits.entries_max == 0 {
            return false;
        }
        kept.remove(key);
        while kept.positions.len() >= self.limits.entries_max
            || kept.bytes + bytes > self.limits.bytes_max
        {
            kept.evict();
        }
        kept.insert(copy);
        true
    }

    /// The key has changed, or may have: no copy stays, and none that is being read is kept. True
    /// if there was one.
    pub fn invalidate(&self, key: &[u8]) -> bool {
        let group = self.group(key);
        let mut kept = self.lock();
        kept.invalidations[group] += 1;
        kept.remove(key)
    }

    /// All keys have changed, or may have.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Every invalidation until then has come, or will have.
    pub fn trust_until(&self, moment: Duration) {
        self.lock().trusted_until = moment;
    }

    /// Invalidations do not come any more. True if they did.
    pub fn distrust(&self) -> bool {
        let mut kept = self.lock();
        kept.clear();
        !std::mem::take(&mut kept.trusted_until).is_zero()
    }

    /// Copies, and bytes of them.
    pub fn size(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.positions.len(), kept.bytes)
    }

    fn group(&self, key: &[u8]) -> usize {
        (self.hasher.hash_one(key) % GROUPS as u64) as usize
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl<T> Kept<T> {
    fn insert(&mut self, copy: Copy<T>) {
        self.bytes += copy.bytes();
        let position = match self.free.pop() {
            Some(position) => position,
            None => {
                self.copies.push(None);
                self.copies.len() - 1
            }
        };
        self.positions.insert(copy.key.clone(), position);
        self.copies[position] = Some(copy);
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let Some(position) = self.positions.remove(key) else {
            return false;
        };
        if let Some(copy) = self.copies[position].take() {
            self.bytes -= copy.bytes();
        }
        self.free.push(position);
        true
    }

    /// Removes the next one that was not used since the last round. There is one.
    fn evict(&mut self) {
        debug_assert!(!self.positions.is_empty(), "a copy that fits needs room that others have");
        loop {
            self.hand = (self.hand + 1) % self.copies.len();
            let Some(copy) = &mut self.copies[self.hand] else { continue };
            if !std::mem::take(&mut copy.was_used) {
                let key = copy.key.clone();
                self.remove(&key);
                return;
            }
        }
    }

    fn clear(&mut self) {
        self.invalidations.iter_mut().for_each(|count| *count += 1);
        self.positions.clear();
        self.copies.clear();
        self.free.clear();
        (self.hand, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOW: Duration = SECOND;

    fn copies(entries_max: usize, bytes_max: usize) -> Copies<u32> {
        let copies = Copies::new(Limits { entries_max, bytes_max });
        copies.trust_until(NOW + SECOND * 10);
        copies
    }

    fn content(value: u32) -> Content<u32> {
        Content { value, bytes: 100, until: NOW + SECOND * 5 }
    }

    fn put(copies: &Copies<u32>, key: &str, value: u32) -> bool {
        let ticket = copies.ticket(key.as_bytes(), NOW).unwrap();
        copies.keep(&ticket, key.as_bytes(), content(value))
    }

    /// The reader got the old value, the writer wrote, the invalidation came, and then the reader
    /// came to keep what it had.
    #[test]
    fn what_was_read_before_an_invalidation_is_not_kept_after_it() {
        let copies = copies(10, 10_000);
        let early = copies.ticket(b"a", NOW).unwrap();
        assert!(!copies.invalidate(b"a"));
        let late = copies.ticket(b"a", NOW).unwrap();
        assert!(!copies.keep(&early, b"a", content(1)));
        assert!(copies.keep(&late, b"a", content(2)));
        assert!(!copies.keep(&early, b"a", content(1)));
        assert_eq!(copies.find(b"a", NOW), Some(2));
        assert!(copies.invalidate(b"a"));
        assert_eq!(copies.find(b"a", NOW), None);
    }

    #[test]
    fn what_was_read_before_all_was_forgotten_is_not_kept_after_it() {
        let copies = copies(10, 10_000);
        let keys = ["a", "b", "c"];
        let tickets = keys.map(|key| copies.ticket(key.as_bytes(), NOW).unwrap());
        copies.clear();
        for (key, ticket) in keys.iter().zip(&tickets) {
            assert!(!copies.keep(ticket, key.as_bytes(), content(1)));
        }
        // The same if trust was lost and came back meanwhile.
        let ticket = copies.ticket(b"a", NOW).unwrap();
        assert!(copies.distrust() && !copies.distrust());
        assert!(copies.ticket(b"a", NOW).is_none());
        copies.trust_until(NOW + SECOND);
        assert!(!copies.keep(&ticket, b"a", content(1)));
    }

    #[test]
    fn nothing_is_served_after_its_time_or_without_trust() {
        let copies = copies(10, 10_000);
        assert!(put(&copies, "a", 1));
        assert_eq!(copies.find(b"a", NOW + SECOND * 5 - Duration::from_nanos(1)), Some(1));
        copies.trust_until(NOW + SECOND);
        assert_eq!(copies.find(b"a", NOW + SECOND), None);
        // The copy was not forgotten: its invalidation would have come.
        copies.trust_until(NOW + SECOND * 10);
        assert_eq!(copies.find(b"a", NOW + SECOND), Some(1));
        assert_eq!(copies.find(b"a", NOW + SECOND * 5), None);
        assert_eq!(copies.size(), (0, 0));
    }

    #[test]
    fn neither_entries_nor_bytes_go_over_their_bound() {
        let copy_bytes = COPY_BYTES + "key 00".len() + 100;
        for (entries_max, bytes_max, most) in [(7, usize::MAX, 7), (100, 5 * copy_bytes, 5)] {
            let copies = copies(entries_max, bytes_max);
            for round in 0..50 {
                assert!(put(&copies, &format!("key {round:02}"), round));
                copies.invalidate(format!("key {:02}", round / 3).as_bytes());
                let (entries, bytes) = copies.size();
                assert!(entries <= most && bytes == entries * copy_bytes, "{entries} {bytes}");
            }
            assert_eq!(copies.size().0, most);
            assert!(copies.lock().copies.len() <= most);
        }
        assert!(!put(&copies(10, copy_bytes - 1), "key 00", 1));
    }

    #[test]
    fn what_is_used_stays_longest() {
        let copies = copies(4, usize::MAX);
        assert!(put(&copies, "hot", 0));
        for round in 1..100 {
            assert_eq!(copies.find(b"hot", NOW), Some(0));
            assert!(put(&copies, &format!("cold {round}"), round));
        }
        assert_eq!(copies.find(b"hot", NOW), Some(0));
    }
}
