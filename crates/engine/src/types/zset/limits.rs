//! When a sorted set may be packed, and what OBJECT ENCODING calls it. The two are apart: we keep
//! one in its table entry only while it is small, Redis says `listpack` up to its own limits.

/// Longest packed sorted set of any number of members that stays inside its table entry, header
/// included.
pub const PACKED_BYTES_MAX: usize = 1024;
/// The same for one of few members, which are looked through quickly however long they are.
pub const PACKED_FEW_BYTES_MAX: usize = 6 * 1024;
const PACKED_FEW_MAX: usize = 128;
/// What a changed score may add to an entry.
pub const SCORE_GROWTH_BYTES_MAX: usize = 8;

/// `zset-max-listpack-entries` and `zset-max-listpack-value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZsetLimits {
    pub entries_max: usize,
    pub member_bytes_max: usize,
}

impl Default for ZsetLimits {
    fn default() -> Self {
        ZsetLimits { entries_max: 128, member_bytes_max: 64 }
    }
}

/// A number of members and the length of the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub count: usize,
    pub member_bytes_max: usize,
}

impl Extent {
    pub fn of<'m>(members: impl Iterator<Item = &'m [u8]>) -> Self {
        members.fold(Extent::default(), |sum, member| Extent {
            count: sum.count + 1,
            member_bytes_max: sum.member_bytes_max.max(member.len()),
        })
    }
}

/// Whether so many members that take up `bytes` together, header included, may be packed.
pub fn fits_packed(bytes: usize, count: usize) -> bool {
    bytes <= PACKED_BYTES_MAX || bytes <= PACKED_FEW_BYTES_MAX && count <= PACKED_FEW_MAX
}

impl ZsetLimits {
    /// Whether Redis keeps a sorted set of this extent as a listpack.
    pub fn allow(self, extent: Extent) -> bool {
        extent.count <= self.entries_max && extent.member_bytes_max <= self.member_bytes_max
    }
}
