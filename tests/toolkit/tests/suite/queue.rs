//! Queues: nothing is lost, nothing is acknowledged by two, on every backend.

mod clock;
mod jobs;
mod lists;
mod returns;
mod streams;
mod workers;

use russet::queue::{Bounds, Claimed, Job, Scheduled};
use std::time::{Duration, Instant};

const BOUNDS: Bounds = Bounds { capacity: 10_000, ttl: Duration::from_secs(3600) };
const SHORT: Duration = Duration::from_millis(80);

/// The only job of a claim.
fn one(claimed: Claimed) -> Job {
    let mut jobs = claimed.jobs();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

fn is_new(scheduled: &Scheduled) -> bool {
    matches!(scheduled, Scheduled::Scheduled(_))
}

/// Asks until there is an answer.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "it does not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
