//! The connection itself: protocol, login, names, CLIENT.

use super::*;

const CLIENT_TYPES: &[Arg] = &[
    arg::flag("normal").token("NORMAL"),
    arg::flag("master").token("MASTER"),
    arg::flag("replica").token("REPLICA"),
    arg::flag("pubsub").token("PUBSUB"),
];

const YES_OR_NO: &[Arg] = &[arg::flag("yes").token("YES"), arg::flag("no").token("NO")];

const ON_OR_OFF: &[Arg] = &[arg::flag("on").token("ON"), arg::flag("off").token("OFF")];

pub const HELLO: Spec = Spec::new(Group::Connection, "hello")
    .summary("Switches the protocol version and may log in at once")
    .since("6.0.0")
    .arity(AtLeast(1))
    .flags(
        Flags::NOSCRIPT
            .or(ANYTIME)
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::PASSES_PAUSE),
    )
    .categories(Categories::CONNECTION)
    .args(&[arg::block(
        "arguments",
        &[
            arg::integer("protover"),
            arg::block("auth", &[arg::string("username"), arg::string("password")])
                .token("AUTH")
                .optional(),
            arg::string("clientname").token("SETNAME").optional(),
        ],
    )
    .optional()])
    .reply(Shape::Map)
    .history(&[
        change("8.1.0", "The reply carries availability_zone where one is configured."),
        change("6.2.0", "The version may be left out, to read the connection's facts."),
    ]);

pub const AUTH: Spec = Spec::new(Group::Connection, "auth")
    .summary("Logs the connection in")
    .complexity("O(N) for N passwords of the user")
    .arity(AtLeast(2))
    .flags(
        Flags::NOSCRIPT
            .or(ANYTIME)
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::PASSES_PAUSE),
    )
    .categories(Categories::CONNECTION)
    .args(&[arg::string("username").since("6.0.0").optional(), arg::string("password")])
    .reply(Shape::Ok)
    .history(&[change("6.0.0", "A user name may come before the password.")]);

pub const PING: Spec = Spec::new(Group::Connection, "ping")
    .summary("Answers PONG, or the message sent along")
    .arity(AtLeast(1))
    .flags(Flags::FAST)
    .categories(Categories::CONNECTION)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .args(&[arg::string("message").optional()])
    .reply(Shape::OneOf(&[Shape::Status, Shape::Bulk]));

pub const ECHO: Spec = Spec::new(Group::Connection, "echo")
    .summary("Sends the message back")
    .arity(Exactly(2))
    .flags(ANYTIME.or(Flags::FAST))
    .categories(Categories::CONNECTION)
    .args(&[arg::string("message")])
    .reply(Shape::Bulk);

pub const QUIT: Spec = Spec::new(Group::Connection, "quit")
    .summary("Answers, then closes the connection")
    .arity(AtLeast(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST).or(Flags::NO_AUTH).or(Flags::ALLOW_BUSY))
    .categories(Categories::CONNECTION)
    .reply(Shape::Ok)
    .deprecated(Deprecation { since: "7.2.0", replaced_by: "closing the connection" });

pub const RESET: Spec = Spec::new(Group::Connection, "reset")
    .summary("Puts the connection back as it was when it was opened")
    .since("6.2.0")
    .arity(Exactly(1))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::FAST).or(Flags::NO_AUTH).or(Flags::ALLOW_BUSY))
    .categories(Categories::CONNECTION)
    .reply(Shape::Status);

pub const SELECT: Spec = Spec::new(Group::Connection, "select")
    .summary("Chooses the database that the connection works on")
    .arity(Exactly(2))
    .flags(ANYTIME.or(Flags::FAST).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[arg::integer("index")])
    .reply(Shape::Ok);

pub const CLIENT: Spec = Spec::new(Group::Connection, "client")
    .summary("Commands about client connections")
    .complexity("Depends on the subcommand.")
    .since("2.4.0")
    .arity(AtLeast(2))
    .reply(Shape::Any);

pub const CLIENT_ID: Spec = Spec::new(Group::Connection, "client|id")
    .summary("Returns the number of this connection")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .reply(Shape::Integer);

pub const CLIENT_GETNAME: Spec = Spec::new(Group::Connection, "client|getname")
    .summary("Returns the name given to this connection")
    .since("2.6.9")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const CLIENT_SETNAME: Spec = Spec::new(Group::Connection, "client|setname")
    .summary("Names this connection")
    .since("2.6.9")
    .arity(Exactly(3))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .args(&[arg::string("connection-name")])
    .reply(Shape::Ok);

