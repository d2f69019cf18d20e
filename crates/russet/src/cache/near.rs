//! Near copies: what was read from the store is kept in this process too, until the server says
//! that it has changed. Only fresh values are: whether one that is due is served or loaded anew is
//! decided by the store, as without copies.

mod copies;

use super::encoding::Payload;
use super::{FAMILY, Policy, Stats, TAGS};
use crate::backend::TracksChanges;
use crate::error::{Error, Result};
use crate::key::{Key, Scope};
use crate::kit::Kit;
use crate::observe::{self, Counter};
use crate::tracking::{Keeper, Tracking};
use copies::{Content, Copies, Limits, Ticket};
use std::sync::{Arc, Weak};
use std::time::Duration;

const ENTRIES_MAX: usize = 10_000;
const BYTES_MAX: usize = 16 << 20;
const TTL_MAX: Duration = Duration::from_secs(30);

/// How much a cache keeps in the process itself; see [`Policy::near`].
///
/// ```
/// use russet::cache::{Near, Policy};
/// use std::time::Duration;
///
/// let near = Near::new().entries_at_most(1_000).bytes_at_most(1 << 20);
/// let policy = Policy::new(Duration::from_secs(60)).near(near);
/// # let _ = policy;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    limits: Limits,
    ttl_max: Duration,
}

impl Near {
    /// Up to 10,000 copies of 16 MiB in all, each for up to 30 seconds.
    pub fn new() -> Self {
        let limits = Limits { entries_max: ENTRIES_MAX, bytes_max: BYTES_MAX };
        Near { limits, ttl_max: TTL_MAX }
    }

    /// Entries, and tokens of tags.
    pub fn entries_at_most(mut self, count: usize) -> Self {
        self.limits.entries_max = count;
        self
    }

    /// With keys and bookkeeping. A value that does not fit at all is not kept.
    pub fn bytes_at_most(mut self, bytes: usize) -> Self {
        self.limits.bytes_max = bytes;
        self
    }

    /// After so long a copy is read anew, though nothing was heard of its key.
    pub fn ttl_at_most(mut self, span: Duration) -> Self {
        self.ttl_max = span;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.limits.entries_max == 0 || self.limits.bytes_max == 0 || self.ttl_max.is_zero() {
            return Err(Error::invalid("the limits of near copies must not be zero"));
        }
        Ok(())
    }
}

impl Default for Near {
    fn default() -> Self {
        Near::new()
    }
}

/// What is kept of one cache.
pub(super) struct NearCopies {
    kit: Kit,
    prefixes: Vec<Vec<u8>>,
    ttl_max: Duration,
    copies: Copies<Kept>,
    tracking: Arc<Tracking>,
    invalidations: Counter,
    clears: Counter,
}

#[derive(Clone)]
enum Kept {
    Entry(Arc<Entry>),
    /// The token of a tag.
    Token(Arc<[u8]>),
}

/// An entry as the store had it.
pub(super) struct Entry {
    pub payload: Arc<Payload>,
    /// The tokens of the tags that it was stored with.
    pub tags: Vec<u8>,
    pub fresh_until: Duration,
    pub load_time: Duration,
}

impl Entry {
    /// Whether it is served without asking the store: not if it is due, by now or by chance before.
    fn may_serve(&self, tags: &[u8], early: f64, now: Duration) -> bool {
        let fresh_for = self.fresh_until.saturating_sub(now);
        self.tags == tags && fresh_for.as_secs_f64() > early * self.load_time.as_secs_f64()
    }
}

/// Taken before the store is asked. What it answers may be kept if its key has not changed since.
pub(super) struct Reading {
    ticket: Ticket,
    began_at: Duration,
}

impl Reading {
    /// When something ends that the store says has so much time left. It said so later than the
    /// reading began, so it is not before.
    pub fn ends_after(&self, span: Duration) -> Duration {
        self.began_at.saturating_add(span)
    }
}

impl NearCopies {
    /// None where copies save nothing.
    pub fn new(kit: &Kit, name: &str, policy: &Policy) -> Result<Option<Arc<Self>>> {
        let Some(near) = policy.near else { return Ok(None) };
        match kit.tracks_changes() {
            TracksChanges::Yes => {}
            TracksChanges::Needless => return Ok(None),
            TracksChanges::No => {
                let text = "near copies need one server that tells of changes (CLIENT TRACKING): \
                            not a cluster, nor a backend without it";
                return Err(Error::invalid(text));
            }
        }
        let prefix = |family| Ok(kit.keys(family, Scope::from(name).and("x"))?.prefix_of_scope());
        let prefixes = vec![prefix(FAMILY)?, prefix(TAGS)?];
        let tracking = kit.shared_tracking().clone();
        let near = Arc::new(NearCopies {
            kit: kit.clone(),
            prefixes,
            ttl_max: near.ttl_max,
            copies: Copies::new(near.limits),
            tracking: tracking.clone(),
            invalidations: Counter::default(),
            clears: Counter::default(),
        });
        let keeper: Weak<NearCopies> = Arc::downgrade(&near);
        tracking.add(keeper);
        Ok(Some(near))
    }

