//! Chunks about JSON, MessagePack and `struct`. Objects have one key: in which order a table gives
//! its entries is nobody's promise.

use super::{bytes_of, integer, literal, number, pick, scalar};
use russet_base::Random;

/// A value of any depth, as an expression of Lua.
fn value(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.index(3) == 0 {
        return match random.index(12) {
            0 => "cjson.null".to_owned(),
            1 => "string.len".to_owned(),
            _ => scalar(random),
        };
    }
    match random.index(6) {
        0..=2 => {
            let items: Vec<String> =
                (0..random.index(5)).map(|_| value(random, depth - 1)).collect();
            format!("{{{}}}", items.join(","))
        }
        3 => {
            let key = literal(&bytes_of(random, b"ab/\"\n\x80", 4));
            format!("{{[{key}]={}}}", value(random, depth - 1))
        }
        4 => {
            let index = pick(random, &["1", "2", "3", "10", "11", "25", "1000", "1e10", "0", "-1"]);
            format!("{{[{index}]={}}}", value(random, depth - 1))
        }
        _ => {
            let key = pick(random, &["1.5", "true", "{}", "0.1", "1e300", "1/0", "2^31", "2^53"]);
            format!("{{[{key}]={}}}", value(random, depth - 1))
        }
    }
}

pub(super) fn json_chunk(random: &mut Random) -> String {
    const SETTINGS: &[&str] = &[
        "encode_sparse_array(true)",
        "encode_sparse_array(true,1,1)",
        "encode_sparse_array(nil,0)",
        "encode_max_depth(2)",
        "decode_max_depth(2)",
        "encode_number_precision(3)",
        "encode_keep_buffer(false)",
        "encode_invalid_numbers(true)",
        "encode_invalid_numbers('null')",
        "decode_invalid_numbers(false)",
        "encode_max_depth(0)",
        "encode_number_precision(15)",
        "encode_number_precision('x')",
        "encode_invalid_numbers('maybe')",
        "encode_keep_buffer(1,2)",
        "decode_invalid_numbers('on')",
    ];
    match random.index(6) {
        0 | 1 => format!("return cjson.encode({})", value(random, 3)),
        2 => format!("return cjson.decode({})", literal(&json(random))),
        3 => format!("return cjson.decode(cjson.encode({}))", value(random, 3)),
        4 => {
            let setting = pick(random, SETTINGS);
            let (text, value) = (literal(&json(random)), value(random, 3));
            format!(
                "local j=cjson.new() local function try(f,...) return select(2,pcall(f,...)) end \
                 local s={{pcall(function() return j.{setting} end)}} \
                 return s,try(j.decode,{text}),try(j.encode,{value})"
            )
        }
        _ => {
            let name = pick(random, &["encode", "decode", "new", "encode_max_depth"]);
            let arguments = pick(random, &["", "nil", "1,2", "{},{}", "true", "12", "'[1]'", "{}"]);
            format!(
                "local r=cjson.new().{name}({arguments}) return type(r)=='table' and 'table' or r"
            )
        }
    }
}

fn json(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    append_json(random, 3, &mut text);
    for _ in 0..random.index(4) / 2 {
        // A fault somewhere.
        let at = random.index(text.len() + 1);
        match random.index(3) {
            0 => text.truncate(at),
            1 => {
                const FAULTS: &[u8] = b"{}[],:\"\\x0-+.e\x00\xffn";
                text.insert(at, FAULTS[random.index(FAULTS.len())]);
            }
            _ if at < text.len() => drop(text.remove(at)),
            _ => {}
        }
    }
    text
}