pub const CLIENT_SETINFO: Spec = Spec::new(Group::Connection, "client|setinfo")
    .summary("Records which library and version the client is built on")
    .since("7.2.0")
    .arity(Exactly(4))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .args(&[arg::one_of(
        "attr",
        &[arg::string("libname").token("LIB-NAME"), arg::string("libver").token("LIB-VER")],
    )])
    .reply(Shape::Ok);

pub const CLIENT_INFO: Spec = Spec::new(Group::Connection, "client|info")
    .summary("Describes this connection in one line")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .tips(&["nondeterministic_output"])
    .reply(Shape::Verbatim);

pub const CLIENT_LIST: Spec = Spec::new(Group::Connection, "client|list")
    .summary("Describes each open connection in a line")
    .complexity("O(N) for N connections")
    .since("2.4.0")
    .arity(AtLeast(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .tips(&["nondeterministic_output"])
    .args(&[
        arg::one_of("client-type", CLIENT_TYPES).token("TYPE").since("5.0.0").optional(),
        arg::integer("client-id").token("ID").since("6.2.0").optional().multiple(),
        arg::string("username").token("USER").since("8.1.0").optional(),
        arg::string("addr").token("ADDR").display("ip:port").since("8.1.0").optional(),
        arg::string("laddr").token("LADDR").display("ip:port").since("8.1.0").optional(),
        arg::one_of("skipme", YES_OR_NO).token("SKIPME").since("8.1.0").optional(),
        arg::integer("maxage").token("MAXAGE").since("8.1.0").optional(),
        arg::string("name").token("NAME").since("9.0.0").optional(),
        arg::integer("idle").token("IDLE").since("9.0.0").optional(),
        arg::string("flags").token("FLAGS").since("9.0.0").optional(),
        arg::string("lib-name").token("LIB-NAME").since("9.0.0").optional(),
        arg::string("lib-ver").token("LIB-VER").since("9.0.0").optional(),
        arg::integer("db").token("DB").since("9.0.0").optional(),
        arg::string("capa").token("CAPA").since("9.0.0").optional(),
        arg::string("ip").token("IP").since("9.0.0").optional(),
        arg::one_of("not-client-type", CLIENT_TYPES).token("NOT-TYPE").since("9.0.0").optional(),
        arg::integer("not-client-id").token("NOT-ID").since("9.0.0").optional().multiple(),
        arg::string("not-username").token("NOT-USER").since("9.0.0").optional(),
        arg::string("not-addr").token("NOT-ADDR").display("ip:port").since("9.0.0").optional(),
        arg::string("not-laddr").token("NOT-LADDR").display("ip:port").since("9.0.0").optional(),
        arg::string("not-name").token("NOT-NAME").since("9.0.0").optional(),
        arg::string("not-flags").token("NOT-FLAGS").since("9.0.0").optional(),
        arg::string("not-lib-name").token("NOT-LIB-NAME").since("9.0.0").optional(),
        arg::string("not-lib-ver").token("NOT-LIB-VER").since("9.0.0").optional(),
        arg::integer("not-db").token("NOT-DB").since("9.0.0").optional(),
        arg::string("not-capa").token("NOT-CAPA").since("9.0.0").optional(),
        arg::string("not-ip").token("NOT-IP").since("9.0.0").optional(),
    ])
    .reply(Shape::Verbatim)
    .history(&[
        change("2.8.12", "Lines carry the connection's id."),
        change("5.0.0", "TYPE filter."),
        change("6.0.0", "Lines carry the user."),
        change("6.2.0", "ID filter; lines carry argv-mem, tot-mem, laddr and redir."),
        change("7.0.0", "Lines carry resp, multi-mem, rbs and rbp."),
        change("7.0.3", "Lines carry ssub."),
        change("8.0.0", "TYPE takes primary; master means the same."),
        change("8.1.0", "USER, ADDR, LADDR, SKIPME and MAXAGE filters."),
        change(
            "9.0.0",
            "Filters by name, idle time, flags, library, database and IP, most with a NOT- form.",
        ),
    ]);

pub const CLIENT_KILL: Spec = Spec::new(Group::Connection, "client|kill")
    .summary("Closes connections chosen by address or by filters")
    .complexity("O(N) for N connections")
    .since("2.4.0")
    .arity(AtLeast(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[arg::one_of(
        "filter",
        &[
            arg::string("old-format").display("ip:port").deprecated("2.8.12"),
            arg::one_of(
                "new-format",
                &[
                    arg::integer("client-id").token("ID").since("2.8.12").optional().multiple(),
                    arg::one_of(
                        "client-type",
                        &[
                            arg::flag("normal").token("NORMAL"),
                            arg::flag("master").token("MASTER").since("3.2.0"),
                            arg::flag("primary").token("PRIMARY").since("8.0.0"),
                            arg::flag("slave").token("SLAVE"),
                            arg::flag("replica").token("REPLICA").since("5.0.0"),
                            arg::flag("pubsub").token("PUBSUB"),
                        ],
                    )
                    .token("TYPE")
                    .since("2.8.12")
                    .optional(),
                    arg::string("username").token("USER").optional(),
                    arg::string("addr").token("ADDR").display("ip:port").optional(),
                    arg::string("laddr")
                        .token("LADDR")
                        .display("ip:port")
                        .since("6.2.0")
                        .optional(),
                    arg::one_of("skipme", YES_OR_NO).token("SKIPME").optional(),
                    arg::integer("maxage").token("MAXAGE").since("8.0.0").optional(),
                    arg::string("name").token("NAME").since("9.0.0").optional(),
                    arg::integer("idle").token("IDLE").since("9.0.0").optional(),
                    arg::string("flags").token("FLAGS").since("9.0.0").optional(),
                    arg::string("lib-name").token("LIB-NAME").since("9.0.0").optional(),
                    arg::string("lib-ver").token("LIB-VER").since("9.0.0").optional(),
                    arg::integer("db").token("DB").since("9.0.0").optional(),
                    arg::string("capa").token("CAPA").since("9.0.0").optional(),
                    arg::string("ip").token("IP").since("9.0.0").optional(),
                    arg::one_of(
                        "not-client-type",
                        &[
                            arg::flag("normal").token("NORMAL"),
                            arg::flag("master").token("MASTER"),
                            arg::flag("primary").token("PRIMARY"),
                            arg::flag("slave").token("SLAVE"),
                            arg::flag("replica").token("REPLICA"),
                            arg::flag("pubsub").token("PUBSUB"),
                        ],
                    )
                    .token("NOT-TYPE")
                    .since("9.0.0")
                    .optional(),
                    arg::integer("not-client-id")
                        .token("NOT-ID")
                        .since("9.0.0")
                        .optional()
                        .multiple(),
                    arg::string("not-username").token("NOT-USER").since("9.0.0").optional(),
                    arg::string("not-addr")
                        .token("NOT-ADDR")
                        .display("ip:port")
                        .since("9.0.0")
                        .optional(),
                    arg::string("not-laddr")
                        .token("NOT-LADDR")
                        .display("ip:port")
                        .since("9.0.0")
                        .optional(),
                    arg::string("not-name").token("NOT-NAME").since("9.0.0").optional(),
                    arg::string("not-flags").token("NOT-FLAGS").since("9.0.0").optional(),
                    arg::string("not-lib-name").token("NOT-LIB-NAME").since("9.0.0").optional(),
                    arg::string("not-lib-ver").token("NOT-LIB-VER").since("9.0.0").optional(),
                    arg::integer("not-db").token("NOT-DB").since("9.0.0").optional(),
                    arg::string("not-capa").token("NOT-CAPA").since("9.0.0").optional(),
                    arg::string("not-ip").token("NOT-IP").since("9.0.0").optional(),
                ],
            )
            .multiple(),
        ],
    )])
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Integer]))
    .history(&[
        change("2.8.12", "Filters by name and value."),
        change("2.8.12", "ID filter."),
        change("3.2.0", "TYPE takes master."),
        change("5.0.0", "TYPE takes replica; slave means the same."),
        change("6.2.0", "LADDR filter."),
        change("8.0.0", "MAXAGE filter."),
        change("8.0.0", "TYPE takes primary; master means the same."),
        change("8.1.0", "ID takes several numbers."),
        change(
            "9.0.0",
            "Filters by name, idle time, flags, library, database and IP, most with a NOT- form.",
        ),
    ]);

