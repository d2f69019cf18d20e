//! Runs from the host's side: what can be killed, how memory is bounded, what outlives a run.

use russet_scripting::state::Config;
use russet_scripting::{
    Call, Fault, Host, NoHost, Outcome, RootId, State, Tick, Value, compile, library,
};

/// Kills after so many ticks, and keeps functions that scripts give it.
struct Warden {
    ticks_left: usize,
    kept: Vec<RootId>,
}

impl Warden {
    fn new(ticks_left: usize) -> Self {
        Warden { ticks_left, kept: Vec::new() }
    }
}

impl Host for Warden {
    fn tick(&mut self) -> Tick {
        if self.ticks_left == 0 {
            return Tick::Kill;
        }
        self.ticks_left -= 1;
        Tick::Continue
    }

    fn native(&mut self, number: u16, call: &mut Call<'_>) -> Outcome {
        match number {
            0 => {
                let function = call.function(1)?;
                self.kept.push(call.state().keep(function));
                call.give_none()
            }
            _ => {
                let held = call.heap().used_bytes();
                call.give(held as f64)
            }
        }
    }
}

fn new_state(memory_bytes_max: usize) -> State {
    let mut state = State::new(Config { seed: 7, memory_bytes_max });
    library::open(&mut state).unwrap();
    let globals = state.globals();
    state.define_host(globals, "keep", 0).unwrap();
    state.define_host(globals, "held", 1).unwrap();
    library::guard_globals(&mut state).unwrap();
    state.freeze();
    state
}

fn run(state: &mut State, host: &mut dyn Host, source: &str) -> Result<String, String> {
    let chunk = compile(source.as_bytes(), b"@user_script").map_err(|error| error.to_string())?;
    let globals = state.globals();
    let root = state.load(&chunk, globals).unwrap();
    let answer = call(state, host, root);
    state.release(root);
    answer
}

