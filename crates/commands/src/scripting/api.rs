//! What scripts find under the names `redis` and `server`.

use russet_scripting::{Fault, State, TableRef, Value};

/// The functions that the host answers for, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Api {
    Call,
    Pcall,
    ErrorReply,
    StatusReply,
    Sha1Hex,
    Log,
    SetResp,
    SetRepl,
    ReplicateCommands,
    Breakpoint,
    Debug,
    AclCheckCmd,
    RegisterFunction,
}

impl Api {
    const ALL: [(Api, &'static str); 13] = [
        (Api::Call, "call"),
        (Api::Pcall, "pcall"),
        (Api::ErrorReply, "error_reply"),
        (Api::StatusReply, "status_reply"),
        (Api::Sha1Hex, "sha1hex"),
        (Api::Log, "log"),
        (Api::SetResp, "setresp"),
        (Api::SetRepl, "set_repl"),
        (Api::ReplicateCommands, "replicate_commands"),
        (Api::Breakpoint, "breakpoint"),
        (Api::Debug, "debug"),
        (Api::AclCheckCmd, "acl_check_cmd"),
        (Api::RegisterFunction, "register_function"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub fn of(number: u16) -> Option<Api> {
        Self::ALL.get(usize::from(number)).map(|(api, _)| *api)
    }
}

/// The version that scripts are told, as text and as a number.
const REDIS_VERSION: (&str, f64) = ("7.2.4", 0x0007_0204 as f64);

const NUMBERS: [(&str, f64); 9] = [
    ("LOG_DEBUG", 0.0),
    ("LOG_VERBOSE", 1.0),
    ("LOG_NOTICE", 2.0),
    ("LOG_WARNING", 3.0),
    ("REPL_NONE", 0.0),
    ("REPL_AOF", 1.0),
    ("REPL_SLAVE", 2.0),
    ("REPL_REPLICA", 2.0),
    ("REPL_ALL", 3.0),
];

/// Gives a state the tables `redis` and `server`, which are one.
pub fn open(state: &mut State, is_for_functions: bool) -> Result<(), Fault> {
    let globals = state.globals();
    let redis = state.define_table(globals, "redis")?;
    state.define_value(globals, "server", Value::Table(redis))?;
    for (api, name) in Api::ALL {
        if is_for_functions || api != Api::RegisterFunction {
            state.define_host(redis, name, api as u16)?;
        }
    }
    for (name, number) in NUMBERS {
        state.define_value(redis, name, Value::Number(number))?;
    }
    let (version, number) = REDIS_VERSION;
    define_text(state, redis, "REDIS_VERSION", version)?;
    state.define_value(redis, "REDIS_VERSION_NUM", Value::Number(number))?;
    define_text(state, redis, "SERVER_NAME", "russet")
}

fn define_text(state: &mut State, table: TableRef, name: &str, text: &str) -> Result<(), Fault> {
    let text = state.heap_mut().string(text.as_bytes())?;
    state.define_value(table, name, Value::Str(text))
}
