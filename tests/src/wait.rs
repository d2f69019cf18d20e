//! Waiting for what can only be looked at.

use std::time::{Duration, Instant};

/// How long something that happens soon may take.
pub const SOON: Duration = Duration::from_secs(20);

/// Waits for what a look at the system shows.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < SOON, "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
