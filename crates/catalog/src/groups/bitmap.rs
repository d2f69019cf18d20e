//! Strings as bitmaps and packed integers.

use super::*;

const RANGE: &[Arg] = &[
    arg::integer("start"),
    arg::block(
        "end-unit-block",
        &[
            arg::integer("end"),
            arg::one_of("unit", &[arg::flag("byte").token("BYTE"), arg::flag("bit").token("BIT")])
                .since("7.0.0")
                .optional(),
        ],
    )
    .optional(),
];

pub const SETBIT: Spec = Spec::new(Group::Bitmap, "setbit")
    .summary("Sets a bit of a string and answers its former state")
    .since("2.2.0")
    .arity(Exactly(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumberUpTo { digits: 5 })
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(1, CHANGES)])
    .args(&[arg::key("key"), arg::integer("offset"), arg::integer("value")])
    .reply(Shape::Integer);

pub const GETBIT: Spec = Spec::new(Group::Bitmap, "getbit")
    .summary("Reads a bit of a string")
    .since("2.2.0")
    .arity(Exactly(3))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("offset")])
    .reply(Shape::Integer);

pub const BITCOUNT: Spec = Spec::new(Group::Bitmap, "bitcount")
    .summary("Counts the bits that are set in a string")
    .complexity("O(N)")
    .since("2.6.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY)
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::block("range", RANGE).optional()])
    .reply(Shape::Integer)
    .history(&[
        change("7.0.0", "The range may be in bits."),
        change("8.0.0", "The end may be left out and is then the last byte."),
    ]);

pub const BITPOS: Spec = Spec::new(Group::Bitmap, "bitpos")
    .summary("Finds the first bit with a given state")
    .complexity("O(N)")
    .since("2.8.7")
    .arity(AtLeast(3))
    .flags(Flags::READONLY)
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[arg::key("key"), arg::integer("bit"), arg::block("range", RANGE).optional()])
    .reply(Shape::Integer)
    .history(&[change("7.0.0", "The range may be in bits.")]);

pub const BITOP: Spec = Spec::new(Group::Bitmap, "bitop")
    .summary("Combines strings bit by bit and stores the result")
    .complexity("O(N) for the longest string")
    .since("2.6.0")
    .arity(AtLeast(4))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(2, OVERWRITES), KeySpec::from(3, READS)])
    .args(&[
        arg::one_of(
            "operation",
            &[
                arg::flag("and").token("AND"),
                arg::flag("or").token("OR"),
                arg::flag("xor").token("XOR"),
                arg::flag("not").token("NOT"),
                arg::flag("diff").token("DIFF").since("8.2.0"),
                arg::flag("diff1").token("DIFF1").since("8.2.0"),
                arg::flag("andor").token("ANDOR").since("8.2.0"),
                arg::flag("one").token("ONE").since("8.2.0"),
            ],
        ),
        arg::key("destkey"),
        arg::key("key").of_spec(1).multiple(),
    ])
    .reply(Shape::Integer)
    .history(&[change("8.2.0", "DIFF, DIFF1, ANDOR and ONE.")]);

pub const BITFIELD: Spec = Spec::new(Group::Bitmap, "bitfield")
    .summary("Reads and writes integers of any width inside a string")
    .complexity("O(1) for each operation")
    .since("3.2.0")
    .arity(AtLeast(2))
    .flags(Flags::WRITE.or(Flags::DENYOOM))
    .recorded(Recorded::Verbatim)
    .batching(Batching::NumbersUpTo { digits: 5 })
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(1, CHANGES.or(Access::VARIABLE_FLAGS))
        .notes("Only reads if every operation is a GET")])
    .args(&[
        arg::key("key"),
        arg::one_of(
            "operation",
            &[
                arg::block("get-block", &[arg::string("encoding"), arg::integer("offset")])
                    .token("GET"),
                arg::block(
                    "write",
                    &[
                        arg::one_of(
                            "overflow-block",
                            &[
                                arg::flag("wrap").token("WRAP"),
                                arg::flag("sat").token("SAT"),
                                arg::flag("fail").token("FAIL"),
                            ],
                        )
                        .token("OVERFLOW")
                        .optional(),
                        arg::one_of(
                            "write-operation",
                            &[
                                arg::block(
                                    "set-block",
                                    &[
                                        arg::string("encoding"),
                                        arg::integer("offset"),
                                        arg::integer("value"),
                                    ],
                                )
                                .token("SET"),
                                arg::block(
                                    "incrby-block",
                                    &[
                                        arg::string("encoding"),
                                        arg::integer("offset"),
                                        arg::integer("increment"),
                                    ],
                                )
                                .token("INCRBY"),
                            ],
                        ),
                    ],
                ),
            ],
        )
        .optional()
        .multiple(),
    ])
    .reply(Shape::Array);

pub const BITFIELD_RO: Spec = Spec::new(Group::Bitmap, "bitfield_ro")
    .summary("Reads integers of any width inside a string")
    .complexity("O(1) for each operation")
    .since("6.0.0")
    .arity(AtLeast(2))
    .flags(Flags::READONLY.or(Flags::FAST))
    .categories(Categories::BITMAP)
    .keys(&[KeySpec::at(1, READS)])
    .args(&[
        arg::key("key"),
        arg::block("get-block", &[arg::string("encoding"), arg::integer("offset")])
            .token("GET")
            .optional()
            .multiple()
            .multiple_token(),
    ])
    .reply(Shape::Array);
