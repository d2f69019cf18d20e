//! The embedded engine: one call at a time through its client, from the arguments to a value that
//! the caller owns, on one thread and on two.

use crate::failure::Result;
use crate::options::Options;
use crate::report::{Table, cost, goal};
use crate::{cpu, figures};
use russet_base::Random;
use russet_embedded::{Client, Engine, Options as EngineOptions};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Microseconds of one call on one thread, at most.
const GET_MICROS_MAX: f64 = 0.25;
const SET_MICROS_MAX: f64 = 0.35;
/// The least that two threads must bring over one.
const SPEED_UP_MIN: f64 = 1.7;
/// With few keys the calls are measured, with many also the way to memory that each takes alone.
const KEYS: [u64; 2] = [10_000, 1_000_000];
/// Keys that a thread has ready, so that making them costs nothing.
const KEYS_READY: usize = 4096;
/// Calls between two looks at the clock's signal.
const CALLS_PER_LOOK: usize = 64;
const VALUE: [u8; 32] = [b'x'; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Get,
    Set,
    Pipeline,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Get => "GET",
            Work::Set => "SET",
            Work::Pipeline => "16 GETs in a pipeline, each",
        }
    }

    fn micros_max(self, keys: u64) -> Option<f64> {
        match self {
            Work::Get if keys == KEYS[0] => Some(GET_MICROS_MAX),
            Work::Set if keys == KEYS[0] => Some(SET_MICROS_MAX),
            _ => None,
        }
    }
}

pub fn run(options: &Options) -> Result<Table> {
    let mut table = Table::new(
        "Embedded engine",
        [
            "call",
            "keys",
            "CPU µs on one thread",
            "goal",
            "CPU µs on two",
            "two threads over one",
            "goal on two",
        ],
    );
    for keys in KEYS {
        let engine = Engine::open(EngineOptions::new()).map_err(failed)?;
        fill(&mut engine.client(), keys);
        for work in [Work::Get, Work::Set, Work::Pipeline] {
            let (mut one, mut two) = (Vec::new(), Vec::new());
            for _ in 0..options.rounds {
                one.push(measure(&engine, (work, keys), 1, options.time_per_round));
                two.push(measure(&engine, (work, keys), 2, options.time_per_round));
            }
            let ratios = one.iter().zip(&two).map(|(one, two)| two.per_s / one.per_s);
            let ratio = median(ratios).unwrap_or(f64::NAN);
            let micros = median(one.iter().map(|round| round.cpu_us));
            let verdict = if ratio >= SPEED_UP_MIN { "met" } else { "MISSED" };
            table.row(vec![
                work.name().to_owned(),
                keys.to_string(),
                cost(micros),
                goal(work.micros_max(keys), micros),
                cost(median(two.iter().map(|round| round.cpu_us))),
                format!("{ratio:.2}"),
                format!("≥ {SPEED_UP_MIN} {verdict}"),
            ]);
        }
    }
    table.notes.push(format!(
        "Values of {} bytes, keys at random; medians of {} rounds.",
        VALUE.len(),
        options.rounds
    ));
    Ok(table)
}

fn failed(error: russet_embedded::OpenError) -> crate::failure::Failure {
    crate::failure::Failure::Usage(error.to_string())
}

fn key_name(key: u64) -> String {
    format!("key:{key:012}")
}

fn fill(client: &mut Client, keys: u64) {
    for key in 0..keys {
        set(client, &key_name(key));
    }
}

fn set(client: &mut Client, key: &str) {
    let reply = client.call([b"SET".as_slice(), key.as_bytes(), &VALUE]);
    assert!(reply.is_ok(), "SET of a string succeeds");
}

fn get(client: &mut Client, key: &str) {
    let value: Option<Vec<u8>> = client.query(["GET", key]).expect("GET of a string succeeds");
    assert_eq!(value.map(|value| value.len()), Some(VALUE.len()));
}

/// What one round came to.
struct Round {
    per_s: f64,
    /// Of the threads that call, for each call: what it costs, whoever else uses the machine.
    cpu_us: f64,
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    figures::median(&values.collect::<Vec<_>>())
}

/// Calls of so many threads at once.
fn measure(engine: &Engine, (work, keys): (Work, u64), threads: usize, time: Duration) -> Round {
    let cpu_ns = AtomicU64::new(0);
    let (calls, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let start = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for at in 0..threads {
            let (calls, cpu_ns, is_over, start) = (&calls, &cpu_ns, &is_over, &start);
            let mut client = engine.client();
            scope.spawn(move || {
                let mut random = Random::from_seed(at as u64);
                let ready: Vec<String> =
                    (0..KEYS_READY).map(|_| key_name(random.below(keys))).collect();
                let mut batches = ready.chunks(CALLS_PER_LOOK).cycle();
                start.wait();
                let before = cpu::own_thread().unwrap_or_default();
                while let (Some(batch), false) = (batches.next(), is_over.load(Ordering::Relaxed)) {
                    run_batch(&mut client, work, batch);
                    calls.fetch_add(batch.len() as u64, Ordering::Relaxed);
                }
                let cpu = cpu::own_thread().unwrap_or_default().saturating_sub(before);
                cpu_ns.fetch_add(cpu.as_nanos() as u64, Ordering::Relaxed);
            });
        }
        start.wait();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
    });
    let (calls, cpu_ns) = (calls.into_inner() as f64, cpu_ns.into_inner() as f64);
    Round { per_s: calls / time.as_secs_f64(), cpu_us: cpu_ns / calls / 1e3 }
}

fn run_batch(client: &mut Client, work: Work, keys: &[String]) {
    match work {
        Work::Get => keys.iter().for_each(|key| get(client, key)),
        Work::Set => keys.iter().for_each(|key| set(client, key)),
        Work::Pipeline => {
            for keys in keys.chunks(16) {
                let pipeline =
                    keys.iter().fold(client.pipeline(), |it, key| it.cmd("GET").arg(key));
                let values: Vec<Vec<u8>> = pipeline.query().expect("GET of a string succeeds");
                assert_eq!(values.len(), keys.len());
            }
        }
    }
}
