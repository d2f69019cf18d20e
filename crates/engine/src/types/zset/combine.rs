//! Unions, intersections and differences of sorted sets and sets. Nothing is inserted one by one:
//! pairs are gathered, matched by the hashes of their members and sorted once.

use super::entry::{compare_scores, prefix};
use super::{Direction, Element, Pair, ZsetRef, large};
use crate::types::set::SetRef;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// What several scores of one member become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Sum,
    Min,
    Max,
    /// Scores do not matter: the weights are summed.
    Count,
}

impl Aggregate {
    fn weigh(self, score: f64, weight: f64) -> f64 {
        if self == Aggregate::Count { weight } else { score * weight }
    }

    /// COMPAT: what is not a number is zero; tests/wire/zset/zunion.wire.
    fn join(self, sum: f64, value: f64) -> f64 {
        match self {
            Aggregate::Sum | Aggregate::Count => number(sum + value),
            Aggregate::Min if value < sum => value,
            Aggregate::Max if value > sum => value,
            Aggregate::Min | Aggregate::Max => sum,
        }
    }
}

fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// A set or a sorted set.
#[derive(Clone, Copy)]
pub enum Members<'a> {
    /// No key.
    None,
    Zset(ZsetRef<'a>),
    /// Each member has the score 1.
    Set(SetRef<'a>),
}

const SET_SCORE: f64 = 1.0;
/// More operands than this are put together before something is looked for in all of them.
const MANY_OPERANDS: usize = 8;

impl<'a> Members<'a> {
    pub fn len(self) -> usize {
        match self {
            Members::None => 0,
            Members::Zset(zset) => zset.len(),
            Members::Set(set) => set.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where they lie; 0 without a key.
    fn address(self) -> usize {
        match self {
            Members::None => 0,
            Members::Zset(zset) => zset.address(),
            Members::Set(set) => set.address(),
        }
    }

    fn each(self, mut visit: impl FnMut(Pair<'a>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            Members::None => ControlFlow::Continue(()),
            Members::Zset(zset) => zset.each(0..zset.len(), Direction::Forward, &mut visit),
            Members::Set(set) => set.each(|member| visit(Pair { score: SET_SCORE, member })),
        }
    }

    fn score(self, member: Element<'_>, hash: u64) -> Option<f64> {
        match self {
            Members::None => None,
            Members::Zset(zset) => zset.score_hashed(member, hash),
            Members::Set(set) => set.contains(member).then_some(SET_SCORE),
        }
    }
}

/// One operand.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub members: Members<'a>,
    pub weight: f64,
}

/// A member of a result, and its hash.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    pub pair: Pair<'a>,
    pub(super) hash: u64,
}

impl<'a> Scored<'a> {
    pub fn new(pair: Pair<'a>) -> Self {
        Scored { pair, hash: large::hash(pair.member) }
    }
}

/// Operands from the smallest on.
/// COMPAT: that is the order in which scores are added, which rounding shows; test
/// `scores_are_added_from_the_smallest_operand_on`.
fn by_size<'a>(inputs: &[Input<'a>]) -> Vec<Input<'a>> {
    let mut sorted = inputs.to_vec();
    sorted.sort_by_key(|input| input.members.len());
    sorted
}

/// Where one gathered pair is, by the hash of its member.
#[derive(Clone, Copy)]
struct Mark {
    hash: u64,
    at: usize,
}

/// All members of all operands, in order.
pub fn union<'a>(inputs: &[Input<'a>], aggregate: Aggregate) -> Vec<Scored<'a>> {
    if inputs.len() > MANY_OPERANDS {
        return union_of_many(inputs, aggregate);
    }
    let total = inputs.iter().map(|input| input.members.len()).sum();
    let mut gathered: Vec<Scored<'a>> = Vec::with_capacity(total);
    for input in by_size(inputs) {
        let _ = input.members.each(|pair| {
            let score = number(aggregate.weigh(pair.score, input.weight));
            gathered.push(Scored::new(Pair { score, ..pair }));
            ControlFlow::Continue(())
        });
    }
    let operands = inputs.iter().filter(|input| !input.members.is_empty()).count();
    if operands > 1 {
        merge(&mut gathered, aggregate);
    }
    sort(&mut gathered);
    gathered
}

/// As [`union`], in memory for the result alone: a sorted set may be named any number of times.
fn union_of_many<'a>(inputs: &[Input<'a>], aggregate: Aggregate) -> Vec<Scored<'a>> {
    let mut gathered: Vec<Scored<'a>> = Vec::new();
    let mut known: HashMap<Element<'a>, usize> = HashMap::new();
    for input in by_size(inputs) {
        let _ = input.members.each(|pair| {
            let score = aggregate.weigh(pair.score, input.weight);
            match known.entry(pair.member) {
                Entry::Vacant(vacant) => {
                    vacant.insert(gathered.len());
                    gathered.push(Scored::new(Pair { score: number(score), ..pair }));
                }
                Entry::Occupied(at) => {
                    let sum = &mut gathered[*at.get()].pair.score;
                    *sum = aggregate.join(*sum, number(score));
                }
            }
            ControlFlow::Continue(())
        });
    }
    sort(&mut gathered);
    gathered
}

