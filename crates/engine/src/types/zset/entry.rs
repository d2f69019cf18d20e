//! One member with its score, and its stored form: the score's (see `score.rs`), then the
//! member's (see `types/element.rs`). Runs of entries are kept in order of score, then of text.

use super::range::Probe;
use super::score::{self, Side, SortedForm, StoredScore};
use crate::types::element::{self, Element, Stored};
use std::cmp::Ordering;

/// A member and its score, which is never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<'a> {
    pub score: f64,
    pub member: Element<'a>,
}

impl Pair<'_> {
    /// COMPAT: a listpack has no -0; test `a_listpack_has_no_negative_zero`.
    pub fn as_in_listpack(self) -> Self {
        Pair { score: self.score + 0.0, ..self }
    }

    /// The order of a sorted set. COMPAT: -0 and 0 are one score; test `zeros_are_one_score`.
    #[inline]
    pub fn compare(&self, other: &Pair<'_>) -> Ordering {
        compare_scores(self.score, other.score)
            .then_with(|| compare_members(self.member, other.member))
    }
}

#[inline]
pub fn compare_scores(one: f64, other: f64) -> Ordering {
    // Not NaN, so one of three.
    if one < other {
        Ordering::Less
    } else if one > other {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// By text: 10 stands before 9, however they are stored.
#[inline]
pub fn compare_members(one: Element<'_>, other: Element<'_>) -> Ordering {
    match (one, other) {
        (Element::Bytes(one), Element::Bytes(other)) => one.cmp(other),
        (Element::Int(one), Element::Int(other)) if one == other => Ordering::Equal,
        _ => one.with_bytes(|one| other.with_bytes(|other| one.cmp(other))),
    }
}

/// The first bytes of a member's text as a number that sorts as they do.
#[inline]
pub fn prefix(member: Element<'_>) -> u64 {
    member.with_bytes(|text| match text.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..text.len()].copy_from_slice(text);
            u64::from_be_bytes(padded)
        }
    })
}

/// A pair's stored form, in pieces so that the member is not copied to build it.
pub struct Entry<'a> {
    score: StoredScore,
    member: Stored<'a>,
}

impl<'a> Entry<'a> {
    pub fn new(pair: Pair<'a>) -> Self {
        Entry { score: StoredScore::new(pair.score), member: Stored::new(pair.member) }
    }

    /// Of a member whose form is there already.
    #[inline]
    pub fn of(score: f64, member: Stored<'a>) -> Self {
        Entry { score: StoredScore::new(score), member }
    }

    pub fn bytes(&self) -> usize {
        self.score.as_bytes().len() + self.member.bytes()
    }

    pub fn pieces(&self) -> [&[u8]; 3] {
        let [head, payload] = self.member.pieces();
        [self.score.as_bytes(), head, payload]
    }

    /// Hands over the pieces one by one.
    #[inline]
    pub fn append_with(&self, mut append: impl FnMut(&[u8])) {
        self.pieces().iter().for_each(|piece| append(piece));
    }
}

/// The pair that starts `run`, which is known to be sound, and the bytes of its form.
#[inline]
pub fn decode(run: &[u8]) -> (Pair<'_>, usize) {
    let (score, head) = score::decode(run);
    let (member, tail) = element::decode(&run[head..]);
    (Pair { score, member }, head + tail)
}

/// Bytes of the form that starts `run`.
#[inline]
pub fn entry_bytes(run: &[u8]) -> usize {
    let head = score::form_bytes(run);
    head + element::stored_bytes(&run[head..])
}

/// The pairs of a run, in order.
#[derive(Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    pub fn new(run: &'a [u8]) -> Self {
        Entries { rest: run }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Leaves `count` entries out.
    pub fn skip_entries(mut self, count: usize) -> Self {
        for _ in 0..count {
            self.rest = &self.rest[entry_bytes(self.rest)..];
        }
        self
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Pair<'a>;

    #[inline]
    fn next(&mut self) -> Option<Pair<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (pair, bytes) = decode(self.rest);
        self.rest = &self.rest[bytes..];
        Some(pair)
    }
}

/// Where an entry lies in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub at: usize,
    pub bytes: usize,
    /// How many entries stand before it.
    pub index: usize,
    pub score: f64,
}

impl Found {
    pub fn end(&self) -> usize {
        self.at + self.bytes
    }
}

