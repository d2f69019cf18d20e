//! Lists.

use super::*;

const EITHER_END: &[Arg] = &[arg::flag("left").token("LEFT"), arg::flag("right").token("RIGHT")];

const HOW_MANY: &[Arg] = &[
    arg::one_of(
        "selector",
        &[arg::integer("count").token("COUNT"), arg::integer("exactly").token("EXACTLY")],
    ),
    arg::one_of("ordering", &[arg::flag("obo").token("OBO"), arg::flag("bulk").token("BULK")]),
];

pub const LPUSH: Spec = Spec::new(Group::List, "lpush")
    .summary("Adds elements before the first of a list")
    .complexity("O(N) for N elements")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("element").multiple()])
    .reply(Shape::Integer)
    .history(&[change("2.4.0", "Takes several elements.")]);

pub const RPUSH: Spec = Spec::new(Group::List, "rpush")
    .summary("Adds elements after the last of a list")
    .complexity("O(N) for N elements")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("element").multiple()])
    .reply(Shape::Integer)
    .history(&[change("2.4.0", "Takes several elements.")]);

pub const LPUSHX: Spec = Spec::new(Group::List, "lpushx")
    .summary("Adds elements before the first of a list that exists")
    .complexity("O(N) for N elements")
    .since("2.2.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("element").multiple()])
    .reply(Shape::Integer)
    .history(&[change("4.0.0", "Takes several elements.")]);

pub const RPUSHX: Spec = Spec::new(Group::List, "rpushx")
    .summary("Adds elements after the last of a list that exists")
    .complexity("O(N) for N elements")
    .since("2.2.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[arg::key("key"), arg::string("element").multiple()])
    .reply(Shape::Integer)
    .history(&[change("4.0.0", "Takes several elements.")]);

pub const LPOP: Spec = Spec::new(Group::List, "lpop")
    .summary("Takes elements off the head of a list")
    .complexity("O(N) for N elements taken")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key"), arg::integer("count").since("6.2.0").optional()])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Array, Shape::Null]))
    .history(&[change("6.2.0", "Takes a count.")]);

pub const RPOP: Spec = Spec::new(Group::List, "rpop")
    .summary("Takes elements off the tail of a list")
    .complexity("O(N) for N elements taken")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::FAST))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumberUpTo { digits: 3 })
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES)])
    .args(&[arg::key("key"), arg::integer("count").since("6.2.0").optional()])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Array, Shape::Null]))
    .history(&[change("6.2.0", "Takes a count.")]);

pub const LLEN: Spec = Spec::new(Group::List, "llen")
    .summary("Returns how many elements a list has")
    .arity(Exactly(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, INSPECTS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const LRANGE: Spec = Spec::new(Group::List, "lrange")
    .summary("Reads the elements between two indexes")
    .complexity("O(S+N) for a start S from the nearer end and N elements read")
    .arity(Exactly(4))
    .flags(Flags::READONLY)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("start"), arg::integer("stop")])
    .reply(Shape::Array);

pub const LTRIM: Spec = Spec::new(Group::List, "ltrim")
    .summary("Keeps only the elements between two indexes")
    .complexity("O(N) for N elements dropped")
    .arity(Exactly(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::integer("start"), arg::integer("stop")])
    .reply(Shape::Ok);

pub const LINDEX: Spec = Spec::new(Group::List, "lindex")
    .summary("Reads the element at an index")
    .complexity("O(N) for N elements from the nearer end")
    .arity(Exactly(3))
    .flags(Flags::READONLY)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("index")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const LSET: Spec = Spec::new(Group::List, "lset")
    .summary("Replaces the element at an index")
    .complexity("O(N) for N elements from the nearer end")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, UPDATES)])
    .args(&[arg::key("key"), arg::integer("index"), arg::string("element")])
    .reply(Shape::Ok);

pub const LINSERT: Spec = Spec::new(Group::List, "linsert")
    .summary("Puts an element before or after another one")
    .complexity("O(N) for N elements up to the pivot")
    .since("2.2.0")
    .arity(Exactly(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, INSERTS)])
    .args(&[
        arg::key("key"),
        arg::one_of(
            "where",
            &[arg::flag("before").token("BEFORE"), arg::flag("after").token("AFTER")],
        ),
        arg::string("pivot"),
        arg::string("element"),
    ])
    .reply(Shape::Integer);

pub const LREM: Spec = Spec::new(Group::List, "lrem")
    .summary("Removes elements that equal a value")
    .complexity("O(N+M) for N elements and M removed")
    .arity(Exactly(4))
    .flags(Flags::WRITE)
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TRIMS)])
    .args(&[arg::key("key"), arg::integer("count"), arg::string("element")])
    .reply(Shape::Integer);

