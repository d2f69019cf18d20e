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
mod changes;
pub(crate) mod code;
mod compiling;
mod eval;
pub mod function;
mod host;
mod key_use;
mod machine;
pub(crate) mod once;
mod reply;
mod run;
pub mod running;
mod script;
mod shebang;
mod sink;

pub use eval::{eval, eval_ro, evalsha, evalsha_ro};
pub use script::{BUSY_FUNCTION, BUSY_SCRIPT, debug, exists, flush, kill, load, show, stats};

use cache::{Cache, Script};
use changes::Changes;
use code::Code;
use compiling::RefusedScripts;
use function::Libraries;
use machine::{Known, Lua, Machine};
use running::Running;
use russet_catalog::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, Weak};

/// Boxed: a machine is large, and is taken and given for every run.
type Idle = Vec<Box<Machine>>;

/// The machines that one worker used last, one for scripts and one for functions. They wait on
/// lines of memory of their own: no other worker's runs slow this one's down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerSlot(Mutex<[Option<Box<Machine>>; 2]>);

impl WorkerSlot {
    fn lock(&self) -> MutexGuard<'_, [Option<Box<Machine>>; 2]> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Workers beyond so many share slots with others.
const SLOTS: usize = 64;

/// The bytes that a machine holds; gone with the machine.
#[derive(Debug)]
struct Gauge {
    bytes: Weak<AtomicUsize>,
    is_for_functions: bool,
}

/// All that the process knows about scripts.
#[derive(Debug)]
pub struct Scripts {
    cache: RwLock<Cache>,
    /// Changes when scripts are forgotten: machines then let go of theirs.
    cache_epoch: AtomicU64,
    libraries: RwLock<Arc<Libraries>>,
    /// Changes when libraries are forgotten.
    libraries_epoch: AtomicU64,
    /// When they were last changed, for those whose reply shows them.
    pub(crate) changes: Changes,
    /// Those that were planned and could not be compiled.
    refused: RefusedScripts,
    slots: Box<[WorkerSlot]>,
    /// Machines that found no place on a slot.
    machines: Mutex<Idle>,
    /// What each machine holds, also while it runs.
    gauges: Mutex<Vec<Gauge>>,
    /// Bytes of the sources of scripts and of libraries.
    script_bytes: AtomicUsize,
    library_bytes: AtomicUsize,
    pub running: Running,
    /// Keys that scripts used without having been given them; counted if somebody asks for it.
    pub undeclared_keys: AtomicU64,
    /// Scripts may call DEBUG: for tests.
    pub may_debug: AtomicBool,
}

impl Default for Scripts {
    fn default() -> Self {
        Scripts {
            cache: RwLock::default(),
            cache_epoch: AtomicU64::new(0),
            libraries: RwLock::default(),
            libraries_epoch: AtomicU64::new(0),
            changes: Changes::default(),
            refused: RefusedScripts::default(),
            slots: (0..SLOTS).map(|_| WorkerSlot::default()).collect(),
            machines: Mutex::default(),
            gauges: Mutex::default(),
            script_bytes: AtomicUsize::new(0),
            library_bytes: AtomicUsize::new(0),
            running: Running::default(),
            undeclared_keys: AtomicU64::new(0),
            may_debug: AtomicBool::new(false),
        }
    }
}

/// Bytes of Lua machines, which are no part of `used_memory`, and of the sources and the code that
/// they run, which are.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptMemory {
    pub vm_eval: usize,
    pub vm_functions: usize,
    pub scripts: usize,
    pub libraries: usize,
}

/// The shard that whoever changes functions holds: so changes are recorded in their order, and a
/// transaction that changes functions, which holds all shards, is alone with them.
pub(crate) const REGISTRY_SHARD: usize = 0;

/// Machines that are kept for the next script.
const MACHINES_KEPT_MAX: usize = 64;

