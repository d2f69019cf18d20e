//! Random scripts and libraries: whatever reaches a key that it was not given was called wide. A
//! script that is called narrow and is not is refused half-way, with half of its work done.
//!
//! Next to a Valkey, if this machine has one, every script answers as it does there.

use std::fmt::Write as _;

use russet_base::Random;
use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server};

const SCRIPTS: u64 = 2_500;
const LIBRARIES: u64 = 1_200;
/// Calls of the functions of one library, each with keys of its own.
const CALLS: u64 = 7;

/// What the host says if the proof of a narrow script did not hold.
const REFUSED: &str = "outside the keys it holds";

/// Takes what a call gave; the error that must not be is not hidden by a `pcall`.
const NOTE: &str = "local function note(x, y) seen[#seen + 1] = type(x) \
    local text = type(x) == 'table' and x.err or y \
    if type(text) == 'string' and string.find(text, 'outside') then error(text) end end";

/// The part of it that a script returns in the end.
const SEEN: &str = "seen[#seen + 1] = type(x)";

/// Writes programs that keep, pass on and mix up their keys.
struct Author {
    random: Random,
    /// Of a hundred values, how many are no keys.
    dirt: u64,
    /// The tables of keys and of other arguments, by their names.
    keys: &'static str,
    argv: &'static str,
    /// The ways to call a command.
    calls: &'static [&'static str],
    text: String,
    depth: usize,
    /// Functions that may be called by name here; none calls itself.
    callable: &'static [&'static str],
    /// Nothing but the variables is at hand: no table of keys.
    has_variables_only: bool,
}

