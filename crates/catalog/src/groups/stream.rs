//! Streams.

use super::*;
use crate::spec::{Begin, Find};

const fn after_streams(from: i16) -> KeySpec {
    KeySpec {
        access: READS,
        begin: Begin::Keyword { token: "STREAMS", from },
        find: Find::Range { last: -1, step: 1, limit: 2 },
        notes: "",
    }
}

const TRIM: &[Arg] = &[
    arg::one_of(
        "strategy",
        &[arg::flag("maxlen").token("MAXLEN"), arg::flag("minid").token("MINID").since("6.2.0")],
    ),
    arg::one_of(
        "operator",
        &[arg::flag("equal").token("="), arg::flag("approximately").token("~")],
    )
    .optional(),
    arg::string("threshold"),
    arg::integer("count").token("LIMIT").since("6.2.0").optional(),
];

/// What becomes of the references that groups hold.
const CONDITION: Arg = arg::one_of(
    "condition",
    &[
        arg::flag("keepref").token("KEEPREF"),
        arg::flag("delref").token("DELREF"),
        arg::flag("acked").token("ACKED"),
    ],
)
.since("8.2.0")
.optional();

const IDS: Arg =
    arg::block("ids", &[arg::integer("numids"), arg::string("id").multiple()]).token("IDS");

const STREAMS: Arg =
    arg::block("streams", &[arg::key("key").multiple(), arg::string("id").multiple()])
        .token("STREAMS");

const OR_NEWEST: Arg =
    arg::one_of("id-selector", &[arg::string("id"), arg::flag("new-id").token("$")]);

pub const XADD: Spec = Spec::new(Group::Stream, "xadd")
    .summary("Adds an entry to a stream, which is made if there is none")
    .complexity("O(1); with trimming, O(N) for N entries that go")
    .since("5.0.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, UPDATES).notes("An update, not an insert: it may trim, too")])
    .args(&[
        arg::key("key"),
        arg::flag("nomkstream").token("NOMKSTREAM").since("6.2.0").optional(),
        CONDITION,
        arg::one_of(
            "idmp",
            &[
                arg::string("producer-id").token("IDMPAUTO"),
                arg::block(
                    "idmp-block",
                    &[arg::string("producer-id"), arg::string("idempotent-id")],
                )
                .token("IDMP"),
            ],
        )
        .since("8.6.0")
        .optional(),
        arg::block("trim", TRIM).optional(),
        arg::one_of("id-selector", &[arg::flag("auto-id").token("*"), arg::string("id")]),
        arg::block("data", &[arg::string("field"), arg::string("value")]).multiple(),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]))
    .history(&[
        change("6.2.0", "Knows NOMKSTREAM, MINID and LIMIT."),
        change("7.0.0", "The number of an ID may be left to the server."),
        change("8.2.0", "Knows KEEPREF, DELREF and ACKED."),
        change("8.6.0", "Knows IDMP and IDMPAUTO."),
    ]);

pub const XLEN: Spec = Spec::new(Group::Stream, "xlen")
    .summary("Returns how many entries a stream has")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const XRANGE: Spec = Spec::new(Group::Stream, "xrange")
    .summary("Reads the entries between two IDs")
    .complexity("O(log B + N) for B blocks and N entries read")
    .since("5.0.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("start"),
        arg::string("end"),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]))
    .history(&[change("6.2.0", "Either end may be left out of the range.")]);

pub const XREVRANGE: Spec = Spec::new(Group::Stream, "xrevrange")
    .summary("Reads the entries between two IDs, the last first")
    .complexity("O(log B + N) for B blocks and N entries read")
    .since("5.0.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("end"),
        arg::string("start"),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]))
    .history(&[change("6.2.0", "Either end may be left out of the range.")]);

