//! Lists, sets, sorted sets, hashes and geo indexes.

use super::timed;
use crate::workloads::collections::{HASHES, SETS, ZSETS};
use crate::workloads::{Count, LISTS, Preparation, Workload};

/// Eight different elements.
static LETTERS: Preparation = Preparation::new("RPUSH abc:{s} a b c d e f g h", Count::Keys);
/// Members of one score.
static EQUALS: Preparation =
    Preparation::new("ZADD lex:{s} 0 a 0 b 0 c 0 d 0 e 0 f 0 g 0 h", Count::Keys);
/// Hashes whose fields end.
static ENDING: Preparation = Preparation::new(
    "HSET ending:{s} f0 {v:16} f1 {v:16} f2 {v:16} f3 {v:16} ; \
     HEXPIRE ending:{s} 100000 FIELDS 1 f1",
    Count::Keys,
);
/// A thousand members, placed again and again.
static PLACES: Preparation =
    Preparation::new("GEOADD geo {lon} {lat} p:{i:1000}", Count::Times(20_000));

const ON_LISTS: &[&Preparation] = &[&LISTS];
const ON_LETTERS: &[&Preparation] = &[&LETTERS];
const ON_SETS: &[&Preparation] = &[&SETS];
const ON_ZSETS: &[&Preparation] = &[&ZSETS];
const ON_EQUALS: &[&Preparation] = &[&EQUALS];
const ON_HASHES: &[&Preparation] = &[&HASHES];
const ON_ENDING: &[&Preparation] = &[&ENDING];
const ON_PLACES: &[&Preparation] = &[&PLACES];

