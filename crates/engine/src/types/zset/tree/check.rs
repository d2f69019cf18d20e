//! What must hold of every tree, for tests.

use super::inner::FANOUT;
use super::{NONE, Start, Tree};
use std::cmp::Ordering;

impl Tree {
    /// Panics unless counts, starts, links, order and sizes are right.
    pub fn check(&self) {
        self.leaves.check_bytes();
        let mut leaves = Vec::new();
        let (count, _) = self.check_node(self.height, self.root, NONE, &mut leaves);
        assert_eq!(count, self.len as u64);
        assert_eq!((self.first, self.last), (leaves[0], leaves[leaves.len() - 1]));
        let mut prev = NONE;
        for (at, id) in leaves.iter().enumerate() {
            let leaf = self.leaves.at(*id);
            assert_eq!(leaf.prev, prev);
            assert_eq!(leaf.next, leaves.get(at + 1).copied().unwrap_or(NONE));
            prev = *id;
        }
        let pairs: Vec<_> = leaves.iter().flat_map(|id| self.entries(*id)).collect();
        for pair in pairs.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    fn check_node(&self, level: u8, id: u32, parent: u32, leaves: &mut Vec<u32>) -> (u64, Start) {
        if level == 0 {
            let leaf = self.leaves.at(id);
            assert_eq!(leaf.parent, parent);
            assert_eq!(self.entries(id).count(), leaf.count as usize);
            assert!(!leaf.is_overfull(), "a leaf of {} bytes", leaf.run.len());
            assert!(leaf.count > 0 || self.len == 0, "only an empty tree has an empty leaf");
            leaves.push(id);
            let empty = Start { leaf: id, score: 0.0, prefix: 0 };
            let start = if leaf.count > 0 { self.start_of(id) } else { empty };
            return (u64::from(leaf.count), start);
        }
        let node = self.inners.at(id);
        assert_eq!((node.level, node.parent), (level, parent));
        assert!((1..=FANOUT).contains(&node.len()));
        assert!(parent != NONE || node.len() > 1, "a root of one child");
        for at in 0..node.len() {
            let child = node.child(at);
            let found = self.check_node(level - 1, child.id, id, leaves);
            assert_eq!(found, (child.count, child.start));
        }
        (node.count(), node.start(0))
    }
}
