//! Sorted sets.

use super::*;

const EITHER_EXTREME: &[Arg] = &[arg::flag("min").token("MIN"), arg::flag("max").token("MAX")];

const SORT_BY: &[Arg] = &[arg::flag("byscore").token("BYSCORE"), arg::flag("bylex").token("BYLEX")];

const LIMIT: Arg =
    arg::block("limit", &[arg::integer("offset"), arg::integer("count")]).token("LIMIT");

const WEIGHTS: Arg = arg::integer("weight").token("WEIGHTS").optional().multiple();

const AGGREGATE: Arg = arg::one_of(
    "aggregate",
    &[
        arg::flag("sum").token("SUM"),
        arg::flag("min").token("MIN"),
        arg::flag("max").token("MAX"),
        arg::flag("count").token("COUNT").since("8.8.0"),
    ],
)
.token("AGGREGATE")
.optional();

const WITH_SCORES: Arg = arg::flag("withscores").token("WITHSCORES").optional();

pub const ZADD: Spec = Spec::new(Group::SortedSet, "zadd")
    .summary("Adds members or changes their scores")
    .complexity("O(N*log(M)) for N members added to M")
    .since("1.2.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::one_of("condition", &[arg::flag("nx").token("NX"), arg::flag("xx").token("XX")])
            .since("3.0.2")
            .optional(),
        arg::one_of("comparison", &[arg::flag("gt").token("GT"), arg::flag("lt").token("LT")])
            .since("6.2.0")
            .optional(),
        arg::flag("change").token("CH").since("3.0.2").optional(),
        arg::flag("increment").token("INCR").since("3.0.2").optional(),
        arg::block("data", &[arg::double("score"), arg::string("member")]).multiple(),
    ])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Double, Shape::Null]))
    .history(&[
        change("2.4.0", "Takes several members."),
        change("3.0.2", "Takes XX, NX, CH and INCR."),
        change("6.2.0", "Takes GT and LT."),
    ]);

pub const ZINCRBY: Spec = Spec::new(Group::SortedSet, "zincrby")
    .summary("Adds to the score of a member")
    .complexity("O(log(N)) for N members")
    .since("1.2.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::integer("increment"), arg::string("member")])
    .reply(Shape::Double);

pub const ZREM: Spec = Spec::new(Group::SortedSet, "zrem")
    .summary("Removes members")
    .complexity("O(M*log(N)) for M of N members")
    .since("1.2.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::string("member").multiple()])
    .reply(Shape::Integer)
    .history(&[change("2.4.0", "Takes several members.")]);

pub const ZREMRANGEBYRANK: Spec = Spec::new(Group::SortedSet, "zremrangebyrank")
    .summary("Removes the members between two ranks")
    .complexity("O(log(N)+M) for M of N members removed")
    .since("2.0.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::integer("start"), arg::integer("stop")])
    .reply(Shape::Integer);

pub const ZREMRANGEBYSCORE: Spec = Spec::new(Group::SortedSet, "zremrangebyscore")
    .summary("Removes the members between two scores")
    .complexity("O(log(N)+M) for M of N members removed")
    .since("1.2.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::double("min"), arg::double("max")])
    .reply(Shape::Integer);

pub const ZREMRANGEBYLEX: Spec = Spec::new(Group::SortedSet, "zremrangebylex")
    .summary("Removes the members between two members of one score")
    .complexity("O(log(N)+M) for M of N members removed")
    .since("2.8.9")
    .arity(Exactly(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::string("min"), arg::string("max")])
    .reply(Shape::Integer);

pub const ZCARD: Spec = Spec::new(Group::SortedSet, "zcard")
    .summary("Returns how many members a sorted set has")
    .since("1.2.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const ZSCORE: Spec = Spec::new(Group::SortedSet, "zscore")
    .summary("Reads the score of a member")
    .since("1.2.0")
    .arity(Exactly(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("member")])
    .reply(Shape::OneOf(&[Shape::Double, Shape::Null]));

pub const ZMSCORE: Spec = Spec::new(Group::SortedSet, "zmscore")
    .summary("Reads the scores of several members")
    .complexity("O(N) for N members asked for")
    .since("6.2.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("member").multiple()])
    .reply(Shape::Array);

pub const ZRANK: Spec = Spec::new(Group::SortedSet, "zrank")
    .summary("Returns how many members stand before one, from the lowest score")
    .complexity("O(log(N)) for N members")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("member"),
        arg::flag("withscore").token("WITHSCORE").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Array, Shape::Null]))
    .history(&[change("7.2.0", "Takes WITHSCORE.")]);

pub const ZREVRANK: Spec = Spec::new(Group::SortedSet, "zrevrank")
    .summary("Returns how many members stand before one, from the highest score")
    .complexity("O(log(N)) for N members")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("member"),
        arg::flag("withscore").token("WITHSCORE").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Array, Shape::Null]))
    .history(&[change("7.2.0", "Takes WITHSCORE.")]);

pub const ZCOUNT: Spec = Spec::new(Group::SortedSet, "zcount")
    .summary("Counts the members between two scores")
    .complexity("O(log(N)) for N members")
    .since("2.0.0")
    .arity(Exactly(4))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::double("min"), arg::double("max")])
    .reply(Shape::Integer);

