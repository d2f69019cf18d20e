//! Scripts and functions.

use super::*;

const CALL_ARGS: &[Arg] = &[
    arg::integer("numkeys"),
    arg::key("key").optional().multiple(),
    arg::string("arg").optional().multiple(),
];

const UNKNOWN_USE: &str = "What a script does with its keys can't be told: the most is assumed";
const KEYS_CHANGED: &[KeySpec] = &[KeySpec::counted(2, CHANGES).notes(UNKNOWN_USE)];
const KEYS_READ: &[KeySpec] = &[KeySpec::counted(2, READS).notes(UNKNOWN_USE)];

/// The flags that all commands have which run a script.
const RUNS: Flags = Flags::NOSCRIPT
    .or(Flags::STALE)
    .or(Flags::SKIP_MONITOR)
    .or(Flags::NO_MANDATORY_KEYS)
    .or(Flags::MOVABLE_KEYS);

const fn runs(name: &'static str) -> Spec {
    Spec::new(Group::Scripting, name)
        .complexity("That of the script.")
        .arity(AtLeast(3))
        .flags(RUNS)
        .categories(Categories::SCRIPTING)
        .keys(KEYS_CHANGED)
        .reply(Shape::Any)
}

const fn runs_read_only(name: &'static str) -> Spec {
    Spec::new(Group::Scripting, name)
        .complexity("That of the script.")
        .since("7.0.0")
        .arity(AtLeast(3))
        .flags(RUNS.or(Flags::READONLY))
        .categories(Categories::SCRIPTING)
        .keys(KEYS_READ)
        .reply(Shape::Any)
}

const SCRIPT_ARGS: &[Arg] = &[arg::string("script"), CALL_ARGS[0], CALL_ARGS[1], CALL_ARGS[2]];
const SHA_ARGS: &[Arg] = &[arg::string("sha1"), CALL_ARGS[0], CALL_ARGS[1], CALL_ARGS[2]];

pub const EVAL: Spec = runs("eval").summary("Runs a script").since("2.6.0").args(SCRIPT_ARGS);

pub const EVALSHA: Spec = runs("evalsha")
    .summary("Runs a script that the server knows, by its digest")
    .since("2.6.0")
    .args(SHA_ARGS);

pub const EVAL_RO: Spec =
    runs_read_only("eval_ro").summary("Runs a script that may not write").args(SCRIPT_ARGS);

pub const EVALSHA_RO: Spec = runs_read_only("evalsha_ro")
    .summary("Runs a script that the server knows and that may not write, by its digest")
    .args(SHA_ARGS);

const FUNCTION_ARGS: &[Arg] = &[arg::string("function"), CALL_ARGS[0], CALL_ARGS[1], CALL_ARGS[2]];

pub const FCALL: Spec =
    runs("fcall").summary("Calls a function").since("7.0.0").args(FUNCTION_ARGS);

pub const FCALL_RO: Spec =
    runs_read_only("fcall_ro").summary("Calls a function that may not write").args(FUNCTION_ARGS);

