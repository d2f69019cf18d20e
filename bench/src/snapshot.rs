//! What BGSAVE costs: alone, its time and CPU; beside GETs and SETs of the same keys, what those
//! feel, and what memory is taken for it.

use crate::failure::{Doing, Failure, Result};
use crate::figures::milliseconds;
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan, Readings};
use crate::report::{Table, cost, goal, percent};
use crate::servers::{Kind, Launch, Server};
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LOADING_CONNECTIONS: usize = 10;
const LOADING_PIPELINE: usize = 100;
const FILL: &str = "SET key:{s} {v:64}";
/// Reads and writes at the same rate.
const PROBES: [&str; 2] = ["GET key:{r}", "SET key:{r} {v:64}"];
const PAUSE_MS_MAX: f64 = 5.0;
const EXTRA_PERCENT_MAX: f64 = 10.0;
/// How often it is looked whether the save is over, and what memory is taken.
const LOOK: Duration = Duration::from_millis(50);

struct Found {
    kind: Kind,
    wall: Duration,
    cpu: Duration,
    quiet: [Readings; 2],
    saving: [Readings; 2],
    /// Of the save beside the load.
    took: Duration,
    before_bytes: u64,
    extra_bytes: u64,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Snapshot: BGSAVE alone, and beside GET and SET of the same keys in equal parts",
        [
            "server",
            "keys",
            "alone s",
            "CPU s",
            "beside s",
            "GET p99 ms",
            "SET p99 ms",
            "quiet SET p99",
            "pause max ms",
            "goal",
            "extra memory",
            "of the data",
            "goal",
        ],
    );
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let found = measure(launch, options)?;
        eprintln!("snapshot: {} done", launch.kind.name());
        table.row(row(&found, options));
    }
    table.notes.push(format!(
        "A fresh server each. {}/s requests on a fixed schedule, half of them SETs of random keys, \
         latency from the time each was due. Pause: the latency less the time by which the prober \
         itself woke late. Extra memory: the proportional set size (PSS) of the server and its \
         children at its peak, less that before. CPU: of the server and its children.",
        rate(options) * 2,
    ));
    Ok(table)
}

fn rate(options: &Options) -> u64 {
    (options.probes_per_s / 4).max(1)
}

fn row(found: &Found, options: &Options) -> Vec<String> {
    let p99 = |readings: &Readings| cost(Some(milliseconds(readings.latencies.within(0.99))));
    let longest = found.saving.iter().map(|it| milliseconds(it.pauses.longest()));
    let longest = longest.fold(0.0, f64::max);
    let is_ours = found.kind == Kind::Russet;
    let share = found.extra_bytes as f64 / found.before_bytes.max(1) as f64;
    vec![
        found.kind.name().to_owned(),
        options.snapshot_keys.to_string(),
        format!("{:.2}", found.wall.as_secs_f64()),
        format!("{:.2}", found.cpu.as_secs_f64()),
        format!("{:.2}", found.took.as_secs_f64()),
        p99(&found.saving[0]),
        p99(&found.saving[1]),
        p99(&found.quiet[1]),
        cost(Some(longest)),
        goal(is_ours.then_some(PAUSE_MS_MAX), Some(longest)),
        format!("{:.1} MB", found.extra_bytes as f64 / 1e6),
        percent(Some(share)),
        goal(is_ours.then_some(EXTRA_PERCENT_MAX), Some(share * 100.0)),
    ]
}

fn measure(launch: &Launch, options: &Options) -> Result<Found> {
    let server = launch.start()?;
    fill(&server, options)?;
    let cpu_before = server.cpu_total()?;
    let wall = save(&server)?;
    let cpu = server.cpu_total()?.saturating_sub(cpu_before);

    let window = Duration::from_secs(if options.is_quick { 1 } else { 5 });
    let probes = start_probes(&server, options)?;
    thread::sleep(window);
    let quiet = finish(probes)?;

    let before_bytes = memory_of(server.pid())?;
    let probes = start_probes(&server, options)?;
    let (is_over, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watch = watch_memory(server.pid(), (is_over.clone(), peak.clone()));
    let took = save(&server)?;
    is_over.store(true, Ordering::Relaxed);
    watch.join().map_err(|_| Failure::server("the watch", "panicked"))?;
    let saving = finish(probes)?;
    let extra_bytes = peak.load(Ordering::Relaxed).saturating_sub(before_bytes);
    Ok(Found { kind: server.kind, wall, cpu, quiet, saving, took, before_bytes, extra_bytes })
}

fn fill(server: &Server, options: &Options) -> Result<()> {
    let template = Template::parse(FILL)?;
    let mut loader = Loader::connect(server.port, LOADING_CONNECTIONS)?;
    let until = Until::Requests(options.snapshot_keys);
    let plan = Plan { template: &template, pipeline: LOADING_PIPELINE, until };
    let source = &mut Source::seeded(options.seed).among(options.snapshot_keys);
    let outcome = loader.run(plan, source)?;
    refuse_errors(server.kind, FILL, &outcome)
}

fn start_probes(server: &Server, options: &Options) -> Result<[Probe; 2]> {
    let probe = |template: &str| {
        Probe::start(&ProbePlan {
            port: server.port,
            template: Template::parse(template)?,
            source: Source::seeded(options.seed).among(options.snapshot_keys),
            probes_per_s: rate(options),
            connections: PROBE_CONNECTIONS,
        })
    };
    Ok([probe(PROBES[0])?, probe(PROBES[1])?])
}

fn finish([reads, writes]: [Probe; 2]) -> Result<[Readings; 2]> {
    Ok([reads.finish()?, writes.finish()?])
}

/// Saves, and waits until that is over.
pub fn save(server: &Server) -> Result<Duration> {
    let mut client = server.client()?;
    let started = Instant::now();
    let reply = client.ask(&["BGSAVE"])?;
    if reply.is_error() {
        return Err(Failure::server(server.kind.name(), format!("BGSAVE: {reply:?}")));
    }
    while client.info_field("persistence", "rdb_bgsave_in_progress")? != Some(0) {
        thread::sleep(LOOK / 5);
    }
    Ok(started.elapsed())
}

fn watch_memory(
    pid: u32,
    (is_over, peak): (Arc<AtomicBool>, Arc<AtomicU64>),
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            // A child that has just ended can't be read any more.
            if let Ok(bytes) = memory_of(pid) {
                peak.fetch_max(bytes, Ordering::Relaxed);
            }
            thread::sleep(LOOK);
        }
    })
}

/// A process and its children.
fn family(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

/// Bytes in memory, those that are shared counted once.
fn memory_of(pid: u32) -> Result<u64> {
    let mut total = 0;
    for pid in family(pid) {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).doing(format!("reading {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        total += kib.unwrap_or(0) * 1024;
    }
    Ok(total)
}