pub const ZLEXCOUNT: Spec = Spec::new(Group::SortedSet, "zlexcount")
    .summary("Counts the members between two members of one score")
    .complexity("O(log(N)) for N members")
    .since("2.8.9")
    .arity(Exactly(4))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("min"), arg::string("max")])
    .reply(Shape::Integer);

pub const ZRANGE: Spec = Spec::new(Group::SortedSet, "zrange")
    .summary("Reads the members of a range of ranks, scores or members")
    .complexity("O(log(N)+M) for M of N members read")
    .since("1.2.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("start"),
        arg::string("stop"),
        arg::one_of("sortby", SORT_BY).since("6.2.0").optional(),
        arg::flag("rev").token("REV").since("6.2.0").optional(),
        LIMIT.since("6.2.0").optional(),
        WITH_SCORES,
    ])
    .reply(Shape::Array)
    .history(&[change("6.2.0", "Takes REV, BYLEX, BYSCORE and LIMIT.")]);

pub const ZREVRANGE: Spec = Spec::new(Group::SortedSet, "zrevrange")
    .summary("Reads a range of ranks from the highest score down")
    .complexity("O(log(N)+M) for M of N members read")
    .since("1.2.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("start"), arg::integer("stop"), WITH_SCORES])
    .reply(Shape::Array)
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "ZRANGE with REV" });

pub const ZRANGEBYSCORE: Spec = Spec::new(Group::SortedSet, "zrangebyscore")
    .summary("Reads the members between two scores")
    .complexity("O(log(N)+M) for M of N members read")
    .since("1.0.5")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::double("min"),
        arg::double("max"),
        WITH_SCORES.since("2.0.0"),
        LIMIT.optional(),
    ])
    .reply(Shape::Array)
    .history(&[change("2.0.0", "Takes WITHSCORES.")])
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "ZRANGE with BYSCORE" });

pub const ZREVRANGEBYSCORE: Spec = Spec::new(Group::SortedSet, "zrevrangebyscore")
    .summary("Reads the members between two scores, the highest first")
    .complexity("O(log(N)+M) for M of N members read")
    .since("2.2.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::double("max"), arg::double("min"), WITH_SCORES, LIMIT.optional()])
    .reply(Shape::Array)
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "ZRANGE with REV and BYSCORE" });

pub const ZRANGEBYLEX: Spec = Spec::new(Group::SortedSet, "zrangebylex")
    .summary("Reads the members between two members of one score")
    .complexity("O(log(N)+M) for M of N members read")
    .since("2.8.9")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("min"), arg::string("max"), LIMIT.optional()])
    .reply(Shape::Array)
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "ZRANGE with BYLEX" });

pub const ZREVRANGEBYLEX: Spec = Spec::new(Group::SortedSet, "zrevrangebylex")
    .summary("Reads the members between two members of one score, the last first")
    .complexity("O(log(N)+M) for M of N members read")
    .since("2.8.9")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("max"), arg::string("min"), LIMIT.optional()])
    .reply(Shape::Array)
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "ZRANGE with REV and BYLEX" });

pub const ZRANGESTORE: Spec = Spec::new(Group::SortedSet, "zrangestore")
    .summary("Stores a range of a sorted set under another key")
    .complexity("O(log(N)+M) for M of N members stored")
    .since("6.2.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::at(2, READS)])
    .args(&[
        arg::key("dst"),
        arg::key("src").of_spec(1),
        arg::string("min"),
        arg::string("max"),
        arg::one_of("sortby", SORT_BY).optional(),
        arg::flag("rev").token("REV").optional(),
        LIMIT.optional(),
    ])
    .reply(Shape::Integer);

pub const ZPOPMIN: Spec = Spec::new(Group::SortedSet, "zpopmin")
    .summary("Takes the members with the lowest scores")
    .complexity("O(M*log(N)) for M of N members taken")
    .since("5.0.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key"), arg::integer("count").optional()])
    .reply(Shape::Array);

pub const ZPOPMAX: Spec = Spec::new(Group::SortedSet, "zpopmax")
    .summary("Takes the members with the highest scores")
    .complexity("O(M*log(N)) for M of N members taken")
    .since("5.0.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key"), arg::integer("count").optional()])
    .reply(Shape::Array);

pub const ZMPOP: Spec = Spec::new(Group::SortedSet, "zmpop")
    .summary("Takes members off the first sorted set that has any")
    .complexity("O(K+M*log(N)) for K keys and M of N members taken")
    .since("7.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::counted(1, TAKES)])
    .args(&[
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::one_of("where", EITHER_EXTREME),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const BZPOPMIN: Spec = Spec::new(Group::SortedSet, "bzpopmin")
    .summary("Takes the member with the lowest score, or waits for one")
    .complexity("O(log(N)) for N members")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::BLOCKING).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TAKES).until(-2)])
    .args(&[arg::key("key").multiple(), arg::double("timeout")])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]))
    .history(&[change("6.0.0", "The timeout may have a fraction.")]);

