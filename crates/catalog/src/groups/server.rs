//! The server: settings, state, logs, the whole keyspace, and COMMAND.

use super::*;

const FLUSH_MODES: &[Arg] = &[
    arg::flag("async").token("ASYNC").since("4.0.0"),
    arg::flag("sync").token("SYNC").since("6.2.0"),
];

const LOGS: &[Arg] = &[
    arg::flag("slow").token("SLOW"),
    arg::flag("large-request").token("LARGE-REQUEST"),
    arg::flag("large-reply").token("LARGE-REPLY"),
];

pub const INFO: Spec = Spec::new(Group::Server, "info")
    .summary("Reports the server's state and statistics")
    .arity(AtLeast(1))
    .flags(ANYTIME)
    .categories(Categories::DANGEROUS)
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
    .args(&[arg::string("section").optional().multiple()])
    .reply(Shape::Verbatim)
    .history(&[change("7.0.0", "Takes several sections.")]);

pub const CONFIG: Spec = Spec::new(Group::Server, "config")
    .summary("Commands about the server's settings")
    .complexity("Depends on the subcommand.")
    .since("2.0.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const CONFIG_GET: Spec = Spec::new(Group::Server, "config|get")
    .summary("Reads the settings that match patterns")
    .complexity("O(N) for N settings")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .args(&[arg::string("parameter").multiple()])
    .reply(Shape::Map)
    .history(&[change("7.0.0", "Takes several patterns.")]);

pub const CONFIG_SET: Spec = Spec::new(Group::Server, "config|set")
    .summary("Changes settings while the server runs")
    .complexity("O(N) for N settings")
    .since("2.0.0")
    .arity(AtLeast(4))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::FURTHER_SHARDS))
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .args(&[arg::block("data", &[arg::string("parameter"), arg::string("value")]).multiple()])
    .reply(Shape::Ok)
    .history(&[change("7.0.0", "Takes several settings, all or none of which change.")]);

