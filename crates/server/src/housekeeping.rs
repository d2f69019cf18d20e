//! What must happen without a client asking: expired keys are reclaimed, blocked clients looked
//! after, pauses ended, the peak of memory noted. One thread, in small steps.

use russet_base::UnixMillis;
use russet_commands::dispatch::Worker;
use russet_commands::node::Node;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the shards are visited when nothing is due.
const REST: Duration = Duration::from_millis(100);
/// Slots looked at while one shard is locked: some tens of microseconds.
const EXPIRE_BUDGET: usize = 256;

pub fn start(node: Arc<Node>, is_ending: Arc<AtomicBool>) -> std::io::Result<()> {
    let run = move || {
        let mut worker = Worker::new(node.clone());
        while !is_ending.load(Ordering::Relaxed) {
            std::thread::sleep(REST);
            if node.is_housekeeping_paused.load(Ordering::Relaxed) {
                continue;
            }
            let (now, started) = (node.clock.now(), node.clock.monotonic_micros());
            expire(&node, now);
            expire_once(&node, now);
            node.pause.tick(&node.keyspace, now);
            worker.tend();
            node.tick();
            let micros = node.clock.monotonic_micros().saturating_sub(started);
            node.stats.housekeeping_micros.fetch_add(micros, Ordering::Relaxed);
        }
    };
    std::thread::Builder::new().name("housekeeping".into()).spawn(run).map(drop)
}

/// Forgets requests whose time is over, and counts those that are left.
fn expire_once(node: &Node, now: UnixMillis) {
    let counts = &node.once;
    if counts.records.load(Ordering::Relaxed) == 0 {
        return;
    }
    let (mut records, mut bytes) = (0, 0);
    for shard in 0..node.keyspace.shards() {
        // A shard that is busy now is counted the next time; then all counts stay as they are.
        let Some(report) = node.keyspace.expire_once(shard, now, EXPIRE_BUDGET) else { return };
        records += report.records as u64;
        bytes += report.bytes as u64;
        counts.expired.fetch_add(report.expired as u64, Ordering::Relaxed);
    }
    counts.records.store(records, Ordering::Relaxed);
    counts.bytes.store(bytes, Ordering::Relaxed);
}

/// Visits every shard; those that have more to do are visited again until none has.
fn expire(node: &Node, now: UnixMillis) {
    if node.is_active_expire_off.load(Ordering::Relaxed) {
        return;
    }
    let mut due: Vec<usize> = (0..node.keyspace.shards()).collect();
    while !due.is_empty() {
        due.retain(|&shard| {
            let (notices, has_more) = node.keyspace.expire_shard(shard, now, EXPIRE_BUDGET);
            node.publish_notices(&notices);
            has_more
        });
    }
}