pub const CLIENT_NO_EVICT: Spec = Spec::new(Group::Connection, "client|no-evict")
    .summary("Shields this connection from being closed when memory is short")
    .since("7.0.0")
    .arity(Exactly(3))
    .flags(
        Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE),
    )
    .categories(Categories::CONNECTION)
    .args(&[arg::one_of("enabled", ON_OR_OFF)])
    .reply(Shape::Ok);

pub const CLIENT_NO_TOUCH: Spec = Spec::new(Group::Connection, "client|no-touch")
    .summary("Makes reads by this connection leave no trace in key ages")
    .since("7.2.0")
    .arity(Exactly(3))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[arg::one_of("enabled", ON_OR_OFF)])
    .reply(Shape::Ok);

pub const CLIENT_CAPA: Spec = Spec::new(Group::Connection, "client|capa")
    .summary("Declares what this client can do")
    .complexity("O(1)")
    .since("8.0.0")
    .arity(AtLeast(3))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[arg::string("capability").multiple()])
    .reply(Shape::Ok);

pub const CLIENT_REPLY: Spec = Spec::new(Group::Connection, "client|reply")
    .summary("Turns replies off or on, or skips the next one")
    .since("3.2.0")
    .arity(Exactly(3))
    .flags(
        Flags::NOSCRIPT
            .or(ANYTIME)
            .or(Flags::NO_MULTI)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::PASSES_PAUSE),
    )
    .categories(Categories::CONNECTION)
    .args(&[arg::one_of(
        "action",
        &[
            arg::flag("on").token("ON"),
            arg::flag("off").token("OFF"),
            arg::flag("skip").token("SKIP"),
        ],
    )])
    .reply(Shape::OneOf(&[Shape::Ok, Shape::Push]));

