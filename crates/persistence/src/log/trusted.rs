//! How far a file of the log can be trusted while a thread is still going through it: commands up
//! to there are run meanwhile, and no others.

use std::io::{self, Read};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Bytes that are verified between two reports.
const REPORT_BYTES: u64 = 256 * 1024;

#[derive(Clone, Copy)]
struct State {
    end: u64,
    /// A checksum of ours vouches for what is before `end`.
    has_sums: bool,
    /// It will not be more.
    is_final: bool,
}

/// What the thread that verifies has reported.
pub(super) struct Trusted {
    state: Mutex<State>,
    is_changed: Condvar,
}

impl Trusted {
    /// Of a file whose commands begin at `start`.
    pub fn new(start: u64) -> Self {
        let state = State { end: start, has_sums: false, is_final: false };
        Trusted { state: Mutex::new(state), is_changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.is_changed.notify_all();
    }

    /// Whether the commands are ours. Waits until that is known.
    pub fn has_sums(&self, start: u64) -> bool {
        self.wait_behind(start).has_sums
    }

    /// Waits until something behind this offset can be trusted, or nothing more will be.
    fn wait_behind(&self, at: u64) -> State {
        let mut state = self.state();
        while state.end <= at && !state.is_final {
            state = self.is_changed.wait(state).unwrap_or_else(|poison| poison.into_inner());
        }
        *state
    }
}

/// For the thread that verifies. When it is dropped, what was reported is all that there is.
pub(super) struct Reporter<'t> {
    trusted: &'t Trusted,
    reported: u64,
}

impl<'t> Reporter<'t> {
    pub fn new(trusted: &'t Trusted, start: u64) -> Self {
        Reporter { trusted, reported: start }
    }

    /// All before `end` can be trusted, whatever is behind it.
    #[inline]
    pub fn reached(&mut self, end: u64, has_sums: bool) {
        if end - self.reported >= REPORT_BYTES {
            self.report(end, has_sums);
        }
    }

    pub fn report(&mut self, end: u64, has_sums: bool) {
        self.reported = end;
        self.trusted.change(|state| (state.end, state.has_sums) = (end, has_sums));
    }
}

impl Drop for Reporter<'_> {
    fn drop(&mut self) {
        self.trusted.change(|state| state.is_final = true);
    }
}

/// What can be trusted of a file, to be read from some offset on. Waits for what is not known yet.
pub(super) struct TrustedPart<'t, R> {
    source: R,
    trusted: &'t Trusted,
    at: u64,
    end: u64,
}

impl<'t, R> TrustedPart<'t, R> {
    /// `source` gives the bytes of the file from `at` on.
    pub fn new(source: R, at: u64, trusted: &'t Trusted) -> Self {
        TrustedPart { source, trusted, at, end: at }
    }
}

impl<R: Read> Read for TrustedPart<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.end {
            self.end = self.trusted.wait_behind(self.at).end;
        }
        let len = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.source.read(&mut buffer[..len])?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_can_be_trusted() {
        let file: Vec<u8> = (0..3 * REPORT_BYTES).map(|at| (at % 251) as u8).collect();
        let trusted = Trusted::new(10);
        let read = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                assert!(trusted.has_sums(10));
                let mut read = Vec::new();
                let mut part = TrustedPart::new(&file[10..], 10, &trusted);
                part.read_to_end(&mut read).map(|_| read)
            });
            let mut reporter = Reporter::new(&trusted, 10);
            reporter.reached(20, true);
            assert_eq!(trusted.state().end, 10, "so little is not reported");
            reporter.reached(REPORT_BYTES + 10, true);
            reporter.report(REPORT_BYTES + 13, true);
            drop(reporter);
            reading.join().unwrap().unwrap()
        });
        assert_eq!(read, &file[10..REPORT_BYTES as usize + 13]);
    }

    #[test]
    fn nothing_may_be_trusted_at_all() {
        let trusted = Trusted::new(5);
        drop(Reporter::new(&trusted, 5));
        assert!(!trusted.has_sums(5));
        assert_eq!(TrustedPart::new(&b"abc"[..], 5, &trusted).read(&mut [0; 3]).unwrap(), 0);
    }
}
