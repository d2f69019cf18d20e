//! Hashes.

use super::*;

/// `field value`, as often as needed.
const PAIRS: Arg = arg::block("data", &[arg::string("field"), arg::string("value")]).multiple();

const NAMED_FIELDS: Arg =
    arg::block("fields", &[arg::integer("numfields"), arg::string("field").multiple()])
        .token("FIELDS");

const NAMED_PAIRS: Arg = arg::block("fields", &[arg::integer("numfields"), PAIRS]).token("FIELDS");

const WHEN: Arg = arg::one_of(
    "condition",
    &[
        arg::flag("nx").token("NX"),
        arg::flag("xx").token("XX"),
        arg::flag("gt").token("GT"),
        arg::flag("lt").token("LT"),
    ],
)
.optional();

const WRITES: Flags = Flags::WRITE.or(Flags::FAST);
const GROWS: Flags = WRITES.or(Flags::DENYOOM);
const LOOKS: Flags = Flags::READONLY.or(Flags::FAST);

pub const HSET: Spec = Spec::new(Group::Hash, "hset")
    .summary("Sets fields of a hash")
    .complexity("O(N) for N fields")
    .since("2.0.0")
    .arity(AtLeast(4))
    .flags(GROWS)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), PAIRS])
    .reply(Shape::Integer)
    .history(&[change("4.0.0", "Takes several fields.")]);

pub const HMSET: Spec = Spec::new(Group::Hash, "hmset")
    .summary("Sets fields of a hash")
    .complexity("O(N) for N fields")
    .since("2.0.0")
    .arity(AtLeast(4))
    .flags(GROWS)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), PAIRS])
    .reply(Shape::Ok)
    .deprecated(Deprecation { since: "4.0.0", replaced_by: "HSET with several fields" });

pub const HSETNX: Spec = Spec::new(Group::Hash, "hsetnx")
    .summary("Sets a field that is not there yet")
    .since("2.0.0")
    .arity(Exactly(4))
    .flags(GROWS)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("field"), arg::string("value")])
    .reply(Shape::Integer);

pub const HGET: Spec = Spec::new(Group::Hash, "hget")
    .summary("Reads the value of a field")
    .since("2.0.0")
    .arity(Exactly(3))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("field")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const HMGET: Spec = Spec::new(Group::Hash, "hmget")
    .summary("Reads the values of several fields")
    .complexity("O(N) for N fields")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("field").multiple()])
    .reply(Shape::Array);

pub const HGETALL: Spec = Spec::new(Group::Hash, "hgetall")
    .summary("Reads all fields and their values")
    .complexity("O(N) for a hash of N fields")
    .since("2.0.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY)
    .categories(Categories::HASH)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Map);

pub const HKEYS: Spec = Spec::new(Group::Hash, "hkeys")
    .summary("Reads the names of all fields")
    .complexity("O(N) for a hash of N fields")
    .since("2.0.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY)
    .categories(Categories::HASH)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Array);

pub const HVALS: Spec = Spec::new(Group::Hash, "hvals")
    .summary("Reads the values of all fields")
    .complexity("O(N) for a hash of N fields")
    .since("2.0.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY)
    .categories(Categories::HASH)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Array);

pub const HLEN: Spec = Spec::new(Group::Hash, "hlen")
    .summary("Returns how many fields a hash has")
    .since("2.0.0")
    .arity(Exactly(2))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const HSTRLEN: Spec = Spec::new(Group::Hash, "hstrlen")
    .summary("Returns how long the value of a field is")
    .since("3.2.0")
    .arity(Exactly(3))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key"), arg::string("field")])
    .reply(Shape::Integer);

pub const HEXISTS: Spec = Spec::new(Group::Hash, "hexists")
    .summary("Returns whether a hash has a field")
    .since("2.0.0")
    .arity(Exactly(3))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key"), arg::string("field")])
    .reply(Shape::Integer);

pub const HDEL: Spec = Spec::new(Group::Hash, "hdel")
    .summary("Removes fields, and the hash with its last one")
    .complexity("O(N) for N fields")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(WRITES)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::string("field").multiple()])
    .reply(Shape::Integer)
    .history(&[change("2.4.0", "Takes several fields.")]);

pub const HINCRBY: Spec = Spec::new(Group::Hash, "hincrby")
    .summary("Adds to the integer in a field")
    .since("2.0.0")
    .arity(Exactly(4))
    .flags(GROWS)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::string("field"), arg::integer("increment")])
    .reply(Shape::Integer);

pub const HINCRBYFLOAT: Spec = Spec::new(Group::Hash, "hincrbyfloat")
    .summary("Adds to the number in a field")
    .since("2.6.0")
    .arity(Exactly(4))
    .flags(GROWS)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::string("field"), arg::double("increment")])
    .reply(Shape::Bulk);

pub const HRANDFIELD: Spec = Spec::new(Group::Hash, "hrandfield")
    .summary("Picks fields at random")
    .complexity("O(N) for N fields picked")
    .since("6.2.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::HASH)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::block(
            "options",
            &[arg::integer("count"), arg::flag("withvalues").token("WITHVALUES").optional()],
        )
        .optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Array, Shape::Null]));

