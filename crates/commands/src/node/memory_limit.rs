//! `maxmemory`: how much may be used, and which keys go when more is.

use crate::node::config::{Config, Directive};
use russet_engine::evict::{Choice, Order};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// No limit.
const NONE: u64 = u64::MAX;
/// The tenacity at which eviction goes on until there is room.
const TENACITY_MAX: i64 = 100;

pub struct MemoryLimit {
    bytes: AtomicU64,
    eviction: Mutex<Eviction>,
    /// Since when more is used, in microseconds of the monotonic clock; 0: it is not.
    exceeded_since: AtomicU64,
    exceeded_micros: AtomicU64,
}

/// What goes when memory runs out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Eviction {
    /// None: nothing does, writes are refused.
    pub choice: Option<Choice>,
    /// How long one call may be held up by it; None: until there is room.
    pub micros_max: Option<u64>,
}

impl Default for MemoryLimit {
    fn default() -> Self {
        MemoryLimit {
            bytes: AtomicU64::new(NONE),
            eviction: Mutex::default(),
            exceeded_since: AtomicU64::new(0),
            exceeded_micros: AtomicU64::new(0),
        }
    }
}

impl MemoryLimit {
    #[inline]
    pub fn is_set(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) != NONE
    }

    #[inline]
    pub fn is_exceeded_by(&self, used_bytes: u64) -> bool {
        self.excess_bytes(used_bytes) > 0
    }

    /// How much more is used than may be.
    #[inline]
    pub fn excess_bytes(&self, used_bytes: u64) -> u64 {
        used_bytes.saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn eviction(&self) -> Eviction {
        *self.lock_eviction()
    }

    fn lock_eviction(&self) -> MutexGuard<'_, Eviction> {
        self.eviction.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Takes over what the directives say.
    pub fn refresh(&self, config: &Config) {
        let limit = config.memory(Directive::MaxMemory);
        let policy = config.choice(Directive::MaxMemoryPolicy);
        let samples = usize::try_from(config.int(Directive::MaxMemorySamples)).unwrap_or(1);
        let micros_max = micros_max(config.int(Directive::MaxMemoryEvictionTenacity));
        *self.lock_eviction() = Eviction { choice: choice(policy, samples), micros_max };
        self.bytes.store(if limit == 0 { NONE } else { limit }, Ordering::Relaxed);
    }

    /// Notes for INFO whether too much is used at this moment.
    pub fn note(&self, is_exceeded: bool, now_micros: u64) {
        let since = self.exceeded_since.load(Ordering::Relaxed);
        if is_exceeded && since == 0 {
            self.exceeded_since.store(now_micros.max(1), Ordering::Relaxed);
        } else if !is_exceeded && since != 0 {
            self.exceeded_since.store(0, Ordering::Relaxed);
            let micros = now_micros.saturating_sub(since);
            self.exceeded_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// For how many milliseconds too much has been used: in all, and since the last time it began.
    pub fn exceeded_ms(&self, now_micros: u64) -> (u64, u64) {
        let current = match self.exceeded_since.load(Ordering::Relaxed) {
            0 => 0,
            since => now_micros.saturating_sub(since),
        };
        let total = self.exceeded_micros.load(Ordering::Relaxed) + current;
        (total / 1000, current / 1000)
    }
}

fn choice(policy: &str, samples: usize) -> Option<Choice> {
    let (which, order) = policy.split_once('-')?;
    let order = match order {
        "lru" | "lrm" => Order::Idle,
        "lfu" => Order::Frequency,
        "ttl" => Order::Deadline,
        _ => Order::Random,
    };
    Some(Choice { is_volatile: which == "volatile", order, samples })
}

/// Half a millisecond at 10, then 15 percent more with each step.
fn micros_max(tenacity: i64) -> Option<u64> {
    match tenacity {
        TENACITY_MAX.. => None,
        0..=10 => Some(50 * tenacity as u64),
        _ => Some((500.0 * 1.15_f64.powi(tenacity as i32 - 10)) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_say_which_keys_go() {
        let of = |policy| choice(policy, 5).map(|it| (it.is_volatile, it.order));
        assert_eq!(of("noeviction"), None);
        assert_eq!(of("allkeys-lru"), Some((false, Order::Idle)));
        assert_eq!(of("volatile-lrm"), Some((true, Order::Idle)));
        assert_eq!(of("allkeys-lfu"), Some((false, Order::Frequency)));
        assert_eq!(of("volatile-ttl"), Some((true, Order::Deadline)));
        assert_eq!(of("allkeys-random"), Some((false, Order::Random)));
    }

    #[test]
    fn tenacity_bounds_the_time_of_a_call() {
        assert_eq!(micros_max(0), Some(0));
        assert_eq!(micros_max(10), Some(500));
        assert_eq!(micros_max(11), Some(575));
        assert_eq!(micros_max(100), None);
    }

    #[test]
    fn time_over_the_limit_adds_up() {
        let limit = MemoryLimit::default();
        limit.note(true, 1_000);
        assert_eq!(limit.exceeded_ms(6_000), (5, 5));
        limit.note(false, 11_000);
        limit.note(true, 20_000);
        assert_eq!(limit.exceeded_ms(22_000), (12, 2));
    }
}
