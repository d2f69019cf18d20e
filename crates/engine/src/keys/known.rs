//! Keys whose location was found before they are asked for.

use crate::keyspace::Location;

/// A key, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct KnownKey<'a> {
    pub key: &'a [u8],
    pub location: Location,
}

/// Whether two keys are the same. As a rule they are the same argument of the same call.
#[inline(always)]
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// A short key that a script's call was checked for, so that its handler need not hash it again.
pub(super) struct LastKey {
    bytes: [u8; LastKey::BYTES_MAX],
    /// 0: there is none.
    len: usize,
    location: Location,
}

impl LastKey {
    const BYTES_MAX: usize = 32;
    pub(super) const NONE: LastKey =
        LastKey { bytes: [0; Self::BYTES_MAX], len: 0, location: Location { shard: 0, hash: 0 } };

    pub(super) fn set(&mut self, key: &[u8], location: Location) {
        self.len = 0;
        if let Some(bytes) = self.bytes.get_mut(..key.len()) {
            bytes.copy_from_slice(key);
            (self.len, self.location) = (key.len(), location);
        }
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<Location> {
        let is_it = self.len > 0 && is_same(&self.bytes[..self.len], key);
        is_it.then_some(self.location)
    }
}