pub const CONFIG_RESETSTAT: Spec = Spec::new(Group::Server, "config|resetstat")
    .summary("Sets the statistics back to zero")
    .since("2.0.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .reply(Shape::Ok);

pub const CONFIG_REWRITE: Spec = Spec::new(Group::Server, "config|rewrite")
    .summary("Writes the present settings to the configuration file")
    .since("2.8.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .reply(Shape::Ok);

pub const CONFIG_HELP: Spec = Spec::new(Group::Server, "config|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const COMMAND: Spec = Spec::new(Group::Server, "command")
    .summary("Describes every command")
    .complexity("O(N) for N commands")
    .since("2.8.13")
    .arity(AtLeast(1))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .tips(&["nondeterministic_output_order"])
    .reply(Shape::Array);

pub const COMMAND_COUNT: Spec = Spec::new(Group::Server, "command|count")
    .summary("Counts the commands")
    .since("2.8.13")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .reply(Shape::Integer);

pub const COMMAND_LIST: Spec = Spec::new(Group::Server, "command|list")
    .summary("Lists the names of commands")
    .complexity("O(N) for N commands")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .tips(&["nondeterministic_output_order"])
    .args(&[arg::one_of(
        "filterby",
        &[
            arg::string("module-name").token("MODULE"),
            arg::string("category").token("ACLCAT"),
            arg::pattern("pattern").token("PATTERN"),
        ],
    )
    .token("FILTERBY")
    .optional()])
    .reply(Shape::Array);

pub const COMMAND_INFO: Spec = Spec::new(Group::Server, "command|info")
    .summary("Describes the commands named, or all")
    .complexity("O(N) for N commands named")
    .since("2.8.13")
    .arity(AtLeast(2))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .tips(&["nondeterministic_output_order"])
    .args(&[arg::string("command-name").optional().multiple()])
    .reply(Shape::Array)
    .history(&[change("7.0.0", "Without names it describes all.")]);

pub const COMMAND_DOCS: Spec = Spec::new(Group::Server, "command|docs")
    .summary("Documents the commands named, or all")
    .complexity("O(N) for N commands named")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .tips(&["nondeterministic_output_order"])
    .args(&[arg::string("command-name").optional().multiple()])
    .reply(Shape::Map);

pub const COMMAND_GETKEYS: Spec = Spec::new(Group::Server, "command|getkeys")
    .summary("Picks the keys out of a full command")
    .complexity("O(N) for N arguments")
    .since("2.8.13")
    .arity(AtLeast(3))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .args(&[arg::string("command"), arg::string("arg").optional().multiple()])
    .reply(Shape::Array);

pub const COMMAND_GETKEYSANDFLAGS: Spec = Spec::new(Group::Server, "command|getkeysandflags")
    .summary("Picks out the keys of a full command and their use")
    .complexity("O(N) for N arguments")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .args(&[arg::string("command"), arg::string("arg").optional().multiple()])
    .reply(Shape::Array);

pub const COMMAND_HELP: Spec = Spec::new(Group::Server, "command|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::CONNECTION)
    .reply(Shape::Array);

pub const DBSIZE: Spec = Spec::new(Group::Server, "dbsize")
    .summary("Counts the keys of the database")
    .arity(Exactly(1))
    .flags(Flags::READONLY.or(Flags::FAST).or(Flags::ALL_SHARDS))
    .categories(Categories::KEYSPACE)
    .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
    .reply(Shape::Integer);

pub const FLUSHDB: Spec = Spec::new(Group::Server, "flushdb")
    .summary("Deletes every key of the database")
    .complexity("O(N) for N keys")
    .arity(AtLeast(1))
    .flags(Flags::WRITE.or(Flags::ALL_SHARDS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::DANGEROUS.or(Categories::KEYSPACE))
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::one_of("flush-type", FLUSH_MODES).optional()])
    .reply(Shape::Ok)
    .history(&[change("4.0.0", "ASYNC."), change("6.2.0", "SYNC.")]);

pub const FLUSHALL: Spec = Spec::new(Group::Server, "flushall")
    .summary("Deletes every key of every database")
    .complexity("O(N) for N keys")
    .arity(AtLeast(1))
    .flags(Flags::WRITE.or(Flags::ALL_SHARDS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::DANGEROUS.or(Categories::KEYSPACE))
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::one_of("flush-type", FLUSH_MODES).optional()])
    .reply(Shape::Ok)
    .history(&[change("4.0.0", "ASYNC."), change("6.2.0", "SYNC.")]);

pub const SWAPDB: Spec = Spec::new(Group::Server, "swapdb")
    .summary("Exchanges two databases")
    .complexity("O(N) for N clients that watch or wait for keys in either")
    .since("4.0.0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::FAST).or(Flags::ALL_SHARDS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::DANGEROUS.or(Categories::KEYSPACE))
    .args(&[arg::integer("index1"), arg::integer("index2")])
    .reply(Shape::Ok);

pub const TIME: Spec = Spec::new(Group::Server, "time")
    .summary("Returns the server's clock")
    .since("2.6.0")
    .arity(Exactly(1))
    .flags(ANYTIME.or(Flags::FAST))
    .tips(&["nondeterministic_output"])
    .reply(Shape::Array);

pub const LOLWUT: Spec = Spec::new(Group::Server, "lolwut")
    .summary("Draws a picture and names the version")
    .since("5.0.0")
    .arity(AtLeast(1))
    .flags(Flags::READONLY.or(Flags::FAST))
    .args(&[arg::integer("version").token("VERSION").optional()])
    .reply(Shape::Verbatim);

pub const MEMORY: Spec = Spec::new(Group::Server, "memory")
    .summary("Commands about memory")
    .complexity("Depends on the subcommand.")
    .since("4.0.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const MEMORY_USAGE: Spec = Spec::new(Group::Server, "memory|usage")
    .summary("Estimates the bytes that a key takes up")
    .complexity("O(N) for N elements sampled")
    .since("4.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .keys(&[KeySpec::at(2, INSPECTS)])
    .args(&[arg::key("key"), arg::integer("count").token("SAMPLES").optional()])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Null]));

pub const MEMORY_STATS: Spec = Spec::new(Group::Server, "memory|stats")
    .summary("Reports where the memory goes")
    .since("4.0.0")
    .arity(Exactly(2))
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
    .reply(Shape::Map);

pub const MEMORY_DOCTOR: Spec = Spec::new(Group::Server, "memory|doctor")
    .summary("Looks for trouble with memory and says what it found")
    .since("4.0.0")
    .arity(Exactly(2))
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
    .reply(Shape::Verbatim);

pub const MEMORY_MALLOC_STATS: Spec = Spec::new(Group::Server, "memory|malloc-stats")
    .summary("Prints the allocator's own statistics")
    .complexity("Grows with the memory in use; may be slow")
    .since("4.0.0")
    .arity(Exactly(2))
    .flags(Flags::LOADING)
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
    .reply(Shape::Verbatim);

pub const MEMORY_PURGE: Spec = Spec::new(Group::Server, "memory|purge")
    .summary("Asks the allocator to hand memory back")
    .complexity("Grows with the memory in use; may be slow")
    .since("4.0.0")
    .arity(Exactly(2))
    .flags(Flags::LOADING)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .reply(Shape::Ok);

pub const MEMORY_HELP: Spec = Spec::new(Group::Server, "memory|help")
    .summary("Lists the subcommands")
    .since("4.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const DEBUG: Spec = Spec::new(Group::Server, "debug")
    .summary("Commands for testing the server itself")
    .complexity("Depends on the subcommand.")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::ALL_SHARDS))
    .reply(Shape::Any)
    .internal();

pub const SLOWLOG: Spec = Spec::new(Group::Server, "slowlog")
    .summary("Commands about the log of slow commands")
    .complexity("Depends on the subcommand.")
    .since("2.2.12")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const SLOWLOG_GET: Spec = Spec::new(Group::Server, "slowlog|get")
    .summary("Reads the newest entries of the slow log")
    .complexity("O(N) for N entries read")
    .since("2.2.12")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(ANYTIME))
    .tips(&["request_policy:all_nodes", "nondeterministic_output"])
    .args(&[arg::integer("count").optional()])
    .reply(Shape::Array)
    .history(&[change("4.0.0", "Entries carry the client's address and name.")]);