pub const XREAD: Spec = Spec::new(Group::Stream, "xread")
    .summary("Reads the entries of streams behind given IDs, or waits for some")
    .complexity("O(N) for N entries read")
    .since("5.0.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY.or(Flags::BLOCKING).or(Flags::MOVABLE_KEYS))
    .categories(Categories::STREAM)
    .keys(&[after_streams(1)])
    .args(&[
        arg::integer("count").token("COUNT").optional(),
        arg::integer("maxcount").token("MAXCOUNT").since("8.10.0").optional(),
        arg::integer("maxsize").token("MAXSIZE").since("8.10.0").optional(),
        arg::integer("milliseconds").token("BLOCK").optional(),
        STREAMS,
    ])
    .reply(Shape::OneOf(&[Shape::Map, Shape::Array, Shape::Null]))
    .history(&[change("8.10.0", "Knows MAXCOUNT and MAXSIZE.")]);

pub const XREADGROUP: Spec = Spec::new(Group::Stream, "xreadgroup")
    .summary("Delivers entries to a consumer of a group, new or once more, or waits for some")
    .complexity("O(N) for N entries read")
    .since("5.0.0")
    .arity(AtLeast(7))
    .flags(Flags::WRITE.or(Flags::BLOCKING).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .keys(&[after_streams(4)])
    .args(&[
        arg::block("group-block", &[arg::string("group"), arg::string("consumer")]).token("GROUP"),
        arg::integer("count").token("COUNT").optional(),
        arg::integer("maxcount").token("MAXCOUNT").since("8.10.0").optional(),
        arg::integer("maxsize").token("MAXSIZE").since("8.10.0").optional(),
        arg::integer("milliseconds").token("BLOCK").optional(),
        arg::integer("min-idle-time").token("CLAIM").since("8.4.0").optional(),
        arg::flag("noack").token("NOACK").optional(),
        STREAMS,
    ])
    .reply(Shape::OneOf(&[Shape::Map, Shape::Array, Shape::Null]))
    .history(&[change("8.4.0", "Knows CLAIM."), change("8.10.0", "Knows MAXCOUNT and MAXSIZE.")]);

pub const XGROUP: Spec = Spec::new(Group::Stream, "xgroup")
    .summary("Commands about the groups that read a stream")
    .complexity("That of the subcommand.")
    .since("5.0.0")
    .arity(AtLeast(2));

pub const XGROUP_CREATE: Spec = Spec::new(Group::Stream, "xgroup|create")
    .summary("Makes a group that reads a stream from an ID on")
    .since("5.0.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::SHORT))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, INSERTS)])
    .args(&[
        arg::key("key"),
        arg::string("group"),
        OR_NEWEST,
        arg::flag("mkstream").token("MKSTREAM").optional(),
        arg::integer("entriesread").display("entries-read").token("ENTRIESREAD").optional(),
    ])
    .reply(Shape::Ok)
    .history(&[change("7.0.0", "Knows ENTRIESREAD.")]);

pub const XGROUP_CREATECONSUMER: Spec = Spec::new(Group::Stream, "xgroup|createconsumer")
    .summary("Makes a consumer in a group")
    .since("6.2.0")
    .arity(Exactly(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::SHORT))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, INSERTS)])
    .args(&[arg::key("key"), arg::string("group"), arg::string("consumer")])
    .reply(Shape::Integer);

pub const XGROUP_DELCONSUMER: Spec = Spec::new(Group::Stream, "xgroup|delconsumer")
    .summary("Removes a consumer and what is pending for it")
    .complexity("O(N) for N entries pending for it")
    .since("5.0.0")
    .arity(Exactly(5))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, TRIMS)])
    .args(&[arg::key("key"), arg::string("group"), arg::string("consumer")])
    .reply(Shape::Integer);

pub const XGROUP_DESTROY: Spec = Spec::new(Group::Stream, "xgroup|destroy")
    .summary("Removes a group")
    .complexity("O(N) for N entries pending in it")
    .since("5.0.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, TRIMS)])
    .args(&[arg::key("key"), arg::string("group")])
    .reply(Shape::Integer);

pub const XGROUP_SETID: Spec = Spec::new(Group::Stream, "xgroup|setid")
    .summary("Sets the ID behind which a group reads on")
    .since("5.0.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::SHORT))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::string("group"),
        OR_NEWEST,
        arg::integer("entriesread").display("entries-read").token("ENTRIESREAD").optional(),
    ])
    .reply(Shape::Ok)
    .history(&[change("7.0.0", "Knows ENTRIESREAD.")]);

