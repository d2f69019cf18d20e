//! Chunks about strings without patterns, and about tables.

use super::{bytes_of, integer, literal, number, pick, scalar};
use russet_base::Random;

pub(super) fn text_chunk(random: &mut Random) -> String {
    let text = match random.index(8) {
        0 => number(random),
        1 => scalar(random),
        _ => literal(&bytes_of(random, b"aBc1 \x00\xff", 12)),
    };
    match random.index(8) {
        0 => format!("return string.sub({text},{},{})", integer(random), integer(random)),
        1 => format!("return string.sub({text},{})", integer(random)),
        2 => format!("return string.byte({text},{},{})", integer(random), integer(random)),
        3 => format!("return string.{}({text})", pick(random, NAMES)),
        4 => {
            let count = pick(random, &["0", "1", "2", "5", "-1", "2^32+2", "1.9", "'3'", "nil"]);
            format!("return string.rep({text},{count})")
        }
        5 => {
            let bytes: Vec<String> = (0..random.index(5)).map(|_| byte(random)).collect();
            format!("return string.char({})", bytes.join(","))
        }
        6 => {
            let other = literal(&bytes_of(random, b"aBc1 \x00", 3));
            format!("return ({text}..{other}):find({other},{},true)", integer(random))
        }
        _ => format!("return #({text}..''),({text}..''):upper():lower():reverse()"),
    }
}

const NAMES: &[&str] = &["len", "lower", "upper", "reverse", "byte", "dump", "char", "sub", "rep"];

fn byte(random: &mut Random) -> String {
    if random.index(6) == 0 { integer(random) } else { random.index(256).to_string() }
}

pub(super) fn table_chunk(random: &mut Random) -> String {
    let list: Vec<String> = (0..random.index(9)).map(|_| element(random)).collect();
    let list = list.join(",");
    match random.index(9) {
        0 => {
            let tail =
                pick(random, &["", ",','", ",', ',2", ",'-',1,3", ",'',-1,2", ",5", ",nil,1"]);
            format!("return table.concat({{{list}}}{tail})")
        }
        1 => format!("local t={{{list}}} table.insert(t,{}) return t", element(random)),
        2 => {
            let position = random.index(14) as i64 - 3;
            format!("local t={{{list}}} table.insert(t,{position},{}) return t", element(random))
        }
        3 => {
            let position =
                pick(random, &["", ",1", ",2", ",0", ",-1", ",9", ",'2'", ",{}", ",1.7"]);
            format!("local t={{{list}}} local r=table.remove(t{position}) return r,t")
        }
        4 => format!("local t={{{list}}} table.sort(t) return t"),
        5 => sort_chunk(random),
        6 => format!("return table.maxn({{{list},[{}]=1}})", 1 + random.index(100)),
        7 => format!(
            "local t,s={{{list}}},{{}} local r=table.foreachi(t,function(i,v) s[i]={{v}} \
             if i=={} then return v end end) return r,s",
            random.index(6)
        ),
        _ => {
            let name =
                pick(random, &["concat", "insert", "remove", "sort", "maxn", "getn", "setn"]);
            format!("return table.{name}({},{})", scalar(random), scalar(random))
        }
    }
}

fn element(random: &mut Random) -> String {
    match random.index(14) {
        0 => scalar(random),
        1 => "{}".to_owned(),
        2 => literal(&bytes_of(random, b"abc", 3)),
        _ => (random.index(50) as i64 - 10).to_string(),
    }
}

/// Sorts by orders that hold, and by some that contradict themselves: a script can see in which
/// order elements are compared.
fn sort_chunk(random: &mut Random) -> String {
    let orders = [
        "a<b",
        "a>b",
        "a<=b",
        "true",
        "false",
        "a%3<b%3",
        "(a*7)%5<(b*3)%5",
        "a~=b",
        "#s%3==0",
        "tostring(a)<tostring(b)",
    ];
    let numbers: Vec<String> =
        (0..random.index(30)).map(|_| random.index(40).to_string()).collect();
    format!(
        "local s,t={{}},{{{}}} local ok,e=pcall(table.sort,t,function(a,b) s[#s+1]=tostring(a)..\
         ':'..tostring(b) return {} end) return ok,e,t,#s,table.concat(s,' ')",
        numbers.join(","),
        pick(random, &orders)
    )
}