pub const CLIENT_PAUSE: Spec = Spec::new(Group::Connection, "client|pause")
    .summary("Holds back clients' commands for a while")
    .since("3.0.0")
    .arity(AtLeast(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[
        arg::integer("timeout"),
        arg::one_of("mode", &[arg::flag("write").token("WRITE"), arg::flag("all").token("ALL")])
            .since("6.2.0")
            .optional(),
    ])
    .reply(Shape::Ok)
    .history(&[change("6.2.0", "A mode chooses between all commands and writes only.")]);

pub const CLIENT_UNPAUSE: Spec = Spec::new(Group::Connection, "client|unpause")
    .summary("Ends a pause early")
    .complexity("O(N) for N held connections")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .reply(Shape::Ok);

pub const CLIENT_UNBLOCK: Spec = Spec::new(Group::Connection, "client|unblock")
    .summary("Wakes a client that waits in a blocking command")
    .complexity("O(log N) for N connections")
    .since("5.0.0")
    .arity(AtLeast(3))
    .flags(Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[
        arg::integer("client-id"),
        arg::one_of(
            "unblock-type",
            &[arg::flag("timeout").token("TIMEOUT"), arg::flag("error").token("ERROR")],
        )
        .optional(),
    ])
    .reply(Shape::Integer);

pub const CLIENT_IMPORT_SOURCE: Spec = Spec::new(Group::Connection, "client|import-source")
    .summary("Says whether this connection brings data from another server")
    .since("8.1.0")
    .arity(Exactly(3))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[arg::one_of("enabled", ON_OR_OFF)])
    .reply(Shape::Ok);

pub const CLIENT_HELP: Spec = Spec::new(Group::Connection, "client|help")
    .summary("Lists the subcommands")
    .since("5.0.0")
    .arity(Exactly(2))
    .flags(ANYTIME.or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .reply(Shape::Array);

pub const CLIENT_CACHING: Spec = Spec::new(Group::Connection, "client|caching")
    .summary("Says whether the next command's keys are tracked")
    .since("6.0.0")
    .arity(Exactly(3))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[arg::one_of("mode", YES_OR_NO)])
    .reply(Shape::Ok);

pub const CLIENT_GETREDIR: Spec = Spec::new(Group::Connection, "client|getredir")
    .summary("Returns which connection gets this one's invalidations")
    .since("6.0.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::ALLOW_BUSY).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .reply(Shape::Integer);

pub const CLIENT_TRACKING: Spec = Spec::new(Group::Connection, "client|tracking")
    .summary("Turns notices about changed keys on or off")
    .complexity("O(1), more with some options")
    .since("6.0.0")
    .arity(AtLeast(3))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .args(&[
        arg::one_of("status", ON_OR_OFF),
        arg::integer("client-id").token("REDIRECT").optional(),
        arg::string("prefix").token("PREFIX").optional().multiple().multiple_token(),
        arg::flag("bcast").token("BCAST").optional(),
        arg::flag("optin").token("OPTIN").optional(),
        arg::flag("optout").token("OPTOUT").optional(),
        arg::flag("noloop").token("NOLOOP").optional(),
    ])
    .reply(Shape::Ok);

pub const CLIENT_TRACKINGINFO: Spec = Spec::new(Group::Connection, "client|trackinginfo")
    .summary("Returns how this connection tracks keys")
    .since("6.2.0")
    .arity(Exactly(2))
    .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::PASSES_PAUSE))
    .categories(Categories::CONNECTION)
    .reply(Shape::Map);

pub const CLIENT_MAINT_NOTIFICATIONS: Spec =
    Spec::new(Group::Connection, "client|maint_notifications")
        .summary("Asks for, or declines, notices of planned maintenance")
        .since("8.4.0")
        .arity(AtLeast(3))
        .flags(Flags::NOSCRIPT.or(ANYTIME).or(Flags::PASSES_PAUSE))
        .categories(Categories::CONNECTION)
        .args(&[
            arg::one_of("status", ON_OR_OFF),
            arg::string("endpoint-type").token("MOVING-ENDPOINT-TYPE").optional(),
        ])
        .reply(Shape::Ok);
