//! Every limit of the system, by name. A limit that is a directive has its default here.

/// Databases that SELECT can reach.
pub const DATABASES: usize = 16;
/// Longest bulk string of a request (`proto-max-bulk-len`).
pub const BULK_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Most arguments of one request.
pub const ARGUMENTS_MAX: usize = 1024 * 1024;
/// Longest inline request, and longest header line of a multibulk request.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
/// Shortest string that is not copied: an argument of this length, unless it comes in one piece
/// with its request, is read into a buffer of its own, which can become the value; and a stored
/// string is sent from where it is.
pub const LONG_STRING_BYTES: usize = 64 * 1024;
/// Most shards of a keyspace: `ShardSet` is a bitmap of this many bits.
pub const SHARDS_MAX: usize = 512;
/// Slots of a cluster.
pub const SLOTS: u16 = 16384;
/// Longest text that is read as a long double, less one: longer is refused unread.
pub const LONG_DOUBLE_TEXT_BYTES: usize = 5 * 1024;
/// Runs of `*` in a glob pattern that can still match when more of the pattern follows each.
pub const GLOB_STARS_MAX: usize = 1000;
/// Events that one look at the poller brings.
pub const LOOP_EVENTS_MAX: usize = 1024;
/// Threads beyond one per loop, for loops whose own thread is inside a long command.
pub const SPARE_THREADS_MAX: usize = 64;
/// Most unsent output of a client whose class has no `client-output-buffer-limit`.
pub const OUTPUT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Most bytes of one request, whatever `client-query-buffer-limit` allows: as much as offsets of 32
/// bits reach, with which logs are loaded, and room for the end of what was read last.
pub const REQUEST_BYTES_MAX: usize = (4 << 30) - (64 << 20);
/// Elements that one command draws at random with repetition (SRANDMEMBER with a negative count).
pub const SAMPLES_MAX: u64 = 64 * 1024 * 1024;
