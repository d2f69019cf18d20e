//! Strings and counters.

use super::*;

const NEW_EXPIRY: &[Arg] = &[
    arg::integer("seconds").token("EX"),
    arg::integer("milliseconds").token("PX"),
    arg::unix_time("unix-time-seconds").token("EXAT"),
    arg::unix_time("unix-time-milliseconds").token("PXAT"),
    arg::flag("persist").token("PERSIST"),
];

pub const GET: Spec = Spec::new(Group::String, "get")
    .summary("Reads a string")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const SET: Spec = Spec::new(Group::String, "set")
    .summary("Writes a string over whatever the key held")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::SHARES_TIME))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[
        KeySpec::at(1, CHANGES.or(Access::VARIABLE_FLAGS)).notes("Reads as well if GET is given")
    ])
    .args(&[
        arg::key("key"),
        arg::string("value"),
        arg::one_of(
            "condition",
            &[
                arg::flag("nx").token("NX").since("2.6.12"),
                arg::flag("xx").token("XX").since("2.6.12"),
                arg::string("comparison-value").token("IFEQ").since("8.1.0"),
                arg::string("ifne-value").token("IFNE").since("8.4.0"),
                arg::string("ifdeq-digest").token("IFDEQ").since("8.4.0"),
                arg::string("ifdne-digest").token("IFDNE").since("8.4.0"),
            ],
        )
        .optional(),
        arg::flag("get").token("GET").since("6.2.0").optional(),
        arg::one_of(
            "expiration",
            &[
                arg::integer("seconds").token("EX").since("2.6.12"),
                arg::integer("milliseconds").token("PX").since("2.6.12"),
                arg::unix_time("unix-time-seconds").token("EXAT").since("6.2.0"),
                arg::unix_time("unix-time-milliseconds").token("PXAT").since("6.2.0"),
                arg::flag("keepttl").token("KEEPTTL").since("6.0.0"),
            ],
        )
        .optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Bulk, Shape::Null]))
    .history(&[
        change("2.6.12", "EX, PX, NX and XX."),
        change("6.0.0", "KEEPTTL."),
        change("6.2.0", "GET, EXAT and PXAT."),
        change("7.0.0", "NX and GET go together."),
        change("8.1.0", "IFEQ."),
        change("8.4.0", "IFNE, IFDEQ and IFDNE."),
    ]);

pub const GETEX: Spec = Spec::new(Group::String, "getex")
    .summary("Reads a string and sets or removes its time to live")
    .since("6.2.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES).notes("Writes, since it changes the time to live")])
    .args(&[arg::key("key"), arg::one_of("expiration", NEW_EXPIRY).optional()])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const GETDEL: Spec = Spec::new(Group::String, "getdel")
    .summary("Reads a string and deletes its key")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const GETSET: Spec = Spec::new(Group::String, "getset")
    .summary("Writes a string and answers the one before")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::string("value")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]))
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "SET with GET" });

pub const SETNX: Spec = Spec::new(Group::String, "setnx")
    .summary("Writes a string if the key is missing")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CREATES)])
    .args(&[arg::key("key"), arg::string("value")])
    .reply(Shape::Integer)
    .deprecated(Deprecation { since: "2.6.12", replaced_by: "SET with NX" });

