//! Flags in the process: looked at without a call, and read anew when they are too old.

use super::rules::{Definition, Evaluation, Subject, killed};
use super::store::{FlagStats, Flags};
use crate::error::{Error, Result};
use crate::observe;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long a caller that has old flags waits for another that reads them anew.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How long the store is left alone after it could not be read.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// All flags of a tenant as they were at one moment.
#[derive(Clone)]
pub struct Snapshot {
    version: u64,
    /// With their kill switches.
    flags: BTreeMap<String, (bool, Definition)>,
}

impl Snapshot {
    pub(super) fn new(version: u64, flags: BTreeMap<String, (bool, Definition)>) -> Self {
        Snapshot { version, flags }
    }

    /// It rises with each change of a flag.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Of the flags that were defined then, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.flags.keys().map(String::as_str)
    }

    /// What a flag says of a subject; None if that depends on the groups it is in, which the
    /// snapshot does not know.
    pub fn evaluate(&self, flag: &str, subject: &Subject) -> Option<Evaluation> {
        match self.flags.get(flag) {
            None => Some(Evaluation::UNKNOWN),
            Some((true, _)) => Some(killed()),
            Some((false, definition)) => definition.evaluate(flag, subject, None),
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot(v{}, {} flags)", self.version, self.flags.len())
    }
}

/// Flags that are kept in the process and read anew when they are older than allowed, one call for
/// all of them. While the store can't be reached they serve for some time longer, and nobody waits
/// for it but the one who finds out.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::flag::{Definition, FlagTerms, Flags, LocalFlags, Subject};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let flags = Flags::new(&kit, "acme", FlagTerms::new(Duration::from_secs(86_400)))?;
/// flags.define("dark-mode", &Definition::on(), "ann").await?;
/// let local = LocalFlags::new(&flags, Duration::from_secs(1), Duration::from_secs(300))?;
/// assert!(local.evaluate("dark-mode", &Subject::new("user-1")).await?.is_on);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LocalFlags {
    flags: Flags,
    age_max: Duration,
    stale_max: Duration,
    kept: Arc<RwLock<Option<Kept>>>,
    /// Held while the store is asked.
    asking: Arc<tokio::sync::Mutex<()>>,
    trouble: Arc<Mutex<Option<Trouble>>>,
}

/// The store could not be read when it was asked last.
#[derive(Clone)]
struct Trouble {
    error: Error,
    /// When it is asked again, by the kit's time.
    ask_again_at: Duration,
}

#[derive(Clone)]
struct Kept {
    snapshot: Arc<Snapshot>,
    /// When it was true, by the kit's time.
    read_at: Duration,
}

impl LocalFlags {
    /// `age_max` is how late a change, the kill switch too, may be seen, and a moment longer while
    /// the flags are being read anew; `stale_max` how old flags may be while the store can't be
    /// reached.
    pub fn new(flags: &Flags, age_max: Duration, stale_max: Duration) -> Result<Self> {
        if age_max.is_zero() || stale_max < age_max {
            return Err(Error::invalid("age_max must not be zero, stale_max not below it"));
        }
        Ok(LocalFlags {
            flags: flags.clone(),
            age_max,
            stale_max,
            kept: Arc::default(),
            asking: Arc::default(),
            trouble: Arc::default(),
        })
    }

    /// What a flag says of a subject: without a call, unless the flags are too old or it depends
    /// on a group.
    pub async fn evaluate(&self, flag: &str, subject: &Subject) -> Result<Evaluation> {
        match self.snapshot().await?.evaluate(flag, subject) {
            Some(evaluation) => {
                self.flags.counts.evaluated_locally.add(1);
                self.flags.counts.count(evaluation);
                Ok(evaluation)
            }
            None => self.flags.evaluate(flag, subject).await,
        }
    }

    /// What these flags, those that they were made of, and the clones of both have seen.
    pub fn stats(&self) -> FlagStats {
        self.flags.stats()
    }

