//! Values that a program changes by itself, and writes only if nobody has changed them meanwhile.

use super::{FAMILY, checked_ttl};
use crate::backend::Connection;
use crate::error::{Error, Result};
use crate::key::{Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::{RequestId, RetryPolicy};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How often it is tried, and how long to wait in between.
const POLICY: RetryPolicy = RetryPolicy {
    attempts_max: 5,
    pause_min: Duration::from_millis(4),
    pause_max: Duration::from_millis(200),
};
const ATTEMPTS_MAX: u32 = 100;
const PARTS_MAX: usize = 16;
/// Bytes of the digest that binds a marker to its values.
const MARKER_DIGEST_BYTES: usize = 8;

/// The values as they are now.
#[derive(Clone)]
pub struct Current {
    parts: &'static [&'static str],
    values: Vec<Option<Vec<u8>>>,
}

impl Current {
    /// A value; None if it is not there.
    pub fn get(&self, part: &str) -> Option<&[u8]> {
        let index = self.parts.iter().position(|it| *it == part)?;
        self.values.get(index)?.as_deref()
    }

    /// A number; None if it is not there or is none.
    pub fn int(&self, part: &str) -> Option<i64> {
        std::str::from_utf8(self.get(part)?).ok()?.parse().ok()
    }
}

/// Says nothing of the values.
impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Current").field(&self.parts).finish()
    }
}

/// What to write.
#[derive(Clone, Default)]
#[must_use]
pub struct Writes {
    writes: Vec<(&'static str, Option<Vec<u8>>)>,
}

impl Writes {
    /// Nothing yet.
    pub fn new() -> Self {
        Writes::default()
    }

    /// Writes a value, which must be among those that were read.
    pub fn set(mut self, part: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.writes.push((part, Some(value.as_ref().to_vec())));
        self
    }

    /// As [`Writes::set`], for a number.
    pub fn set_int(self, part: &'static str, value: i64) -> Self {
        self.set(part, value.to_string())
    }

    /// Removes a value.
    pub fn remove(mut self, part: &'static str) -> Self {
        self.writes.push((part, None));
        self
    }
}

/// Says nothing of the values.
impl fmt::Debug for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.writes.iter().map(|(part, _)| part)).finish()
    }
}

/// What the program makes of the values.
#[derive(Debug)]
pub enum Decision<T> {
    /// This is to be written; the caller gets the second.
    Write(Writes, T),
    /// Nothing is to be changed.
    Leave(T),
}

/// What came of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Updated<T> {
    /// What was decided holds.
    Written(T),
    /// Nothing was changed, as decided.
    Left(T),
    /// The same request was carried out before.
    Already,
}

stats! {
    /// What a handle and its clones have seen in this process.
    OptimisticStats counted by Counts {
        /// Decisions that were written.
        written,
        /// Decisions to change nothing.
        left,
        /// Requests that had been carried out before.
        already,
        /// Attempts for which others were faster.
        conflicts,
        /// Updates that were given up: others were faster every time.
        contended,
    }
}

/// Values of one scope that are read, decided on and written as if nobody else were there.
///
/// For decisions that a program must make; what a step can decide is cheaper as one, and a value
/// that many change at once is none for this.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::state::{Decision, Optimistic, Updated, Writes};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let seats = Optimistic::new(&kit, "hall 3", &["free", "sold"], Duration::from_secs(3600))?;
/// let sold = seats
///     .update(None, |now| {
///         let (free, sold) = (now.int("free").unwrap_or(100), now.int("sold").unwrap_or(0));
///         if free < 2 {
///             return Decision::Leave(0);
///         }
///         Decision::Write(Writes::new().set_int("free", free - 2).set_int("sold", sold + 2), 2)
///     })
///     .await?;
/// assert_eq!(sold, Updated::Written(2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Optimistic {
    kit: Kit,
    keys: Keys,
    parts: &'static [&'static str],
    ttl: Duration,
    policy: RetryPolicy,
    counts: Arc<Counts>,
}