pub const XGROUP_HELP: Spec = Spec::new(Group::Stream, "xgroup|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::STREAM)
    .reply(Shape::Array);

pub const XACK: Spec = Spec::new(Group::Stream, "xack")
    .summary("Takes entries off a group's pending list")
    .complexity("O(log P) for each ID, P pending")
    .since("5.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::string("group"), arg::string("id").multiple()])
    .reply(Shape::Integer);

pub const XACKDEL: Spec = Spec::new(Group::Stream, "xackdel")
    .summary("Takes entries off a group's pending list and deletes them")
    .complexity("O(log P) for each ID, P pending")
    .since("8.2.0")
    .arity(AtLeast(6))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, UPDATES.or(Access::DELETE))])
    .args(&[arg::key("key"), arg::string("group"), CONDITION, IDS])
    .reply(Shape::Array);

pub const XNACK: Spec = Spec::new(Group::Stream, "xnack")
    .summary("Gives pending entries back to their group, to be claimed at once")
    .complexity("O(log P) for each ID, P pending")
    .since("8.8.0")
    .arity(AtLeast(7))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::string("group"),
        arg::one_of(
            "mode",
            &[
                arg::flag("silent").token("SILENT"),
                arg::flag("fail").token("FAIL"),
                arg::flag("fatal").token("FATAL"),
            ],
        ),
        IDS,
        arg::integer("count").token("RETRYCOUNT").optional(),
        arg::flag("force").token("FORCE").optional(),
    ])
    .reply(Shape::Integer);

pub const XDEL: Spec = Spec::new(Group::Stream, "xdel")
    .summary("Deletes entries by their IDs")
    .complexity("O(log B) for each ID, B blocks")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::string("id").multiple()])
    .reply(Shape::Integer);

pub const XDELEX: Spec = Spec::new(Group::Stream, "xdelex")
    .summary("Deletes entries, as far as the groups that read them allow it")
    .complexity("O(log B) for each ID, B blocks")
    .since("8.2.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), CONDITION, IDS])
    .reply(Shape::Array);

pub const XPENDING: Spec = Spec::new(Group::Stream, "xpending")
    .summary("Shows what a group has delivered and nobody has acknowledged")
    .complexity("O(log P + N) for P pending and N looked at")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::STREAM)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("group"),
        arg::block(
            "filters",
            &[
                arg::integer("min-idle-time").token("IDLE").since("6.2.0").optional(),
                arg::string("start"),
                arg::string("end"),
                arg::integer("count"),
                arg::string("consumer").optional(),
            ],
        )
        .optional(),
    ])
    .reply(Shape::Array)
    .history(&[change("6.2.0", "Knows IDLE, and ranges without their ends.")]);

pub const XCLAIM: Spec = Spec::new(Group::Stream, "xclaim")
    .summary("Gives pending entries to a consumer, as if they had been delivered to it")
    .complexity("O(log P) for each ID, P pending")
    .since("5.0.0")
    .arity(AtLeast(6))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::string("group"),
        arg::string("consumer"),
        arg::string("min-idle-time"),
        arg::string("id").multiple(),
        arg::integer("ms").token("IDLE").optional(),
        arg::unix_time("unix-time-milliseconds").token("TIME").optional(),
        arg::integer("count").token("RETRYCOUNT").optional(),
        arg::flag("force").token("FORCE").optional(),
        arg::flag("justid").token("JUSTID").optional(),
        arg::string("lastid").token("LASTID").optional(),
    ])
    .reply(Shape::Array);

