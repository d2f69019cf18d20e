//! Scripts and what can be proved about them.

use super::{Argument, CommandCall, KeysUse, Rest, Wide};
use crate::{Purpose, Tick, compile, compile_for};

fn keys_use(source: &str) -> KeysUse {
    compile(source.as_bytes(), b"@user_script").unwrap().keys_use().clone()
}

/// `K` for a proved key, `?` for the unknown, constants as they are; `*` and `...` for the rest.
fn shown(found: &KeysUse) -> String {
    let mut calls: Vec<&CommandCall> = found.functions.iter().flat_map(|of| &of.calls).collect();
    calls.sort_by_key(|call| call.line);
    let calls = calls.into_iter().map(|call| {
        let mut args: Vec<String> = Vec::new();
        for arg in &call.args {
            args.push(match arg {
                Argument::Key => "K".to_owned(),
                Argument::Constant(text) => String::from_utf8_lossy(text).into_owned(),
                Argument::Unknown => "?".to_owned(),
            });
        }
        match call.rest {
            Rest::Nothing => {}
            Rest::Keys => args.push("K*".to_owned()),
            Rest::Unknown => args.push("...".to_owned()),
        }
        args.join(" ")
    });
    let calls: Vec<String> = calls.collect();
    match found.wide() {
        Some(reason) => format!("{reason:?}: {}", calls.join("; ")),
        None => calls.join("; "),
    }
}

#[track_caller]
fn proves(source: &str, wanted: &str) {
    assert_eq!(shown(&keys_use(source)), wanted, "{source}");
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
        assert_eq!(keys_use(source).wide(), Some(wanted), "{source}");
    }
}

/// A script that assigns one variable to the other and back used to keep what it had assumed of
/// the second while it looked at the first: it was called narrow, and failed half-way.
#[test]
fn an_assumption_is_not_remembered_as_a_proof() {
    let source = "local a=KEYS[1] local b=a a=b a=ARGV[1] b=a \
                  redis.call('SET',KEYS[1],a) return redis.call('GET',b)";
    proves(source, "SET K ?; GET ?");
    let source = "local a=KEYS[1] local b=a local c=b a=c c=a redis.call('COPY',b,c)";
    proves(source, "COPY K K");
    let source = "local t=KEYS local u=t t=u u={'x'} redis.call('GET',t[1])";
    assert_eq!(keys_use(source).wide(), Some(Wide::KeysEscape));
    proves(
        "local function f(a, b) if b then f(b, a) end redis.call('GET', a) end \
            f(KEYS[1], KEYS[2]) f(KEYS[1], ARGV[1])",
        "GET ?",
    );
    proves(
        "local function f(a, b) if b then f(b, a) end redis.call('GET', a) end \
            f(unpack(KEYS)) f(KEYS[1])",
        "GET K",
    );
    proves(
        "local function f(a, b, c) redis.call('MGET', a, b, c) end \
            f(KEYS[1], unpack(KEYS)) f(KEYS[1], KEYS[2], unpack(ARGV))",
        "MGET K K ?",
    );
}

/// For each function of a library, whether it and what it may run call only commands of which the
/// first argument is a key; the chunk itself comes first.
fn narrow_functions(source: &str) -> Vec<bool> {
    let chunk = compile_for(Purpose::Library, source.as_bytes(), b"@l", &|| Tick::Continue);
    let is_key = |call: &CommandCall| call.args.get(1) == Some(&Argument::Key);
    chunk.unwrap().keys_use().narrow_functions(&is_key)
}

#[test]
fn registered_functions_stand_for_themselves() {
    let source = "local function get(k) return redis.call('GET', k) end \
        redis.register_function('narrow', function(keys, args) return get(keys[1]) end) \
        redis.register_function{function_name='wide', callback=function(keys, args) \
            return redis.call('GET', args[1]) end} \
        local function third(keys) return redis.call('DEL', keys[1]) end \
        redis.register_function('third', third)";
    assert_eq!(narrow_functions(source), [true, true, true, false, true]);
}

#[test]
fn what_a_function_calls_by_name_is_its_own() {
    let source = "local function b(k) redis.call('GET', k .. 'x') end \
        local function a(k) b(k) end \
        redis.register_function('f', function(keys) a(keys[1]) end) \
        redis.register_function('g', function(keys) redis.call('GET', keys[1]) end)";
    assert_eq!(narrow_functions(source), [true, false, false, false, true]);
    // A function that is kept somewhere may be run by any other.
    let source = "local t = {} function t.f(k) redis.call('GET', k) end \
        redis.register_function('g', function(keys) redis.call('GET', keys[1]) end)";
    assert_eq!(narrow_functions(source), [false; 3]);
}

