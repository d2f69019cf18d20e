//! What the append-only log costs: CPU of SETs with `everysec` over none, SETs per second with
//! `always`, and what small writes feel beside very large ones.

use crate::client::BareClient;
use crate::failure::{Doing, Failure, Result};
use crate::figures::{median, milliseconds, paired_ratios, spread};
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan};
use crate::report::{Table, cost, figure, goal, percent};
use crate::servers::{Kind, Launch, Server};
use crate::template::{Source, Template};
use crate::throughput::{cpu_us, refuse_errors};
use russet_protocol::request::encode;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const SET: &str = "SET key:{r} {v:64}";
const PIPELINE: usize = 16;
/// What `everysec` may add to the CPU of a SET, in percent.
const ADDED_PERCENT_MAX: f64 = 15.0;
/// With `always`: how long a sync takes longer, in microseconds, and the least over Valkey.
const DELAYS: [(u64, f64); 2] = [(0, 1.5), (5_000, 1.0)];
/// A round of syncs is longer than others: there are fewer of them.
const ALWAYS_ROUND: u32 = 2;
const LARGE_BYTES: usize = 256 << 20;
const LARGE_BYTES_QUICK: usize = 16 << 20;
/// The p99 of small SETs beside large ones, over that without.
const BESIDE_MAX: f64 = 2.0;
const BESIDE_ROUND: u32 = 5;
/// Of the probes per second of other sections.
const RATE_SHARE: u64 = 20;

pub fn run(options: &Options, field: &Field) -> Result<Vec<Table>> {
    Ok(vec![everysec(options, field)?, always(options, field)?, beside_large(options, field)?])
}

/// With a log that is never rewritten meanwhile.
fn logging(launch: &Launch, policy: &str) -> Launch {
    let args =
        ["--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0"];
    let mut launch = launch.clone();
    launch.arguments.extend(args.map(str::to_owned));
    launch
}

fn storing(field: &Field) -> impl Iterator<Item = &Launch> {
    field.launches.iter().filter(|launch| launch.kind.stores_data())
}

fn everysec(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Log: SET with everysec over no log",
        ["server", "no log µs", "everysec µs", "more", "goal in %", "spread"],
    );
    let template = Template::parse(SET)?;
    for launch in storing(field) {
        let servers = [launch.start()?, logging(launch, "everysec").start()?];
        let mut source = Source::seeded(options.seed).among(options.keys);
        let mut series = [Vec::new(), Vec::new()];
        // The first round makes the keys, and is not counted.
        for round in 0..=options.rounds {
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                let until = Until::Elapsed(options.time_per_round);
                let plan = Plan { template: &template, pipeline: PIPELINE, until };
                let found = cpu_us(&servers[at], plan, options.connections, &mut source)?;
                if round > 0 {
                    series[at].push(found);
                }
            }
        }
        let ratios = paired_ratios(&series[1], &series[0]);
        let added = median(&ratios).map(|ratio| ratio - 1.0);
        let is_ours = launch.kind == Kind::Russet;
        table.row(vec![
            launch.kind.name().to_owned(),
            cost(median(&series[0])),
            cost(median(&series[1])),
            percent(added),
            goal(is_ours.then_some(ADDED_PERCENT_MAX), added.map(|share| share * 100.0)),
            percent(spread(&ratios)),
        ]);
        eprintln!("log: everysec on {} done", launch.kind.name());
    }
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per SET, {} connections, pipelines of \
         {PIPELINE}, {} keys, {} rounds in turn on two servers, medians. More: the median of \
         each round's.",
        options.connections, options.keys, options.rounds
    ));
    Ok(table)
}

fn always(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Log: SET with always",
        ["sync takes longer by", "server", "SETs/s", "SETs per sync", "÷ Valkey", "goal", "spread"],
    );
    let shim = SyncShim::build()?;
    for (delay_us, least) in DELAYS {
        let mut servers = Vec::new();
        for launch in storing(field) {
            servers.push(Synced::start(launch, &shim, delay_us)?);
        }
        let mut source = Source::seeded(options.seed).among(options.keys);
        for round in 0..options.rounds {
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                servers[at].measure(options, &mut source)?;
            }
        }
        let theirs = servers.iter().find(|it| it.server.kind == Kind::Valkey);
        let theirs = theirs.map(|it| it.per_s.clone()).unwrap_or_default();
        for it in &servers {
            let is_ours = it.server.kind == Kind::Russet;
            let ratios = if is_ours { paired_ratios(&it.per_s, &theirs) } else { Vec::new() };
            let ratio = median(&ratios);
            let verdict = |ratio: f64| if ratio >= least { "met" } else { "MISSED" };
            table.row(vec![
                format!("{} ms", delay_us / 1000),
                it.server.kind.name().to_owned(),
                figure(median(&it.per_s)),
                figure(median(&it.per_sync)),
                cost(ratio),
                ratio.map_or(String::new(), |it| format!("≥ {least} {}", verdict(it))),
                percent(spread(&ratios)),
            ]);
        }
        eprintln!("log: always with {delay_us} µs more done");
    }
    table.notes.push(format!(
        "{} connections without pipelines, {} rounds of {} s in turn, medians. Each fsync and \
         fdatasync is counted and delayed by a library that is loaded before libc's. The files \
         are in {}.",
        options.connections,
        options.rounds,
        (options.time_per_round * ALWAYS_ROUND).as_secs_f64(),
        std::env::temp_dir().display(),
    ));
    Ok(table)
}

/// A server with `always` whose syncs are counted.
struct Synced {
    server: Server,
    count_file: PathBuf,
    per_s: Vec<f64>,
    per_sync: Vec<f64>,
}

