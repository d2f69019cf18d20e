//! Leaderboards: who has the highest score, in this hour, day, week, month, or ever.
//!
//! Invariant: a member has one score and one position, equals stand in the order in which they got
//! there, and a board that is closed never changes.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::ranking::{Leaderboard, Settings};
//! use russet::{Kit, Period};
//! use std::time::Duration;
//!
//! let kit = Kit::embedded(Default::default())?;
//! let settings = Settings {
//!     period: Period::Day,
//!     members_max: 10_000,
//!     ttl: Duration::from_secs(7 * 24 * 60 * 60),
//!     shards: 1,
//! };
//! let board = Leaderboard::new(&kit, "chess", settings)?;
//! board.add("ann", 30, None).await?;
//! board.add("ben", 50, None).await?;
//! let top = board.current().top(10).await?;
//! assert_eq!((&top[0].member, top[0].score, top[0].position), (&"ben".into(), 50, 1));
//! # Ok(())
//! # }
//! ```
//!
//! A period that is over is read with [`Leaderboard::round`] and closed with [`Round::finish`]; its
//! result belongs in a database, for which it is kept [`Settings::ttl`] long.

mod round;

pub use round::{Finished, Round, Standing};

use crate::calendar::{Period, ServerClock, Span};
use crate::error::{Error, Result};
use crate::key::{Family, Key, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::{self, stats};
use crate::reply::Envelope;
use crate::retry::RequestId;
use crate::spread::{Spread, check_bound, check_shards, check_ttl};
use crate::step::{Safe, Step, StepInfo, WithRequestId};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "ranking", version: 1 };
/// The largest score: whole numbers up to it are exact in a sorted set.
pub const SCORE_MAX: i64 = (1 << 53) - 1;
/// The most members of a board.
pub const MEMBERS_MAX: u32 = 10_000_000;

static ADD: Step<WithRequestId> = Step::new("ranking_add", include_str!("ranking/add.lua"));
static REMOVE: Step<Safe> = Step::new("ranking_remove", include_str!("ranking/remove.lua"));
static PAGE: Step<Safe> = Step::read_only("ranking_page", include_str!("ranking/page.lua"));
static NEAR: Step<Safe> = Step::read_only("ranking_near", include_str!("ranking/near.lua"));
static FINISH: Step<Safe> = Step::new("ranking_finish", include_str!("ranking/finish.lua"));

pub(crate) static STEPS: &[&StepInfo] =
    &[ADD.info(), REMOVE.info(), PAGE.info(), NEAR.info(), FINISH.info()];

/// What a leaderboard is bounded by. There are no defaults: they are decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// When it begins anew.
    pub period: Period,
    /// How many it keeps; the lowest go first. One that has gone and comes back starts from
    /// nothing.
    pub members_max: u32,
    /// How long it is kept after the end of its period; without an end, after the last change.
    pub ttl: Duration,
    /// Over how many slots it is spread: 1, unless one slot can't take the writes.
    pub shards: u32,
}

/// What became of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Scored {
    /// This is the member's score now.
    Kept {
        /// After this call.
        score: i64,
    },
    /// It would be this, but the board is full of higher ones.
    Below {
        /// What it was too low with.
        score: i64,
    },
    /// The board was closed before: nothing has changed.
    Closed,
}

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Removed {
    /// It is not on the board any more.
    Removed,
    /// It was not on the board.
    Missing,
    /// The board was closed before: nothing has changed.
    Closed,
}

/// A leaderboard; see the [module](self).
#[derive(Debug)]
pub struct Leaderboard {
    kit: Kit,
    spread: Spread,
    settings: Settings,
    clock: ServerClock,
    counts: Counts,
}

/// How a score is applied.
#[derive(Clone, Copy, Debug)]
enum How {
    Add,
    Set,
    Best,
}

stats! {
    /// What a handle has seen in this process.
    LeaderboardStats counted by Counts {
        /// Scores of members that are on the board.
        kept,
        /// Scores that were too low for it.
        below,
        /// Scores for a board that was closed.
        closed,
        /// Members that were taken off the board.
        removed,
    }
}

/// The keys of one period in one shard.
struct BoardKeys {
    keys: crate::key::Keys,
    board: Key,
    entries: Key,
    closed: Key,
}

impl Leaderboard {
    /// The board of this name. Refuses settings without sense: a TTL of zero, too many members.
    pub fn new(kit: &Kit, name: impl Into<Scope>, settings: Settings) -> Result<Self> {
        check_ttl("ttl", settings.ttl)?;
        check_shards(settings.shards)?;
        check_bound("members_max", settings.members_max, MEMBERS_MAX)?;
        let spread = Spread::new(FAMILY, name.into(), settings.shards);
        let board = Leaderboard {
            kit: kit.clone(),
            spread,
            settings,
            clock: ServerClock::new(),
            counts: Counts::default(),
        };
        board.keys(0, &settings.period.at_unix_ms(0))?;
        Ok(board)
    }

