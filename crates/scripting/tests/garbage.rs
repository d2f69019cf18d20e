//! Collections: they happen wherever Lua code runs, free what nothing reaches, and nothing else.

use russet_scripting::state::Config;
use russet_scripting::{Fault, NoHost, State, Value, compile, library};

/// What a state may hold here: far less than the garbage that the scripts below make.
const MEMORY_BYTES: usize = 32 << 20;

fn new_state() -> State {
    new_state_with(MEMORY_BYTES)
}

fn new_state_with(memory_bytes_max: usize) -> State {
    let mut state = State::new(Config { seed: 9, memory_bytes_max });
    library::open(&mut state).unwrap();
    library::guard_globals(&mut state).unwrap();
    state.freeze();
    state
}

fn run(state: &mut State, source: &str) -> String {
    let chunk = compile(source.as_bytes(), b"@user_script").unwrap();
    let globals = state.globals();
    let root = state.load(&chunk, globals).unwrap();
    let function = state.kept(root);
    let outcome = state.call(&mut NoHost, function, &[]).map(|values| values.first().copied());
    let text = |state: &State, value: Value| match value {
        Value::Str(text) => String::from_utf8_lossy(state.heap().bytes(text)).into_owned(),
        Value::Number(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let answer = match outcome {
        Ok(value) => text(state, value.unwrap_or_default()),
        Err(Fault::Error(value)) => format!("ERR {}", text(state, value)),
        Err(fault) => format!("{fault:?}"),
    };
    state.end_run();
    state.release(root);
    answer
}

/// Nothing was collected while a metamethod or a function that a library called back was on the
/// stack: an `__index` function that built 2 KB strings ran out of 512 MB.
#[test]
fn garbage_of_callbacks_is_collected() {
    // Each callback makes some 3 MB of garbage, and is called 300 times.
    let waste = "local function waste() local s for i = 1, 1500 do s = ('x'):rep(2000) .. i end \
                 return #s end ";
    let uses = [
        "local t = setmetatable({}, {__index = function(t, k) waste() return k end}) \
         local n = 0 for i = 1, 300 do n = n + t[i] end return n",
        "local n = 0 local t = setmetatable({}, {__newindex = function(t, k) waste() n = n + k \
         end}) for i = 1, 300 do t[i] = i end return n",
        "local n = 0 local function f() waste() n = n + 1 return n end \
         local t = setmetatable({}, {__add = f, __sub = f, __mul = f, __div = f, __mod = f, \
         __pow = f, __unm = f, __concat = f, __call = f}) for i = 1, 30 do local x = \
         {t + 1, 1 - t, t * 1, t / 1, t % 2, t ^ 2, -t, t .. 'x', 'x' .. t, t()} end return n",
        "local n = 0 local function f() waste() n = n + 1 return true end \
         local m = {__eq = f, __lt = f, __le = f} \
         local a, b = setmetatable({}, m), setmetatable({}, m) \
         for i = 1, 100 do local x = {a == b, a < b, a <= b} end return n",
        "local n = 0 local t = setmetatable({}, {__tostring = function() waste() n = n + 1 \
         return 'x' end}) for i = 1, 300 do tostring(t) end return n",
        "local n, t = 0, {} for i = 1, 60 do t[i] = (i * 7919) % 61 end \
         table.sort(t, function(a, b) waste() n = n + 1 return a < b end) \
         for i = 2, 60 do if t[i - 1] > t[i] then return 'wrong' end end return n > 100 and 300",
        "local n = 0 local s = ('ab'):rep(150):gsub('.', function(c) waste() n = n + 1 \
         return c .. c end) return n .. #s",
        "local n, t = 0, {} for i = 1, 300 do t[i] = i end \
         table.foreach(t, function() waste() n = n + 1 end) return n",
        "local n, t = 0, {} for i = 1, 300 do t[i] = i end \
         table.foreachi(t, function() waste() n = n + 1 end) return n",
        "local n = 0 load(function() waste() n = n + 1 return n <= 300 and ' ' or nil end) \
         return n - 1",
        "local n = 0 local function f() waste() n = n + 1 error({}) end \
         for i = 1, 300 do xpcall(f, function() waste() end) end return n",
        "local n = 0 local co = coroutine.wrap(function() while true do waste() n = n + 1 \
         coroutine.yield() end end) \
         local t = setmetatable({}, {__index = function() co() end}) \
         for i = 1, 300 do local x = t.x end return n",
    ];
    let wanted = ["45150", "45150", "300", "300", "300", "300", "300600", "300", "300", "300"];
    let mut state = new_state();
    for (at, code) in uses.iter().enumerate() {
        let answer = run(&mut state, &format!("{waste}{code}"));
        assert_eq!(answer, *wanted.get(at).unwrap_or(&"300"), "{code}");
    }
}

/// A value that a library function holds across a callback is not collected in it, even if the
/// callback takes it out of its table.
#[test]
fn what_a_library_holds_outlives_its_callbacks() {
    let mut state = new_state();
    state.collect_eagerly();
    let cases = [
        // The elements that are compared, and the pivot, are taken out of the list.
        "local t, kept = {}, {} for i = 1, 20 do t[i] = {'v' .. (i * 7) % 20} end \
         pcall(table.sort, t, function(a, b) for i = 1, 20 do t[i] = {'other' .. i} end \
         kept[#kept + 1] = a[1] kept[#kept + 1] = b[1] return a[1] < b[1] end) \
         for _, text in ipairs(kept) do if not text:find('^v') and not text:find('^other') then \
         return 'lost ' .. text end end return 'ok'",
        "local t = {} for i = 1, 30 do t[i] = {n = (i * 7) % 31, s = 's' .. (i * 7) % 31} end \
         table.sort(t, function(a, b) local garbage = 'g' .. a.n return a.n < b.n end) \
         for i = 1, 30 do if t[i].n ~= i or t[i].s ~= 's' .. i then return 'lost' end end \
         return 'ok'",
        "return (string.gsub(123412, 1, function(c) local g = {'x' .. c} return '<' .. c .. '>' \
         end)) == '<1>234<1>2' and 'ok'",
        "return (('abc'):gsub('(.)(.)', function(a, b) a = nil local g = {} return b .. 'x' end)) \
         == 'bxc' and 'ok'",
        "local n, t = 0, {} for i = 1, 10 do t['k' .. i] = {i} end \
         table.foreach(t, function(k, v) t[k] = nil k = nil v = nil local g = {} n = n + 1 end) \
         return n == 10 and 'ok'",
        "local ok, e = pcall(function() error(setmetatable({}, {__index = function(t, k) t = nil \
         local g = {{}, {}} return nil end})) end) \
         return type(e) == 'table' and getmetatable(e) and 'ok'",
        "local ok, e = pcall(function() error(setmetatable({}, {__index = function(t, k) t = nil \
         local g = {{}, {}} return k .. '!' end})) end) return e == 'err!' and 'ok'",
        "local a = setmetatable({}, {__concat = function(a, b) local g = {} \
         return (type(a) == 'string' and a or 'A') .. (type(b) == 'string' and b or 'B') end}) \
         return 'x' .. 'y' .. a .. 'z' .. 1 == 'xyAz1' and 'ok'",
        "local function f(...) local t = setmetatable({}, {__index = function(_, k) \
         local g = {k} return 'v' .. k end}) return t.a, t.b, ... end \
         local x = {f('p' .. 1, 'q' .. 2)} return table.concat(x) == 'vavbp1q2' and 'ok'",
        "local co = coroutine.wrap(function(a) local own = 'own' .. a while true do \
         local got = coroutine.yield(own .. a) local g = {got} a = got .. '+' end end) \
         local m = setmetatable({}, {__index = function(_, k) return co('k' .. k) end}) \
         local x = m[1] .. m[2] .. m[3] return x == 'ownk1k1ownk1k2+ownk1k3+' and 'ok' or x",
    ];
    for code in cases {
        assert_eq!(run(&mut state, code), "ok", "{code}");
    }
}

/// Weak tables were never cleared: a cache that was meant to give way kept everything.
#[test]
fn weak_tables_are_cleared() {
    let mut state = new_state();
    let count = "local function count(t) local n = 0 for _ in pairs(t) do n = n + 1 end return n \
                 end ";
    let cases = [
        // Values go, keys that are strings or numbers do not keep them.
        (
            "local t = setmetatable({}, {__mode = 'v'}) t.a = {} t[1] = {} t.b = 'text' t.c = 7 \
          local kept = {} t.d = kept collectgarbage() \
          return count(t) .. t.b .. t.c .. tostring(t.d == kept)",
            "3text7true",
        ),
        (
            "local t = setmetatable({}, {__mode = 'k'}) t[{}] = 1 t[function() end] = 2 t.s = {} \
          local kept = {} t[kept] = 'x' collectgarbage() return count(t) .. t[kept]",
            "2x",
        ),
        (
            "local t = setmetatable({}, {__mode = 'kv'}) local k, v = {}, {} \
          t[k] = {} t[{}] = v t[k] = v t[1] = {} t.x = 'y' collectgarbage() return count(t)",
            "2",
        ),
        // Without __mode, or with one that is no text, nothing goes.
        (
            "local t = setmetatable({}, {__mode = 1}) t[{}] = {} collectgarbage() return count(t)",
            "1",
        ),
        // A key that only its own value names stays, as in Lua 5.1.
        (
            "local t = setmetatable({}, {__mode = 'k'}) do local k = {} t[k] = {k} end \
          collectgarbage() return count(t)",
            "1",
        ),
        // Strings are values, never removed.
        (
            "local t = setmetatable({}, {__mode = 'kv'}) \
             for i = 1, 50 do t['k' .. i] = 'v' .. i end \
          collectgarbage() for i = 1, 50 do if t['k' .. i] ~= 'v' .. i then return 'lost' end end \
          return count(t)",
            "50",
        ),
        (
            "local t = setmetatable({}, {__mode = 'v'}) for i = 1, 100 do t[i] = {i} end \
          collectgarbage() for i = 1, 10 do t[i] = 'new' .. i end return count(t) .. t[10]",
            "10new10",
        ),
        // The mode is looked at when there is a collection.
        (
            "local m = {} local t = setmetatable({}, m) t[1] = {} t[2] = {} m.__mode = 'v' \
          collectgarbage() return count(t)",
            "0",
        ),
        // A cache fills up without end only if it is strong.
        (
            "local t = setmetatable({}, {__mode = 'v'}) for i = 1, 100000 do \
          t[i] = {('x'):rep(1000) .. i} end return count(t) < 100000 and 'given way'",
            "given way",
        ),
        (
            "local t = setmetatable({}, {__mode = 'k'}) local n = 0 \
             for i = 1, 200 do t[{}] = i end \
          for k, v in pairs(t) do collectgarbage() n = n + 1 end return n >= 1 and n <= 200 and \
          'walked'",
            "walked",
        ),
    ];
    for (code, wanted) in cases {
        assert_eq!(run(&mut state, &format!("{count}{code}")), wanted, "{code}");
    }
}

/// `collectgarbage` did nothing, so that its count never fell.
#[test]
fn a_script_can_ask_for_a_collection() {
    let mut state = new_state();
    let code = "local before = collectgarbage('count') local t = {} \
                for i = 1, 10000 do t[i] = {i} end local full = collectgarbage('count') t = nil \
                local answer = collectgarbage() local after = collectgarbage('count') \
                return answer == 0 and full > before + 400 and after < before + 10 and 'freed'";
    assert_eq!(run(&mut state, code), "freed");
}

/// What instructions make.
const INSTRUCTIONS: &[&str] = &[
    "f(1, 2, 3)",
    "local x = i if i < 0 then kept = function() x = x + 1 end end",
    "(function(x) if i < 0 then kept = function() x = x + 1 end end end)(i)",
    "local x = {}",
    "local x = {1, 2, f(3), 4}",
    "local x = {unpack(list)}",
    "local x = {a = 1, b = 2}",
    "local x = {} x.a = 1 x.b = 2 x.c = 3",
    "local x = {} x[1] = 1 x[2] = 2 x[3] = 3",
    "local x = function() return i end",
    "local x = 'x' .. i",
    "local x = i .. '' .. i",
    "local x = long .. i",
    "t.x = i",
    "local x = t.x",
    "local x = t + 1",
    "local x = t .. 'x'",
    "local x = 'x' .. i .. t",
    "local x = -t",
    "local x = t < t",
    "local x = t == other",
    "t(i)",
    "return_f(i)",
    "for x in t do break end",
    "for x in f, i, nil do break end",
    "for x in ('abc'):gmatch('.') do local y = x end",
];

/// What natives make.
const NATIVES: &[&str] = &[
    "tostring(i)",
    "tostring({})",
    "tostring(t)",
    "local x = ('x'):rep(i % 100)",
    "local x = long:upper()",
    "local x = long:sub(2)",
    "local x = long:reverse()",
    "local x = ('abc'):gsub('.', '%0%0')",
    "local x = ('abc'):gsub('.', string.upper)",
    "local x = ('abc'):gsub('.', f)",
    "local x = ('abc'):gsub('.', t)",
    "local x = ('abc'):match('(.)(.)(.)')",
    "local x = ('abc'):gmatch('.')",
    "local x = ('abc'):find('(b)')",
    "local x = ('%d %s'):format(i, long)",
    "local x = string.char(i % 256, 65)",
    "local x = table.concat(list, 'x')",
    "table.sort(list, f2)",
    "table.foreach(list, f)",
    "local x = {} table.insert(x, i)",
    "local x = {} rawset(x, i, i)",
    "pcall(error, 'x' .. i)",
    "pcall(error, {})",
    "pcall(function() local x = nil + i end)",
    "pcall(string.rep)",
    "xpcall(f, f)",
    "loadstring('return ' .. i)",
    "loadstring('return = ' .. i)",
    "local n = 0 load(function() n = n + 1 return n < 3 and 'local x ' or nil end)",
    "coroutine.create(f)",
    "coroutine.wrap(f)()",
    "coroutine.wrap(function() coroutine.yield(i) end)()",
    "pcall(coroutine.wrap(function() error('x' .. i) end))",
    "setmetatable({}, {})",
    "local x = cjson.decode('[1,{\"a\":\"b\"}]')",
    "local x = cjson.encode(list)",
    "local x = cmsgpack.unpack(cmsgpack.pack(list))",
    "local x = struct.pack('>I4s', i, long)",
    "local x = struct.unpack('>s', long .. '\\0')",
    "local x = bit.tohex(i)",
    "gcinfo()",
    "local x = os.clock()",
    "local x = ('%q'):format(long)",
    "local x = {select(2, i, i, i)}",
];

/// The tables of further arguments and the variables that functions share were never collected: a
/// loop of nothing but calls ran out of memory.
#[test]
fn whatever_makes_garbage_has_it_collected() {
    let setting = "local kept, list, long = nil, {3, 1, 2}, ('y'):rep(1500) \
        local function f(...) return 1 end \
        local function f2(a, b, ...) return a < b end \
        local function return_f(...) return f(...) end \
        local function text(...) return 'x' end \
        local m = {__index = f, __newindex = f, __add = f, __unm = f, __concat = f, __call = f, \
        __lt = f, __eq = f, __tostring = text} \
        local t, other = setmetatable({}, m), setmetatable({}, m) ";
    let mut state = new_state_with(1 << 20);
    for body in INSTRUCTIONS.iter().chain(NATIVES) {
        let code = format!("{setting} for i = 1, 100000 do {body} end return 'done'");
        assert_eq!(run(&mut state, &code), "done", "{body}");
    }
}

/// The first instructions of a function may collect: its arguments, of which nobody else knows, are
/// alive by then, and so is what its caller is about to use.
#[test]
fn what_a_function_is_given_outlives_its_first_instructions() {
    let mut state = new_state();
    state.collect_eagerly();
    let shown = "local function shown(...) local s = '' for i = 1, arg.n do \
                 s = s .. (type(arg[i]) == 'table' and arg[i][1] or tostring(arg[i])) end \
                 return s end \
                 local function boxed(text) return {text .. ''} end ";
    let cases = [
        "return shown('a' .. 1, boxed('b'), nil) == 'a1bnil'",
        "local m = {__index = shown} return setmetatable(boxed('b'), m)['k' .. 1] == 'bk1'",
        "local m, got = {} function m.__newindex(...) got = shown(...) end \
         setmetatable(boxed('b'), m)['k' .. 1] = boxed('v') return got == 'bk1v'",
        "local m = {__add = shown, __unm = shown, __concat = shown} \
         local function new(text) return setmetatable(boxed(text), m) end \
         return new('a') + new('b') .. new('c') == 'abc' and -new('d') == 'dd' \
         and 'x' .. 1 .. new('e') .. 'y' .. 2 == 'x1ey2'",
        "local m = {__call = function(self, ...) return shown(self, ...) end, \
         __lt = function(...) return shown(...) == 'ab' end} \
         return setmetatable(boxed('a'), m)('x' .. 1) == 'ax1' \
         and setmetatable(boxed('a'), m) < setmetatable(boxed('b'), m)",
        "local got = '' local function once(...) if got == '' then got = shown(...) return 'x' end \
         end for x in once, boxed('s'), 'k' .. 1 do got = got .. x end return got == 'sk1x'",
        "local wrapped = coroutine.wrap(function(...) local s = shown(...) while true do \
         s = shown(s, coroutine.yield(s)) end end) \
         return wrapped('a' .. 1, boxed('b')) == 'a1b' and wrapped('c' .. 2) == 'a1bc2'",
        "local function tail(...) return shown('t' .. 1, ...) end \
         return tail(boxed('a'), 'b' .. 2) == 't1ab2' \
         and select(2, pcall(tail, boxed('a'))) == 't1a'",
        "local list = {boxed('c'), boxed('a'), boxed('b')} \
         table.sort(list, function(...) local t = arg return t[1][1] < t[2][1] end) \
         return shown(unpack(list)) == 'abc'",
        "return ('abc'):gsub('(.)(.)', function(...) return shown(...):upper() end) == 'ABc'",
        "local function joined(a, b, c) local function add() a = a .. b .. c[1] end add() \
         b = nil add = nil return a end return joined('a' .. 1, 'b' .. 2, boxed('c')) == 'a1b2c'",
        "local made = {} for i = 1, 5 do local x, y = 'v' .. i, boxed(i) \
         made[i] = function() x = x .. y[1] return x end end \
         local s = '' for i = 1, 5 do s = s .. made[i]() end return s == 'v11v22v33v44v55'",
    ];
    for code in cases {
        let answer = run(
            &mut state,
            &format!("{shown} local function case() {code} end return tostring(case())"),
        );
        assert_eq!(answer, "true", "{code}");
    }
}
