//! Cache: values that are costly to make, loaded once for all who ask.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::cache::{Cache, LoadError, Policy};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let policy = Policy::new(Duration::from_secs(60)).null_for(Duration::from_secs(5));
//! let users: Cache<String> = Cache::new(&kit, "users", policy)?;
//!
//! let from_database = || async { Ok::<_, LoadError>(Some("Ann".to_owned())) };
//! assert_eq!(users.fetch("user-1", from_database).await?.as_deref(), Some("Ann"));
//! // After the database was changed:
//! users.invalidate("user-1").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Who finds nothing is elected to load, in the same step, and all others wait for it: those of the
//! same process for its result, those of other processes by looking again. Only the loader that is
//! still elected can store what it loaded: an invalidation takes that from it, so that a slow
//! loader never brings back an old value.

mod encoding;
pub mod filter;
mod flight;
mod invalidate;
mod load;
mod near;
mod policy;

use crate::error::{Error, Result};
use crate::key::{Family, Key, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::reply::Envelope;
use crate::retry::{jittered, token};
use crate::step::{Safe, Step, StepInfo};
use encoding::Payload;
use filter::Filter;
use flight::Flights;
use invalidate::Backlog;
use near::{NearCopies, OwnChange, Reading};
use rand::Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use encoding::Format;
pub use invalidate::Invalidation;
pub use load::{LoadError, Loaded};
pub use near::Near;
pub use policy::{Outage, Policy};

const FAMILY: Family = Family { purpose: "cache", version: 1 };
const TAGS: Family = Family { purpose: "cache-tag", version: 1 };
/// The largest value that is stored; larger ones are loaded each time.
pub const VALUE_BYTES_MAX: usize = 8 << 20;
/// Tags of one entry.
pub const TAGS_MAX: usize = 8;
/// How much longer than its entry a version is known.
const VERSION_EXTRA: Duration = Duration::from_secs(600);

static READ: Step<Safe> = Step::new("cache_read", include_str!("cache/read.lua"));
static PUT: Step<Safe> = Step::new("cache_put", include_str!("cache/put.lua"));
static DROP: Step<Safe> = Step::new("cache_drop", include_str!("cache/drop.lua"));
static RENEW: Step<Safe> = Step::new("cache_renew", include_str!("cache/renew.lua"));
static RELEASE: Step<Safe> = Step::new("cache_release", include_str!("cache/release.lua"));
static TAG: Step<Safe> = Step::new("cache_tag", include_str!("cache/tag.lua"));

pub(crate) static STEPS: &[&StepInfo] = &[
    READ.info(),
    PUT.info(),
    DROP.info(),
    RENEW.info(),
    RELEASE.info(),
    TAG.info(),
    filter::ADD.info(),
    filter::COMPLETE.info(),
    filter::HAS.info(),
];

/// Values of one kind, by id. Clones share what they load.
pub struct Cache<V> {
    inner: Arc<Inner>,
    value: PhantomData<fn() -> V>,
}

struct Inner {
    kit: Kit,
    name: String,
    policy: Policy,
    filter: Option<Filter>,
    flights: Flights,
    counts: Counts,
    /// Invalidations that have not got through yet.
    backlog: Backlog,
    near: Option<Arc<NearCopies>>,
}

/// What a cache has seen in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Fresh values, and values served while they are loaded anew.
    pub hits: u64,
    /// Of the hits, values that were older than they should be.
    pub stale_hits: u64,
    /// Of the hits, values that were found in this process; see [`Policy::near`].
    pub near_hits: u64,
    /// Copies in this process that went because the server said that they had changed.
    pub near_invalidations: u64,
    /// How often all copies in this process went: all keys had changed, or the connection over
    /// which the server says so was lost.
    pub near_clears: u64,
    /// Copies that are in this process now.
    pub near_entries: u64,
    /// Bytes of these copies, with keys and bookkeeping.
    pub near_bytes: u64,
    /// Look-ups that found nothing to use.
    pub misses: u64,
    /// Calls of loaders by this process.
    pub loads: u64,
    /// Loaders that failed.
    pub load_failures: u64,
    /// Callers that got the value that another had loaded meanwhile.
    pub shared_loads: u64,
    /// Loads that went past the store: nobody else's load came in time, or the store was not there.
    pub direct_loads: u64,
    /// What a filter knew not to exist.
    pub filtered: u64,
    /// Values that could not be read, and were loaded anew.
    pub corrupt: u64,
    /// Values of an older schema, which were loaded anew.
    pub old_schema: u64,
    /// Loaded values that were not stored because a newer version was there.
    pub stale_writes: u64,
    /// Values that were not stored because they were over [`VALUE_BYTES_MAX`].
    pub oversize: u64,
    /// Entries and tags that were invalidated by this process.
    pub invalidations: u64,
    /// Invalidations that are being tried again: until they get through, old values are served.
    pub invalidations_pending: u64,
    /// Invalidations that the store refused, and that were given up.
    pub invalidations_failed: u64,
    /// Invalidations that were not tried again because too many were pending.
    pub invalidations_rejected: u64,
}

