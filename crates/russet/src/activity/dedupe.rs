//! Duplicates of events: each id is taken for new once in a window of time.

use crate::calendar::ServerClock;
use crate::error::Result;
use crate::key::{Family, Key, Keys, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::{self, stats};
use crate::retry::RequestId;
use crate::spread::{Spread, check_bound, check_shards, check_ttl};
use crate::step::{Safe, Step, WithRequestId};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.dedupe", version: 1 };
/// The most ids of a window.
const IDS_MAX: u32 = 100_000_000;

pub(super) static FIRST: Step<WithRequestId> =
    Step::new("dedupe_first", include_str!("dedupe_first.lua"));
pub(super) static HAS: Step<Safe> = Step::read_only("dedupe_has", include_str!("dedupe_has.lua"));

/// How long and how many ids are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupeSettings {
    /// An id is remembered at least so long, and at most twice as long.
    pub window: Duration,
    /// How many ids a window takes.
    pub ids_max: u32,
    /// Over how many slots they are spread.
    pub shards: u32,
}

/// Whether an id is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Seen {
    /// It was not seen within the window, and is remembered from now on.
    First,
    /// It was.
    Duplicate,
    /// The window has `ids_max` ids: whether it is new is known, but it was not remembered. Wait,
    /// or handle it in a way that stands a duplicate.
    Full {
        /// When the window ends.
        retry_after: Duration,
    },
}

/// Ids that were seen lately, by the server's clock.
///
/// Invariant: of any number of calls with one id within a window, however many tasks make them, one
/// says [`Seen::First`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::activity::{Dedupe, DedupeSettings, Seen};
/// use russet::Kit;
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let window = Duration::from_secs(60 * 60);
/// let settings = DedupeSettings { window, ids_max: 1_000_000, shards: 4 };
/// let events = Dedupe::new(&kit, "payments", settings)?;
/// assert_eq!(events.first_seen("event-1", None).await?, Seen::First);
/// assert_eq!(events.first_seen("event-1", None).await?, Seen::Duplicate);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Dedupe {
    kit: Kit,
    spread: Spread,
    settings: DedupeSettings,
    clock: ServerClock,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    DedupeStats counted by Counts {
        /// Ids that were new.
        first,
        /// Ids that had been seen.
        duplicates,
        /// Ids that were refused because the window had as many as may be.
        rejected,
    }
}

/// A window, as its number and bounds.
struct Bucket {
    number: i64,
    start_ms: i64,
    end_ms: i64,
}

impl Dedupe {
    /// Windows of this name. Refuses settings without sense: a window of zero, no ids.
    pub fn new(kit: &Kit, name: impl Into<Scope>, settings: DedupeSettings) -> Result<Self> {
        check_ttl("window", settings.window)?;
        check_bound("ids_max", settings.ids_max, IDS_MAX)?;
        check_shards(settings.shards)?;
        let spread = Spread::new(FAMILY, name.into(), settings.shards);
        spread.keys(kit, 0)?;
        let (clock, counts) = (ServerClock::new(), Counts::default());
        Ok(Dedupe { kit: kit.clone(), spread, settings, clock, counts })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> DedupeStats {
        self.counts.stats()
    }

    /// Whether the id is new, and remembers it. The request id is for a caller who may call again
    /// after a lost reply: the same request gets the same answer.
    pub async fn first_seen(
        &self,
        id: impl Into<Member>,
        request: Option<&RequestId>,
    ) -> Result<Seen> {
        let id = id.into().checked()?;
        let keys = self.spread.keys_of(&self.kit, &id)?;
        let mut guesses = self.clock.guesses(&self.kit);
        let watch = observe::Stopwatch::start();
        loop {
            let bucket = self.bucket(guesses.next_ms()?);
            let (present, before) = bucket.keys(&keys);
            let call = match request {
                Some(_) => self.kit.step_of_request(&FIRST, &keys, request),
                None => self.kit.step_of_own_request(&FIRST, &keys),
            };
            let call = call.key(present).key(before).about(&id);
            let call = call.arg(bucket.start_ms).arg(bucket.end_ms);
            let envelope = call.arg(self.spread.share(self.settings.ids_max)).run().await?;
            if !guesses.was_right(&envelope)? {
                continue;
            }
            let (metric, seen) = match envelope.status() {
                "FIRST" => ("redis.set.dedupe.first_seen.count", Seen::First),
                "DUPLICATE" => ("redis.set.dedupe.duplicate.count", Seen::Duplicate),
                "FULL" => {
                    let retry_after = envelope.duration("retry_after_ms")?;
                    ("redis.set.large_key.detected.count", Seen::Full { retry_after })
                }
                _ => return Err(envelope.unexpected()),
            };
            let counter = match seen {
                Seen::First => &self.counts.first,
                Seen::Duplicate => &self.counts.duplicates,
                Seen::Full { .. } => &self.counts.rejected,
            };
            counter.add(1);
            observe::count(metric, "activity.dedupe", 1);
            observe::latency(observe::LOOKUP_LATENCY, "activity.dedupe", watch);
            return Ok(seen);
        }
    }

    /// Whether the id was seen, without remembering it.
    pub async fn has_seen(&self, id: impl Into<Member>) -> Result<bool> {
        let id = id.into().checked()?;
        let watch = observe::Stopwatch::start();
        let (has_seen, _ids) = self.look(self.spread.shard_of(&id), &id).await?;
        observe::latency(observe::LOOKUP_LATENCY, "activity.dedupe", watch);
        Ok(has_seen)
    }

    /// How many ids the present window has.
    pub async fn len(&self) -> Result<u64> {
        let mut ids = 0;
        for shard in self.spread.shards() {
            ids += self.look(shard, &Member::from("-")).await?.1;
        }
        observe::gauge("redis.set.dedupe.cardinality", "activity.dedupe", ids);
        Ok(ids)
    }

    /// Whether no id is remembered.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    async fn look(&self, shard: u32, id: &Member) -> Result<(bool, u64)> {
        let keys = self.spread.keys(&self.kit, shard)?;
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let bucket = self.bucket(guesses.next_ms()?);
            let (present, before) = bucket.keys(&keys);
            let call = self.kit.step(&HAS).key(present).key(before).arg(id);
            let envelope = call.arg(bucket.start_ms).arg(bucket.end_ms).run().await?;
            if guesses.was_right(&envelope)? {
                return Ok((envelope.int("seen")? == 1, envelope.count("ids")?));
            }
        }
    }

    fn bucket(&self, now_ms: i64) -> Bucket {
        // Checked at construction to be far below the bounds of the type.
        let window_ms = crate::time::millis(self.settings.window) as i64;
        let number = now_ms.max(0) / window_ms;
        let start_ms = number * window_ms;
        Bucket { number, start_ms, end_ms: start_ms + window_ms }
    }
}

impl Bucket {
    /// Its key, and that of the one before.
    fn keys(&self, keys: &Keys) -> (Key, Key) {
        let key = |number: i64| keys.item("bucket", number.to_string());
        (key(self.number), key(self.number - 1))
    }
}
