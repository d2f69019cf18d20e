//! The libraries of scripts against a peer's: thousands of chunks made at random, each run here in
//! the interpreter alone and there by EVAL; and the answers recorded in the corpus of
//! `russet-scripting`, which `RUSSET_RECORD=1` records anew.
//!
//! `RUSSET_LUA_CHUNKS` makes it longer (chunks of each family), `RUSSET_DIFFER_SEED` starts it
//! elsewhere, and `RUSSET_REQUIRE_PEER` turns the absence of a peer from a note into a failure.

use russet_base::Random;
use russet_scripting::limits::MEMORY_BYTES_MAX;
use russet_scripting::state::Config;
use russet_scripting::{Host, NoHost, State, Tick, Value, compile, library};
use russet_tests::client::{Client, Reply};
use russet_tests::lua::corpus::{Part, files, parse, print};
use russet_tests::lua::{Family, SHOW};
use russet_tests::server::{Kind, Server};

/// Chunks of each family.
const CHUNKS_DEFAULT: usize = 2000;
/// Chunks that one call runs.
const BATCH: usize = 100;
/// Differences that a failure shows.
const SHOWN_MAX: usize = 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn theirs(client: &mut Client, chunks: &[Vec<u8>]) -> Vec<String> {
    let mut args: Vec<&[u8]> = vec![b"EVAL", SHOW.as_bytes(), b"0"];
    args.extend(chunks.iter().map(Vec::as_slice));
    let reply = client.call(&args).expect("the peer answers");
    let Reply::Array(lines) = reply else { panic!("{reply:?}") };
    let text = |line: &Reply| String::from_utf8_lossy(line.text().expect("a line")).into_owned();
    lines.iter().map(text).collect()
}

fn ours(state: &mut State, chunks: &[Vec<u8>]) -> Vec<String> {
    let chunk = compile(SHOW.as_bytes(), b"@user_script")
        .unwrap_or_else(|error| panic!("{}", error.message().escape_ascii()));
    let env = state.globals();
    let script = state.load(&chunk, env).expect("there is room for the script");
    let name = state.heap_mut().string(b"ARGV").expect("room");
    let list = state.heap_mut().table(chunks.len(), 0).expect("room");
    for (index, chunk) in chunks.iter().enumerate() {
        let text = state.heap_mut().string(chunk).expect("room");
        state.heap_mut().set_index(list, index + 1, Value::Str(text)).expect("room");
    }
    state.set_run_global(name, Value::Table(list)).expect("room");
    let function = state.kept(script);
    let result = match state.call(&mut NoHost, function, &[]) {
        Ok(results) => results[0],
        Err(fault) => panic!("the script that shows results failed: {fault:?}"),
    };
    let Value::Table(lines) = result else { panic!("{result:?}") };
    let line = |index| match state.heap().element(lines, index) {
        Value::Str(text) => String::from_utf8_lossy(state.heap().bytes(text)).into_owned(),
        other => panic!("{other:?}"),
    };
    let lines = (1..=chunks.len()).map(line).collect();
    state.end_run();
    state.release(script);
    lines
}

fn new_state(memory_bytes_max: usize) -> State {
    let mut state = State::new(Config { memory_bytes_max, ..Config::default() });
    library::open(&mut state).expect("an empty state has room for the libraries");
    state.freeze();
    state
}