macro_rules! counts {
    ($($name:ident)*) => {
        #[derive(Default)]
        struct Counts { $($name: AtomicU64,)* }

        impl Counts {
            fn stats(&self) -> Stats {
                Stats { $($name: self.$name.load(Relaxed),)* ..Stats::default() }
            }
        }
    };
}

counts! {
    hits stale_hits near_hits misses loads load_failures shared_loads direct_loads filtered corrupt
    old_schema stale_writes oversize invalidations invalidations_failed invalidations_rejected
}

fn count(counter: &AtomicU64, metric: &'static str) {
    counter.fetch_add(1, Relaxed);
    observe::count(metric, "cache", 1);
}

/// What [`Cache::get`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Lookup<V> {
    /// A value is stored.
    Found {
        /// As it was stored.
        value: V,
        /// It is past its time, and still served.
        is_stale: bool,
    },
    /// It is known not to exist.
    Null,
    /// Nothing that can be used is stored.
    Missing,
}

/// Whether a value was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Stored {
    /// It is what look-ups find from now on.
    Stored,
    /// A newer version is stored, or was.
    Stale,
    /// It is over [`VALUE_BYTES_MAX`].
    Oversize,
}

/// Where an entry is, and the tokens of its tags.
#[derive(Clone)]
struct Slot {
    entry: Key,
    lock: Key,
    version: Key,
    tags: Vec<u8>,
}

enum Read {
    Hit { payload: Arc<Payload>, is_stale: bool, is_elected: bool },
    Elected,
    Busy { holder: Vec<u8>, retry_after: Duration },
    Corrupt,
}

impl<V: Serialize + DeserializeOwned + Send + 'static> Cache<V> {
    /// `name` keeps the ids of different caches apart.
    pub fn new(kit: &Kit, name: &str, policy: Policy) -> Result<Self> {
        policy.check()?;
        if name.is_empty() {
            return Err(Error::invalid("the name of a cache is empty"));
        }
        let near = NearCopies::new(kit, name, &policy)?;
        let inner = Inner {
            kit: kit.clone(),
            name: name.to_owned(),
            policy,
            filter: None,
            flights: Flights::default(),
            counts: Counts::default(),
            backlog: Backlog::new(),
            near,
        };
        Ok(Cache { inner: Arc::new(inner), value: PhantomData })
    }

    /// Asks a filter before anything is loaded: what it knows not to exist is None at once. It is
    /// asked with the id of the entry.
    pub fn guarded_by(self, filter: &Filter) -> Self {
        let old = &*self.inner;
        let inner = Inner {
            kit: old.kit.clone(),
            name: old.name.clone(),
            policy: old.policy,
            filter: Some(filter.clone()),
            flights: Flights::default(),
            counts: Counts::default(),
            backlog: Backlog::new(),
            near: old.near.clone(),
        };
        Cache { inner: Arc::new(inner), value: PhantomData }
    }

    /// What is stored, without loading anything. For entries with tags give the same tags.
    pub async fn get(&self, id: impl Into<Scope>, tags: &[&str]) -> Result<Lookup<V>> {
        let inner = &*self.inner;
        let slot = inner.slot(&id.into(), tags).await?;
        let found = match inner.read(&slot, &[]).await? {
            Read::Hit { payload, is_stale, .. } => match self.decode(&payload) {
                Ok(Some(value)) => Lookup::Found { value, is_stale },
                Ok(None) => Lookup::Null,
                Err(Unusable) => Lookup::Missing,
            },
            Read::Corrupt => {
                count(&inner.counts.corrupt, "redis.cache.corrupt.count");
                Lookup::Missing
            }
            Read::Elected | Read::Busy { .. } => Lookup::Missing,
        };
        match &found {
            Lookup::Missing => count(&inner.counts.misses, "redis.cache.miss.count"),
            _ => count(&inner.counts.hits, "redis.cache.hit.count"),
        }
        Ok(found)
    }

    /// Stores a value that was just written to the database. With a version it is refused if a
    /// newer one is known; without, the last one wins. Loads that are under way are not stored.
    pub async fn put(
        &self,
        id: impl Into<Scope>,
        value: impl Into<Loaded<V>>,
        tags: &[&str],
    ) -> Result<Stored> {
        let slot = self.inner.slot(&id.into(), tags).await?;
        let Loaded { value, version } = value.into();
        let payload = Payload::encode(value.as_ref(), &self.inner.policy)?;
        self.inner.put(&slot, &[], &payload, version, Duration::ZERO).await
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> Stats {
        let Inner { counts, backlog, near, .. } = &*self.inner;
        let mut stats = Stats { invalidations_pending: backlog.len(), ..counts.stats() };
        if let Some(near) = near {
            near.add_to(&mut stats);
        }
        stats
    }

    /// The value of a payload, or None for one that says that there is none.
    fn decode(&self, payload: &Payload) -> Result<Option<V>, Unusable> {
        let counts = &self.inner.counts;
        if !payload.is_of_schema(&self.inner.policy) {
            count(&counts.old_schema, "redis.cache.schema.old.count");
            return Err(Unusable);
        }
        payload.decode().map_err(|why| {
            tracing::warn!(cache = self.inner.name, %why, "a stored value can't be read");
            count(&counts.corrupt, "redis.cache.corrupt.count");
            Unusable
        })
    }
}

