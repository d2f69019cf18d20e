//! Loading: who does it, who waits for it, and what becomes of what was loaded.

use super::encoding::Payload;
use super::filter::Presence;
use super::flight::{Flight, Landed};
use super::{Cache, Inner, Outage, RELEASE, RENEW, Read, Slot, Stored, Unusable, count};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::retry::{jittered, token};
use crate::time::{Beat, with_heartbeat};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Signs of life per TTL of the lock.
const RENEWALS_PER_TTL: u32 = 3;
/// How often a stored value that can't be read is removed before the store is left alone.
const UNUSABLE_MAX: u32 = 3;
/// Looks that follow each other at once: the loader may be of this process and about to say so.
const LOOKS_AT_ONCE: u32 = 3;
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(2);
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(100);

/// What a loader gives: a value or the fact that there is none, and its version if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded<V> {
    pub(super) value: Option<V>,
    pub(super) version: u64,
}

impl<V> Loaded<V> {
    /// With the version of the source, of which a newer one is greater: an older one is never
    /// stored over it. At least 1, less than 2^53.
    pub fn at_version(value: Option<V>, version: u64) -> Self {
        Loaded { value, version }
    }
}

impl<V> From<Option<V>> for Loaded<V> {
    fn from(value: Option<V>) -> Self {
        Loaded { value, version: 0 }
    }
}