pub const SLOWLOG_LEN: Spec = Spec::new(Group::Server, "slowlog|len")
    .summary("Counts the entries of the slow log")
    .since("2.2.12")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
    .reply(Shape::Integer);

pub const SLOWLOG_RESET: Spec = Spec::new(Group::Server, "slowlog|reset")
    .summary("Empties the slow log")
    .complexity("O(N) for N entries")
    .since("2.2.12")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .reply(Shape::Ok);

pub const SLOWLOG_HELP: Spec = Spec::new(Group::Server, "slowlog|help")
    .summary("Lists the subcommands")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const COMMANDLOG: Spec = Spec::new(Group::Server, "commandlog")
    .summary("Commands about the logs of costly commands")
    .complexity("Depends on the subcommand.")
    .since("8.1.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const COMMANDLOG_GET: Spec = Spec::new(Group::Server, "commandlog|get")
    .summary("Reads the newest entries of one log")
    .complexity("O(N) for N entries read")
    .since("8.1.0")
    .arity(Exactly(4))
    .flags(Flags::ADMIN.or(ANYTIME))
    .tips(&["request_policy:all_nodes", "nondeterministic_output"])
    .args(&[arg::integer("count"), arg::one_of("type", LOGS)])
    .reply(Shape::Array);

pub const COMMANDLOG_LEN: Spec = Spec::new(Group::Server, "commandlog|len")
    .summary("Counts the entries of one log")
    .since("8.1.0")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
    .args(&[arg::one_of("type", LOGS)])
    .reply(Shape::Integer);

pub const COMMANDLOG_RESET: Spec = Spec::new(Group::Server, "commandlog|reset")
    .summary("Empties one log")
    .complexity("O(N) for N entries")
    .since("8.1.0")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .args(&[arg::one_of("type", LOGS)])
    .reply(Shape::Ok);

pub const COMMANDLOG_HELP: Spec = Spec::new(Group::Server, "commandlog|help")
    .summary("Lists the subcommands")
    .since("8.1.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const LATENCY: Spec = Spec::new(Group::Server, "latency")
    .summary("Commands about spikes of latency")
    .complexity("Depends on the subcommand.")
    .since("2.8.13")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const LATENCY_LATEST: Spec = Spec::new(Group::Server, "latency|latest")
    .summary("Lists the latest spike of each kind of event")
    .since("2.8.13")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
    .reply(Shape::Array);

pub const LATENCY_HISTORY: Spec = Spec::new(Group::Server, "latency|history")
    .summary("Lists the spikes of one kind of event")
    .since("2.8.13")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
    .args(&[arg::string("event")])
    .reply(Shape::Array);

pub const LATENCY_RESET: Spec = Spec::new(Group::Server, "latency|reset")
    .summary("Forgets the spikes of some or all events")
    .since("2.8.13")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["request_policy:all_nodes", "response_policy:agg_sum"])
    .args(&[arg::string("event").optional().multiple()])
    .reply(Shape::Integer);

pub const LATENCY_GRAPH: Spec = Spec::new(Group::Server, "latency|graph")
    .summary("Draws the spikes of one kind of event")
    .since("2.8.13")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
    .args(&[arg::string("event")])
    .reply(Shape::Verbatim);

pub const LATENCY_DOCTOR: Spec = Spec::new(Group::Server, "latency|doctor")
    .summary("Looks for causes of latency and says what it found")
    .since("2.8.13")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
    .reply(Shape::Verbatim);

pub const LATENCY_HISTOGRAM: Spec = Spec::new(Group::Server, "latency|histogram")
    .summary("Returns how long commands took, as a distribution")
    .complexity("O(N) for N commands with figures")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
    .args(&[arg::string("command").optional().multiple()])
    .reply(Shape::Map);

pub const LATENCY_HELP: Spec = Spec::new(Group::Server, "latency|help")
    .summary("Lists the subcommands")
    .since("2.8.13")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const HOTKEYS: Spec = Spec::new(Group::Server, "hotkeys")
    .summary("Commands about the keys that cost most")
    .complexity("Depends on the subcommand.")
    .since("8.6.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const HOTKEYS_START: Spec = Spec::new(Group::Server, "hotkeys|start")
    .summary("Begins to track which keys cost most")
    .since("8.6.0")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT))
    .args(&[
        arg::block(
            "metrics",
            &[
                arg::integer("count"),
                arg::flag("cpu").token("CPU").optional(),
                arg::flag("net").token("NET").optional(),
            ],
        )
        .token("METRICS"),
        arg::integer("k").token("COUNT").optional(),
        arg::integer("seconds").token("DURATION").optional(),
        arg::integer("ratio").token("SAMPLE").optional(),
        arg::block("slots", &[arg::integer("count"), arg::integer("slot").multiple()])
            .token("SLOTS")
            .optional(),
    ])
    .reply(Shape::Ok);

