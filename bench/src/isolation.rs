//! What others feel while one client reads a very long list, or runs a long script, over and over.

use crate::client::{BareClient, Client};
use crate::failure::{Failure, Result};
use crate::figures::{median, milliseconds, paired_ratios};
use crate::find::Field;
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan, Readings};
use crate::report::{Table, cost, figure, goal};
use crate::servers::{Kind, Server};
use crate::template::{Source, Template};
use crate::throughput::load;
use crate::workloads::{Count, KEYS, Preparation};
use russet_protocol::request::encode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

static MILLION: Preparation =
    Preparation::new("RPUSH million 100x[ {v:16} ]", Count::Times(10_000));
const ROUNDS: usize = 3;

/// What the one client does.
pub struct Disturbance {
    title: &'static str,
    name: &'static str,
    work: Work,
    goal: Goal,
}

enum Work {
    /// The whole list, each time.
    List,
    /// A script on one key that takes about so long.
    Script(Duration),
}

/// The most that the others' p99 may be.
enum Goal {
    /// As a share of Valkey's.
    Share(f64),
    Milliseconds(f64),
}

pub static LIST: Disturbance = Disturbance {
    title: "Isolation: GET on other keys while LRANGE reads a million elements in a loop",
    name: "LRANGE",
    work: Work::List,
    goal: Goal::Share(0.1),
};

pub static SCRIPT: Disturbance = Disturbance {
    title: "Isolation: GET on other keys while a script of 100 ms runs on one key in a loop",
    name: "script",
    work: Work::Script(Duration::from_millis(100)),
    goal: Goal::Milliseconds(10.0),
};

/// Writes its key and then counts for as long as it is told. (It can't look at the clock: to a
/// script of Valkey the time stands still.)
const BUSY: &str = "redis.call('INCR', KEYS[1]) local n = 0 \
                    for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end return n";
/// Turns that are timed to find out how many a script needs.
const TRIAL_TURNS: u64 = 2_000_000;

impl Work {
    /// The request for this server, which works at its own speed.
    fn request(&self, server: &Server) -> Result<Vec<u8>> {
        let Work::Script(time) = self else {
            return Ok(encode(&["LRANGE", "million", "0", "-1"]));
        };
        let mut client = Client::connect(server.port)?;
        let mut fastest = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            client.number(&["EVAL", BUSY, "1", "busy", &TRIAL_TURNS.to_string()])?;
            fastest = fastest.min(start.elapsed());
        }
        let turns = TRIAL_TURNS as f64 * time.as_secs_f64() / fastest.as_secs_f64().max(1e-6);
        Ok(encode(&["EVAL", BUSY, "1", "busy", &(turns as u64).to_string()]))
    }
}
/// The probes must not be a load of their own.
const RATE_SHARE: u64 = 10;

/// One server's readings, one of each kind per round.
#[derive(Default)]
struct Series {
    request: Vec<u8>,
    quiet: Vec<Readings>,
    disturbed: Vec<Readings>,
    runs_per_s: Vec<f64>,
}

pub fn run(options: &Options, field: &Field, disturbance: &Disturbance) -> Result<Table> {
    let mut contenders = Vec::new();
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let server = launch.start()?;
        load(&server, &KEYS, options)?;
        if let Work::List = disturbance.work {
            load(&server, &MILLION, options)?;
        }
        let request = disturbance.work.request(&server)?;
        contenders.push((server, Series { request, ..Series::default() }));
    }
    let rounds = if options.is_quick { 1 } else { ROUNDS };
    for round in 0..rounds {
        let count = contenders.len();
        for turn in 0..count {
            let (server, series) = &mut contenders[(turn + round) % count];
            one_round(server, options, series)?;
            eprintln!("isolation: {} round {}", server.kind.name(), round + 1);
        }
    }
    Ok(table(options, disturbance, &contenders, rounds))
}

