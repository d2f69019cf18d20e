//! Members: what collections hold. Ids of users, posts, events and the like.

use crate::error::{Error, Result};
use crate::request::{Request, ToArg};
use std::fmt;

/// How long a member may be: it stands for something, and is not the thing.
pub const MEMBER_BYTES_MAX: usize = 256;

/// The id of something in a collection.
///
/// ```
/// use russet::Member;
///
/// assert_eq!(Member::from("ann").as_str(), Some("ann"));
/// assert_eq!(Member::from(17u64), Member::from("17"));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(Vec<u8>);

impl Member {
    /// As it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// None if it is not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// As it is stored.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Refuses those that are empty or too long.
    pub(crate) fn checked(self) -> Result<Self> {
        if self.0.is_empty() || self.0.len() > MEMBER_BYTES_MAX {
            return Err(Error::invalid(format!("a member has 1 to {MEMBER_BYTES_MAX} bytes")));
        }
        Ok(self)
    }

    /// Which of so many shards it belongs to. Never changes: what is stored depends on it.
    pub(crate) fn shard(&self, shards: u32) -> u32 {
        // FNV-1a, folded: the low bits alone are weak.
        let hash = self.0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        // The remainder is below a u32.
        ((hash ^ (hash >> 32)) % u64::from(shards.max(1))) as u32
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Member {
    fn from(id: &T) -> Self {
        Member(id.as_ref().to_vec())
    }
}

impl From<String> for Member {
    fn from(id: String) -> Self {
        Member(id.into_bytes())
    }
}

impl From<Vec<u8>> for Member {
    fn from(id: Vec<u8>) -> Self {
        Member(id)
    }
}

impl From<u64> for Member {
    fn from(id: u64) -> Self {
        Member(id.to_string().into_bytes())
    }
}

impl AsRef<[u8]> for Member {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ToArg for Member {
    fn add_to(&self, request: &mut Request) {
        request.push(&self.0);
    }
}

impl PartialEq<&str> for Member {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// Says nothing of its content, which comes from users.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_spread_over_shards_and_stay_there() {
        let mut counts = [0_u32; 8];
        for id in 0..8000_u64 {
            counts[Member::from(id).shard(8) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        // As stored by every version.
        assert_eq!(Member::from("ann").shard(64), 33);
        assert_eq!(Member::from("ann").shard(1), 0);
    }

    #[test]
    fn members_have_a_length() {
        assert!(Member::from("").checked().is_err());
        assert!(Member::from(&[0; MEMBER_BYTES_MAX]).checked().is_ok());
        assert!(Member::from(&[0; MEMBER_BYTES_MAX + 1]).checked().is_err());
    }
}