    /// Adds to a member's score, or takes from it.
    pub async fn add(
        &self,
        member: impl Into<Member>,
        by: i64,
        request: Option<&RequestId>,
    ) -> Result<Scored> {
        self.score(member.into(), by, How::Add, request).await
    }

    /// Sets a member's score. The same again changes nothing, not even who came first.
    pub async fn set(&self, member: impl Into<Member>, score: i64) -> Result<Scored> {
        self.score(member.into(), score, How::Set, None).await
    }

    /// Sets a member's score unless it is higher already.
    pub async fn set_best(&self, member: impl Into<Member>, score: i64) -> Result<Scored> {
        self.score(member.into(), score, How::Best, None).await
    }

    /// Takes a member off the board of the present period.
    pub async fn remove(&self, member: impl Into<Member>) -> Result<Removed> {
        let member = member.into().checked()?;
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let span = self.settings.period.at_unix_ms(guesses.next_ms()?);
            let at = self.keys(self.spread.shard_of(&member), &span)?;
            let call = self.kit.step(&REMOVE).key(at.board).key(at.entries).key(at.closed);
            let (start_ms, end_ms) = span.bounds_ms();
            let envelope = call.arg(&member).arg(start_ms).arg(end_ms).run().await?;
            if guesses.was_right(&envelope)? {
                return match envelope.status() {
                    "REMOVED" => {
                        self.counts.removed.add(1);
                        Ok(Removed::Removed)
                    }
                    "MISSING" => Ok(Removed::Missing),
                    "CLOSED" => Ok(Removed::Closed),
                    _ => Err(envelope.unexpected()),
                };
            }
        }
    }

    /// The board of the present period, by the server's clock.
    pub fn current(&self) -> Round<'_> {
        Round::new(self, None)
    }

    /// The board of a certain period.
    pub fn round(&self, span: Span) -> Round<'_> {
        Round::new(self, Some(span))
    }

    /// What this handle has seen.
    pub fn stats(&self) -> LeaderboardStats {
        self.counts.stats()
    }

    /// What it is bounded by.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    async fn score(
        &self,
        member: Member,
        score: i64,
        how: How,
        request: Option<&RequestId>,
    ) -> Result<Scored> {
        let member = member.checked()?;
        if score.unsigned_abs() > SCORE_MAX.unsigned_abs() {
            return Err(Error::invalid(format!("a score is at most {SCORE_MAX}")));
        }
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let span = self.settings.period.at_unix_ms(guesses.next_ms()?);
            let at = self.keys(self.spread.shard_of(&member), &span)?;
            let call = self.kit.step_of_request(&ADD, &at.keys, request);
            let call = match how {
                How::Add => call,
                How::Set | How::Best => call.repeatable(),
            };
            let (start_ms, end_ms) = span.bounds_ms();
            let call = call.key(at.board).key(at.entries).key(at.closed).about(&member).arg(score);
            let call = call.arg(how.name()).arg(start_ms).arg(end_ms).arg(self.settings.ttl);
            let envelope = call.arg(self.spread.share(self.settings.members_max)).run().await?;
            if guesses.was_right(&envelope)? {
                let scored = scored(&envelope)?;
                let counter = match scored {
                    Scored::Kept { .. } => &self.counts.kept,
                    Scored::Below { .. } => &self.counts.below,
                    Scored::Closed => &self.counts.closed,
                };
                counter.add(1);
                return Ok(scored);
            }
        }
    }

    fn keys(&self, shard: u32, span: &Span) -> Result<BoardKeys> {
        let (keys, label) = (self.spread.keys(&self.kit, shard)?, span.label());
        let (board, entries) = (keys.item("board", &label), keys.item("entries", &label));
        let closed = keys.item("closed", &label);
        Ok(BoardKeys { keys, board, entries, closed })
    }
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Add => "ADD",
            How::Set => "SET",
            How::Best => "BEST",
        }
    }
}

fn scored(envelope: &Envelope) -> Result<Scored> {
    match envelope.status() {
        "KEPT" => Ok(Scored::Kept { score: envelope.int("score")? }),
        "BELOW" => {
            observe::count("redis.zset.leaderboard.trimmed.count", "ranking", 1);
            Ok(Scored::Below { score: envelope.int("score")? })
        }
        "CLOSED" => Ok(Scored::Closed),
        _ => Err(envelope.unexpected()),
    }
}