fn one_round(server: &Server, options: &Options, series: &mut Series) -> Result<()> {
    let time = options.time_per_round * 4;
    let plan = ProbePlan {
        port: server.port,
        template: Template::parse("GET key:{r}")?,
        source: Source::seeded(options.seed).among(options.keys),
        probes_per_s: (options.probes_per_s / RATE_SHARE).max(1),
    };
    let probe = Probe::start(&plan)?;
    thread::sleep(time / 2);
    series.quiet.push(probe.finish()?);

    let disturber = Disturber::start(server.port, series.request.clone())?;
    let start = Instant::now();
    let probe = Probe::start(&plan)?;
    thread::sleep(time);
    let readings = probe.finish()?;
    let elapsed = start.elapsed();
    series.runs_per_s.push(disturber.finish()? as f64 / elapsed.as_secs_f64());
    series.disturbed.push(readings);
    Ok(())
}

/// The client that asks for the same costly thing in a loop.
struct Disturber {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Disturber {
    fn start(port: u16, request: Vec<u8>) -> Result<Disturber> {
        let mut client = BareClient::connect(port)?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut runs = 0;
            while !told.load(Ordering::Relaxed) {
                client.exchange(&request)?;
                runs += 1;
            }
            Ok(runs)
        });
        Ok(Disturber { stop, thread })
    }

    fn finish(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Failure::server("the disturbing client", "panicked"))?
    }
}

fn table(
    options: &Options,
    disturbance: &Disturbance,
    contenders: &[(Server, Series)],
    rounds: usize,
) -> Table {
    let per_s = format!("{}/s", disturbance.name);
    let mut table = Table::new(
        disturbance.title,
        [
            "server",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "p99 ÷ Valkey",
            "goal",
            &per_s,
            "probe lag p99 ms",
        ],
    );
    let p99s = |readings: &[Readings]| shares(readings, 0.99);
    let find = |kind| contenders.iter().find(|(server, _)| server.kind == kind);
    for (server, series) in contenders {
        let valkey = find(Kind::Valkey).map(|(_, series)| p99s(&series.disturbed));
        let ratio = valkey.filter(|_| server.kind == Kind::Russet);
        let ratio =
            ratio.and_then(|theirs| median(&paired_ratios(&p99s(&series.disturbed), &theirs)));
        let name = server.kind.name();
        table.row(row(
            format!("{name}, quiet"),
            &series.quiet,
            [String::new(), String::new()],
            None,
        ));
        let (limit, reached) = match disturbance.goal {
            Goal::Share(share) => (share, ratio),
            Goal::Milliseconds(time) => (time, median(&p99s(&series.disturbed))),
        };
        let limit = (server.kind == Kind::Russet).then_some(limit);
        let against = [figure(ratio), goal(limit, reached)];
        let runs = median(&series.runs_per_s);
        let name = format!("{name}, {}", disturbance.name);
        table.row(row(name, &series.disturbed, against, runs));
    }
    table.notes.push(format!(
        "{PROBE_CONNECTIONS} connections, {} GETs/s on a fixed schedule, latency from the time \
         each was due; {rounds} interleaved rounds, medians, max of all; probe lag: how late the \
         prober itself woke, which is the machine's doing.",
        (options.probes_per_s / RATE_SHARE).max(1)
    ));
    table
}

fn shares(readings: &[Readings], share: f64) -> Vec<f64> {
    readings.iter().map(|readings| milliseconds(readings.latencies.within(share))).collect()
}

fn row(
    name: String,
    readings: &[Readings],
    [ratio, goal]: [String; 2],
    runs_per_s: Option<f64>,
) -> Vec<String> {
    let at = |share: f64| cost(median(&shares(readings, share)));
    let longest = readings.iter().map(|readings| readings.latencies.longest()).max();
    let lags: Vec<f64> =
        readings.iter().map(|readings| milliseconds(readings.lags.within(0.99))).collect();
    vec![
        name,
        at(0.5),
        at(0.99),
        at(0.999),
        cost(longest.map(milliseconds)),
        ratio,
        goal,
        runs_per_s.map_or(String::new(), |rate| figure(Some(rate))),
        cost(median(&lags)),
    ]
}
