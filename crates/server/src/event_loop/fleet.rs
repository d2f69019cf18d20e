//! All the loops together: which takes a new connection, how many are open, and what happens to a
//! loop whose thread is stuck in a long command.
//!
//! Loops are opened one after another, as they are needed and as there are processors for them. A
//! round of a loop is the time between two looks at its poller, so it is how long a ready
//! connection waits for its turn. While that stays short, more threads would only divide the same
//! work into smaller pieces, each with its own wake-up and its own poll.

use super::Service;
use super::connection::Connection;
use super::idle::IdleWatch;
use super::mailbox::{Give, Message};
use super::owner::{Ownership, Pulse};
use super::state::EventLoop;
use super::stream::{Listener, Peer, Stream};
use super::turn::Thread;
use russet_base::limits::SPARE_THREADS_MAX;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What the names of the threads that run loops begin with; a number follows.
pub const LOOP_THREAD_NAME: &str = "loop-";
/// The stack of such a thread: scripts may nest 200 calls of natives, each of up to 10 KiB where
/// nothing is optimized. Only what is used takes up memory.
const LOOP_STACK_BYTES: usize = 8 << 20;
/// How often the watchdog looks. A thread seen in the same command twice loses its loop, so a loop
/// is hostage for one to two of these.
const WATCH_INTERVAL: Duration = Duration::from_millis(1);

/// A loop whose rounds take longer than this shares its connections with one more loop.
const ROUND_LONG_MICROS: u64 = 1000;
/// Loops whose rounds add up to less than this are more than enough: the last one is closed. Well
/// below what opens one, so that a steady load does not open and close by turns.
const ROUNDS_SHORT_MICROS: u64 = 600;
/// How many looks of the watchdog pass between two looks at the load.
const LOOKS_PER_BALANCE: u32 = 50;
/// How many times in a row the load must be light before a loop is closed.
const LIGHT_LOOKS_MIN: u32 = 10;

/// A loop that needs a thread.
type Job<S> = Arc<EventLoop<S>>;

struct Pool<S: Service> {
    jobs: Vec<Job<S>>,
    idle: usize,
    threads: usize,
}

pub struct Fleet<S: Service> {
    service: Arc<S>,
    loops: Vec<Arc<EventLoop<S>>>,
    pool: Mutex<Pool<S>>,
    job_added: Condvar,
    running: AtomicUsize,
    ended: Condvar,
    is_ending: AtomicBool,
    keepalive_seconds: AtomicU32,
    /// TLS connections that are accepted in one turn.
    tls_accepts_max: AtomicUsize,
    /// Loops that take connections: the first so many.
    open: AtomicUsize,
    open_min: usize,
}

impl<S: Service> Fleet<S> {
    /// Makes as many loops as may be open and starts a thread for each.
    pub fn start(service: Arc<S>, open: RangeInclusive<usize>) -> io::Result<Arc<Self>> {
        let (open_min, threads) = open.into_inner();
        let now_ms = service.now_ms();
        let loops: io::Result<Vec<_>> =
            (0..threads).map(|index| EventLoop::new(index, now_ms).map(Arc::new)).collect();
        let fleet = Arc::new(Fleet {
            service,
            loops: loops?,
            pool: Mutex::new(Pool { jobs: Vec::new(), idle: 0, threads: 0 }),
            job_added: Condvar::new(),
            running: AtomicUsize::new(threads),
            ended: Condvar::new(),
            is_ending: AtomicBool::new(false),
            keepalive_seconds: AtomicU32::new(300),
            tls_accepts_max: AtomicUsize::new(1),
            open: AtomicUsize::new(open_min),
            open_min,
        });
        for event_loop in &fleet.loops {
            fleet.find_thread(event_loop.clone());
        }
        let watched = fleet.clone();
        std::thread::Builder::new().name("watchdog".into()).spawn(move || watched.watch())?;
        Ok(fleet)
    }

    pub fn keepalive_seconds(&self) -> u32 {
        self.keepalive_seconds.load(Ordering::Relaxed)
    }

    pub fn set_keepalive_seconds(&self, seconds: u32) {
        self.keepalive_seconds.store(seconds, Ordering::Relaxed);
    }

    pub(super) fn tls_accepts_max(&self) -> usize {
        self.tls_accepts_max.load(Ordering::Relaxed)
    }

    pub fn set_tls_accepts_max(&self, count: usize) {
        self.tls_accepts_max.store(count, Ordering::Relaxed);
    }

    /// Gives the listening sockets to the first loop, instead of those it had.
    pub fn listen(&self, listeners: Vec<Listener>) {
        self.loops[0].inbox.post(Message::Listeners(listeners));
    }

    /// Hands a new connection to the loop that has the fewest.
    pub(super) fn assign(&self, stream: Stream, peer: Peer) {
        let load = |event_loop: &&Arc<EventLoop<S>>| event_loop.connections.load(Ordering::Relaxed);
        if let Some(least) = self.open_loops().iter().min_by_key(load) {
            least.connections.fetch_add(1, Ordering::Relaxed);
            least.inbox.post(Message::Accepted(stream, peer));
        }
    }

    pub(super) fn move_to(&self, index: usize, connection: Box<Connection<S>>) {
        let target = &self.loops[index];
        target.connections.fetch_add(1, Ordering::Relaxed);
        target.inbox.post(Message::Moved(connection));
    }

    fn open_loops(&self) -> &[Arc<EventLoop<S>>] {
        &self.loops[..self.open.load(Ordering::Relaxed)]
    }

