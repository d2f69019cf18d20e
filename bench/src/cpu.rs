//! Time on a core, from the scheduler's own books: it leaves out the time that a thread waited for
//! a core, and so is far steadier than a rate on a machine that has other work.

use crate::failure::{Doing, Failure, Result};
use std::fs;
use std::time::Duration;

/// Of all threads of a process. A thread that ends takes its share along; servers keep theirs.
pub fn process(pid: u32) -> Result<Duration> {
    let directory = format!("/proc/{pid}/task");
    let threads = fs::read_dir(&directory).doing(format!("listing {directory}"))?;
    let mut total = Duration::ZERO;
    for thread in threads {
        let path = thread.doing(format!("listing {directory}"))?.path().join("schedstat");
        // A thread may end between the listing and the reading.
        if let Ok(text) = fs::read_to_string(&path) {
            total += on_core(&text)?;
        }
    }
    Ok(total)
}

/// Of the calling thread.
pub fn own_thread() -> Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    on_core(&fs::read_to_string(path).doing(format!("reading {path}"))?)
}

/// The first of the three numbers is nanoseconds on a core.
fn on_core(schedstat: &str) -> Result<Duration> {
    let first = schedstat.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    let strange = || Failure::server("the kernel", "schedstat without a number");
    Ok(Duration::from_nanos(first.ok_or_else(strange)?))
}
