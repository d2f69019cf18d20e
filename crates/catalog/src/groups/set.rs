//! Sets.

use super::*;

pub const SADD: Spec = Spec::new(Group::Set, "sadd")
    .summary("Adds members to a set")
    .complexity("O(N) for N members")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("member").multiple()])
    .reply(Shape::Integer)
    .history(&[change("2.4.0", "Takes several members.")]);

pub const SREM: Spec = Spec::new(Group::Set, "srem")
    .summary("Removes members from a set")
    .complexity("O(N) for N members")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::string("member").multiple()])
    .reply(Shape::Integer)
    .history(&[change("2.4.0", "Takes several members.")]);

pub const SISMEMBER: Spec = Spec::new(Group::Set, "sismember")
    .summary("Returns whether a set has a member")
    .arity(Exactly(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key"), arg::string("member")])
    .reply(Shape::Integer);

pub const SMISMEMBER: Spec = Spec::new(Group::Set, "smismember")
    .summary("Returns which of several members a set has")
    .complexity("O(N) for N members")
    .since("6.2.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("member").multiple()])
    .reply(Shape::Array);

pub const SCARD: Spec = Spec::new(Group::Set, "scard")
    .summary("Returns how many members a set has")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const SMEMBERS: Spec = Spec::new(Group::Set, "smembers")
    .summary("Reads all members of a set")
    .complexity("O(N) for N members")
    .arity(Exactly(2))
    .flags(Flags::READONLY)
    .categories(Categories::SET)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Set);

pub const SPOP: Spec = Spec::new(Group::Set, "spop")
    .summary("Takes members out of a set at random")
    .complexity("O(N) for N members taken")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::SET)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key"), arg::integer("count").since("3.2.0").optional()])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Set, Shape::Null]))
    .history(&[change("3.2.0", "Takes a count.")]);

pub const SRANDMEMBER: Spec = Spec::new(Group::Set, "srandmember")
    .summary("Reads members of a set at random")
    .complexity("O(N) for N members asked for")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::SET)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("count").since("2.6.0").optional()])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Array, Shape::Null]))
    .history(&[change("2.6.0", "Takes a count.")]);

pub const SMOVE: Spec = Spec::new(Group::Set, "smove")
    .summary("Moves a member from one set to another")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[arg::key("source"), arg::key("destination").of_spec(1), arg::string("member")])
    .reply(Shape::Integer);

pub const SSCAN: Spec = Spec::new(Group::Set, "sscan")
    .summary("Walks the members of a set a step at a time")
    .complexity("O(1) per call, O(N) for a walk over N members")
    .since("2.8.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::SET)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::integer("cursor"),
        arg::pattern("pattern").token("MATCH").optional(),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::Array);

pub const SINTER: Spec = Spec::new(Group::Set, "sinter")
    .summary("Reads the members that several sets have in common")
    .complexity("O(N*M) for M sets, the smallest of N members")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .categories(Categories::SET)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::from(1, READS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Set);

pub const SUNION: Spec = Spec::new(Group::Set, "sunion")
    .summary("Reads the members that any of several sets has")
    .complexity("O(N) for N members in all sets")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .categories(Categories::SET)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::from(1, READS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Set);

pub const SDIFF: Spec = Spec::new(Group::Set, "sdiff")
    .summary("Reads the members of the first set that no other has")
    .complexity("O(N) for N members in all sets")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .categories(Categories::SET)
    .tips(&["nondeterministic_output_order"])
    .keys(&[KeySpec::from(1, READS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Set);

pub const SINTERSTORE: Spec = Spec::new(Group::Set, "sinterstore")
    .summary("Keeps the members that several sets have in common")
    .complexity("O(N*M) for M sets, the smallest of N members")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::from(2, READS)])
    .args(&[arg::key("destination"), arg::key("key").of_spec(1).multiple()])
    .reply(Shape::Integer);

pub const SUNIONSTORE: Spec = Spec::new(Group::Set, "sunionstore")
    .summary("Keeps the members that any of several sets has")
    .complexity("O(N) for N members in all sets")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::from(2, READS)])
    .args(&[arg::key("destination"), arg::key("key").of_spec(1).multiple()])
    .reply(Shape::Integer);

pub const SDIFFSTORE: Spec = Spec::new(Group::Set, "sdiffstore")
    .summary("Keeps the members of the first set that no other has")
    .complexity("O(N) for N members in all sets")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::SET)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::from(2, READS)])
    .args(&[arg::key("destination"), arg::key("key").of_spec(1).multiple()])
    .reply(Shape::Integer);

pub const SINTERCARD: Spec = Spec::new(Group::Set, "sintercard")
    .summary("Counts the members that several sets have in common")
    .complexity("O(N*M) for M sets, the smallest of N members")
    .since("7.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::integer("limit").token("LIMIT").optional(),
    ])
    .reply(Shape::Integer);

pub const SUNIONCARD: Spec = Spec::new(Group::Set, "sunioncard")
    .summary("Counts the members that any of several sets has")
    .complexity("O(N) for N members in all sets")
    .since("8.10.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::flag("approx").token("APPROX").optional(),
        arg::integer("limit").token("LIMIT").optional(),
    ])
    .reply(Shape::Integer);

pub const SDIFFCARD: Spec = Spec::new(Group::Set, "sdiffcard")
    .summary("Counts the members of the first set that no other has")
    .complexity("O(N) for N members in all sets")
    .since("8.10.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY.or(Flags::MOVABLE_KEYS))
    .categories(Categories::SET)
    .keys(&[KeySpec::counted(1, READS)])
    .args(&[
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::integer("limit").token("LIMIT").optional(),
    ])
    .reply(Shape::Integer);
