//! Keys, whatever they hold.

use super::*;
use crate::spec::Begin;

const EXPIRE_CONDITIONS: &[Arg] = &[
    arg::flag("nx").token("NX"),
    arg::flag("xx").token("XX"),
    arg::flag("gt").token("GT"),
    arg::flag("lt").token("LT"),
];

pub const DEL: Spec = Spec::new(Group::Generic, "del")
    .summary("Deletes keys")
    .complexity("O(N) for N keys, and O(M) for each collection of M elements")
    .arity(AtLeast(2))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
    .keys(&[KeySpec::from(1, REMOVES)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Integer);

pub const UNLINK: Spec = Spec::new(Group::Generic, "unlink")
    .summary("Deletes keys and frees their memory in the background")
    .complexity("O(1) per key; the freeing is O(N) for N allocations")
    .since("4.0.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
    .keys(&[KeySpec::from(1, REMOVES)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Integer);

pub const EXISTS: Spec = Spec::new(Group::Generic, "exists")
    .summary("Counts how many of the keys exist")
    .complexity("O(N) for N keys")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
    .keys(&[KeySpec::from(1, INSPECTS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Integer)
    .history(&[change("3.0.3", "Takes several keys.")]);

pub const TYPE: Spec = Spec::new(Group::Generic, "type")
    .summary("Names the type of the value at a key")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Status);

pub const KEYS: Spec = Spec::new(Group::Generic, "keys")
    .summary("Lists every key that matches a pattern")
    .complexity("O(N) for N keys in the database")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::ALL_SHARDS))
    .categories(Categories::DANGEROUS.or(Categories::KEYSPACE))
    .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
    .args(&[arg::pattern("pattern")])
    .reply(Shape::Array);

pub const SCAN: Spec = Spec::new(Group::Generic, "scan")
    .summary("Walks the keys of the database a step at a time")
    .complexity("O(1) per call, O(N) for a walk over N keys")
    .since("2.8.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::ALL_SHARDS))
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"])
    .args(&[
        arg::integer("cursor"),
        arg::pattern("pattern").token("MATCH").optional(),
        arg::integer("count").token("COUNT").optional(),
        arg::string("type").token("TYPE").since("6.0.0").optional(),
    ])
    .reply(Shape::Array)
    .history(&[change("6.0.0", "TYPE filter.")]);

pub const RANDOMKEY: Spec = Spec::new(Group::Generic, "randomkey")
    .summary("Picks a key at random")
    .arity(Exactly(1))
    .flags(Flags::READONLY.or(Flags::ALL_SHARDS))
    .categories(Categories::KEYSPACE)
    .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const RENAME: Spec = Spec::new(Group::Generic, "rename")
    .summary("Gives a key another name, replacing what was there")
    .arity(Exactly(3))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, OVERWRITES)])
    .args(&[arg::key("key"), arg::key("newkey").of_spec(1)])
    .reply(Shape::Ok);

pub const RENAMENX: Spec = Spec::new(Group::Generic, "renamenx")
    .summary("Gives a key another name if that name is free")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, CREATES)])
    .args(&[arg::key("key"), arg::key("newkey").of_spec(1)])
    .reply(Shape::Integer)
    .history(&[change("3.2.0", "Renaming a key to itself is no error.")]);