/// Why there is no value. All who waited for the same load get the same.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// The loader failed.
    Loader(Arc<dyn std::error::Error + Send + Sync>),
    /// The loader took longer than [`Policy::load_at_most`](super::Policy::load_at_most) allows,
    /// and was given up.
    TimedOut(Duration),
    /// The store failed, and [`Outage::Fail`] is the policy, or an argument is wrong.
    Kit(Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Loader(error) => write!(f, "the value could not be loaded: {error}"),
            LoadError::TimedOut(span) => write!(f, "the value was not loaded within {span:?}"),
            LoadError::Kit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        LoadError::Kit(error)
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

impl<V: Serialize + DeserializeOwned + Send + 'static> Cache<V> {
    /// The value, from the store or, once for all who ask, from `load`. None is what the loader
    /// says does not exist.
    pub async fn fetch<F, L, E>(
        &self,
        id: impl Into<Scope>,
        load: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Option<V>, LoadError>
    where
        F: Future<Output = Result<L, E>> + Send + 'static,
        L: Into<Loaded<V>> + Send,
        E: Into<Failed> + Send,
    {
        self.fetch_tagged(id, &[], load).await
    }

    /// The same for an entry with tags, by which it can be invalidated together with others. The
    /// tokens of the tags are read first: one more round trip each.
    pub async fn fetch_tagged<F, L, E>(
        &self,
        id: impl Into<Scope>,
        tags: &[&str],
        load: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Option<V>, LoadError>
    where
        F: Future<Output = Result<L, E>> + Send + 'static,
        L: Into<Loaded<V>> + Send,
        E: Into<Failed> + Send,
    {
        let (id, inner) = (id.into(), &self.inner);
        let slot = match inner.slot(&id, tags).await {
            Ok(slot) => slot,
            Err(error) => return self.without_store(error, load).await,
        };
        let give_up_at = inner.kit.time().elapsed() + inner.policy.wait_max;
        let (mut looks, mut unusable) = (0, 0);
        loop {
            let token = token().to_vec();
            match inner.read(&slot, &token).await {
                Err(error) => return self.without_store(error, load).await,
                Ok(Read::Hit { payload, is_stale, is_elected }) => {
                    if let Ok(value) = self.decode(&payload) {
                        self.count_hit(is_stale);
                        if is_elected {
                            self.refresh(Election::new(inner, &slot, &token), load);
                        }
                        return Ok(value);
                    }
                }
                Ok(Read::Corrupt) => count(&inner.counts.corrupt, "redis.cache.corrupt.count"),
                Ok(Read::Elected) => {
                    count(&inner.counts.misses, "redis.cache.miss.count");
                    let election = Election::new(inner, &slot, &token);
                    return self.elected(&id, election, load).await;
                }
                Ok(Read::Busy { holder, retry_after }) => {
                    let landed = tokio::select! {
                        biased;
                        landed = inner.flights.join(&holder, &slot.tags) => landed,
                        () = inner.kit.time().sleep_until(give_up_at) => None,
                    };
                    if let Some(landed) = landed {
                        return self.landed(landed);
                    }
                    if inner.kit.time().elapsed() >= give_up_at {
                        return self.direct(load).await;
                    }
                    inner.pause(looks, retry_after).await;
                    looks += 1;
                    continue;
                }
            }
            // What is stored is of no use: it is removed, and the next look is a miss.
            unusable += 1;
            if unusable > UNUSABLE_MAX {
                return self.direct(load).await;
            }
            if let Err(error) = inner.drop_entry(&slot, 0).await {
                return self.without_store(error, load).await;
            }
        }
    }

    /// What another caller of this process has loaded.
    fn landed(&self, landed: Landed) -> Result<Option<V>, LoadError> {
        count(&self.inner.counts.shared_loads, "redis.cache.load.shared.count");
        self.decode(&*landed?).map_err(|Unusable| {
            LoadError::Kit(Error::Corrupt("a value can't be read as it was written".into()))
        })
    }

    fn count_hit(&self, is_stale: bool) {
        let counts = &self.inner.counts;
        if is_stale {
            count(&counts.stale_hits, "redis.cache.hit.stale.count");
        } else {
            count(&counts.hits, "redis.cache.hit.count");
        }
    }

    async fn elected<F, L, E>(
        &self,
        id: &Scope,
        election: Election,
        load: impl FnOnce() -> F + Send,
    ) -> Result<Option<V>, LoadError>
    where
        F: Future<Output = Result<L, E>> + Send,
        L: Into<Loaded<V>> + Send,
        E: Into<Failed> + Send,
    {
        if let Some(filter) = &self.inner.filter {
            // A filter that does not answer keeps nobody from loading.
            if let Ok(Presence::Absent) = filter.presence(id).await {
                count(&self.inner.counts.filtered, "redis.cache.filtered.count");
                let nothing = Payload::encode::<V>(None, &self.inner.policy)?;
                election.flight.land(Ok(Arc::new(nothing)));
                election.release().await;
                return Ok(None);
            }
        }
        match self.load_and_store(&election, load).await {
            Ok(value) => Ok(value),
            Err(error) => {
                election.flight.land(Err(error.clone()));
                election.release().await;
                Err(error)
            }
        }
    }

    /// Loads in the background what was served already. If that fails, the lock stays until its TTL
    /// is over, so that a source in trouble is not asked at once again.
    fn refresh<F, L, E>(&self, election: Election, load: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = Result<L, E>> + Send + 'static,
        L: Into<Loaded<V>> + Send,
        E: Into<Failed> + Send,
    {
        let cache = self.clone();
        let task = async move {
            if let Err(error) = cache.load_and_store(&election, load).await {
                tracing::warn!(cache = cache.inner.name, "a refresh failed");
                election.flight.land(Err(error));
                election.keep_lock();
            }
        };
        // Without a runtime the election ends here, and its lock with its TTL.
        let _ = self.inner.kit.spawn(task);
    }

    async fn load_and_store<F, L, E>(
        &self,
        election: &Election,
        load: impl FnOnce() -> F + Send,
    ) -> Result<Option<V>, LoadError>
    where
        F: Future<Output = Result<L, E>> + Send,
        L: Into<Loaded<V>> + Send,
        E: Into<Failed> + Send,
    {
        let inner = &*self.inner;
        let (time, policy) = (inner.kit.time(), &inner.policy);
        let started = time.elapsed();
        let every = policy.lock_ttl / RENEWALS_PER_TTL;
        let load = with_heartbeat(time, every, self.run(load), || election.renew());
        let loaded = tokio::select! {
            biased;
            loaded = load => loaded?,
            () = time.sleep(policy.load_max) => {
                count(&inner.counts.load_failures, "redis.cache.load.failure.count");
                return Err(LoadError::TimedOut(policy.load_max));
            }
        };
        let load_time = time.elapsed().saturating_sub(started);
        let payload = Payload::encode(loaded.value.as_ref(), policy)?;
        if !(payload.is_null() && policy.null_ttl.is_zero()) {
            let token = &election.flight_token;
            let put = inner.put(&election.slot, token, &payload, loaded.version, load_time).await;
            match put {
                Ok(Stored::Stored | Stored::Stale) => election.keep_lock(),
                Ok(Stored::Oversize) => {}
                Err(error) => tracing::warn!(cache = inner.name, %error, "not stored"),
            }
        }
        election.flight.land(Ok(Arc::new(payload)));
        election.release().await;
        Ok(loaded.value)
    }

    async fn run<F, L, E>(&self, load: impl FnOnce() -> F) -> Result<Loaded<V>, LoadError>
    where
        F: Future<Output = Result<L, E>>,
        L: Into<Loaded<V>>,
        E: Into<Failed>,
    {
        count(&self.inner.counts.loads, "redis.cache.load.count");
        load().await.map(Into::into).map_err(|error| {
            count(&self.inner.counts.load_failures, "redis.cache.load.failure.count");
            LoadError::Loader(Arc::from(error.into()))
        })
    }

    /// Loads without storing.
    async fn direct<F, L, E>(&self, load: impl FnOnce() -> F) -> Result<Option<V>, LoadError>
    where
        F: Future<Output = Result<L, E>>,
        L: Into<Loaded<V>>,
        E: Into<Failed>,
    {
        count(&self.inner.counts.direct_loads, "redis.cache.load.direct.count");
        self.run(load).await.map(|loaded| loaded.value)
    }

    async fn without_store<F, L, E>(
        &self,
        error: Error,
        load: impl FnOnce() -> F,
    ) -> Result<Option<V>, LoadError>
    where
        F: Future<Output = Result<L, E>>,
        L: Into<Loaded<V>>,
        E: Into<Failed>,
    {
        let is_outage = matches!(error, Error::Unavailable(_) | Error::Unknown(_));
        if !is_outage || self.inner.policy.outage == Outage::Fail {
            return Err(LoadError::Kit(error));
        }
        self.direct(load).await
    }
}

impl Inner {
    /// Before the next look at what another process loads.
    async fn pause(&self, looks: u32, retry_after: Duration) {
        if looks < LOOKS_AT_ONCE {
            tokio::task::yield_now().await;
            return;
        }
        let doubled = LOOK_PAUSE_MIN.saturating_mul(1 << (looks - LOOKS_AT_ONCE).min(10));
        let pause = doubled.min(LOOK_PAUSE_MAX).min(retry_after + LOOK_PAUSE_MIN);
        self.kit.time().sleep(pause / 2 + jittered(pause / 2)).await;
    }
}

/// The right to load an entry. If its owner is dropped, the lock is released in the background.
struct Election {
    inner: Arc<Inner>,
    slot: Slot,
    flight: Flight,
    flight_token: Vec<u8>,
    is_over: std::sync::atomic::AtomicBool,
}

impl Election {
    fn new(inner: &Arc<Inner>, slot: &Slot, token: &[u8]) -> Self {
        Election {
            inner: inner.clone(),
            slot: slot.clone(),
            flight: inner.flights.start(token, &slot.tags),
            flight_token: token.to_vec(),
            is_over: false.into(),
        }
    }

    async fn renew(&self) -> Beat {
        let call = self.inner.kit.step(&RENEW).key(self.slot.lock.clone());
        match call.arg(&self.flight_token).arg(self.inner.policy.lock_ttl).run().await {
            Ok(reply) if reply.is("LOST") => Beat::Stop,
            // What fails once may get through the next time.
            _ => Beat::GoOn,
        }
    }

    /// Leaves the lock as it is: gone with the entry that was stored, or to its TTL.
    fn keep_lock(&self) {
        self.is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    async fn release(&self) {
        if !self.is_over.load(std::sync::atomic::Ordering::Relaxed)
            && release(&self.inner, &self.slot, &self.flight_token).await.is_ok()
        {
            self.keep_lock();
        }
    }
}

async fn release(inner: &Inner, slot: &Slot, token: &[u8]) -> Result<()> {
    inner.kit.step(&RELEASE).key(slot.lock.clone()).arg(token).run().await.map(drop)
}

impl Drop for Election {
    fn drop(&mut self) {
        if self.is_over.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let (inner, slot, token) =
            (self.inner.clone(), self.slot.clone(), std::mem::take(&mut self.flight_token));
        // If that fails too, the lock ends with its TTL.
        let _ = self.inner.kit.spawn(async move {
            let _ = release(&inner, &slot, &token).await;
        });
    }
}
