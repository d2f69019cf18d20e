//! A Lua machine with the libraries of scripts, what it has loaded, and the scripts and functions
//! that it has run: those it finds again without asking what all threads share.

use super::api;
use super::cache::Script;
use super::code::{Code, FunctionRef, ScriptRef};
use super::function::{Library, load};
use russet_base::hash::KeyHasher;
use russet_base::{Args, OwnedArgs, Random};
use russet_scripting::state::Config;
use russet_scripting::{Chunk, Fault, RootId, State, StrRef, TableRef, Value, library};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock};

#[derive(Debug)]
pub struct Machine {
    pub lua: Lua,
    pub known: Known,
    /// That of the cache, or of the libraries, when code was last let go of.
    pub epoch: u64,
    /// It runs functions, not scripts.
    pub is_for_functions: bool,
}

impl Machine {
    pub fn new(is_for_functions: bool) -> Self {
        let (lua, known) = (Lua::new(), Known::default());
        Machine { lua, known, epoch: 0, is_for_functions }
    }

    /// Lets go of all code if some was forgotten since.
    pub fn catch_up(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.known.forget();
            self.lua.release_all();
        }
    }
}

/// Room for the arguments of commands that a machine keeps from run to run.
const ARGS_BYTES_KEPT_MAX: usize = 64 << 10;

/// The Lua side of a machine.
#[derive(Debug)]
pub struct Lua {
    pub state: State,
    /// By the script's number.
    loaded: Numbered<RootId>,
    keys_name: StrRef,
    argv_name: StrRef,
    /// The globals of a library while it is loaded.
    loading_globals: RootId,
    /// The functions of the libraries that it has loaded, by the library's number.
    libraries: Numbered<Vec<RootId>>,
    /// Room for the arguments of the commands that scripts call.
    pub command_args: OwnedArgs,
}

impl Lua {
    pub fn new() -> Self {
        // One for all machines: `pairs` goes the same way whichever of them runs a script.
        static SEED: LazyLock<u64> = LazyLock::new(|| Random::from_entropy().next_u64());
        let mut state = State::new(Config { seed: *SEED, ..Config::default() });
        let Names { keys_name, argv_name, loading_globals } =
            prepare(&mut state).expect("an empty state has room for its libraries");
        Lua {
            state,
            loaded: Numbered::default(),
            keys_name,
            argv_name,
            loading_globals,
            libraries: Numbered::default(),
            command_args: OwnedArgs::default(),
        }
    }

    /// Ends a run, and gives back what a large one left behind.
    pub fn end_run(&mut self) {
        if self.command_args.memory_bytes() > ARGS_BYTES_KEPT_MAX {
            self.command_args = OwnedArgs::default();
        }
        self.state.end_run();
    }

    fn release_all(&mut self) {
        let roots = self.libraries.drain().flat_map(|(_, roots)| roots);
        for root in roots.chain(self.loaded.drain().map(|(_, root)| root)) {
            self.state.release(root);
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
    pub fn set_keys_and_argv(&mut self, keys: Args, argv: Args) -> Result<(), Fault> {
        let keys = self.args_table(keys)?;
        self.state.set_run_global(self.keys_name, keys)?;
        let argv = self.args_table(argv)?;
        self.state.set_run_global(self.argv_name, argv)
    }

    /// One of a library's functions; the library is run first if this machine does not have it.
    pub fn library_function(&mut self, library: &Library, index: usize) -> Result<Value, Fault> {
        if !self.libraries.contains_key(&library.number) {
            let roots = load::register(self, &library.chunk)?;
            let roots = roots.into_iter().map(|function| function.root).collect();
            self.add_library(library.number, roots);
        }
        let root = self.libraries.get(&library.number).and_then(|roots| roots.get(index));
        Ok(root.map_or(Value::Nil, |root| self.state.kept(*root)))
    }

    /// The functions of a library that was run here.
    pub fn add_library(&mut self, number: u64, functions: Vec<RootId>) {
        self.libraries.insert(number, functions);
    }

    fn loading_globals(&self) -> TableRef {
        match self.state.kept(self.loading_globals) {
            Value::Table(globals) => globals,
            _ => unreachable!("the globals of libraries are kept for good"),
        }
    }

    /// Loads a library's code, which sees little of its globals until `finish_library`.
    pub fn begin_library(&mut self, chunk: &Chunk) -> Result<RootId, Fault> {
        self.state.load(chunk, self.loading_globals())
    }

    /// Loads a library's code for one run, with which it goes.
    pub fn library_for_run(&mut self, chunk: &Chunk) -> Result<Value, Fault> {
        self.state.load_for_run(chunk, self.loading_globals()).map(Value::Function)
    }

    /// What was run: its functions find all globals from now on.
    pub fn finish_library(&mut self, main: RootId) {
        let globals = self.state.globals();
        self.state.set_globals(main, globals);
        self.state.release(main);
    }

    /// A table of arguments.
    pub fn args_table(&mut self, args: Args) -> Result<Value, Fault> {
        let table = self.state.heap_mut().list_of_strings(args.iter())?;
        Ok(Value::Table(table))
    }
}

/// What a machine has run: found by the arguments of the call alone.
#[derive(Debug)]
pub struct Known {
    hasher: KeyHasher,
    /// By the hash of the digest, as it is written in small letters.
    scripts: Numbered<Arc<ScriptRef>>,
    /// The same by the hash of the source.
    sources: Numbered<Arc<ScriptRef>>,
    /// By the hash of the name, as the library writes it.
    functions: Numbered<Arc<FunctionRef>>,
}

impl Default for Known {
    fn default() -> Self {
        let hasher = KeyHasher::with_seed(Random::from_entropy().next_u64());
        Known {
            hasher,
            scripts: Numbered::default(),
            sources: Numbered::default(),
            functions: Numbered::default(),
        }
    }
}

impl Known {
    fn forget(&mut self) {
        self.scripts.clear();
        self.sources.clear();
        self.functions.clear();
    }

    pub fn script(&self, sha: &[u8]) -> Option<&Arc<ScriptRef>> {
        let found = self.scripts.get(&self.hasher.hash(sha));
        found.filter(|script| script.sha == *sha)
    }

    pub fn script_of(&self, source: &[u8]) -> Option<&Arc<ScriptRef>> {
        let found = self.sources.get(&self.hasher.hash(source));
        found.filter(|script| *script.source == *source)
    }

    pub fn function(&self, name: &[u8]) -> Option<&Arc<FunctionRef>> {
        let found = self.functions.get(&self.hasher.hash(name));
        found.filter(|found| found.library.functions[found.index].name == name)
    }

    pub fn add(&mut self, code: &Code) {
        match code {
            Code::Script(script) => {
                self.sources.insert(self.hasher.hash(&script.source), script.clone());
                self.scripts.insert(self.hasher.hash(&script.sha), script.clone());
            }
            Code::Function(function) => {
                let name = &function.library.functions[function.index].name;
                self.functions.insert(self.hasher.hash(name), function.clone());
            }
        }
    }
}

/// By a number that is as good as random, or counted up.
type Numbered<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

#[derive(Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
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
    library::open(state)?;
    api::open(state)?;
    library::guard_globals(state)?;
    let loading_globals = api::loading_globals(state)?;
    state.freeze();
    let heap = state.heap_mut();
    let (keys_name, argv_name) = (heap.intern(b"KEYS")?, heap.intern(b"ARGV")?);
    Ok(Names { keys_name, argv_name, loading_globals })
}
