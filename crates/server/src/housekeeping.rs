//! What must happen without a client asking: expired keys are reclaimed, blocked clients looked
//! after, pauses ended, the peak of memory noted, idle memory given back. One thread, in small
//! steps.

use crate::host;
use crate::idle_pages::IdlePages;
use russet_base::UnixMillis;
use russet_commands::dispatch::Worker;
use russet_commands::node::Node;
use russet_engine::keyspace::Keyspace;
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
        let mut idle_pages = IdlePages::new();
        while !is_ending.load(Ordering::Relaxed) {
            std::thread::sleep(REST);
            if node.is_housekeeping_paused.load(Ordering::Relaxed) {
                continue;
            }
            let (now, started) = (node.clock.now(), node.clock.monotonic_micros());
            expire(&mut worker, now);
            expire_once(&node.keyspace, now);
            node.pause.tick(&node.keyspace, now);
            worker.tend();
            node.tick();
            if idle_pages.turn(host::idle_bytes) {
                node.host.purge();
            }
            let micros = node.clock.monotonic_micros().saturating_sub(started);
            node.stats.housekeeping_micros.fetch_add(micros, Ordering::Relaxed);
        }
    };
    std::thread::Builder::new().name("housekeeping".into()).spawn(run).map(drop)
}

/// Forgets requests whose time is over, in every shard that is free.
fn expire_once(keyspace: &Keyspace, now: UnixMillis) {
    if keyspace.once_totals().records() == 0 {
        return;
    }
    for shard in 0..keyspace.shards() {
        while keyspace.expire_once(shard, now, EXPIRE_BUDGET) {}
    }
}

/// Visits every shard; those that have more to do are visited again until none has.
fn expire(worker: &mut Worker, now: UnixMillis) {
    let node = &worker.node;
    if node.is_active_expire_off.load(Ordering::Relaxed) {
        return;
    }
    let mut due: Vec<usize> = (0..node.keyspace.shards()).collect();
    while !due.is_empty() {
        due.retain(|&shard| worker.expire(shard, (now, EXPIRE_BUDGET)));
    }
}
