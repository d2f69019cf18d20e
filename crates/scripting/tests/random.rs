//! Random programs: whatever they do, they end, the state stays sound, and nothing is left over.

use russet_base::Random;
use russet_scripting::state::Config;
use russet_scripting::{Chunk, Fault, Host, NoHost, State, Tick, Value, compile, library};

struct Patience(usize);

impl Host for Patience {
    fn tick(&mut self) -> Tick {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { Tick::Kill } else { Tick::Continue }
    }
}

const NAMES: &[&str] = &["a", "b", "c", "t", "f", "g"];

const LEAVES: &[&str] = &[
    "nil",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "0.5",
    "1e300",
    "'x'",
    "'10'",
    "''",
    "{}",
    "...",
    "a",
    "b",
    "c",
    "t",
    "f",
    "g",
    "t.x",
    "t[1]",
    "t[a]",
    "#t",
    "t.m",
    "{1,2,3}",
    "{x=1}",
    "_G",
    "type",
    "pcall",
    "tostring",
    "0/0",
    "1/0",
    "'abc'",
    "function() end",
    "arg",
];

const BINARY: &[&str] =
    &["+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or"];

const CALLS: &[&str] = &[
    "pcall",
    "select",
    "type",
    "tostring",
    "tonumber",
    "next",
    "rawget",
    "rawset",
    "rawequal",
    "unpack",
    "setmetatable",
    "getmetatable",
    "ipairs",
    "pairs",
    "error",
    "assert",
    "xpcall",
    "coroutine.wrap",
    "coroutine.create",
    "coroutine.resume",
    "coroutine.yield",
    "loadstring",
    "coroutine.status",
    "coroutine.running",
    "collectgarbage",
    "f",
    "g",
    "t.m",
    "(a or f)",
];

/// What the same program answers however its garbage is collected: nothing here shows addresses,
/// the order of a table's entries, or how much memory is held.
const CALLBACKS: &[&str] = &[
    "pcall",
    "select",
    "type",
    "rawget",
    "rawset",
    "unpack",
    "ipairs",
    "error",
    "xpcall",
    "coroutine.wrap",
    "coroutine.yield",
    "loadstring",
    "table.sort",
    "table.foreachi",
    "table.concat",
    "table.insert",
    "string.gsub",
    "string.rep",
    "setmetatable",
    "meta",
    "meta",
    "list",
    "f",
    "g",
    "t.m",
    "(a or f)",
];

struct Maker {
    random: Random,
    left: usize,
    calls: &'static [&'static str],
}

impl Maker {
    fn pick<'w>(&mut self, tokens: &[&'w str]) -> &'w str {
        tokens[self.random.index(tokens.len())]
    }

    fn expr(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.chance(0.3) {
            return self.pick(LEAVES).to_owned();
        }
        let depth = depth - 1;
        match self.random.below(9) {
            0 | 1 => {
                let operator = self.pick(BINARY);
                format!("({} {operator} {})", self.expr(depth), self.expr(depth))
            }
            2 => format!("{} {}", self.pick(&["-", "not", "#"]), self.expr(depth)),
            3 => {
                let parameters = self.pick(&["", "a", "a, b", "..."]);
                format!("function({parameters}) {} end", self.block(depth))
            }
            4 => {
                format!("{{{}, x = {}, {}}}", self.expr(depth), self.expr(depth), self.expr(depth))
            }
            5 => format!("({})[{}]", self.expr(depth), self.expr(depth)),
            6 => format!("({})", self.expr(depth)),
            _ => self.call(depth),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let function = self.pick(self.calls);
        let args: Vec<String> =
            (0..self.random.below(4)).map(|_| self.expr(depth.min(2))).collect();
        format!("{function}({})", args.join(", "))
    }

    fn block(&mut self, depth: usize) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.random.below(4) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            text.push_str(&self.statement(depth));
            text.push(' ');
        }
        if self.random.chance(0.3) {
            text.push_str(&format!("return {}", self.expr(depth.min(1))));
        }
        text
    }

    fn statement(&mut self, depth: usize) -> String {
        let name = self.pick(NAMES);
        if depth == 0 {
            return format!("{name} = {};", self.pick(LEAVES));
        }
        let inner = depth - 1;
        match self.random.below(13) {
            0 | 1 => format!("local {name} = {};", self.expr(inner)),
            2 => format!("local {name}, t = {};", self.call(inner)),
            3 => format!("{name} = {};", self.expr(inner)),
            4 => format!("t, {name}, t.x = {}, {};", self.expr(inner), self.expr(inner)),
            5 => format!("t[{}] = {};", self.expr(inner), self.expr(inner)),
            6 => format!(
                "if {} then {} else {} end",
                self.expr(inner),
                self.block(inner),
                self.block(inner)
            ),
            7 => format!("for {name} = {}, 5 do {} end", self.pick(LEAVES), self.block(inner)),
            8 => format!("for {name}, a in {} do {} break end", self.call(inner), self.block(0)),
            9 => format!("local function {name}(a, ...) {} end", self.block(inner)),
            10 => format!("while {} do {} break end", self.expr(inner), self.block(0)),
            11 => format!("repeat local c = {} until c == {}", self.expr(inner), self.expr(inner)),
            _ => format!("{};", self.call(inner)),
        }
    }

    fn program(&mut self) -> String {
        let body = self.block(5);
        format!("local a, b, c, t, f, g = 1, 'b', {{}}, {{1, 2, m = type}}, tostring, pcall {body}")
    }
}

