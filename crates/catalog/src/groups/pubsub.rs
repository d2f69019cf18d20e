//! Channels and their listeners.

use super::*;

pub const SUBSCRIBE: Spec = Spec::new(Group::PubSub, "subscribe")
    .summary("Listens to channels")
    .complexity("O(N) for N channels")
    .since("2.0.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(Flags::NOSCRIPT).or(ANYTIME))
    .args(&[arg::string("channel").multiple()])
    .reply(Shape::Push);

pub const UNSUBSCRIBE: Spec = Spec::new(Group::PubSub, "unsubscribe")
    .summary("Stops listening to channels")
    .complexity("O(N) for N channels")
    .since("2.0.0")
    .arity(AtLeast(1))
    .flags(Flags::PUBSUB.or(Flags::NOSCRIPT).or(ANYTIME))
    .args(&[arg::string("channel").optional().multiple()])
    .reply(Shape::Push);

pub const PSUBSCRIBE: Spec = Spec::new(Group::PubSub, "psubscribe")
    .summary("Listens to every channel that matches a pattern")
    .complexity("O(N) for N patterns")
    .since("2.0.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(Flags::NOSCRIPT).or(ANYTIME))
    .args(&[arg::pattern("pattern").multiple()])
    .reply(Shape::Push);

pub const PUNSUBSCRIBE: Spec = Spec::new(Group::PubSub, "punsubscribe")
    .summary("Stops listening by pattern")
    .complexity("O(N) for N patterns")
    .since("2.0.0")
    .arity(AtLeast(1))
    .flags(Flags::PUBSUB.or(Flags::NOSCRIPT).or(ANYTIME))
    .args(&[arg::pattern("pattern").optional().multiple()])
    .reply(Shape::Push);

pub const SSUBSCRIBE: Spec = Spec::new(Group::PubSub, "ssubscribe")
    .summary("Listens to shard channels")
    .complexity("O(N) for N channels")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(Flags::NOSCRIPT).or(ANYTIME))
    .keys(&[KeySpec::from(1, CHANNEL)])
    .args(&[arg::string("shardchannel").multiple()])
    .reply(Shape::Push);

pub const SUNSUBSCRIBE: Spec = Spec::new(Group::PubSub, "sunsubscribe")
    .summary("Stops listening to shard channels")
    .complexity("O(N) for N channels")
    .since("7.0.0")
    .arity(AtLeast(1))
    .flags(Flags::PUBSUB.or(Flags::NOSCRIPT).or(ANYTIME))
    .keys(&[KeySpec::from(1, CHANNEL)])
    .args(&[arg::string("shardchannel").optional().multiple()])
    .reply(Shape::Push);

pub const PUBLISH: Spec = Spec::new(Group::PubSub, "publish")
    .summary("Sends a message to a channel's listeners")
    .complexity("O(N+M) for N listeners and M patterns in use")
    .since("2.0.0")
    .arity(Exactly(3))
    .flags(Flags::PUBSUB.or(ANYTIME).or(Flags::FAST))
    .recorded(Recorded::ReplicasOnly)
    .args(&[arg::string("channel"), arg::string("message")])
    .reply(Shape::Integer);

pub const SPUBLISH: Spec = Spec::new(Group::PubSub, "spublish")
    .summary("Sends a message to a shard channel's listeners")
    .complexity("O(N) for N listeners")
    .since("7.0.0")
    .arity(Exactly(3))
    .flags(Flags::PUBSUB.or(ANYTIME).or(Flags::FAST))
    .recorded(Recorded::ReplicasOnly)
    .keys(&[KeySpec::at(1, CHANNEL)])
    .args(&[arg::string("shardchannel"), arg::string("message")])
    .reply(Shape::Integer);

pub const PUBSUB: Spec = Spec::new(Group::PubSub, "pubsub")
    .summary("Commands about channels and their listeners")
    .complexity("Depends on the subcommand.")
    .since("2.8.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const PUBSUB_CHANNELS: Spec = Spec::new(Group::PubSub, "pubsub|channels")
    .summary("Lists the channels that someone listens to")
    .complexity("O(N) for N channels")
    .since("2.8.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(ANYTIME))
    .args(&[arg::pattern("pattern").optional()])
    .reply(Shape::Array);

pub const PUBSUB_NUMSUB: Spec = Spec::new(Group::PubSub, "pubsub|numsub")
    .summary("Counts the listeners of channels")
    .complexity("O(N) for N channels named")
    .since("2.8.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(ANYTIME))
    .args(&[arg::string("channel").optional().multiple()])
    .reply(Shape::Array);

pub const PUBSUB_NUMPAT: Spec = Spec::new(Group::PubSub, "pubsub|numpat")
    .summary("Counts the patterns that someone listens by")
    .since("2.8.0")
    .arity(Exactly(2))
    .flags(Flags::PUBSUB.or(ANYTIME))
    .reply(Shape::Integer);

pub const PUBSUB_SHARDCHANNELS: Spec = Spec::new(Group::PubSub, "pubsub|shardchannels")
    .summary("Lists the shard channels that someone listens to")
    .complexity("O(N) for N channels")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(ANYTIME))
    .args(&[arg::pattern("pattern").optional()])
    .reply(Shape::Array);

pub const PUBSUB_SHARDNUMSUB: Spec = Spec::new(Group::PubSub, "pubsub|shardnumsub")
    .summary("Counts the listeners of shard channels")
    .complexity("O(N) for N channels named")
    .since("7.0.0")
    .arity(AtLeast(2))
    .flags(Flags::PUBSUB.or(ANYTIME))
    .args(&[arg::string("shardchannel").optional().multiple()])
    .reply(Shape::Array);

pub const PUBSUB_HELP: Spec = Spec::new(Group::PubSub, "pubsub|help")
    .summary("Lists the subcommands")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);