    /// The value of an entry that need not be asked for.
    pub fn entry(&self, key: &Key, tags: &[u8], early: f64) -> Option<Arc<Payload>> {
        let now = self.kit.time().elapsed();
        match self.copies.find(key.as_bytes(), now)? {
            Kept::Entry(entry) => entry.may_serve(tags, early, now).then(|| entry.payload.clone()),
            Kept::Token(_) => None,
        }
    }

    pub fn token(&self, key: &Key) -> Option<Arc<[u8]>> {
        match self.copies.find(key.as_bytes(), self.kit.time().elapsed())? {
            Kept::Token(token) => Some(token),
            Kept::Entry(_) => None,
        }
    }

    /// To be called before the store is asked for a key. None if it can't be known whether what it
    /// answers is still true a moment later.
    pub fn read(&self, key: &Key) -> Option<Reading> {
        self.tracking.listen(&self.kit);
        let began_at = self.kit.time().elapsed();
        let ticket = self.copies.ticket(key.as_bytes(), began_at)?;
        Some(Reading { ticket, began_at })
    }

    pub fn keep_entry(&self, reading: &Reading, key: &Key, entry: Entry) {
        let until = entry.fresh_until.min(reading.ends_after(self.ttl_max));
        let bytes = entry.payload.len() + entry.payload.encoding().len() + entry.tags.len();
        let value = Kept::Entry(Arc::new(entry));
        self.copies.keep(&reading.ticket, key.as_bytes(), Content { value, bytes, until });
    }

    pub fn keep_token(&self, reading: &Reading, key: &Key, token: &[u8]) {
        let (value, bytes) = (Kept::Token(token.into()), token.len());
        let until = reading.ends_after(self.ttl_max);
        self.copies.keep(&reading.ticket, key.as_bytes(), Content { value, bytes, until });
    }

    pub fn add_to(&self, stats: &mut Stats) {
        let (entries, bytes) = self.copies.size();
        (stats.near_entries, stats.near_bytes) = (entries as u64, bytes as u64);
        stats.near_invalidations = self.invalidations.get();
        stats.near_clears = self.clears.get();
    }

    fn count_clear(&self) {
        self.clears.add(1);
        observe::count("redis.cache.near.clear.count", "cache", 1);
    }
}

impl Drop for NearCopies {
    fn drop(&mut self) {
        self.tracking.removed();
    }
}

impl Keeper for NearCopies {
    fn prefixes(&self) -> &[Vec<u8>] {
        &self.prefixes
    }

    fn changed(&self, key: &[u8]) {
        // Locks and versions are never kept, and change more often than what is.
        let may_be_kept = key.ends_with(b":entry") || key.ends_with(b":token");
        if may_be_kept && self.copies.invalidate(key) {
            self.invalidations.add(1);
            observe::count("redis.cache.near.invalidation.count", "cache", 1);
        }
    }

    fn all_changed(&self) {
        self.copies.clear();
        self.count_clear();
    }

    fn trust_until(&self, moment: Duration) {
        self.copies.trust_until(moment);
    }

    fn distrust(&self) {
        if self.copies.distrust() {
            self.count_clear();
        }
    }
}

/// A change by this process: when it has ended, however it has, no copy from before stays.
pub(super) struct OwnChange<'a> {
    near: Option<&'a NearCopies>,
    key: &'a Key,
}

impl<'a> OwnChange<'a> {
    pub fn of(near: Option<&'a Arc<NearCopies>>, key: &'a Key) -> Self {
        OwnChange { near: near.map(Arc::as_ref), key }
    }
}

impl Drop for OwnChange<'_> {
    fn drop(&mut self) {
        if let Some(near) = self.near {
            near.copies.invalidate(self.key.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn entry(tags: &[u8]) -> Entry {
        let payload = Arc::new(Payload::stored(b"value", b"1".to_vec(), "json:1".into()));
        Entry { payload, tags: tags.to_vec(), fresh_until: SECOND * 10, load_time: SECOND }
    }

    #[test]
    fn a_copy_is_served_while_the_store_would_serve_it_and_elect_nobody() {
        let copy = entry(b"t ");
        assert!(copy.may_serve(b"t ", 0.0, SECOND * 9));
        assert!(!copy.may_serve(b"t ", 0.0, SECOND * 10));
        assert!(!copy.may_serve(b"u ", 0.0, SECOND * 9));
        // Early by 2 loads of a second: due from the eighth second on.
        assert!(copy.may_serve(b"t ", 2.0, SECOND * 8 - Duration::from_millis(1)));
        assert!(!copy.may_serve(b"t ", 2.0, SECOND * 8));
        assert!(!copy.may_serve(b"t ", f64::MAX, Duration::ZERO));
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn copies_in_the_process_of_the_store_are_not_made() {
        let kit = Kit::embedded(crate::Options::default()).unwrap();
        let policy = Policy::new(SECOND).near(Near::new());
        assert!(NearCopies::new(&kit, "users", &policy).unwrap().is_none());
    }
}
