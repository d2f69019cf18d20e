//! The memory in which the system gave this process its arguments and its environment. Others see
//! what is in it as the command line; it can't be made larger, so the environment moves out of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where `/proc/self/stat` has the bounds of arguments and environment, counted from behind the
/// name of the program, which may have spaces.
const BOUNDS_AT: usize = 45;

/// What jemalloc calls its threads.
const ALLOCATOR_THREAD: &str = "jemalloc_bg_thd";
/// How long one may take to get that name on a busy machine, and how often it is looked at.
const NAMING_WAIT_MAX: Duration = Duration::from_secs(2);
const NAP: Duration = Duration::from_micros(100);

/// That memory, which nobody else uses.
pub struct ArgMemory {
    start: *mut u8,
    /// Bytes of the arguments alone.
    args_len: usize,
    /// With those of the environment, if they could be had. The last one stays zero.
    len: usize,
}

// SAFETY: the memory is the process's as long as that runs, and belongs to no thread.
unsafe impl Send for ArgMemory {}

impl ArgMemory {
    /// Takes possession of it, which works once, and only as long as there are no other threads.
    /// From then on `std::env::args` has no meaning any more.
    pub fn take() -> io::Result<ArgMemory> {
        static IS_TAKEN: AtomicBool = AtomicBool::new(false);
        let until = Instant::now() + NAMING_WAIT_MAX;
        while !is_alone()? {
            if Instant::now() > until {
                return Err(io::Error::other("other threads may use it"));
            }
            std::thread::sleep(NAP);
        }
        let [start, args_end, env_start, env_end] = bounds(&std::fs::read("/proc/self/stat")?)
            .ok_or_else(|| io::Error::other("the system does not say where it is"))?;
        if IS_TAKEN.swap(true, Ordering::Relaxed) {
            return Err(io::Error::other("it is taken"));
        }
        let is_one = args_end == env_start && env_start < env_end;
        let end = if is_one && move_environment()? { env_end } else { args_end };
        Ok(ArgMemory {
            start: std::ptr::with_exposed_provenance_mut(start),
            args_len: args_end - start,
            len: end - start,
        })
    }

    /// Shows a text as it is, or as much of it as there is room for.
    pub fn show_title(&mut self, title: &[u8]) {
        let shown = self.fill(title);
        // Where this last byte is not zero the system shows all up to the first zero, also what
        // lies behind the arguments, and no zeros behind that. One more zero is to follow it.
        if shown + 1 < self.args_len && self.args_len < self.len {
            self.write(self.args_len - 1, b".");
        }
    }

    /// Shows arguments, apart from each other; false, and nothing done, if there is no room for it.
    pub fn show_args(&mut self, args: &[&[u8]]) -> bool {
        let apart = args.join(&0);
        let fits = apart.len() < self.args_len;
        if fits {
            self.fill(&apart);
        }
        fits
    }

    /// Writes what there is room for, and zeros behind it; returns how much that was.
    fn fill(&mut self, text: &[u8]) -> usize {
        let shown = &text[..text.len().min(self.len - 1)];
        self.write(0, shown);
        let zeros = vec![0; self.len - shown.len()];
        self.write(shown.len(), &zeros);
        shown.len()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len);
        // SAFETY: 1. The system has put `len` bytes at `start`, on the stack of the first thread,
        // which stays and can be written. 2. What is written ends there, by the assertion. 3. This
        // value is the only one, and nobody else reads or writes that memory: the environment has
        // moved, and arguments are not read again. 4. `bytes` are not in it: nobody lends them.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at), bytes.len());
        }
    }
}

/// Whether this thread is the only one of ours. The allocator's were there before `main` began, and
/// read neither arguments nor environment.
fn is_alone() -> io::Result<bool> {
    let mut ours = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let name = std::fs::read_to_string(thread?.path().join("comm"))?;
        ours += usize::from(name.trim_end() != ALLOCATOR_THREAD);
    }
    Ok(ours == 1)
}

/// Start and end of the arguments, then of the environment.
fn bounds(stat: &[u8]) -> Option<[usize; 4]> {
    let text = String::from_utf8_lossy(stat);
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(BOUNDS_AT);
    let mut next = || fields.next()?.parse::<usize>().ok();
    let bounds = [next()?, next()?, next()?, next()?];
    (0 < bounds[0] && bounds[0] < bounds[1]).then_some(bounds)
}

/// Gives each variable of the environment a place of its own; false if that is not possible.
fn move_environment() -> io::Result<bool> {
    let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let names: BTreeSet<&OsString> = variables.iter().map(|(name, _)| name).collect();
    let is_good = |name: &&OsString| !name.is_empty() && !name.as_bytes().contains(&b'=');
    let given = std::fs::read("/proc/self/environ")?;
    let given = given.split(|byte| *byte == 0).filter(|variable| !variable.is_empty()).count();
    // Of two with one name, and of what is no variable, one would stay.
    if !names.iter().all(is_good) || names.len() != given || variables.len() != given {
        return Ok(false);
    }
    for (name, value) in &variables {
        // SAFETY: there is no other thread that could read or write the environment.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_found_behind_any_name() {
        let fields: Vec<String> = (3..53).map(|number| number.to_string()).collect();
        let stat = format!("12 (a) b) {}\n", fields.join(" "));
        assert_eq!(bounds(stat.as_bytes()), Some([48, 49, 50, 51]));
        for broken in ["", "12 (a) 1 2 3", "12 (a"] {
            assert_eq!(bounds(broken.as_bytes()), None);
        }
        let own = bounds(&std::fs::read("/proc/self/stat").unwrap()).unwrap();
        assert!(own.is_sorted(), "{own:?}");
    }
}
