//! Functions: libraries of Lua code that are loaded once and called by name.
//!
//! A library is compiled once; each machine that runs one of its functions runs the library first,
//! to have its functions registered there. So variables of a library are each machine's own.
//! DIFFERS: in Redis there is one machine, and a library's variables are shared by all its calls.

mod call;
mod dump;
mod edit;
mod list;
pub mod load;

pub use call::{fcall, fcall_ro};
pub use dump::{dump, restore};
pub use edit::{delete, flush, kill, load as load_command};
pub use list::{list, stats};

use super::cache::RunStats;
use super::shebang::ScriptFlags;
use russet_scripting::Chunk;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Names the library in every machine that has loaded it.
    pub number: u64,
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