pub const COPY: Spec = Spec::new(Group::Generic, "copy")
    .summary("Copies a value to another key or database")
    .complexity("O(N) for a collection of N elements, O(1) for a string")
    .since("6.2.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, READS), KeySpec::at(2, OVERWRITES)])
    .args(&[
        arg::key("source"),
        arg::key("destination").of_spec(1),
        arg::integer("destination-db").token("DB").optional(),
        arg::flag("replace").token("REPLACE").optional(),
    ])
    .reply(Shape::Integer);

pub const DUMP: Spec = Spec::new(Group::Generic, "dump")
    .summary("Returns a value as a payload that RESTORE takes")
    .complexity("O(N) for a collection of N elements")
    .since("2.6.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY)
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

const RESTORE_ARGS: &[Arg] = &[
    arg::key("key"),
    arg::integer("ttl"),
    arg::string("serialized-value"),
    arg::flag("replace").token("REPLACE").since("3.0.0").optional(),
    arg::flag("absttl").token("ABSTTL").since("5.0.0").optional(),
    arg::integer("seconds").token("IDLETIME").since("5.0.0").optional(),
    arg::integer("frequency").token("FREQ").since("5.0.0").optional(),
];
const RESTORE_HISTORY: &[Change] = &[
    change("3.0.0", "REPLACE."),
    change("5.0.0", "ABSTTL."),
    change("5.0.0", "IDLETIME and FREQ."),
];

pub const RESTORE: Spec = Spec::new(Group::Generic, "restore")
    .summary("Creates a key from a payload of DUMP")
    .complexity("O(N) for a collection of N elements, O(N*log(N)) for a sorted set")
    .since("2.6.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::KEYSPACE.or(Categories::DANGEROUS))
    .keys(&[KeySpec::at(1, OVERWRITES)])
    .args(RESTORE_ARGS)
    .reply(Shape::Ok)
    .history(RESTORE_HISTORY);

pub const RESTORE_ASKING: Spec = Spec::new(Group::Server, "restore-asking")
    .summary("RESTORE for a slot that is on its way to this node of a cluster")
    .complexity("O(N) for a collection of N elements, O(N*log(N)) for a sorted set")
    .since("3.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::ASKING))
    .recorded(Recorded::Rewritten)
    .categories(Categories::KEYSPACE.or(Categories::DANGEROUS))
    .keys(&[KeySpec::at(1, OVERWRITES)])
    .args(RESTORE_ARGS)
    .reply(Shape::Ok)
    .history(RESTORE_HISTORY)
    .internal();

const MIGRATE_LOGIN: &[Arg] = &[
    arg::string("auth").display("password").token("AUTH").since("4.0.7"),
    arg::block("auth2", &[arg::string("username"), arg::string("password")])
        .token("AUTH2")
        .since("6.0.0"),
];
const MIGRATE_KEY: &[Arg] = &[arg::key("key"), arg::flag("empty-string").token("")];

const fn migrated_after_keys() -> KeySpec {
    let mut spec = KeySpec::at(0, TAKES.or(Access::INCOMPLETE)).until(-1);
    spec.begin = Begin::Keyword { token: "KEYS", from: -2 };
    spec
}

pub const MIGRATE: Spec = Spec::new(Group::Generic, "migrate")
    .summary("Moves keys to another server")
    .complexity("O(N) for N bytes, and DUMP and DEL here and RESTORE there for each key")
    .since("2.6.0")
    .arity(AtLeast(6))
    .flags(Flags::WRITE.or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Rewritten)
    .batching(Batching::Never)
    .categories(Categories::KEYSPACE.or(Categories::DANGEROUS))
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(3, TAKES), migrated_after_keys()])
    .args(&[
        arg::string("host"),
        arg::integer("port"),
        arg::one_of("key-selector", MIGRATE_KEY),
        arg::integer("destination-db"),
        arg::integer("timeout"),
        arg::flag("copy").token("COPY").since("3.0.0").optional(),
        arg::flag("replace").token("REPLACE").since("3.0.0").optional(),
        arg::one_of("authentication", MIGRATE_LOGIN).optional(),
        arg::key("keys")
            .of_spec(1)
            .display("key")
            .token("KEYS")
            .since("3.0.6")
            .optional()
            .multiple(),
    ])
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Status]))
    .history(&[
        change("3.0.0", "Takes COPY and REPLACE."),
        change("3.0.6", "Takes KEYS."),
        change("4.0.7", "Takes AUTH."),
        change("6.0.0", "Takes AUTH2."),
    ]);

pub const MOVE: Spec = Spec::new(Group::Generic, "move")
    .summary("Moves a key to another database")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::integer("db")])
    .reply(Shape::Integer);

pub const TOUCH: Spec = Spec::new(Group::Generic, "touch")
    .summary("Marks keys as just used and counts those that exist")
    .complexity("O(N) for N keys")
    .since("3.2.1")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
    .keys(&[KeySpec::from(1, INSPECTS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Integer);

pub const EXPIRE: Spec = Spec::new(Group::Generic, "expire")
    .summary("Sets how many seconds a key has left")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::integer("seconds"),
        arg::one_of("condition", EXPIRE_CONDITIONS).since("7.0.0").optional(),
    ])
    .reply(Shape::Integer)
    .history(&[change("7.0.0", "NX, XX, GT and LT conditions.")]);

pub const PEXPIRE: Spec = Spec::new(Group::Generic, "pexpire")
    .summary("Sets how many milliseconds a key has left")
    .since("2.6.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::integer("milliseconds"),
        arg::one_of("condition", EXPIRE_CONDITIONS).since("7.0.0").optional(),
    ])
    .reply(Shape::Integer)
    .history(&[change("7.0.0", "NX, XX, GT and LT conditions.")]);

pub const EXPIREAT: Spec = Spec::new(Group::Generic, "expireat")
    .summary("Sets the Unix second at which a key ends")
    .since("1.2.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::unix_time("unix-time-seconds"),
        arg::one_of("condition", EXPIRE_CONDITIONS).since("7.0.0").optional(),
    ])
    .reply(Shape::Integer)
    .history(&[change("7.0.0", "NX, XX, GT and LT conditions.")]);

pub const PEXPIREAT: Spec = Spec::new(Group::Generic, "pexpireat")
    .summary("Sets the Unix millisecond at which a key ends")
    .since("2.6.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::unix_time("unix-time-milliseconds"),
        arg::one_of("condition", EXPIRE_CONDITIONS).since("7.0.0").optional(),
    ])
    .reply(Shape::Integer)
    .history(&[change("7.0.0", "NX, XX, GT and LT conditions.")]);

pub const TTL: Spec = Spec::new(Group::Generic, "ttl")
    .summary("Returns how many seconds a key has left")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer)
    .history(&[change("2.8.0", "Answers -2 for a missing key.")]);

