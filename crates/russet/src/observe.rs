//! What can be seen of the kit at work: spans, and the metrics that requirements name. Never a key:
//! its pattern.

#[cfg(feature = "metrics")]
mod names {
    pub const COUNT: &str = "redis.atomic.operation.count";
    pub const LATENCY: &str = "redis.atomic.operation.latency";
    pub const RETRIES: &str = "redis.atomic.operation.retry.count";
    pub const TIMEOUTS: &str = "redis.atomic.operation.timeout.count";
    pub const NOSCRIPT: &str = "redis.atomic.script.noscript.count";
    pub const ERRORS: &str = "redis.atomic.script.error.count";
    pub const RESULTS: &str = "redis.atomic.result.count";
}

#[cfg(feature = "metrics")]
mod cardinality;
#[cfg(all(test, feature = "metrics", feature = "embedded"))]
mod tests;

use crate::error::{Error, Result};
use crate::key::Key;
use crate::reply::Envelope;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long it took to learn whether something is in a set.
pub(crate) const LOOKUP_LATENCY: &str = "redis.set.membership.lookup.latency";

/// One number of a workflow's stats, counted in this process.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the stats of a workflow: the struct that its `stats` returns, and the counters behind
/// it, which all clones of a handle share.
macro_rules! stats {
    (
        $(#[$about:meta])*
        $stats:ident counted by $counts:ident {
            $($(#[$field_about:meta])* $name:ident,)+
        }
    ) => {
        #[derive(Debug, Default)]
        pub(super) struct $counts {
            $(pub $name: $crate::observe::Counter,)+
        }

        impl $counts {
            pub fn stats(&self) -> $stats {
                $stats { $($name: self.$name.get(),)+ }
            }
        }

        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $stats {
            $($(#[$field_about])* pub $name: u64,)+
        }
    };
}

pub(crate) use stats;

/// How long a call took, if anyone wants to know.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    #[cfg(feature = "metrics")]
    started: std::time::Instant,
}

impl Stopwatch {
    pub fn start() -> Self {
        Stopwatch {
            #[cfg(feature = "metrics")]
            started: std::time::Instant::now(),
        }
    }
}

/// A step was called and has ended. `status` of a refusal is the kind of the error.
pub(crate) fn ended(operation: &'static str, result: &Result<Envelope>, watch: Stopwatch) {
    #[cfg(feature = "metrics")]
    {
        let status = match result {
            Ok(envelope) => envelope.status().to_owned(),
            Err(error) => error.kind().to_owned(),
        };
        let outcome = if result.is_ok() { "ok" } else { "error" };
        metrics::counter!(names::COUNT, "operation" => operation, "status" => outcome).increment(1);
        metrics::histogram!(names::LATENCY, "operation" => operation)
            .record(watch.started.elapsed().as_secs_f64());
        metrics::counter!(names::RESULTS, "operation" => operation, "result" => status)
            .increment(1);
        if let Err(error) = result {
            metrics::counter!(names::ERRORS, "script" => operation, "reason" => error.kind())
                .increment(1);
        }
    }
    #[cfg(not(feature = "metrics"))]
    let _ = (operation, result, watch);
}

/// It is tried once more.
pub(crate) fn retried(operation: &'static str, error: &Error) {
    tracing::debug!(operation, reason = error.kind(), "tried again");
    #[cfg(feature = "metrics")]
    metrics::counter!(names::RETRIES, "operation" => operation, "reason" => error.kind())
        .increment(1);
}

/// Its time was over, or the connection broke: nobody knows whether it ran.
pub(crate) fn lost(operation: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!(names::TIMEOUTS, "operation" => operation).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = operation;
}

/// The server did not have the script.
pub(crate) fn noscript(operation: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!(names::NOSCRIPT, "script" => operation).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = operation;
}

/// Something that a workflow counts by itself: `name` is dotted, as `redis.queue.lost.count`.
pub(crate) fn count(name: &'static str, workflow: &'static str, by: u64) {
    #[cfg(feature = "metrics")]
    metrics::counter!(name, "workflow" => workflow).increment(by);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, workflow, by);
}

/// How much there is of something at the moment: `name` is dotted, as `redis.sale.stock`.
pub(crate) fn gauge(name: &'static str, workflow: &'static str, value: u64) {
    #[cfg(feature = "metrics")]
    metrics::gauge!(name, "workflow" => workflow).set(value as f64);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, workflow, value);
}

/// A size that is worth a histogram, in bytes.
pub(crate) fn size(name: &'static str, workflow: &'static str, bytes: usize) {
    #[cfg(feature = "metrics")]
    metrics::histogram!(name, "workflow" => workflow).record(bytes as f64);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, workflow, bytes);
}

/// How long something took, in seconds, its retries included.
pub(crate) fn latency(name: &'static str, workflow: &'static str, watch: Stopwatch) {
    #[cfg(feature = "metrics")]
    metrics::histogram!(name, "workflow" => workflow).record(watch.started.elapsed().as_secs_f64());
    #[cfg(not(feature = "metrics"))]
    let _ = (name, workflow, watch);
}

/// A key was found that should have a TTL and has none.
pub(crate) fn ttl_missing(workflow: &'static str) {
    tracing::warn!(workflow, "a key without a TTL");
    count("redis.atomic.marker.ttl_missing.count", workflow, 1);
}

/// A step is called on this key.
pub(crate) fn used(key: &Key) {
    #[cfg(feature = "metrics")]
    cardinality::used(key);
    #[cfg(not(feature = "metrics"))]
    let _ = key;
}
