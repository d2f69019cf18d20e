//! Several sets at once: intersection, union and difference, shown or made into a set. Large sets
//! are walked side by side in the order of their hashes; small ones are put into cells first where
//! they meet a large one.

use super::lookup::Lookup;
use super::{Encoding, LargeSet, NewSet, SetRef, SetRules};
use crate::types::cells::{Cells, NoPayload, Wanted};
use crate::types::element::Element;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Of several sets: what all have, what any has, what the first has and the others do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Inter,
    Union,
    Diff,
}

type Table = Cells<NoPayload>;
type Sets<'a> = SmallVec<[SetRef<'a>; 8]>;

/// A set that is added to one this many times as long is added member by member.
const MUCH_LONGER: usize = 8;

/// A set of fewer members looks them up in the others as those are.
const LOOKUPS_MIN: usize = 16;

/// A set as cells that can be walked beside others.
fn in_cells<'a>(set: SetRef<'a>, rules: &SetRules) -> Cow<'a, Table> {
    match set {
        SetRef::Large(large) if large.cells.hasher() == rules.hasher => Cow::Borrowed(&large.cells),
        _ => Cow::Owned(LargeSet::of(set, Encoding::Hashtable, rules).cells),
    }
}

fn all_in_cells<'a>(sets: &[SetRef<'a>], rules: &SetRules) -> SmallVec<[Cow<'a, Table>; 8]> {
    sets.iter().map(|set| in_cells(*set, rules)).collect()
}

/// Several sets and what is asked of them. A key that is missing is an empty set.
pub struct Combination<'a> {
    operation: Operation,
    /// Without those that make no difference. An intersection has its shortest first.
    sets: Sets<'a>,
    /// Whether a missing key alone makes it empty.
    is_empty: bool,
}

impl<'a> Combination<'a> {
    pub fn new(
        operation: Operation,
        sets: impl Iterator<Item = Option<SetRef<'a>>> + Clone,
    ) -> Self {
        let is_empty = match operation {
            Operation::Inter => sets.clone().any(|set| set.is_none()),
            Operation::Union => false,
            Operation::Diff => sets.clone().next().flatten().is_none(),
        };
        let mut sets: Sets<'a> = sets.flatten().collect();
        match operation {
            Operation::Inter => sets.sort_by_key(|set| set.len()),
            Operation::Union => {}
            // The longest is the likeliest to have a member.
            Operation::Diff => {
                if let Some((_, others)) = sets.split_first_mut() {
                    others.sort_by_key(|set| std::cmp::Reverse(set.len()));
                }
            }
        }
        Combination { operation, sets, is_empty }
    }

    /// A length that the result does not exceed.
    pub fn len_max(&self) -> usize {
        let lens = self.sets.iter().map(|set| set.len());
        match self.operation {
            Operation::Union => lens.sum(),
            _ if self.is_empty => 0,
            _ => lens.into_iter().next().unwrap_or(0),
        }
    }

    /// Shows each member of the result once, until `visit` breaks off.
    pub fn try_for_each(
        &self,
        rules: &SetRules,
        visit: &mut dyn FnMut(Element<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some((first, others)) = self.sets.split_first().filter(|_| !self.is_empty) else {
            return ControlFlow::Continue(());
        };
        if others.is_empty() {
            return first.try_for_each(visit);
        }
        match self.operation {
            Operation::Union => {
                let tables = all_in_cells(&self.sets, rules);
                let tables: SmallVec<[&Table; 8]> = tables.iter().map(|table| &**table).collect();
                (0..tables.len()).try_for_each(|at| {
                    tables[at].select(&tables[..at], Wanted::InNone, |member, _| visit(member))
                })
            }
            _ if self.walks_cells() => {
                let tables = all_in_cells(others, rules);
                let tables: SmallVec<[&Table; 8]> = tables.iter().map(|table| &**table).collect();
                let first = in_cells(*first, rules);
                first.select(&tables, self.wanted(), |member, _| visit(member))
            }
            operation => {
                let others = self.lookups(rules);
                first.try_for_each(&mut |member| {
                    let mut others = others.iter();
                    let is_wanted = match operation {
                        Operation::Inter => others.all(|other| other.contains(member, rules)),
                        _ => !others.any(|other| other.contains(member, rules)),
                    };
                    if is_wanted { visit(member) } else { ControlFlow::Continue(()) }
                })
            }
        }
    }

    /// The sets but the first, to look its members up in.
    fn lookups(&self, rules: &SetRules) -> SmallVec<[Lookup<'a>; 4]> {
        let (first, others) = self.sets.split_at(1);
        // For few look-ups a table is not worth its making.
        let is_worth_it = first[0].len() >= LOOKUPS_MIN;
        let lookup = |set: &SetRef<'a>| match is_worth_it {
            true => Lookup::new(*set, rules),
            false => Lookup::plain(*set),
        };
        others.iter().map(lookup).collect()
    }

    /// Whether the first set is so long that it is walked beside the others.
    fn walks_cells(&self) -> bool {
        matches!(self.sets.first(), Some(SetRef::Large(_)))
    }

