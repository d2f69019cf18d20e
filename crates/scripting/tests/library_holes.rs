//! The classes of hole that the libraries of scripts have had elsewhere, and calls that take too
//! long or ask for too much: each is an error or an end, never a crash.

use russet_base::Random;
use russet_scripting::state::Config;
use russet_scripting::{Fault, Host, State, Tick, Value, compile, library};

/// Memory of the states here: enough for ordinary work.
const MEMORY_BYTES: usize = 32 << 20;

/// Lets a run go on for a number of questions, then ends it.
struct Patience(u32);

impl Host for Patience {
    fn tick(&mut self) -> Tick {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Tick::Continue
            }
            None => Tick::Kill,
        }
    }
}

fn new_state() -> State {
    let mut state = State::new(Config { seed: 1, memory_bytes_max: MEMORY_BYTES });
    library::open(&mut state).expect("room for the libraries");
    state.freeze();
    state
}

/// What a chunk returns, as text, or how it failed.
fn run_in(state: &mut State, source: &[u8], host: &mut Patience) -> Result<String, String> {
    let chunk = compile(source, b"@user_script")
        .unwrap_or_else(|error| panic!("{}", error.message().escape_ascii()));
    let env = state.globals();
    let script = state.load(&chunk, env).map_err(|_| "no room".to_owned())?;
    let function = state.kept(script);
    let outcome = state.call(host, function, &[]).map(|results| results.first().copied());
    let text = |state: &State, value: Option<Value>| match value {
        Some(Value::Str(text)) => state.heap().bytes(text).escape_ascii().to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Nil) | None => "nil".to_owned(),
        Some(other) => other.type_name().to_owned(),
    };
    let answer = match outcome {
        Ok(value) => Ok(text(state, value)),
        Err(Fault::Error(value)) => Err(text(state, Some(value))),
        Err(Fault::Killed) => Err("killed".to_owned()),
        Err(other) => Err(format!("{other:?}")),
    };
    state.end_run();
    state.release(script);
    answer
}

fn run(source: &str) -> Result<String, String> {
    run_in(&mut new_state(), source.as_bytes(), &mut Patience(u32::MAX))
}

fn failure(source: &str) -> String {
    run(source).expect_err(source)
}

/// CVE-2018-11218: whatever bytes a message has, unpacking them is a value or an error.
#[test]
fn messages_of_random_bytes() {
    let mut state = new_state();
    let mut random = Random::from_seed(11218);
    for _ in 0..3000 {
        let len = random.index(40);
        let bytes: String = (0..len).map(|_| format!("\\{:03}", random.index(256))).collect();
        let source = format!("return select('#',pcall(cmsgpack.unpack,'{bytes}'))");
        run_in(&mut state, source.as_bytes(), &mut Patience(1000)).unwrap();
    }
}

/// CVE-2018-11218: nesting and announced lengths cost nothing until the bytes are there.
#[test]
fn messages_that_promise_much() {
    for message in [r"\221\255\255\255\255", r"\223\255\255\255\255", r"\219\255\255\255\255"] {
        let text = failure(&format!("return cmsgpack.unpack('{message}')"));
        assert_eq!(text, "user_script:1: Missing bytes in input.");
    }
    let text = failure(r"return cmsgpack.unpack(('\145'):rep(1000000))");
    assert!(text.starts_with("user_script:1: stack overflow"), "{text}");
}

/// CVE-2018-11219: sizes in formats overflow nothing.
#[test]
fn formats_with_great_sizes() {
    for size in ["2147483647", "2147483648", "4294967295", "18446744073709551615"] {
        for source in [
            format!("return struct.pack('c{size}','x')"),
            format!("return struct.pack('i{size}',1)"),
            format!("return struct.unpack('c{size}','x')"),
            format!("return struct.unpack('I{size}','x')"),
            format!("return struct.unpack('!{size}i','xxxx')"),
        ] {
            failure(&source);
        }
    }
    failure("return struct.unpack('bc0','\\255abc')");
    failure("return struct.unpack('i','abcd',-1)");
    failure("return struct.unpack('i','abcd',2^63)");
}