/// The answers in the corpus are those of the peer.
#[test]
fn the_corpus_holds_what_a_peer_answers() {
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    let mut client = Client::connect(peer.address()).expect("the peer takes connections");
    let is_recording = std::env::var_os("RUSSET_RECORD").is_some();
    let mut differences = Vec::new();
    for path in files() {
        let mut parts = parse(&std::fs::read_to_string(&path).expect("a readable file"));
        for part in &mut parts {
            let Part::Case(case) = part else { continue };
            let chunk = [case.chunk.clone().into_bytes()];
            let [answer] = theirs(&mut client, &chunk).try_into().expect("one answer");
            if !is_recording && case.recorded.as_ref() != Some(&answer) {
                let recorded = case.recorded.as_deref().unwrap_or("nothing");
                let text = format!("{}\n  peer: {answer}\n  recorded: {recorded}", case.chunk);
                differences.push(text);
            }
            case.recorded = Some(answer);
        }
        if is_recording {
            std::fs::write(&path, print(&parts)).expect("a writable file");
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Every chunk of the corpus is answered here as recorded.
#[test]
fn the_corpus_is_answered_here() {
    let mut state = new_state(MEMORY_BYTES_MAX);
    let mut differences = Vec::new();
    for path in files() {
        for part in parse(&std::fs::read_to_string(&path).expect("a readable file")) {
            let Part::Case(case) = part else { continue };
            let chunk = [case.chunk.clone().into_bytes()];
            let [answer] = ours(&mut state, &chunk).try_into().expect("one answer");
            let expected = case.ours.or(case.recorded).unwrap_or_default();
            if answer != expected {
                differences.push(format!("{}\n  peer: {expected}\n  ours: {answer}", case.chunk));
            }
        }
    }
    let text = differences.join("\n");
    assert!(differences.is_empty(), "{} answers differ:\n{text}", differences.len());
}

/// Ends a run after a number of questions.
struct Patience(u32);

impl Host for Patience {
    fn tick(&mut self) -> Tick {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { Tick::Kill } else { Tick::Continue }
    }
}

/// A state that is short of memory, and a host short of time, end calls at any point; the state
/// serves the next run all the same.
#[test]
fn short_of_memory_and_time() {
    const MEMORY_BYTES: usize = 1 << 20;
    let mut random = Random::from_seed(5);
    let mut state = new_state(MEMORY_BYTES);
    for round in 0..1000 {
        let family = Family::ALL[round % Family::ALL.len()];
        let text = String::from_utf8(family.chunk(&mut random)).expect("chunks are text");
        let room = MEMORY_BYTES.saturating_sub(state.heap().used_bytes());
        let taken = room.saturating_sub(random.index(8 << 10));
        let source = format!(
            "local taken=('x'):rep({taken}) for i=1,40 do pcall(function() {text} end) end"
        );
        let Ok(chunk) = compile(source.as_bytes(), b"=short") else { continue };
        let env = state.globals();
        if let Ok(script) = state.load(&chunk, env) {
            let function = state.kept(script);
            let _ = state.call(&mut Patience(1 + random.index(20) as u32), function, &[]);
            state.end_run();
            state.release(script);
        }
        let answer = ours(&mut state, &[b"return cjson.encode({1,'a'})".to_vec()]);
        assert_eq!(answer, ["ok \"[1,\\034a\\034]\""]);
    }
}

/// Runs chunks of one family on both sides.
fn compare(family: Family) {
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    let mut client = Client::connect(peer.address()).expect("the peer takes connections");
    let mut state = new_state(MEMORY_BYTES_MAX);
    let seed = number("RUSSET_DIFFER_SEED").unwrap_or_else(|| Random::from_entropy().next_u64());
    let mut random = Random::from_seed(seed);
    let count = number("RUSSET_LUA_CHUNKS").map_or(CHUNKS_DEFAULT, |count| count as usize);
    let mut differences = Vec::new();
    for _ in 0..count.div_ceil(BATCH) {
        let chunks: Vec<Vec<u8>> = (0..BATCH).map(|_| family.chunk(&mut random)).collect();
        let (theirs, ours) = (theirs(&mut client, &chunks), ours(&mut state, &chunks));
        assert_eq!((theirs.len(), ours.len()), (BATCH, BATCH));
        for (chunk, (theirs, ours)) in chunks.iter().zip(theirs.into_iter().zip(ours)) {
            if theirs != ours {
                let chunk = String::from_utf8_lossy(chunk);
                differences.push(format!("{chunk}\n  peer: {theirs}\n  ours: {ours}"));
            }
        }
    }
    let shown = differences.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        differences.is_empty(),
        "seed {seed}, {family:?}: {} of {count} differ:\n{shown}",
        differences.len()
    );
}

#[test]
fn patterns() {
    compare(Family::Pattern);
}

#[test]
fn formats() {
    compare(Family::Format);
}

#[test]
fn numbers() {
    compare(Family::Number);
}

#[test]
fn strings() {
    compare(Family::Text);
}

#[test]
fn tables() {
    compare(Family::Table);
}

#[test]
fn math() {
    compare(Family::Math);
}

#[test]
fn bits() {
    compare(Family::Bit);
}

#[test]
fn json() {
    compare(Family::Json);
}

#[test]
fn messages() {
    compare(Family::MessagePack);
}

#[test]
fn structures() {
    compare(Family::Struct);
}
