//! Building a tree of entries that come in order: leaves from left to right, then the nodes above
//! them level by level.

use super::super::entry::{Entry, Pair};
use super::inner::{Child, FANOUT_BUILT, Inner};
use super::leaf::{BUILT_BYTES_MAX, Leaf};
use super::{NONE, Tree};

pub struct Builder {
    tree: Tree,
    /// The leaf that is being filled, and its entries.
    open: u32,
    run: Vec<u8>,
    count: u32,
}

impl Builder {
    pub fn new() -> Self {
        let tree = Tree::default();
        let open = tree.root;
        Builder { tree, open, run: Vec::with_capacity(BUILT_BYTES_MAX), count: 0 }
    }

    /// Adds a pair behind all others; the leaf that it went to.
    pub fn push(&mut self, pair: Pair<'_>) -> u32 {
        let entry = Entry::new(pair);
        if self.count > 0 && self.run.len() + entry.bytes() > BUILT_BYTES_MAX {
            self.close();
            let id = self.tree.leaves.add(Leaf { prev: self.open, ..Leaf::new() });
            self.tree.leaves.at_mut(self.open).next = id;
            self.open = id;
        }
        entry.append_with(|piece| self.run.extend_from_slice(piece));
        self.count += 1;
        self.tree.len += 1;
        self.open
    }

    fn close(&mut self) {
        let leaves = &mut self.tree.leaves;
        leaves.splice(self.open, (0, 0), &[&self.run]);
        leaves.at_mut(self.open).count = self.count;
        self.run.clear();
        self.count = 0;
    }

    pub fn finish(mut self) -> Tree {
        self.close();
        let tree = &mut self.tree;
        tree.last = self.open;
        let mut level: Vec<Child> = Vec::new();
        let mut id = tree.first;
        while id != NONE && tree.len > 0 {
            let count = u64::from(tree.leaves.at(id).count);
            level.push(Child { id, count, start: tree.start_of(id) });
            id = tree.leaves.at(id).next;
        }
        while level.len() > 1 {
            level = tree.add_level(&level);
        }
        if let [root] = level[..] {
            tree.root = root.id;
        }
        self.tree
    }
}

impl Tree {
    /// Puts a level of nodes above these children.
    fn add_level(&mut self, children: &[Child]) -> Vec<Child> {
        self.height += 1;
        // Of about one size, so that the last is not a stub.
        let nodes = children.len().div_ceil(FANOUT_BUILT);
        let share = children.len().div_ceil(nodes);
        let mut level = Vec::with_capacity(nodes);
        for own in children.chunks(share) {
            let mut node = Inner::new(self.height);
            own.iter().for_each(|child| node.push(*child));
            let (count, start) = (node.count(), node.start(0));
            let id = self.inners.add(node);
            own.iter().for_each(|child| self.set_parent(self.height - 1, child.id, id));
            level.push(Child { id, count, start });
        }
        level
    }
}