impl Scripts {
    fn cache(&self) -> RwLockReadGuard<'_, Cache> {
        self.cache.read().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Adds a script, which may make an older one be forgotten: see [`Cache::add`].
    fn add_script(&self, script: Arc<Script>, evictable_at: Option<u64>) -> Arc<Script> {
        let mut cache = self.cache.write().unwrap_or_else(|poison| poison.into_inner());
        let script = cache.add(script, evictable_at);
        self.script_bytes.store(cache.memory_bytes(), Ordering::Relaxed);
        self.cache_epoch.store(cache.epoch, Ordering::Release);
        script
    }

    fn forget_scripts(&self) {
        let mut cache = self.cache.write().unwrap_or_else(|poison| poison.into_inner());
        cache.clear();
        self.script_bytes.store(cache.memory_bytes(), Ordering::Relaxed);
        self.cache_epoch.store(cache.epoch, Ordering::Release);
    }

    /// All libraries, as they are now.
    pub(crate) fn libraries(&self) -> RwLockReadGuard<'_, Arc<Libraries>> {
        self.libraries.read().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Changes the libraries, which may make some be forgotten.
    pub(crate) fn change_libraries<R>(&self, change: impl FnOnce(&mut Libraries) -> R) -> R {
        let mut libraries = self.libraries.write().unwrap_or_else(|poison| poison.into_inner());
        let result = change(Arc::make_mut(&mut libraries));
        let bytes = libraries.iter().map(|library| library.memory_bytes).sum();
        self.library_bytes.store(bytes, Ordering::Relaxed);
        self.libraries_epoch.store(libraries.epoch, Ordering::Release);
        result
    }

    fn epoch(&self, is_for_functions: bool) -> u64 {
        let epoch = if is_for_functions { &self.libraries_epoch } else { &self.cache_epoch };
        epoch.load(Ordering::Acquire)
    }

    /// Leaves no library.
    pub(crate) fn remove_libraries(&self) {
        self.change_libraries(Libraries::clear);
        self.drop_machines(true);
    }

    /// Lets go of the machines that nobody uses, with all that they have loaded.
    pub(crate) fn drop_machines(&self, is_for_functions: bool) {
        for slot in &self.slots {
            slot.lock()[usize::from(is_for_functions)] = None;
        }
        self.machines().retain(|idle| idle.is_for_functions != is_for_functions);
    }

    fn slot(&self, worker: usize) -> &WorkerSlot {
        &self.slots[worker % SLOTS]
    }

    fn machines(&self) -> MutexGuard<'_, Idle> {
        self.machines.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn take_machine(&self, worker: usize, is_for_functions: bool) -> Box<Machine> {
        let own = self.slot(worker).lock()[usize::from(is_for_functions)].take();
        let mut machine = own.unwrap_or_else(|| self.spare_machine(is_for_functions));
        machine.catch_up(self.epoch(is_for_functions));
        machine
    }

    #[cold]
    fn spare_machine(&self, is_for_functions: bool) -> Box<Machine> {
        let mut machines = self.machines();
        let found = machines.iter().rposition(|idle| idle.is_for_functions == is_for_functions);
        let idle = found.map(|at| machines.swap_remove(at));
        drop(machines);
        idle.unwrap_or_else(|| {
            let machine = Box::new(Machine::new(is_for_functions));
            self.count_memory_of(&machine.lua, is_for_functions);
            machine
        })
    }

    /// An interpreter for a library that is being loaded, with its bound of memory.
    fn new_lua(&self, memory_bytes_max: usize) -> Lua {
        let mut lua = Lua::new();
        lua.state.set_memory_max(memory_bytes_max);
        self.count_memory_of(&lua, true);
        lua
    }

    /// From now on INFO reports what this machine holds.
    fn count_memory_of(&self, lua: &Lua, is_for_functions: bool) {
        let bytes = Arc::downgrade(&lua.state.gauge());
        let mut gauges = self.gauges();
        if gauges.len() == gauges.capacity() {
            gauges.retain(|gauge| gauge.bytes.strong_count() > 0);
        }
        gauges.push(Gauge { bytes, is_for_functions });
    }

