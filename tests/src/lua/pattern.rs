//! Chunks about patterns: well formed, nearly so, and not at all.

use super::{bytes_of, literal, pick};
use russet_base::Random;

const SUBJECT: &[u8] = b"aaabbc123  ,.()[]%-^$XYZ_\n\x00\xff";

pub(super) fn chunk(random: &mut Random) -> String {
    let subject = literal(&bytes_of(random, SUBJECT, 24));
    let pattern = literal(&pattern(random));
    match random.index(8) {
        0 => format!("return string.find({subject},{pattern})"),
        1 => {
            let start = random.index(30) as i64 - 12;
            let plain = pick(random, &["", ",true", ",false", ",nil"]);
            format!("return string.find({subject},{pattern},{start}{plain})")
        }
        2 => format!("return string.match({subject},{pattern})"),
        3 => {
            let start = random.index(30) as i64 - 12;
            format!("return ({subject}):match({pattern},{start})")
        }
        4 => format!(
            "local t={{}} for a,b,c in ({subject}):gmatch({pattern}) do \
             t[#t+1]={{a,b or 0,c or 0}} end return t"
        ),
        5 => {
            let replacement = literal(&bytes_of(random, b"ab%%%0123x", 6));
            let most = pick(random, &["", ",0", ",1", ",2", ",-1", ",nil"]);
            format!("return string.gsub({subject},{pattern},{replacement}{most})")
        }
        6 => {
            let body = pick(
                random,
                &["return a", "return nil", "return false", "return 12.5", "return {}", "return b"],
            );
            format!("return string.gsub({subject},{pattern},function(a,b) {body} end)")
        }
        _ => {
            let table = pick(random, &["{a='X',b=1,['1']=false}", "{}", "{[1]='one'}", "{a={}}"]);
            format!("return string.gsub({subject},{pattern},{table})")
        }
    }
}

fn pattern(random: &mut Random) -> Vec<u8> {
    if random.index(8) == 0 {
        return bytes_of(random, b"%[]()^$*+-?.ab1fz\x00", 10);
    }
    let mut out = Vec::new();
    if random.index(5) == 0 {
        out.push(b'^');
    }
    items(random, 2, &mut out);
    if random.index(6) == 0 {
        out.push(b'$');
    }
    out
}

fn items(random: &mut Random, depth: usize, out: &mut Vec<u8>) {
    for _ in 0..=random.index(4) {
        match random.index(14) {
            0 | 1 if depth > 0 => {
                out.push(b'(');
                items(random, depth - 1, out);
                out.push(b')');
            }
            2 => out.extend_from_slice(b"()"),
            3 => out.extend_from_slice(pick(random, &[&b"%b()"[..], b"%bab", b"%b[]", b"%baa"])),
            4 => {
                out.extend_from_slice(b"%f");
                set(random, out);
            }
            5 => out.extend_from_slice(pick(random, &[&b"%1"[..], b"%2", b"%0"])),
            _ => {
                single(random, out);
                out.extend_from_slice(pick(random, &[&b""[..], b"", b"*", b"+", b"-", b"?"]));
            }
        }
    }
}

fn single(random: &mut Random, out: &mut Vec<u8>) {
    match random.index(5) {
        0 => out.push(b'.'),
        1 => class(random, out),
        2 => set(random, out),
        _ => out.push(b"abc1, X"[random.index(7)]),
    }
}

fn class(random: &mut Random, out: &mut Vec<u8>) {
    const LETTERS: &[u8] = b"acdlpsuwxzACDLPSUWXZ%.-]^b?";
    out.extend_from_slice(&[b'%', LETTERS[random.index(LETTERS.len())]]);
}

fn set(random: &mut Random, out: &mut Vec<u8>) {
    out.push(b'[');
    if random.index(3) == 0 {
        out.push(b'^');
    }
    for _ in 0..=random.index(3) {
        match random.index(5) {
            0 => class(random, out),
            1 => out.extend_from_slice(pick(random, &[&b"a-c"[..], b"0-9", b"c-a", b"%a-z", b"-"])),
            _ => out.push(b"abc1]^-, "[random.index(9)]),
        }
    }
    out.push(b']');
}