pub(super) static TIMED: &[Workload] = &[
    timed("lpush", "LPUSH pushed:{r} {v:16}", &[]),
    timed("rpush", "RPUSH pushed:{r} {v:16}", &[]),
    timed("lpushx", "LPUSHX pushed:{r} {v:16}", &[]),
    timed("rpushx", "RPUSHX pushed:{r} {v:16}", &[]),
    timed("lpop", "RPUSH list:{k} {v:16} ; LPOP list:{k}", ON_LISTS),
    timed("rpop", "LPUSH list:{k} {v:16} ; RPOP list:{k}", ON_LISTS),
    timed("llen", "LLEN list:{r}", ON_LISTS),
    timed("lrange", "LRANGE list:{r} 0 -1", ON_LISTS),
    timed("ltrim", "RPUSH list:{k} {v:16} ; LTRIM list:{k} 1 -1", ON_LISTS),
    timed("lindex", "LINDEX list:{r} 3", ON_LISTS),
    timed("lset", "LSET list:{r} 3 {v:16}", ON_LISTS),
    timed("linsert", "LINSERT abc:{k} AFTER d x ; LREM abc:{k} 1 x", ON_LETTERS),
    timed("lrem", "RPUSH abc:{k} x ; LREM abc:{k} -1 x", ON_LETTERS),
    timed("lpos", "LPOS abc:{r} e", ON_LETTERS),
    timed("lmove", "LMOVE list:{k} list:{k} LEFT RIGHT", ON_LISTS),
    timed("rpoplpush", "RPOPLPUSH list:{k} list:{k}", ON_LISTS),
    timed("lmpop", "RPUSH list:{k} {v:16} ; LMPOP 2 none:{k} list:{k} LEFT", ON_LISTS),
    timed("blpop", "RPUSH list:{k} {v:16} ; BLPOP list:{k} 0", ON_LISTS),
    timed("brpop", "LPUSH list:{k} {v:16} ; BRPOP list:{k} 0", ON_LISTS),
    timed("blmove", "BLMOVE list:{k} list:{k} LEFT RIGHT 0", ON_LISTS),
    timed("brpoplpush", "BRPOPLPUSH list:{k} list:{k} 0", ON_LISTS),
    timed("blmpop", "RPUSH list:{k} {v:16} ; BLMPOP 0 2 none:{k} list:{k} LEFT", ON_LISTS),
    timed("sadd", "SADD set:{r} m{i:100}", ON_SETS),
    timed("srem", "SADD set:{k} x ; SREM set:{k} x", ON_SETS),
    timed("sismember", "SISMEMBER set:{r} m{i:100}", ON_SETS),
    timed("smismember", "SMISMEMBER set:{r} m00 m01 m10", ON_SETS),
    timed("scard", "SCARD set:{r}", ON_SETS),
    timed("smembers", "SMEMBERS set:{r}", ON_SETS),
    timed("spop", "SADD popped:{k} m{i:100} m{i:100} ; SPOP popped:{k}", &[]),
    timed("srandmember", "SRANDMEMBER set:{r}", ON_SETS),
    timed("smove", "SADD set:{k} x ; SMOVE set:{k} moved:{k} x", ON_SETS),
    timed("sscan", "SSCAN set:{r} 0", ON_SETS),
    timed("sinter", "SINTER set:{r} set:{r}", ON_SETS),
    timed("sunion", "SUNION set:{r} set:{r}", ON_SETS),
    timed("sdiff", "SDIFF set:{r} set:{r}", ON_SETS),
    timed("sinterstore", "SINTERSTORE set:out:{k} set:{r} set:{r}", ON_SETS),
    timed("sunionstore", "SUNIONSTORE set:out:{k} set:{r} set:{r}", ON_SETS),
    timed("sdiffstore", "SDIFFSTORE set:out:{k} set:{r} set:{r}", ON_SETS),
    timed("sintercard", "SINTERCARD 2 set:{r} set:{r}", ON_SETS),
    timed("zadd", "ZADD zset:{r} {i:100000} m{i:20}", ON_ZSETS),
    timed("zincrby", "ZINCRBY zset:{r} 1 m04", ON_ZSETS),
    timed("zrem", "ZADD zset:{k} 5 x ; ZREM zset:{k} x", ON_ZSETS),
    timed("zremrangebyrank", "ZADD zset:{k} -1 x ; ZREMRANGEBYRANK zset:{k} 0 0", ON_ZSETS),
    timed("zremrangebyscore", "ZADD zset:{k} -1 x ; ZREMRANGEBYSCORE zset:{k} -1 -1", ON_ZSETS),
    timed("zremrangebylex", "ZADD lex:{k} 0 x ; ZREMRANGEBYLEX lex:{k} [x +", ON_EQUALS),
    timed("zcard", "ZCARD zset:{r}", ON_ZSETS),
    timed("zscore", "ZSCORE zset:{r} m04", ON_ZSETS),
    timed("zmscore", "ZMSCORE zset:{r} m04 m05 m06", ON_ZSETS),
    timed("zrank", "ZRANK zset:{r} m04", ON_ZSETS),
    timed("zrevrank", "ZREVRANK zset:{r} m04", ON_ZSETS),
    timed("zcount", "ZCOUNT zset:{r} 100 900", ON_ZSETS),
    timed("zlexcount", "ZLEXCOUNT lex:{r} [b [g", ON_EQUALS),
    timed("zrange", "ZRANGE zset:{r} 0 -1", ON_ZSETS),
    timed("zrevrange", "ZREVRANGE zset:{r} 0 -1", ON_ZSETS),
    timed("zrangebyscore", "ZRANGEBYSCORE zset:{r} 100 900", ON_ZSETS),
    timed("zrevrangebyscore", "ZREVRANGEBYSCORE zset:{r} 900 100", ON_ZSETS),
    timed("zrangebylex", "ZRANGEBYLEX lex:{r} [b [g", ON_EQUALS),
    timed("zrevrangebylex", "ZREVRANGEBYLEX lex:{r} [g [b", ON_EQUALS),
    timed("zrangestore", "ZRANGESTORE zset:out:{k} zset:{r} 0 4", ON_ZSETS),
    timed("zpopmin", "ZADD zset:{k} -1 x ; ZPOPMIN zset:{k}", ON_ZSETS),
    timed("zpopmax", "ZADD zset:{k} 1e9 x ; ZPOPMAX zset:{k}", ON_ZSETS),
    timed("zmpop", "ZADD zset:{k} -1 x ; ZMPOP 2 none:{k} zset:{k} MIN", ON_ZSETS),
    timed("bzpopmin", "ZADD zset:{k} -1 x ; BZPOPMIN zset:{k} 0", ON_ZSETS),
    timed("bzpopmax", "ZADD zset:{k} 1e9 x ; BZPOPMAX zset:{k} 0", ON_ZSETS),
    timed("bzmpop", "ZADD zset:{k} -1 x ; BZMPOP 0 2 none:{k} zset:{k} MIN", ON_ZSETS),
    timed("zunion", "ZUNION 2 zset:{r} zset:{r}", ON_ZSETS),
    timed("zunionstore", "ZUNIONSTORE zset:out:{k} 2 zset:{r} zset:{r}", ON_ZSETS),
    timed("zinter", "ZINTER 2 zset:{r} zset:{r}", ON_ZSETS),
    timed("zinterstore", "ZINTERSTORE zset:out:{k} 2 zset:{r} zset:{r}", ON_ZSETS),
    timed("zintercard", "ZINTERCARD 2 zset:{r} zset:{r}", ON_ZSETS),
    timed("zdiff", "ZDIFF 2 zset:{r} lex:{r}", &[&ZSETS, &EQUALS]),
    timed("zdiffstore", "ZDIFFSTORE zset:out:{k} 2 zset:{r} lex:{r}", &[&ZSETS, &EQUALS]),
    timed("zrandmember", "ZRANDMEMBER zset:{r}", ON_ZSETS),
    timed("zscan", "ZSCAN zset:{r} 0", ON_ZSETS),
    timed("hset", "HSET hash:{r} f{i:10} {v:16}", ON_HASHES),
    timed("hmset", "HMSET hash:{r} f1 {v:16} f2 {v:16}", ON_HASHES),
    timed("hsetnx", "HSETNX hash:{r} f1 {v:16}", ON_HASHES),
    timed("hget", "HGET hash:{r} f{i:10}", ON_HASHES),
    timed("hmget", "HMGET hash:{r} f1 f2 f3", ON_HASHES),
    timed("hgetall", "HGETALL hash:{r}", ON_HASHES),
    timed("hkeys", "HKEYS hash:{r}", ON_HASHES),
    timed("hvals", "HVALS hash:{r}", ON_HASHES),
    timed("hlen", "HLEN hash:{r}", ON_HASHES),
    timed("hstrlen", "HSTRLEN hash:{r} f3", ON_HASHES),
    timed("hexists", "HEXISTS hash:{r} f3", ON_HASHES),
    timed("hdel", "HSET hash:{k} x {v:16} ; HDEL hash:{k} x", ON_HASHES),
    timed("hincrby", "HINCRBY numbers:{r} n 1", &[]),
    timed("hincrbyfloat", "HINCRBYFLOAT floats:{r} n 0.5", &[]),
    timed("hrandfield", "HRANDFIELD hash:{r}", ON_HASHES),
    timed("hscan", "HSCAN hash:{r} 0", ON_HASHES),
    timed("hgetdel", "HSET hash:{k} x {v:16} ; HGETDEL hash:{k} FIELDS 1 x", ON_HASHES),
    timed("hgetex", "HGETEX ending:{r} PX 100000000 FIELDS 1 f0", ON_ENDING),
    timed("hsetex", "HSETEX ending:{r} PX 100000000 FIELDS 1 f0 {v:16}", ON_ENDING),
    timed("hexpire", "HEXPIRE ending:{r} 100000 FIELDS 1 f1", ON_ENDING),
    timed("hpexpire", "HPEXPIRE ending:{r} 100000000 FIELDS 1 f1", ON_ENDING),
    timed("hexpireat", "HEXPIREAT ending:{r} 4102444800 FIELDS 1 f1", ON_ENDING),
    timed("hpexpireat", "HPEXPIREAT ending:{r} 4102444800000 FIELDS 1 f1", ON_ENDING),
    timed("httl", "HTTL ending:{r} FIELDS 1 f1", ON_ENDING),
    timed("hpttl", "HPTTL ending:{r} FIELDS 1 f1", ON_ENDING),
    timed("hexpiretime", "HEXPIRETIME ending:{r} FIELDS 1 f1", ON_ENDING),
    timed("hpexpiretime", "HPEXPIRETIME ending:{r} FIELDS 1 f1", ON_ENDING),
    timed(
        "hpersist",
        "HPEXPIRE ending:{k} 100000000 FIELDS 1 f2 ; HPERSIST ending:{k} FIELDS 1 f2",
        ON_ENDING,
    ),
    timed("geoadd", "GEOADD geo {lon} {lat} p:{i:1000}", ON_PLACES),
    timed("geodist", "GEODIST geo p:{i:1000} p:{i:1000} km", ON_PLACES),
    timed("geohash", "GEOHASH geo p:{i:1000}", ON_PLACES),
    timed("geopos", "GEOPOS geo p:{i:1000}", ON_PLACES),
    timed("geosearch", "GEOSEARCH geo FROMLONLAT {lon} {lat} BYRADIUS 500 km", ON_PLACES),
    timed(
        "geosearchstore",
        "GEOSEARCHSTORE geo:out:{i:100} geo FROMLONLAT {lon} {lat} BYRADIUS 500 km",
        ON_PLACES,
    ),
    timed("georadius", "GEORADIUS geo {lon} {lat} 500 km", ON_PLACES),
    timed("georadius_ro", "GEORADIUS_RO geo {lon} {lat} 500 km", ON_PLACES),
    timed("georadiusbymember", "GEORADIUSBYMEMBER geo p:{i:1000} 500 km", ON_PLACES),
    timed("georadiusbymember_ro", "GEORADIUSBYMEMBER_RO geo p:{i:1000} 500 km", ON_PLACES),
];
