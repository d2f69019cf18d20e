//! Several sets at once: intersection, union and difference, shown or made into a set. Large sets
//! are walked side by side in the order of their hashes; small ones are put into cells first where
//! they meet a large one.

use super::lookup::Lookup;
use super::{Encoding, LargeSet, NewSet, SetRef, SetRules};
use crate::types::cells::{Cells, NoPayload, Wanted};
use crate::types::element::Element;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashSet;
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
/// More sets than this are put together before something is looked for in all of them.
const MANY_SETS: usize = 8;

/// A set of fewer members looks them up in the others as those are.
const LOOKUPS_MIN: usize = 16;
/// Packed sets of so many members in all are combined member by member: no cells are made of them.
const FEW_MEMBERS: usize = 32;

/// The members of a small result.
type FewMembers<'a> = SmallVec<[Element<'a>; FEW_MEMBERS]>;

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
    /// Without those that make no difference: a set that is named twice is there once. An
    /// intersection has its shortest first.
    sets: Sets<'a>,
    /// Whether the keys alone make it empty: one is missing, or a set is taken from itself.
    is_empty: bool,
    /// See [`copies_first`].
    copies_first: bool,
}

impl<'a> Combination<'a> {
    pub fn new(
        operation: Operation,
        sets: impl Iterator<Item = Option<SetRef<'a>>> + Clone,
    ) -> Self {
        let mut is_empty = match operation {
            Operation::Inter => sets.clone().any(|set| set.is_none()),
            Operation::Union => false,
            Operation::Diff => sets.clone().next().flatten().is_none(),
        };
        let mut sets: Sets<'a> = sets.flatten().collect();
        let copies_first = copies_first(&sets);
        if let Some((first, others)) = sets.split_first()
            && operation == Operation::Diff
        {
            is_empty |= others.iter().any(|other| other.address() == first.address());
        }
        drop_repeated(&mut sets);
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
        Combination { operation, sets, is_empty, copies_first }
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
            Operation::Union if self.sets.len() > MANY_SETS => {
                union(&self.sets, rules).iter().try_for_each(|(member, _)| visit(member))
            }
            Operation::Union => {
                let tables = all_in_cells(&self.sets, rules);
                let tables: SmallVec<[&Table; 8]> = tables.iter().map(|table| &**table).collect();
                (0..tables.len()).try_for_each(|at| {
                    tables[at].select(&tables[..at], Wanted::InNone, |member, _| visit(member))
                })
            }
            _ if self.walks_cells() => {
                let tables = self.others_in_cells(others, rules);
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

    /// The sets that the first is walked beside: of a difference, one of all if they are many.
    fn others_in_cells(
        &self,
        others: &[SetRef<'a>],
        rules: &SetRules,
    ) -> SmallVec<[Cow<'a, Table>; 8]> {
        if self.operation == Operation::Diff && others.len() > MANY_SETS {
            return std::iter::once(Cow::Owned(union(others, rules))).collect();
        }
        all_in_cells(others, rules)
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
        if let Some(mut members) = self.few_members() {
            let encoding = self.encoding(members.len(), || members.iter().copied(), rules);
            return build_of(&mut members, encoding, rules);
        }
        let cells = self.build_cells(rules);
        let members = || cells.iter().map(|(member, _)| member);
        let encoding = self.encoding(cells.len(), members, rules);
        if encoding == Encoding::Hashtable {
            return NewSet::Large(LargeSet { cells, encoding });
        }
        build_of(&mut members().collect::<Vec<_>>(), encoding, rules)
    }

    /// The encoding that Redis gives a result of these members.
    fn encoding<'e, I: Iterator<Item = Element<'e>>>(
        &self,
        len: usize,
        members: impl Fn() -> I,
        rules: &SetRules,
    ) -> Encoding {
        let is_wide = self.operation == Operation::Diff && self.copies_first;
        let encoding = rules.encoding_by(len, || self.seen(&members, rules));
        match self.sets.first() {
            // COMPAT: such a difference is first as large as the first set; test
            // `a_difference_keeps_the_encoding_of_a_copy`.
            Some(first) if is_wide => rules.encoding_of(*first).widest(encoding),
            _ if self.starts_as_listpack() => rules.encoding_from_listpack(encoding, len, members),
            _ => encoding,
        }
    }

    /// What is seen of the members of the result, which may be given here in the order of their
    /// hashes, in the order in which the sets have them.
    fn seen<'e, I: Iterator<Item = Element<'e>>>(
        &self,
        members: impl Fn() -> I,
        rules: &SetRules,
    ) -> Seen {
        let seen = members().fold(Seen::default(), Seen::with);
        let is_in_order = match self.operation {
            Operation::Inter => true,
            Operation::Union => false,
            // A long set has no other order than that of the hashes.
            Operation::Diff => self.walks_cells(),
        };
        if !seen.has_text || is_in_order {
            return seen;
        }
        // More of them make no difference.
        let (mut ints, ints_max) = (HashSet::new(), rules.intset_entries_max);
        let mut visit = |member: Element<'_>| match member {
            Element::Int(int) if ints.len() <= ints_max => {
                ints.insert(int);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        };
        let _broken_off = match self.operation {
            Operation::Union => self.sets.iter().try_for_each(|set| set.each(&mut visit)),
            _ => self.try_for_each(rules, &mut |member| visit(member)),
        };
        Seen { ints_first: ints.len(), ..seen }
    }

    /// The members of the result, if all sets are packed and short.
    fn few_members(&self) -> Option<FewMembers<'a>> {
        let is_packed = |set: &SetRef<'_>| !matches!(set, SetRef::Large(_));
        let total: usize = self.sets.iter().map(|set| set.len()).sum();
        if total > FEW_MEMBERS || !self.sets.iter().all(is_packed) {
            return None;
        }
        let mut members = FewMembers::new();
        let Some((first, others)) = self.sets.split_first().filter(|_| !self.is_empty) else {
            return Some(members);
        };
        let mut add = |set: &SetRef<'a>, is_wanted: &dyn Fn(Element<'a>) -> bool| {
            let _never_broken_off = set.each(|member| {
                if is_wanted(member) {
                    members.push(member);
                }
                ControlFlow::Continue(())
            });
        };
        match self.operation {
            Operation::Inter => {
                add(first, &|member| others.iter().all(|other| other.contains(member)));
            }
            Operation::Diff => {
                add(first, &|member| !others.iter().any(|other| other.contains(member)));
            }
            Operation::Union => self.sets.iter().enumerate().for_each(|(at, set)| {
                let before = &self.sets[..at];
                add(set, &|member| !before.iter().any(|other| other.contains(member)));
            }),
        }
        Some(members)
    }

    /// COMPAT: an intersection starts as what its smallest set is, and only a start as an intset
    /// turns integers beyond `set-max-intset-entries` into a hashtable; test
    /// `an_intersection_of_integers_may_be_a_listpack`.
    fn starts_as_listpack(&self) -> bool {
        let smallest = self.sets.iter().min_by_key(|set| set.len());
        self.operation == Operation::Inter
            && smallest.is_some_and(|set| set.encoding() != Encoding::Intset)
    }

    fn build_cells(&self, rules: &SetRules) -> Table {
        let Some((first, others)) = self.sets.split_first().filter(|_| !self.is_empty) else {
            return Cells::new(rules.hasher);
        };
        if self.operation == Operation::Union {
            return union(&self.sets, rules);
        }
        if self.walks_cells() {
            let tables = self.others_in_cells(others, rules);
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
}

/// A set of these members, no two of which are equal.
fn build_of(members: &mut [Element<'_>], encoding: Encoding, rules: &SetRules) -> NewSet {
    if encoding == Encoding::Intset {
        // In their order each is added at the end.
        members.sort_unstable_by_key(|member| match member {
            Element::Int(value) => *value,
            Element::Bytes(_) => i64::MAX,
        });
    }
    let mut set = NewSet::new(encoding, members.len(), rules);
    members.iter().for_each(|member| set.push(*member, rules));
    set
}

/// Redis makes a difference by taking all others out of a copy of the first set where that looks
/// like less work than looking for each member in all others.
fn copies_first(sets: &[SetRef<'_>]) -> bool {
    let Some(first) = sets.first() else { return false };
    let looks = first.len().saturating_mul(sets.len()) / 2;
    looks > sets.iter().map(|set| set.len()).sum()
}

/// Leaves each set where it is named first.
fn drop_repeated(sets: &mut Sets<'_>) {
    let mut addresses: SmallVec<[usize; 8]> = sets.iter().map(|set| set.address()).collect();
    addresses.sort_unstable();
    if addresses.windows(2).any(|pair| pair[0] == pair[1]) {
        let mut seen = HashSet::with_capacity(sets.len());
        sets.retain(|set| seen.insert(set.address()));
    }
}

fn union(sets: &[SetRef<'_>], rules: &SetRules) -> Table {
    let mut sets: SmallVec<[_; 8]> = sets.iter().copied().collect();
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

impl SetRules {
    /// What an encoding is if the members were added to a new listpack.
    fn encoding_from_listpack<'e, I: Iterator<Item = Element<'e>>>(
        &self,
        encoding: Encoding,
        len: usize,
        members: impl FnOnce() -> I,
    ) -> Encoding {
        match encoding {
            Encoding::Hashtable if len <= self.listpack_entries_max => {
                let longest = members().fold(Seen::default(), Seen::with).longest;
                self.listpack_with(len.saturating_sub(1), longest)
            }
            other => other,
        }
    }

    fn encoding_of(&self, set: SetRef<'_>) -> Encoding {
        let mut seen = Seen::default();
        if set.len() <= self.intset_entries_max.max(self.listpack_entries_max) {
            set.for_each(&mut |member| seen = seen.with(member));
        }
        self.encoding_for(set.len(), seen)
    }

    /// What Redis makes of members that are added one by one, in this order, to a new intset.
    fn encoding_by(&self, len: usize, seen: impl FnOnce() -> Seen) -> Encoding {
        let is_short = len <= self.intset_entries_max.max(self.listpack_entries_max);
        self.encoding_for(len, if is_short { seen() } else { Seen::default() })
    }

    /// COMPAT: an intset that became too long for one is a hashtable for good, though with the
    /// texts behind its integers it would be a listpack; test
    /// `integers_before_texts_may_make_a_hashtable`.
    fn encoding_for(&self, len: usize, seen: Seen) -> Encoding {
        if !seen.has_text {
            return self.intset_of(len);
        }
        match self.intset_of(seen.ints_first) {
            Encoding::Intset => self.listpack_with(len.saturating_sub(1), seen.longest),
            other => other,
        }
    }
}

/// What decides the encoding of members that are added one by one.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Integers before the first text.
    ints_first: usize,
    has_text: bool,
    /// The bytes of the longest member.
    longest: usize,
}

impl Seen {
    fn with(self, member: Element<'_>) -> Seen {
        let is_int = matches!(member, Element::Int(_));
        Seen {
            ints_first: self.ints_first + usize::from(is_int && !self.has_text),
            has_text: self.has_text || !is_int,
            longest: self.longest.max(member.with_bytes(<[u8]>::len)),
        }
    }
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
