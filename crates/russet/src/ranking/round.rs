//! Reading a board: the top, a page, a member's position, who is around it, and the final result.

use super::{FINISH, Leaderboard, NEAR, PAGE};
use crate::calendar::Span;
use crate::error::{Error, Result};
use crate::member::Member;
use crate::observe;
use crate::reply::{Envelope, Reply};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

/// The most members that one read returns.
pub const PAGE_MAX: u32 = 1000;
/// The most members on each side of [`Round::around`].
pub const RADIUS_MAX: u32 = 500;
/// The most periods that [`Round::total`] adds up.
pub const ROUNDS_MAX: usize = 62;
/// Digits and a colon before the member in an entry: the moment, counted backwards.
const PREFIX_BYTES: usize = 15;
const MOMENT_MAX: i64 = 99_999_999_999_999;

/// A member on a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whose standing it is.
    pub member: Member,
    /// In this period.
    pub score: i64,
    /// From 1; no two have the same. Among equals the first to get there is ahead.
    pub position: u64,
    /// From 1; equals have the same, and those after them are counted as if they had not.
    pub rank: u64,
    /// When it got this score, by the server's clock, in milliseconds since 1970.
    pub reached_at_ms: i64,
}

/// What became of closing a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Finished {
    /// It can't change any more, by now or long since.
    Closed {
        /// How many were on it.
        members: u64,
        /// By the server's clock, in milliseconds since 1970.
        closed_at_ms: i64,
    },
    /// Its period is not over.
    Open {
        /// Until its period ends.
        retry_after: Duration,
    },
}

/// The board of one period. Reading it changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Round<'b> {
    board: &'b Leaderboard,
    /// None for the present one.
    span: Option<Span>,
}

/// An entry as it is stored, which is also how boards are sorted.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    score: i64,
    bytes: Vec<u8>,
}

impl Ord for Entry {
    /// Those ahead come first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.score, &other.bytes).cmp(&(self.score, &self.bytes))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What one shard says of a page.
struct Part {
    size: u64,
    above: u64,
    entries: Vec<Entry>,
}

impl<'b> Round<'b> {
    pub(super) fn new(board: &'b Leaderboard, span: Option<Span>) -> Self {
        Round { board, span }
    }

    /// The highest `count`, at most [`PAGE_MAX`].
    pub async fn top(&self, count: u32) -> Result<Vec<Standing>> {
        self.page(0, count).await
    }

