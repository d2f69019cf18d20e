//! MULTI and its kin.

use super::*;

pub const MULTI: Spec = Spec::new(Group::Transactions, "multi")
    .summary("Starts queueing commands for EXEC")
    .since("1.2.0")
    .arity(Exactly(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST).or(Flags::NO_MULTI).or(Flags::ALLOW_BUSY))
    .categories(Categories::TRANSACTION)
    .reply(Shape::Ok);

pub const EXEC: Spec = Spec::new(Group::Transactions, "exec")
    .summary("Runs the queued commands as one")
    .complexity("Depends on the queued commands.")
    .since("1.2.0")
    .arity(Exactly(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::SKIP_SLOWLOG))
    .categories(Categories::TRANSACTION)
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const DISCARD: Spec = Spec::new(Group::Transactions, "discard")
    .summary("Drops the queued commands")
    .complexity("O(N) for N queued commands")
    .since("2.0.0")
    .arity(Exactly(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST).or(Flags::ALLOW_BUSY))
    .categories(Categories::TRANSACTION)
    .reply(Shape::Ok);

pub const WATCH: Spec = Spec::new(Group::Transactions, "watch")
    .summary("Makes EXEC fail if one of these keys changes first")
    .complexity("O(N) for N keys")
    .since("2.2.0")
    .arity(AtLeast(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST).or(Flags::NO_MULTI).or(Flags::ALLOW_BUSY))
    .categories(Categories::TRANSACTION)
    .keys(&[KeySpec::from(1, INSPECTS)])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Ok);

pub const UNWATCH: Spec = Spec::new(Group::Transactions, "unwatch")
    .summary("Forgets all watched keys")
    .since("2.2.0")
    .arity(Exactly(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST).or(Flags::ALLOW_BUSY))
    .categories(Categories::TRANSACTION)
    .reply(Shape::Ok);
