//! Source texts that are deep or long: whatever their shape, compilation needs little stack, takes
//! time in proportion to the text, and can be ended in the middle.

use russet_scripting::state::Config;
use russet_scripting::{
    NoHost, Purpose, State, SyntaxError, Tick, Value, compile, compile_for, library,
};
use std::cell::Cell;
use std::thread;

/// A thread of the server has 2 MiB; half of that is more than compilation may need.
const STACK_BYTES: usize = 1 << 20;

/// `open` so many times, then the middle, then `close` as often.
fn nested(open: &str, middle: &str, close: &str, levels: usize) -> String {
    [&open.repeat(levels), middle, &close.repeat(levels)].concat()
}

/// Every way to nest or chain that the language has, so many times.
fn shapes(levels: usize) -> Vec<(&'static str, String)> {
    let n = levels;
    vec![
        ("functions", nested("local function f() ", "", " end ", n)),
        ("function values", format!("return {}", nested("function() return ", "1", " end", n))),
        ("callbacks", nested("redis.register_function('f', function(keys) ", "", " end) ", n)),
        ("blocks", nested("do ", "", " end ", n)),
        ("whiles", nested("while x do ", "", " end ", n)),
        ("repeats", nested("repeat ", "", " until x ", n)),
        ("loops", nested("for i = 1, 2 do ", "", " end ", n)),
        ("loops over keys", nested("for _, k in ipairs(KEYS) do ", "", " end ", n)),
        ("ifs", nested("if x then ", "", " end ", n)),
        ("elses", nested("if x then else ", "", " end ", n)),
        ("elseifs", format!("if x then {} end", "elseif y then ".repeat(n))),
        ("parentheses", format!("return {}", nested("(", "x", ")", n))),
        ("tables", format!("return {}", nested("{", "", "}", n))),
        ("table fields", format!("return {}", nested("{x=", "1", "}", n))),
        ("table keys", format!("return {}", nested("{[", "1", "]=1}", n))),
        ("minus signs", format!("return {}x", "- ".repeat(n))),
        ("nots", format!("return {}x", "not ".repeat(n))),
        ("lengths", format!("return {}x", "#".repeat(n))),
        ("sums", format!("return x{}", " + x".repeat(n))),
        ("sums of constants", format!("return 1{}", " + 1".repeat(n))),
        ("sums to the right", format!("return {}", nested("x + (", "x", ")", n))),
        ("powers", format!("return x{}", " ^ x".repeat(n))),
        ("concatenations", format!("return x{}", " .. x".repeat(n))),
        ("comparisons", format!("return x{}", " == x".repeat(n))),
        ("ands", format!("return x{}", " and x".repeat(n))),
        ("ors", format!("if x{} then end", " or x".repeat(n))),
        ("ands to the right", format!("if {} then end", nested("x and (", "x", ")", n))),
        ("choices of keys", format!("redis.call('GET', KEYS[1]{})", " or KEYS[2]".repeat(n))),
        ("fields", format!("return x{}", ".x".repeat(n))),
        ("indexes", format!("return x{}", "[1]".repeat(n))),
        ("indexes inside", format!("return {}", nested("x[", "x", "]", n))),
        ("calls", format!("return x{}", "()".repeat(n))),
        ("calls inside", format!("return {}", nested("f(", "x", ")", n))),
        ("methods", format!("return x{}", ":x()".repeat(n))),
        ("calls with strings", format!("x{}", "''".repeat(n))),
        ("stores in fields", format!("x{} = 1", ".x".repeat(n))),
        ("names of functions", format!("function x{}() end", ".x".repeat(n))),
        ("copies", format!("local x = KEYS[1] {} return x", "do local y = x x = y end ".repeat(n))),
        ("long comments", format!("--[[{}", nested("]", " ", "]]", n))),
        ("long brackets", format!("return [{0}[]{0}]", "=".repeat(n))),
        ("escapes", format!("return '{}'", "\\065".repeat(n))),
    ]
}

/// One function in the other, each with its variables, each variable a copy of the one before.
fn chain_of_copies(functions: usize, copies: usize) -> String {
    let body = format!("{} local function f() ", "local x=x ".repeat(copies));
    let start = "local x=KEYS[1] ";
    let end = format!("redis.call('GET',x) {}", " end ".repeat(functions));
    [start, &body.repeat(functions), &end].concat()
}

