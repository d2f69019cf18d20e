//! Keys whose location was found before they are asked for.

use crate::keyspace::Location;

/// A key, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct KnownKey<'a> {
    pub key: &'a [u8],
    pub location: Location,
}

/// A short key that a script's call was checked for, so that its handler need not hash it again.
pub(super) struct LastKey {
    bytes: [u8; LastKey::BYTES_MAX],
    len: usize,
    location: Location,
}

impl LastKey {
    const BYTES_MAX: usize = 32;

    /// `None` if the key is too long to be kept.
    pub(super) fn new(key: &[u8], location: Location) -> Option<LastKey> {
        let mut bytes = [0; Self::BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(LastKey { bytes, len: key.len(), location })
    }

    pub(super) fn location_of(&self, key: &[u8]) -> Option<Location> {
        (&self.bytes[..self.len] == key).then_some(self.location)
    }
}
