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
const ROUNDS_PER_SECOND: u32 = 10;
/// Slots looked at while one shard is locked: some tens of microseconds.
const EXPIRE_BUDGET: usize = 256;

pub fn start(node: Arc<Node>, is_ending: Arc<AtomicBool>) -> std::io::Result<()> {
    let run = move || {
        let mut worker = Worker::new(node.clone());
        for round in 0u32.. {
            if is_ending.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(REST);
            let now = node.clock.now();
            expire(&node, now);
            node.pause.tick(now);
            worker.tend();
            if round.is_multiple_of(ROUNDS_PER_SECOND) {
                note_peak(&node);
            }
        }
    };
    std::thread::Builder::new().name("housekeeping".into()).spawn(run).map(drop)
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

fn note_peak(node: &Node) {
    let used = node.used_memory_bytes();
    node.stats.memory_peak_bytes.fetch_max(used, Ordering::Relaxed);
}