fn compile_as(purpose: Purpose, source: &str) -> Result<(), SyntaxError> {
    compile_for(purpose, source.as_bytes(), b"@deep", &|| Tick::Continue).map(|chunk| {
        let keys = chunk.keys_use();
        keys.script_is_narrow(&|_| true);
        keys.narrow_functions(&|_| true);
    })
}

/// Compiles on a small stack, both as a script and as a library; an overflow ends the process.
fn compile_on_small_stack(name: &str, source: String) {
    let compile = move || {
        [Purpose::Script, Purpose::Library, Purpose::Part { depth: 0 }]
            .map(|purpose| compile_as(purpose, &source).is_ok())
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(compile).unwrap();
    assert!(thread.join().is_ok(), "{name}");
}

/// A script of 150 functions, one in the other, with 190 times `local x=x` in each, ended the
/// server: the analysis went down the chain of copies one call at a time.
#[test]
fn no_chain_of_copies_is_too_long() {
    compile_on_small_stack("150 functions of 190 copies", chain_of_copies(150, 190));
    let flat = "do local y = x x = y end ".repeat(100_000);
    compile_on_small_stack("one function", format!("local x = KEYS[1] {flat}"));
    // By way of parameters.
    let calls = "do local function f(a) local function g(b) x = b end g(a) end f(x) end ";
    compile_on_small_stack("parameters", format!("local x = KEYS[1] {}", calls.repeat(20_000)));
}

/// Chains to the left were refused beyond 1,000 links, for compilation went down them one call at a
/// time. Lua 5.1 takes any length, and refuses 200 levels of anything else.
#[test]
fn chains_are_as_long_as_the_source_makes_them() {
    let chains = [
        "sums",
        "sums of constants",
        "comparisons",
        "ands",
        "ors",
        "fields",
        "indexes",
        "calls",
        "methods",
        "calls with strings",
        "stores in fields",
        "names of functions",
        "elseifs",
        "choices of keys",
    ];
    for (name, source) in shapes(20_000) {
        if chains.contains(&name) {
            compile_as(Purpose::Script, &source).unwrap_or_else(|error| panic!("{name}: {error}"));
            compile_on_small_stack(name, source);
        }
    }
    // All kinds of links in one chain, as a value, as a condition and as a target.
    let link = ".a[1](2):b''[x] + 1 - x * x.y.z and y == 1 or x.a.b() < 2 or";
    let mixed = link.replace('[', "\n[").repeat(5_000);
    for source in [format!("return x{mixed} x"), format!("if not (x{mixed} x) then end")] {
        let source = source.replace("or.", "or x.");
        compile_as(Purpose::Library, &source).unwrap();
        compile_on_small_stack("mixed", source);
    }
}

/// What a chain computes does not depend on how its code is made.
#[test]
fn long_chains_run() {
    let mut state = State::new(Config::default());
    library::open(&mut state).unwrap();
    for (source, wanted) in [
        (format!("local x = 1 return x{}", " + x".repeat(9_999)), 10_000.0),
        (format!("local x = 1 local y = x{} return y", " - x".repeat(9_999)), -9_998.0),
        (format!("local x = 1 x = x{} return x", " + x * 2".repeat(1_000)), 2_001.0),
        (format!("local t = {{}} t.t = t t.n = 7 return t{}.n", ".t".repeat(5_000)), 7.0),
        (format!("local f f = function(x) return x or f end return f{}(3)", "()".repeat(999)), 3.0),
        (format!("local x = 5 return x{} and 6", " and x".repeat(5_000)), 6.0),
        (format!("local x = false return x{} or 8", " or x".repeat(5_000)), 8.0),
        (format!("local x, y = 1, 2 if x{} then return 9 end", " and y or x".repeat(999)), 9.0),
        (format!("local x = 1 return (x == x{}) and 1 or 4", " == true".repeat(999)), 1.0),
        (format!("local x = 1 if x{} then return 1 end return 2", " == x".repeat(998)), 2.0),
        (format!("local s = 'ab' return #s{}", ":rep(1)".repeat(999)), 2.0),
    ] {
        let chunk = compile(source.as_bytes(), b"@chain").unwrap();
        let globals = state.globals();
        let root = state.load(&chunk, globals).unwrap();
        let function = state.kept(root);
        let results = state.call(&mut NoHost, function, &[]).unwrap();
        let value = results.first().copied().unwrap_or_default();
        assert!(matches!(value, Value::Number(n) if n == wanted), "{value:?} {:.80}", source);
        state.end_run();
        state.release(root);
    }
}

#[test]
fn no_shape_is_too_deep() {
    for levels in [50, 150, 190, 196, 197, 198, 199, 200, 201, 500, 1_000, 100_000] {
        for (name, source) in shapes(levels) {
            compile_on_small_stack(name, source);
        }
    }
}

/// Texts of many parts, none of them deep: shapes that once took time that grew with the square of
/// their length, or could.
fn long_shapes(parts: usize) -> Vec<(&'static str, String)> {
    let n = parts;
    let numbered = |text: &str| -> String {
        (0..n).map(|number| text.replace('#', &number.to_string())).collect()
    };
    let wide_params = format!("local function f({}) end ", vec!["p"; 190].join(","));
    vec![
        ("functions", "t.f = function() end ".repeat(n)),
        ("named functions", "do local function f() end f() end ".repeat(n)),
        ("callbacks", numbered("redis.register_function('f#', function(keys) end) ")),
        (
            "callbacks with a shared function",
            format!(
                "local function get(k) return redis.call('GET', k) end {}",
                numbered("redis.register_function('f#', function(keys) get(keys[1]) end) ")
            ),
        ),
        ("globals", numbered("g# = 1 ")),
        ("constants", format!("return {{{}}}", numbered("'#',"))),
        ("many parameters", format!("{wide_params} {}", "f(g()) ".repeat(n))),
        ("parameters from keys", format!("{wide_params} {}", "f(unpack(KEYS)) ".repeat(n))),
        ("upvalues", deep_uses(n)),
    ]
}

/// Uses of an outermost variable in the innermost of many functions.
fn deep_uses(uses: usize) -> String {
    let open = format!("{} local function f() ", "local y ".repeat(150)).repeat(60);
    ["local x ", &open, &"x = x ".repeat(uses), &" end ".repeat(60)].concat()
}

/// How often a compilation asked whether to go on.
fn ticks(purpose: Purpose, source: &str) -> u32 {
    let ticks = Cell::new(0);
    let count = || {
        ticks.set(ticks.get() + 1);
        Tick::Continue
    };
    compile_for(purpose, source.as_bytes(), b"@long", &count).unwrap();
    ticks.get()
}

#[test]
fn twice_the_text_is_twice_the_work() {
    for ((name, half), (_, whole)) in long_shapes(20_000).into_iter().zip(long_shapes(40_000)) {
        let (half, whole) = (ticks(Purpose::Library, &half), ticks(Purpose::Library, &whole));
        assert!(half > 0 && whole <= half * 2 + 2, "{name}: {half} and {whole}");
    }
}

/// A long text was compiled to its end, whatever happened: nothing could stop it.
#[test]
fn a_compilation_can_be_ended_wherever_it_is() {
    let sources = [
        ("statements", "x = 1 ".repeat(100_000)),
        ("one comment", format!("--[[{}]]", "x".repeat(20 << 20))),
        ("one line of comment", format!("--{}", "x".repeat(20 << 20))),
        ("one string", format!("return '{}'", "x".repeat(20 << 20))),
        ("one long string", format!("return [[{}]]", "x".repeat(20 << 20))),
        ("nothing", " ".repeat(20 << 20)),
    ];
    for (name, source) in sources {
        let total = ticks(Purpose::Library, &source);
        assert!(total > 0, "{name}");
        // At the first, in the middle, and at the last question of all.
        for wanted in [1, total / 2, total] {
            let asked = Cell::new(0);
            let tick = || {
                asked.set(asked.get() + 1);
                if asked.get() >= wanted.max(1) { Tick::Kill } else { Tick::Continue }
            };
            let ended = compile_for(Purpose::Library, source.as_bytes(), b"@long", &tick);
            assert!(ended.is_err_and(|error| error.is_killed()), "{name}, {wanted} of {total}");
            assert_eq!(asked.get(), wanted.max(1), "{name}: it asked again");
        }
    }
}