    /// The flags, no older than allowed.
    pub async fn snapshot(&self) -> Result<Arc<Snapshot>> {
        if let Some(kept) = self.kept(self.age_max) {
            return Ok(kept.snapshot);
        }
        let Some(stale) = self.kept(self.stale_max) else { return self.first().await };
        let time = self.flags.kit().time();
        let trouble = self.trouble().clone();
        if let Some(trouble) = trouble {
            if time.elapsed() >= trouble.ask_again_at {
                self.ask_apart();
            }
            return Ok(self.serve(stale));
        }
        let _only_one = tokio::select! {
            biased;
            only_one = self.asking.lock() => only_one,
            () = time.sleep(WAIT_MAX) => return Ok(self.serve(stale)),
        };
        if let Some(kept) = self.kept(self.age_max) {
            return Ok(kept.snapshot);
        }
        let is_in_trouble = self.trouble().is_some();
        match is_in_trouble {
            true => Ok(self.serve(stale)),
            false => self.ask().await.or_else(|_error| Ok(self.serve(stale))),
        }
    }

    /// There is nothing to serve meanwhile.
    async fn first(&self) -> Result<Arc<Snapshot>> {
        let before = self.trouble().as_ref().map(|trouble| trouble.ask_again_at);
        let _only_one = self.asking.lock().await;
        if let Some(kept) = self.kept(self.age_max) {
            return Ok(kept.snapshot);
        }
        // Those who waited share the end: they don't ask one after the other.
        let trouble = self.trouble().clone();
        match trouble {
            Some(trouble) if Some(trouble.ask_again_at) != before => Err(trouble.error),
            _ => self.ask().await,
        }
    }

    /// Asks the store beside the caller, unless someone does.
    fn ask_apart(&self) {
        let Ok(only_one) = self.asking.clone().try_lock_owned() else { return };
        let flags = self.clone();
        // Without a runtime the flags grow old until somebody has to wait for new ones.
        let _ = self.flags.kit().spawn(async move {
            let _only_one: OwnedMutexGuard<()> = only_one;
            // The next who looks finds what came of it.
            let _ = flags.ask().await;
        });
    }

    /// Asks the store, and keeps what it says.
    async fn ask(&self) -> Result<Arc<Snapshot>> {
        let stale = self.kept(self.stale_max);
        let known = stale.as_ref().map_or(0, |kept| kept.snapshot.version());
        let time = self.flags.kit().time();
        // What the store says is true at least since it was asked.
        let read_at = time.elapsed();
        let snapshot = match (self.flags.snapshot_since(known).await, stale) {
            (Ok(Some(snapshot)), _) => Arc::new(snapshot),
            (Ok(None), Some(stale)) => stale.snapshot,
            (Ok(None), None) => return Err(Error::Corrupt("flags: version".into())),
            (Err(error), _) => {
                let ask_again_at = time.elapsed() + ASK_AGAIN_AFTER;
                *self.trouble() = Some(Trouble { error: error.clone(), ask_again_at });
                return Err(error);
            }
        };
        *self.trouble() = None;
        let kept = Kept { snapshot: snapshot.clone(), read_at };
        *self.kept.write().unwrap_or_else(|poison| poison.into_inner()) = Some(kept);
        Ok(snapshot)
    }

    fn serve(&self, stale: Kept) -> Arc<Snapshot> {
        self.flags.counts.stale.add(1);
        observe::count("redis.flag.stale.count", "flag", 1);
        stale.snapshot
    }

    fn trouble(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn kept(&self, age_max: Duration) -> Option<Kept> {
        let kept = self.kept.read().unwrap_or_else(|poison| poison.into_inner()).clone()?;
        let age = self.flags.kit().time().elapsed().saturating_sub(kept.read_at);
        Some(kept).filter(|_kept| age < age_max)
    }
}

impl fmt::Debug for LocalFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalFlags")
            .field("age_max", &self.age_max)
            .field("stale_max", &self.stale_max)
            .finish_non_exhaustive()
    }
}
