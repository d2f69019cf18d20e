//! The order in which tables are walked.
//!
//! `pairs`, `next`, `cjson.encode` and `cmsgpack.pack` walked named fields in the order of hashes,
//! whose seed changes with every start of the server: a script that signed its JSON gave another
//! signature on each node. The order is that in which the fields were added, whatever the seed.

use russet_base::Random;
use russet_scripting::state::Config;
use russet_scripting::{NoHost, State, Value, compile, library};
use std::fmt::Write as _;

fn run(state: &mut State, source: &str) -> Vec<u8> {
    let chunk = compile(source.as_bytes(), b"@user_script").expect("it compiles");
    let globals = state.globals();
    let root = state.load(&chunk, globals).unwrap();
    let function = state.kept(root);
    let value = state.call(&mut NoHost, function, &[]).unwrap().first().copied();
    let Some(Value::Str(text)) = value else { panic!("{source} gives no text") };
    let text = state.heap().bytes(text).to_vec();
    state.end_run();
    state.release(root);
    text
}

fn state_with_seed(seed: u64) -> State {
    let mut state = State::new(Config { seed, ..Config::default() });
    library::open(&mut state).unwrap();
    library::guard_globals(&mut state).unwrap();
    state.freeze();
    state
}

/// Walks `t` in every way there is.
const WALK: &str = "local seen = {} \
    for k, v in pairs(t) do seen[#seen + 1] = type(k) .. ':' .. \
      ((type(k) == 'table' or type(k) == 'function') and v or tostring(k)) end \
    local names = {} for k, v in pairs(t) do if type(k) == 'string' then names[k] = v end end \
    return table.concat(seen, ',') .. cjson.encode(names) .. cmsgpack.pack(names) \
      .. table.concat({#t, table.maxn(t)}, '|')";

/// Adds, changes and removes fields of all kinds.
fn program(seed: u64) -> String {
    let mut random = Random::from_seed(seed);
    let mut text = String::from("local keys = {} for i = 1, 9 do keys[i] = {} end local t = {");
    for field in 0..random.below(5) {
        write!(text, "f{field} = {field}, ").unwrap();
    }
    text.push_str("} ");
    for step in 0..random.below(200) {
        let key = match random.below(7) {
            0 | 1 => format!("'f{}'", random.below(60)),
            2 => format!("'f' .. {}", random.below(60)),
            3 => format!("{}", random.below(40) as i64 - 10),
            4 => format!("{}.5", random.below(20)),
            5 => format!("keys[{}]", 1 + random.below(9)),
            _ => "true".to_owned(),
        };
        let value = if random.below(3) == 0 { "nil".to_owned() } else { format!("{step}") };
        write!(text, "t[{key}] = {value} ").unwrap();
        if random.below(12) == 0 {
            text.push_str("for k in pairs(t) do t[k] = 'x' end ");
        }
        if random.below(20) == 0 {
            text.push_str("for k in pairs(t) do if type(k) == 'number' then t[k] = nil end end ");
        }
    }
    text.push_str(WALK);
    text
}

#[test]
fn the_order_is_the_same_whatever_the_seed() {
    let mut states: Vec<State> = [0, 1, 2, 0xdead_beef_0123_4567].map(state_with_seed).into();
    for seed in 0..300 {
        let source = program(seed);
        let mut answers = states.iter_mut().map(|state| run(state, &source));
        let first = answers.next().unwrap();
        assert!(answers.all(|answer| answer == first), "{source}");
    }
}

/// A function library's table outlives its runs, and is rebuilt when it names what a run made.
#[test]
fn the_order_outlives_a_run() {
    for seed in [3, 4, 5] {
        let mut state = state_with_seed(seed);
        let source = "local t = {} return function(name) t[name .. '!'] = name \
                      return cjson.encode(t) end";
        let chunk = compile(source.as_bytes(), b"@user_function").unwrap();
        let globals = state.globals();
        let main = state.load(&chunk, globals).unwrap();
        let main = state.kept(main);
        let made = state.call(&mut NoHost, main, &[]).unwrap()[0];
        let root = state.keep(made);
        state.end_run();
        let mut wanted = String::new();
        for name in ["q", "b", "x", "a", "n", "m", "c", "z", "y"] {
            let text = state.heap_mut().string(name.as_bytes()).unwrap();
            let function = state.kept(root);
            let given = state.call(&mut NoHost, function, &[Value::Str(text)]).unwrap()[0];
            let separator = if wanted.is_empty() { "" } else { "," };
            write!(wanted, "{separator}\"{name}!\":\"{name}\"").unwrap();
            let Value::Str(given) = given else { panic!("no text") };
            let given = String::from_utf8(state.heap().bytes(given).to_vec()).unwrap();
            assert_eq!(given, format!("{{{wanted}}}"));
            state.end_run();
        }
    }
}