    fn gauges(&self) -> MutexGuard<'_, Vec<Gauge>> {
        self.gauges.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Bytes of the machines that run scripts, and of those that run functions.
    fn machine_bytes(&self) -> (usize, usize) {
        let (mut scripts, mut functions) = (0, 0);
        self.gauges().retain(|gauge| {
            let Some(bytes) = gauge.bytes.upgrade() else { return false };
            let sum = if gauge.is_for_functions { &mut functions } else { &mut scripts };
            *sum += bytes.load(Ordering::Relaxed);
            true
        });
        (scripts, functions)
    }

    fn give_machine(&self, worker: usize, machine: Box<Machine>) {
        let mut slot = self.slot(worker).lock();
        let kept = &mut slot[usize::from(machine.is_for_functions)];
        if kept.is_none() {
            *kept = Some(machine);
            return;
        }
        drop(slot);
        let mut machines = self.machines();
        if machines.len() < MACHINES_KEPT_MAX {
            machines.push(machine);
        }
    }

    /// Asks the machine that waits for this worker about what it has run before; nothing if some
    /// code was forgotten since.
    fn ask_known<R>(
        &self,
        worker: usize,
        is_for_functions: bool,
        ask: impl FnOnce(&Known) -> Option<R>,
    ) -> Option<R> {
        let slot = self.slot(worker).lock();
        let machine = slot[usize::from(is_for_functions)].as_ref()?;
        let is_up_to_date = machine.epoch == self.epoch(is_for_functions);
        is_up_to_date.then(|| ask(&machine.known)).flatten()
    }

    /// Has the machine that waits for this worker find some code again by itself. The code was
    /// looked for when this epoch had begun: a machine of a later one may not keep what is gone.
    fn make_known(&self, (worker, is_for_functions): (usize, bool), epoch: u64, code: &Code) {
        let mut slot = self.slot(worker).lock();
        if let Some(machine) = slot[usize::from(is_for_functions)].as_mut()
            && machine.epoch <= epoch
        {
            machine.catch_up(epoch);
            machine.known.add(code);
        }
    }

    /// How many scripts are in the cache.
    pub fn cached(&self) -> usize {
        self.cache().len()
    }

    /// Scripts that made room for newer ones.
    pub fn evicted(&self) -> u64 {
        self.cache().evicted
    }

    pub fn reset_evicted(&self) {
        self.cache.write().unwrap_or_else(|poison| poison.into_inner()).evicted = 0;
    }

    /// What scripts take, for INFO.
    pub fn memory(&self) -> ScriptMemory {
        let (vm_eval, vm_functions) = self.machine_bytes();
        let of = |bytes: &AtomicUsize| bytes.load(Ordering::Relaxed);
        let (scripts, libraries) = (of(&self.script_bytes), of(&self.library_bytes));
        ScriptMemory { vm_eval, vm_functions, scripts, libraries }
    }

    /// Bytes of all sources and what was compiled of them: two loads.
    pub fn code_bytes(&self) -> u64 {
        let of = |bytes: &AtomicUsize| bytes.load(Ordering::Relaxed) as u64;
        of(&self.script_bytes) + of(&self.library_bytes)
    }
}

/// Whether this call may give the name of a function to other code.
pub(crate) fn changes_functions(command: Command) -> bool {
    matches!(
        command,
        Command::FunctionLoad
            | Command::FunctionDelete
            | Command::FunctionFlush
            | Command::FunctionRestore
    )
}

/// Whether what a call answers shows what functions there are. FUNCTION STATS does not count: it
/// waits for nothing, so that it can say what keeps others waiting.
pub(crate) fn shows_functions(command: Command) -> bool {
    matches!(
        command,
        Command::Fcall | Command::FcallRo | Command::FunctionList | Command::FunctionDump
    )
}
