//! Clients that have read keys, for client-side caching: fetched ahead and noted.

use super::{Keys, KnownKey};
use crate::tracked::Reader;

impl Keys<'_> {
    /// As [`Keys::prefetch_held`], for what is known of the readers of these keys.
    #[inline(never)]
    pub fn prefetch_readers(&mut self, count: usize) {
        let known = &self.known[..count];
        for &KnownKey { location, .. } in known {
            self.locked.shared(location.shard as usize).tracked.prefetch_slot(location.hash);
        }
        for &KnownKey { location, .. } in known {
            self.locked.shared(location.shard as usize).tracked.prefetch_record(location.hash);
        }
    }

    /// A client has read a key whose shard is locked: else nothing is noted. True if nobody had
    /// read it before.
    pub fn note_reader(&mut self, key: &[u8], reader: Reader) -> bool {
        let location = self.location(key);
        let shard = location.shard as usize;
        self.locked.held().contains(shard)
            && self.locked.shard(shard).tracked.add((location.hash, key), reader)
    }
}