/// A stored value that must be loaded anew. It was counted.
struct Unusable;

impl Inner {
    async fn slot(&self, id: &Scope, tags: &[&str]) -> Result<Slot> {
        let keys = self.kit.keys(FAMILY, Scope::from(&self.name).join(id))?;
        let (entry, lock, version) = (keys.key("entry"), keys.key("lock"), keys.key("version"));
        Ok(Slot { entry, lock, version, tags: self.tag_tokens(tags).await? })
    }

    /// The tokens of all tags as one text. They are taken before anything is loaded, so that a tag
    /// that is invalidated meanwhile makes what was loaded invalid too.
    async fn tag_tokens(&self, tags: &[&str]) -> Result<Vec<u8>> {
        if tags.len() > TAGS_MAX {
            return Err(Error::invalid(format!("an entry has over {TAGS_MAX} tags")));
        }
        let mut sorted = tags.to_vec();
        sorted.sort_unstable();
        let mut tokens = Vec::new();
        for tag in sorted {
            let key = self.tag(tag)?;
            match self.near.as_ref().and_then(|near| near.token(&key)) {
                Some(token) => tokens.extend_from_slice(&token),
                None => tokens.extend(self.tag_token(&key).await?),
            }
            tokens.push(b' ');
        }
        Ok(tokens)
    }

    async fn tag_token(&self, key: &Key) -> Result<Vec<u8>> {
        let near = self.near.as_ref().and_then(|near| Some((near, near.read(key)?)));
        let call = self.kit.step(&TAG).key(key.clone()).arg(token());
        let mut reply = call.arg(self.policy.keep_max() * 2).run().await?;
        let token = reply.text("token")?;
        if let Some((near, reading)) = near {
            near.keep_token(&reading, key, &token);
        }
        Ok(token)
    }

    fn tag(&self, tag: &str) -> Result<Key> {
        Ok(self.kit.keys(TAGS, Scope::from(&self.name).and(tag))?.key("token"))
    }

