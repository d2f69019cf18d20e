//! Streams, transactions, publish and subscribe, scripts and functions.

use super::{alone, timed};
use crate::workloads::scripts::QUOTA;
use crate::workloads::{Count, KEYS, Preparation, Workload};

/// Six entries and two groups; one consumer of the first has two entries unacknowledged.
static STREAMS: Preparation = Preparation::new(
    "XADD st:{s} 1-1 f {v:16} ; XADD st:{s} 2-1 f {v:16} ; XADD st:{s} 3-1 f {v:16} ; \
     XADD st:{s} 4-1 f {v:16} ; XADD st:{s} 5-1 f {v:16} ; XADD st:{s} 6-1 f {v:16} ; \
     XGROUP CREATE st:{s} g 0 ; XGROUP CREATE st:{s} h 0 ; \
     XREADGROUP GROUP g c COUNT 2 STREAMS st:{s} >",
    Count::Keys,
)
.pipeline(10);
static READER: Preparation =
    Preparation::new("SCRIPT LOAD {script:get}", Count::Times(1)).pipeline(1);
static READERS: Preparation =
    Preparation::new("FUNCTION LOAD REPLACE {script:get_lib}", Count::Times(1)).pipeline(1);

const ON_STREAMS: &[&Preparation] = &[&STREAMS];
const ON_KEYS: &[&Preparation] = &[&KEYS];

pub(super) static TIMED: &[Workload] = &[
    timed("xadd", "XADD stream:{i:1000} MAXLEN ~ 1000 * f1 {v:16} f2 {v:16}", &[]),
    timed("xlen", "XLEN st:{r}", ON_STREAMS),
    timed("xrange", "XRANGE st:{r} - +", ON_STREAMS),
    timed("xrevrange", "XREVRANGE st:{r} + -", ON_STREAMS),
    timed("xread", "XREAD COUNT 4 STREAMS st:{r} 0", ON_STREAMS),
    timed("xreadgroup", "XREADGROUP GROUP g c STREAMS st:{r} 0", ON_STREAMS),
    timed("xgroup|create", "XGROUP CREATE made:{s} g $ MKSTREAM ; DEL made:{s}", &[]),
    timed(
        "xgroup|destroy",
        "XGROUP CREATE made:{s} g $ MKSTREAM ; XGROUP DESTROY made:{s} g ; DEL made:{s}",
        &[],
    ),
    timed(
        "xgroup|createconsumer",
        "XGROUP CREATECONSUMER st:{k} g d ; XGROUP DELCONSUMER st:{k} g d",
        ON_STREAMS,
    ),
    timed(
        "xgroup|delconsumer",
        "XGROUP CREATECONSUMER st:{k} g e ; XGROUP DELCONSUMER st:{k} g e",
        ON_STREAMS,
    ),
    timed("xgroup|setid", "XGROUP SETID st:{r} h 0", ON_STREAMS),
    timed("xgroup|help", "XGROUP HELP", &[]),
    timed("xack", "XCLAIM st:{k} h c 0 1-1 FORCE JUSTID ; XACK st:{k} h 1-1", ON_STREAMS),
    timed("xdel", "XADD made:{s} 1-1 f {v:16} ; XDEL made:{s} 1-1 ; DEL made:{s}", &[]),
    timed("xpending", "XPENDING st:{r} g", ON_STREAMS),
    timed("xclaim", "XCLAIM st:{r} g c 0 1-1", ON_STREAMS),
    timed("xautoclaim", "XAUTOCLAIM st:{r} g c 0 0 COUNT 2", ON_STREAMS),
    timed("xtrim", "XADD trimmed:{k} * f {v:16} ; XTRIM trimmed:{k} MAXLEN 8", &[]),
    timed("xsetid", "XSETID st:{r} 100-1", ON_STREAMS),
    timed("xinfo|stream", "XINFO STREAM st:{r}", ON_STREAMS),
    timed("xinfo|groups", "XINFO GROUPS st:{r}", ON_STREAMS),
    timed("xinfo|consumers", "XINFO CONSUMERS st:{r} g", ON_STREAMS),
    timed("xinfo|help", "XINFO HELP", &[]),
    timed("multi", "MULTI ; GET key:{k} ; EXEC", ON_KEYS),
    timed("exec", "MULTI ; SET key:{k} {v:32} ; EXEC", ON_KEYS),
    timed("discard", "MULTI ; GET key:{k} ; DISCARD", ON_KEYS),
    timed("watch", "WATCH key:{k} ; UNWATCH", ON_KEYS),
    timed("unwatch", "UNWATCH", &[]),
    timed("subscribe", "SUBSCRIBE news:{k} ; UNSUBSCRIBE news:{k}", &[]),
    timed("unsubscribe", "UNSUBSCRIBE news", &[]),
    timed("psubscribe", "PSUBSCRIBE news:{k}* ; PUNSUBSCRIBE news:{k}*", &[]),
    timed("punsubscribe", "PUNSUBSCRIBE news*", &[]),
    timed("ssubscribe", "SSUBSCRIBE news:{k} ; SUNSUBSCRIBE news:{k}", &[]),
    timed("sunsubscribe", "SUNSUBSCRIBE news", &[]),
    timed("publish", "PUBLISH news:{r} {v:32}", &[]),
    timed("spublish", "SPUBLISH news:{r} {v:32}", &[]),
    timed("pubsub|channels", "PUBSUB CHANNELS", &[]),
    timed("pubsub|numsub", "PUBSUB NUMSUB news", &[]),
    timed("pubsub|numpat", "PUBSUB NUMPAT", &[]),
    timed("pubsub|shardchannels", "PUBSUB SHARDCHANNELS", &[]),
    timed("pubsub|shardnumsub", "PUBSUB SHARDNUMSUB news", &[]),
    timed("pubsub|help", "PUBSUB HELP", &[]),
    timed("eval", "EVAL {script:get} 1 key:{r}", ON_KEYS),
    timed("eval_ro", "EVAL_RO {script:get} 1 key:{r}", ON_KEYS),
    timed(
        "evalsha",
        "EVALSHA d3c21d0c2b9ca22f82737626a27bcaf5d288f99f 1 key:{r}",
        &[&KEYS, &READER],
    ),
    timed(
        "evalsha_ro",
        "EVALSHA_RO d3c21d0c2b9ca22f82737626a27bcaf5d288f99f 1 key:{r}",
        &[&KEYS, &READER],
    ),
    timed("fcall", "FCALL fixed_window_allow 1 fc:{r} 100 60", &[&QUOTA]),
    timed("fcall_ro", "FCALL_RO get_one 1 key:{r}", &[&KEYS, &READERS]),
    timed("script|load", "SCRIPT LOAD {script:get}", &[]),
    timed("script|exists", "SCRIPT EXISTS d3c21d0c2b9ca22f82737626a27bcaf5d288f99f", &[&READER]),
    timed("script|show", "SCRIPT SHOW d3c21d0c2b9ca22f82737626a27bcaf5d288f99f", &[&READER]),
    timed("script|help", "SCRIPT HELP", &[]),
    timed("function|load", "FUNCTION LOAD REPLACE {script:get_lib}", &[]),
    alone(
        "function|delete",
        "FUNCTION LOAD REPLACE {script:quota_lib} ; FUNCTION DELETE quota_lib",
        &[],
    ),
    timed("function|list", "FUNCTION LIST", &[&READERS]),
    timed("function|dump", "FUNCTION DUMP", &[&READERS]),
    timed("function|stats", "FUNCTION STATS", &[&READERS]),
    timed("function|help", "FUNCTION HELP", &[]),
];
