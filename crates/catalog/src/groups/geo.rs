//! Places in sorted sets.

use super::*;
use crate::spec::Begin;

const UNITS: &[Arg] = &[
    arg::flag("m").token("M"),
    arg::flag("km").token("KM"),
    arg::flag("ft").token("FT"),
    arg::flag("mi").token("MI"),
];

const FROM: &[Arg] = &[
    arg::string("member").token("FROMMEMBER"),
    arg::block("fromlonlat", &[arg::double("longitude"), arg::double("latitude")])
        .token("FROMLONLAT"),
];

const BY: &[Arg] = &[
    arg::block("circle", &[arg::double("radius").token("BYRADIUS"), arg::one_of("unit", UNITS)]),
    arg::block(
        "box",
        &[arg::double("width").token("BYBOX"), arg::double("height"), arg::one_of("unit", UNITS)],
    ),
    arg::block(
        "polygon",
        &[
            arg::integer("num-vertices").token("BYPOLYGON"),
            arg::block("vertices", &[arg::double("longitude"), arg::double("latitude")]).multiple(),
        ],
    )
    .since("9.0.0"),
];

const ORDER: Arg =
    arg::one_of("order", &[arg::flag("asc").token("ASC"), arg::flag("desc").token("DESC")])
        .optional();

const HOW_MANY: &[Arg] =
    &[arg::integer("count").token("COUNT"), arg::flag("any").token("ANY").optional()];
const HOW_MANY_SINCE: &[Arg] = &[
    arg::integer("count").token("COUNT"),
    arg::flag("any").token("ANY").since("6.2.0").optional(),
];

const WITH_COORD: Arg = arg::flag("withcoord").token("WITHCOORD").optional();
const WITH_DIST: Arg = arg::flag("withdist").token("WITHDIST").optional();
const WITH_HASH: Arg = arg::flag("withhash").token("WITHHASH").optional();

const STORE: Arg = arg::one_of(
    "store",
    &[
        arg::key("storekey").display("key").of_spec(1).token("STORE"),
        arg::key("storedistkey").display("key").of_spec(2).token("STOREDIST"),
    ],
)
.optional();

const SEARCH_COST: &str = "O(N+log(M)) for N members in the cells around the shape and M members";
const SEARCH_HISTORY: &[Change] = &[
    change("7.0.0", "Units may be in capital letters."),
    change("9.0.0", "Searches polygons, with BYPOLYGON."),
];
const RADIUS_HISTORY: &[Change] =
    &[change("6.2.0", "COUNT takes ANY."), change("7.0.0", "Units may be in capital letters.")];

const fn instead(command: &'static str) -> Deprecation {
    Deprecation { since: "6.2.0", replaced_by: command }
}

/// The key that a keyword announces.
const fn stored_after(token: &'static str, from: i16) -> KeySpec {
    let mut spec = KeySpec::at(0, OVERWRITES.or(Access::VARIABLE_FLAGS));
    spec.begin = Begin::Keyword { token, from };
    spec
}

pub const GEOADD: Spec = Spec::new(Group::Geo, "geoadd")
    .summary("Adds places to a sorted set, or moves them")
    .complexity("O(log(N)) for each place")
    .since("3.2.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::SHORT))
    .recorded(Recorded::Verbatim)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[
        arg::key("key"),
        arg::one_of("condition", &[arg::flag("nx").token("NX"), arg::flag("xx").token("XX")])
            .since("6.2.0")
            .optional(),
        arg::flag("change").token("CH").since("6.2.0").optional(),
        arg::block(
            "data",
            &[arg::double("longitude"), arg::double("latitude"), arg::string("member")],
        )
        .multiple(),
    ])
    .reply(Shape::Integer)
    .history(&[change("6.2.0", "CH, NX and XX.")]);

pub const GEODIST: Spec = Spec::new(Group::Geo, "geodist")
    .summary("Measures the distance between two places")
    .since("3.2.0")
    .arity(AtLeast(4))
    .flags(Flags::READONLY.or(Flags::SHORT))
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("member1"),
        arg::string("member2"),
        arg::one_of("unit", UNITS).optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const GEOHASH: Spec = Spec::new(Group::Geo, "geohash")
    .summary("Gives places as geohash texts")
    .complexity("O(1) for each member")
    .since("3.2.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::SHORT))
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("member").optional().multiple()])
    .reply(Shape::Array);

