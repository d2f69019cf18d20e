//! Runs Lua source texts from standard input, separated by lines of four dashes, and prints what
//! each returns, converted as replies are, or its error. With a number as its argument it runs the
//! text so many times and says how long one run took.

use russet_scripting::state::Config;
use russet_scripting::{Fault, NoHost, State, Value, compile, library};
use std::io::{Read, Write};

fn show(state: &State, value: Value, out: &mut Vec<u8>) {
    match value {
        Value::Str(text) => out.extend_from_slice(state.heap().bytes(text)),
        Value::Number(number) => out.extend_from_slice(format!("{}", number as i64).as_bytes()),
        Value::Bool(true) => out.push(b'1'),
        Value::Table(table) if !state.heap().field(table, b"err").is_nil() => {
            out.extend_from_slice(b"ERR:");
            show(state, state.heap().field(table, b"err"), out);
        }
        Value::Table(table) if !state.heap().field(table, b"ok").is_nil() => {
            show(state, state.heap().field(table, b"ok"), out);
        }
        Value::Table(table) => {
            out.push(b'[');
            for index in 1.. {
                let value = state.heap().element(table, index);
                if value.is_nil() {
                    break;
                }
                if index > 1 {
                    out.push(b'|');
                }
                show(state, value, out);
            }
            out.push(b']');
        }
        _ => out.extend_from_slice(b"nil"),
    }
}

fn new_state() -> Result<State, Fault> {
    let mut state = State::new(Config::default());
    library::open(&mut state)?;
    library::guard_globals(&mut state)?;
    state.freeze();
    Ok(state)
}

fn run(state: &mut State, source: &[u8], turns: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
    let chunk = match compile(source, b"@user_script") {
        Ok(chunk) => chunk,
        Err(error) => {
            out.extend_from_slice(b"SYNTAX:");
            out.extend_from_slice(error.message());
            return Ok(());
        }
    };
    let globals = state.globals();
    let root = state.load(&chunk, globals)?;
    let started = std::time::Instant::now();
    for turn in 0..turns {
        let function = state.kept(root);
        let outcome = state.call(&mut NoHost, function, &[]).map(|values| values.first().copied());
        if turn + 1 == turns {
            match outcome {
                Ok(value) => show(state, value.unwrap_or_default(), out),
                Err(Fault::Error(Value::Table(table))) => {
                    out.extend_from_slice(b"ERR:");
                    let field = state.heap().field(table, b"err");
                    show(state, field, out);
                }
                Err(Fault::Error(value)) => {
                    out.extend_from_slice(b"ERR:");
                    show(state, value, out);
                }
                Err(fault) => out.extend_from_slice(format!("ERR:{fault:?}").as_bytes()),
            }
        }
        state.end_run();
    }
    if turns > 1 {
        let text = format!("   ({:?} per run)", started.elapsed() / turns);
        out.extend_from_slice(text.as_bytes());
    }
    state.release(root);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let turns: u32 = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let text = String::from_utf8_lossy(&text);
    let mut state = new_state().map_err(|fault| format!("{fault:?}"))?;
    for source in text.split("\n----\n") {
        let mut out = Vec::new();
        run(&mut state, source.as_bytes(), turns, &mut out)
            .map_err(|fault| format!("{fault:?}"))?;
        out.extend_from_slice(b"\n====\n");
        std::io::stdout().write_all(&out)?;
    }
    Ok(())
}