/// Looks for a member in a run, by its stored form.
#[inline]
pub fn find(run: &[u8], wanted: &Stored<'_>) -> Option<Found> {
    let needle = wanted.needle();
    let (mut rest, mut index) = (run, 0);
    while !rest.is_empty() {
        let (_, member) = rest.split_at(score::form_bytes(rest));
        let bytes = rest.len() - member.len() + element::stored_bytes(member);
        if needle.starts(member) {
            let (at, score) = (run.len() - rest.len(), score::decode(rest).0);
            return Some(Found { at, bytes, index, score });
        }
        rest = &rest[bytes..];
        index += 1;
    }
    None
}

/// A boundary between two entries of a run: its offset, and how many entries stand before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    pub at: usize,
    pub index: usize,
}

/// The end of those entries at the start of a run that stand before a point.
pub fn spot(run: &[u8], probe: &Probe<'_>) -> Spot {
    // What the point is about is asked once, not for each entry.
    match *probe {
        Probe::Below(bound) => spot_where(run, |score, _| score < bound),
        Probe::NotAbove(bound) => spot_where(run, |score, _| score <= bound),
        Probe::LexMin(_) | Probe::LexMax(_) | Probe::Pair(_) => spot_where(run, |score, member| {
            probe.is_past_score(score, || element::decode(member).0)
        }),
    }
}

/// The end of those entries at the start of a run that pass by their score and their member's form.
#[inline(always)]
fn spot_where(run: &[u8], passes: impl Fn(f64, &[u8]) -> bool) -> Spot {
    let (mut rest, mut index) = (run, 0);
    while !rest.is_empty() {
        let (score, head) = score::decode(rest);
        let member = &rest[head..];
        if !passes(score, member) {
            break;
        }
        rest = &member[element::stored_bytes(member)..];
        index += 1;
    }
    Spot { at: run.len() - rest.len(), index }
}

/// Where an entry belongs in a run: as [`spot`] has it, by the entry's form as far as that tells.
pub fn place(run: &[u8], pair: &Pair<'_>, form: &Entry<'_>) -> usize {
    let Some(sorted) = SortedForm::of(&form.score) else {
        return spot(run, &Probe::Pair(*pair)).at;
    };
    let mut rest = run;
    while !rest.is_empty() {
        match sorted.side(rest) {
            Side::Before => {}
            Side::Unclear if decode(rest).0.compare(pair) == Ordering::Less => {}
            Side::Unclear | Side::Behind => break,
        }
        rest = &rest[entry_bytes(rest)..];
    }
    run.len() - rest.len()
}

/// The offset behind the first `count` entries of a run.
#[inline]
pub fn offset(run: &[u8], count: usize) -> usize {
    run.len() - Entries::new(run).skip_entries(count).rest().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_sort_as_their_text() {
        let parse = |text: &'static str| Element::parse(text.as_bytes());
        let mut members = ["10", "9", "-5", "100", "1", "", "a", "1a", "-", "-50"].map(parse);
        members.sort_by(|one, other| compare_members(*one, *other));
        let sorted: Vec<Vec<u8>> = members.iter().map(|member| member.to_vec()).collect();
        let mut expected = sorted.clone();
        expected.sort();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn prefixes_never_contradict_the_order() {
        let texts = ["", "a", "a\0", "abcdefgh", "abcdefgi", "abcdefghi", "b", "12345678", "2"];
        for one in texts.map(|text| Element::parse(text.as_bytes())) {
            for other in texts.map(|text| Element::parse(text.as_bytes())) {
                let by_prefix = prefix(one).cmp(&prefix(other));
                let whole = compare_members(one, other);
                assert!(by_prefix == whole || by_prefix == Ordering::Equal, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn entries_are_found_by_member_alone() {
        let mut run = Vec::new();
        let texts: [&[u8]; 5] = [b"a", b"7", b"ab", b"", b"-300"];
        for (at, text) in texts.iter().enumerate() {
            let member = Element::parse(text);
            Entry::new(Pair { score: at as f64 * 200.5, member })
                .append_with(|piece| run.extend_from_slice(piece));
        }
        for (at, text) in texts.iter().enumerate() {
            let found = find(&run, &Stored::new(Element::parse(text))).unwrap();
            assert_eq!((found.index, found.score), (at, at as f64 * 200.5));
            assert_eq!(offset(&run, at), found.at);
        }
        assert_eq!(find(&run, &Stored::new(Element::Bytes(b"b"))), None);
        assert_eq!(Entries::new(&run).count(), texts.len());
    }
}