    /// Opens a loop if one is overloaded and a processor is idle, closes one if there is little to
    /// do. `light` counts how often in a row there was.
    fn balance(&self, light: &mut u32, idle: &mut IdleWatch) {
        let round =
            |event_loop: &&Arc<EventLoop<S>>| event_loop.round_micros.load(Ordering::Relaxed);
        let open = self.open_loops();
        let Some(slowest) = open.iter().max_by_key(round) else { return };
        let longest = round(&slowest);
        let all: u64 = open.iter().map(|event_loop| round(&event_loop)).sum();
        *light = if all < ROUNDS_SHORT_MICROS { *light + 1 } else { 0 };
        open.iter().for_each(|event_loop| event_loop.let_round_fade());
        if longest > ROUND_LONG_MICROS && open.len() < self.loops.len() {
            let count = slowest.connections.load(Ordering::Relaxed) / 2;
            if count > 0 && idle.has_idle_processor() {
                self.open.store(open.len() + 1, Ordering::Relaxed);
                slowest.inbox.post(Message::Give(Give { to: open.len(), count }));
            }
        } else if *light >= LIGHT_LOOKS_MIN && open.len() > self.open_min {
            *light = 0;
            self.open.store(open.len() - 1, Ordering::Relaxed);
            let last = &self.loops[open.len() - 1];
            last.inbox.post(Message::Give(Give { to: 0, count: usize::MAX }));
        }
    }

    /// More connections wait than one turn accepts: come back soon.
    pub(super) fn accept_again(&self, listener: usize) {
        self.loops[0].inbox.post(Message::AcceptMore(listener));
    }

    /// Ends every loop: replies under way are written, then all connections are closed.
    pub fn shut_down(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        for event_loop in &self.loops {
            event_loop.inbox.post(Message::ShutDown);
        }
    }

    /// Waits until all loops have ended; false if that took longer than `at_most`.
    pub fn wait(&self, at_most: Duration) -> bool {
        let pool = self.pool.lock().unwrap_or_else(|poison| poison.into_inner());
        let is_running = |_: &mut Pool<S>| self.running.load(Ordering::Acquire) > 0;
        match self.ended.wait_timeout_while(pool, at_most, is_running) {
            Ok((_, result)) => !result.timed_out(),
            Err(_) => false,
        }
    }

    /// Gives a loop to an idle thread, or to a new one.
    fn find_thread(self: &Arc<Self>, event_loop: Job<S>) {
        let mut pool = self.pool.lock().unwrap_or_else(|poison| poison.into_inner());
        pool.jobs.push(event_loop);
        if pool.idle >= pool.jobs.len() {
            self.job_added.notify_one();
            return;
        }
        pool.threads += 1;
        let name = format!("{LOOP_THREAD_NAME}{}", pool.threads);
        let fleet = self.clone();
        let thread = std::thread::Builder::new().name(name).stack_size(LOOP_STACK_BYTES);
        let spawned = thread.spawn(move || fleet.work());
        if spawned.is_err() {
            // The loop waits in `jobs` for the next thread that becomes idle.
            pool.threads -= 1;
        }
    }

    /// A thread's life: run a loop until it is lost or ends, then wait for the next.
    fn work(self: Arc<Self>) {
        let mut thread = Thread::new(self.service.clone());
        loop {
            let mut pool = self.pool.lock().unwrap_or_else(|poison| poison.into_inner());
            let event_loop = loop {
                if let Some(job) = pool.jobs.pop() {
                    break job;
                }
                if self.is_ending.load(Ordering::Relaxed) {
                    return;
                }
                pool.idle += 1;
                pool = self.job_added.wait(pool).unwrap_or_else(|poison| poison.into_inner());
                pool.idle -= 1;
            };
            drop(pool);
            let pulse = Arc::new(Pulse::default());
            *event_loop.pulse.lock().unwrap_or_else(|poison| poison.into_inner()) = pulse.clone();
            let ownership = Ownership::new(pulse);
            if event_loop.run(&self, &mut thread, &ownership) {
                let _pool = self.pool.lock().unwrap_or_else(|poison| poison.into_inner());
                self.running.fetch_sub(1, Ordering::Release);
                self.ended.notify_all();
            }
        }
    }

    /// Looks after the loops: one whose thread is stuck in a command gets another thread.
    fn watch(self: Arc<Self>) {
        let mut seen: Vec<Option<u64>> = vec![None; self.loops.len()];
        let (mut looks, mut light, mut idle) = (0u32, 0u32, IdleWatch::default());
        while !self.is_ending.load(Ordering::Relaxed) {
            std::thread::sleep(WATCH_INTERVAL);
            self.service.look_ahead();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_BALANCE) {
                self.balance(&mut light, &mut idle);
            }
            for (event_loop, seen) in self.loops.iter().zip(&mut seen) {
                let pulse = event_loop.pulse.lock().unwrap_or_else(|p| p.into_inner()).clone();
                let now = pulse.in_command();
                let is_stuck = now.is_some() && now == *seen;
                *seen = now;
                if is_stuck && self.has_spare() && now.is_some_and(|beat| pulse.seize(beat)) {
                    *seen = None;
                    self.find_thread(event_loop.clone());
                }
            }
        }
    }

    /// Whether another thread may be started. At the limit, a loop waits for its own.
    fn has_spare(&self) -> bool {
        let pool = self.pool.lock().unwrap_or_else(|poison| poison.into_inner());
        pool.idle > 0 || pool.threads < self.loops.len() + SPARE_THREADS_MAX
    }
}

#[cfg(test)]
mod tests;
