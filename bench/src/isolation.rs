//! What others feel while one client reads a very long list, walks the whole keyspace, or runs a
//! long script, over and over; and what readers of a few keys feel that others keep writing.

use crate::client::{BareClient, Client};
use crate::failure::{Failure, Result};
use crate::figures::{median, milliseconds, paired_ratios};
use crate::find::Field;
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan, Readings};
use crate::report::{Table, cost, figure, goal, goal_in};
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

/// What the others do, and what is asked meanwhile.
pub struct Disturbance {
    title: &'static str,
    name: &'static str,
    work: Work,
    goal: Goal,
    /// Clients that do it, each in a loop of its own.
    clients: usize,
    /// The request whose latency is measured.
    probe: &'static str,
    /// Times the usual number of keys.
    keys_factor: u64,
    /// Connections that ask. If everybody waits for `t` anyhow, as many must be there as requests
    /// are due in that time: else these wait for a connection, and are never caught up with.
    connections: u32,
}

enum Work {
    /// The whole list, each time.
    List,
    /// A script on one key that takes about so long.
    Script(Duration),
    /// The same on a key that it does not declare: it has every key to itself.
    WideScript(Duration),
    /// The name of every key.
    AllKeys,
    /// Values for the few keys that are read meanwhile.
    HotKeys,
}

/// The most that the others' p99 may be.
enum Goal {
    /// As a share of Valkey's.
    Share(f64),
    Milliseconds(f64),
}

const GET: &str = "GET key:{r}";
const HOT_KEYS: usize = 10;

const LIST: Disturbance = Disturbance {
    title: "Isolation: GET on other keys while LRANGE reads a million elements in a loop",
    name: "LRANGE",
    work: Work::List,
    goal: Goal::Share(0.1),
    clients: 1,
    probe: GET,
    keys_factor: 1,
    connections: PROBE_CONNECTIONS,
};

const ALL_KEYS: Disturbance = Disturbance {
    title: "Isolation: GET while KEYS walks three times as many keys in a loop",
    name: "KEYS",
    work: Work::AllKeys,
    keys_factor: 3,
    ..LIST
};

const WIDE_SCRIPT: Disturbance = Disturbance {
    title: "Isolation: GET while a script of 50 ms runs on undeclared keys in a loop",
    name: "wide script",
    work: Work::WideScript(Duration::from_millis(50)),
    goal: Goal::Milliseconds(60.0),
    connections: 5 * PROBE_CONNECTIONS,
    ..LIST
};

const HOT_KEYS_WRITTEN: Disturbance = Disturbance {
    title: "Isolation: MGET of ten keys while four clients write these keys by MSET in a loop",
    name: "MSET",
    work: Work::HotKeys,
    goal: Goal::Share(1.0),
    clients: 4,
    probe: "MGET 10x[ hot:{i:10} ]",
    keys_factor: 1,
    connections: PROBE_CONNECTIONS,
};

/// The disturbances of the section, in the order of the report.
pub static ALL: [&Disturbance; 4] = [&LIST, &ALL_KEYS, &WIDE_SCRIPT, &HOT_KEYS_WRITTEN];

pub static SCRIPT: Disturbance = Disturbance {
    title: "Isolation: GET on other keys while a script of 100 ms runs on one key in a loop",
    name: "script",
    work: Work::Script(Duration::from_millis(100)),
    goal: Goal::Milliseconds(10.0),
    ..LIST
};

/// Writes its key and then counts for as long as it is asked to. (It can't look at the clock: to a
/// script of Valkey the time stands still.)
const BUSY: &str = "redis.call('INCR', KEYS[1]) local n = 0 \
                    for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end return n";
/// The same with a key that it makes up.
const BUSY_WIDE: &str = "redis.call('INCR', 'bu' .. 'sy') local n = 0 \
                         for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end return n";
/// Turns that are timed to find out how many a script needs.
const TRIAL_TURNS: u64 = 2_000_000;

impl Work {
    /// The request for this server, which works at its own speed.
    fn request(&self, server: &Server) -> Result<Vec<u8>> {
        let (time, script) = match self {
            Work::List => return Ok(encode(&["LRANGE", "million", "0", "-1"])),
            Work::AllKeys => return Ok(encode(&["KEYS", "*"])),
            Work::HotKeys => return Ok(encode(&hot_values())),
            Work::Script(time) => (time, [BUSY, "1", "busy"].as_slice()),
            Work::WideScript(time) => (time, [BUSY_WIDE, "0"].as_slice()),
        };
        let mut client = Client::connect(server.port)?;
        let mut fastest = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            client.number(&script_call(script, &TRIAL_TURNS.to_string()))?;
            fastest = fastest.min(start.elapsed());
        }
        let turns = TRIAL_TURNS as f64 * time.as_secs_f64() / fastest.as_secs_f64().max(1e-6);
        Ok(encode(&script_call(script, &(turns as u64).to_string())))
    }
}
fn script_call<'a>(script: &[&'a str], turns: &'a str) -> Vec<&'a str> {
    [&["EVAL"], script, &[turns]].concat()
}

/// From the last key to the first: against the order in which they are read.
fn hot_values() -> Vec<String> {
    let pairs = (0..HOT_KEYS).rev().flat_map(|key| [format!("hot:{key}"), "value".to_owned()]);
    std::iter::once("MSET".to_owned()).chain(pairs).collect()
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
    let options = &Options { keys: options.keys * disturbance.keys_factor, ..options.clone() };
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
            one_round(server, options, disturbance, series)?;
            eprintln!(
                "isolation, {}: {} round {}",
                disturbance.name,
                server.kind.name(),
                round + 1
            );
        }
    }
    Ok(table(options, disturbance, &contenders, rounds))
}

fn one_round(
    server: &Server,
    options: &Options,
    disturbance: &Disturbance,
    series: &mut Series,
) -> Result<()> {
    let time = options.time_per_round * 4;
    let plan = ProbePlan {
        port: server.port,
        template: Template::parse(disturbance.probe)?,
        source: Source::seeded(options.seed).among(options.keys),
        probes_per_s: (options.probes_per_s / RATE_SHARE).max(1),
        connections: disturbance.connections,
    };
    let probe = Probe::start(&plan)?;
    thread::sleep(time / 2);
    series.quiet.push(probe.finish()?);

    let disturbers = (0..disturbance.clients)
        .map(|_| Disturber::start(server.port, series.request.clone()))
        .collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    let probe = Probe::start(&plan)?;
    thread::sleep(time);
    let readings = probe.finish()?;
    let elapsed = start.elapsed();
    let runs = disturbers.into_iter().map(Disturber::finish).sum::<Result<u64>>()?;
    series.runs_per_s.push(runs as f64 / elapsed.as_secs_f64());
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
        let is_over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut runs = 0;
            while !is_over.load(Ordering::Relaxed) {
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
        let limit = |limit: f64| (server.kind == Kind::Russet).then_some(limit);
        let goal = match disturbance.goal {
            Goal::Share(share) => goal(limit(share), ratio),
            Goal::Milliseconds(time) => {
                goal_in("ms", limit(time), median(&p99s(&series.disturbed)))
            }
        };
        let against = [figure(ratio), goal];
        let runs = median(&series.runs_per_s);
        let name = format!("{name}, {}", disturbance.name);
        table.row(row(name, &series.disturbed, against, runs));
    }
    table.notes.push(format!(
        "{} connections, {} requests/s on a fixed schedule, latency from the time \
         each was due; {rounds} interleaved rounds, medians, max of all; probe lag: how late the \
         prober itself woke, which is the machine's doing.",
        disturbance.connections,
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
