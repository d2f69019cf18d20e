//! Scripts: EVAL and its kin, SCRIPT, and what runs them.
//!
//! A script is compiled once for the whole process (`cache`). It runs on a Lua machine from a pool
//! (`machine`), which asks `host` for everything that is not Lua; replies turn into Lua values in
//! `sink` and back in `reply`. `running` knows what runs now, for those who wait for it or want to
//! end it.
//!
//! Which shards a script holds is decided before it starts: those of its KEYS if its code proves
//! that it reaches no other key, else all of them. So a script never waits for a lock half-way.

pub(crate) mod api;
mod cache;
mod eval;
pub mod function;
mod host;
mod machine;
mod reach;
mod reply;
mod run;
pub mod running;
mod script;
mod shebang;
mod sink;

pub use eval::{eval, eval_ro, evalsha, evalsha_ro};
pub use script::{BUSY_FUNCTION, BUSY_SCRIPT, debug, exists, flush, kill, load, show, stats};

use crate::node::Node;
use cache::Cache;
use function::Libraries;
use machine::Machine;
use running::Running;
use russet_base::Args;
use russet_catalog::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Boxed: a machine is large, and is taken and given for every run.
type Idle = Vec<Box<Machine>>;

/// All that the process knows about scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    cache: RwLock<Cache>,
    pub(crate) libraries: RwLock<Libraries>,
    /// Machines that nobody uses now: as many as have ever been in use at once.
    machines: Mutex<Idle>,
    pub running: Running,
    /// Runs that held only the shards of their keys, and runs that held all.
    pub narrow_runs: AtomicU64,
    pub wide_runs: AtomicU64,
    /// Keys that scripts used without having been given them; counted if somebody asks for it.
    pub undeclared_keys: AtomicU64,
    /// Scripts may call DEBUG: for tests.
    pub may_debug: AtomicBool,
}

/// Bytes of Lua machines and of the sources that they run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptMemory {
    pub vm_eval: usize,
    pub vm_functions: usize,
    pub scripts: usize,
    pub libraries: usize,
}

/// Machines that are kept for the next script.
const MACHINES_KEPT_MAX: usize = 64;

/// Whether a call runs code that does not say that it only reads.
pub(crate) fn may_write(node: &Node, command: Command, args: Args) -> bool {
    let reads = match command {
        Command::Eval => shebang::parse(args.at(1)).ok().map(|(flags, _)| flags.no_writes),
        Command::Evalsha => {
            node.scripts.cache().by_sha(args.at(1)).map(|script| script.flags.no_writes)
        }
        Command::Fcall => {
            let found = node.scripts.libraries().function(args.at(1));
            found.map(|(library, index)| library.functions[index].flags.no_writes)
        }
        _ => Some(true),
    };
    !reads.unwrap_or(false)
}

impl Scripts {
    fn cache(&self) -> RwLockReadGuard<'_, Cache> {
        self.cache.read().unwrap_or_else(|poison| poison.into_inner())
    }

    fn cache_mut(&self) -> RwLockWriteGuard<'_, Cache> {
        self.cache.write().unwrap_or_else(|poison| poison.into_inner())
    }

    fn machines(&self) -> MutexGuard<'_, Idle> {
        self.machines.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn take_machine(&self, is_for_functions: bool) -> Box<Machine> {
        let mut machines = self.machines();
        let found = machines.iter().rposition(|idle| idle.is_for_functions == is_for_functions);
        let idle = found.map(|at| machines.swap_remove(at));
        drop(machines);
        let mut machine = idle.unwrap_or_else(|| Box::new(Machine::new(is_for_functions)));
        machine.catch_up(match is_for_functions {
            true => self.libraries().epoch,
            false => self.cache().epoch,
        });
        machine
    }

    pub(crate) fn libraries(&self) -> RwLockReadGuard<'_, Libraries> {
        self.libraries.read().unwrap_or_else(|poison| poison.into_inner())
    }

    pub(crate) fn libraries_mut(&self) -> RwLockWriteGuard<'_, Libraries> {
        self.libraries.write().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Lets go of the machines that nobody uses, with all that they have loaded.
    pub(crate) fn drop_machines(&self, is_for_functions: bool) {
        self.machines().retain(|idle| idle.is_for_functions != is_for_functions);
    }

    fn give_machine(&self, machine: Box<Machine>) {
        let mut machines = self.machines();
        if machines.len() < MACHINES_KEPT_MAX {
            machines.push(machine);
        }
    }

    /// Scripts in the cache, and the bytes of their sources.
    pub fn cached(&self) -> (usize, usize) {
        let cache = self.cache();
        (cache.len(), cache.source_bytes())
    }

    /// Scripts that made room for newer ones.
    pub fn evicted(&self) -> u64 {
        self.cache().evicted
    }

    /// What scripts take, for INFO. Machines that are in use now are not counted.
    pub fn memory(&self) -> ScriptMemory {
        let of_machines = |is_for_functions: bool| {
            let machines = self.machines();
            let idle = machines.iter().filter(|idle| idle.is_for_functions == is_for_functions);
            idle.map(|machine| machine.used_bytes()).sum()
        };
        ScriptMemory {
            vm_eval: of_machines(false),
            vm_functions: of_machines(true),
            scripts: self.cached().1,
            libraries: self.libraries().iter().map(|library| library.source.len()).sum(),
        }
    }

    fn count_run(&self, is_wide: bool) {
        let counter = if is_wide { &self.wide_runs } else { &self.narrow_runs };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether this call runs a script that may reach keys which it does not name: then it needs all
/// shards. A script that is new is compiled here, for the answer is in its code.
pub(crate) fn runs_wide(node: &Node, command: Command, args: Args) -> bool {
    match command {
        Command::Eval | Command::EvalRo => {
            let script = args.get(1).and_then(|source| eval::find_or_compile(node, source).ok());
            script.is_some_and(|script| script.is_wide)
        }
        Command::Evalsha | Command::EvalshaRo => {
            let script = args.get(1).and_then(|sha| node.scripts.cache().by_sha(sha));
            script.is_some_and(|script| script.is_wide)
        }
        Command::Fcall | Command::FcallRo => {
            let found = args.get(1).and_then(|name| node.scripts.libraries().function(name));
            found.is_some_and(|(library, index)| library.functions[index].is_wide)
        }
        _ => false,
    }
}

/// Whether this call names a script or function that nobody has loaded yet.
pub(crate) fn is_unknown(node: &Node, command: Command, args: Args) -> bool {
    let Some(name) = args.get(1) else { return false };
    match command {
        Command::Evalsha | Command::EvalshaRo => node.scripts.cache().by_sha(name).is_none(),
        Command::Fcall | Command::FcallRo => node.scripts.libraries().function(name).is_none(),
        _ => false,
    }
}
