//! Scripts and what can be proved about them.

use super::{Argument, KeysUse, Reach, Rest, Wide};
use crate::compile;

fn keys_use(source: &str) -> KeysUse {
    compile(source.as_bytes(), b"@user_script").unwrap().keys_use().clone()
}

/// `K` for a proved key, `?` for the unknown, constants as they are; `*` and `...` for the rest.
fn shown(reach: &Reach) -> String {
    let calls = reach.calls.iter().map(|call| {
        let mut words: Vec<String> = Vec::new();
        for arg in &call.args {
            words.push(match arg {
                Argument::Key => "K".to_owned(),
                Argument::Constant(text) => String::from_utf8_lossy(text).into_owned(),
                Argument::Unknown => "?".to_owned(),
            });
        }
        match call.rest {
            Rest::Nothing => {}
            Rest::Keys => words.push("K*".to_owned()),
            Rest::Unknown => words.push("...".to_owned()),
        }
        words.join(" ")
    });
    let calls: Vec<String> = calls.collect();
    match reach.wide {
        Some(reason) => format!("{reason:?}: {}", calls.join("; ")),
        None => calls.join("; "),
    }
}

#[track_caller]
fn proves(source: &str, wanted: &str) {
    assert_eq!(shown(&keys_use(source).chunk), wanted, "{source}");
}

#[test]
fn keys_are_followed() {
    proves("return redis.call('GET', KEYS[1])", "GET K");
    proves("return redis.pcall('SET', KEYS[1], ARGV[1], 'PX', 100)", "SET K ? PX 100");
    proves("return server.call('GET', KEYS[1])", "GET K");
    proves("local k = KEYS[1] return redis.call('GET', k)", "GET K");
    proves("local a, b = KEYS[1], KEYS[2] redis.call('COPY', a, b)", "COPY K K");
    proves("local a, b = unpack(KEYS) redis.call('COPY', a, b)", "COPY K K");
    proves("redis.call('DEL', unpack(KEYS))", "DEL K*");
    proves("for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end", "DEL K");
    proves("for i, k in ipairs(KEYS) do redis.call('DEL', k, i) end", "DEL K ?");
    proves("for _, k in pairs(KEYS) do redis.call('DEL', k) end", "DEL K");
    proves("local call = redis.call return call('GET', KEYS[1])", "GET K");
    proves("local r = redis return r.call('GET', KEYS[1])", "GET K");
    proves("local K = KEYS return redis.call('GET', K[1])", "GET K");
    proves("local ok, v = pcall(redis.call, 'GET', KEYS[1]) return v", "GET K");
    proves("local k k = KEYS[1] if ARGV[1] then k = KEYS[2] end redis.call('GET', k)", "GET K");
    proves("redis.call('GET', ARGV[1] and KEYS[1] or KEYS[2])", "GET K");
    proves("return KEYS", "");
    proves("return {#KEYS, type(KEYS), table.concat(KEYS, ','), redis.sha1hex('')}", "");
}

#[test]
fn functions_are_followed() {
    let source = "local function get(k) return redis.call('GET', k) end \
                  return get(KEYS[1]) .. get(KEYS[2])";
    proves(source, "GET K");
    let source = "local function get(k) return redis.call('GET', k) end \
                  return get(KEYS[1]) .. get(ARGV[1])";
    proves(source, "GET ?");
    let source = "local function get(k) return redis.call('GET', k) end \
                  local t = {get} return get(KEYS[1])";
    proves(source, "GET ?");
    let source = "local function first(keys) return redis.call('GET', keys[1]) end \
                  return first(KEYS)";
    proves(source, "GET K");
    let source = "local function walk(k, n) if n > 0 then walk(k, n - 1) end \
                  redis.call('INCR', k) end walk(KEYS[1], 3)";
    proves(source, "INCR K");
    proves("local f = function(k) redis.call('GET', k) end f(KEYS[1])", "GET K");
    proves("local f = function(k) redis.call('GET', k) end f()", "GET ?");
}