impl Author {
    fn new(seed: u64, keys: &'static str, argv: &'static str) -> Self {
        let mut random = Random::from_seed(seed);
        let dirt = [0, 0, 2, 10, 40][random.below(5) as usize];
        let calls = &["redis.call", "redis.call", "redis.pcall", "call"];
        Author {
            random,
            dirt,
            keys,
            argv,
            calls,
            text: String::new(),
            depth: 0,
            callable: &[],
            has_variables_only: false,
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn is_dirty(&mut self) -> bool {
        self.random.below(100) < self.dirt
    }

    /// A table of keys, if all goes well.
    fn table(&mut self) -> String {
        if self.has_variables_only {
            return "({a, b})".to_owned();
        }
        match self.random.below(6) {
            _ if self.is_dirty() => format!("({{{}}})", self.value()),
            0 => "t".to_owned(),
            1 => "u".to_owned(),
            2 => format!("({})", self.keys),
            _ => self.keys.to_owned(),
        }
    }

    /// A key, if all goes well.
    fn value(&mut self) -> String {
        if self.is_dirty() {
            let index = 1 + self.random.below(2);
            return match self.random.below(3) {
                0 => "'literal'".to_owned(),
                1 => format!("{}[{index}]", self.argv),
                _ => format!("(a or '') .. {}[{index}]", self.argv),
            };
        }
        if self.has_variables_only {
            return self.pick(&["a", "b", "a", "b", "(a and b)", "(b or a)"]).to_owned();
        }
        match self.random.below(10) {
            0..4 => format!("{}[{}]", self.table(), 1 + self.random.below(3)),
            4..8 => self.pick(&["a", "b", "c"]).to_owned(),
            8 => format!("({} and {})", self.value(), self.value()),
            _ => format!("({} or {})", self.value(), self.value()),
        }
    }

    fn call(&mut self) {
        let call = self.pick(self.calls);
        let (one, two) = (self.value(), self.value());
        let table = self.table();
        let text = match self.random.below(10) {
            0 => format!("{call}('SET', {one}, {two})"),
            1 => format!("{call}('DEL', {one}, {two})"),
            2 => format!("{call}('MGET', {one}, unpack({table}))"),
            3 => format!("{call}('MSET', {one}, 'v', {two}, 'w')"),
            4 => format!("{call}('GEORADIUS', {one}, 1, 2, 3, 'm', {two}, {one})"),
            5 => format!("{call}('XREAD', 'COUNT', 1, 'STREAMS', {one}, {two}, '0', '0')"),
            6 => format!("pcall({call}, 'GET', {one})"),
            7 => format!("{call}('GEORADIUS', {one}, 1, 2, 3, 'm', {two}, 'literal')"),
            _ => format!("{call}('GET', {one})"),
        };
        writeln!(self.text, "note({text})").unwrap();
    }

    /// Statements in a block of their own, between these two lines.
    fn block(&mut self, open: &str, close: &str) {
        writeln!(self.text, "{open}").unwrap();
        self.statements();
        writeln!(self.text, "{close}").unwrap();
    }

    fn statements(&mut self) {
        self.depth += 1;
        for _ in 0..1 + self.random.below(if self.depth < 3 { 5 } else { 2 }) {
            self.statement();
        }
        self.depth -= 1;
    }

    fn statement(&mut self) {
        let (value, table) = (self.value(), self.table());
        let name = self.pick(&["a", "b", "c", "local a", "local b", "local c"]);
        match self.random.below(20) {
            0..5 => writeln!(self.text, "{name} = {value}").unwrap(),
            5 => {
                let name = self.pick(&["t", "u", "local t", "local u"]);
                writeln!(self.text, "{name} = {table}").unwrap();
            }
            6 if self.one_in(4) => writeln!(self.text, "t[1] = {value}").unwrap(),
            7 => writeln!(self.text, "a, b = unpack({table})").unwrap(),
            17 => self.shuffle(),
            8 if self.depth < 4 => {
                let argv = self.argv;
                self.block(&format!("if {argv}[1] == 'x' then"), "else");
                self.block("", "end");
            }
            9 if self.depth < 4 => self.block(&format!("for _, a in ipairs({table}) do"), "end"),
            10 if self.depth < 4 => self.block("for _ = 1, 2 do", "end"),
            11 if self.depth < 4 && self.one_in(3) => self.loose(),
            12 if self.depth < 4 && self.one_in(2) => {
                self.block("do local function g(a, b)", "end");
                let (one, two) = (self.value(), self.value());
                writeln!(self.text, "g({one}, {two}) end").unwrap();
            }
            13 | 14 if !self.callable.is_empty() => {
                let name = self.pick(self.callable);
                let other = self.value();
                writeln!(self.text, "{name}({value}, {other})").unwrap();
            }
            15 if !self.callable.is_empty() => {
                writeln!(self.text, "f(unpack({table}))").unwrap();
            }
            16 if self.one_in(3) && self.depth < 2 => {
                writeln!(self.text, "if saved then saved(a) end").unwrap()
            }
            _ => self.call(),
        }
    }

    /// Variables that go around in circles, with something else thrown in at times.
    fn shuffle(&mut self) {
        for _ in 0..2 + self.random.below(5) {
            let (to, from) = (self.pick(&["a", "b", "c"]), self.pick(&["a", "b", "c"]));
            if self.dirt > 0 && self.one_in(6) {
                writeln!(self.text, "{to} = {}[2]", self.argv).unwrap();
            } else {
                writeln!(self.text, "{to} = {from}").unwrap();
            }
        }
        let name = self.pick(&["a", "b", "c"]);
        writeln!(self.text, "note(redis.call('GET', {name}))").unwrap();
    }

    /// A function that is kept, or run by another.
    fn loose(&mut self) {
        let (open, close) = match self.random.below(4) {
            0 => ("saved = function(a)", "end"),
            1 => ("pcall(function()", "end)"),
            2 => ("coroutine.wrap(function()", "end)()"),
            _ => ("saved = coroutine.wrap(function() coroutine.yield()", "end) saved()"),
        };
        self.block(open, close);
    }

    /// Functions that bodies call by name: `f`, and `h`, which calls it.
    fn functions(&mut self) {
        self.depth = 2;
        self.block("local function f(a, b)", "end");
        self.callable = &["f"];
        self.block("local function h(a, b)", "end");
        self.callable = &["f", "h"];
        self.depth = 0;
    }

    fn script(mut self) -> String {
        let head = "local saved local t, u = KEYS, KEYS local call = redis.call local seen = {}";
        writeln!(self.text, "{head}\n{NOTE}").unwrap();
        let (a, b, c) = (self.value(), self.value(), self.value());
        let [a, b, c] = [a, b, c].map(|value| value.replace(['a', 'b', 'c'], "KEYS[1]"));
        let is_plain = |value: &String| !value.contains("liter") && !value.contains("or");
        let [a, b, c] =
            [a, b, c].map(|value| if is_plain(&value) { value } else { "KEYS[2]".to_owned() });
        writeln!(self.text, "local a, b, c = {a}, {b}, {c}").unwrap();
        self.functions();
        self.statements();
        self.text.push_str("return seen");
        self.text
    }

    /// Three functions, which share variables; one of them is registered in one branch of two.
    fn library(mut self) -> String {
        self.text.push_str("#!lua name=lib\n");
        writeln!(self.text, "local saved, a, b, c local t, u = {{}}, {{}}").unwrap();
        writeln!(self.text, "{}", NOTE.replace(SEEN, "")).unwrap();
        self.calls = &["redis.call", "redis.call", "redis.call", "redis.pcall"];
        (self.argv, self.has_variables_only) = ("u", true);
        self.functions();
        (self.argv, self.has_variables_only) = ("args", false);
        for name in ["p", "q", "r"] {
            let redis = self.pick(&["redis", "redis", "server", "lib"]);
            let locals = self.pick(&["", "local a, b, c = keys[1], keys[2], keys[1]", "local a"]);
            let own = "local t, u = keys, keys";
            let tables = self.pick(&[own, own, own, ""]);
            let open = format!("{redis}.register_function('{name}', function(keys, args)");
            if redis == "lib" {
                self.text.push_str("do local lib = redis\n");
            }
            let is_chosen = self.one_in(3);
            if is_chosen {
                writeln!(self.text, "if {} then", self.random.below(2) == 0).unwrap();
            }
            self.block(&format!("{open} {locals} {tables}"), "end)");
            if is_chosen {
                self.text.push_str("else\n");
                self.block(&format!("{open} {locals} {tables}"), "end) end");
            }
            if redis == "lib" {
                self.text.push_str("end\n");
            }
        }
        self.text
    }
}

struct Tested {
    server: Server,
    client: Client,
}

impl Tested {
    fn start() -> Self {
        let args = ["--threads", "1", "--script-undeclared-keys", "warn"];
        let server = Server::start(Kind::Russet, &args).unwrap();
        let client = Client::connect(server.address()).unwrap();
        Tested { server, client }
    }

    /// How many runs were narrow, and how many keys were used that were not given.
    fn counts(&mut self) -> (u64, u64) {
        let report = self.client.call(&["INFO", "stats"]).unwrap();
        let report = String::from_utf8_lossy(report.text().unwrap()).into_owned();
        let field = |name: &str| {
            let line = report.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}"))
        };
        (field("script_runs_narrow"), field("script_undeclared_keys"))
    }

    /// Runs a call; its reply, and whether it was narrow.
    fn run(&mut self, args: &[String], program: &str) -> (Reply, bool) {
        let before = self.counts();
        let reply = self.client.call(args).unwrap();
        let after = self.counts();
        let is_narrow = after.0 > before.0;
        let text = String::from_utf8_lossy(reply.text().unwrap_or_default());
        assert!(!text.contains(REFUSED), "{text}\n{args:?}\n{program}");
        assert!(!is_narrow || after.1 == before.1, "it used other keys\n{args:?}\n{program}");
        (reply, is_narrow)
    }
}

fn args(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

fn flush(client: &mut Client) {
    assert!(!client.call(&["FLUSHALL"]).unwrap().is_error());
}

/// Some of these scripts were called narrow because of what had been assumed of a variable while
/// another one was looked at.
#[test]
fn no_script_is_called_narrow_that_is_not() {
    let mut tested = Tested::start();
    let peer = Server::start_if_there(Kind::Valkey, &[]);
    let mut peer = peer.as_ref().map(|peer| Client::connect(peer.address()).unwrap());
    let mut narrow = 0;
    for seed in 0..SCRIPTS {
        let script = Author::new(seed, "KEYS", "ARGV").script();
        let second = if seed % 4 == 0 { "STORE" } else { "k2" };
        let call = args(&["EVAL", &script, "3", "k1", second, "k3", "x", "other:1"]);
        let (reply, is_narrow) = tested.run(&call, &format!("seed {seed}\n{script}"));
        narrow += u64::from(is_narrow);
        flush(&mut tested.client);
        if let Some(peer) = &mut peer {
            let expected = peer.call(&call).unwrap();
            assert_eq!(reply.is_error(), expected.is_error(), "{reply:?} {expected:?}\n{script}");
            if !reply.is_error() {
                assert_eq!(reply, expected, "seed {seed}\n{script}");
            }
            flush(peer);
        }
    }
    println!("{narrow} of {SCRIPTS} were narrow");
    assert!(narrow > SCRIPTS / 20, "only {narrow} of {SCRIPTS} were narrow");
    drop(tested.server);
}

/// A function registered under one name in two branches was judged by the first of them; one that
/// used a key which another had left in a variable was judged as if it had been given it.
#[test]
fn no_function_is_called_narrow_that_is_not() {
    let mut tested = Tested::start();
    let mut narrow = 0;
    for seed in 0..LIBRARIES {
        let library = Author::new(seed, "keys", "args").library();
        let load = args(&["FUNCTION", "LOAD", "REPLACE", &library]);
        let loaded = tested.client.call(&load).unwrap();
        assert!(!loaded.is_error(), "{loaded:?}\nseed {seed}\n{library}");
        for call in 0..CALLS {
            let name = ["p", "q", "r"][(seed + call) as usize % 3];
            let keys: Vec<String> = (1..=3).map(|key| format!("k{call}:{key}")).collect();
            let mut call = args(&["FCALL", name, "3"]);
            call.extend(keys);
            call.extend(args(&["x", "other:1"]));
            narrow += u64::from(tested.run(&call, &format!("seed {seed}\n{library}")).1);
        }
        flush(&mut tested.client);
    }
    println!("{narrow} of {} were narrow", LIBRARIES * CALLS);
    assert!(narrow > LIBRARIES * CALLS / 20, "only {narrow} were narrow");
    drop(tested.server);
}
