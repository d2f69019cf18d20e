//! One step of a scan over what is not kept in the order of hashes: a cell's records, or a packed
//! collection. They are shown in that order all the same, so that a step can end anywhere.

use smallvec::SmallVec;

/// Elements that are put in order without an allocation.
const SORTED_USUAL: usize = 64;

/// Shows elements in the order of their positions, beginning at `from`: `count` of them, and those
/// that share the position of the last. Returns the position to go on from, or none if nothing is
/// left.
///
/// An element's position never changes, so whoever goes on from there misses none that stays,
/// whatever comes and goes in between and whatever form the collection takes.
pub(crate) fn show_in_order<T>(
    elements: impl Iterator<Item = (u32, T)>,
    (from, count): (u32, usize),
    mut visit: impl FnMut(T),
) -> Option<u32> {
    let mut left: SmallVec<[(u32, T); SORTED_USUAL]> =
        elements.filter(|(position, _)| *position >= from).collect();
    left.sort_unstable_by_key(|(position, _)| *position);
    let mut shown = 0;
    let mut last = None;
    for (position, element) in left {
        if shown >= count.max(1) && last != Some(position) {
            return Some(position);
        }
        visit(element);
        (shown, last) = (shown + 1, Some(position));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown, and where to go on.
    fn step(elements: &[(u32, char)], from: u32, count: usize) -> (String, Option<u32>) {
        let mut shown = String::new();
        let next = show_in_order(elements.iter().copied(), (from, count), |c| shown.push(c));
        (shown, next)
    }

    #[test]
    fn a_step_ends_where_it_was_asked_to() {
        let elements = [(7, 'c'), (0, 'a'), (u32::MAX, 'd'), (3, 'b')];
        assert_eq!(step(&elements, 0, 2), ("ab".into(), Some(7)));
        assert_eq!(step(&elements, 7, 2), ("cd".into(), None));
        assert_eq!(step(&elements, 1, 1), ("b".into(), Some(7)));
        assert_eq!(step(&elements, 8, 1), ("d".into(), None));
        assert_eq!(step(&elements, 0, 0), ("a".into(), Some(3)));
        assert_eq!(step(&[], 0, 5), (String::new(), None));
    }

    #[test]
    fn what_shares_a_position_is_shown_in_one_step() {
        let (shown, next) = step(&[(1, 'a'), (5, 'b'), (5, 'c'), (5, 'd'), (9, 'e')], 0, 2);
        assert_eq!((shown.len(), next), (4, Some(9)));
    }
}