    fn wanted(&self) -> Wanted {
        match self.operation {
            Operation::Diff => Wanted::InNone,
            _ => Wanted::InAll,
        }
    }

    /// The number of members of the result, counted up to `limit`.
    pub fn count(&self, rules: &SetRules, limit: usize) -> usize {
        if let ([only], false) = (self.sets.as_slice(), self.is_empty) {
            return only.len().min(limit);
        }
        let mut count = 0;
        let _ = self.try_for_each(rules, &mut |_| {
            count += 1;
            if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        count
    }

    /// The result as a set of its own, in the encoding that Redis gives it.
    pub fn build(&self, rules: &SetRules) -> NewSet {
        let cells = self.build_cells(rules);
        let is_wide = self.operation == Operation::Diff && self.copies_first();
        let encoding = match self.sets.first() {
            // COMPAT: such a difference is first as large as the first set; test
            // `a_difference_keeps_the_encoding_of_a_copy`.
            Some(first) if is_wide => {
                rules.encoding_of(*first).widest(rules.encoding_of_cells(&cells))
            }
            _ => rules.encoding_of_cells(&cells),
        };
        let all = LargeSet { cells, encoding };
        if encoding == Encoding::Hashtable {
            return NewSet::Large(all);
        }
        let mut set = NewSet::new(encoding, 0, rules);
        let mut members: Vec<Element<'_>> = all.cells.iter().map(|(member, _)| member).collect();
        members.sort_by_key(|member| match member {
            Element::Int(value) => *value,
            Element::Bytes(_) => i64::MAX,
        });
        members.iter().for_each(|member| {
            set.add(*member, rules);
        });
        set
    }

    /// Redis makes a difference by taking all others out of a copy of the first set where that
    /// looks like less work than looking for each member in all others.
    fn copies_first(&self) -> bool {
        let Some(first) = self.sets.first() else { return false };
        let looks = first.len().saturating_mul(self.sets.len()) / 2;
        looks > self.sets.iter().map(|set| set.len()).sum()
    }

    fn build_cells(&self, rules: &SetRules) -> Table {
        let Some((first, others)) = self.sets.split_first().filter(|_| !self.is_empty) else {
            return Cells::new(rules.hasher);
        };
        if self.operation == Operation::Union {
            return self.union(rules);
        }
        if self.walks_cells() {
            let tables = all_in_cells(others, rules);
            let tables: SmallVec<[&Table; 8]> = tables.iter().map(|table| &**table).collect();
            return in_cells(*first, rules).selected(&tables, self.wanted());
        }
        let mut cells = Cells::new(rules.hasher);
        let _ = self.try_for_each(rules, &mut |member| {
            cells.add(member, &[]);
            ControlFlow::Continue(())
        });
        cells
    }

    fn union(&self, rules: &SetRules) -> Table {
        let mut sets = self.sets.clone();
        sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
        let mut sets = sets.into_iter();
        let Some(longest) = sets.next() else { return Cells::new(rules.hasher) };
        let mut all = in_cells(longest, rules);
        for set in sets {
            if set.len().saturating_mul(MUCH_LONGER) > all.len() {
                all = Cow::Owned(all.union(&in_cells(set, rules)));
            } else {
                let all = all.to_mut();
                set.for_each(&mut |member| {
                    all.add(member, &[]);
                });
            }
        }
        all.into_owned()
    }
}

impl SetRules {
    /// What Redis makes of these members, added one by one to a new intset.
    fn encoding_of_cells(&self, cells: &Table) -> Encoding {
        self.encoding_by(cells.len(), || cells.iter().map(|(member, _)| member))
    }

    fn encoding_of(&self, set: SetRef<'_>) -> Encoding {
        let mut longest = (true, 0);
        if set.len() <= self.intset_entries_max.max(self.listpack_entries_max) {
            set.for_each(&mut |member| longest = grown(longest, member));
        }
        self.encoding_for(set.len(), longest)
    }

    fn encoding_by<'e, I: Iterator<Item = Element<'e>>>(
        &self,
        len: usize,
        members: impl FnOnce() -> I,
    ) -> Encoding {
        let mut longest = (true, 0);
        if len <= self.intset_entries_max.max(self.listpack_entries_max) {
            longest = members().fold(longest, grown);
        }
        self.encoding_for(len, longest)
    }

    fn encoding_for(&self, len: usize, (is_ints, longest): (bool, usize)) -> Encoding {
        if is_ints {
            return self.intset_of(len);
        }
        self.listpack_with(len.saturating_sub(1), longest)
    }
}

/// Whether all are integers, and the longest text, with one more.
fn grown((is_ints, longest): (bool, usize), member: Element<'_>) -> (bool, usize) {
    let bytes = member.with_bytes(<[u8]>::len);
    (is_ints && matches!(member, Element::Int(_)), longest.max(bytes))
}

impl Encoding {
    /// The one that fewer sets fit in.
    fn widest(self, other: Encoding) -> Encoding {
        match (self, other) {
            (Encoding::Hashtable, _) | (_, Encoding::Hashtable) => Encoding::Hashtable,
            (Encoding::Listpack, _) | (_, Encoding::Listpack) => Encoding::Listpack,
            _ => Encoding::Intset,
        }
    }
}
