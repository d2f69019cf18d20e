//! Scripts with their results, from `tests/corpus/*.txt`.
//!
//! A case is a script, then a line that starts with `=> ` and holds what `EVAL` answers: the reply
//! as text (arrays in brackets with `|` between the elements, nil as `nil`), `ERR:` and the
//! message of an error without the place that Redis appends, or `SYNTAX:` and what the compiler
//! says. Lines of four dashes stand between cases. All answers were given by Valkey; any harness
//! that can send `EVAL` can ask again.

use russet_scripting::state::Config;
use russet_scripting::{Fault, NoHost, State, Value, compile, library};

fn show(state: &State, value: Value) -> String {
    match value {
        Value::Str(text) => String::from_utf8_lossy(state.heap().bytes(text)).into_owned(),
        Value::Number(number) => format!("{}", number as i64),
        Value::Bool(true) => "1".to_owned(),
        Value::Table(table) => {
            let field = |name: &[u8]| state.heap().field(table, name);
            if !field(b"err").is_nil() {
                return format!("ERR:{}", show(state, field(b"err")));
            }
            if !field(b"ok").is_nil() {
                return show(state, field(b"ok"));
            }
            let elements = (1..).map(|index| state.heap().element(table, index));
            let elements = elements.take_while(|value| !value.is_nil());
            let elements: Vec<String> = elements.map(|value| show(state, value)).collect();
            format!("[{}]", elements.join("|"))
        }
        _ => "nil".to_owned(),
    }
}

fn new_state() -> Result<State, Fault> {
    let mut state = State::new(Config::default());
    library::open(&mut state)?;
    library::guard_globals(&mut state)?;
    state.freeze();
    Ok(state)
}

fn answer(state: &mut State, source: &str) -> String {
    let chunk = match compile(source.as_bytes(), b"@user_script") {
        Ok(chunk) => chunk,
        Err(error) => return format!("SYNTAX:{error}"),
    };
    let globals = state.globals();
    let root = state.load(&chunk, globals).unwrap();
    let function = state.kept(root);
    let outcome = state.call(&mut NoHost, function, &[]).map(|values| values.first().copied());
    let text = match outcome {
        Ok(value) => show(state, value.unwrap_or_default()),
        Err(Fault::Error(value @ Value::Table(_))) => show(state, value),
        Err(Fault::Error(value)) => format!("ERR:{}", show(state, value)),
        Err(fault) => format!("{fault:?}"),
    };
    state.end_run();
    state.release(root);
    text
}

fn check(cases: &str) {
    let mut state = new_state().unwrap();
    let held_bytes = state.heap().used_bytes();
    let mut wrong = Vec::new();
    for case in cases.trim_end().split("\n----\n") {
        let (source, wanted) = case.rsplit_once("\n=> ").unwrap_or((case, ""));
        let given = answer(&mut state, source);
        if given != wanted {
            wrong.push(format!("{source}\n   wanted: {wanted}\n   given:  {given}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    state.collect_permanent();
    assert_eq!(state.heap().used_bytes(), held_bytes, "scripts that were released left something");
}

/// Cases that make so much that a collection at every step would take minutes.
fn is_heavy(source: &str) -> bool {
    ["00000 do", "5000", "00000)", "k' .. i", "1000 do"].iter().any(|part| source.contains(part))
}

#[test]
fn collections_at_every_chance_change_nothing() {
    let mut state = new_state().unwrap();
    state.collect_eagerly();
    let cases = [
        include_str!("corpus/coroutines.txt"),
        include_str!("corpus/language.txt"),
        include_str!("corpus/messages.txt"),
        include_str!("corpus/metamethods.txt"),
    ];
    for case in cases.iter().flat_map(|cases| cases.trim_end().split("\n----\n")) {
        let (source, wanted) = case.rsplit_once("\n=> ").unwrap_or((case, ""));
        if !is_heavy(source) {
            assert_eq!(answer(&mut state, source), wanted, "{source}");
        }
    }
}

/// The chunks of `tests/library`, whose answers `show.lua` writes out; it calls back from `gsub`
/// and `sort` itself.
#[test]
fn collections_at_every_chance_change_nothing_in_the_libraries() {
    let cases = [
        include_str!("library/bit.txt"),
        include_str!("library/cjson.txt"),
        include_str!("library/cmsgpack.txt"),
        include_str!("library/format.txt"),
        include_str!("library/math.txt"),
        include_str!("library/number.txt"),
        include_str!("library/pattern.txt"),
        include_str!("library/string.txt"),
        include_str!("library/struct.txt"),
        include_str!("library/table.txt"),
    ];
    let (mut lazy, mut eager) = (new_state().unwrap(), new_state().unwrap());
    eager.collect_eagerly();
    let mut compared = 0;
    for line in cases.iter().flat_map(|cases| cases.lines()) {
        // Time, and what depends on how much is held, is another at each run.
        let varies = ["=> ", "random", "os.", "gcinfo", "00000"];
        if varies.iter().any(|part| line.contains(part)) {
            continue;
        }
        let source =
            format!("local ARGV = {{[==[{line}]==]}} {}", include_str!("library/show.lua"));
        let (wanted, given) = (answer(&mut lazy, &source), answer(&mut eager, &source));
        assert_eq!(given, wanted, "{line}");
        compared += 1;
    }
    assert!(compared > 500, "only {compared} chunks");
}

#[test]
fn the_language() {
    check(include_str!("corpus/language.txt"));
}

#[test]
fn limits() {
    check(include_str!("corpus/limits.txt"));
}

#[test]
fn messages() {
    check(include_str!("corpus/messages.txt"));
}

/// A coroutine that waits in a yield is resumed without its native, and left by a yield, a return
/// or an error.
#[test]
fn coroutines() {
    check(include_str!("corpus/coroutines.txt"));
}

/// What a metamethod gives goes to a register of the instruction that needed it, and its frame is
/// left by a return, a tail call or an error.
#[test]
fn metamethods() {
    check(include_str!("corpus/metamethods.txt"));
}

/// A coroutine that could not take what its yield was given died, and still counted as one that
/// waits in it: to resume it again ended the process.
#[test]
fn a_coroutine_that_died_of_what_it_was_given_stays_dead() {
    let mut state = new_state().unwrap();
    let deep = |yields: &str, resumes: &str, depth: usize| {
        format!(
            "local n = {{}} for i = 1, 120 do n[i] = 'a' .. i end \
             local f = loadstring('local function f(n) local ' .. table.concat(n, ',') \
             .. ' if n == 0 then {yields} end local r = f(n - 1) return r end return f')() \
             local co = coroutine.create(function() return (f({depth})) end) \
             coroutine.resume(co) local t = {{}} for i = 1, 7900 do t[i] = i end \
             {resumes} local _, text = coroutine.resume(co) return text"
        )
    };
    let first = "return (coroutine.yield())";
    let through_pcall = "pcall(coroutine.resume, co, unpack(t))";
    let all = "local t = {coroutine.yield()} return #t";
    let by_itself = "coroutine.resume(co, unpack(t))";
    let dead = "cannot resume dead coroutine";
    assert_eq!(answer(&mut state, &deep(first, through_pcall, 8560)), dead);
    for depth in (8480..8580).step_by(10) {
        assert_eq!(answer(&mut state, &deep(all, by_itself, depth)), dead, "{depth}");
    }
}
