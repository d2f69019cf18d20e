//! What others feel while one client reads a very long list over and over.

use crate::client::BareClient;
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
use std::time::Instant;

static MILLION: Preparation =
    Preparation::new("RPUSH million 100x[ {v:16} ]", Count::Times(10_000));
const ROUNDS: usize = 3;
const P99_RATIO_MAX: f64 = 0.1;
/// The probes must not be a load of their own.
const RATE_SHARE: u64 = 10;

/// One server's readings, one of each kind per round.
#[derive(Default)]
struct Series {
    quiet: Vec<Readings>,
    disturbed: Vec<Readings>,
    lists_per_s: Vec<f64>,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut contenders = Vec::new();
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let server = launch.start()?;
        load(&server, &KEYS, options)?;
        load(&server, &MILLION, options)?;
        contenders.push((server, Series::default()));
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
    Ok(table(options, &contenders, rounds))
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

    let reader = Reader::start(server.port)?;
    let start = Instant::now();
    let probe = Probe::start(&plan)?;
    thread::sleep(time);
    let readings = probe.finish()?;
    let elapsed = start.elapsed();
    series.lists_per_s.push(reader.finish()? as f64 / elapsed.as_secs_f64());
    series.disturbed.push(readings);
    Ok(())
}

/// The client that reads the whole list in a loop.
struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Reader {
    fn start(port: u16) -> Result<Reader> {
        let mut client = BareClient::connect(port)?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let request = encode(&["LRANGE", "million", "0", "-1"]);
            let mut lists = 0;
            while !told.load(Ordering::Relaxed) {
                client.exchange(&request)?;
                lists += 1;
            }
            Ok(lists)
        });
        Ok(Reader { stop, thread })
    }

    fn finish(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Failure::server("the list reader", "panicked"))?
    }
}

fn table(options: &Options, contenders: &[(Server, Series)], rounds: usize) -> Table {
    let mut table = Table::new(
        "Isolation: GET on other keys while LRANGE reads a million elements in a loop",
        [
            "server",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "p99 ÷ Valkey",
            "goal",
            "LRANGE/s",
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
        let limit = (server.kind == Kind::Russet).then_some(P99_RATIO_MAX);
        let against = [figure(ratio), goal(limit, ratio)];
        let lists = median(&series.lists_per_s);
        table.row(row(format!("{name}, LRANGE"), &series.disturbed, against, lists));
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
    lists_per_s: Option<f64>,
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
        lists_per_s.map_or(String::new(), |rate| figure(Some(rate))),
        cost(median(&lags)),
    ]
}
