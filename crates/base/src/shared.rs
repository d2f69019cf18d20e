//! Bytes with more than one owner, and the bound on what a buffer keeps between its uses.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// A long string that a value, a request and replies that wait to be sent own together: it is
/// copied only to change it while another owner still has it.
pub type SharedBytes = Arc<Vec<u8>>;

/// Gives the room of an empty or nearly empty list back beyond `kept_max` elements: a buffer that
/// serves one call after another must not stay as large as the largest call has made it.
#[inline]
pub fn shrink_beyond<T>(list: &mut Vec<T>, kept_max: usize) {
    if list.capacity() > kept_max {
        list.shrink_to(kept_max);
    }
}

/// An empty list with the room of `list`, for elements of the same size: those of another lifetime.
#[inline]
pub fn reuse<T, U>(mut list: Vec<T>) -> Vec<U> {
    list.clear();
    // The standard library collects into the room of the list that it takes the elements from.
    list.into_iter().map(|_| unreachable!("the list is empty")).collect()
}

/// As [`shrink_beyond`], for a list that is in use: it keeps room for so many bytes more.
#[inline]
pub fn shrink_spare<T>(list: &mut Vec<T>, spare_bytes_max: usize) {
    shrink_beyond(list, list.len() + spare_bytes_max / size_of::<T>());
}

/// Bytes of a list's room that is not in use.
#[inline]
pub fn spare_bytes<T>(list: &Vec<T>) -> usize {
    (list.capacity() - list.len()) * size_of::<T>()
}

/// As [`shrink_beyond`], for a queue.
#[inline]
pub fn shrink_queue_beyond<T>(queue: &mut VecDeque<T>, kept_max: usize) {
    if queue.capacity() > kept_max {
        queue.shrink_to(kept_max);
    }
}

/// As [`shrink_beyond`], for a table from which entries were taken. It shrinks when few of its
/// places are used, so that the cost of it is a part of what filling them cost.
#[inline]
pub fn shrink_table_beyond<K: Eq + Hash, V, S: BuildHasher>(
    table: &mut HashMap<K, V, S>,
    kept_max: usize,
) {
    if table.capacity() > kept_max && table.len() < table.capacity() / 8 {
        table.shrink_to(kept_max.max(table.len() * 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_used_again_with_its_room() {
        let mut text: Vec<&'static str> = Vec::with_capacity(100);
        text.push("a");
        let room = text.as_ptr().addr();
        let again: Vec<&str> = reuse(text);
        assert_eq!((again.len(), again.capacity(), again.as_ptr().addr()), (0, 100, room));
    }

    #[test]
    fn a_list_keeps_what_it_holds_and_little_more() {
        let mut list: Vec<u64> = (0..1000).collect();
        shrink_beyond(&mut list, 16);
        assert_eq!(list.len(), 1000);
        list.truncate(3);
        shrink_beyond(&mut list, 16);
        assert!((3..=16).contains(&list.capacity()), "{}", list.capacity());
        let mut small = Vec::<u64>::with_capacity(8);
        shrink_beyond(&mut small, 16);
        assert_eq!(small.capacity(), 8);
        let mut used: Vec<u64> = (0..1000).collect();
        used.truncate(500);
        shrink_spare(&mut used, 100);
        assert_eq!(used.len(), 500);
        assert!(spare_bytes(&used) <= 100, "{}", used.capacity());
        let mut queue: VecDeque<u64> = (0..1000).collect();
        queue.clear();
        shrink_queue_beyond(&mut queue, 16);
        assert!(queue.capacity() <= 16, "{}", queue.capacity());
    }

    #[test]
    fn a_table_shrinks_with_what_it_holds() {
        let mut table: HashMap<u64, u64> = (0..10_000).map(|at| (at, at)).collect();
        for at in 0..9_990 {
            table.remove(&at);
            shrink_table_beyond(&mut table, 16);
            assert!(table.capacity() < 16 + 10 * table.len().max(8), "{at}: {}", table.capacity());
        }
        assert_eq!(table.len(), 10);
    }
}
