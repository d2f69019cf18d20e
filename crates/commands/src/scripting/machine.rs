//! A Lua machine with the libraries of scripts, and the scripts that it has loaded.

use super::api;
use super::cache::Script;
use russet_base::{Args, Random};
use russet_scripting::state::Config;
use russet_scripting::{Fault, RootId, State, StrRef, Value, libs};
use std::collections::HashMap;

#[derive(Debug)]
pub struct Machine {
    pub state: State,
    /// By the script's number.
    loaded: HashMap<u64, RootId>,
    keys_name: StrRef,
    argv_name: StrRef,
    /// That of the cache when scripts were last let go of.
    epoch: u64,
}

impl Machine {
    pub fn new() -> Self {
        let seed = Random::from_entropy().next_u64();
        let mut state = State::new(Config { seed, ..Config::default() });
        let names = prepare(&mut state).expect("an empty state has room for its libraries");
        let (keys_name, argv_name) = names;
        Machine { state, loaded: HashMap::new(), keys_name, argv_name, epoch: 0 }
    }

    pub fn used_bytes(&self) -> usize {
        self.state.heap().used_bytes()
    }

    /// Lets go of all scripts if some were forgotten since.
    pub fn catch_up(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            for (_, root) in self.loaded.drain() {
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

    /// A table of words.
    fn words(&mut self, words: Args) -> Result<Value, Fault> {
        let heap = self.state.heap_mut();
        let table = heap.table(words.len(), 0)?;
        for (at, word) in words.iter().enumerate() {
            let word = heap.string(word)?;
            heap.set_index(table, at + 1, Value::Str(word))?;
        }
        Ok(Value::Table(table))
    }
}

/// Libraries and the names of what each run gets.
fn prepare(state: &mut State) -> Result<(StrRef, StrRef), Fault> {
    libs::open(state)?;
    api::open(state)?;
    libs::guard_globals(state)?;
    state.freeze();
    Ok((state.heap_mut().intern(b"KEYS")?, state.heap_mut().intern(b"ARGV")?))
}
