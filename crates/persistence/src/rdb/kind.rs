//! The numbers of the format.

/// Kinds of values, up to those that Redis and Valkey number alike.
pub const STRING: u8 = 0;
pub const LIST: u8 = 1;
pub const SET: u8 = 2;
/// With scores as text.
pub const ZSET: u8 = 3;
pub const HASH: u8 = 4;
pub const ZSET_2: u8 = 5;
pub const MODULE_OLD: u8 = 6;
pub const MODULE: u8 = 7;
pub const HASH_ZIPMAP: u8 = 9;
pub const LIST_ZIPLIST: u8 = 10;
pub const SET_INTSET: u8 = 11;
pub const ZSET_ZIPLIST: u8 = 12;
pub const HASH_ZIPLIST: u8 = 13;
pub const LIST_QUICKLIST: u8 = 14;
pub const STREAM: u8 = 15;
pub const HASH_LISTPACK: u8 = 16;
pub const ZSET_LISTPACK: u8 = 17;
pub const LIST_QUICKLIST_2: u8 = 18;
pub const STREAM_2: u8 = 19;
pub const SET_LISTPACK: u8 = 20;
pub const STREAM_3: u8 = 21;

/// Valkey's hash with deadlines of fields.
pub const VALKEY_HASH_TTL: u8 = 22;

/// Redis's hashes with deadlines of fields; the first two as 7.4's candidates had them.
pub const REDIS_HASH_TTL_EARLY: u8 = 22;
pub const REDIS_HASH_TTL_LISTPACK_EARLY: u8 = 23;
pub const REDIS_HASH_TTL: u8 = 24;
pub const REDIS_HASH_TTL_LISTPACK: u8 = 25;
/// With what is remembered of producers.
pub const REDIS_STREAM_4: u8 = 26;
/// With entries that were given back.
pub const REDIS_STREAM_5: u8 = 27;

/// What may stand where a kind does.
pub const OP_REDIS_KEY_META: u8 = 243;
pub const OP_SLOT_INFO: u8 = 244;
pub const OP_FUNCTION: u8 = 245;
pub const OP_FUNCTION_OLD: u8 = 246;
pub const OP_MODULE_AUX: u8 = 247;
pub const OP_IDLE: u8 = 248;
pub const OP_FREQ: u8 = 249;
pub const OP_AUX: u8 = 250;
pub const OP_RESIZE: u8 = 251;
pub const OP_EXPIRY_MS: u8 = 252;
pub const OP_EXPIRY_SECONDS: u8 = 253;
pub const OP_SELECT: u8 = 254;
pub const OP_END: u8 = 255;

/// Lengths: two bits say how many bytes follow, or that it is none.
pub const LENGTH_14_BITS: u8 = 0x40;
pub const LENGTH_32_BITS: u8 = 0x80;
pub const LENGTH_64_BITS: u8 = 0x81;
pub const ENCODED: u8 = 0xc0;
/// What is in place of a string's length: an integer of so many bytes, or compressed bytes.
pub const ENCODED_INT_8: u8 = 0;
pub const ENCODED_INT_16: u8 = 1;
pub const ENCODED_INT_32: u8 = 2;
pub const ENCODED_LZF: u8 = 3;

/// Parts of a module's value.
pub const MODULE_END: u64 = 0;
pub const MODULE_SIGNED: u64 = 1;
pub const MODULE_UNSIGNED: u64 = 2;
pub const MODULE_FLOAT: u64 = 3;
pub const MODULE_DOUBLE: u64 = 4;
pub const MODULE_STRING: u64 = 5;

/// Nodes of a list: one long element, or a listpack.
pub const NODE_PLAIN: u64 = 1;
pub const NODE_PACKED: u64 = 2;
