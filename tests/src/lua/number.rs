//! Chunks about numbers: formats, conversions, `math` and `bit`.

use super::{bytes_of, integer, literal, number, pick, scalar};
use russet_base::Random;

pub(super) fn format_chunk(random: &mut Random) -> String {
    let mut format = Vec::new();
    let mut arguments = String::new();
    for _ in 0..=random.index(2) {
        format.extend(bytes_of(random, b"x %", 1).iter().filter(|byte| **byte != b'%'));
        let letter = b"dduixXoceEffgGgGqsss"[random.index(20)];
        directive(random, letter, &mut format);
        arguments.push(',');
        arguments.push_str(&match letter {
            b's' | b'q' if random.index(3) > 0 => {
                let long = if random.index(12) == 0 { 130 } else { 8 };
                literal(&bytes_of(random, b"ab\"\\\n\r\x00 z", long))
            }
            b'c' => random.index(300).to_string(),
            _ if random.index(20) == 0 => scalar(random),
            _ => number(random),
        });
    }
    if random.index(30) == 0 {
        arguments.clear();
    }
    format!("return string.format({}{arguments})", literal(&format))
}

fn directive(random: &mut Random, letter: u8, format: &mut Vec<u8>) {
    format.push(b'%');
    for _ in 0..random.index(4) {
        format.push(b"-+ #0"[random.index(5)]);
    }
    if random.index(2) == 0 {
        format.extend_from_slice(random.index(30).to_string().as_bytes());
    }
    if random.index(2) == 0 {
        format.push(b'.');
        let digits = pick(random, &["", "0", "1", "2", "3", "5", "10", "14", "17", "20", "99"]);
        format.extend_from_slice(digits.as_bytes());
    }
    if random.index(60) == 0 {
        format.extend_from_slice(pick(random, &[&b"100"[..], b"-+ #0-", b"y", b"%", b"\0", b"l"]));
    }
    format.push(letter);
}

pub(super) fn number_chunk(random: &mut Random) -> String {
    match random.index(5) {
        0 => format!("return tostring({})", number(random)),
        1 => format!("return {}..''", number(random)),
        2 => {
            let text = literal(&number_text(random));
            format!("return tonumber({text})")
        }
        3 => {
            let text = literal(&bytes_of(random, b"0123459afzxXF -+", 8));
            format!("return tonumber({text},{})", random.index(40) as i64 - 1)
        }
        _ => {
            let text = literal(&number_text(random));
            format!("return {text}+0")
        }
    }
}

fn number_text(random: &mut Random) -> Vec<u8> {
    match random.index(4) {
        0 => bytes_of(random, b"0123456789.eE+-xXaf p", 10),
        1 => pick(
            random,
            &[
                "inf",
                "-inf",
                "nan",
                "Infinity",
                "infinit",
                "0x",
                "0x1p4",
                "0x.8p1",
                "1e400",
                "1e-400",
                "0x1p2000",
                "0x1p-2000",
                "  12  ",
                "1e",
                ".",
                "5.",
                ".5",
                "0x1.8",
                "1\0",
                "\0",
                "",
                " ",
                "nan(1)",
                "0x10 ",
                "+1",
                "++1",
                "1_0",
                "0b1",
                "1e+5",
                "-0",
            ],
        )
        .as_bytes()
        .to_vec(),
        2 => {
            let value = f64::from_bits(random.next_u64());
            format!("{value:e}").into_bytes()
        }
        _ => {
            let digits = format!("{}{}", random.next_u64(), random.next_u64());
            let point = random.index(digits.len());
            let exponent = random.index(600) as i64 - 330;
            format!("{}.{}e{exponent}", &digits[..point], &digits[point..]).into_bytes()
        }
    }
}

pub(super) fn math_chunk(random: &mut Random) -> String {
    const ONE: &[&str] = &[
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "deg", "exp", "floor", "frexp",
        "log", "log10", "modf", "rad", "sin", "sinh", "sqrt", "tan", "tanh",
    ];
    const TWO: &[&str] = &["atan2", "fmod", "ldexp", "max", "min", "mod", "pow"];
    match random.index(8) {
        0..=3 => format!("return math.{}({})", pick(random, ONE), number(random)),
        4 | 5 => {
            let (a, b) = (number(random), number(random));
            format!("return math.{}({a},{b})", pick(random, TWO))
        }
        6 => {
            let seed = random.index(1000) as i64 - 500;
            let arguments = pick(
                random,
                &["", "10", "1", "0", "2,7", "7,2", "-5,5", "1,2,3", "1.5", "-2^31,2^31-1", "2^40"],
            );
            format!("math.randomseed({seed}) return math.random({arguments}),math.random()")
        }
        _ => {
            let name = if random.index(2) == 0 { pick(random, ONE) } else { pick(random, TWO) };
            format!("return math.{name}({})", scalar(random))
        }
    }
}

pub(super) fn bit_chunk(random: &mut Random) -> String {
    const NAMES: &[&str] = &[
        "arshift", "band", "bnot", "bor", "bswap", "bxor", "lshift", "rol", "ror", "rshift",
        "tobit", "tohex",
    ];
    let name = pick(random, NAMES);
    let count = random.index(4);
    let argument = |random: &mut Random| match random.index(8) {
        0 => scalar(random),
        1 | 2 => number(random),
        _ => integer(random),
    };
    let arguments: Vec<String> = (0..count).map(|_| argument(random)).collect();
    format!("return bit.{name}({})", arguments.join(","))
}
