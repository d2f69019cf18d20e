//! Open-loop latency probe: each request has the time at which it is due, and its latency counts
//! from then, so that a server which stalls is charged for every request that had to wait.
//!
//! One thread with a blocking socket per connection: a thread that sleeps until a request is due
//! wakes within tens of microseconds, where a poller's timeout counts in milliseconds.

use crate::client::BareClient;
use crate::failure::{Failure, Result};
use crate::figures::Latencies;
use crate::template::{Pipeline, Source, Template};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// As many as the promise of isolation is about. Each has one request under way at a time.
pub const PROBE_CONNECTIONS: u32 = 20;

/// What is asked, and how often.
#[derive(Clone, Debug)]
pub struct ProbePlan {
    pub port: u16,
    pub template: Template,
    pub source: Source,
    pub probes_per_s: u64,
    pub connections: u32,
}

/// A probe under way.
pub struct Probe {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Times>>>,
}

/// Of one connection, in nanoseconds.
#[derive(Default)]
struct Times {
    latencies: Vec<u64>,
    pauses: Vec<u64>,
    lags: Vec<u64>,
}

/// What a probe saw.
#[derive(Clone, Debug)]
pub struct Readings {
    pub latencies: Latencies,
    /// The same less the probe's own lag: what the server itself causes.
    pub pauses: Latencies,
    /// How late the probe itself woke up: what this machine adds to a latency, whatever the server.
    pub lags: Latencies,
}

impl Probe {
    pub fn start(plan: &ProbePlan) -> Result<Probe> {
        let stop = Arc::new(AtomicBool::new(false));
        let count = plan.connections;
        let interval = Duration::from_secs(1) * count
            / u32::try_from(plan.probes_per_s.max(1)).unwrap_or(u32::MAX);
        let clients = (0..count).map(|_| BareClient::connect(plan.port));
        let clients = clients.collect::<Result<Vec<_>>>()?;
        let start = Instant::now() + Duration::from_millis(10);
        let mut source = plan.source.clone();
        let mut threads = Vec::new();
        for (index, client) in (0..count).zip(clients) {
            let schedule = Schedule { due: start + interval / count * index, interval };
            let plan = ProbePlan { source: source.fork(), ..plan.clone() };
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || probe(client, plan, schedule, &stop)));
        }
        Ok(Probe { stop, threads })
    }

    pub fn finish(self) -> Result<Readings> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Times::default();
        for thread in self.threads {
            let ended = thread.join().map_err(|_| Failure::server("the probe", "panicked"))?;
            let times = ended?;
            all.latencies.extend(times.latencies);
            all.pauses.extend(times.pauses);
            all.lags.extend(times.lags);
        }
        Ok(Readings {
            latencies: Latencies::new(all.latencies),
            pauses: Latencies::new(all.pauses),
            lags: Latencies::new(all.lags),
        })
    }
}

#[derive(Clone, Copy)]
struct Schedule {
    due: Instant,
    interval: Duration,
}

fn probe(
    mut client: BareClient,
    mut plan: ProbePlan,
    mut schedule: Schedule,
    stop: &AtomicBool,
) -> Result<Times> {
    let mut times = Times::default();
    let mut pipeline = Pipeline::new(&plan.template, 1);
    while !stop.load(Ordering::Relaxed) {
        let early = schedule.due.saturating_duration_since(Instant::now());
        let mut lag = Duration::ZERO;
        if !early.is_zero() {
            thread::sleep(early);
            lag = schedule.due.elapsed();
            times.lags.push(nanoseconds(lag));
        }
        client.exchange(pipeline.next(1, &mut plan.source))?;
        let latency = schedule.due.elapsed();
        times.latencies.push(nanoseconds(latency));
        times.pauses.push(nanoseconds(latency.saturating_sub(lag)));
        schedule.due += schedule.interval;
    }
    // What is due and unsent has waited this long at least.
    while let Some(waited) = Instant::now().checked_duration_since(schedule.due) {
        times.latencies.push(nanoseconds(waited));
        times.pauses.push(nanoseconds(waited));
        schedule.due += schedule.interval;
    }
    Ok(times)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
