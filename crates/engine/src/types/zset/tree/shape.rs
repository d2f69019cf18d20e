//! Keeping the tree in shape: leaves and nodes that grew too long are cut, those that became short
//! join a neighbour.

use super::inner::{Child, FANOUT, FANOUT_JOINED_MAX, FANOUT_MIN, Inner};
use super::leaf::{JOINED_BYTES_MAX, LEAF_BYTES_MIN};
use super::{NONE, Tree};

/// Entries that went from one leaf to another: all that are in `to`, or the last `count` of it.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub from: u32,
    pub to: u32,
    pub count: usize,
}

impl Tree {
    /// Cuts a leaf if it is too long. Both parts may have to be cut again.
    pub fn split(&mut self, id: u32) -> Option<Moved> {
        let leaf = self.leaves.at(id);
        if !leaf.is_overfull() {
            return None;
        }
        // At the end of the tree entries come in order more often than not: the left part stays
        // full then.
        let spot = if leaf.next == NONE { leaf.before_last() } else { leaf.middle() };
        let (parent, next) = (leaf.parent, leaf.next);
        let mut right = self.leaves.cut(id, spot);
        (right.prev, right.next, right.parent) = (id, next, parent);
        let count = right.count as usize;
        let new_id = self.leaves.add(right);
        self.leaves.at_mut(id).next = new_id;
        match next {
            NONE => self.last = new_id,
            next => self.leaves.at_mut(next).prev = new_id,
        }
        if parent == NONE {
            self.grow_root();
        }
        let parent = self.leaves.at(id).parent;
        let child = Child { id: new_id, count: count as u64, start: self.start_of(new_id) };
        let at = self.inners.at(parent).position(id);
        self.inners.at_mut(parent).change_count(at, -(count as i64));
        self.insert_child(parent, at + 1, child);
        Some(Moved { from: id, to: new_id, count })
    }

    /// Puts a node above the root, which becomes its only child.
    fn grow_root(&mut self) {
        let mut node = Inner::new(self.height + 1);
        let count = self.len as u64;
        let start = match self.height {
            0 => self.start_of(self.first),
            _ => self.inners.at(self.root).start(0),
        };
        node.push(Child { id: self.root, count, start });
        let id = self.inners.add(node);
        self.set_parent(self.height, self.root, id);
        self.root = id;
        self.height += 1;
    }

    pub(super) fn set_parent(&mut self, level: u8, id: u32, parent: u32) {
        if level == 0 {
            self.leaves.at_mut(id).parent = parent;
        } else {
            self.inners.at_mut(id).parent = parent;
        }
    }

    /// Adds a child, never as the first, whose entries its parents count already.
    fn insert_child(&mut self, parent: u32, at: usize, child: Child) {
        let node = self.inners.at(parent);
        let level = node.level;
        if node.len() < FANOUT {
            self.inners.at_mut(parent).insert(at, child);
            return self.set_parent(level - 1, child.id, parent);
        }
        let new_id = self.split_inner(parent, at);
        let left_len = self.inners.at(parent).len();
        let (owner, at) = if at <= left_len { (parent, at) } else { (new_id, at - left_len) };
        self.inners.at_mut(owner).insert(at, child);
        self.set_parent(level - 1, child.id, owner);
        self.recount(owner);
    }

    /// Sets the counts above a node, which were taken while a child was missing.
    fn recount(&mut self, id: u32) {
        let (mut child, mut parent) = (id, self.inners.at(id).parent);
        while parent != NONE {
            let count = self.inners.at(child).count();
            let node = self.inners.at_mut(parent);
            let at = node.position(child);
            node.set_count(at, count);
            (child, parent) = (parent, node.parent);
        }
    }

    /// Cuts a full node, where a child is about to be put `at`; the new one is to its right.
    fn split_inner(&mut self, id: u32, at: usize) -> u32 {
        // As with leaves: what grows at its end stays full.
        let cut = if at == FANOUT { FANOUT - FANOUT_MIN } else { FANOUT / 2 };
        let right = self.inners.at_mut(id).cut(cut);
        let (level, start, count) = (right.level, right.start(0), right.count());
        let new_id = self.inners.add(right);
        for at in 0..self.inners.at(new_id).len() {
            let child = self.inners.at(new_id).id(at);
            self.set_parent(level - 1, child, new_id);
        }
        if self.inners.at(id).parent == NONE {
            self.grow_root();
        }
        let parent = self.inners.at(id).parent;
        let own_count = self.inners.at(id).count();
        let child_at = self.inners.at(parent).position(id);
        self.inners.at_mut(parent).set_count(child_at, own_count);
        self.insert_child(parent, child_at + 1, Child { id: new_id, count, start });
        new_id
    }

