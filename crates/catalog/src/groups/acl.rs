//! ACL: the users and what they may do.

use super::*;

/// About users, by an administrator.
const MANAGES: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME);
const TO_ALL: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

pub const ACL: Spec = Spec::new(Group::Server, "acl")
    .summary("Commands about users and what they may do")
    .complexity("Depends on the subcommand.")
    .since("6.0.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const ACL_CAT: Spec = Spec::new(Group::Server, "acl|cat")
    .summary("Lists the categories, or the commands of one")
    .complexity("O(N) for N commands")
    .since("6.0.0")
    .arity(AtLeast(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME))
    .args(&[arg::string("category").optional()])
    .reply(Shape::Array);

pub const ACL_DELUSER: Spec = Spec::new(Group::Server, "acl|deluser")
    .summary("Deletes users")
    .complexity("O(N) for N users")
    .since("6.0.0")
    .arity(AtLeast(3))
    .flags(MANAGES)
    .tips(TO_ALL)
    .args(&[arg::string("username").multiple()])
    .reply(Shape::Integer);

pub const ACL_DRYRUN: Spec = Spec::new(Group::Server, "acl|dryrun")
    .summary("Returns whether a user may run a command, without running it")
    .since("7.0.0")
    .arity(AtLeast(4))
    .flags(MANAGES)
    .args(&[
        arg::string("username"),
        arg::string("command"),
        arg::string("arg").optional().multiple(),
    ])
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Bulk]));

pub const ACL_GENPASS: Spec = Spec::new(Group::Server, "acl|genpass")
    .summary("Makes up a password")
    .since("6.0.0")
    .arity(AtLeast(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME))
    .args(&[arg::integer("bits").optional()])
    .reply(Shape::Bulk);

pub const ACL_GETUSER: Spec = Spec::new(Group::Server, "acl|getuser")
    .summary("Describes a user")
    .since("6.0.0")
    .arity(Exactly(3))
    .flags(MANAGES)
    .args(&[arg::string("username")])
    .reply(Shape::OneOf(&[Shape::Map, Shape::Null]))
    .history(&[
        change("6.2.0", "Patterns of channels."),
        change("7.0.0", "Selectors; patterns as they are written in rules."),
    ]);

pub const ACL_HELP: Spec = Spec::new(Group::Server, "acl|help")
    .summary("Lists the subcommands")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const ACL_LIST: Spec = Spec::new(Group::Server, "acl|list")
    .summary("Lists the users with their rules")
    .complexity("O(N) for N users")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(MANAGES)
    .reply(Shape::Array);

pub const ACL_LOAD: Spec = Spec::new(Group::Server, "acl|load")
    .summary("Reads the users from their file")
    .complexity("O(N) for N users")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(MANAGES)
    .reply(Shape::Ok);

pub const ACL_LOG: Spec = Spec::new(Group::Server, "acl|log")
    .summary("Lists what users were refused")
    .complexity("O(N) for N entries")
    .since("6.0.0")
    .arity(AtLeast(2))
    .flags(MANAGES)
    .args(&[arg::one_of("operation", &[arg::integer("count"), arg::flag("reset").token("RESET")])
        .optional()])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Ok]));

pub const ACL_SAVE: Spec = Spec::new(Group::Server, "acl|save")
    .summary("Writes the users to their file")
    .complexity("O(N) for N users")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(MANAGES)
    .tips(TO_ALL)
    .reply(Shape::Ok);

pub const ACL_SETUSER: Spec = Spec::new(Group::Server, "acl|setuser")
    .summary("Makes a user or changes its rules")
    .complexity("O(N) for N rules")
    .since("6.0.0")
    .arity(AtLeast(3))
    .flags(MANAGES)
    .tips(TO_ALL)
    .args(&[arg::string("username"), arg::string("rule").optional().multiple()])
    .reply(Shape::Ok);

pub const ACL_USERS: Spec = Spec::new(Group::Server, "acl|users")
    .summary("Lists the names of the users")
    .complexity("O(N) for N users")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(MANAGES)
    .reply(Shape::Array);

pub const ACL_WHOAMI: Spec = Spec::new(Group::Server, "acl|whoami")
    .summary("Returns the user of this connection")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME))
    .reply(Shape::Bulk);
