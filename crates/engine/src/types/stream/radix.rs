//! How many nodes Redis's radix tree would need for the blocks' keys: XINFO shows it.

use super::id::StreamId;

const KEY_BYTES: usize = 16;

/// The nodes of a compressed radix tree over keys in ascending order: a leaf for each key, one node
/// for each place where keys part, and one for each stretch without a choice.
pub fn nodes(keys: impl Iterator<Item = StreamId>) -> usize {
    let mut tree = Tree::default();
    let mut previous: Option<[u8; KEY_BYTES]> = None;
    for key in keys.map(StreamId::to_be_bytes) {
        if let Some(before) = previous {
            let shared = before.iter().zip(&key).take_while(|(a, b)| a == b).count();
            tree.part_at(shared);
        }
        previous = Some(key);
    }
    // An empty tree is its root.
    if previous.is_some() { tree.finish() } else { 1 }
}

#[derive(Default)]
struct Tree {
    /// The depths of the partings above the key that was last seen, from the root down.
    partings: Vec<usize>,
    /// Where that key parted from the one before it.
    left: Option<usize>,
    nodes: usize,
}

impl Tree {
    /// A node at `depth` under the parting at `above`, and the stretch between them.
    fn add(&mut self, depth: usize, above: Option<usize>) {
        let start = above.map_or(0, |above| above + 1);
        self.nodes += 1 + usize::from(depth > start);
    }

    /// The next key shares so many bytes with the last.
    fn part_at(&mut self, shared: usize) {
        self.add(KEY_BYTES, Some(self.left.map_or(shared, |left| left.max(shared))));
        while let Some(depth) = self.partings.pop_if(|depth| *depth > shared) {
            let above = self.partings.last().map_or(shared, |above| shared.max(*above));
            self.add(depth, Some(above));
        }
        if self.partings.last() != Some(&shared) {
            self.partings.push(shared);
        }
        self.left = Some(shared);
    }

    fn finish(mut self) -> usize {
        self.add(KEY_BYTES, self.left);
        while let Some(depth) = self.partings.pop() {
            self.add(depth, self.partings.last().copied());
        }
        self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::nodes;
    use crate::types::stream::StreamId;

    /// The counts are those of a real server.
    #[test]
    fn nodes_are_counted_as_redis_does() {
        let ids = |ids: &[(u64, u64)]| {
            nodes(
                ids.iter().map(|&(ms, seq)| StreamId::new(ms, seq)).collect::<Vec<_>>().into_iter(),
            )
        };
        assert_eq!(ids(&[]), 1);
        assert_eq!(ids(&[(1, 1)]), 2);
        assert_eq!(ids(&[(1, 1), (1, 2)]), 4);
    }
}