/// What one attempt came to.
enum Outcome<T> {
    Done(Updated<T>),
    /// Others were faster.
    Conflict,
    /// Nobody knows whether it was written.
    Unknown(T, Error),
}

impl Optimistic {
    /// All values that the decision depends on are named: a change of any of them undoes it.
    /// `ttl` is how long a value lives from when it is written.
    pub fn new(
        kit: &Kit,
        scope: impl Into<Scope>,
        parts: &'static [&'static str],
        ttl: Duration,
    ) -> Result<Self> {
        if parts.is_empty() || parts.len() > PARTS_MAX {
            return Err(Error::invalid(format!("an update is of 1 to {PARTS_MAX} values")));
        }
        let (keys, ttl) = (kit.keys(FAMILY, scope)?, checked_ttl(ttl)?);
        let counts = Arc::default();
        Ok(Optimistic { kit: kit.clone(), keys, parts, ttl, policy: POLICY, counts })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> OptimisticStats {
        self.counts.stats()
    }

    /// How often it is tried before it ends with [`Error::Contention`]; 5 times by default.
    pub fn attempts_max(mut self, attempts: u32) -> Result<Self> {
        if attempts == 0 || attempts > ATTEMPTS_MAX {
            return Err(Error::invalid(format!("attempts must be between 1 and {ATTEMPTS_MAX}")));
        }
        self.policy.attempts_max = attempts;
        Ok(self)
    }

    /// Decides, perhaps several times, until a decision was written while nothing had changed.
    ///
    /// With a request id it is written once, however often it is called; without one a lost reply
    /// is [`Error::Unknown`].
    pub async fn update<T>(
        &self,
        request: Option<&RequestId>,
        mut decide: impl FnMut(&Current) -> Decision<T>,
    ) -> Result<Updated<T>> {
        let (mut unknown, mut unavailable, mut failures) = (None, None, 0);
        let failures_max = self.kit.settings().retry.attempts_max;
        for attempt in 1..=self.policy.attempts_max {
            match self.attempt(request, &mut decide).await {
                Ok(Outcome::Done(Updated::Already)) => {
                    let updated = unknown.map_or(Updated::Already, Updated::Written);
                    return Ok(self.counts.counted(updated));
                }
                Ok(Outcome::Done(updated)) => return Ok(self.counts.counted(updated)),
                Ok(Outcome::Conflict) => {
                    unavailable = None;
                    self.counts.conflicts.add(1);
                    observe::count("redis.state.conflict.count", "state", 1);
                }
                Ok(Outcome::Unknown(value, _)) if request.is_some() => unknown = Some(value),
                Ok(Outcome::Unknown(_, error)) => return Err(error),
                // Nothing was written: a connection had broken, or the slot is elsewhere by now.
                Err(error @ Error::Unavailable(_)) if failures + 1 < failures_max => {
                    (unavailable, failures) = (Some(error), failures + 1);
                }
                Err(error) if unknown.is_some() => return Err(error.after_unknown()),
                Err(error) => return Err(error),
            }
            if attempt < self.policy.attempts_max {
                self.kit.time().sleep(self.policy.pause(attempt)).await;
            }
        }
        Err(match (unknown, unavailable) {
            (Some(_), _) => Error::Unknown("no reply in any attempt".into()),
            (None, Some(error)) => error,
            (None, None) => {
                self.counts.contended.add(1);
                Error::Contention { attempts: self.policy.attempts_max }
            }
        })
    }

    /// Where it is remembered that a request was carried out: on these values, as its id may stand
    /// for an update of others too.
    fn marker(&self, request: &RequestId) -> Key {
        let mut digest = Sha256::new_with_prefix("optimistic");
        for part in self.parts {
            digest.update([0]);
            digest.update(part);
        }
        let mut marker = self.keys.marker(request);
        marker.bind(&digest.finalize()[..MARKER_DIGEST_BYTES]);
        marker
    }

    async fn attempt<T>(
        &self,
        request: Option<&RequestId>,
        decide: &mut impl FnMut(&Current) -> Decision<T>,
    ) -> Result<Outcome<T>> {
        let mut keys: Vec<Key> = self.parts.iter().map(|part| self.keys.key(part)).collect();
        keys.extend(request.map(|id| self.marker(id)));
        let mut connection = self.kit.connection(keys[0].slot()).await?;
        let mut watch = Watch { connection: &mut *connection, timeout: self.kit.timeout() };
        let mut values = watch.read(&keys).await.map_err(Error::before_any_change)?;
        if request.is_some() && values.pop().flatten().is_some() {
            watch.end().await;
            return Ok(Outcome::Done(Updated::Already));
        }
        let (writes, value) = match decide(&Current { parts: self.parts, values }) {
            Decision::Write(writes, value) => (writes, value),
            Decision::Leave(value) => {
                watch.end().await;
                return Ok(Outcome::Done(Updated::Left(value)));
            }
        };
        let commands = self.commands(&writes, request)?;
        match watch.write(&commands).await {
            Ok(true) => Ok(Outcome::Done(Updated::Written(value))),
            Ok(false) => Ok(Outcome::Conflict),
            Err(error @ Error::Unknown(_)) => Ok(Outcome::Unknown(value, error)),
            Err(error) => Err(error),
        }
    }

    fn commands(&self, writes: &Writes, request: Option<&RequestId>) -> Result<Vec<Request>> {
        let mut commands = Vec::with_capacity(writes.writes.len() + 1);
        for (part, value) in &writes.writes {
            if !self.parts.contains(part) {
                return Err(Error::invalid(format!("{part} is none of the values")));
            }
            let key = self.keys.key(part);
            commands.push(match value {
                Some(value) => Request::new("SET").key(&key).arg(value).arg("PX").arg(self.ttl),
                None => Request::new("DEL").key(&key),
            });
        }
        if let Some(id) = request {
            let set = Request::new("SET").key(&self.marker(id)).arg("1");
            commands.push(set.arg("PX").arg(self.kit.settings().request_ttl));
        }
        Ok(commands)
    }
}

