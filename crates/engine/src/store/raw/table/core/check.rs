//! What must be true of a table at any time, for tests.

use super::*;

impl Core {
    /// Checks every invariant that can be checked from inside; what all entries measure.
    pub(in super::super) fn check(
        &self,
        hasher: KeyHasher,
        measure: impl Fn(RawEntry) -> usize,
    ) -> usize {
        let mut measured = 0;
        assert_eq!(
            self.directory.len(),
            if self.len == 0 && self.directory.is_empty() { 0 } else { 1 << self.depth }
        );
        let (mut len, mut expires, mut objects, mut deepest) = (0, 0, 0, 0);
        let (mut slots, mut blocks) = (0, 0);
        for index in self.segments() {
            let segment = self.segment(index);
            let run = self.run_of(index);
            assert!(run.start == index);
            assert!(
                self.directory[run.clone()].iter().all(|&other| other == self.directory[index])
            );
            deepest += usize::from(segment.depth == self.depth);
            slots += segment.cost();
            let (mut own_len, mut own_expires) = (0, 0);
            for (spot, word) in segment.words() {
                let entry = word.entry();
                let hash = hasher.hash(entry.key());
                assert_eq!(fingerprint_of(hash), word.fingerprint());
                assert!(run.contains(&self.index_of(hash)));
                assert!(segment.is_reachable(spot, word));
                assert_eq!(entry.expiry().is_some(), word.has_expiry());
                if let Some(at_ms) = entry.expiry() {
                    assert!(segment.expiry_min <= at_ms);
                    assert!(word.is_soon() || at_ms >= segment.horizon);
                    own_expires += 1;
                } else {
                    assert!(!word.is_soon());
                }
                own_len += 1;
                objects += usize::from(entry.label() == Label::OBJECT);
                blocks += block_cost(entry.block_bytes());
                measured += measure(entry);
            }
            assert_eq!(own_len, segment.len());
            assert_eq!(own_expires, usize::from(segment.expires));
            assert!(
                own_expires == 0
                    || self.sweep.due_ms <= segment.due_ms()
                    || self.sweep.position.is_some()
            );
            len += own_len;
            expires += own_expires;
        }
        let mine = (self.len, self.expires, self.objects, self.deepest);
        assert_eq!(mine, (len, expires, objects, deepest));
        assert_eq!((self.account.slots, self.account.blocks), (slots, blocks));
        measured
    }
}