fn call(state: &mut State, host: &mut dyn Host, root: RootId) -> Result<String, String> {
    let function = state.kept(root);
    let outcome = state.call(host, function, &[]).map(|values| values.first().copied());
    let text = |state: &State, value: Value| match value {
        Value::Str(text) => String::from_utf8_lossy(state.heap().bytes(text)).into_owned(),
        Value::Number(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let answer = match outcome {
        Ok(value) => Ok(text(state, value.unwrap_or_default())),
        Err(Fault::Error(value)) => Err(text(state, value)),
        Err(fault) => Err(format!("{fault:?}")),
    };
    state.end_run();
    answer
}

#[test]
fn endless_scripts_are_killed_whatever_they_do() {
    let sources = [
        "while true do end",
        "repeat until false",
        "for i = 1, 1/0 do end",
        "for i = 1, 2, 0 do end while true do pcall(function() while true do end end) end",
        "while true do pcall(error, 'x') end",
        "local function f() return f() end f()",
        "local function f(n) if n == 0 then return 0 end return f(n - 1) + f(n - 1) end f(60)",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        "xpcall(function() error('x') end, function() while true do end end)",
        "while true do coroutine.wrap(function() while true do end end)() end",
        "local co = coroutine.wrap(function() while true do coroutine.yield() end end) \
         while true do pcall(co) end",
        "local t = setmetatable({}, {__index = function(t, k) return t end}) \
         while true do t = t.x end",
        "local t = setmetatable({}, {__lt = function() while true do end end}) return t < t",
        "while true do tostring(1) end",
        "for i in function() return 1 end do end",
        "for k, v in next, {1} do while true do end end",
        "load(function() return ' ' end)",
        "local s = ('x') while true do s = s .. 'y' end",
        "while true do loadstring('return 1')() end",
        "while true do local t = {} t[1] = t end",
        "while true do unpack({1, 2, 3}) end",
    ];
    let mut state = new_state(64 << 20);
    for source in sources {
        let answer = run(&mut state, &mut Warden::new(200), source);
        let is_bounded = answer.as_ref().is_err_and(|text| {
            ["Killed", "not enough memory"].contains(&text.as_str())
                || text.contains("attempt to call")
        });
        assert!(is_bounded, "{source}: {answer:?}");
        let after = run(&mut state, &mut NoHost, "return 'sound'");
        assert_eq!(after.as_deref(), Ok("sound"), "after {source}");
    }
}

#[test]
fn memory_is_bounded_and_the_error_can_be_caught() {
    let mut state = new_state(32 << 20);
    let sources = [
        "local t = {} while true do t[#t + 1] = {} end",
        "local t = {} while true do t[#t + 1] = 'x' .. #t end",
        "local t = {} local i = 0 while true do i = i + 1 t['k' .. i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do local x = #t t[#t + 1] = function() return x end end",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "local t = {} while true do t[#t + 1] = coroutine.wrap(function() end) end",
        "local t = {} for i = 1, 1e9 do t[i * 7919 + 0.5] = i end",
        "local s = 'local x = 1 ' while true do s = s .. s loadstring(s) end",
    ];
    for source in sources {
        let answer = run(&mut state, &mut NoHost, source);
        assert_eq!(answer, Err("not enough memory".to_owned()), "{source}");
        let caught = format!(
            "local ok, e = pcall(function() {source} end) \
             local t = {{}} for i = 1, 1000 do t[i] = {{i}} end return e .. #t"
        );
        let answer = run(&mut state, &mut NoHost, &caught);
        assert_eq!(answer.as_deref(), Ok("not enough memory1000"), "{source}");
    }
    state.collect_permanent();
    assert!(state.heap().used_bytes() < 1 << 20, "{} bytes", state.heap().used_bytes());
}

#[test]
fn garbage_of_a_long_run_is_collected() {
    let mut state = new_state(64 << 20);
    let sources = [
        "for i = 1, 3000000 do local t = {i} end return 'done'",
        "for i = 1, 1000000 do local t = {a = i, b = {i}} t.c = t end return 'done'",
        "for i = 1, 1000000 do local s = 'text of some length, number ' .. i end return 'done'",
        "local s = '' for i = 1, 20000 do s = s .. 'xxxxx' end return 'done'",
        "for i = 1, 1000000 do local f = function() return i end f() end return 'done'",
        "for i = 1, 30000 do local co = coroutine.wrap(function() coroutine.yield(i) end) co() end \
         return 'done'",
        "for i = 1, 200000 do pcall(error, {i}) end return 'done'",
        "for i = 1, 20000 do loadstring('return ' .. i)() end return 'done'",
    ];
    for source in sources {
        let answer = run(&mut state, &mut NoHost, source);
        assert_eq!(answer.as_deref(), Ok("done"), "{source}");
    }
}

#[test]
fn collections_keep_what_is_reached() {
    let mut state = new_state(64 << 20);
    let source = "
        local keep, meta = {}, setmetatable({}, {__index = function(t, k) return 'm' .. k end})
        local cell = 0
        local function count() cell = cell + 1 return cell end
        local co = coroutine.wrap(function() local own = {'own'} while true do
            coroutine.yield(own[1] .. count()) end end)
        for i = 1, 200 do keep['key' .. i] = {'value' .. i, i} end
        for i = 1, 2000000 do local t = {i, 'x' .. i % 7} if i % 100000 == 0 then
            keep[i] = t co() end end
        for i = 1, 200 do
            local entry = keep['key' .. i]
            if entry[1] ~= 'value' .. i or entry[2] ~= i then return 'lost ' .. i end
        end
        for i = 100000, 2000000, 100000 do if keep[i][1] ~= i then return 'lost' end end
        return co() .. meta.x .. count()";
    let answer = run(&mut state, &mut NoHost, source);
    assert_eq!(answer.as_deref(), Ok("own21mx22"));
}

#[test]
fn a_table_emptied_in_a_traversal_survives_collections() {
    let mut state = new_state(64 << 20);
    let source = "
        local t, n = {}, 0
        for i = 1, 3000 do t['k' .. i] = i end
        for k, v in pairs(t) do
            t[k] = nil n = n + 1
            for i = 1, 300 do local garbage = {'g' .. i} end
        end
        if next(t) ~= nil then return 'not empty' end
        for i = 1, 3000 do t['n' .. i] = i end
        local m = 0 for k, v in pairs(t) do m = m + 1 end
        return n .. ' ' .. m";
    let answer = run(&mut state, &mut NoHost, source);
    assert_eq!(answer.as_deref(), Ok("3000 3000"));
}

#[test]
fn what_a_library_keeps_outlives_its_runs() {
    let mut state = new_state(64 << 20);
    state.collect_eagerly();
    let mut warden = Warden::new(usize::MAX);
    let source = "
        local n, seen, log = 0, {}, {}
        local gen = coroutine.wrap(function() local i = 0 while true do i = i + 1
            coroutine.yield('gen' .. i) end end)
        keep(function() n = n + 1 return n end)
        keep(function()
            local key = 'key' .. n
            seen[key] = {name = key .. '!', at = function() return key end}
            log[#log + 1] = seen[key]
            local last = log[#log]
            return last.name .. last.at() .. #log .. seen[key].name
        end)
        keep(function() return gen() end)
        keep(function() local s = '' for i = 1, #log do s = s .. log[i].name .. log[i].at() end
            return s end)
        keep(function() log[#log] = nil local t = seen seen = {} return 'dropped' end)";
    run(&mut state, &mut warden, source).unwrap();
    let [count, add, turn, all, drop] = warden.kept[..] else { panic!("five functions") };
    let mut ask = |root: RootId| call(&mut state, &mut warden, root).unwrap();
    assert_eq!(ask(count), "1");
    assert_eq!(ask(count), "2");
    assert_eq!(ask(add), "key2!key21key2!");
    assert_eq!(ask(turn), "gen1");
    assert_eq!(ask(count), "3");
    assert_eq!(ask(add), "key3!key32key3!");
    assert_eq!(ask(turn), "gen2");
    assert_eq!(ask(all), "key2!key2key3!key3");
    assert_eq!(ask(drop), "dropped");
    assert_eq!(ask(all), "key2!key2");
    assert_eq!(ask(turn), "gen3");
}

#[test]
fn a_library_that_churns_does_not_grow() {
    let mut state = new_state(64 << 20);
    let mut warden = Warden::new(usize::MAX);
    let source = "
        local cache, n = {}, 0
        keep(function()
            n = n + 1
            cache[n % 10] = {text = 'entry number ' .. n, list = {n, n + 1, {n}}}
            return cache[n % 10].text
        end)";
    run(&mut state, &mut warden, source).unwrap();
    let root = warden.kept[0];
    for turn in 1..=30_000 {
        let answer = call(&mut state, &mut warden, root).unwrap();
        assert_eq!(answer, format!("entry number {turn}"));
    }
    assert!(state.heap().used_bytes() < 16 << 20, "{} bytes", state.heap().used_bytes());
    state.collect_permanent();
    assert!(state.heap().used_bytes() < 1 << 20, "{} bytes", state.heap().used_bytes());
}

/// What the tables of a library grew by was forgotten at the end of each run: one that holds
/// numbers could grow beyond every bound.
#[test]
fn what_a_library_grows_by_is_counted() {
    let sources = [
        "local t = {} keep(function() for i = 1, 5000 do t[#t + 1] = i end return #t end)",
        "local t = {} keep(function() for i = 1, 5000 do t[#t + 1] = 'x' .. i end return #t end)",
        "local t, n = {}, 0 keep(function() for i = 1, 5000 do n = n + 1 t[n + 0.5] = true end \
         return n end)",
    ];
    for source in sources {
        let mut state = new_state(8 << 20);
        let mut warden = Warden::new(usize::MAX);
        run(&mut state, &mut warden, source).unwrap();
        let root = warden.kept[0];
        let refused = (0..1000).find_map(|_| call(&mut state, &mut warden, root).err());
        assert_eq!(refused.as_deref(), Some("not enough memory"), "{source}");
    }
}

/// After a large run its room stayed with the state: 300 MB after one sort.
#[test]
fn the_room_of_a_large_run_is_given_back() {
    let mut state = new_state(512 << 20);
    let gauge = state.gauge();
    let held = || gauge.load(std::sync::atomic::Ordering::Relaxed);
    let before = held();
    let sources = [
        "local t = {} for i = 1, 300000 do t[i] = {'x' .. i} end return held()",
        "local t = {} for i = 1, 300000 do t[i] = function() return i end end return held()",
        "local t = {} for i = 1, 20000 do t[i] = coroutine.wrap(function() end) end return held()",
        "local function f(n) return n == 0 and 0 or 1 + f(n - 1) end f(15000) \
         local t = {} for i = 1, 300000 do t[i] = 'x' .. i end return held()",
    ];
    for source in sources {
        let answer = run(&mut state, &mut Warden::new(usize::MAX), source).unwrap();
        assert!(answer.parse::<f64>().unwrap() > 15e6, "{source}: {answer}");
        assert!(held() < before + (12 << 20), "{source}: {} bytes stay", held());
    }
}

#[test]
fn globals_of_a_run_end_with_it() {
    let mut state = new_state(64 << 20);
    let chunk = compile(b"KEYS[1] = KEYS[1] .. '!' return KEYS[1]", b"@user_script").unwrap();
    let globals = state.globals();
    let root = state.load(&chunk, globals).unwrap();
    let name = state.heap_mut().intern(b"KEYS").unwrap();
    for _ in 0..3 {
        let table = state.heap_mut().table(1, 0).unwrap();
        let key = state.heap_mut().string(b"key").unwrap();
        state.heap_mut().set_index(table, 1, Value::Str(key)).unwrap();
        state.set_run_global(name, Value::Table(table)).unwrap();
        assert_eq!(call(&mut state, &mut NoHost, root).as_deref(), Ok("key!"));
    }
    let missing = call(&mut state, &mut NoHost, root);
    let wanted = "user_script:1: Script attempted to access nonexistent global variable 'KEYS'";
    assert_eq!(missing, Err(wanted.to_owned()));
    assert_eq!(state.origin().map(|origin| origin.line), Some(1));
    assert_eq!(
        state.origin().map(|origin| origin.chunk_name.to_vec()),
        Some(b"@user_script".to_vec())
    );
}

#[test]
fn deep_recursion_is_an_error_in_a_thread_with_an_ordinary_stack() {
    let sources = [
        "local function f() return pcall(f) end return tostring(f())",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end \
         return t.x",
        "local function f() local co = coroutine.wrap(f) return co() end return f()",
        "local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) \
         return tostring(t)",
        "local function f(n) return 1 + f(n) end return f(1)",
        "local f f = function() return xpcall(f, f) end return tostring(f())",
        "local function f() return load(f) end return tostring(f())",
    ];
    for source in sources {
        let mut state = new_state(64 << 20);
        // Whatever it answers, it must not take the process with it.
        let _ = run(&mut state, &mut Warden::new(1_000), source);
        assert_eq!(run(&mut state, &mut NoHost, "return 1").as_deref(), Ok("1"), "{source}");
    }
    let nested = format!("return {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(compile(nested.as_bytes(), b"=x").is_err());
    let blocks = format!("{}{}", "while 1 do ".repeat(100_000), "end ".repeat(100_000));
    assert!(compile(blocks.as_bytes(), b"=x").is_err());
}

/// Loops over `pairs` and `ipairs`, `string.byte`, `bit` and others have forms that need no frame.
/// They give what the others give, which `pcall` and a wrapped iterator reach, for any argument.
#[test]
fn natives_give_the_same_with_and_without_a_frame() {
    let source = "
        local odd = {0, 1, 2, 3, 5, -1, 0.5, 2^31, 2^31 - 1, 2^32, -2^31, 2^53, 1/0, -1/0,
            '2', 'x', '', 'abc', true, {}}
        local function same(f, ...)
            local count, a, b, c = select('#', ...), ...
            local is_direct, direct = pcall(function()
                local r
                if count == 0 then r = f() elseif count == 1 then r = f(a)
                elseif count == 2 then r = f(a, b) else r = f(a, b, c) end
                return r
            end)
            local is_apart, apart = pcall(f, ...)
            local texts = type(direct) == 'string' and type(apart) == 'string'
            assert(is_direct == is_apart and (texts or direct == apart))
        end
        local functions = {string.byte, bit.band, bit.bor, bit.bxor, bit.bnot, bit.lshift,
            bit.rshift, bit.arshift, bit.tobit, string.len, string.sub, string.char, select, type,
            tostring, tonumber}
        for _, f in ipairs(functions) do
            same(f)
            for _, a in ipairs(odd) do
                same(f, a)
                for _, b in ipairs(odd) do same(f, a, b) same(f, a, b, 1) end
            end
        end
        local direct, apart = {}, {}
        for _, value in ipairs(odd) do
            table.insert(direct, value) pcall(table.insert, apart, value)
        end
        assert(#direct == #odd and #apart == #odd)
        for i = 1, #odd + 2 do
            local is_apart, removed = pcall(table.remove, apart)
            local last = table.remove(direct)
            assert(is_apart and last == removed and #direct == #apart and last == odd[#odd + 1 - i])
        end
        for _, value in ipairs({5, 'x', true}) do
            assert(not pcall(function() table.insert(value, 1) end))
            assert(not pcall(function() table.remove(value) end))
        end
        assert(not pcall(function() table.insert({}) end))
        local function steps(f, s, k)
            local direct, apart = {}, {}
            pcall(function() for k, v, w in f, s, k do
                assert(w == nil) direct[#direct + 1] = tostring(k) .. tostring(v)
                if #direct > 9 then break end
            end end)
            local wrapped = function(...) return f(...) end
            pcall(function() for k, v in wrapped, s, k do
                apart[#apart + 1] = tostring(k) .. tostring(v)
                if #apart > 9 then break end
            end end)
            assert(table.concat(direct, ' ') == table.concat(apart, ' '))
            return #direct
        end
        local lists = {{}, {1, 2, 3}, {1, nil, 3}, {x = 1, y = 2}, {1, 2, x = 3, [4] = 4, [3] = 3}}
        local total = 0
        for _, list in ipairs(lists) do
            local f, s, k = ipairs(list)
            total = total + steps(f, s, k)
            for _, start in ipairs(odd) do steps(f, s, start) steps(next, s, start) end
            f, s, k = pairs(list)
            total = total + steps(f, s, k)
        end
        steps(next, 5) steps(next, nil)
        return total";
    let mut state = new_state(64 << 20);
    assert_eq!(run(&mut state, &mut NoHost, source).as_deref(), Ok("20"));
}

/// What an object lacks was looked for in its `__index` tables outside the loop of plain
/// instructions, at several times the price. What is found is the same.
#[test]
fn fields_are_inherited_through_any_chain() {
    let source = "
        local base = {a = 1} base.__index = base
        local middle = setmetatable({b = 2}, base) middle.__index = middle
        function middle:own(x) return self.c + x end
        local object = setmetatable({c = 3}, middle)
        assert(object.a == 1 and object.b == 2 and object.c == 3 and object.d == nil)
        assert(object:own(4) == 7)
        base.d = 'late' assert(object.d == 'late')
        object.a = 5 assert(object.a == 5 and middle.a == 1)
        local asked = setmetatable({}, {__index = function(t, k) return k .. '!' end})
        assert(asked.x == 'x!' and setmetatable({}, {__index = asked}).y == 'y!')
        assert(setmetatable({}, {}).x == nil)
        assert(setmetatable({}, {__index = 'abc'}).len == string.len)
        local deep = {v = 7}
        for i = 1, 20 do deep = setmetatable({}, {__index = deep}) end
        assert(deep.v == 7 and deep.w == nil)
        local loop = {} setmetatable(loop, {__index = loop})
        assert(not pcall(function() return loop.x end))
        assert(('abc'):len() == 3 and ('abc').sub == string.sub and ('abc').none == nil)
        assert(('abc'):sub(2, 2) == 'b' and #'abc' == 3)
        for _, value in ipairs({5, true, type}) do
            assert(not pcall(function() return value.x end))
            assert(not pcall(function() return value:x() end))
        end
        local function count(...) return select('#', ...), (select('#', ...)) end
        local function tail(first, ...) return ... end
        local many = {} for i = 1, 300 do many[i] = i end
        assert(count(unpack(many)) == 300 and select(2, count(nil, nil)) == 2)
        assert(select('#', tail(unpack(many))) == 299 and (tail(1, 2, 3)) == 2 and tail(1) == nil)
        local a, b, c = tail(0, 1) assert(a == 1 and b == nil and c == nil)
        local function deeper(n, ...) if n == 0 then return ... end return 1, deeper(n - 1, ...) end
        assert(select('#', deeper(100, 'x', 'y')) == 102)
        local function sum(...)
            local s = 0
            for i = 1, select('#', ...) do s = s + (select(i, ...)) end
            return s
        end
        assert(sum() == 0 and sum(1, 2, 3) == 6)
        assert('a' < 'b' and not ('b' < 'a') and 'a' <= 'a')
        assert('' < 'a' and 'Z' < 'a' and 'ab' > 'a' and 'b' >= 'ab')
        assert(not pcall(function() return 'a' < 1 end))
        assert(not pcall(function() return {} <= {} end))
        local numbered = coroutine.wrap(function(...)
            local got = select('#', ...)
            while true do got = select('#', coroutine.yield(got, got + 1)) end
        end)
        assert(numbered(1, 2, 3) == 3 and select(2, numbered()) == 1 and numbered(nil) == 1)
        local failing = coroutine.create(function() error('x') end)
        assert(select('#', coroutine.resume(failing)) == 2 and not coroutine.resume(failing))
        return 'same'";
    let mut state = new_state(64 << 20);
    assert_eq!(run(&mut state, &mut NoHost, source).as_deref(), Ok("same"));
}

/// Who waits for a coroutine stands in its place meanwhile: with the run killed in there, all of
/// them are dead, those that outlive the run too, and the next run finds its own stack.
#[test]
fn a_run_that_is_killed_in_a_coroutine_leaves_dead_ones() {
    let mut state = new_state(64 << 20);
    state.collect_eagerly();
    let mut warden = Warden::new(usize::MAX);
    let source = "
        local inner = coroutine.create(function(endless) local n = 0
            while true do n = n + 1 repeat until not endless endless = coroutine.yield(n) end end)
        local outer = coroutine.create(function() local mine = {'mine'}
            while true do local ok, n = coroutine.resume(inner, coroutine.yield(mine[1])) end end)
        keep(function() local mine = {'of the run'}
            local run = coroutine.wrap(function() return coroutine.resume(outer) end)
            local ok, text = run()
            return mine[1] .. tostring(text) end)
        keep(function() return coroutine.wrap(function() coroutine.resume(outer, true) end)() end)
        keep(function() return coroutine.status(inner) .. coroutine.status(outer) end)";
    run(&mut state, &mut warden, source).unwrap();
    let [turn, endless, status] = warden.kept[..] else { panic!("three functions") };
    for _ in 0..3 {
        assert_eq!(call(&mut state, &mut warden, turn).as_deref(), Ok("of the runmine"));
        assert_eq!(call(&mut state, &mut warden, status).as_deref(), Ok("suspendedsuspended"));
    }
    let answer = call(&mut state, &mut Warden::new(3), endless);
    assert_eq!(answer, Err("Killed".to_owned()));
    assert_eq!(call(&mut state, &mut warden, status).as_deref(), Ok("deaddead"));
    let answer = call(&mut state, &mut warden, turn);
    assert_eq!(answer.as_deref(), Ok("of the runcannot resume dead coroutine"));
}

/// The stacks of coroutines that a run was killed in stayed counted, until a library that has some
/// of its own had no memory left.
#[test]
fn coroutines_that_a_run_was_killed_in_give_their_memory_back() {
    let mut state = new_state(4 << 20);
    let mut warden = Warden::new(usize::MAX);
    let source = "
        local inner, outer
        keep(function()
            local function deep(n)
                if n == 0 then coroutine.yield() while true do end end
                deep(n - 1) return n
            end
            inner = coroutine.create(deep)
            outer = coroutine.create(function() coroutine.yield() coroutine.resume(inner) end)
            return tostring(coroutine.resume(inner, 2000)) .. tostring(coroutine.resume(outer))
        end)
        keep(function() coroutine.resume(outer) end)
        keep(function() coroutine.wrap(function() coroutine.resume(outer) end)() end)";
    run(&mut state, &mut warden, source).unwrap();
    let [make, direct, of_the_run] = warden.kept[..] else { panic!("three functions") };
    let mut used_bytes = Vec::new();
    for turn in 0..200 {
        assert_eq!(call(&mut state, &mut warden, make).as_deref(), Ok("truetrue"), "{turn}");
        let endless = if turn % 2 == 0 { direct } else { of_the_run };
        let answer = call(&mut state, &mut Warden::new(1), endless);
        assert_eq!(answer, Err("Killed".to_owned()));
        state.collect_permanent();
        used_bytes.push(state.heap().used_bytes());
    }
    assert_eq!(used_bytes[0], used_bytes[199]);
}
