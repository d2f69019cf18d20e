//! Runs a Lua source text from standard input and prints what it returns.

use russet_scripting::state::Config;
use russet_scripting::{Fault, NoHost, State, Value, compile, libs};
use std::io::Read;

fn show(state: &State, value: Value, depth: usize) -> String {
    match value {
        Value::Str(text) => String::from_utf8_lossy(state.heap().bytes(text)).into_owned(),
        Value::Number(number) => format!("{}", number.trunc() as i64),
        Value::Bool(true) => "1".to_owned(),
        Value::Table(table) if depth < 5 => {
            let mut parts = Vec::new();
            for index in 1.. {
                let value = state.heap().get_index(table, index);
                if value.is_nil() {
                    break;
                }
                parts.push(show(state, value, depth + 1));
            }
            format!("[{}]", parts.join(", "))
        }
        _ => "nil".to_owned(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut source = Vec::new();
    std::io::stdin().read_to_end(&mut source)?;
    let mut state = State::new(Config::default());
    libs::open(&mut state).map_err(|fault| format!("{fault:?}"))?;
    libs::guard_globals(&mut state).map_err(|fault| format!("{fault:?}"))?;
    state.freeze();
    let chunk = compile(&source, b"@user_script")?;
    let globals = state.globals();
    let root = state.load(&chunk, globals).map_err(|fault| format!("{fault:?}"))?;
    let turns: usize = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let started = std::time::Instant::now();
    for turn in 0..turns {
        let function = state.kept(root);
        let outcome = state.call(&mut NoHost, function, &[]).map(<[Value]>::to_vec);
        if turn + 1 == turns {
            let text = match outcome {
                Ok(values) => show(&state, values.first().copied().unwrap_or_default(), 0),
                Err(Fault::Error(Value::Str(text))) => {
                    format!("ERR:{}", String::from_utf8_lossy(state.heap().bytes(text)))
                }
                Err(fault) => format!("ERR:{fault:?}"),
            };
            println!("{text}");
        }
        state.end_run();
    }
    if turns > 1 {
        println!("{:?} per run", started.elapsed() / turns as u32);
    }
    Ok(())
}