pub const HOTKEYS_STOP: Spec = Spec::new(Group::Server, "hotkeys|stop")
    .summary("Ends the tracking; what it found can still be read")
    .since("8.6.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT))
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Null]));

pub const HOTKEYS_GET: Spec = Spec::new(Group::Server, "hotkeys|get")
    .summary("Lists the keys that have cost most, by each metric that was tracked")
    .complexity("O(K) for K keys listed, and what is kept to find them")
    .since("8.6.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT))
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const HOTKEYS_RESET: Spec = Spec::new(Group::Server, "hotkeys|reset")
    .summary("Forgets what the last tracking has found")
    .since("8.6.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT))
    .reply(Shape::Ok);

pub const HOTKEYS_HELP: Spec = Spec::new(Group::Server, "hotkeys|help")
    .summary("Lists the subcommands")
    .since("8.6.1")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const SHUTDOWN: Spec = Spec::new(Group::Server, "shutdown")
    .summary("Ends the server, saving first if so configured")
    .complexity("O(N) for N keys to save, otherwise O(1)")
    .arity(AtLeast(1))
    .flags(
        Flags::ADMIN
            .or(Flags::NOSCRIPT)
            .or(ANYTIME)
            .or(Flags::NO_MULTI)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::FURTHER_SHARDS),
    )
    .args(&[arg::one_of(
        "abort-selector",
        &[
            arg::block(
                "save-selector-block",
                &[
                    arg::one_of(
                        "save-selector",
                        &[arg::flag("nosave").token("NOSAVE"), arg::flag("save").token("SAVE")],
                    )
                    .optional(),
                    arg::flag("now").token("NOW").since("7.0.0").optional(),
                    arg::flag("force").token("FORCE").since("7.0.0").optional(),
                    arg::flag("safe").token("SAFE").since("9.0.0").optional(),
                    arg::flag("failover").token("FAILOVER").since("9.0.0").optional(),
                ],
            ),
            arg::flag("abort").token("ABORT").since("7.0.0"),
        ],
    )
    .optional()])
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Push]))
    .history(&[change("7.0.0", "NOW, FORCE and ABORT."), change("9.0.0", "SAFE and FAILOVER.")]);

