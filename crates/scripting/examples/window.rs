//! What one run of a short script costs beside its commands: KEYS and ARGV are made, two host
//! functions called, and the run is cut off. Prints the fastest of many batches.

use russet_scripting::state::Config;
use russet_scripting::{Call, Fault, Host, Outcome, State, Value, compile, library};

const SCRIPT: &[u8] = b"
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
if count > tonumber(ARGV[2]) then return 0 end
return 1";

const BATCHES: usize = 300;
const RUNS: u32 = 1_000;

struct Counter(f64);

impl Host for Counter {
    fn native(&mut self, _number: u16, call: &mut Call<'_>) -> Outcome {
        let key = call.string(2)?;
        let len = call.bytes(key).len();
        self.0 = if len == 0 { 2.0 } else { 1.0 };
        call.give(self.0)
    }
}

fn one_run(state: &mut State, host: &mut Counter, script: Value) -> Result<(), Fault> {
    let names = [b"KEYS".as_slice(), b"ARGV"];
    let values: [&[&[u8]]; 2] = [&[b"window:{user:1}"], &[b"60000", b"100"]];
    for (name, values) in names.into_iter().zip(values) {
        let table = state.heap_mut().table(values.len(), 0)?;
        for (index, value) in values.iter().enumerate() {
            let value = state.heap_mut().string(value)?;
            state.heap_mut().set_index(table, index + 1, Value::Str(value))?;
        }
        let name = state.heap_mut().intern(name)?;
        state.set_run_global(name, Value::Table(table))?;
    }
    state.call(host, script, &[])?;
    state.end_run();
    Ok(())
}

fn prepared() -> Result<(State, Value), Fault> {
    let mut state = State::new(Config::default());
    library::open(&mut state)?;
    let globals = state.globals();
    let redis = state.define_table(globals, "redis")?;
    state.define_host(redis, "call", 0)?;
    library::guard_globals(&mut state)?;
    state.freeze();
    for name in [b"KEYS", b"ARGV"] {
        state.heap_mut().intern(name)?;
    }
    let chunk = compile(SCRIPT, b"@user_script").expect("the script above is right");
    let root = state.load(&chunk, globals)?;
    let script = state.kept(root);
    Ok((state, script))
}

fn main() {
    let (mut state, script) = prepared().expect("an empty state has room for one script");
    let mut host = Counter(0.0);
    let mut best = std::time::Duration::MAX;
    for _ in 0..BATCHES {
        let started = std::time::Instant::now();
        for _ in 0..RUNS {
            one_run(&mut state, &mut host, script).expect("the script raises no error");
        }
        best = best.min(started.elapsed());
    }
    println!("{:?} per run", best / RUNS);
}