pub const XAUTOCLAIM: Spec = Spec::new(Group::Stream, "xautoclaim")
    .summary("Gives a consumer the entries that have been pending for long")
    .complexity("O(log P) for each entry looked at, P pending")
    .since("6.2.0")
    .arity(AtLeast(6))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[
        arg::key("key"),
        arg::string("group"),
        arg::string("consumer"),
        arg::string("min-idle-time"),
        arg::string("start"),
        arg::integer("count").token("COUNT").optional(),
        arg::flag("justid").token("JUSTID").optional(),
    ])
    .reply(Shape::Array)
    .history(&[change("7.0.0", "Tells the IDs that are gone from the stream.")]);

pub const XTRIM: Spec = Spec::new(Group::Stream, "xtrim")
    .summary("Drops the first entries of a stream")
    .complexity("O(N) for N entries dropped, a block at a time")
    .since("5.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Rewritten)
    .categories(Categories::STREAM)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::block("trim", TRIM), CONDITION])
    .reply(Shape::Integer)
    .history(&[
        change("6.2.0", "Knows MINID and LIMIT."),
        change("8.2.0", "Knows KEEPREF, DELREF and ACKED."),
    ]);

pub const XSETID: Spec = Spec::new(Group::Stream, "xsetid")
    .summary("Sets what a stream says of its past: used by replication")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::string("last-id"),
        arg::integer("entries-added").token("ENTRIESADDED").since("7.0.0").optional(),
        arg::string("max-deleted-id").token("MAXDELETEDID").since("7.0.0").optional(),
    ])
    .reply(Shape::Ok)
    .history(&[change("7.0.0", "Knows ENTRIESADDED and MAXDELETEDID.")]);

pub const XCFGSET: Spec = Spec::new(Group::Stream, "xcfgset")
    .summary("Sets for how long and how many messages of a producer are remembered")
    .since("8.6.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::integer("duration").token("IDMP-DURATION").optional(),
        arg::integer("maxsize").token("IDMP-MAXSIZE").optional(),
    ])
    .reply(Shape::Ok);

pub const XINFO: Spec = Spec::new(Group::Stream, "xinfo")
    .summary("Commands that look into a stream")
    .complexity("That of the subcommand.")
    .since("5.0.0")
    .arity(AtLeast(2));

pub const XINFO_STREAM: Spec = Spec::new(Group::Stream, "xinfo|stream")
    .summary("Shows what is known of a stream")
    .complexity("O(N) for N entries shown")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, READS)])
    .args(&[
        arg::key("key"),
        arg::block(
            "full-block",
            &[arg::flag("full").token("FULL"), arg::integer("count").token("COUNT").optional()],
        )
        .optional(),
    ])
    .reply(Shape::Map)
    .history(&[
        change("6.0.0", "Knows FULL."),
        change("7.0.0", "Tells what was added and deleted, and what groups have read."),
        change("7.2.0", "Tells when a consumer was last active."),
        change("8.6.0", "Tells of idempotent producers."),
        change("8.8.0", "Tells how many entries were given back."),
    ]);

pub const XINFO_GROUPS: Spec = Spec::new(Group::Stream, "xinfo|groups")
    .summary("Lists the groups of a stream")
    .complexity("O(N) for N groups")
    .since("5.0.0")
    .arity(Exactly(3))
    .flags(Flags::READONLY)
    .categories(Categories::STREAM)
    .keys(&[KeySpec::at(2, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Array)
    .history(&[change("7.0.0", "Tells how much was read and how much is left.")]);

pub const XINFO_CONSUMERS: Spec = Spec::new(Group::Stream, "xinfo|consumers")
    .summary("Lists the consumers of a group")
    .complexity("O(N) for N consumers")
    .since("5.0.0")
    .arity(Exactly(4))
    .flags(Flags::READONLY)
    .categories(Categories::STREAM)
    .tips(&["nondeterministic_output"])
    .keys(&[KeySpec::at(2, READS)])
    .args(&[arg::key("key"), arg::string("group")])
    .reply(Shape::Array)
    .history(&[change("7.2.0", "Tells how long a consumer has got nothing.")]);

pub const XINFO_HELP: Spec = Spec::new(Group::Stream, "xinfo|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME)
    .categories(Categories::STREAM)
    .reply(Shape::Array);