fn new_state() -> State {
    let mut state = State::new(Config { seed: 1, memory_bytes_max: 8 << 20 });
    library::open(&mut state).unwrap();
    library::guard_globals(&mut state).unwrap();
    state.freeze();
    state
}

#[test]
fn random_programs_leave_a_sound_state() {
    check_programs(new_state(), 6_000);
}

#[test]
fn random_programs_survive_collections_at_every_chance() {
    let mut state = new_state();
    state.collect_eagerly();
    check_programs(state, 300);
}

/// Tables whose metamethods are random functions, and a list of them to sort.
const PRELUDE: &str = "
    local function meta(x, h)
        local function call(...)
            local garbage = {'g' .. 1, {...}}
            if type(h) == 'function' then return h(...) end
            return h == nil and x or h
        end
        local m = {}
        for _, name in ipairs({'__index', '__newindex', '__eq', '__lt', '__le', '__concat',
            '__call', '__unm', '__add', '__sub', '__mul', '__div', '__mod', '__pow'}) do
            m[name] = call
        end
        return setmetatable({x}, m)
    end
    local function list(x, h) return {meta(x, h), meta(h, x), meta(x, h), meta(1, h)} end ";

/// Values that natives and metamethods hold while they call back were safe from collections only
/// because there were none meanwhile.
#[test]
fn collections_change_no_answer_of_random_programs() {
    let mut lazy = new_state();
    let mut eager = new_state();
    eager.collect_eagerly();
    let mut compared = 0;
    for seed in 0..1_500 {
        let mut maker = Maker { random: Random::from_seed(seed), left: 30, calls: CALLBACKS };
        let source = format!("{PRELUDE}{}", maker.program().replace("tostring", "type"));
        let Ok(chunk) = compile(source.as_bytes(), b"@user_script") else { continue };
        let (wanted, given) = (answer(&mut lazy, &chunk), answer(&mut eager, &chunk));
        if wanted.contains("not enough memory") || given.contains("not enough memory") {
            continue;
        }
        compared += 1;
        assert_eq!(given, wanted, "{seed}: {source}");
    }
    assert!(compared > 700, "only {compared} programs were compared");
}

fn answer(state: &mut State, chunk: &Chunk) -> String {
    let globals = state.globals();
    let root = state.load(chunk, globals).unwrap();
    let function = state.kept(root);
    let outcome = state.call(&mut Patience(50), function, &[Value::Number(1.0)]);
    let outcome = outcome.map(<[Value]>::to_vec);
    let text = match outcome {
        Ok(values) => values.iter().map(|value| show(state, *value, 0)).collect(),
        Err(Fault::Error(value)) => format!("error {}", show(state, value, 0)),
        Err(_) => "killed".to_owned(),
    };
    state.end_run();
    state.release(root);
    text
}

fn show(state: &State, value: Value, depth: usize) -> String {
    match value {
        Value::Str(text) => format!("{:?},", String::from_utf8_lossy(state.heap().bytes(text))),
        Value::Number(number) => format!("{number},"),
        Value::Bool(value) => format!("{value},"),
        Value::Table(table) if depth < 4 => {
            let shown = |index| show(state, state.heap().element(table, index), depth + 1);
            let elements: String = (1..=4).map(shown).collect();
            let field = show(state, state.heap().field(table, b"x"), depth + 1);
            format!("{{{elements}x={field}}},")
        }
        other => format!("{},", other.type_name()),
    }
}

fn check_programs(mut state: State, count: u64) {
    let held_bytes = state.heap().used_bytes();
    let mut compiled = 0;
    for seed in 0..count {
        let mut maker = Maker { random: Random::from_seed(seed), left: 40, calls: CALLS };
        let source = maker.program();
        let Ok(chunk) = compile(source.as_bytes(), b"@user_script") else { continue };
        compiled += 1;
        let globals = state.globals();
        let root = state.load(&chunk, globals).unwrap();
        let function = state.kept(root);
        let _ = state.call(&mut Patience(50), function, &[Value::Number(1.0)]);
        state.end_run();
        state.release(root);
    }
    assert!(compiled > count / 2, "only {compiled} programs compile");
    let chunk = compile(b"return 1", b"@user_script").unwrap();
    let globals = state.globals();
    let root = state.load(&chunk, globals).unwrap();
    let function = state.kept(root);
    assert!(matches!(state.call(&mut NoHost, function, &[]), Ok([Value::Number(1.0)])));
    state.end_run();
    state.release(root);
    state.collect_permanent();
    assert_eq!(state.heap().used_bytes(), held_bytes);
}

#[test]
fn random_text_is_refused_or_compiled() {
    let tokens = [
        "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in",
        "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while", "..",
        "...", "==", ">=", "<=", "~=", "+", "-", "*", "/", "%", "^", "#", "<", ">", "=", "(", ")",
        "{", "}", "[", "]", ";", ":", ",", ".", "a", "b", "1", "'s'", "[[l]]", "--[[c]]", "\n",
        "\0", "\u{ff}", "\"", "'", "[=[", "0x", "1e", "\\",
    ];
    let mut random = Random::from_seed(3);
    for _ in 0..30_000 {
        let count = random.below(25);
        let text: Vec<&str> = (0..count).map(|_| tokens[random.index(tokens.len())]).collect();
        let _ = compile(text.join(" ").as_bytes(), b"=x");
    }
}
