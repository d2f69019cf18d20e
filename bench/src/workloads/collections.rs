//! Workloads on hashes, sets, sorted sets, geo indexes, HyperLogLogs and streams, and SORT.

use super::{Count, Pattern, Preparation, Target, Workload};

pub static HASHES: Preparation = Preparation::new(
    "HSET hash:{s} f0 {v:16} f1 {v:16} f2 {v:16} f3 {v:16} f4 {v:16} f5 {v:16} f6 {v:16} f7 {v:16} \
     f8 {v:16} f9 {v:16}",
    Count::Keys,
);
pub static SETS: Preparation =
    Preparation::new("SADD set:{s} m00 m10 m20 m30 m40 m50 m60 m70 m80 m90", Count::Keys);
pub static ZSETS: Preparation = Preparation::new(
    "ZADD zset:{s} {i:1000} m00 {i:1000} m02 {i:1000} m04 {i:1000} m06 {i:1000} m08 {i:1000} m10 \
     {i:1000} m12 {i:1000} m14 {i:1000} m16 {i:1000} m18",
    Count::Keys,
);
static BIG_ZSET: Preparation =
    Preparation::new("ZADD bigzset {s} m:{s}", Count::PerMillion(1_000_000)).in_order();
/// Half of its members are those of the first.
static OTHER_ZSET: Preparation =
    Preparation::new("ZADD bigzset:b {s} m:{s} {s} n:{s}", Count::PerMillion(500_000));
static BIG_SET: Preparation = Preparation::new("SADD bigset:a m:{s:6}", Count::PerMillion(100_000));
/// Half of its members are those of the first.
static OTHER_SET: Preparation =
    Preparation::new("SADD bigset:b m:{s:6} n:{s:6}", Count::PerMillion(50_000));
static POINTS: Preparation =
    Preparation::new("GEOADD places {lon} {lat} p:{s}", Count::PerMillion(100_000));
static SORTED_NUMBERS: Preparation =
    Preparation::new("RPUSH numbers {n}", Count::PerMillion(100_000));
static SORTED_TEXTS: Preparation =
    Preparation::new("RPUSH texts {x:12}", Count::PerMillion(100_000));
pub static SKETCHES: Preparation =
    Preparation::new("PFADD hll:{i:1000} {x:16}", Count::PerMillion(500_000));
static BIG_STREAM: Preparation = Preparation::new(
    "XADD bigstream {s}-1 f1 {v:16} f2 {v:16} f3 {i:1000}",
    Count::PerMillion(1_000_000),
)
.in_order();

static ON_BIG_ZSET: &[&Preparation] = &[&BIG_ZSET];

const WRITES: Target = Target::Sixteen(0.55);
const READS: Target = Target::Sixteen(0.6);
/// Most of what such a request costs is the network.
const RANKED: Target = Target::Any(0.85);

/// A request on one of many small keys.
const fn small(
    name: &'static str,
    request: &'static str,
    needs: &'static [&'static Preparation],
    target: Target,
) -> Workload {
    Workload { name, request, needs, pattern: Pattern::Pipelined, target }
}

/// A request on the sorted set of a million.
const fn ranked(name: &'static str, request: &'static str) -> Workload {
    Workload { name, request, needs: ON_BIG_ZSET, pattern: Pattern::Single, target: RANKED }
}

/// A costly request, and the share of Valkey's cost that it may take.
const fn heavy(
    name: &'static str,
    request: &'static str,
    needs: &'static [&'static Preparation],
    (connections, limit): (usize, f64),
) -> Workload {
    let pattern = Pattern::Heavy { connections };
    Workload { name, request, needs, pattern, target: Target::Any(limit) }
}

pub(super) static WORKLOADS: &[Workload] = &[
    small("HSET", "HSET hash:{r} f{i:10} {v:16}", &[&HASHES], WRITES),
    small("SADD", "SADD set:{r} m{i:100}", &[&SETS], WRITES),
    small("ZADD", "ZADD zset:{r} {i:100000} m{i:20}", &[&ZSETS], WRITES),
    small("HGET", "HGET hash:{r} f{i:10}", &[&HASHES], READS),
    small("SISMEMBER", "SISMEMBER set:{r} m{i:100}", &[&SETS], READS),
    small("ZSCORE", "ZSCORE zset:{r} m{i:20}", &[&ZSETS], READS),
    small(
        "XADD",
        "XADD stream:{i:1000} MAXLEN ~ 1000 * f1 {v:16} f2 {v:16} f3 {i:1000}",
        &[],
        READS,
    ),
    small("HGETALL10", "HGETALL hash:{r}", &[&HASHES], READS),
    small("ZRANGE10-REV", "ZRANGE zset:{r} 0 9 REV WITHSCORES", &[&ZSETS], READS),
    ranked("ZRANK-1M", "ZRANK bigzset m:{r}"),
    ranked("ZADD-1M", "ZADD bigzset {i:1000000} m:{r}"),
    ranked("ZRANGE100-1M", "ZRANGE bigzset 500000 500099"),
    ranked("ZRANGEBYSCORE100-1M", "ZRANGE bigzset {i:999000} +inf BYSCORE LIMIT 0 100"),
    heavy("SINTER-100K", "SINTER bigset:a bigset:b", &[&BIG_SET, &OTHER_SET], (1, 0.6)),
    heavy("SINTERCARD-100K", "SINTERCARD 2 bigset:a bigset:b", &[&BIG_SET, &OTHER_SET], (1, 0.6)),
    heavy(
        "SUNIONSTORE-100K",
        "SUNIONSTORE out bigset:a bigset:b",
        &[&BIG_SET, &OTHER_SET],
        (1, 0.6),
    ),
    heavy(
        "ZUNIONSTORE-1M",
        "ZUNIONSTORE out 2 bigzset bigzset:b",
        &[&BIG_ZSET, &OTHER_ZSET],
        (1, 0.4),
    ),
    heavy(
        "GEOSEARCH-200KM",
        "GEOSEARCH places FROMLONLAT {lon} {lat} BYRADIUS 200 km ASC",
        &[&POINTS],
        (10, 0.6),
    ),
    heavy(
        "GEOSEARCH-1000KM",
        "GEOSEARCH places FROMLONLAT {lon} {lat} BYRADIUS 1000 km ASC COUNT 10",
        &[&POINTS],
        (10, 0.6),
    ),
    heavy("SORT-100K", "SORT numbers LIMIT 0 10", &[&SORTED_NUMBERS], (1, 0.5)),
    heavy("SORT-ALPHA-100K", "SORT texts ALPHA LIMIT 0 10", &[&SORTED_TEXTS], (1, 0.5)),
    heavy("PFCOUNT2", "PFCOUNT hll:{i:1000} hll:{i:1000}", &[&SKETCHES], (50, 0.7)),
    heavy(
        "PFMERGE3",
        "PFMERGE merged hll:{i:1000} hll:{i:1000} hll:{i:1000}",
        &[&SKETCHES],
        (50, 0.7),
    ),
    heavy("XRANGE100", "XRANGE bigstream 500000 + COUNT 100", &[&BIG_STREAM], (10, 0.7)),
];
