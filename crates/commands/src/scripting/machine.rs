//! A Lua machine with the libraries of scripts, and the scripts that it has loaded.

use super::api;
use super::cache::Script;
use super::function::{Library, load};
use russet_base::{Args, Random};
use russet_scripting::state::Config;
use russet_scripting::{Chunk, Fault, RootId, State, StrRef, Value, libs};
use std::collections::HashMap;
use std::sync::LazyLock;

#[derive(Debug)]
pub struct Machine {
    pub state: State,
    /// By the script's number.
    loaded: HashMap<u64, RootId>,
    keys_name: StrRef,
    argv_name: StrRef,
    /// The globals of a library while it is loaded.
    loading_globals: RootId,
    /// The functions of the libraries that it has loaded, by the library's number.
    libraries: HashMap<u64, Vec<RootId>>,
    /// That of the cache when code was last let go of.
    epoch: u64,
    /// It runs functions, not scripts.
    pub is_for_functions: bool,
}

impl Machine {
    pub fn new(is_for_functions: bool) -> Self {
        // One for all machines: `pairs` goes the same way whichever of them runs a script.
        static SEED: LazyLock<u64> = LazyLock::new(|| Random::from_entropy().next_u64());
        let seed = *SEED;
        let mut state = State::new(Config { seed, ..Config::default() });
        let Names { keys_name, argv_name, loading_globals } =
            prepare(&mut state).expect("an empty state has room for its libraries");
        Machine {
            state,
            loaded: HashMap::new(),
            keys_name,
            argv_name,
            loading_globals,
            libraries: HashMap::new(),
            epoch: 0,
            is_for_functions,
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.state.heap().used_bytes()
    }

    /// Lets go of all scripts if some were forgotten since.
    pub fn catch_up(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            let roots = self.libraries.drain().flat_map(|(_, roots)| roots);
            for root in roots.chain(self.loaded.drain().map(|(_, root)| root)) {
                self.state.release(root);
            }
        }
    }

    /// The function that a script is.
    pub fn function(&mut self, script: &Script) -> Result<Value, Fault> {
        let root = match self.loaded.get(&script.number) {
            Some(root) => *root,
            None => {
                let globals = self.state.globals();
                let root = self.state.load(&script.chunk, globals)?;
                self.loaded.insert(script.number, root);
                root
            }
        };
        Ok(self.state.kept(root))
    }

    /// Makes KEYS and ARGV for the run that follows.
    pub fn set_words(&mut self, keys: Args, argv: Args) -> Result<(), Fault> {
        let keys = self.words(keys)?;
        self.state.set_run_global(self.keys_name, keys)?;
        let argv = self.words(argv)?;
        self.state.set_run_global(self.argv_name, argv)
    }

    /// One of a library's functions; the library is run first if this machine does not have it.
    pub fn library_function(&mut self, library: &Library, index: usize) -> Result<Value, Fault> {
        if !self.libraries.contains_key(&library.number) {
            let roots = load::register(self, &library.chunk)?;
            let roots = roots.into_iter().map(|function| function.root).collect();
            self.libraries.insert(library.number, roots);
        }
        let root = self.libraries.get(&library.number).and_then(|roots| roots.get(index));
        Ok(root.map_or(Value::Nil, |root| self.state.kept(*root)))
    }

    /// Loads a library's code, which sees little of its globals until `finish_library`.
    pub fn begin_library(&mut self, chunk: &Chunk) -> Result<RootId, Fault> {
        match self.state.kept(self.loading_globals) {
            Value::Table(globals) => self.state.load(chunk, globals),
            _ => unreachable!("the globals of libraries are kept for good"),
        }
    }

    /// What was run: its functions find all globals from now on.
    pub fn finish_library(&mut self, main: RootId) {
        let globals = self.state.globals();
        self.state.set_globals(main, globals);
        self.state.release(main);
    }

    /// A table of words.
    pub fn words(&mut self, words: Args) -> Result<Value, Fault> {
        let heap = self.state.heap_mut();
        let table = heap.table(words.len(), 0)?;
        for (at, word) in words.iter().enumerate() {
            let word = heap.string(word)?;
            heap.set_index(table, at + 1, Value::Str(word))?;
        }
        Ok(Value::Table(table))
    }
}

/// What a machine finds again in its state.
struct Names {
    keys_name: StrRef,
    argv_name: StrRef,
    loading_globals: RootId,
}

/// Libraries and the names of what each run gets.
fn prepare(state: &mut State) -> Result<Names, Fault> {
    libs::open(state)?;
    api::open(state)?;
    libs::guard_globals(state)?;
    let loading_globals = api::loading_globals(state)?;
    state.freeze();
    let heap = state.heap_mut();
    let (keys_name, argv_name) = (heap.intern(b"KEYS")?, heap.intern(b"ARGV")?);
    Ok(Names { keys_name, argv_name, loading_globals })
}
