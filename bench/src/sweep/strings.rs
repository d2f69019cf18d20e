//! Strings, bitmaps, HyperLogLogs and the keyspace.

use super::{alone, timed};
use crate::workloads::collections::SKETCHES;
use crate::workloads::{COUNTERS, Count, KEYS, LISTS, Preparation, Workload};

/// Keys that end, in a day.
static VOLATILE: Preparation = Preparation::new("SET volatile:{s} {v:32} EX 100000", Count::Keys);
static BITS: Preparation = Preparation::new("SET bits:{s} {v:128}", Count::Keys);

const ON_KEYS: &[&Preparation] = &[&KEYS];
const ON_COUNTERS: &[&Preparation] = &[&COUNTERS];
const ON_VOLATILE: &[&Preparation] = &[&VOLATILE];
const ON_BITS: &[&Preparation] = &[&BITS];
const ON_SKETCHES: &[&Preparation] = &[&SKETCHES];

pub(super) static TIMED: &[Workload] = &[
    timed("get", "GET key:{r}", ON_KEYS),
    timed("set", "SET key:{r} {v:32}", ON_KEYS),
    timed("getex", "GETEX volatile:{r} PX 100000000", ON_VOLATILE),
    timed("getdel", "SET taken:{k} {v:32} ; GETDEL taken:{k}", &[]),
    timed("getset", "GETSET key:{r} {v:32}", ON_KEYS),
    timed("setnx", "SETNX key:{r} {v:32}", ON_KEYS),
    timed("setex", "SETEX volatile:{r} 100000 {v:32}", ON_VOLATILE),
    timed("psetex", "PSETEX volatile:{r} 100000000 {v:32}", ON_VOLATILE),
    timed("mget", "MGET 10x[ key:{r} ]", ON_KEYS),
    timed("mset", "MSET 10x[ key:{r} {v:32} ]", ON_KEYS),
    timed("msetnx", "MSETNX 10x[ key:{r} {v:32} ]", ON_KEYS),
    timed("msetex", "MSETEX 2 volatile:{r} {v:32} volatile:{r} {v:32} EX 100000", ON_VOLATILE),
    timed("append", "APPEND appended:{r} {v:8}", &[]),
    timed("strlen", "STRLEN key:{r}", ON_KEYS),
    timed("getrange", "GETRANGE key:{r} 4 11", ON_KEYS),
    timed("substr", "SUBSTR key:{r} 4 11", ON_KEYS),
    timed("setrange", "SETRANGE key:{r} 4 {v:8}", ON_KEYS),
    timed("incr", "INCR ctr:{r}", ON_COUNTERS),
    timed("decr", "DECR ctr:{r}", ON_COUNTERS),
    timed("incrby", "INCRBY ctr:{r} 3", ON_COUNTERS),
    timed("decrby", "DECRBY ctr:{r} 3", ON_COUNTERS),
    timed("incrbyfloat", "INCRBYFLOAT float:{r} 0.5", &[]),
    timed("lcs", "LCS key:{r} key:{r}", ON_KEYS),
    timed("delifeq", "SET taken:{k} mine ; DELIFEQ taken:{k} mine", &[]),
    timed("setbit", "SETBIT bits:{r} 5{i:100} 1", ON_BITS),
    timed("getbit", "GETBIT bits:{r} 5{i:100}", ON_BITS),
    timed("bitcount", "BITCOUNT bits:{r}", ON_BITS),
    timed("bitpos", "BITPOS bits:{r} 1", ON_BITS),
    timed("bitop", "BITOP AND bits:out:{k} bits:{r} bits:{r}", ON_BITS),
    timed("bitfield", "BITFIELD bits:{r} INCRBY u8 100 1", ON_BITS),
    timed("bitfield_ro", "BITFIELD_RO bits:{r} GET u8 100", ON_BITS),
    timed("pfadd", "PFADD hll:{i:1000} {x:16}", ON_SKETCHES),
    timed("pfcount", "PFCOUNT hll:{i:1000}", ON_SKETCHES),
    timed("pfmerge", "PFMERGE merged:{i:100} hll:{i:1000} hll:{i:1000}", ON_SKETCHES),
    timed("del", "SET taken:{k} {v:32} ; DEL taken:{k}", &[]),
    timed("unlink", "SET taken:{k} {v:32} ; UNLINK taken:{k}", &[]),
    timed("exists", "EXISTS key:{r}", ON_KEYS),
    timed("type", "TYPE key:{r}", ON_KEYS),
    timed("touch", "TOUCH key:{r}", ON_KEYS),
    timed("randomkey", "RANDOMKEY", ON_KEYS),
    timed("dbsize", "DBSIZE", ON_KEYS),
    timed("scan", "SCAN 0", ON_KEYS),
    alone("keys", "KEYS key:*0000", ON_KEYS),
    timed("rename", "SET renamed:{s} {v:32} ; RENAME renamed:{s} other:{k}", &[]),
    timed("renamenx", "SET renamed:{s} {v:32} ; RENAMENX renamed:{s} n:{s} ; DEL n:{s}", &[]),
    timed("copy", "COPY key:{r} copied:{k} REPLACE", ON_KEYS),
    timed("move", "SET m:{k} {v:32} ; MOVE m:{k} 1 ; SELECT 1 ; DEL m:{k} ; SELECT 0", &[]),
    timed("dump", "DUMP key:{r}", ON_KEYS),
    timed(
        "restore",
        "RESTORE restored:{r} 0 {hex:00067275737365740a00cf4721ece292a251} REPLACE",
        &[],
    ),
    timed("expire", "EXPIRE volatile:{r} 100000", ON_VOLATILE),
    timed("pexpire", "PEXPIRE volatile:{r} 100000000", ON_VOLATILE),
    timed("expireat", "EXPIREAT volatile:{r} 4102444800", ON_VOLATILE),
    timed("pexpireat", "PEXPIREAT volatile:{r} 4102444800000", ON_VOLATILE),
    timed("ttl", "TTL volatile:{r}", ON_VOLATILE),
    timed("pttl", "PTTL volatile:{r}", ON_VOLATILE),
    timed("expiretime", "EXPIRETIME volatile:{r}", ON_VOLATILE),
    timed("pexpiretime", "PEXPIRETIME volatile:{r}", ON_VOLATILE),
    timed("persist", "PEXPIRE volatile:{k} 100000000 ; PERSIST volatile:{k}", ON_VOLATILE),
    timed("sort", "SORT list:{r} ALPHA", &[&LISTS]),
    timed("sort_ro", "SORT_RO list:{r} ALPHA", &[&LISTS]),
    timed("object|encoding", "OBJECT ENCODING key:{r}", ON_KEYS),
    timed("object|idletime", "OBJECT IDLETIME key:{r}", ON_KEYS),
    timed("object|refcount", "OBJECT REFCOUNT key:{r}", ON_KEYS),
    timed("object|help", "OBJECT HELP", &[]),
    timed("wait", "WAIT 0 0", &[]),
    timed("waitaof", "WAITAOF 0 0 0", &[]),
];