/// A function that kept a key in a variable of its library for another one to use used to be
/// called narrow, as if the other had been given it.
#[test]
fn keys_of_one_call_are_no_keys_of_another() {
    let user = "function(keys) return redis.call('GET', k) end";
    let cases = [
        ("local k", "function(keys) k = keys[1] end", user),
        ("local k", "function(keys) redis.call('GET', k) k = keys[1] end", user),
        ("local t", "function(keys) t = keys end", "function() redis.call('GET', t[1]) end"),
        (
            "local saved",
            "function(keys) saved = function() return redis.call('GET', keys[1]) end end",
            "function(keys) return saved() end",
        ),
        (
            "local saved local function keep(k) saved = function() redis.call('GET', k) end end",
            "function(keys) keep(keys[1]) end",
            "function(keys) return saved() end",
        ),
        (
            "local go local function get(k) coroutine.yield() redis.call('GET', k) end",
            "function(keys) go = coroutine.wrap(function() get(keys[1]) end) go() end",
            "function(keys) return go() end",
        ),
        (
            "local saved local function call(f) f() end",
            "function(keys) local k = keys[1] local function get() redis.call('GET', k) end \
             saved = function() get() end end",
            "function(keys) saved() end",
        ),
    ];
    for (shared, keeper, user) in cases {
        let source = format!(
            "{shared} redis.register_function('a', {keeper}) redis.register_function('b', {user})"
        );
        let narrow = narrow_functions(&source);
        assert!(!narrow[narrow.len() - 1], "{source}: {narrow:?}");
    }
    // The same where the variable is not the chunk's own.
    let source = "local function make() local k \
        local function swap(new) local old = k k = new return redis.call('GET', old) end \
        redis.register_function('a', function(keys) return swap(keys[1]) end) end make()";
    assert_eq!(narrow_functions(source), [true, true, false, false]);
    let source = "redis.register_function('a', function(keys) local k = keys[1] \
        local function get() return redis.call('GET', k) end return get() end)";
    assert_eq!(narrow_functions(source), [true; 3]);
}

fn keeps_state(source: &str) -> bool {
    let tick = || Tick::Continue;
    let chunk = compile_for(Purpose::Library, source.as_bytes(), b"@user_function", &tick);
    chunk.unwrap().keys_use().keeps_state()
}

/// Variables of a library were one for each interpreter, so that a function that counted in one of
/// them gave any number.
#[test]
fn whatever_a_later_call_could_tell_is_state() {
    for (load, body) in [
        ("local n = 0", "n = n + 1 return n"),
        ("local n", "local function set(v) n = v end set(1)"),
        ("local t = {}", "t[1] = 1"),
        ("local t = {}", "t.x = 1"),
        ("local t = {}", "local u = t u.x = 1"),
        ("local t = {x = {}}", "t.x.y = 1"),
        ("local t = {} local u = {t}", "u[1].x = 1"),
        ("local t = {} t.x = {}", "t.x.y = 1"),
        ("local t = {} local i = 1 t[i] = string.gmatch('a b', '%a')", "return t[1]()"),
        ("local t = {}", "table.insert(t, 1)"),
        ("local t = {} local insert = table.insert", "insert(t, 1)"),
        ("local t = {}", "rawset(t, 1, 1)"),
        ("local t = {}", "setmetatable(t, {__index = function() return 1 end})"),
        ("local t = {}", "local function add(to) to[1] = 1 end add(t)"),
        ("local t = {} function t.add(self) self.n = 1 end", "t:add()"),
        ("local t = {} function t:add() self.n = 1 end", "t:add()"),
        ("local t = {} function t.add() t.n = 1 end", "t.add()"),
        ("local t = {} local function get() return t end", "get().x = 1"),
        ("local t = {}", "for _, x in ipairs({t}) do x.y = 1 end"),
        ("local t = setmetatable({}, {})", "t.x = 1"),
        ("local t = cjson.decode('[]')", "t[1] = 1"),
        ("local next_word = string.gmatch('a b c', '%a')", "return next_word()"),
        ("local step = coroutine.wrap(function() coroutine.yield(1) end)", "return step()"),
        ("local json = cjson.new()", "json.encode_max_depth(3)"),
        ("local id = math.random()", "return id"),
        (
            "local function counter() local n = 0 return function() n = n + 1 return n end end \
             local count = counter()",
            "return count()",
        ),
        (
            "local function keep(t) return function(v) t[1] = v end end local put = keep({})",
            "put(1)",
        ),
        (
            "local M = {} function M.new() local n = 0 return function() n = n + 1 end end \
             local count = M.new()",
            "count()",
        ),
    ] {
        let source = format!("{load} redis.register_function('f', function(keys) {body} end)");
        assert!(keeps_state(&source), "{source}");
    }
}

#[test]
fn what_no_later_call_can_tell_is_no_state() {
    for (load, body) in [
        ("", "local n = 0 n = n + 1 return n"),
        ("", "local t = {} t[1] = {} t[1].x = 2 table.insert(t, 1) return t"),
        ("local prefix = 'a' .. 'b'", "return prefix .. keys[1]"),
        ("local limit, call = 10 * 2, redis.call", "return call('GET', keys[1]) or limit"),
        ("local max = tonumber('5') local n n = 7", "return max + n"),
        ("local names = {'a', 'b', c = 1}", "for i, name in ipairs(names) do keys[i] = name end"),
        ("local names = {} names.a = 1 names[2] = 'x'", "return names.a .. #names .. names[2]"),
        ("local insert = table.insert", "local t = {} insert(t, 1) return t"),
        ("local t = {1}", "if t == nil or not t then return type(t) end return unpack(t)"),
        ("local function add(t, v) t[#t + 1] = v end", "local t = {} add(t, 1) return t"),
        ("local M = {} function M.add(t) t[1] = 1 return t end", "return M.add({})"),
        (
            "local function split(s) local t = {} for w in s:gmatch('%a') do t[#t + 1] = w end \
             return t end",
            "return split(keys[1])",
        ),
        ("", "local n = 0 local function inc() n = n + 1 end inc() return n"),
        ("", "local n = {} table.sort(keys, function(a, b) n[a] = b return a < b end) return n"),
        (
            "local function each(t, f) for _, v in ipairs(t) do f(v) end end",
            "local sum = 0 each(keys, function(v) sum = sum + v end) return sum",
        ),
    ] {
        let source = format!("{load} redis.register_function('f', function(keys) {body} end)");
        assert!(!keeps_state(&source), "{source}");
    }
}