pub const MONITOR: Spec = Spec::new(Group::Server, "monitor")
    .summary("Shows every command as the server receives it")
    .arity(Exactly(1))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME))
    .reply(Shape::Ok);

pub const SAVE: Spec = Spec::new(Group::Server, "save")
    .summary("Saves all data to a file, and answers when it is complete")
    .complexity("O(N) for N keys")
    .arity(Exactly(1))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING).or(Flags::NO_MULTI))
    .reply(Shape::Ok);

pub const BGREWRITEAOF: Spec = Spec::new(Group::Server, "bgrewriteaof")
    .summary("Replaces what the append-only log holds by the data as it is")
    .complexity("O(N) for N keys")
    .arity(Exactly(1))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING))
    .reply(Shape::Status);

pub const BGSAVE: Spec = Spec::new(Group::Server, "bgsave")
    .summary("Saves all data to a file while other calls go on")
    .complexity("O(1)")
    .arity(AtLeast(1))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING))
    .args(&[arg::one_of(
        "operation",
        &[
            arg::flag("schedule").token("SCHEDULE").since("3.2.2"),
            arg::flag("cancel").token("CANCEL").since("8.1.0"),
        ],
    )
    .optional()])
    .reply(Shape::Status)
    .history(&[change("3.2.2", "SCHEDULE."), change("8.1.0", "CANCEL.")]);

pub const LASTSAVE: Spec = Spec::new(Group::Server, "lastsave")
    .summary("Returns when the data was last saved")
    .arity(Exactly(1))
    .flags(ANYTIME.or(Flags::FAST))
    .categories(Categories::ADMIN.or(Categories::DANGEROUS))
    .tips(&["nondeterministic_output"])
    .reply(Shape::Integer);

pub const MODULE: Spec = Spec::new(Group::Server, "module")
    .summary("Commands about modules")
    .complexity("Depends on the subcommand.")
    .since("4.0.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const MODULE_HELP: Spec = Spec::new(Group::Server, "module|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const MODULE_LIST: Spec = Spec::new(Group::Server, "module|list")
    .summary("Lists the modules that are loaded")
    .complexity("O(N) for N modules")
    .since("4.0.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT))
    .tips(&["nondeterministic_output_order"])
    .reply(Shape::Array);

pub const MODULE_LOAD: Spec = Spec::new(Group::Server, "module|load")
    .summary("Loads a module")
    .since("4.0.0")
    .arity(AtLeast(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING))
    .args(&[arg::string("path"), arg::string("arg").optional().multiple()])
    .reply(Shape::Ok);

pub const MODULE_LOADEX: Spec = Spec::new(Group::Server, "module|loadex")
    .summary("Loads a module with settings")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING))
    .args(&[
        arg::string("path"),
        arg::block("configs", &[arg::string("name"), arg::string("value")])
            .token("CONFIG")
            .optional()
            .multiple(),
        arg::block("args", &[arg::string("arg")]).token("ARGS").optional().multiple(),
    ])
    .reply(Shape::Ok);

pub const MODULE_UNLOAD: Spec = Spec::new(Group::Server, "module|unload")
    .summary("Unloads a module")
    .since("4.0.0")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING))
    .args(&[arg::string("name")])
    .reply(Shape::Ok);