    /// Reads an entry; with a token the caller may be elected to load it.
    async fn read(&self, slot: &Slot, token: &[u8]) -> Result<Read> {
        // XFetch: the closer to its end and the longer a load takes, the likelier it is now.
        let early = match self.policy.early {
            Some(beta) if !token.is_empty() => {
                -beta * rand::rng().random_range(f64::MIN_POSITIVE..1.0).ln()
            }
            _ => 0.0,
        };
        if let Some(near) = &self.near
            && let Some(payload) = near.entry(&slot.entry, &slot.tags, early)
        {
            count(&self.counts.near_hits, "redis.cache.near.hit.count");
            return Ok(Read::Hit { payload, is_stale: false, is_elected: false });
        }
        let reading = self.near.as_ref().and_then(|near| near.read(&slot.entry));
        let call = self.kit.step(&READ).key(slot.entry.clone()).key(slot.lock.clone());
        let call = call.arg(token).arg(self.policy.lock_ttl).arg(&slot.tags).arg(early);
        let mut reply = call.run().await?;
        match reply.status() {
            "HIT" => {
                let (kind, bytes) = (reply.text("kind")?, reply.text("payload")?);
                let payload = Payload::stored(&kind, bytes, reply.string("encoding")?);
                let payload = Arc::new(payload);
                let is_stale = reply.int("is_stale")? == 1;
                let is_elected = reply.int("is_elected")? == 1;
                if let Some(reading) = reading.filter(|_reading| !is_stale) {
                    self.keep_near(&reading, slot, &payload, &reply);
                }
                Ok(Read::Hit { payload, is_stale, is_elected })
            }
            "MISS" if reply.int("is_elected")? == 1 => Ok(Read::Elected),
            "MISS" => {
                let retry_after = reply.duration("retry_after_ms")?;
                Ok(Read::Busy { holder: reply.text("holder")?, retry_after })
            }
            "CORRUPT" => Ok(Read::Corrupt),
            _ => Err(reply.unexpected()),
        }
    }

    fn keep_near(&self, reading: &Reading, slot: &Slot, payload: &Arc<Payload>, hit: &Envelope) {
        // Times that make no sense are not kept: the store goes on to decide.
        let times = (hit.duration("fresh_for_ms"), hit.duration("load_ms"));
        if let (Some(near), (Ok(fresh_for), Ok(load_time))) = (&self.near, times) {
            let fresh_until = reading.ends_after(fresh_for);
            let (payload, tags) = (payload.clone(), slot.tags.clone());
            let entry = near::Entry { payload, tags, fresh_until, load_time };
            near.keep_entry(reading, &slot.entry, entry);
        }
    }

    async fn put(
        &self,
        slot: &Slot,
        token: &[u8],
        payload: &Payload,
        version: u64,
        load_time: Duration,
    ) -> Result<Stored> {
        if payload.len() > VALUE_BYTES_MAX {
            count(&self.counts.oversize, "redis.cache.value.oversize.count");
            return Ok(Stored::Oversize);
        }
        let _change = OwnChange::of(self.near.as_ref(), &slot.entry);
        let Policy { ttl, null_ttl, stale, jitter, .. } = self.policy;
        let (ttl, stale) =
            if payload.is_null() { (null_ttl, Duration::ZERO) } else { (ttl, stale) };
        // Shorter by a random part, so that what was loaded together does not end together.
        let fresh = (ttl - jittered(ttl.mul_f64(jitter))).max(Duration::from_millis(1));
        let call = self.kit.step(&PUT).key(slot.entry.clone()).key(slot.lock.clone());
        let call = call.key(slot.version.clone()).arg(token).arg(payload.kind());
        let call = call.arg(payload.bytes()).arg(payload.encoding()).arg(&slot.tags);
        let reply = call.arg(fresh).arg(fresh + stale).arg(load_time).arg(version).run().await?;
        match reply.status() {
            "STORED" => Ok(Stored::Stored),
            "STALE" => {
                count(&self.counts.stale_writes, "redis.cache.write.stale.count");
                Ok(Stored::Stale)
            }
            _ => Err(reply.unexpected()),
        }
    }

    async fn drop_entry(&self, slot: &Slot, version: u64) -> Result<()> {
        let _change = OwnChange::of(self.near.as_ref(), &slot.entry);
        let call = self.kit.step(&DROP).key(slot.entry.clone()).key(slot.lock.clone());
        let ttl = self.policy.keep_max() + VERSION_EXTRA;
        call.key(slot.version.clone()).arg(version).arg(ttl).run().await.map(drop)
    }
}

impl<V> Clone for Cache<V> {
    fn clone(&self) -> Self {
        Cache { inner: self.inner.clone(), value: PhantomData }
    }
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