pub const HSCAN: Spec = Spec::new(Group::Hash, "hscan")
    .summary("Walks over the fields step by step")
    .complexity("O(1) for each call, O(N) for a whole walk")
    .since("2.8.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::HASH)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::integer("cursor"),
        arg::pattern("pattern").token("MATCH").optional(),
        arg::integer("count").token("COUNT").optional(),
        arg::flag("novalues").token("NOVALUES").since("7.4.0").optional(),
    ])
    .reply(Shape::Array)
    .history(&[change("7.4.0", "NOVALUES.")]);

pub const HGETDEL: Spec = Spec::new(Group::Hash, "hgetdel")
    .summary("Reads fields and removes them")
    .complexity("O(N) for N fields")
    .since("8.0.0")
    .arity(AtLeast(5))
    .flags(WRITES)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key"), NAMED_FIELDS])
    .reply(Shape::Array);

pub const HGETEX: Spec = Spec::new(Group::Hash, "hgetex")
    .summary("Reads fields and sets or removes their time to live")
    .complexity("O(N) for N fields")
    .since("8.0.0")
    .arity(AtLeast(5))
    .flags(WRITES)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[
        arg::key("key"),
        arg::one_of(
            "expiration",
            &[
                arg::integer("seconds").token("EX"),
                arg::integer("milliseconds").token("PX"),
                arg::unix_time("unix-time-seconds").token("EXAT"),
                arg::unix_time("unix-time-milliseconds").token("PXAT"),
                arg::flag("persist").token("PERSIST"),
            ],
        )
        .optional(),
        NAMED_FIELDS,
    ])
    .reply(Shape::Array);

pub const HSETEX: Spec = Spec::new(Group::Hash, "hsetex")
    .summary("Sets fields together with their time to live")
    .complexity("O(N) for N fields")
    .since("8.0.0")
    .arity(AtLeast(6))
    .flags(GROWS)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[
        arg::key("key"),
        arg::one_of("key-condition", &[arg::flag("nx").token("NX"), arg::flag("xx").token("XX")])
            .optional(),
        arg::one_of(
            "fields-condition",
            &[arg::flag("fnx").token("FNX"), arg::flag("fxx").token("FXX")],
        )
        .optional(),
        arg::one_of(
            "expiration",
            &[
                arg::integer("seconds").token("EX"),
                arg::integer("milliseconds").token("PX"),
                arg::unix_time("unix-time-seconds").token("EXAT"),
                arg::unix_time("unix-time-milliseconds").token("PXAT"),
                arg::flag("keepttl").token("KEEPTTL"),
            ],
        )
        .optional(),
        NAMED_PAIRS,
    ])
    .reply(Shape::Integer);

pub const HEXPIRE: Spec = Spec::new(Group::Hash, "hexpire")
    .summary("Gives fields a time to live in seconds")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(6))
    .flags(WRITES)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::integer("seconds"), WHEN, NAMED_FIELDS])
    .reply(Shape::Array);

pub const HPEXPIRE: Spec = Spec::new(Group::Hash, "hpexpire")
    .summary("Gives fields a time to live in milliseconds")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(6))
    .flags(WRITES)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::integer("milliseconds"), WHEN, NAMED_FIELDS])
    .reply(Shape::Array);

pub const HEXPIREAT: Spec = Spec::new(Group::Hash, "hexpireat")
    .summary("Has fields expire at a second of Unix time")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(6))
    .flags(WRITES)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::unix_time("unix-time-seconds"), WHEN, NAMED_FIELDS])
    .reply(Shape::Array);

pub const HPEXPIREAT: Spec = Spec::new(Group::Hash, "hpexpireat")
    .summary("Has fields expire at a millisecond of Unix time")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(6))
    .flags(WRITES)
    .recorded(Recorded::Rewritten)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::unix_time("unix-time-milliseconds"), WHEN, NAMED_FIELDS])
    .reply(Shape::Array);

pub const HTTL: Spec = Spec::new(Group::Hash, "httl")
    .summary("Returns the seconds that fields have left")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(5))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), NAMED_FIELDS])
    .reply(Shape::Array);

pub const HPTTL: Spec = Spec::new(Group::Hash, "hpttl")
    .summary("Returns the milliseconds that fields have left")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(5))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), NAMED_FIELDS])
    .reply(Shape::Array);

pub const HEXPIRETIME: Spec = Spec::new(Group::Hash, "hexpiretime")
    .summary("Returns when fields expire, in seconds of Unix time")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(5))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), NAMED_FIELDS])
    .reply(Shape::Array);

pub const HPEXPIRETIME: Spec = Spec::new(Group::Hash, "hpexpiretime")
    .summary("Returns when fields expire, in milliseconds of Unix time")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(5))
    .flags(LOOKS)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), NAMED_FIELDS])
    .reply(Shape::Array);

pub const HPERSIST: Spec = Spec::new(Group::Hash, "hpersist")
    .summary("Takes the time to live from fields")
    .complexity("O(N) for N fields")
    .since("7.4.0")
    .arity(AtLeast(5))
    .flags(WRITES)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HASH)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), NAMED_FIELDS])
    .reply(Shape::Array);
