//! Time on a core, from the scheduler's own books: it leaves out the time that a thread waited for
//! a core, and so is far steadier than a rate on a machine that has other work.

use crate::failure::{Doing, Failure, Result};
use std::fs;
use std::time::Duration;

/// What Linux counts the time of a process in, whatever its own clock does.
const MILLISECONDS_PER_TICK: u64 = 10;

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

/// Of a process since its start, threads that have ended and children that were waited for
/// included. In steps of a hundredth of a second.
pub fn process_total(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).doing(format!("reading {path}"))?;
    ticks(&text).map(|ticks| Duration::from_millis(ticks * MILLISECONDS_PER_TICK))
}

/// The 14th to the 17th field: its own and its children's, in user mode and in the kernel. The
/// second is a name in parentheses, which may hold anything.
fn ticks(stat: &str) -> Result<u64> {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let spent: Vec<u64> =
        behind_name.split_ascii_whitespace().skip(11).take(4).flat_map(str::parse).collect();
    match spent.len() {
        4 => Ok(spent.iter().sum()),
        _ => Err(Failure::server("the kernel", "stat without the time of a process")),
    }
}

/// Of the calling thread.
pub fn own_thread() -> Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    on_core(&fs::read_to_string(path).doing(format!("reading {path}"))?)
}

/// The first of the three numbers is nanoseconds on a core.
fn on_core(schedstat: &str) -> Result<Duration> {
    let first = schedstat.split_ascii_whitespace().next().and_then(|field| field.parse().ok());
    let strange = || Failure::server("the kernel", "schedstat without a number");
    Ok(Duration::from_nanos(first.ok_or_else(strange)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_stands_behind_its_name() {
        let stat = "7 (a) b 1) S 1 7 7 0 -1 4194560 3343 0 0 0 294 106 30 4 20 0 9 0";
        assert_eq!(ticks(stat).unwrap(), 434);
        assert!(ticks("7 (a) S 1").is_err());
    }
}
