//! Bloom filters, as the Bloom module of Redis has them.

use super::*;

const WRITES: Flags = Flags::WRITE.or(Flags::DENYOOM).or(Flags::MODULE);
const LOOKS: Flags = Flags::READONLY.or(Flags::FAST).or(Flags::MODULE);

const ONE_RESULT: Shape = Shape::OneOf(&[Shape::Integer, Shape::Boolean]);

pub const BF_RESERVE: Spec = Spec::new(Group::Module, "bf.reserve")
    .summary("Makes an empty Bloom filter")
    .arity(AtLeast(4))
    .flags(WRITES)
    .recorded(Recorded::Verbatim)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[
        arg::key("key"),
        arg::double("error_rate"),
        arg::integer("capacity"),
        arg::integer("expansion").token("EXPANSION").optional(),
        arg::flag("nonscaling").token("NONSCALING").optional(),
    ])
    .reply(Shape::Ok);

pub const BF_ADD: Spec = Spec::new(Group::Module, "bf.add")
    .summary("Adds an item to a Bloom filter, which is made if there is none")
    .complexity("O(k) for k hash functions")
    .arity(Exactly(3))
    .flags(WRITES)
    .recorded(Recorded::Verbatim)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::string("item")])
    .reply(ONE_RESULT);

pub const BF_MADD: Spec = Spec::new(Group::Module, "bf.madd")
    .summary("Adds items to a Bloom filter, which is made if there is none")
    .complexity("O(k * n) for k hash functions and n items")
    .arity(AtLeast(3))
    .flags(WRITES)
    .recorded(Recorded::Verbatim)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::string("item").multiple()])
    .reply(Shape::Array);

pub const BF_INSERT: Spec = Spec::new(Group::Module, "bf.insert")
    .summary("Adds items to a Bloom filter, which is made as asked if there is none")
    .complexity("O(k * n) for k hash functions and n items")
    .arity(AtLeast(4))
    .flags(WRITES)
    .recorded(Recorded::Verbatim)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[
        arg::key("key"),
        arg::integer("capacity").token("CAPACITY").optional(),
        arg::double("error").token("ERROR").optional(),
        arg::integer("expansion").token("EXPANSION").optional(),
        arg::flag("nocreate").token("NOCREATE").optional(),
        arg::flag("nonscaling").token("NONSCALING").optional(),
        arg::string("item").token("ITEMS").multiple(),
    ])
    .reply(Shape::Array);

pub const BF_EXISTS: Spec = Spec::new(Group::Module, "bf.exists")
    .summary("Returns whether an item may have been added to a Bloom filter")
    .complexity("O(k) for k hash functions")
    .arity(Exactly(3))
    .flags(LOOKS)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("item")])
    .reply(ONE_RESULT);

pub const BF_MEXISTS: Spec = Spec::new(Group::Module, "bf.mexists")
    .summary("Returns which items may have been added to a Bloom filter")
    .complexity("O(k * n) for k hash functions and n items")
    .arity(AtLeast(3))
    .flags(LOOKS)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::string("item").multiple()])
    .reply(Shape::Array);

pub const BF_CARD: Spec = Spec::new(Group::Module, "bf.card")
    .summary("Counts the items that were new to a Bloom filter")
    .since("2.4.4")
    .arity(Exactly(2))
    .flags(LOOKS)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key")])
    .reply(Shape::Integer);

pub const BF_INFO: Spec = Spec::new(Group::Module, "bf.info")
    .summary("Describes a Bloom filter")
    .arity(AtLeast(2))
    .flags(LOOKS)
    .categories(Categories::BLOOM)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::one_of(
            "single_value",
            &[
                arg::flag("capacity").token("CAPACITY"),
                arg::flag("size").token("SIZE"),
                arg::flag("filters").token("FILTERS"),
                arg::flag("items").token("ITEMS"),
                arg::flag("expansion").token("EXPANSION"),
            ],
        )
        .optional(),
    ])
    .reply(Shape::OneOf(&[Shape::Map, Shape::Array]));
