//! Memory: its limit, eviction, expiry and how it is given back.

use super::super::directive::Directive as D;
use super::super::spec::*;

// DIFFERS: those of Valkey, and Redis's two by the last change.
const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lrm",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lrm",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

pub(super) const SPECS: &[Spec] = &[
    memory(D::MaxMemory, 0, 0..=u64::MAX, "Memory for data; 0 is no limit"),
    choice(D::MaxMemoryPolicy, "noeviction", POLICIES, "What to remove when memory runs out"),
    int(D::MaxMemorySamples, 5, 1..=64, "Keys looked at to choose one to evict"),
    int(
        D::MaxMemoryEvictionTenacity,
        10,
        0..=100,
        "How long a command may be delayed by eviction, from least to most",
    ),
    int(D::LfuLogFactor, 10, 0..=INT_MAX, "How slowly the use counter of LFU grows"),
    int(D::LfuDecayTime, 1, 0..=INT_MAX, "Minutes until the use counter of LFU halves"),
    int(D::ActiveExpireEffort, 1, 1..=10, "Work spent on finding expired keys").without_effect(),
    flag(D::LazyfreeLazyEviction, true, "Free evicted values in background").without_effect(),
    flag(D::LazyfreeLazyExpire, true, "Free expired values in background").without_effect(),
    flag(D::LazyfreeLazyServerDel, true, "Free values that a command overwrites in background")
        .without_effect(),
    flag(D::LazyfreeLazyUserDel, true, "DEL frees in background, like UNLINK").without_effect(),
    flag(
        D::LazyfreeLazyUserFlush,
        true,
        "FLUSHALL and FLUSHDB free in background unless SYNC is given",
    )
    .without_effect(),
    flag(D::ActiveRehashing, true, "Grow tables in idle time too").without_effect(),
    flag(D::ActiveDefrag, false, "Move values to undo fragmentation").only(&["no"]),
    memory(
        D::ActiveDefragIgnoreBytes,
        100 * MEBIBYTE,
        1..=LONG_MAX,
        "Fragmentation that is let be",
    )
    .without_effect(),
    int(
        D::ActiveDefragThresholdLower,
        10,
        0..=1000,
        "Percent of fragmentation at which defragmentation starts",
    )
    .without_effect(),
    int(
        D::ActiveDefragThresholdUpper,
        100,
        0..=1000,
        "Percent of fragmentation at which it works hardest",
    )
    .without_effect(),
    int(D::ActiveDefragCycleMin, 1, 1..=99, "Least percent of CPU for it").without_effect(),
    int(D::ActiveDefragCycleMax, 25, 1..=99, "Most percent of CPU for it").without_effect(),
    int(D::ActiveDefragCycleUs, 500, 0..=100_000, "Microseconds of one step of defragmentation")
        .without_effect(),
    int(
        D::ActiveDefragMaxScanFields,
        1000,
        1..=i64::MAX,
        "Elements of a collection that one step moves",
    )
    .without_effect(),
    flag(D::JemallocBgThread, true, "Give freed memory back from a thread").without_effect(),
    flag(D::KeyMemoryHistograms, false, "Count memory per type in INFO").without_effect(),
];