pub const LPOS: Spec = Spec::new(Group::List, "lpos")
    .summary("Finds where elements that equal a value are")
    .complexity("O(N) for N elements compared")
    .since("6.0.6")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::string("element"),
        arg::integer("rank").token("RANK").optional(),
        arg::integer("num-matches").token("COUNT").optional(),
        arg::integer("len").token("MAXLEN").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Integer, Shape::Array, Shape::Null]));

pub const LMOVE: Spec = Spec::new(Group::List, "lmove")
    .summary("Moves an element from one list's end to another's")
    .since("6.2.0")
    .arity(Exactly(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[
        arg::key("source"),
        arg::key("destination").of_spec(1),
        arg::one_of("wherefrom", EITHER_END),
        arg::one_of("whereto", EITHER_END),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const RPOPLPUSH: Spec = Spec::new(Group::List, "rpoplpush")
    .summary("Moves a list's last element to the head of another")
    .since("1.2.0")
    .arity(Exactly(3))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[arg::key("source"), arg::key("destination").of_spec(1)])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]))
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "LMOVE with RIGHT and LEFT" });

pub const LMPOP: Spec = Spec::new(Group::List, "lmpop")
    .summary("Takes elements off the first list that has any")
    .complexity("O(N+M) for N keys and M elements taken")
    .since("7.0.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Verbatim)
    .categories(Categories::LIST)
    .keys(&[KeySpec::counted(1, TAKES)])
    .args(&[
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::one_of("where", EITHER_END),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const LMOVEM: Spec = Spec::new(Group::List, "lmovem")
    .summary("Moves several elements from one list's end to another's")
    .complexity("O(N) for N elements moved")
    .since("8.10.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[
        arg::key("source"),
        arg::key("destination").of_spec(1),
        arg::one_of("wherefrom", EITHER_END),
        arg::one_of("whereto", EITHER_END),
        arg::block("how-many", HOW_MANY).optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const BLPOP: Spec = Spec::new(Group::List, "blpop")
    .summary("Takes the head of the first list that has one, or waits")
    .complexity("O(N) for N keys")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::BLOCKING))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES).until(-2)])
    .args(&[arg::key("key").multiple(), arg::double("timeout")])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]))
    .history(&[change("6.0.0", "The timeout may have a fraction.")]);

pub const BRPOP: Spec = Spec::new(Group::List, "brpop")
    .summary("Takes the tail of the first list that has one, or waits")
    .complexity("O(N) for N keys")
    .since("2.0.0")
    .arity(AtLeast(3))
    .flags(Flags::WRITE.or(Flags::BLOCKING))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES).until(-2)])
    .args(&[arg::key("key").multiple(), arg::double("timeout")])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]))
    .history(&[change("6.0.0", "The timeout may have a fraction.")]);

pub const BLMOVE: Spec = Spec::new(Group::List, "blmove")
    .summary("Moves an element between lists, or waits for one")
    .since("6.2.0")
    .arity(Exactly(6))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[
        arg::key("source"),
        arg::key("destination").of_spec(1),
        arg::one_of("wherefrom", EITHER_END),
        arg::one_of("whereto", EITHER_END),
        arg::double("timeout"),
    ])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]));

pub const BRPOPLPUSH: Spec = Spec::new(Group::List, "brpoplpush")
    .summary("Moves a last element to another list, or waits for one")
    .since("2.2.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[arg::key("source"), arg::key("destination").of_spec(1), arg::double("timeout")])
    .reply(Shape::OneOf(&[Shape::Bulk, Shape::Null]))
    .history(&[change("6.0.0", "The timeout may have a fraction.")])
    .deprecated(Deprecation { since: "6.2.0", replaced_by: "BLMOVE with RIGHT and LEFT" });

pub const BLMPOP: Spec = Spec::new(Group::List, "blmpop")
    .summary("Takes elements off the first list that has any, or waits")
    .complexity("O(N+M) for N keys and M elements taken")
    .since("7.0.0")
    .arity(AtLeast(5))
    .flags(Flags::WRITE.or(Flags::BLOCKING).or(Flags::MOVABLE_KEYS))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::counted(2, TAKES)])
    .args(&[
        arg::double("timeout"),
        arg::integer("numkeys"),
        arg::key("key").multiple(),
        arg::one_of("where", EITHER_END),
        arg::integer("count").token("COUNT").optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));

pub const BLMOVEM: Spec = Spec::new(Group::List, "blmovem")
    .summary("Moves several elements between lists, or waits for them")
    .complexity("O(N) for N elements moved")
    .since("8.10.0")
    .arity(AtLeast(6))
    .flags(Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING))
    .recorded(Recorded::Rewritten)
    .categories(Categories::LIST)
    .keys(&[KeySpec::at(1, TAKES), KeySpec::at(2, INSERTS)])
    .args(&[
        arg::key("source"),
        arg::key("destination").of_spec(1),
        arg::one_of("wherefrom", EITHER_END),
        arg::one_of("whereto", EITHER_END),
        arg::double("timeout"),
        arg::block("how-many", HOW_MANY).optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Array, Shape::Null]));
