//! Invalidation: after the source has changed, what is stored must go. It is tried until done, by
//! one task per cache and for a bounded number of entries and tags.

use super::near::OwnChange;
use super::{Cache, Inner, Slot, count, observe};
use crate::error::{Advice, Error, Result};
use crate::key::{Key, Scope};
use crate::request::Request;
use crate::retry::RetryPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// The most entries and tags whose invalidation is pending; more are refused.
const PENDING_MAX: usize = 10_000;
/// How long is waited between attempts. There is no last one.
const PAUSES: RetryPolicy = RetryPolicy {
    attempts_max: u32::MAX,
    pause_min: Duration::from_millis(50),
    pause_max: Duration::from_secs(5),
};

/// Whether the old value is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// It is gone: whoever asks from now on does not get it.
    Done,
    /// The store did not answer: it is tried again in the background for as long as this process
    /// lives, or until the store refuses it, which is counted and logged. Until then, at most until
    /// its TTL is over, the old value is served.
    Pending,
}

/// What is to go.
#[derive(Clone)]
enum Target {
    Entry { slot: Slot, version: u64 },
    Tag(Key),
}

impl Target {
    fn key(&self) -> Vec<u8> {
        match self {
            Target::Entry { slot, .. } => slot.entry.as_bytes().to_vec(),
            Target::Tag(tag) => tag.as_bytes().to_vec(),
        }
    }

    /// Becomes one that does what both do: without a version it is any that goes.
    fn merge(&mut self, other: Target) {
        if let (Target::Entry { version, .. }, Target::Entry { version: new, .. }) = (self, other) {
            *version = if *version == 0 || new == 0 { 0 } else { new.max(*version) };
        }
    }
}

impl<V: Serialize + DeserializeOwned + Send + 'static> Cache<V> {
    /// To be called after the database was written. Loads that are under way are not stored.
    pub async fn invalidate(&self, id: impl Into<Scope>) -> Result<Invalidation> {
        self.invalidate_older_than(id, 0).await
    }

    /// The same, but a value of a newer version than this stays.
    pub async fn invalidate_older_than(
        &self,
        id: impl Into<Scope>,
        version: u64,
    ) -> Result<Invalidation> {
        let slot = self.inner.untagged(&id.into())?;
        self.inner.invalidate(Target::Entry { slot, version }).await
    }

    /// All entries that were loaded with this tag.
    pub async fn invalidate_tag(&self, tag: &str) -> Result<Invalidation> {
        let target = Target::Tag(self.inner.tag(tag)?);
        self.inner.invalidate(target).await
    }

    /// Announces a change of the source. However the caller goes on, the entry is invalidated: when
    /// it says that it is done, or in the background when the announcement is dropped, by an error
    /// or because the caller itself was.
    ///
    /// ```
    /// # use russet::cache::*;
    /// # async fn update() -> Result<(), russet::Error> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let kit = russet::Kit::embedded(Default::default())?;
    /// # let policy = Policy::new(std::time::Duration::from_secs(60));
    /// # let users: Cache<String> = Cache::new(&kit, "users", policy)?;
    /// let change = users.change("user-1")?;
    /// update().await?;
    /// assert_eq!(change.done().await?, Invalidation::Done);
    /// # Ok(())
    /// # }
    /// ```
    pub fn change(&self, id: impl Into<Scope>) -> Result<Change> {
        let slot = self.inner.untagged(&id.into())?;
        let target = Target::Entry { slot, version: 0 };
        Ok(Change { inner: self.inner.clone(), target: Some(target) })
    }

    /// Waits until no invalidation is pending, as before a process ends.
    pub async fn flush_invalidations(&self) {
        let mut pending = self.inner.backlog.count.subscribe();
        // The sender is ours: it does not go away.
        let _ = pending.wait_for(|count| *count == 0).await;
    }
}

/// A change of the source that is under way.
#[must_use]
pub struct Change {
    inner: Arc<Inner>,
    target: Option<Target>,
}

impl Change {
    /// The source has changed.
    pub async fn done(mut self) -> Result<Invalidation> {
        let Some(target) = self.target.clone() else {
            return Ok(Invalidation::Done);
        };
        let result = self.inner.invalidate(target).await;
        self.target = None;
        result
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(target) = self.target.take() {
            // Outside a runtime nothing can be done; the TTL ends it.
            let _ = self.inner.retry(target);
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").finish_non_exhaustive()
    }
}

impl Inner {
    /// Where an entry is, as far as its removal needs it.
    fn untagged(&self, id: &Scope) -> Result<Slot> {
        let keys = self.kit.keys(super::FAMILY, Scope::from(&self.name).join(id))?;
        let (entry, lock, version) = (keys.key("entry"), keys.key("lock"), keys.key("version"));
        Ok(Slot { entry, lock, version, tags: Vec::new() })
    }

    async fn invalidate(self: &Arc<Self>, target: Target) -> Result<Invalidation> {
        // If the caller goes away meanwhile, it is tried in the background.
        let mut unfinished = Change { inner: self.clone(), target: Some(target.clone()) };
        let result = self.remove(&target).await;
        unfinished.target = None;
        match result {
            Ok(()) => Ok(Invalidation::Done),
            Err(error) if error.advice() == Advice::GiveUp => {
                self.give_up(&error);
                Err(error)
            }
            Err(error) => {
                self.retry(target).map(|()| Invalidation::Pending).map_err(|_refused| error)
            }
        }
    }

