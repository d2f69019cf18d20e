//! Ranges of scores and of members, as ZRANGEBYSCORE and ZRANGEBYLEX name them.

use super::entry::{Pair, compare_members, compare_scores, prefix};
use crate::types::element::Element;
use std::cmp::Ordering;

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBound {
    pub value: f64,
    /// The value itself is left out: `(5`.
    pub is_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    pub min: ScoreBound,
    pub max: ScoreBound,
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`: before every member.
    Least,
    /// `+`: after every member.
    Most,
    /// `[text`
    Closed(&'a [u8]),
    /// `(text`
    Open(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    pub min: LexBound<'a>,
    pub max: LexBound<'a>,
}

impl LexBound<'_> {
    /// Whether a member stands before a range that begins here.
    pub fn is_behind(&self, member: Element<'_>) -> bool {
        match self {
            LexBound::Least => false,
            LexBound::Most => true,
            LexBound::Closed(text) => member.with_bytes(|member| member < *text),
            LexBound::Open(text) => member.with_bytes(|member| member <= *text),
        }
    }

    /// Whether a member still belongs to a range that ends here.
    pub fn is_ahead(&self, member: Element<'_>) -> bool {
        match self {
            LexBound::Least => false,
            LexBound::Most => true,
            LexBound::Closed(text) => member.with_bytes(|member| member <= *text),
            LexBound::Open(text) => member.with_bytes(|member| member < *text),
        }
    }
}

impl LexRange<'_> {
    /// Whether no member at all can lie inside.
    pub fn is_void(&self) -> bool {
        match (self.min, self.max) {
            (LexBound::Most, _) | (_, LexBound::Least) => true,
            (LexBound::Closed(min), LexBound::Closed(max)) => min > max,
            (
                LexBound::Closed(min) | LexBound::Open(min),
                LexBound::Closed(max) | LexBound::Open(max),
            ) => min >= max,
            _ => false,
        }
    }
}

/// A point in the order of a sorted set: some entries stand before it, the others do not.
#[derive(Clone, Copy, Debug)]
pub enum Probe<'a> {
    /// Just before this pair, or where it would be.
    Pair(Pair<'a>),
    /// Where scores are no longer below the value.
    Below(f64),
    /// Where scores are above the value.
    NotAbove(f64),
    /// Where a range of members begins. All scores are taken to be equal.
    LexMin(LexBound<'a>),
    /// Where it ends.
    LexMax(LexBound<'a>),
}

impl<'a> Probe<'a> {
    /// The two ends of a range of scores.
    pub fn scores(range: &ScoreRange) -> [Self; 2] {
        let ScoreRange { min, max } = *range;
        [
            if min.is_open { Probe::NotAbove(min.value) } else { Probe::Below(min.value) },
            if max.is_open { Probe::Below(max.value) } else { Probe::NotAbove(max.value) },
        ]
    }

    /// Whether a pair stands before the point; its member is asked for only where the score does
    /// not tell.
    #[inline]
    pub fn is_past_score<'p>(&self, score: f64, member: impl FnOnce() -> Element<'p>) -> bool {
        match self {
            Probe::Pair(pair) => match compare_scores(score, pair.score) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => compare_members(member(), pair.member) == Ordering::Less,
            },
            Probe::Below(value) => score < *value,
            Probe::NotAbove(value) => score <= *value,
            Probe::LexMin(bound) => bound.is_behind(member()),
            Probe::LexMax(bound) => bound.is_ahead(member()),
        }
    }

    /// The first bytes of the member that the point is at, if that is what it is about.
    #[inline]
    pub fn prefix(&self) -> u64 {
        if let Probe::Pair(pair) = self { prefix(pair.member) } else { 0 }
    }
}