/// Makes one pair of those that have the same member.
fn merge(gathered: &mut Vec<Scored<'_>>, aggregate: Aggregate) {
    let marks = gathered.iter().enumerate().map(|(at, scored)| Mark { hash: scored.hash, at });
    let mut marks: Vec<Mark> = marks.collect();
    // Equal hashes come in the order in which they were gathered.
    marks.sort_unstable_by_key(|mark| (mark.hash, mark.at));
    let mut is_merged = vec![false; gathered.len()];
    for alike in marks.chunk_by(|one, other| one.hash == other.hash) {
        for (position, first) in alike.iter().enumerate() {
            if is_merged[first.at] {
                continue;
            }
            for other in &alike[position + 1..] {
                // Different members may have one hash.
                let Pair { score, member } = gathered[other.at].pair;
                if !is_merged[other.at] && gathered[first.at].pair.member == member {
                    is_merged[other.at] = true;
                    let sum = &mut gathered[first.at].pair.score;
                    *sum = aggregate.join(*sum, score);
                }
            }
        }
    }
    let mut merged = is_merged.iter();
    gathered.retain(|_| merged.next() == Some(&false));
}

/// What a pair is sorted by: score, the first bytes of its member, and where the whole of it is.
#[derive(Clone, Copy)]
struct SortKey {
    score: f64,
    prefix: u64,
    at: usize,
}

fn sort(scored: &mut Vec<Scored<'_>>) {
    let in_order = |pair: &[Scored<'_>]| pair[0].pair.compare(&pair[1].pair) != Ordering::Greater;
    if scored.windows(2).all(in_order) {
        return;
    }
    let key = |(at, scored): (usize, &Scored<'_>)| {
        let Pair { score, member } = scored.pair;
        SortKey { score, prefix: prefix(member), at }
    };
    let mut keys: Vec<SortKey> = scored.iter().enumerate().map(key).collect();
    keys.sort_unstable_by(|one, other| {
        compare_scores(one.score, other.score)
            .then(one.prefix.cmp(&other.prefix))
            .then_with(|| scored[one.at].pair.compare(&scored[other.at].pair))
    });
    *scored = keys.iter().map(|key| scored[key.at]).collect();
}

/// Visits the members that all operands have, with their score, until told to stop.
fn each_common<'a>(
    inputs: &[Input<'a>],
    aggregate: Aggregate,
    mut visit: impl FnMut(Scored<'a>) -> ControlFlow<()>,
) {
    let sorted = by_size(inputs);
    let Some((first, others)) = sorted.split_first() else { return };
    if first.members.is_empty() {
        return;
    }
    let _ = first.members.each(|pair| {
        let mut scored = Scored::new(pair);
        let mut sum = number(aggregate.weigh(pair.score, first.weight));
        // Operands of one size stand side by side: one that is named often is looked into once.
        let mut last = (first.members.address(), pair.score);
        for other in others {
            let address = other.members.address();
            if address != last.0 {
                let found = other.members.score(pair.member, scored.hash);
                let Some(score) = found else { return ControlFlow::Continue(()) };
                last = (address, score);
            }
            sum = aggregate.join(sum, aggregate.weigh(last.1, other.weight));
        }
        scored.pair.score = sum;
        visit(scored)
    });
}

/// The members that all operands have, in order.
pub fn intersection<'a>(inputs: &[Input<'a>], aggregate: Aggregate) -> Vec<Scored<'a>> {
    let mut common = Vec::new();
    each_common(inputs, aggregate, |scored| {
        common.push(scored);
        ControlFlow::Continue(())
    });
    sort(&mut common);
    common
}

/// Each operand once, where it is named first. Only for what no score depends on.
fn without_repeated<'a>(inputs: &[Input<'a>]) -> Vec<Input<'a>> {
    let mut seen = HashSet::with_capacity(inputs.len());
    inputs.iter().copied().filter(|input| seen.insert(input.members.address())).collect()
}

/// How many members all operands have; no more than `limit` are looked for.
pub fn intersection_len(inputs: &[Input<'_>], limit: usize) -> usize {
    let mut count = 0;
    each_common(&without_repeated(inputs), Aggregate::Count, |_| {
        count += 1;
        if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    count
}

/// The members of all of these.
fn gather<'a>(inputs: &[Input<'a>]) -> HashSet<Element<'a>> {
    let mut members = HashSet::new();
    for input in inputs {
        let _ = input.members.each(|pair| {
            members.insert(pair.member);
            ControlFlow::Continue(())
        });
    }
    members
}

/// The members of the first operand that no other has, in order.
pub fn difference<'a>(inputs: &[Input<'a>]) -> Vec<Scored<'a>> {
    let mut left = Vec::new();
    let Some((first, others)) = inputs.split_first() else { return left };
    if others.iter().any(|other| other.members.address() == first.members.address()) {
        return left;
    }
    let others = without_repeated(others);
    let taken = (others.len() > MANY_OPERANDS).then(|| gather(&others));
    let _ = first.members.each(|pair| {
        let scored = Scored::new(pair);
        let is_taken = match &taken {
            Some(taken) => taken.contains(&pair.member),
            None => {
                others.iter().any(|other| other.members.score(pair.member, scored.hash).is_some())
            }
        };
        if !is_taken {
            left.push(scored);
        }
        ControlFlow::Continue(())
    });
    sort(&mut left);
    left
}