fn append_json(random: &mut Random, depth: usize, out: &mut Vec<u8>) {
    const SCALARS: &[&str] = &[
        "true",
        "false",
        "null",
        "0",
        "-1",
        "1.5",
        "1e3",
        "-0",
        "1E+2",
        "1e400",
        "\"\"",
        "\"a\"",
        "\"\\n\\u0041\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\\u00e9\"",
        "\"\\/\"",
        "inf",
        "-inf",
        "nan",
        "0x10",
        "007",
        "+1",
        "tru",
        "1.",
        ".5",
        "-",
        "\"\\x\"",
        "\"\\u12\"",
        "NaN",
        "123456789012345678",
        "0.1",
    ];
    let spaces = bytes_of(random, b" \t\n\r", 1);
    out.extend_from_slice(&spaces);
    match random.index(4) {
        0 if depth > 0 => {
            out.push(b'[');
            for index in 0..random.index(4) {
                if index > 0 {
                    out.push(b',');
                }
                append_json(random, depth - 1, out);
            }
            out.push(b']');
        }
        1 if depth > 0 => {
            out.push(b'{');
            for index in 0..random.index(3) {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(format!("\"k{}\":", random.index(3)).as_bytes());
                append_json(random, depth - 1, out);
            }
            out.push(b'}');
        }
        _ => out.extend_from_slice(pick(random, SCALARS).as_bytes()),
    }
}

pub(super) fn msgpack_chunk(random: &mut Random) -> String {
    match random.index(6) {
        0 | 1 => {
            let count = 1 + random.index(3);
            let values: Vec<String> = (0..count).map(|_| value(random, 3)).collect();
            format!("return cmsgpack.pack({})", values.join(","))
        }
        2 => format!("return cmsgpack.unpack(cmsgpack.pack({}))", value(random, 3)),
        3 => format!("return cmsgpack.unpack({})", literal(&message(random))),
        4 => {
            let message = literal(&message(random));
            let tail = format!("{},{}", integer(random), random.index(8) as i64 - 1);
            format!("return cmsgpack.unpack_limit({message},{tail})")
        }
        _ => {
            let message = literal(&message(random));
            format!("return cmsgpack.unpack_one({message},{})", random.index(12) as i64 - 1)
        }
    }
}

fn message(random: &mut Random) -> Vec<u8> {
    const MARKS: &[u8] = &[
        0x01, 0x7f, 0x80, 0x81, 0x82, 0x90, 0x91, 0x93, 0xa0, 0xa2, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4,
        0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd9, 0xda, 0xdb, 0xdc,
        0xdd, 0xde, 0xdf, 0xe0, 0xff, 0x00, 0x00, 0x00, 0x02, 0x01, 0x01, 0x61, 0x62,
    ];
    bytes_of(random, MARKS, 14)
}

pub(super) fn struct_chunk(random: &mut Random) -> String {
    let format = format(random);
    let quoted = literal(&format);
    match random.index(5) {
        0 | 1 => {
            let arguments: String = (0..random.index(6)).map(|_| argument(random)).collect();
            format!("return struct.pack({quoted}{arguments})")
        }
        2 => format!("return struct.size({quoted})"),
        3 => {
            let data = literal(&bytes_of(random, b"\x00\x01\x05\x7f\x80\xffab", 40));
            let position =
                pick(random, &["", ",1", ",2", ",5", ",0", ",-1", ",-2", ",100", ",nil"]);
            format!("return struct.unpack({quoted},{data}{position})")
        }
        _ => {
            let arguments: String = (0..random.index(6)).map(|_| argument(random)).collect();
            format!("return struct.unpack({quoted},struct.pack({quoted}{arguments}))")
        }
    }
}

fn argument(random: &mut Random) -> String {
    match random.index(4) {
        0 => format!(",{}", literal(&bytes_of(random, b"ab\x00", 6))),
        1 => format!(",{}", integer(random)),
        2 => format!(",{}", random.index(300)),
        _ => format!(",{}", number(random)),
    }
}

fn format(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.index(6) {
        const OPTIONS: &[u8] = b"bBhHlLTiIiIfdxcs<>! ";
        out.push(OPTIONS[random.index(OPTIONS.len())]);
        if random.index(2) == 0 {
            let size = pick(random, &["0", "1", "2", "3", "4", "8", "9", "16", "32", "33"]);
            out.extend_from_slice(size.as_bytes());
        }
        if random.index(40) == 0 {
            out.extend_from_slice(pick(random, &[&b"z"[..], b"99999999999", b"\0", b"?", b"7"]));
        }
    }
    out
}
