//! The cluster: this server is none, so most of these are refused, in the words that clients know.

use super::*;

/// What nodes of a cluster tell each other or their administrator.
const OPERATES: Flags = Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING);
const VARIES: &[&str] = &["nondeterministic_output"];

pub const ASKING: Spec = Spec::new(Group::Cluster, "asking")
    .summary("Lets the next command use a slot that is being imported")
    .since("3.0.0")
    .arity(Exactly(1))
    .flags(Flags::FAST)
    .categories(Categories::CONNECTION)
    .reply(Shape::Ok);

pub const READONLY: Spec = Spec::new(Group::Cluster, "readonly")
    .summary("Lets this connection read from a replica")
    .since("3.0.0")
    .arity(Exactly(1))
    .flags(ANYTIME.or(Flags::FAST))
    .categories(Categories::CONNECTION)
    .reply(Shape::Ok);

pub const READWRITE: Spec = Spec::new(Group::Cluster, "readwrite")
    .summary("Takes READONLY back")
    .since("3.0.0")
    .arity(Exactly(1))
    .flags(ANYTIME.or(Flags::FAST))
    .categories(Categories::CONNECTION)
    .reply(Shape::Ok);

pub const CLUSTER: Spec = Spec::new(Group::Cluster, "cluster")
    .summary("Commands about the cluster")
    .complexity("Depends on the subcommand.")
    .since("3.0.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const CLUSTER_ADDSLOTS: Spec = Spec::new(Group::Cluster, "cluster|addslots")
    .summary("Gives slots to this node")
    .complexity("O(N) for N slots")
    .since("3.0.0")
    .arity(AtLeast(3))
    .flags(OPERATES)
    .args(&[arg::integer("slot").multiple()])
    .reply(Shape::Ok);

pub const CLUSTER_ADDSLOTSRANGE: Spec = Spec::new(Group::Cluster, "cluster|addslotsrange")
    .summary("Gives ranges of slots to this node")
    .complexity("O(N) for N slots")
    .since("7.0.0")
    .arity(AtLeast(4))
    .flags(OPERATES)
    .args(
        &[arg::block("range", &[arg::integer("start-slot"), arg::integer("end-slot")]).multiple()],
    )
    .reply(Shape::Ok);

pub const CLUSTER_BUMPEPOCH: Spec = Spec::new(Group::Cluster, "cluster|bumpepoch")
    .summary("Raises the epoch of the cluster")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(OPERATES)
    .tips(VARIES)
    .reply(Shape::Status);

pub const CLUSTER_CANCELSLOTMIGRATIONS: Spec =
    Spec::new(Group::Cluster, "cluster|cancelslotmigrations")
        .summary("Stops every move of slots")
        .complexity("O(N) for N moves")
        .since("9.0.0")
        .arity(Exactly(2))
        .flags(OPERATES)
        .reply(Shape::Ok);

pub const CLUSTER_COUNT_FAILURE_REPORTS: Spec =
    Spec::new(Group::Cluster, "cluster|count-failure-reports")
        .summary("Counts the reports that a node has failed")
        .complexity("O(N) for N reports")
        .since("3.0.0")
        .arity(Exactly(3))
        .flags(Flags::ADMIN.or(Flags::STALE))
        .tips(VARIES)
        .args(&[arg::string("node-id")])
        .reply(Shape::Integer);

pub const CLUSTER_COUNTKEYSINSLOT: Spec = Spec::new(Group::Cluster, "cluster|countkeysinslot")
    .summary("Counts the keys of a slot")
    .since("3.0.0")
    .arity(Exactly(3))
    .flags(Flags::STALE)
    .args(&[arg::integer("slot")])
    .reply(Shape::Integer);

pub const CLUSTER_DELSLOTS: Spec = Spec::new(Group::Cluster, "cluster|delslots")
    .summary("Takes slots from this node")
    .complexity("O(N) for N slots")
    .since("3.0.0")
    .arity(AtLeast(3))
    .flags(OPERATES)
    .args(&[arg::integer("slot").multiple()])
    .reply(Shape::Ok);

pub const CLUSTER_DELSLOTSRANGE: Spec = Spec::new(Group::Cluster, "cluster|delslotsrange")
    .summary("Takes ranges of slots from this node")
    .complexity("O(N) for N slots")
    .since("7.0.0")
    .arity(AtLeast(4))
    .flags(OPERATES)
    .args(
        &[arg::block("range", &[arg::integer("start-slot"), arg::integer("end-slot")]).multiple()],
    )
    .reply(Shape::Ok);

pub const CLUSTER_FAILOVER: Spec = Spec::new(Group::Cluster, "cluster|failover")
    .summary("Makes this replica the primary of its shard")
    .since("3.0.0")
    .arity(AtLeast(2))
    .flags(OPERATES)
    .args(&[arg::one_of(
        "options",
        &[arg::flag("force").token("FORCE"), arg::flag("takeover").token("TAKEOVER")],
    )
    .optional()])
    .reply(Shape::Ok);

pub const CLUSTER_FLUSHSLOT: Spec = Spec::new(Group::Cluster, "cluster|flushslot")
    .summary("Deletes every key of a slot")
    .complexity("O(N) for N keys")
    .since("9.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::ADMIN).or(Flags::NO_ASYNC_LOADING))
    .categories(Categories::KEYSPACE)
    .args(&[
        arg::integer("slot"),
        arg::one_of(
            "flush-type",
            &[arg::flag("async").token("ASYNC"), arg::flag("sync").token("SYNC")],
        )
        .optional(),
    ])
    .reply(Shape::Ok);

pub const CLUSTER_FLUSHSLOTS: Spec = Spec::new(Group::Cluster, "cluster|flushslots")
    .summary("Takes every slot from this node")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(OPERATES)
    .reply(Shape::Ok);

pub const CLUSTER_FORGET: Spec = Spec::new(Group::Cluster, "cluster|forget")
    .summary("Removes a node from the tables of this one")
    .since("3.0.0")
    .arity(Exactly(3))
    .flags(OPERATES)
    .args(&[arg::string("node-id")])
    .reply(Shape::Ok);

pub const CLUSTER_GETKEYSINSLOT: Spec = Spec::new(Group::Cluster, "cluster|getkeysinslot")
    .summary("Lists keys of a slot")
    .complexity("O(N) for N keys listed")
    .since("3.0.0")
    .arity(Exactly(4))
    .flags(Flags::STALE)
    .tips(VARIES)
    .args(&[arg::integer("slot"), arg::integer("count")])
    .reply(Shape::Array);

pub const CLUSTER_GETSLOTMIGRATIONS: Spec = Spec::new(Group::Cluster, "cluster|getslotmigrations")
    .summary("Describes the moves of slots")
    .complexity("O(N) for N moves")
    .since("9.0.0")
    .arity(Exactly(2))
    .flags(OPERATES)
    .reply(Shape::Array);

pub const CLUSTER_HELP: Spec = Spec::new(Group::Cluster, "cluster|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Array);

pub const CLUSTER_INFO: Spec = Spec::new(Group::Cluster, "cluster|info")
    .summary("Reports the state of the cluster")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .tips(VARIES)
    .reply(Shape::Verbatim);

pub const CLUSTER_KEYSLOT: Spec = Spec::new(Group::Cluster, "cluster|keyslot")
    .summary("Returns the slot of a key")
    .complexity("O(N) for N bytes of the key")
    .since("3.0.0")
    .arity(Exactly(3))
    .flags(Flags::STALE)
    .args(&[arg::string("key")])
    .reply(Shape::Integer);

pub const CLUSTER_LINKS: Spec = Spec::new(Group::Cluster, "cluster|links")
    .summary("Describes the connections between nodes")
    .complexity("O(N) for N nodes")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(Flags::STALE)
    .tips(VARIES)
    .reply(Shape::Array);

pub const CLUSTER_MEET: Spec = Spec::new(Group::Cluster, "cluster|meet")
    .summary("Makes a node part of the cluster")
    .since("3.0.0")
    .arity(AtLeast(4))
    .flags(OPERATES)
    .args(&[
        arg::string("ip"),
        arg::integer("port"),
        arg::integer("cluster-bus-port").since("4.0.0").optional(),
    ])
    .reply(Shape::Ok);

pub const CLUSTER_MIGRATESLOTS: Spec = Spec::new(Group::Cluster, "cluster|migrateslots")
    .summary("Moves slots to another node")
    .since("9.0.0")
    .arity(AtLeast(4))
    .flags(OPERATES)
    .args(&[arg::string("range").multiple(), arg::string("node-id")])
    .reply(Shape::Ok);

pub const CLUSTER_MYID: Spec = Spec::new(Group::Cluster, "cluster|myid")
    .summary("Returns the id of this node")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .reply(Shape::Bulk);

pub const CLUSTER_MYSHARDID: Spec = Spec::new(Group::Cluster, "cluster|myshardid")
    .summary("Returns the id of the shard of this node")
    .since("7.2.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .tips(VARIES)
    .reply(Shape::Bulk);

pub const CLUSTER_NODES: Spec = Spec::new(Group::Cluster, "cluster|nodes")
    .summary("Describes each node in a line")
    .complexity("O(N) for N nodes")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .tips(VARIES)
    .reply(Shape::Verbatim);

pub const CLUSTER_REPLICAS: Spec = Spec::new(Group::Cluster, "cluster|replicas")
    .summary("Describes the replicas of a primary")
    .complexity("O(N) for N replicas")
    .since("5.0.0")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(Flags::STALE))
    .tips(VARIES)
    .args(&[arg::string("node-id")])
    .reply(Shape::Array);

pub const CLUSTER_REPLICATE: Spec = Spec::new(Group::Cluster, "cluster|replicate")
    .summary("Makes this node a replica of another")
    .since("3.0.0")
    .arity(AtLeast(3))
    .flags(OPERATES)
    .args(&[arg::string("node-id-or-no-one").multiple()])
    .reply(Shape::Ok);

pub const CLUSTER_RESET: Spec = Spec::new(Group::Cluster, "cluster|reset")
    .summary("Makes this node forget the cluster")
    .complexity("O(N) for N nodes")
    .since("3.0.0")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(Flags::STALE).or(Flags::NOSCRIPT))
    .args(&[arg::one_of(
        "reset-type",
        &[arg::flag("hard").token("HARD"), arg::flag("soft").token("SOFT")],
    )
    .optional()])
    .reply(Shape::Ok);

pub const CLUSTER_SAVECONFIG: Spec = Spec::new(Group::Cluster, "cluster|saveconfig")
    .summary("Writes the state of the cluster to its file")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(OPERATES)
    .reply(Shape::Ok);

pub const CLUSTER_SET_CONFIG_EPOCH: Spec = Spec::new(Group::Cluster, "cluster|set-config-epoch")
    .summary("Sets the epoch of a new node")
    .since("3.0.0")
    .arity(Exactly(3))
    .flags(OPERATES)
    .args(&[arg::integer("config-epoch")])
    .reply(Shape::Ok);

pub const CLUSTER_SETSLOT: Spec = Spec::new(Group::Cluster, "cluster|setslot")
    .summary("Says where a slot is, or where it moves")
    .since("3.0.0")
    .arity(AtLeast(4))
    .flags(OPERATES)
    .args(&[arg::integer("slot"), arg::string("state").multiple()])
    .reply(Shape::Ok);

pub const CLUSTER_SHARDS: Spec = Spec::new(Group::Cluster, "cluster|shards")
    .summary("Describes the shards of the cluster")
    .complexity("O(N) for N nodes")
    .since("7.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .tips(VARIES)
    .reply(Shape::Array);

pub const CLUSTER_SLAVES: Spec = Spec::new(Group::Cluster, "cluster|slaves")
    .summary("Describes the replicas of a primary")
    .complexity("O(N) for N replicas")
    .since("3.0.0")
    .arity(Exactly(3))
    .flags(Flags::ADMIN.or(Flags::STALE))
    .tips(VARIES)
    .args(&[arg::string("node-id")])
    .reply(Shape::Array)
    .deprecated(Deprecation { since: "5.0.0", replaced_by: "CLUSTER REPLICAS" });

pub const CLUSTER_SLOT_STATS: Spec = Spec::new(Group::Cluster, "cluster|slot-stats")
    .summary("Reports the use of slots")
    .complexity("O(N) for N slots")
    .since("8.0.0")
    .arity(AtLeast(4))
    .flags(ANYTIME)
    .tips(&["nondeterministic_output", "request_policy:all_shards"])
    .args(&[arg::string("filter"), arg::string("arg").multiple()])
    .reply(Shape::Array);

pub const CLUSTER_SLOTS: Spec = Spec::new(Group::Cluster, "cluster|slots")
    .summary("Lists which nodes have which slots")
    .complexity("O(N) for N nodes")
    .since("3.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .tips(VARIES)
    .reply(Shape::Array);

pub const CLUSTER_SYNCSLOTS: Spec = Spec::new(Group::Cluster, "cluster|syncslots")
    .summary("Carries the move of slots between nodes")
    .since("9.0.0")
    .arity(AtLeast(3))
    .flags(OPERATES)
    .args(&[arg::string("arg").multiple()])
    .reply(Shape::Ok);