impl Synced {
    fn start(launch: &Launch, shim: &SyncShim, delay_us: u64) -> Result<Synced> {
        let mut launch = logging(launch, "always");
        let count_file = shim.directory.join(format!("{}-{delay_us}", launch.kind.name()));
        launch.preload.push(shim.library.clone());
        launch.environment = vec![
            ("SYNC_COUNT_FILE", count_file.clone().into()),
            ("SYNC_DELAY_US", delay_us.to_string().into()),
        ];
        let (per_s, per_sync) = (Vec::new(), Vec::new());
        Ok(Synced { server: launch.start()?, count_file, per_s, per_sync })
    }

    fn measure(&mut self, options: &Options, source: &mut Source) -> Result<()> {
        let template = Template::parse(SET)?;
        let mut loader = Loader::connect(self.server.port, options.connections)?;
        let until = Until::Elapsed(options.time_per_round * ALWAYS_ROUND);
        let before = self.syncs()?;
        let outcome = loader.run(Plan { template: &template, pipeline: 1, until }, source)?;
        refuse_errors(self.server.kind, SET, &outcome)?;
        let syncs = self.syncs()? - before;
        if syncs == 0 {
            return Err(Failure::server(self.server.kind.name(), "no sync was seen"));
        }
        self.per_s.push(outcome.requests_per_s());
        self.per_sync.push(outcome.requests as f64 / syncs as f64);
        Ok(())
    }

    fn syncs(&self) -> Result<u64> {
        let bytes = fs::read(&self.count_file).doing("reading the count of syncs")?;
        Ok(bytes.try_into().map_or(0, u64::from_ne_bytes))
    }
}

/// The library that counts syncs, and the files that it counts in.
struct SyncShim {
    directory: PathBuf,
    library: PathBuf,
}

impl SyncShim {
    fn build() -> Result<SyncShim> {
        let directory =
            std::env::temp_dir().join(format!("russet-bench-sync-{}", std::process::id()));
        fs::create_dir_all(&directory).doing("making a directory")?;
        let shim = SyncShim { library: directory.join("slow_sync.so"), directory };
        let source = shim.directory.join("slow_sync.c");
        fs::write(&source, include_str!("slow_sync.c")).doing("writing slow_sync.c")?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&shim.library).arg(&source);
        if !compiler.status().doing("running cc")?.success() {
            return Err(Failure::server("cc", "did not compile slow_sync.c"));
        }
        Ok(shim)
    }
}

impl Drop for SyncShim {
    fn drop(&mut self) {
        let _left_to_the_system = fs::remove_dir_all(&self.directory);
    }
}

fn beside_large(options: &Options, field: &Field) -> Result<Table> {
    let bytes = if options.is_quick { LARGE_BYTES_QUICK } else { LARGE_BYTES };
    let mut table = Table::new(
        "Log: small SETs with always beside very large ones",
        ["server", "p99 ms alone", "p99 ms beside", "beside ÷ alone", "goal", "large SETs/s"],
    );
    for launch in storing(field) {
        let server = logging(launch, "always").start()?;
        let alone = small_p99(&server, options)?;
        let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = write_large(&server, bytes, (is_over.clone(), done.clone()))?;
        let beside = small_p99(&server, options)?;
        let written = done.load(Ordering::Relaxed);
        is_over.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| Failure::server("the large writer", "panicked"))??;
        let is_ours = launch.kind == Kind::Russet;
        let ratio = beside / alone.max(1e-9);
        let window = options.time_per_round * BESIDE_ROUND;
        table.row(vec![
            launch.kind.name().to_owned(),
            cost(Some(alone)),
            cost(Some(beside)),
            cost(Some(ratio)),
            goal(is_ours.then_some(BESIDE_MAX), Some(ratio)),
            figure(Some(written as f64 / window.as_secs_f64())),
        ]);
        eprintln!("log: large values on {} done", launch.kind.name());
    }
    table.notes.push(format!(
        "{}/s small SETs on a fixed schedule, latency from the time each was due; beside them one \
         client SETs {} MB in a loop. {} s each.",
        rate(options),
        bytes >> 20,
        (options.time_per_round * BESIDE_ROUND).as_secs_f64(),
    ));
    Ok(table)
}

fn rate(options: &Options) -> u64 {
    (options.probes_per_s / RATE_SHARE).max(1)
}

fn small_p99(server: &Server, options: &Options) -> Result<f64> {
    let probe = Probe::start(&ProbePlan {
        port: server.port,
        template: Template::parse(SET)?,
        source: Source::seeded(options.seed).among(options.keys),
        probes_per_s: rate(options),
        connections: PROBE_CONNECTIONS,
    })?;
    thread::sleep(options.time_per_round * BESIDE_ROUND);
    Ok(milliseconds(probe.finish()?.latencies.within(0.99)))
}

/// SETs a large value again and again until it is over.
fn write_large(
    server: &Server,
    bytes: usize,
    (is_over, done): (Arc<AtomicBool>, Arc<AtomicU64>),
) -> Result<thread::JoinHandle<Result<()>>> {
    let mut client = BareClient::connect(server.port)?;
    let request = encode(&["SET", "large", &"x".repeat(bytes)]);
    Ok(thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            client.exchange(&request)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_counts_syncs_is_built() {
        let shim = SyncShim::build().unwrap();
        let count_file = shim.directory.join("count");
        let mut command = Command::new("sync");
        command.arg(&shim.library).env("LD_PRELOAD", &shim.library);
        command.env("SYNC_COUNT_FILE", &count_file);
        assert!(command.status().unwrap().success());
        assert_eq!(fs::read(&count_file).unwrap(), 1_u64.to_ne_bytes());
    }
}
