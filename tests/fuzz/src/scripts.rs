//! Random Lua against the sandbox, through EVAL: made from a small grammar so that most of it
//! compiles, spoilt now and then so that some does not. Loops are short, functions can't call
//! themselves, and `load`, which calls its reader until that says nothing, is left out: nobody is
//! there to kill what does not end.
//!
//! What must hold: every run answers one whole reply; nothing that a script did to globals, to
//! libraries or to basic types is seen by the next; the data stays what it is.

use crate::server::FuzzServer;
use crate::source::Source;
use russet_protocol::Value;

/// Scripts for one input.
const SCRIPTS_MAX: usize = 24;
const DEPTH_MAX: usize = 4;
const STATEMENTS_MAX: usize = 4;

/// Looks at all that a script could have left behind.
const WITNESS: &[u8] = b"local names = {} \
    for _, place in ipairs({_G, string, table, math, redis, cjson, cmsgpack, struct, bit, os}) do \
      for name, value in pairs(place) do names[#names + 1] = tostring(name) .. type(value) end \
    end \
    table.sort(names) \
    return {redis.sha1hex(table.concat(names, ',')), ('x'):upper(), tostring(#KEYS), #ARGV, \
      tostring(rawget(_G, 'leak')), string.format('%d', 7), cjson.encode({1}), \
      tostring(getmetatable('').__index == string)}";

const NAMES: &[&str] = &["a", "b", "c", "t", "f"];
/// Each function has its own: no name leads back to a function that is running.
const OWN_NAMES: &str = "local a, b, c, t, f = 1, 'x', {}, {1, 2, 3}, tostring ";
const TEXTS: &[&str] =
    &["", "x", "10", "-1", "0x1F", "1e308", "%d%s", "(%w+)", "%b()", "\\0\\255", "[a-z"];
const NUMBERS: &[&str] =
    &["0", "1", "-1", "2", "7", "0.5", "1e15", "2^31", "2^53", "-2^63", "1e308", "1/0", "0/0"];
const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or"];
const FUNCTIONS: &[&str] = &[
    "tostring",
    "tonumber",
    "type",
    "next",
    "select",
    "unpack",
    "rawget",
    "rawset",
    "rawequal",
    "setmetatable",
    "getmetatable",
    "pcall",
    "xpcall",
    "error",
    "assert",
    "ipairs",
    "pairs",
    "loadstring",
    "collectgarbage",
    "string.rep",
    "string.sub",
    "string.byte",
    "string.char",
    "string.format",
    "string.find",
    "string.match",
    "string.gsub",
    "string.gmatch",
    "string.reverse",
    "string.len",
    "table.insert",
    "table.remove",
    "table.concat",
    "table.sort",
    "table.maxn",
    "math.floor",
    "math.fmod",
    "math.max",
    "math.random",
    "math.ldexp",
    "math.frexp",
    "cjson.encode",
    "cjson.decode",
    "cjson.new",
    "cmsgpack.pack",
    "cmsgpack.unpack",
    "cmsgpack.unpack_limit",
    "struct.pack",
    "struct.unpack",
    "struct.size",
    "bit.band",
    "bit.lshift",
    "bit.tohex",
    "bit.bswap",
    "coroutine.create",
    "coroutine.resume",
    "coroutine.wrap",
    "coroutine.yield",
    "coroutine.status",
    "redis.call",
    "redis.pcall",
    "redis.error_reply",
    "redis.status_reply",
    "redis.sha1hex",
    "redis.setresp",
    "redis.log",
    "redis.acl_check_cmd",
    "redis.set_repl",
    "os.clock",
    "newproxy",
    "getfenv",
    "setfenv",
];
/// Places that a script has no business to write to.
const FORBIDDEN: &[&str] = &[
    "leak",
    "_G.leak",
    "string.leak",
    "redis.call",
    "getmetatable('').__index",
    "KEYS",
    "ARGV[1]",
    "getmetatable(_G).__index",
    "math.pi",
    "cjson.null",
    "_G",
];
const COMMANDS: &[&str] = &[
    "'GET', KEYS[1]",
    "'SET', KEYS[1], 'v'",
    "'INCR', KEYS[1]",
    "'RPUSH', 'l', 'x', 'y'",
    "'LRANGE', 'l', 0, -1",
    "'DEL', KEYS[1], 'l'",
    "'HSET', 'h', 'f', 'v'",
    "'HGETALL', 'h'",
    "'ZADD', 'z', 1.5, 'm'",
    "'ZRANGE', 'z', 0, -1, 'WITHSCORES'",
    "'SMEMBERS', 's'",
    "'SADD', 's', 'm'",
    "'KEYS', '*'",
    "'TYPE', KEYS[1]",
    "'NOSUCH'",
    "'GET'",
    "'PING'",
    "'SELECT', 1",
    "'EVAL', 'return 1', 0",
    "'BLPOP', 'l', 0",
    "'FLUSHALL'",
    "'TIME'",
];

pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut server = FuzzServer::new(1);
    let clean = server.ask(&[b"EVAL", WITNESS, b"0"]);
    assert!(matches!(clean, Value::Array(_)), "the witness: {clean}");
    for _ in 0..SCRIPTS_MAX {
        if source.is_empty() {
            break;
        }
        let script = script(&mut source);
        let command: &[u8] = source.pick(&[b"EVAL".as_slice(), b"EVAL", b"EVAL_RO"]);
        server.ask(&[command, &script, b"1", b"k", b"argument"]);
        let after = server.ask(&[b"EVAL", WITNESS, b"0"]);
        assert_eq!(after, clean, "it left a trace: {}", script.escape_ascii());
    }
    let _data_is_whole = server.ask(&[b"DBSIZE"]);
}

fn script(source: &mut Source) -> Vec<u8> {
    let mut text = String::from(OWN_NAMES);
    for _ in 0..=source.below(STATEMENTS_MAX) {
        statement(source, &mut text, 0);
    }
    text.push_str("return ");
    expression(source, &mut text, 0);
    let mut bytes = text.into_bytes();
    if source.one_in(12) {
        let at = source.below(bytes.len());
        bytes[at] = source.byte();
    }
    bytes
}

fn block(source: &mut Source, text: &mut String, depth: usize) {
    for _ in 0..=source.below(2) {
        statement(source, text, depth + 1);
    }
}

fn statement(source: &mut Source, text: &mut String, depth: usize) {
    let choice = if depth >= DEPTH_MAX { source.below(4) } else { source.below(10) };
    match choice {
        0 => {
            text.push_str(source.pick(NAMES));
            text.push_str(" = ");
            expression(source, text, depth);
        }
        1 => {
            text.push_str("pcall(function() ");
            text.push_str(source.pick(FORBIDDEN));
            text.push_str(" = ");
            expression(source, text, depth);
            text.push_str(" end)");
        }
        2 => {
            text.push_str("c = ");
            call(source, text, depth);
        }
        3 => {
            text.push_str("t[");
            expression(source, text, DEPTH_MAX);
            text.push_str("] = ");
            expression(source, text, depth);
        }
        4 => {
            text.push_str("if ");
            expression(source, text, depth + 1);
            text.push_str(" then ");
            block(source, text, depth);
            text.push_str(" else ");
            block(source, text, depth);
            text.push_str(" end");
        }
        5 => {
            text.push_str(&format!("for i = 1, {} do ", source.below(5)));
            block(source, text, depth);
            text.push_str(" end");
        }
        6 => {
            text.push_str("for k, v in pairs(type(t) == 'table' and t or {}) do ");
            block(source, text, depth);
            text.push_str(" break end");
        }
        7 => {
            text.push_str(&format!("f = function(x, ...) {OWN_NAMES}"));
            block(source, text, depth);
            text.push_str(" return x, ... end");
        }
        8 => {
            text.push_str("pcall(function() ");
            block(source, text, depth);
            text.push_str(" end)");
        }
        _ => {
            text.push_str("do local a = ");
            expression(source, text, depth);
            text.push(' ');
            block(source, text, depth);
            text.push_str(" end");
        }
    }
    text.push_str("; ");
}

fn expression(source: &mut Source, text: &mut String, depth: usize) {
    let choice = if depth >= DEPTH_MAX { source.below(4) } else { source.below(11) };
    match choice {
        0 => text.push_str(source.pick(NAMES)),
        1 => text.push_str(source.pick(NUMBERS)),
        2 => text.push_str(&format!("'{}'", source.pick(TEXTS))),
        3 => text.push_str(source.pick(&["nil", "true", "false", "KEYS[1]", "ARGV[1]", "{}"])),
        4 | 5 => call(source, text, depth),
        6 => {
            text.push('(');
            expression(source, text, depth + 1);
            text.push(' ');
            text.push_str(source.pick(OPERATORS));
            text.push(' ');
            expression(source, text, depth + 1);
            text.push(')');
        }
        7 => {
            text.push_str(source.pick(&["-(", "not (", "#("]));
            expression(source, text, depth + 1);
            text.push(')');
        }
        8 => {
            let field = ["1", "'err'", "'ok'", "'double'", "'map'", "'set'", "'__index'"];
            text.push_str(&format!("{{[{}] = ", source.pick(&field)));
            expression(source, text, depth + 1);
            text.push_str(", ");
            expression(source, text, depth + 1);
            text.push('}');
        }
        9 => {
            text.push_str(&format!("(function(...) local x = ... {OWN_NAMES} return "));
            expression(source, text, depth + 1);
            text.push_str(" end)");
        }
        _ => {
            text.push_str("redis.pcall(");
            text.push_str(source.pick(COMMANDS));
            text.push(')');
        }
    }
}

fn call(source: &mut Source, text: &mut String, depth: usize) {
    text.push_str(source.pick(FUNCTIONS));
    text.push('(');
    for at in 0..source.below(4) {
        if at > 0 {
            text.push_str(", ");
        }
        expression(source, text, depth + 1);
    }
    text.push(')');
}