impl Counts {
    fn counted<T>(&self, updated: Updated<T>) -> Updated<T> {
        let counter = match &updated {
            Updated::Written(_) => &self.written,
            Updated::Left(_) => &self.left,
            Updated::Already => &self.already,
        };
        counter.add(1);
        updated
    }
}

/// A connection that watches. If it is dropped before the watch has ended it is closed.
struct Watch<'c> {
    connection: &'c mut dyn Connection,
    timeout: Duration,
}

impl Watch<'_> {
    async fn call(&mut self, request: &Request) -> Result<Reply> {
        self.connection.call(request, self.timeout).await
    }

    async fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.connection.set_keeps_state(true);
        let with = |name| keys.iter().fold(Request::new(name), |request, key| request.key(key));
        self.call(&with("WATCH")).await?;
        let values = self.call(&with("MGET")).await?.into_list()?;
        values.into_iter().map(Reply::into_bytes).collect()
    }

    /// Whether it was written: not if a watched key has changed.
    async fn write(&mut self, commands: &[Request]) -> Result<bool> {
        self.call(&Request::new("MULTI")).await.map_err(Error::before_any_change)?;
        for command in commands {
            self.call(command).await.map_err(Error::before_any_change)?;
        }
        let executed = self.call(&Request::new("EXEC")).await?;
        self.connection.set_keeps_state(false);
        Ok(executed != Reply::Nil)
    }

    async fn end(&mut self) {
        if self.call(&Request::new("UNWATCH")).await.is_ok() {
            self.connection.set_keeps_state(false);
        }
    }
}

impl fmt::Debug for Optimistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Optimistic")
            .field("parts", &self.parts)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