    async fn remove(&self, target: &Target) -> Result<()> {
        match target {
            Target::Entry { slot, version } => self.drop_entry(slot, *version).await?,
            // The next who asks makes a new token, and what was stored with the old one is a miss.
            Target::Tag(tag) => {
                let _change = OwnChange::of(self.near.as_ref(), tag);
                self.kit.call(&Request::new("DEL").key(tag)).await.map(drop)?;
            }
        }
        count(&self.counts.invalidations, "redis.cache.invalidation.count");
        Ok(())
    }

    /// Tries in the background until it is done, or can't be.
    fn retry(self: &Arc<Self>, target: Target) -> Result<()> {
        let key = target.key();
        if !self.backlog.add(target) {
            count(&self.counts.invalidations_rejected, "redis.cache.invalidation.rejected.count");
            let full = "too many invalidations are pending";
            tracing::error!(cache = self.name, full);
            return Err(Error::Unavailable(full.into()));
        }
        let Some(runner) = Runner::start(self) else { return Ok(()) };
        self.kit.spawn(runner.run()).inspect_err(|_no_runtime| self.backlog.forget(&key))
    }

    fn give_up(&self, error: &Error) {
        tracing::error!(cache = self.name, %error, "an invalidation can't be done");
        count(&self.counts.invalidations_failed, "redis.cache.invalidation.failed.count");
    }
}

/// Invalidations that have not got through yet, each once.
pub(super) struct Backlog {
    waiting: Mutex<Waiting>,
    /// How many there are, with the one that is being tried.
    count: watch::Sender<u64>,
}

#[derive(Default)]
struct Waiting {
    targets: BTreeMap<Vec<u8>, Target>,
    /// The one that was tried last: the next is the one behind it, so that one that fails again and
    /// again keeps none of the others waiting.
    last: Vec<u8>,
    has_runner: bool,
}

impl Backlog {
    pub fn new() -> Self {
        Backlog { waiting: Mutex::default(), count: watch::Sender::new(0) }
    }

    pub fn len(&self) -> u64 {
        *self.count.borrow()
    }

    /// False if there is no room.
    fn add(&self, target: Target) -> bool {
        let mut waiting = self.lock();
        let (key, len) = (target.key(), waiting.targets.len());
        match waiting.targets.get_mut(&key) {
            Some(known) => known.merge(target),
            None if len >= PENDING_MAX => return false,
            None => {
                waiting.targets.insert(key, target);
                self.count.send_modify(|count| *count += 1);
            }
        }
        true
    }

    /// Takes one back that could not be done yet.
    fn add_again(&self, key: Vec<u8>, target: Target) {
        match self.lock().targets.entry(key) {
            Entry::Vacant(free) => drop(free.insert(target)),
            // It was added meanwhile, and is counted twice.
            Entry::Occupied(mut known) => {
                known.get_mut().merge(target);
                self.count.send_modify(|count| *count -= 1);
            }
        }
    }

    fn forget(&self, key: &[u8]) {
        if self.lock().targets.remove(key).is_some() {
            self.count.send_modify(|count| *count -= 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The one task that works through a backlog.
struct Runner {
    inner: Arc<Inner>,
    /// What is being tried: if the task ends with its runtime it is still to be done.
    current: Option<(Vec<u8>, Target)>,
    /// There was nothing left to do, and another may have been started since.
    is_done: bool,
}

impl Runner {
    /// None if there is one.
    fn start(inner: &Arc<Inner>) -> Option<Runner> {
        let mut waiting = inner.backlog.lock();
        let is_needed = !std::mem::replace(&mut waiting.has_runner, true);
        is_needed.then(|| Runner { inner: inner.clone(), current: None, is_done: false })
    }

    async fn run(mut self) {
        let (inner, mut attempt) = (self.inner.clone(), 1);
        while let Some(target) = self.next() {
            match inner.remove(&target).await {
                Ok(()) => attempt = 1,
                Err(error) if error.advice() == Advice::GiveUp => inner.give_up(&error),
                Err(error) => {
                    let name = &inner.name;
                    tracing::warn!(cache = name, attempt, %error, "an invalidation is pending");
                    observe::count("redis.cache.invalidation.retry.count", "cache", 1);
                    self.put_back();
                    inner.kit.time().sleep(PAUSES.pause(attempt)).await;
                    attempt = attempt.saturating_add(1);
                    continue;
                }
            }
            self.current = None;
            inner.backlog.count.send_modify(|count| *count -= 1);
        }
    }

    /// Takes one out; without any there is no runner any more.
    fn next(&mut self) -> Option<Target> {
        let mut waiting = self.inner.backlog.lock();
        let behind = (Bound::Excluded(&waiting.last), Bound::Unbounded);
        let behind = waiting.targets.range::<Vec<u8>, _>(behind).next().map(|(key, _)| key.clone());
        let next = match behind {
            Some(key) => waiting.targets.remove_entry(&key),
            None => waiting.targets.pop_first(),
        };
        waiting.has_runner = next.is_some();
        self.is_done = next.is_none();
        let (key, target) = next?;
        waiting.last.clone_from(&key);
        drop(waiting);
        self.current = Some((key, target.clone()));
        Some(target)
    }

    fn put_back(&mut self) {
        if let Some((key, target)) = self.current.take() {
            self.inner.backlog.add_again(key, target);
        }
    }
}

/// With the runtime that it ran in, perhaps: the next who has something to retry starts another.
impl Drop for Runner {
    fn drop(&mut self) {
        if !self.is_done {
            self.put_back();
            self.inner.backlog.lock().has_runner = false;
        }
    }
}