pub const GEOPOS: Spec = Spec::new(Group::Geo, "geopos")
    .summary("Gives places as longitude and latitude")
    .complexity("O(1) for each member")
    .since("3.2.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::SHORT))
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("member").optional().multiple()])
    .reply(Shape::Array);

pub const GEOSEARCH: Spec = Spec::new(Group::Geo, "geosearch")
    .summary("Finds the places in a circle, a box or a polygon")
    .complexity(SEARCH_COST)
    .since("6.2.0")
    .arity(AtLeast(7))
    .flags(Flags::READONLY)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::one_of("from", FROM).optional(),
        arg::one_of("by", BY),
        ORDER,
        arg::block("count-block", HOW_MANY).optional(),
        WITH_COORD,
        WITH_DIST,
        WITH_HASH,
    ])
    .reply(Shape::Array)
    .history(SEARCH_HISTORY);

pub const GEOSEARCHSTORE: Spec = Spec::new(Group::Geo, "geosearchstore")
    .summary("Stores the places in a circle, a box or a polygon")
    .complexity(SEARCH_COST)
    .since("6.2.0")
    .arity(AtLeast(8))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, OVERWRITES), KeySpec::at(2, READS)])
    .args(&[
        arg::key("destination"),
        arg::key("source").of_spec(1),
        arg::one_of("from", FROM).optional(),
        arg::one_of("by", BY),
        ORDER,
        arg::block("count-block", HOW_MANY).optional(),
        arg::flag("storedist").token("STOREDIST").optional(),
    ])
    .reply(Shape::Integer)
    .history(SEARCH_HISTORY);

pub const GEORADIUS: Spec = Spec::new(Group::Geo, "georadius")
    .summary("Finds the places around a point, and may store them")
    .complexity(SEARCH_COST)
    .since("3.2.0")
    .arity(AtLeast(6))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS), stored_after("STORE", 6), stored_after("STOREDIST", 6)])
    .args(&[
        arg::key("key"),
        arg::double("longitude"),
        arg::double("latitude"),
        arg::double("radius"),
        arg::one_of("unit", UNITS),
        WITH_COORD,
        WITH_DIST,
        WITH_HASH,
        arg::block("count-block", HOW_MANY_SINCE).optional(),
        ORDER,
        STORE,
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Integer]))
    .history(RADIUS_HISTORY)
    .deprecated(instead("`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"));

pub const GEORADIUS_RO: Spec = Spec::new(Group::Geo, "georadius_ro")
    .summary("Finds the places around a point")
    .complexity(SEARCH_COST)
    .since("3.2.10")
    .arity(AtLeast(6))
    .flags(Flags::READONLY)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::double("longitude"),
        arg::double("latitude"),
        arg::double("radius"),
        arg::one_of("unit", UNITS),
        WITH_COORD,
        WITH_DIST,
        WITH_HASH,
        arg::block("count-block", HOW_MANY_SINCE).optional(),
        ORDER,
    ])
    .reply(Shape::Array)
    .history(RADIUS_HISTORY)
    .deprecated(instead("`GEOSEARCH` with the `BYRADIUS` argument"));

pub const GEORADIUSBYMEMBER: Spec = Spec::new(Group::Geo, "georadiusbymember")
    .summary("Finds the places around a member, and may store them")
    .complexity(SEARCH_COST)
    .since("3.2.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS), stored_after("STORE", 5), stored_after("STOREDIST", 5)])
    .args(&[
        arg::key("key"),
        arg::string("member"),
        arg::double("radius"),
        arg::one_of("unit", UNITS),
        WITH_COORD,
        WITH_DIST,
        WITH_HASH,
        arg::block("count-block", HOW_MANY).optional(),
        ORDER,
        STORE,
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Integer]))
    .history(RADIUS_HISTORY)
    .deprecated(instead(
        "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
    ));

pub const GEORADIUSBYMEMBER_RO: Spec = Spec::new(Group::Geo, "georadiusbymember_ro")
    .summary("Finds the places around a member")
    .complexity(SEARCH_COST)
    .since("3.2.10")
    .arity(AtLeast(5))
    .flags(Flags::READONLY)
    .categories(Categories::GEO)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("member"),
        arg::double("radius"),
        arg::one_of("unit", UNITS),
        WITH_COORD,
        WITH_DIST,
        WITH_HASH,
        arg::block("count-block", HOW_MANY).optional(),
        ORDER,
    ])
    .reply(Shape::Array)
    .history(RADIUS_HISTORY)
    .deprecated(instead("`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"));
