//! Whether the machine has a processor to spare for one more loop.
//!
//! Where clients or other programs keep every processor busy, another loop serves nobody sooner: it
//! takes its time from the loops that are there, or from the clients that it would serve.

use std::time::{Duration, Instant};

/// The system counts in hundredths of a second, so a shorter look would say little.
const LOOK_MIN: Duration = Duration::from_millis(200);
/// Older counts say nothing about now.
const LOOK_MAX: Duration = Duration::from_secs(2);
/// What must have been left over, as a share of one processor.
const IDLE_SHARE_MIN: f64 = 0.5;
/// `USER_HZ`, in which the kernel shows its counts whatever it counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// Remembers what it saw last, to tell what went idle since.
#[derive(Debug, Default)]
pub struct IdleWatch {
    last: Option<(Instant, u64)>,
}

impl IdleWatch {
    /// Whether a processor was idle for long enough since the last look. The first look can't tell,
    /// and says no.
    pub fn has_idle_processor(&mut self) -> bool {
        let now = Instant::now();
        let age = self.last.map(|(at, _)| now - at);
        if age.is_some_and(|age| age < LOOK_MIN) {
            return false;
        }
        // Where the system tells nothing, there may always be one.
        let Some(ticks) = idle_ticks() else { return true };
        let before = self.last.replace((now, ticks));
        match before {
            Some((at, ticks_before)) if now - at <= LOOK_MAX => {
                let idle_seconds = ticks.saturating_sub(ticks_before) as f64 / TICKS_PER_SECOND;
                idle_seconds >= IDLE_SHARE_MIN * (now - at).as_secs_f64()
            }
            _ => false,
        }
    }
}

/// How long all processors together have been idle since the start, in ticks.
fn idle_ticks() -> Option<u64> {
    idle_in(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The fields of the first line are times of user, nice, system, idle, waiting for a disk, ...
fn idle_in(stat: &str) -> Option<u64> {
    let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().skip(3);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_what_the_fourth_and_fifth_field_say() {
        assert_eq!(idle_in("cpu  10 20 30 400 5 0 7 8 0 0\ncpu0 1 2 3 4 5\n"), Some(405));
        assert_eq!(idle_in("cpu  10 20 30 400"), None);
        assert_eq!(idle_in("intr 1 2 3 4 5 6"), None);
        assert_eq!(idle_in(""), None);
    }

    #[test]
    fn the_first_look_and_one_right_after_it_say_no() {
        let mut watch = IdleWatch::default();
        if idle_ticks().is_some() {
            assert!(!watch.has_idle_processor());
            assert!(!watch.has_idle_processor());
        }
    }
}
