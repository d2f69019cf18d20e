//! Which keys a chunk can reach, read from its source tree.
//!
//! The analysis lists every call of `redis.call` and `redis.pcall` with what it can prove about
//! each argument: that it is an element of KEYS (of the first parameter, in a registered
//! function), or a constant. Who knows the commands compares that with their key positions.
//! Whatever could get at commands or keys in a way the list does not show (KEYS or `redis` as
//! plain values, `loadstring`, `_G`) makes the chunk wide. It errs on the wide side only.

mod facts;
mod prove;
mod walk;

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

/// What one function, or a whole chunk, can reach.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// If there is a reason, other commands than those listed may be called.
    pub wide: Option<Wide>,
    pub calls: Vec<CommandCall>,
}

/// What a chunk can reach.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeysUse {
    /// All of the chunk, as a script.
    pub chunk: Reach,
    /// The functions that it registers, as a library; by name if that stands in the source.
    pub functions: Vec<(Option<Arc<[u8]>>, Reach)>,
}

impl KeysUse {
    /// What a registered function can reach; None if the source does not show its name.
    pub fn function(&self, name: &[u8]) -> Option<&Reach> {
        let mut named = self.functions.iter().filter(|(known, _)| known.as_deref() == Some(name));
        named.next().map(|(_, reach)| reach)
    }
}

pub(crate) fn analyse(tree: &Tree) -> KeysUse {
    let facts = facts::collect(tree);
    let found = walk::walk(tree, &facts);
    found.into_use()
}

#[cfg(test)]
mod tests;
