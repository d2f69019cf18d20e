//! What must happen without a client asking: expired keys are reclaimed, blocked clients looked
//! after, pauses ended, futures woken, the peak of memory noted. One thread, in small steps.

use crate::engine::Core;
use russet_base::UnixMillis;
use russet_commands::call::dispatch::Worker;
use russet_engine::barrier::Barrier;
use russet_engine::keyspace::Keyspace;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the shards are visited when nothing is due.
const REST: Duration = Duration::from_millis(100);
/// Slots looked at while one shard is locked: some tens of microseconds.
const EXPIRE_BUDGET: usize = 256;

pub(crate) fn start(core: Arc<Core>) -> std::io::Result<JoinHandle<()>> {
    let run = move || {
        let mut worker = Worker::new(core.node.clone());
        let mut visited_micros = core.node.clock.monotonic_micros();
        while !core.timers.is_stopped() {
            let since = core.node.clock.monotonic_micros().saturating_sub(visited_micros);
            let left = REST.saturating_sub(Duration::from_micros(since));
            core.timers.rest(left, core.node.clock.now());
            core.timers.wake_due(core.node.clock.now());
            let since = core.node.clock.monotonic_micros().saturating_sub(visited_micros);
            if Duration::from_micros(since) >= REST {
                visited_micros = core.node.clock.monotonic_micros();
                visit(&core, &mut worker);
            }
        }
    };
    std::thread::Builder::new().name("housekeeping".into()).spawn(run)
}

fn visit(core: &Core, worker: &mut Worker) {
    let node = &core.node;
    if node.is_housekeeping_paused.load(Ordering::Relaxed) {
        return;
    }
    let (now, started) = (node.clock.now(), node.clock.monotonic_micros());
    // What a log says of a key may end with its not being over any more.
    let is_loading = node.keyspace.barriers().is_up(Barrier::Loading);
    if !is_loading && !node.is_active_expire_off.load(Ordering::Relaxed) {
        expire(core, worker, now);
        expire_once(&node.keyspace, now);
    }
    if !is_loading {
        // What no call has made room for: the limit was lowered, say.
        worker.evict();
    }
    node.pause.tick(&node.keyspace, now);
    worker.sweep();
    node.keyspace.prepare_memory();
    node.tick();
    let micros = node.clock.monotonic_micros().saturating_sub(started);
    node.stats.housekeeping_micros.fetch_add(micros, Ordering::Relaxed);
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
fn expire(core: &Core, worker: &mut Worker, now: UnixMillis) {
    let mut due: Vec<usize> = (0..core.node.keyspace.shards()).collect();
    while !due.is_empty() && !core.timers.is_stopped() {
        due.retain(|&shard| worker.expire(shard, (now, EXPIRE_BUDGET)));
        core.node.stats.expiry_backlog_shards.store(due.len() as u64, Ordering::Relaxed);
        core.timers.wake_due(core.node.clock.now());
    }
}
