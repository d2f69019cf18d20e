//! The code that a call runs, found once: when the call is planned.

use super::cache::Script;
use super::eval::plan_script;
use super::function::{Libraries, Library};
use super::machine::Known;
use crate::node::Node;
use russet_base::Args;
use russet_catalog::Command;
use std::sync::Arc;

/// What EVAL, FCALL and their kin run. A handle of its machine's own: if all threads counted
/// references to one shared script, each would wait for the others' counting.
#[derive(Clone, Debug)]
pub enum Code {
    Script(Arc<ScriptRef>),
    Function(Arc<FunctionRef>),
}

/// A script that all machines share.
#[derive(Clone, Debug)]
pub struct ScriptRef(pub Arc<Script>);

impl std::ops::Deref for ScriptRef {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.0
    }
}

/// One function of a library.
#[derive(Clone, Debug)]
pub struct FunctionRef {
    pub library: Arc<Library>,
    pub index: usize,
}

impl Code {
    /// Whether it may reach keys that the call does not name: then it needs all shards.
    pub fn is_wide(&self) -> bool {
        match self {
            Code::Script(script) => script.is_wide,
            Code::Function(function) => function.library.functions[function.index].is_wide,
        }
    }

    /// A shard that the call needs beside those of its keys: that of a library which keeps
    /// something from call to call, so that its calls run one after the other.
    pub fn own_shard(&self) -> Option<usize> {
        match self {
            Code::Script(_) => None,
            Code::Function(function) => function.library.own.as_ref().map(|own| own.shard),
        }
    }

    /// Whether it does not say that it only reads.
    pub fn may_write(&self) -> bool {
        let flags = match self {
            Code::Script(script) => &script.flags,
            Code::Function(function) => &function.library.functions[function.index].flags,
        };
        !flags.no_writes
    }
}

/// Which kind of code a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Source,
    Digest,
    Function,
}

fn kind_of(command: Command) -> Option<Kind> {
    match command {
        Command::Eval | Command::EvalRo => Some(Kind::Source),
        Command::Evalsha | Command::EvalshaRo => Some(Kind::Digest),
        Command::Fcall | Command::FcallRo => Some(Kind::Function),
        _ => None,
    }
}

/// Whether a call runs code that does not say that it only reads.
pub fn may_write(node: &Node, command: Command, args: Args) -> bool {
    let only_reads = matches!(command, Command::EvalRo | Command::EvalshaRo | Command::FcallRo);
    let is_asked = runs_code(command) && !only_reads;
    is_asked && find(node, 0, command, args).is_none_or(|code| code.may_write())
}

/// Whether a command runs code at all.
pub fn runs_code(command: Command) -> bool {
    kind_of(command).is_some()
}

/// The code of a call, for the worker of this number. A script that is new is compiled. None if
/// there is none, or if it can't be compiled: the handler says why.
pub fn find(node: &Node, worker: usize, command: Command, args: Args) -> Option<Code> {
    let kind = kind_of(command)?;
    let name = args.get(1)?;
    let is_for_functions = kind == Kind::Function;
    let known = |known: &Known| match kind {
        Kind::Source => known.script_of(name).cloned().map(Code::Script),
        Kind::Digest => known.script(name).cloned().map(Code::Script),
        Kind::Function => known.function(name).cloned().map(Code::Function),
    };
    let scripts = &node.scripts;
    // Read first: what is found after it is of this epoch, or of a later one.
    let epoch = scripts.epoch(is_for_functions);
    if let Some(code) = scripts.ask_known(worker, is_for_functions, known) {
        return Some(code);
    }
    let code = match kind {
        Kind::Source => Code::Script(Arc::new(ScriptRef(plan_script(node, args)?))),
        Kind::Digest => Code::Script(Arc::new(ScriptRef(scripts.cache().by_sha(name)?))),
        Kind::Function => find_function(&scripts.libraries(), name)?,
    };
    scripts.make_known((worker, is_for_functions), epoch, &code);
    Some(code)
}

/// The code of a call of a transaction, whose functions are all of one moment.
pub fn find_in(
    libraries: &Libraries,
    (node, worker): (&Node, usize),
    command: Command,
    args: Args,
) -> Option<Code> {
    match kind_of(command)? {
        Kind::Function => find_function(libraries, args.get(1)?),
        Kind::Source | Kind::Digest => find(node, worker, command, args),
    }
}

fn find_function(libraries: &Libraries, name: &[u8]) -> Option<Code> {
    let (library, index) = libraries.function(name)?;
    Some(Code::Function(Arc::new(FunctionRef { library, index })))
}