/// CVE-2022-24834: what escapes would make of a long string is refused before it is made.
#[test]
fn long_strings_in_json_and_messages() {
    let long = "local s=('\\0'):rep(8*1024*1024) ";
    assert_eq!(failure(&format!("{long} return #cjson.encode(s)")), "not enough memory");
    assert_eq!(failure(&format!("{long} return #cjson.encode({{[s]=s}})")), "not enough memory");
    let four = format!("{long} return #cmsgpack.pack({{s,s,s,s,s}})");
    assert_eq!(failure(&four), "not enough memory");
    assert_eq!(run(&format!("{long} return #cmsgpack.pack(s)")).unwrap(), "8388613");
}

/// CVE-2024-31449: `bit.tohex` with the least width writes into nothing.
#[test]
fn hexadecimal_of_the_least_width() {
    for width in ["-2147483648", "2^31", "-2^63", "0x80000000", "-2^31"] {
        let answer = run(&format!("return bit.tohex(65535,{width})")).unwrap();
        assert!(answer.len() <= 8, "{answer}");
    }
}

/// CVE-2025-46817: ranges whose length overflows.
#[test]
fn ranges_that_overflow() {
    let ranges = ["0,2^31-1", "-2^31,2^31-1", "1,1e9", "-2,2^31-2", "-1e9,1e9"];
    for range in ranges.into_iter().chain(["2^31-9000,2^31-1"]) {
        let text = failure(&format!("return unpack({{}},{range})"));
        assert_eq!(text, "user_script:1: too many results to unpack", "{range}");
    }
    assert_eq!(run("return select('#',unpack({},2^31-1,2^31-1))").unwrap(), "1");
    let text = failure("return string.byte(('x'):rep(20000),1,-1)");
    assert_eq!(text, "user_script:1: stack overflow (string slice too long)");
}

/// CVE-2025-46818: what values of a basic type share can't be changed, so no script can leave
/// code there for another.
#[test]
fn shared_metatables() {
    let read_only = "user_script:1: Attempt to modify a readonly table";
    assert_eq!(failure("getmetatable('').__index=function() end"), read_only);
    assert_eq!(failure("getmetatable('').__tostring=function() end"), read_only);
    failure("rawset(getmetatable(''),'__index',{})");
    failure("setmetatable('',{})");
    failure("setmetatable(1,{})");
    failure("setmetatable(nil,{})");
    failure("setmetatable(string.len,{})");
    assert_eq!(run("return getmetatable(1)==nil and getmetatable(nil)==nil").unwrap(), "true");
}

/// CVE-2022-24735: functions of the libraries can't be replaced for the next script.
#[test]
fn libraries_are_read_only() {
    for name in ["string", "table", "math", "os", "bit", "struct", "cjson", "cmsgpack"] {
        failure(&format!("{name}.extra=1"));
        failure(&format!("rawset({name},'extra',1)"));
        failure(&format!("setmetatable({name},{{}})"));
        failure(&format!("table.insert({name},1)"));
        failure(&format!("for k in pairs({name}) do {name}[k]=nil end"));
    }
}

/// CVE-2022-0543 and CVE-2015-4335: no way to files, processes, the debugger or bytecode.
#[test]
fn no_way_out_of_the_sandbox() {
    for name in ["package", "require", "io", "debug", "dofile", "loadfile", "module", "newproxy"] {
        assert_eq!(run(&format!("return rawget(_G,'{name}')")).unwrap(), "nil", "{name}");
    }
    assert_eq!(run("return os.execute or os.exit or os.getenv or os.remove").unwrap(), "nil");
    let text = failure("return string.dump(function() end)");
    assert_eq!(text, "user_script:1: unable to dump given function");
    let loaded = run("return loadstring('\\027LuaQ\\0\\1\\4\\8\\4\\8\\0')").unwrap();
    assert_eq!(loaded, "nil");
}

