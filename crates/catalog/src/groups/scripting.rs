//! Scripts and functions.

use super::*;

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
    .flags(Flags::WRITE.and(Flags::NOSCRIPT))
    .categories(Categories::SCRIPTING)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::one_of(
        "flush-type",
        &[arg::flag("async").token("ASYNC"), arg::flag("sync").token("SYNC")],
    )
    .optional()])
    .reply(Shape::Ok);

pub const FUNCTION_HELP: Spec = Spec::new(Group::Scripting, "function|help")
    .summary("Lists the subcommands")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::SCRIPTING)
    .reply(Shape::Array);