    /// Those from a position on, the first being 0. On a board of several shards the end of the
    /// page can't be beyond [`PAGE_MAX`].
    pub async fn page(&self, offset: u32, count: u32) -> Result<Vec<Standing>> {
        let shards = self.board.settings.shards;
        if count > PAGE_MAX || (shards > 1 && offset.saturating_add(count) > PAGE_MAX) {
            return Err(Error::invalid(format!("a page ends at {PAGE_MAX}")));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        if shards == 1 {
            let part = self.part(0, offset, count).await?;
            return standings(&part.entries, u64::from(offset), part.above);
        }
        let mut entries = Vec::new();
        for shard in 0..shards {
            entries.extend(self.part(shard, 0, offset + count).await?.entries);
        }
        entries.sort_unstable();
        entries.truncate((offset + count) as usize);
        let mut standings = standings(&entries, 0, 0)?;
        standings.drain(..standings.len().min(offset as usize));
        Ok(standings)
    }

    /// Where a member stands; None if it is not on the board.
    pub async fn standing(&self, member: impl Into<Member>) -> Result<Option<Standing>> {
        let member = member.into().checked()?;
        let around = self.near(&member, 0).await?;
        Ok(around.into_iter().find(|standing| standing.member == member))
    }

    /// A member between those who stand before and behind it, up to [`RADIUS_MAX`] on each side.
    /// Empty if it is not on the board.
    pub async fn around(&self, member: impl Into<Member>, radius: u32) -> Result<Vec<Standing>> {
        if radius > RADIUS_MAX {
            return Err(Error::invalid(format!("a radius is at most {RADIUS_MAX}")));
        }
        self.near(&member.into().checked()?, radius).await
    }

    /// How many are on it.
    pub async fn len(&self) -> Result<u64> {
        let mut members = 0;
        for shard in self.board.spread.shards() {
            members += self.part(shard, 0, 1).await?.size;
        }
        observe::gauge("redis.zset.leaderboard.cardinality", "ranking", members);
        Ok(members)
    }

    /// Whether nobody is on it.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Closes the board once its period is over: from then on its result is final. Closing it again
    /// says the same.
    pub async fn finish(&self) -> Result<Finished> {
        let board = self.board;
        let span = match self.span {
            Some(span) => span,
            None if board.settings.period.at_unix_ms(0).end_ms().is_none() => {
                board.settings.period.at_unix_ms(0)
            }
            None => return Err(Error::invalid("the present period is not over: name another")),
        };
        let (mut members, mut closed_at_ms) = (0, i64::MAX);
        for shard in board.spread.shards() {
            let at = board.keys(shard, &span)?;
            let call = board.kit.step(&FINISH).key(at.board).key(at.closed);
            let envelope = call.arg(span.bounds_ms().1).arg(board.settings.ttl).run().await?;
            match envelope.status() {
                "CLOSED" => {
                    members += envelope.count("size")?;
                    closed_at_ms = closed_at_ms.min(envelope.int("closed_at_ms")?);
                }
                "OPEN" => {
                    let retry_after = envelope.duration("retry_after_ms")?;
                    return Ok(Finished::Open { retry_after });
                }
                _ => return Err(envelope.unexpected()),
            }
        }
        Ok(Finished::Closed { members, closed_at_ms })
    }

    /// The highest of the scores of several periods added up: a week of seven days, a season of
    /// three months. It reads all of them, page by page: no work for a request of a user.
    pub async fn total(&self, others: &[Span], count: u32) -> Result<Vec<Standing>> {
        if others.len() >= ROUNDS_MAX || count > PAGE_MAX {
            let text = format!("at most {ROUNDS_MAX} periods and {PAGE_MAX} members");
            return Err(Error::Invalid(text));
        }
        let mut totals: HashMap<Vec<u8>, Entry> = HashMap::new();
        let others = others.iter().map(|span| Round::new(self.board, Some(*span)));
        for round in others.chain([*self]) {
            for entry in round.all().await? {
                let Some(member) = entry.bytes.get(PREFIX_BYTES..) else { continue };
                let total = totals
                    .entry(member.to_vec())
                    .or_insert_with(|| Entry { score: 0, bytes: entry.bytes.clone() });
                total.score = total.score.saturating_add(entry.score);
                // The later moment, which is the smaller text.
                total.bytes = std::mem::take(&mut total.bytes).min(entry.bytes);
            }
        }
        let mut entries: Vec<Entry> = totals.into_values().collect();
        entries.sort_unstable();
        entries.truncate(count as usize);
        standings(&entries, 0, 0)
    }

    /// All entries, each once even if the board changes meanwhile.
    async fn all(&self) -> Result<Vec<Entry>> {
        let mut all: HashMap<Vec<u8>, Entry> = HashMap::new();
        for shard in self.board.spread.shards() {
            let mut offset = 0;
            loop {
                let part = self.part(shard, offset, PAGE_MAX).await?;
                let is_last = part.entries.len() < PAGE_MAX as usize;
                offset += PAGE_MAX;
                for entry in part.entries {
                    let member = entry.bytes.get(PREFIX_BYTES..).unwrap_or_default().to_vec();
                    all.insert(member, entry);
                }
                if is_last || offset > self.board.settings.members_max {
                    break;
                }
            }
        }
        Ok(all.into_values().collect())
    }

    async fn part(&self, shard: u32, offset: u32, count: u32) -> Result<Part> {
        let mut guesses = self.board.clock.guesses(&self.board.kit);
        loop {
            let (span, start_ms, end_ms) = self.round_at(guesses.next_ms()?);
            let at = self.board.keys(shard, &span)?;
            let call = self.board.kit.step(&PAGE).key(at.board).arg(offset).arg(count);
            let mut envelope = call.arg(start_ms).arg(end_ms).run().await?;
            if guesses.was_right(&envelope)? {
                let entries = entries(envelope.list("entries")?)?;
                let (size, above) = (envelope.count("size")?, envelope.count("above")?);
                return Ok(Part { size, above, entries });
            }
        }
    }

    async fn near(&self, member: &Member, radius: u32) -> Result<Vec<Standing>> {
        let own = self.board.spread.shard_of(member);
        let Some(mut found) = self.near_in(own, Target::Member(member), radius).await? else {
            return Ok(Vec::new());
        };
        let entry = Entry { score: found.int("score")?, bytes: found.text("entry")? };
        let (mut before, mut above) = (found.count("before")?, found.count("above")?);
        let mut all = entries(found.list("entries")?)?;
        for shard in self.board.spread.shards().filter(|shard| *shard != own) {
            let Some(mut found) = self.near_in(shard, Target::Entry(&entry), radius).await? else {
                continue;
            };
            before += found.count("before")?;
            above += found.count("above")?;
            all.extend(entries(found.list("entries")?)?);
        }
        all.sort_unstable();
        let index = all.partition_point(|it| *it < entry);
        let first = index.saturating_sub(radius as usize);
        let last = (index + radius as usize + 1).min(all.len());
        let position = before.saturating_sub((index - first) as u64);
        let mut standings = standings(&all[first..last], position, above)?;
        self.rank_first(&mut standings, above).await?;
        Ok(standings)
    }

    /// The rank of those who stand before the one looked for follows from nothing that was read if
    /// the first of them is one of several equals.
    async fn rank_first(&self, standings: &mut [Standing], above: u64) -> Result<()> {
        let Some(first) = standings.first().cloned() else { return Ok(()) };
        let mut rank = above + 1;
        if rank > first.position {
            let entry = Entry { score: first.score, bytes: entry_bytes(&first) };
            rank = 1;
            for shard in self.board.spread.shards() {
                if let Some(it) = self.near_in(shard, Target::Entry(&entry), 0).await? {
                    rank += it.count("above")?;
                }
            }
        }
        let equals = standings.iter_mut().take_while(|it| it.score == first.score);
        equals.for_each(|it| it.rank = rank);
        Ok(())
    }

    async fn near_in(
        &self,
        shard: u32,
        target: Target<'_>,
        radius: u32,
    ) -> Result<Option<Envelope>> {
        let mut guesses = self.board.clock.guesses(&self.board.kit);
        loop {
            let (span, start_ms, end_ms) = self.round_at(guesses.next_ms()?);
            let at = self.board.keys(shard, &span)?;
            let call = self.board.kit.step(&NEAR).key(at.board).key(at.entries);
            let call = match target {
                Target::Member(member) => call.arg(member).arg("").arg(0),
                Target::Entry(entry) => call.arg("").arg(&entry.bytes).arg(entry.score),
            };
            let envelope = call.arg(radius).arg(start_ms).arg(end_ms).run().await?;
            if guesses.was_right(&envelope)? {
                return Ok((!envelope.is("MISSING")).then_some(envelope));
            }
        }
    }

    /// The period to read, and what the server's clock must say of it.
    fn round_at(&self, guess_ms: i64) -> (Span, i64, i64) {
        match self.span {
            Some(span) => (span, 0, 0),
            None => {
                let span = self.board.settings.period.at_unix_ms(guess_ms);
                let (start_ms, end_ms) = span.bounds_ms();
                (span, start_ms, end_ms)
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Target<'e> {
    Member(&'e Member),
    Entry(&'e Entry),
}

fn entries(list: Vec<Reply>) -> Result<Vec<Entry>> {
    let mut items = list.into_iter();
    let mut entries = Vec::with_capacity(items.len() / 2);
    while let (Some(Reply::Text(bytes)), Some(score)) = (items.next(), items.next()) {
        let score = score.as_double().ok_or_else(|| score.is_not("a score"))?;
        // Scores are whole and within 53 bits.
        entries.push(Entry { score: score as i64, bytes });
    }
    Ok(entries)
}

/// Standings of entries in order, of which the first stands behind `before` others, `above` of
/// which have a higher score.
fn standings(entries: &[Entry], before: u64, above: u64) -> Result<Vec<Standing>> {
    let mut standings: Vec<Standing> = Vec::with_capacity(entries.len());
    for (position, entry) in (before + 1..).zip(entries) {
        let (reached_at_ms, member) = read_entry(&entry.bytes)?;
        let rank = match standings.last() {
            Some(last) if last.score == entry.score => last.rank,
            Some(_) => position,
            None => above + 1,
        };
        standings.push(Standing { member, score: entry.score, position, rank, reached_at_ms });
    }
    Ok(standings)
}

fn read_entry(bytes: &[u8]) -> Result<(i64, Member)> {
    let read = || {
        let (prefix, member) = bytes.split_at_checked(PREFIX_BYTES)?;
        let moment: i64 = std::str::from_utf8(prefix.strip_suffix(b":")?).ok()?.parse().ok()?;
        Some((MOMENT_MAX - moment, Member::from(member)))
    };
    read().ok_or_else(|| Error::Corrupt("an entry of a leaderboard".into()))
}

fn entry_bytes(standing: &Standing) -> Vec<u8> {
    let mut bytes = format!("{:014}:", MOMENT_MAX - standing.reached_at_ms).into_bytes();
    bytes.extend_from_slice(standing.member.as_bytes());
    bytes
}
