//! For programs without a runtime: every call can be waited for.
//!
//! ```
//! use russet::blocking::Wait;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! kit.ping().wait()?;
//! # Ok::<(), russet::Error>(())
//! ```

use std::io;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// Blocks the thread until a future is done.
pub trait Wait: Future + Sized {
    /// Must not be called from a task of a runtime.
    fn wait(self) -> Self::Output;
}

impl<F: Future> Wait for F {
    fn wait(self) -> F::Output {
        let runtime = runtime().expect("a thread for the runtime can be started");
        runtime.block_on(self)
    }
}

/// Started with the first call; one thread drives connections and background tasks.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let made = builder.worker_threads(1).thread_name("russet-blocking").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}
