//! Replication: this server is a primary without replicas.

use super::*;

const FOLLOWS: Flags =
    Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::STALE).or(Flags::NO_ASYNC_LOADING);
const FROM_EACH_SHARD: &[&str] = &["request_policy:all_shards", "response_policy:agg_min"];

pub const ROLE: Spec = Spec::new(Group::Server, "role")
    .summary("Returns whether this is a primary or a replica, and of which server")
    .since("2.8.12")
    .arity(Exactly(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST))
    .categories(Categories::ADMIN.or(Categories::DANGEROUS))
    .reply(Shape::Array);

pub const REPLICAOF: Spec = Spec::new(Group::Server, "replicaof")
    .summary("Makes the server a replica of another, or a primary")
    .since("5.0.0")
    .arity(Exactly(3))
    .flags(FOLLOWS)
    .args(&[arg::string("host"), arg::string("port")])
    .reply(Shape::Ok);

pub const SLAVEOF: Spec = Spec::new(Group::Server, "slaveof")
    .summary("Makes the server a replica of another, or a primary")
    .arity(Exactly(3))
    .flags(FOLLOWS)
    .args(&[arg::string("host"), arg::string("port")])
    .reply(Shape::Ok)
    .deprecated(Deprecation { since: "5.0.0", replaced_by: "REPLICAOF" });

pub const WAIT: Spec = Spec::new(Group::Generic, "wait")
    .summary("Waits until replicas have this connection's writes")
    .since("3.0.0")
    .arity(Exactly(3))
    .flags(Flags::BLOCKING)
    .categories(Categories::CONNECTION)
    .tips(FROM_EACH_SHARD)
    .args(&[arg::integer("numreplicas"), arg::integer("timeout")])
    .reply(Shape::Integer);

pub const WAITAOF: Spec = Spec::new(Group::Generic, "waitaof")
    .summary("Waits until this connection's writes are on disk")
    .since("7.2.0")
    .arity(Exactly(4))
    .flags(Flags::BLOCKING)
    .categories(Categories::CONNECTION)
    .tips(FROM_EACH_SHARD)
    .args(&[arg::integer("numlocal"), arg::integer("numreplicas"), arg::integer("timeout")])
    .reply(Shape::Array);

pub const FAILOVER: Spec = Spec::new(Group::Server, "failover")
    .summary("Hands the work of a primary over to one of its replicas")
    .since("6.2.0")
    .arity(AtLeast(1))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::STALE))
    .args(&[
        arg::block(
            "target",
            &[
                arg::string("host"),
                arg::integer("port"),
                arg::flag("force").token("FORCE").optional(),
            ],
        )
        .token("TO")
        .optional(),
        arg::flag("abort").token("ABORT").optional(),
        arg::integer("milliseconds").token("TIMEOUT").optional(),
    ])
    .reply(Shape::Ok);

const STREAMS: Flags =
    Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING).or(Flags::NO_MULTI);

pub const SYNC: Spec = Spec::new(Group::Server, "sync")
    .summary("Asks for all data and the stream of writes, as a replica does")
    .arity(Exactly(1))
    .flags(STREAMS)
    .reply(Shape::Status);

pub const PSYNC: Spec = Spec::new(Group::Server, "psync")
    .summary("Asks for the stream of writes from an offset on, as a replica does")
    .since("2.8.0")
    .arity(AtLeast(3))
    .flags(STREAMS)
    .args(&[arg::string("replicationid"), arg::integer("offset")])
    .reply(Shape::Status);

pub const REPLCONF: Spec = Spec::new(Group::Server, "replconf")
    .summary("Says what a replica is and how far it has come")
    .since("3.0.0")
    .arity(AtLeast(1))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::ALLOW_BUSY))
    .reply(Shape::Ok)
    .internal();
