//! Lua chunks made at random, for comparing what the libraries of scripts answer with what a peer
//! answers. Each chunk stands for itself: it returns values, or fails, and touches nothing.

mod codec;
pub mod corpus;
mod number;
mod pattern;
pub mod program;
mod text;

use russet_base::Random;

/// The script that runs the chunks of ARGV; the same on both sides.
pub const SHOW: &str = include_str!("../../crates/scripting/tests/library/show.lua");

/// What a chunk is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Pattern,
    Format,
    Number,
    Text,
    Table,
    Math,
    Bit,
    Json,
    MessagePack,
    Struct,
}

impl Family {
    pub const ALL: [Family; 10] = [
        Family::Pattern,
        Family::Format,
        Family::Number,
        Family::Text,
        Family::Table,
        Family::Math,
        Family::Bit,
        Family::Json,
        Family::MessagePack,
        Family::Struct,
    ];

    /// A chunk of this family.
    pub fn chunk(self, random: &mut Random) -> Vec<u8> {
        match self {
            Family::Pattern => pattern::chunk(random),
            Family::Format => number::format_chunk(random),
            Family::Number => number::number_chunk(random),
            Family::Text => text::text_chunk(random),
            Family::Table => text::table_chunk(random),
            Family::Math => number::math_chunk(random),
            Family::Bit => number::bit_chunk(random),
            Family::Json => codec::json_chunk(random),
            Family::MessagePack => codec::msgpack_chunk(random),
            Family::Struct => codec::struct_chunk(random),
        }
        .into_bytes()
    }
}

/// One of several.
fn pick<'a, T: ?Sized>(random: &mut Random, of: &[&'a T]) -> &'a T {
    of[random.index(of.len())]
}

/// A string as Lua reads it.
fn literal(bytes: &[u8]) -> String {
    let mut text = String::from("'");
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b' ' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03}")),
        }
    }
    text + "'"
}

/// Bytes from an alphabet.
fn bytes_of(random: &mut Random, alphabet: &[u8], len_max: usize) -> Vec<u8> {
    let len = random.index(len_max + 1);
    (0..len).map(|_| alphabet[random.index(alphabet.len())]).collect()
}

/// A whole number near the places where something changes.
fn integer(random: &mut Random) -> String {
    const EDGES: &[&str] = &[
        "0", "1", "-1", "2", "-2", "3", "10", "-10", "127", "128", "255", "256", "-128", "65535",
        "65536", "2^31", "2^31-1", "-2^31", "2^32", "2^32+5", "-2^32", "2^53", "2^63", "-2^63",
        "2^64", "1e300", "-1e300", "0/0", "1/0", "-1/0",
    ];
    match random.index(3) {
        0 => pick(random, EDGES).to_owned(),
        1 => (random.index(12) as i64 - 4).to_string(),
        _ => (random.index(4000) as i64 - 2000).to_string(),
    }
}

/// Any number, as an expression of Lua.
fn number(random: &mut Random) -> String {
    match random.index(6) {
        0 | 1 => integer(random),
        2 => format!("{}.{}", random.index(1000), random.index(100_000)),
        3 => format!("-0.{}", random.index(1_000_000)),
        4 => {
            let digits = random.next_u64() % 100_000_000_000_000_000;
            format!("{digits}e{}", random.index(640) as i64 - 340)
        }
        _ => {
            let value = f64::from_bits(random.next_u64());
            if value.is_finite() { format!("{value:e}") } else { "5e-324".to_owned() }
        }
    }
}

/// Any value that is no table.
fn scalar(random: &mut Random) -> String {
    match random.index(6) {
        0 => "nil".to_owned(),
        1 => pick(random, &["true", "false"]).to_owned(),
        2 | 3 => number(random),
        _ => literal(&bytes_of(random, b"ab1 /\"\\\n\t\x00\x7f\x80\xff", 6)),
    }
}