    /// Looks after a leaf from which something was removed: an empty one goes, a short one joins a
    /// neighbour. What has moved, if anything.
    pub fn rebalance(&mut self, id: u32) -> Option<Moved> {
        let leaf = self.leaves.at(id);
        if leaf.count == 0 {
            self.drop_leaf(id);
            return None;
        }
        if leaf.run.len() >= LEAF_BYTES_MIN || leaf.parent == NONE {
            return None;
        }
        let (prev, next, parent) = (leaf.prev, leaf.next, leaf.parent);
        let own = leaf.run.len();
        let fits = |other: u32| {
            other != NONE && {
                let other = self.leaves.at(other);
                other.parent == parent && other.run.len() + own <= JOINED_BYTES_MAX
            }
        };
        let (left, right) = if fits(next) {
            (id, next)
        } else if fits(prev) {
            (prev, id)
        } else {
            return None;
        };
        Some(self.join(left, right))
    }

    /// Moves the entries of a leaf to the end of its left neighbour, which has the same parent.
    fn join(&mut self, left: u32, right: u32) -> Moved {
        let run = std::mem::take(&mut self.leaves.at_mut(right).run);
        let count = self.leaves.at(right).count;
        let end = self.leaves.at(left).run.len();
        self.leaves.splice(left, (end, 0), &[&run]);
        self.leaves.at_mut(left).count += count;
        // Handed back, for its room is still counted.
        self.leaves.at_mut(right).run = run;
        let node = self.inners.at_mut(self.leaves.at(left).parent);
        let at = node.position(left);
        node.change_count(at, i64::from(count));
        self.drop_leaf(right);
        Moved { from: right, to: left, count: count as usize }
    }

    /// Takes a leaf out of the tree. Only a tree of one leaf may keep an empty one.
    fn drop_leaf(&mut self, id: u32) {
        let leaf = self.leaves.at(id);
        let (prev, next, parent) = (leaf.prev, leaf.next, leaf.parent);
        if parent == NONE {
            return;
        }
        match prev {
            NONE => self.first = next,
            prev => self.leaves.at_mut(prev).next = next,
        }
        match next {
            NONE => self.last = prev,
            next => self.leaves.at_mut(next).prev = prev,
        }
        self.leaves.free(id);
        self.remove_child(parent, id);
    }

    /// Forgets a child whose entries are gone or were given to a neighbour under the same parent:
    /// the counts above are right.
    fn remove_child(&mut self, parent: u32, child: u32) {
        let node = self.inners.at_mut(parent);
        let at = node.position(child);
        node.remove(at);
        let (above, len) = (node.parent, node.len());
        if len == 0 {
            self.inners.free(parent);
            if above == NONE {
                return self.start_over();
            }
            return self.remove_child(above, parent);
        }
        if at == 0 {
            let start = self.inners.at(parent).start(0);
            self.lift_start(parent, above, start);
        }
        if above == NONE {
            self.shrink_root();
        } else if len < FANOUT_MIN {
            self.join_inner(parent, above);
        }
    }

    /// The last leaf is gone: an empty one takes its place.
    fn start_over(&mut self) {
        *self = Tree::default();
    }

    /// A root with a single child gives way to it.
    fn shrink_root(&mut self) {
        while self.height > 0 && self.inners.at(self.root).len() == 1 {
            let child = self.inners.at(self.root).id(0);
            self.inners.free(self.root);
            self.root = child;
            self.height -= 1;
            self.set_parent(self.height, child, NONE);
        }
    }

    /// Lets a node with few children join a neighbour, if they fit.
    fn join_inner(&mut self, id: u32, above: u32) {
        let node = self.inners.at(above);
        let at = node.position(id);
        let len = self.inners.at(id).len();
        let fits = |other: u32| self.inners.at(other).len() + len <= FANOUT_JOINED_MAX;
        let (left_at, right_at) = if at + 1 < node.len() && fits(node.id(at + 1)) {
            (at, at + 1)
        } else if at > 0 && fits(node.id(at - 1)) {
            (at - 1, at)
        } else {
            return;
        };
        let (left, right) = (node.id(left_at), node.id(right_at));
        for at in 0..self.inners.at(right).len() {
            let child = self.inners.at(right).child(at);
            let level = self.inners.at(right).level;
            self.inners.at_mut(left).push(child);
            self.set_parent(level - 1, child.id, left);
        }
        let count = self.inners.at(left).count();
        let node = self.inners.at_mut(above);
        node.set_count(left_at, count);
        node.set_count(right_at, 0);
        self.inners.free(right);
        self.remove_child(above, right);
    }
}
