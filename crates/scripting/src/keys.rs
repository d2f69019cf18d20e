//! Which keys a chunk can reach, read from its source tree.
//!
//! The analysis lists every call of `redis.call` and `redis.pcall` with what it can prove about
//! each argument: that it is an element of KEYS (of the first parameter, in a registered
//! function), or a constant. Who knows the commands compares that with their key positions.
//! Whatever could get at commands or keys in a way the list does not show (KEYS or `redis` as
//! plain values, `loadstring`, `_G`) makes the chunk wide. It errs on the wide side only.
//!
//! `facts` collects what each variable may hold and how each function is called, `prove` decides
//! what variables hold whenever they are read, `walk` lists the calls. `lasting` says whether a
//! library keeps something from call to call. Each takes time in proportion to the text.

mod facts;
mod lasting;
mod prove;
#[cfg(test)]
mod tests;
mod walk;

use crate::meter::Meter;
use crate::syntax::SyntaxError;
use crate::syntax::tree::Tree;
use std::sync::Arc;

/// Why the list of calls is not the whole truth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wide {
    /// KEYS is passed on, stored or changed.
    KeysEscape,
    /// `redis`, `redis.call` or `redis.pcall` is passed on or stored.
    RedisEscapes,
    /// A field of `redis` whose name is made at run time.
    RedisIndexed,
    /// `load` or `loadstring`.
    LoadsCode,
    /// `_G`.
    GlobalsTable,
}

impl Wide {
    pub fn text(self) -> &'static str {
        match self {
            Wide::KeysEscape => "KEYS is passed on, stored or changed",
            Wide::RedisEscapes => "redis.call is passed on or stored",
            Wide::RedisIndexed => "a field of redis is named at run time",
            Wide::LoadsCode => "it loads code",
            Wide::GlobalsTable => "it uses _G",
        }
    }
}

/// What is known of an argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// An element of KEYS, or nil.
    Key,
    Constant(Arc<[u8]>),
    Unknown,
}

/// What follows the listed arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    Nothing,
    /// Any number of elements of KEYS: `unpack(KEYS)`.
    Keys,
    Unknown,
}

/// One call of a command in the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandCall {
    pub line: u32,
    /// The first is the name of the command.
    pub args: Vec<Argument>,
    pub rest: Rest,
}

impl CommandCall {
    /// The command's name, if it stands in the source.
    pub fn command(&self) -> Option<&[u8]> {
        match self.args.first() {
            Some(Argument::Constant(name)) => Some(name),
            _ => None,
        }
    }
}

/// What the code of one function does by itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionUse {
    /// If there is a reason, other commands than those listed may be called.
    pub wide: Option<Wide>,
    pub calls: Vec<CommandCall>,
    /// Functions that it calls by name.
    runs: Vec<u32>,
    /// A value that is kept or passed on: any function of the chunk may run it.
    is_loose: bool,
}

/// What a chunk can reach.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeysUse {
    /// By the number of the function; 0 is the chunk itself.
    functions: Vec<FunctionUse>,
    /// Its functions may change what outlives their calls.
    keeps_state: bool,
}

impl KeysUse {
    /// Whether a function of the library may change a variable of the library, or a table that was
    /// made when it was loaded, so that a later call can tell.
    pub fn keeps_state(&self) -> bool {
        self.keeps_state
    }

    /// Whether the chunk, run as a script, calls nothing but what passes.
    pub fn script_is_narrow(&self, passes: &dyn Fn(&CommandCall) -> bool) -> bool {
        self.functions.iter().all(|function| function.is_narrow(passes))
    }

    /// For each function, by its number, whether it and all that it may run call nothing but what
    /// passes.
    pub fn narrow_functions(&self, passes: &dyn Fn(&CommandCall) -> bool) -> Vec<bool> {
        let mut narrow: Vec<bool> =
            self.functions.iter().map(|function| function.is_narrow(passes)).collect();
        let mut callers = vec![Vec::new(); self.functions.len()];
        for (caller, function) in self.functions.iter().enumerate() {
            for callee in &function.runs {
                callers[*callee as usize].push(caller);
            }
        }
        let mut todo: Vec<usize> = (0..narrow.len()).filter(|number| !narrow[*number]).collect();
        while let Some(number) = todo.pop() {
            let wide_now = callers[number].iter().filter(|caller| narrow[**caller]);
            let wide_now: Vec<usize> = wide_now.copied().collect();
            for caller in wide_now {
                if std::mem::take(&mut narrow[caller]) {
                    todo.push(caller);
                }
            }
        }
        let mut with_verdict = self.functions.iter().zip(&narrow);
        if with_verdict.any(|(function, is_narrow)| function.is_loose && !is_narrow) {
            narrow.fill(false);
        }
        narrow
    }

    #[cfg(test)]
    fn wide(&self) -> Option<Wide> {
        self.functions.iter().find_map(|function| function.wide)
    }
}

impl FunctionUse {
    fn is_narrow(&self, passes: &dyn Fn(&CommandCall) -> bool) -> bool {
        self.wide.is_none() && self.calls.iter().all(passes)
    }
}

/// Reads a chunk that is a library, or else a script.
pub(crate) fn analyse(
    tree: &Tree,
    is_library: bool,
    meter: &Meter<'_>,
) -> Result<KeysUse, SyntaxError> {
    let facts = facts::collect(tree, is_library, meter);
    let proofs = prove::prove(&facts, tree, meter);
    let functions = walk::walk(tree, &facts, &proofs, meter);
    let keeps_state = is_library && lasting::may_change(&facts, tree, meter);
    // Each of them returns early once the compilation is ended.
    meter.check()?;
    Ok(KeysUse { functions, keeps_state })
}