#[test]
fn fields_come_in_the_order_in_which_they_were_added() {
    let mut state = state_with_seed(7);
    for (source, wanted) in [
        ("return cjson.encode({zeta = 1, alpha = 2, mid = 3})", r#"{"zeta":1,"alpha":2,"mid":3}"#),
        (
            "return cjson.encode(cjson.decode('{\"b\":1,\"a\":{\"z\":1,\"y\":2},\"c\":3}'))",
            r#"{"b":1,"a":{"z":1,"y":2},"c":3}"#,
        ),
        // A field that is removed while others are walked is skipped; one that is set stays.
        (
            "local t, seen = {a = 1, b = 2, c = 3, d = 4}, '' \
             for k in pairs(t) do t.c = nil t.b = 9 seen = seen .. k end return seen",
            "abd",
        ),
        // Removed and set again it keeps its place while the table is not rebuilt.
        (
            "local t, seen = {a = 1, b = 2, c = 3, d = 4}, '' t.b = nil t.b = 5 \
             for k in pairs(t) do seen = seen .. k end return seen",
            "abcd",
        ),
        (
            "local t, seen = {10, 20, x = 1, [3] = 30}, '' \
             for k in pairs(t) do seen = seen .. k .. ' ' end return seen",
            "1 2 x 3 ",
        ),
    ] {
        assert_eq!(String::from_utf8_lossy(&run(&mut state, source)), wanted, "{source}");
    }
}

/// A loop remembers in the table where it is. Other loops, keys that are no names, names that are
/// made anew and a table that changes must not lead it astray.
#[test]
fn a_walk_finds_its_way() {
    let mut state = state_with_seed(9);
    for (source, wanted) in [
        // Two walks of one table, one inside the other.
        (
            "local t, seen = {a = 1, b = 2, c = 3}, '' for k in pairs(t) do seen = seen .. k \
             for l, v in pairs(t) do seen = seen .. v end end return seen",
            "a123b123c123",
        ),
        // 0, fractions and numbers below 1 are fields like any other, before and behind a list.
        (
            "local t = {[0] = 'z', 'a', 'b', [-1] = 'y', [1.5] = 'x', n = 'w', [9] = 'v'} \
             local seen = '' for k, v in pairs(t) do seen = seen .. v end return seen",
            "abzyxwv",
        ),
        ("local n = 0 for k in pairs({[0] = 1}) do n = n + 1 end return tostring(n)", "1"),
        // A name that is equal, but another string.
        (
            "local t, seen = {ab = 1, cd = 2, ef = 3}, '' \
             for k, v in next, t, 'a' .. string.char(98) do seen = seen .. v end return seen",
            "23",
        ),
        // Holes, and the entry behind the last one visited removed.
        (
            "local t, seen = {1, 2, nil, 4, a = 5, b = 6, c = 7}, '' \
             for k, v in pairs(t) do seen = seen .. v t.b = nil end return seen",
            "12457",
        ),
        (
            "local seen = '' \
             for i, v in ipairs({1, 2, nil, 4}) do seen = seen .. v end return seen",
            "12",
        ),
        // Elements that stand among the other fields.
        (
            "local t, seen = {}, '' t[3] = 'c' t[2] = 'b' t[1] = 'a' \
             for i, v in ipairs(t) do seen = seen .. i .. v end return seen",
            "1a2b3c",
        ),
        // An end that comes closer while the loop runs, and one that goes away.
        (
            "local t, seen = {1, 2, 3, 4}, '' for i, v in ipairs(t) do seen = seen .. v \
             t[4] = nil if i < 3 then t[5] = 9 end end return seen",
            "123",
        ),
        (
            "local t, n = {1}, 0 for i in ipairs(t) do n = i if i < 50 then t[i + 1] = i end end \
             return tostring(n)",
            "50",
        ),
        // More variables than there are values.
        (
            "local seen = '' for k, v, x, y in pairs({a = 1}) do \
             seen = seen .. k .. v .. tostring(x) .. tostring(y) end return seen",
            "a1nilnil",
        ),
        // The iterator of `ipairs` with a start of one's own.
        (
            "local step, seen = ipairs({}), '' \
             for i, v in step, {1, 2, 3}, 1 do seen = seen .. v end \
             for i, v in step, {[-1] = 8, [0] = 9, 1}, -2 do seen = seen .. v end return seen",
            "23891",
        ),
    ] {
        assert_eq!(String::from_utf8_lossy(&run(&mut state, source)), wanted, "{source}");
    }
}