/// CVE-2025-49844: chunks are compiled while what they are made of is garbage in the making.
#[test]
fn chunks_compiled_amid_collections() {
    let source = r#"
        local sum = 0
        for round = 1, 300 do
            local parts = {}
            for i = 1, 50 do parts[i] = "x" .. round .. "_" .. i .. " = (x or 0) + " .. i end
            local text = "local x = " .. table.concat(parts, " local ")
            text = text .. " return x" .. round .. "_50"
            local chunk = loadstring(text, ("name"):rep(round))
            collectgarbage()
            local garbage = {} for i = 1, 100 do garbage[i] = ("y"):rep(i) end
            collectgarbage()
            sum = sum + (chunk and chunk() or 0)
        end
        return sum"#;
    let text = source.replace("local x = ", "local x = 0 local ");
    assert_eq!(run(&text).unwrap(), "15000");
}

/// CVE-2024-46981: no code of a script runs when a value is collected, and what a script did to
/// its metatables does not disturb a collection.
#[test]
fn collections_run_no_code() {
    let source = r#"
        local ran = 0
        for i = 1, 1000 do
            local t = setmetatable({}, { __gc = function() ran = ran + 1 end, __mode = "kv" })
            t[t] = t
        end
        collectgarbage()
        collectgarbage()
        return ran"#;
    assert_eq!(run(source).unwrap(), "0");
    assert_eq!(run("return rawget(_G,'newproxy')").unwrap(), "nil");
}

/// Strings that would not fit are refused before they are made.
#[test]
fn strings_that_do_not_fit() {
    for source in [
        "return ('x'):rep(2^31-1)",
        "return ('xx'):rep(2^30)",
        "local s=('x'):rep(2^20) return s:rep(2^20)",
        "local t={} for i=1,100 do t[i]=('x'):rep(2^20) end return #table.concat(t)",
        "local s=('x'):rep(2^20) return (s:gsub('.',('y'):rep(1000)))",
        "local s=('x'):rep(2^20) return (s:gsub('.',function() return ('y'):rep(1000) end))",
        "local s=('x'):rep(2^24) return string.format('%s%s%s%s',s,s,s,s)",
        "local s=('\\0'):rep(2^23) return string.format('%q',s)",
        "local s=('x'):rep(2^23) return struct.pack('ssss',s,s,s,s)",
        "local t={} for i=1,1e6 do t[i]=i end return #cjson.encode({t,t,t,t,t,t,t,t})",
    ] {
        assert_eq!(failure(source), "not enough memory", "{source}");
    }
}

/// Long library calls end when the host says so, and `pcall` does not hide it.
#[test]
fn long_calls_can_be_killed() {
    let cubic = "local s=('a'):rep(20000) return ";
    for source in [
        &format!("{cubic} s:find('a*a*a*a*b')"),
        &format!("{cubic} s:match('.-.-.-.-b')"),
        &format!("{cubic} s:gsub('a*a*a*b','')"),
        &format!("{cubic} pcall(string.find,s,'a*a*a*a*b')"),
        "local s=('('):rep(30000) return s:gsub('%b()','')",
        "local t={} for i=1,1e4 do t[i]='x' end while true do table.concat(t,',') end",
        "local t={} for i=1,1e5 do t[i]=i%7 end for i=1,1000 do table.sort(t) end",
        "local t={} for i=1,50 do t[i]=i end table.insert(t,-2^31,1)",
        "local t={} for i=1,10 do t={t,t,t,t,t,t,t,t} end return cjson.encode(t)",
        "local t={} for i=1,10 do t={t,t,t,t,t,t,t,t} end return cmsgpack.pack(t)",
        "while true do pcall(string.rep,'x',100) end",
        "while true do ('x'):upper() end",
    ] {
        let answer = run_in(&mut new_state(), source.as_bytes(), &mut Patience(200));
        assert_eq!(answer, Err("killed".to_owned()), "{source}");
    }
}

/// What a script sets for itself is gone with it.
#[test]
fn settings_end_with_the_run() {
    let mut state = new_state();
    let mut run = |source: &str| run_in(&mut state, source.as_bytes(), &mut Patience(1000));
    let first = run("math.randomseed(1) return math.random()").unwrap();
    let unseeded = run("return math.random()").unwrap();
    let again = run("math.randomseed(1) return math.random()").unwrap();
    assert!(first == again && first != unseeded);
    run("cjson.encode_max_depth(1)").unwrap();
    assert_eq!(run("return cjson.encode({{}})").unwrap(), "[{}]");
}
