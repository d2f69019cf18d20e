//! Every limit of the system, by name. A limit that is a directive has its default here.

/// Databases that SELECT can reach.
pub const DATABASES: usize = 16;
/// Longest bulk string of a request (`proto-max-bulk-len`).
pub const BULK_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Most arguments of one request.
pub const ARGUMENTS_MAX: usize = 1024 * 1024;
/// Longest inline request, and longest header line of a multibulk request.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
/// Most shards of a keyspace: `ShardSet` is a bitmap of this many bits.
pub const SHARDS_MAX: usize = 256;
