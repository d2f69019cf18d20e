//! HyperLogLogs.

use super::*;

pub const PFADD: Spec = Spec::new(Group::HyperLogLog, "pfadd")
    .summary("Adds elements to a HyperLogLog, which is made if there is none")
    .complexity("O(1) for each element")
    .since("2.8.9")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::HYPERLOGLOG)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("element").optional().multiple()])
    .reply(Shape::Integer);

pub const PFCOUNT: Spec = Spec::new(Group::HyperLogLog, "pfcount")
    .summary("Estimates how many different elements were added to HyperLogLogs")
    .complexity("O(1) for one key, O(N) for N keys together")
    .since("2.8.9")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .recorded(Recorded::Verbatim)
    .categories(Categories::HYPERLOGLOG)
    .keys(&[KeySpec::from(1, Access::RW.or(Access::ACCESS))
        .notes("RW because the estimate is kept in the value")])
    .args(&[arg::key("key").multiple()])
    .reply(Shape::Integer);

pub const PFMERGE: Spec = Spec::new(Group::HyperLogLog, "pfmerge")
    .summary("Merges HyperLogLogs into one")
    .complexity("O(N) for N keys")
    .since("2.8.9")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::HYPERLOGLOG)
    .keys(&[
        KeySpec::at(1, Access::RW.or(Access::ACCESS).or(Access::INSERT)),
        KeySpec::from(2, READS),
    ])
    .args(&[arg::key("destkey"), arg::key("sourcekey").of_spec(1).optional().multiple()])
    .reply(Shape::Ok);

pub const PFDEBUG: Spec = Spec::new(Group::HyperLogLog, "pfdebug")
    .recorded(Recorded::Rewritten)
    .summary("Shows or changes how a HyperLogLog is stored")
    .complexity("N/A")
    .since("2.8.9")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::ADMIN))
    .categories(Categories::HYPERLOGLOG)
    .keys(&[KeySpec::at(2, Access::RW.or(Access::ACCESS))])
    .args(&[arg::string("subcommand"), arg::key("key")])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Bulk, Shape::Status, Shape::Integer]))
    .internal();

pub const PFSELFTEST: Spec = Spec::new(Group::HyperLogLog, "pfselftest")
    .summary("Tests the HyperLogLog code of this server")
    .complexity("N/A")
    .since("2.8.9")
    .arity(Exactly(1))
    .flags(Flags::ADMIN)
    .categories(Categories::HYPERLOGLOG)
    .reply(Shape::Ok)
    .internal();
