//! Functions: libraries of Lua code that are loaded once and called by name.
//!
//! A library is compiled once; each machine that runs one of its functions runs the library first,
//! to have its functions registered there. A library whose functions may change its variables has
//! one interpreter for all calls, and its calls run one after the other (`OwnInterpreter`).

mod call;
mod dump;
mod edit;
mod list;
pub mod load;

pub use call::{fcall, fcall_ro};
pub use dump::{dump, restore};
pub use edit::{check_saved, delete, flush, kill, load as load_command, load_saved};
pub use list::{list, stats};

use super::cache::RunStats;
use super::machine::Lua;
use super::run::memory_max;
use super::shebang::ScriptFlags;
use crate::call::ctx::{Ctx, Outcome};
use russet_scripting::Chunk;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One function of a library.
#[derive(Debug)]
pub struct Function {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    pub flags: ScriptFlags,
    /// It may reach keys that its caller does not name.
    pub is_wide: bool,
    pub stats: RunStats,
}

#[derive(Debug)]
pub struct Library {
    pub name: Vec<u8>,
    pub source: Vec<u8>,
    pub chunk: Chunk,
    pub functions: Vec<Function>,
    /// What its source and its code take up.
    pub memory_bytes: usize,
    /// Names the library in every machine that has loaded it.
    pub number: u64,
    /// Where all its calls run, if they may change its variables.
    pub own: Option<OwnInterpreter>,
}

/// The interpreter of a library that keeps something from call to call. It ends with the library.
///
/// Calls never wait for it: each holds one fixed shard, which is planned and locked together with
/// those of its keys.
#[derive(Debug)]
pub struct OwnInterpreter {
    pub shard: usize,
    lua: Mutex<Box<Lua>>,
}

impl OwnInterpreter {
    pub fn new(shard: usize, lua: Lua) -> Self {
        OwnInterpreter { shard, lua: Mutex::new(Box::new(lua)) }
    }

    pub fn run(
        &self,
        ctx: &mut Ctx,
        action: impl FnOnce(&mut Ctx, &mut Lua) -> Outcome,
    ) -> Outcome {
        debug_assert!(ctx.keys.held().contains(self.shard), "its shard was planned by its code");
        let mut lua = self.lua.lock().unwrap_or_else(|poison| poison.into_inner());
        lua.state.set_memory_max(memory_max(ctx.node));
        action(ctx, &mut lua)
    }
}

impl Library {
    fn next_number() -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }
}

/// All libraries.
#[derive(Clone, Debug, Default)]
pub struct Libraries {
    by_name: BTreeMap<Vec<u8>, Arc<Library>>,
    /// By name in small letters: the case of a function's name does not count.
    functions: HashMap<Vec<u8>, (Arc<Library>, usize)>,
    /// Changes when libraries go: machines then let go of theirs.
    pub epoch: u64,
}

impl Libraries {
    pub fn function(&self, name: &[u8]) -> Option<(Arc<Library>, usize)> {
        self.functions.get(&name.to_ascii_lowercase()).cloned()
    }

    pub fn has(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.by_name.values()
    }

    pub fn counts(&self) -> (usize, usize) {
        (self.by_name.len(), self.functions.len())
    }

    /// The first of a library's functions that another library has, too.
    pub fn clash(&self, library: &Library) -> Option<Vec<u8>> {
        let taken = |name: &Vec<u8>| {
            let owner = self.functions.get(&name.to_ascii_lowercase());
            owner.is_some_and(|(owner, _)| owner.name != library.name)
        };
        library.functions.iter().map(|function| &function.name).find(|name| taken(name)).cloned()
    }

    /// Adds a library in place of one of the same name.
    pub fn put(&mut self, library: Library) {
        self.remove(&library.name.clone());
        let library = Arc::new(library);
        for (at, function) in library.functions.iter().enumerate() {
            self.functions.insert(function.name.to_ascii_lowercase(), (library.clone(), at));
        }
        self.by_name.insert(library.name.clone(), library);
    }

    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(library) = self.by_name.remove(name) else { return false };
        for function in &library.functions {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        self.epoch += 1;
        true
    }

    pub fn clear(&mut self) {
        *self = Libraries { epoch: self.epoch + 1, ..Libraries::default() };
    }
}