#[test]
fn what_is_not_a_key_is_not_proved() {
    proves("redis.call('GET', 'x' .. KEYS[1])", "GET ?");
    proves("redis.call('GET', ARGV[1])", "GET ?");
    proves("redis.call('GET', 'literal')", "GET literal");
    proves("redis.call(ARGV[1], KEYS[1])", "? K");
    proves("redis.call(unpack(ARGV))", "...");
    proves("redis.call('DEL', unpack(ARGV))", "DEL ...");
    proves("local k = KEYS[1] k = ARGV[1] redis.call('GET', k)", "GET ?");
    proves("local KEYS = {'x'} redis.call('GET', KEYS[1])", "GET ?");
    proves("for k in pairs(KEYS) do redis.call('GET', k) end", "GET ?");
    proves("local k = KEYS[1] local f = function() k = 'x' end f() redis.call('GET', k)", "GET ?");
    proves("local function f(...) redis.call('GET', ...) end f(KEYS[1])", "GET ...");
}

#[test]
fn escapes_are_wide() {
    let cases = [
        ("KEYS[1] = 'x' redis.call('GET', KEYS[1])", Wide::KeysEscape),
        ("local K = KEYS K[1] = 'x' redis.call('GET', KEYS[1])", Wide::KeysEscape),
        ("table.insert(KEYS, 1, 'x')", Wide::KeysEscape),
        ("local t = {KEYS}", Wide::KeysEscape),
        ("rawset(KEYS, 1, 'x')", Wide::KeysEscape),
        ("local f, s = ipairs(KEYS) s[1] = 'x'", Wide::KeysEscape),
        ("local function f() return KEYS end f()[1] = 'x'", Wide::KeysEscape),
        ("setmetatable(KEYS, {})", Wide::KeysEscape),
        ("local f = function(k) k[1] = 'x' end f(KEYS)", Wide::KeysEscape),
        ("(KEYS)[1] = 'x'", Wide::KeysEscape),
        ("local k = ARGV[1] and KEYS or {} ", Wide::KeysEscape),
        ("local r = {redis}", Wide::RedisEscapes),
        ("local t = {redis.call}", Wide::RedisEscapes),
        ("xpcall(redis.call, print)", Wide::RedisEscapes),
        ("local c = redis.call c = type", Wide::RedisEscapes),
        ("coroutine.wrap(redis.call)('GET', 'x')", Wide::RedisEscapes),
        ("for k, v in pairs(redis) do end", Wide::RedisEscapes),
        ("redis['c' .. 'all']('GET', 'x')", Wide::RedisIndexed),
        ("loadstring('return 1')()", Wide::LoadsCode),
        ("local l = load", Wide::LoadsCode),
        ("local g = _G", Wide::GlobalsTable),
        ("_G.redis.call('GET', 'x')", Wide::GlobalsTable),
        ("redis:call('GET')", Wide::RedisEscapes),
        ("return function() return KEYS end", Wide::KeysEscape),
    ];
    for (source, wanted) in cases {
        assert_eq!(keys_use(source).chunk.wide, Some(wanted), "{source}");
    }
}

#[test]
fn registered_functions_stand_for_themselves() {
    let source = "local function get(k) return redis.call('GET', k) end \
        redis.register_function('narrow', function(keys, args) return get(keys[1]) end) \
        redis.register_function{function_name='wide', callback=function(keys, args) \
            return redis.call('GET', args[1]) end} \
        local function third(keys) return redis.call('DEL', keys[1]) end \
        redis.register_function('third', third)";
    let found = keys_use(source);
    assert_eq!(shown(found.function(b"narrow").unwrap()), "GET K");
    assert_eq!(shown(found.function(b"wide").unwrap()), "GET ?");
    assert_eq!(shown(found.function(b"third").unwrap()), "DEL K");
    assert_eq!(found.function(b"fourth"), None);
}