pub const BZPOPMAX: Spec = Spec::new(Group::SortedSet, "bzpopmax")
    .summary("Takes the member with the highest score, or waits for one")
    .complexity("O(log(N)) for N members")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::BLOCKING).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, TAKES).until(-2)])
    .args(&[arg::key("key").multiple(), arg::double("timeout")])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]))
    .history(&[change("6.0.0", "The timeout may have a fraction.")]);

pub const BZMPOP: Spec = Spec::new(Group::SortedSet, "bzmpop")
    .summary("Takes members off the first sorted set that has any, or waits")
    .complexity("O(K+M*log(N)) for K keys and M of N members taken")
    .since("7.0.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::BLOCKING).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::counted(2, TAKES)])
    .args(&[
        arg::double("timeout"),
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::one_of("where", EITHER_EXTREME),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const ZUNION: Spec = Spec::new(Group::SortedSet, "zunion")
    .summary("Reads the members that any of several sorted sets has")
    .complexity("O(N)+O(M*log(M)) for N members in all and M in the result")
    .since("6.2.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[arg::integer("numkeys"), arg::key("key").multiple(), WEIGHTS, AGGREGATE, WITH_SCORES])
    .reply(Shape::Array)
    .history(&[change("8.8.0", "Takes AGGREGATE COUNT.")]);

pub const ZUNIONSTORE: Spec = Spec::new(Group::SortedSet, "zunionstore")
    .summary("Stores the members that any of several sorted sets has")
    .complexity("O(N)+O(M*log(M)) for N members in all and M in the result")
    .since("2.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::counted(2, READS)])
    .args(&[
        arg::key("destination"),
        arg::integer("numkeys"),
        arg::key("key").of_spec(1).multiple(),
        WEIGHTS,
        AGGREGATE,
    ])
    .reply(Shape::Integer)
    .history(&[change("8.8.0", "Takes AGGREGATE COUNT.")]);

pub const ZINTER: Spec = Spec::new(Group::SortedSet, "zinter")
    .summary("Reads the members that all of several sorted sets have")
    .complexity("O(N*K)+O(M*log(M)) for N members of the smallest of K and M in the result")
    .since("6.2.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[arg::integer("numkeys"), arg::key("key").multiple(), WEIGHTS, AGGREGATE, WITH_SCORES])
    .reply(Shape::Array)
    .history(&[change("8.8.0", "Takes AGGREGATE COUNT.")]);

pub const ZINTERSTORE: Spec = Spec::new(Group::SortedSet, "zinterstore")
    .summary("Stores the members that all of several sorted sets have")
    .complexity("O(N*K)+O(M*log(M)) for N members of the smallest of K and M in the result")
    .since("2.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::counted(2, READS)])
    .args(&[
        arg::key("destination"),
        arg::integer("numkeys"),
        arg::key("key").of_spec(1).multiple(),
        WEIGHTS,
        AGGREGATE,
    ])
    .reply(Shape::Integer)
    .history(&[change("8.8.0", "Takes AGGREGATE COUNT.")]);

pub const ZINTERCARD: Spec = Spec::new(Group::SortedSet, "zintercard")
    .summary("Counts the members that all of several sorted sets have")
    .complexity("O(N*K) for N members of the smallest of K")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::integer("limit").token("LIMIT").optional(),
    ])
    .reply(Shape::Integer);

pub const ZDIFF: Spec = Spec::new(Group::SortedSet, "zdiff")
    .summary("Reads the members of the first sorted set that no other has")
    .complexity("O(N*K)+O(M*log(M)) for N members of the first of K and M in the result")
    .since("6.2.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[arg::integer("numkeys"), arg::key("key").multiple(), WITH_SCORES])
    .reply(Shape::Array);

pub const ZDIFFSTORE: Spec = Spec::new(Group::SortedSet, "zdiffstore")
    .summary("Stores the members of the first sorted set that no other has")
    .complexity("O(N*K)+O(M*log(M)) for N members of the first of K and M in the result")
    .since("6.2.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SORTEDSET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::counted(2, READS)])
    .args(&[
        arg::key("destination"),
        arg::integer("numkeys"),
        arg::key("key").of_spec(1).multiple(),
    ])
    .reply(Shape::Integer);

pub const ZRANDMEMBER: Spec = Spec::new(Group::SortedSet, "zrandmember")
    .summary("Reads members chosen by chance")
    .complexity("O(N*log(M)) for N of M members read")
    .since("6.2.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::SORTEDSET)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::block("options", &[arg::integer("count"), WITH_SCORES]).optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Array, Shape::Null]));

pub const ZSCAN: Spec = Spec::new(Group::SortedSet, "zscan")
    .summary("Walks through the members and scores, some in each call")
    .complexity("O(1) for each call, O(N) for all of N members")
    .since("2.8.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::SORTEDSET)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::integer("cursor"),
        arg::pattern("pattern").token("MATCH").optional(),
        arg::integer("count").token("COUNT").optional(),
        arg::flag("noscores").token("NOSCORES").optional(),
    ])
    .reply(Shape::Array)
    .history(&[change("8.0.0", "Takes NOSCORES.")]);