pub const SETEX: Spec = Spec::new(Group::String, "setex")
    .summary("Writes a string with its time to live in seconds")
    .since("2.0.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, OVERWRITES)])
    .args(&[arg::key("key"), arg::integer("seconds"), arg::string("value")])
    .reply(Shape::Ok)
    .deprecated(Deprecation { since: "2.6.12", replaced_by: "SET with EX" });

pub const PSETEX: Spec = Spec::new(Group::String, "psetex")
    .summary("Writes a string with its time to live in milliseconds")
    .since("2.6.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, OVERWRITES)])
    .args(&[arg::key("key"), arg::integer("milliseconds"), arg::string("value")])
    .reply(Shape::Ok)
    .deprecated(Deprecation { since: "2.6.12", replaced_by: "SET with PX" });

pub const MGET: Spec = Spec::new(Group::String, "mget")
    .summary("Reads several strings at once")
    .complexity("O(N) for N keys")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::STRING)
    .tips(&["request_policy:multi_shard"])
    .keys(&[KeySpec::from(1, READS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Array);

pub const MSET: Spec = Spec::new(Group::String, "mset")
    .summary("Writes several strings at once")
    .complexity("O(N) for N keys")
    .since("1.0.1")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
    .keys(&[KeySpec::from(1, OVERWRITES).every(2)])
    .args(&[arg::block("data", &[arg::key("key"), arg::string("value")]).multiple()])
    .reply(Shape::Ok);

pub const MSETNX: Spec = Spec::new(Group::String, "msetnx")
    .summary("Writes several strings if none of their keys exists")
    .complexity("O(N) for N keys")
    .since("1.0.1")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .keys(&[KeySpec::from(1, CREATES).every(2)])
    .args(&[arg::block("data", &[arg::key("key"), arg::string("value")]).multiple()])
    .reply(Shape::Integer);

pub const MSETEX: Spec = Spec::new(Group::String, "msetex")
    .summary("Writes several strings with one time to live and one condition")
    .complexity("O(N) for N keys")
    .since("8.4.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
    .keys(&[KeySpec::counted(1, OVERWRITES).every(2)])
    .args(&[
        arg::integer("numkeys"),
        arg::block("data", &[arg::key("key"), arg::string("value")]).multiple(),
        arg::one_of("condition", &[arg::flag("nx").token("NX"), arg::flag("xx").token("XX")])
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
    ])
    .reply(Shape::Integer);

pub const APPEND: Spec = Spec::new(Group::String, "append")
    .summary("Adds to the end of a string")
    .complexity("O(1) on average for short additions")
    .since("2.0.0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("value")])
    .reply(Shape::Integer);

pub const STRLEN: Spec = Spec::new(Group::String, "strlen")
    .summary("Returns how many bytes a string has")
    .since("2.2.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const GETRANGE: Spec = Spec::new(Group::String, "getrange")
    .summary("Reads part of a string")
    .complexity("O(N) for N bytes returned")
    .since("2.4.0")
    .arity(Exactly(4))
    .flags(Flags::READONLY)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("start"), arg::integer("end")])
    .reply(Shape::Bulk);

pub const SUBSTR: Spec = Spec::new(Group::String, "substr")
    .summary("Reads part of a string")
    .complexity("O(N) for N bytes returned")
    .arity(Exactly(4))
    .flags(Flags::READONLY)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("start"), arg::integer("end")])
    .reply(Shape::Bulk)
    .deprecated(Deprecation { since: "2.0.0", replaced_by: "GETRANGE" });

pub const SETRANGE: Spec = Spec::new(Group::String, "setrange")
    .summary("Overwrites part of a string from an offset on")
    .complexity("O(N) for N bytes written")
    .since("2.2.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumberUpTo { digits: 5 })
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::integer("offset"), arg::string("value")])
    .reply(Shape::Integer);

pub const INCR: Spec = Spec::new(Group::String, "incr")
    .summary("Adds one to an integer; a missing key counts as 0")
    .arity(Exactly(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const DECR: Spec = Spec::new(Group::String, "decr")
    .summary("Takes one from an integer; a missing key counts as 0")
    .arity(Exactly(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const INCRBY: Spec = Spec::new(Group::String, "incrby")
    .summary("Adds to an integer; a missing key counts as 0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::integer("increment")])
    .reply(Shape::Integer);

pub const DECRBY: Spec = Spec::new(Group::String, "decrby")
    .summary("Subtracts from an integer; a missing key counts as 0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::integer("decrement")])
    .reply(Shape::Integer);

pub const INCRBYFLOAT: Spec = Spec::new(Group::String, "incrbyfloat")
    .summary("Adds to a decimal number; a missing key counts as 0")
    .since("2.6.0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::double("increment")])
    .reply(Shape::Bulk);

pub const INCREX: Spec = Spec::new(Group::String, "increx")
    .summary("Adds within bounds and sets a time to live in one step")
    .since("8.8.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[
        arg::key("key"),
        arg::one_of(
            "increment",
            &[arg::double("float").token("BYFLOAT"), arg::integer("integer").token("BYINT")],
        )
        .optional(),
        arg::flag("saturate").token("SATURATE").optional(),
        arg::string("lowerbound").token("LBOUND").optional(),
        arg::string("upperbound").token("UBOUND").optional(),
        arg::one_of("expiration", NEW_EXPIRY).optional(),
        arg::flag("enx").token("ENX").optional(),
    ])
    .reply(Shape::Array);

pub const DIGEST: Spec = Spec::new(Group::String, "digest")
    .summary("Returns the XXH3 hash of a string in hexadecimal")
    .complexity("O(N) for a string of N bytes")
    .since("8.4.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const LCS: Spec = Spec::new(Group::String, "lcs")
    .summary("Finds the longest common subsequence of two strings")
    .complexity("O(N*M) for strings of N and M bytes")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .batching(Batching::Never)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, READS).until(1)])
    .args(&[
        arg::key("key1"),
        arg::key("key2"),
        arg::flag("len").token("LEN").optional(),
        arg::flag("idx").token("IDX").optional(),
        arg::integer("min-match-len").token("MINMATCHLEN").optional(),
        arg::flag("withmatchlen").token("WITHMATCHLEN").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Integer, Shape::Map]));

pub const DELEX: Spec = Spec::new(Group::String, "delex")
    .summary("Deletes a key if its value or digest meets a condition")
    .complexity("O(1), or O(N) for a digest over N bytes")
    .since("8.4.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, TRIMS.or(Access::VARIABLE_FLAGS))])
    .args(&[
        arg::key("key"),
        arg::one_of(
            "condition",
            &[
                arg::string("ifeq-value").token("IFEQ"),
                arg::string("ifne-value").token("IFNE"),
                arg::string("ifdeq-digest").token("IFDEQ"),
                arg::string("ifdne-digest").token("IFDNE"),
            ],
        )
        .optional(),
    ])
    .reply(Shape::Integer);

pub const DELIFEQ: Spec = Spec::new(Group::String, "delifeq")
    .summary("Deletes a key if its value equals the one given")
    .since("9.0.0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STRING)
    .keys(&[KeySpec::at(1, REMOVES)])
    .args(&[arg::key("key"), arg::string("value")])
    .reply(Shape::Integer);
