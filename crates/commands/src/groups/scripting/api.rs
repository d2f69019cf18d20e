//! What scripts find under the names `redis` and `server`.

use russet_scripting::{Fault, RootId, State, TableRef, Value, library};

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

/// The version that scripts see, as text and as a number.
const REDIS_VERSION: (&str, f64) = ("7.2.4", 0x0007_0204 as f64);

/// Levels of the log.
const LOG_LEVELS: [(&str, f64); 4] =
    [("LOG_DEBUG", 0.0), ("LOG_VERBOSE", 1.0), ("LOG_NOTICE", 2.0), ("LOG_WARNING", 3.0)];

/// What a script may say is to be replicated.
const REPLICATION: [(&str, f64); 5] = [
    ("REPL_NONE", 0.0),
    ("REPL_AOF", 1.0),
    ("REPL_SLAVE", 2.0),
    ("REPL_REPLICA", 2.0),
    ("REPL_ALL", 3.0),
];

/// Gives a state the tables `redis` and `server`, which are one.
pub fn open(state: &mut State) -> Result<(), Fault> {
    let globals = state.globals();
    let redis = define_pair(state, globals)?;
    for (api, name) in Api::ALL {
        if api != Api::RegisterFunction {
            state.define_host(redis, name, api as u16)?;
        }
    }
    for (name, number) in REPLICATION {
        state.define_value(redis, name, Value::Number(number))?;
    }
    Ok(())
}

/// The globals of a library while it is loaded: nothing but how it registers its functions.
pub fn loading_globals(state: &mut State) -> Result<RootId, Fault> {
    let globals = state.heap_mut().table(0, 2)?;
    let redis = define_pair(state, globals)?;
    for api in [Api::RegisterFunction, Api::Log] {
        state.define_host(redis, api.name(), api as u16)?;
    }
    library::guard(state, redis)?;
    library::guard(state, globals)?;
    Ok(state.keep(Value::Table(globals)))
}

/// One table by the names `redis` and `server`, with what is always in it.
fn define_pair(state: &mut State, globals: TableRef) -> Result<TableRef, Fault> {
    let redis = state.define_table(globals, "redis")?;
    state.define_value(globals, "server", Value::Table(redis))?;
    for (name, number) in LOG_LEVELS {
        state.define_value(redis, name, Value::Number(number))?;
    }
    let (version, number) = REDIS_VERSION;
    define_text(state, redis, "REDIS_VERSION", version)?;
    state.define_value(redis, "REDIS_VERSION_NUM", Value::Number(number))?;
    define_text(state, redis, "SERVER_NAME", "russet")?;
    Ok(redis)
}

fn define_text(state: &mut State, table: TableRef, name: &str, text: &str) -> Result<(), Fault> {
    let text = state.heap_mut().string(text.as_bytes())?;
    state.define_value(table, name, Value::Str(text))
}