pub const ONCE: Spec = Spec::new(Group::Scripting, "once")
    .summary("Runs a command at most once for a request id, and answers a repeat as the first")
    .complexity("That of the command; O(1) for a repeat.")
    .since("8.0.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::NOSCRIPT).or(Flags::NO_MULTI).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::SCRIPTING)
    .keys(&[KeySpec::elsewhere(CHANGES).notes("The keys are those of the command that it runs")])
    .args(&[
        arg::string("request-id"),
        arg::integer("milliseconds").token("PX"),
        arg::string("command"),
        arg::string("arg").optional().multiple(),
    ])
    .reply(Shape::Any);

pub const SCRIPT: Spec = Spec::new(Group::Scripting, "script")
    .summary("Commands about the cache of scripts")
    .complexity("Depends on the subcommand.")
    .since("2.6.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const SCRIPT_LOAD: Spec = Spec::new(Group::Scripting, "script|load")
    .summary("Puts a script into the cache without running it")
    .complexity("O(N) for a source of N bytes")
    .since("2.6.0")
    .arity(Exactly(3))
    .flags(Flags::NOSCRIPT.or(Flags::STALE))
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .args(&[arg::string("script")])
    .reply(Shape::Bulk);

pub const SCRIPT_EXISTS: Spec = Spec::new(Group::Scripting, "script|exists")
    .summary("Returns which scripts are in the cache")
    .complexity("O(N) for N digests")
    .since("2.6.0")
    .arity(AtLeast(3))
    .flags(Flags::NOSCRIPT.or(Flags::STALE))
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
    .args(&[arg::string("sha1").multiple()])
    .reply(Shape::Array);

pub const SCRIPT_SHOW: Spec = Spec::new(Group::Scripting, "script|show")
    .summary("Answers the source of a script in the cache")
    .complexity("O(1)")
    .since("8.0.0")
    .arity(Exactly(3))
    .flags(Flags::NOSCRIPT.or(Flags::STALE))
    .categories(Categories::SCRIPTING)
    .args(&[arg::string("sha1")])
    .reply(Shape::Bulk);

pub const SCRIPT_FLUSH: Spec = Spec::new(Group::Scripting, "script|flush")
    .summary("Forgets every script in the cache")
    .complexity("O(N) for N scripts")
    .since("2.6.0")
    .arity(AtLeast(2))
    .flags(Flags::NOSCRIPT.or(Flags::STALE))
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .args(&[arg::one_of(
        "flush-type",
        &[arg::flag("async").token("ASYNC"), arg::flag("sync").token("SYNC")],
    )
    .optional()])
    .reply(Shape::Ok)
    .history(&[change("6.2.0", "Takes ASYNC and SYNC.")]);

pub const SCRIPT_KILL: Spec = Spec::new(Group::Scripting, "script|kill")
    .summary("Ends the scripts that run too long and have not written")
    .complexity("O(1)")
    .since("2.6.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(Flags::ALLOW_BUSY))
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
    .reply(Shape::Ok);

pub const SCRIPT_DEBUG: Spec = Spec::new(Group::Scripting, "script|debug")
    .summary("Sets how scripts of this client are debugged")
    .complexity("O(1)")
    .since("3.2.0")
    .arity(AtLeast(3))
    .flags(Flags::NOSCRIPT)
    .categories(Categories::SCRIPTING)
    .args(&[
        arg::one_of(
            "mode",
            &[
                arg::flag("yes").token("YES"),
                arg::flag("sync").token("SYNC"),
                arg::flag("no").token("NO"),
            ],
        ),
        arg::string("engine-name").optional(),
    ])
    .reply(Shape::Ok);

pub const SCRIPT_STATS: Spec = Spec::new(Group::Scripting, "script|stats")
    .summary("Returns how often and how long each script and function ran, and what it locks")
    .complexity("O(N) for N scripts and functions")
    .since("8.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(Flags::ALLOW_BUSY))
    .categories(Categories::SCRIPTING)
    .reply(Shape::Array);

pub const SCRIPT_HELP: Spec = Spec::new(Group::Scripting, "script|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::SCRIPTING)
    .reply(Shape::Array);

pub const FUNCTION: Spec = Spec::new(Group::Scripting, "function")
    .summary("Commands about function libraries")
    .complexity("Depends on the subcommand.")
    .since("7.0.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const FUNCTION_FLUSH: Spec = Spec::new(Group::Scripting, "function|flush")
    .summary("Deletes every library")
    .complexity("O(N) for N functions")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::NOSCRIPT))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::one_of(
        "flush-type",
        &[arg::flag("async").token("ASYNC"), arg::flag("sync").token("SYNC")],
    )
    .optional()])
    .reply(Shape::Ok);

pub const FUNCTION_LOAD: Spec = Spec::new(Group::Scripting, "function|load")
    .summary("Adds a library")
    .complexity("O(1), considering that compiling a library takes little")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::NOSCRIPT))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::flag("replace").token("REPLACE").optional(), arg::string("function-code")])
    .reply(Shape::Bulk);

pub const FUNCTION_DELETE: Spec = Spec::new(Group::Scripting, "function|delete")
    .summary("Deletes a library and its functions")
    .complexity("O(1)")
    .since("7.0.0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::NOSCRIPT))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::string("library-name")])
    .reply(Shape::Ok);

pub const FUNCTION_LIST: Spec = Spec::new(Group::Scripting, "function|list")
    .summary("Lists the libraries and their functions")
    .complexity("O(N) for N functions")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::NOSCRIPT)
    .categories(Categories::SCRIPTING)
    .tips(&["nondeterministic_output_order"])
    .args(&[
        arg::string("library-name-pattern").token("LIBRARYNAME").optional(),
        arg::flag("withcode").token("WITHCODE").optional(),
    ])
    .reply(Shape::Array);

pub const FUNCTION_STATS: Spec = Spec::new(Group::Scripting, "function|stats")
    .summary("Returns what runs now, and how many libraries and functions there are")
    .complexity("O(N) for N functions")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(Flags::ALLOW_BUSY))
    .categories(Categories::SCRIPTING)
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
    .reply(Shape::Any);

pub const FUNCTION_KILL: Spec = Spec::new(Group::Scripting, "function|kill")
    .summary("Ends the functions that run too long and have not written")
    .complexity("O(1)")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(Flags::ALLOW_BUSY))
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
    .reply(Shape::Ok);

pub const FUNCTION_DUMP: Spec = Spec::new(Group::Scripting, "function|dump")
    .summary("Answers all libraries as one payload")
    .complexity("O(N) for N functions")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT)
    .categories(Categories::SCRIPTING)
    .reply(Shape::Bulk);

pub const FUNCTION_RESTORE: Spec = Spec::new(Group::Scripting, "function|restore")
    .summary("Adds the libraries of a payload")
    .complexity("O(N) for N functions in the payload")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::NOSCRIPT))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[
        arg::string("serialized-value"),
        arg::one_of(
            "policy",
            &[
                arg::flag("flush").token("FLUSH"),
                arg::flag("append").token("APPEND"),
                arg::flag("replace").token("REPLACE"),
            ],
        )
        .optional(),
    ])
    .reply(Shape::Ok);

pub const FUNCTION_HELP: Spec = Spec::new(Group::Scripting, "function|help")
    .summary("Lists the subcommands")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::SCRIPTING)
    .reply(Shape::Array);