pub const PTTL: Spec = Spec::new(Group::Generic, "pttl")
    .summary("Returns how many milliseconds a key has left")
    .since("2.6.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer)
    .history(&[change("2.8.0", "Answers -2 for a missing key.")]);

pub const EXPIRETIME: Spec = Spec::new(Group::Generic, "expiretime")
    .summary("Returns the Unix second at which a key ends")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const PEXPIRETIME: Spec = Spec::new(Group::Generic, "pexpiretime")
    .summary("Returns the Unix millisecond at which a key ends")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const PERSIST: Spec = Spec::new(Group::Generic, "persist")
    .summary("Lets a key live on without a time to end")
    .since("2.2.0")
    .arity(Exactly(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::KEYSPACE)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

const SORT_ORDER: &[Arg] = &[arg::flag("asc").token("ASC"), arg::flag("desc").token("DESC")];
const SORT_LIMIT: &[Arg] = &[arg::integer("offset"), arg::integer("count")];
const SORT_CATEGORIES: Categories =
    Categories::SET.or(Categories::SORTEDSET).or(Categories::LIST).or(Categories::DANGEROUS);
/// The keys that BY and GET lead to.
const SORT_LOOKUPS: KeySpec = KeySpec::elsewhere(READS)
    .notes("What BY and GET name depends on the elements that are sorted.");

pub const SORT: Spec = Spec::new(Group::Generic, "sort")
    .summary("Sorts a list, a set or a sorted set, and perhaps stores the result")
    .complexity("O(N+M*log(M)) for N elements of which M are wanted, O(N) without sorting")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS).or(Flags::FURTHER_SHARDS))
    .recorded(Recorded::Rewritten)
    .categories(SORT_CATEGORIES)
    .keys(&[
        KeySpec::at(1, READS),
        SORT_LOOKUPS,
        KeySpec::elsewhere(OVERWRITES).notes("STORE may stand anywhere among the options."),
    ])
    .args(&[
        arg::key("key"),
        arg::key_pattern("by-pattern", 1).display("pattern").token("BY").optional(),
        arg::block("limit", SORT_LIMIT).token("LIMIT").optional(),
        arg::key_pattern("get-pattern", 1)
            .display("pattern")
            .token("GET")
            .optional()
            .multiple()
            .multiple_token(),
        arg::one_of("order", SORT_ORDER).optional(),
        arg::flag("sorting").token("ALPHA").optional(),
        arg::key("destination").of_spec(2).token("STORE").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Integer]));

pub const SORT_RO: Spec = Spec::new(Group::Generic, "sort_ro")
    .summary("Sorts a list, a set or a sorted set")
    .complexity("O(N+M*log(M)) for N elements of which M are wanted, O(N) without sorting")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS).or(Flags::FURTHER_SHARDS))
    .categories(SORT_CATEGORIES)
    .keys(&[KeySpec::at(1, READS), SORT_LOOKUPS])
    .args(&[
        arg::key("key"),
        arg::key_pattern("by-pattern", 1).display("pattern").token("BY").optional(),
        arg::block("limit", SORT_LIMIT).token("LIMIT").optional(),
        arg::key_pattern("get-pattern", 1)
            .display("pattern")
            .token("GET")
            .optional()
            .multiple()
            .multiple_token(),
        arg::one_of("order", SORT_ORDER).optional(),
        arg::flag("sorting").token("ALPHA").optional(),
    ])
    .reply(Shape::Array);

pub const OBJECT: Spec = Spec::new(Group::Generic, "object")
    .summary("Commands about how a value is kept")
    .complexity("Depends on the subcommand.")
    .since("2.2.3")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const OBJECT_ENCODING: Spec = Spec::new(Group::Generic, "object|encoding")
    .summary("Names the encoding that a value is kept in")
    .since("2.2.3")
    .arity(Exactly(3))
    .flags(Flags::READONLY)
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(2, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const OBJECT_FREQ: Spec = Spec::new(Group::Generic, "object|freq")
    .summary("Returns a key's counter of recent use")
    .since("4.0.0")
    .arity(Exactly(3))
    .flags(Flags::READONLY)
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(2, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Null]));

pub const OBJECT_IDLETIME: Spec = Spec::new(Group::Generic, "object|idletime")
    .summary("Returns how many seconds ago a key was last used")
    .since("2.2.3")
    .arity(Exactly(3))
    .flags(Flags::READONLY)
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(2, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Null]));

pub const OBJECT_REFCOUNT: Spec = Spec::new(Group::Generic, "object|refcount")
    .summary("Returns how many references a value has")
    .since("2.2.3")
    .arity(Exactly(3))
    .flags(Flags::READONLY)
    .categories(Categories::KEYSPACE)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(2, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Null]));

pub const OBJECT_HELP: Spec = Spec::new(Group::Generic, "object|help")
    .summary("Lists the subcommands")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::KEYSPACE)
    .reply(Shape::Array);
