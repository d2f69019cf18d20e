//! The engine: the keyspace, the thread that looks after it, and the clients that use it.

use crate::client::Client;
use crate::error::OpenError;
use crate::host::ProgramHost;
use crate::housekeeping;
use crate::options::Options;
use crate::timers::Timers;
use crate::workers::Workers;
use russet_base::hash::KeyHasher;
use russet_base::limits::SHARDS_MAX;
use russet_base::{Clock, Random, SystemClock};
use russet_commands::node::config::{Config, Directive};
use russet_commands::node::snapshot::EndOptions;
use russet_commands::node::{Host, Node};
use russet_engine::keyspace::Keyspace;
use russet_persistence::disk::{Disk, FileSystem};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A keyspace in this process, and all that keeps it in order. Clones are handles to the same
/// engine. When the last one is dropped the engine ends: its thread is joined, and calls of clients
/// that are left, waiting ones included, fail with [`Error::Closed`](crate::Error::Closed).
///
/// ```
/// use russet_embedded::{Engine, Options};
///
/// let engine = Engine::open(Options::new())?;
/// let mut client = engine.client();
/// client.call(&["SET", "greeting", "hello"])?;
/// let greeting: String = client.query(&["GET", "greeting"])?;
/// assert_eq!(greeting, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    running: Arc<Running>,
}

impl Engine {
    /// Makes a keyspace, with what its directory holds if it has one, and starts to look after it.
    pub fn open(options: Options) -> Result<Engine, OpenError> {
        let disk = match &options.directory {
            Some(directory) => {
                FileSystem.create_dir(directory).map_err(OpenError::Directory)?;
                Some(Arc::new(FileSystem) as Arc<dyn Disk>)
            }
            None => None,
        };
        let core_of_host = Arc::new(OnceLock::new());
        let host = ProgramHost { log: options.log.clone(), disk, core: core_of_host.clone() };
        let clock = options.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()));
        let mut engine = Engine::start(options.into_config()?, Box::new(host), clock)?;
        let _is_first = core_of_host.set(Arc::downgrade(&engine.running.core));
        engine.load()?;
        if let Some(running) = Arc::get_mut(&mut engine.running) {
            running.saves_at_end = true;
        }
        Ok(engine)
    }

    /// An engine in a process that has more to tell about itself, and more to do, than a program
    /// that merely embeds it: the server.
    pub fn with_host(config: Config, host: Box<dyn Host>) -> Result<Engine, OpenError> {
        Engine::start(config, host, Arc::new(SystemClock::new()))
    }

    fn start(
        config: Config,
        host: Box<dyn Host>,
        clock: Arc<dyn Clock>,
    ) -> Result<Engine, OpenError> {
        let shards = match config.int(Directive::Shards) {
            // So many that one which is held for long, by a script say, blocks few calls.
            0 => SHARDS_MAX,
            given => given as usize,
        };
        let hasher = KeyHasher::with_seed(Random::from_entropy().next_u64());
        let databases = config.int(Directive::Databases) as usize;
        let keyspace = Keyspace::new(shards, databases, hasher);
        let node = Arc::new(Node::new(config, keyspace, clock, host));
        node.open_files().map_err(OpenError::Data)?;
        let core = Arc::new(Core {
            workers: Workers::new(node.clone()),
            node,
            timers: Timers::default(),
            is_closed: AtomicBool::new(false),
        });
        let housekeeping = housekeeping::start(core.clone()).map_err(OpenError::Thread)?;
        let housekeeping = Some(housekeeping);
        Ok(Engine { running: Arc::new(Running { core, housekeeping, saves_at_end: false }) })
    }

    /// Loads what the files hold. Until it is done calls that need the data are refused.
    pub fn load(&self) -> Result<(), OpenError> {
        self.node().load_files().map(drop).map_err(OpenError::Data)
    }

    /// A client of its own: with its own database, transaction, subscriptions. Many can be used on
    /// many threads at once, each by one at a time. It needs no password, and `maxclients` does not
    /// count it.
    pub fn client(&self) -> Client {
        Client::new(self.running.core.clone())
    }

    /// What all clients share, for those who make clients of their own from it.
    pub fn node(&self) -> &Arc<Node> {
        &self.running.core.node
    }

    /// Ends the engine now, though handles are left: no call succeeds from here on. Its thread is
    /// joined when the last handle is dropped.
    pub fn close(&self) {
        self.running.core.close();
    }

    /// Whether it was ended, by whatever handle or by SHUTDOWN.
    pub fn is_closed(&self) -> bool {
        self.running.core.is_closed()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// An engine whose housekeeping runs.
struct Running {
    core: Arc<Core>,
    housekeeping: Option<JoinHandle<()>>,
    /// Whether the data is saved, if so configured, when the last handle goes. A server does that
    /// itself.
    saves_at_end: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.core.close();
        if let Some(thread) = self.housekeeping.take() {
            // A waker that is called there may have held the last handle.
            if thread.thread().id() != std::thread::current().id() {
                // A panic there has been reported.
                let _joined = thread.join();
            }
        }
        self.core.node.close_files();
        if self.saves_at_end {
            // There is nobody left to be told of an error; the log has been.
            let _saved = self.core.node.save_at_end(EndOptions::default());
        }
    }
}

/// What an engine and its clients share. Clients that outlive their engine keep it, and fail.
pub(crate) struct Core {
    pub node: Arc<Node>,
    pub workers: Workers,
    pub timers: Timers,
    is_closed: AtomicBool,
}

impl Core {
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub fn close(&self) {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.timers.stop();
        // Those who wait learn of it by letter; those who come later, or call, look first.
        for card in self.node.clients.all() {
            card.kill(None);
        }
    }
}
