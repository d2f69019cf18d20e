//! The longest pause while the table grows from nothing. Keys are inserted at a fixed pace that
//! leaves the machine room, so that a late reply means that the server paused, not that it, the
//! loader and the probe were fighting for cores.

use crate::failure::Result;
use crate::figures::milliseconds;
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan, Readings};
use crate::report::{Table, cost, goal};
use crate::servers::{Kind, Launch};
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::thread;
use std::time::{Duration, Instant};

const INSERTING_CONNECTIONS: usize = 4;
const INSERTING_PIPELINE: usize = 16;
const KEYS_PER_S: u64 = 200_000;
const KEYS_PER_SLICE: u64 = 1_000;
/// The control run overwrites this share of the keys.
const CONTROL_SHARE: u64 = 10;
const PAUSE_MS_MAX: f64 = 2.0;
/// The probes must not be a load of their own.
const RATE_SHARE: u64 = 10;

struct Found {
    kind: Kind,
    growing: Readings,
    control: Readings,
    seconds: f64,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Growth: GET latency while keys are inserted into an empty server",
        [
            "server",
            "keys",
            "seconds",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "pause max ms",
            "goal",
            "pause max, no growth",
            "probe lag max ms",
        ],
    );
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let found = measure(launch, options)?;
        eprintln!("growth: {} done", launch.kind.name());
        table.row(row(&found, options));
    }
    table.notes.push(format!(
        "SETs of new keys at {KEYS_PER_S}/s, GETs on a fixed schedule at {}/s, latency from the \
         time each was due. Pause: the latency less the time by which the prober itself woke late \
         (probe lag). No growth: the same pace of SETs on keys that are there already, which is \
         what the machine does to any server.",
        (options.probes_per_s / RATE_SHARE).max(1)
    ));
    Ok(table)
}

fn row(found: &Found, options: &Options) -> Vec<String> {
    let at = |share| cost(Some(milliseconds(found.growing.latencies.within(share))));
    let longest = milliseconds(found.growing.pauses.longest());
    let limit = (found.kind == Kind::Russet).then_some(PAUSE_MS_MAX);
    vec![
        found.kind.name().to_owned(),
        options.growth_keys.to_string(),
        format!("{:.1}", found.seconds),
        at(0.5),
        at(0.99),
        at(0.999),
        cost(Some(milliseconds(found.growing.latencies.longest()))),
        cost(Some(longest)),
        goal(limit, Some(longest)),
        cost(Some(milliseconds(found.control.pauses.longest()))),
        cost(Some(milliseconds(found.growing.lags.longest()))),
    ]
}

fn measure(launch: &Launch, options: &Options) -> Result<Found> {
    let server = launch.start()?;
    let keys = options.growth_keys;
    let mut source = Source::seeded(options.seed).among(keys);
    let plan = ProbePlan {
        port: server.port,
        template: Template::parse("GET new:{r}")?,
        source: source.clone(),
        probes_per_s: (options.probes_per_s / RATE_SHARE).max(1),
        connections: PROBE_CONNECTIONS,
    };
    let mut loader = Loader::connect(server.port, INSERTING_CONNECTIONS)?;
    let mut phase = |request: &str, keys: u64| {
        let template = Template::parse(request)?;
        let start = Instant::now();
        let probe = Probe::start(&plan)?;
        pace(&mut loader, &template, keys, &mut source, server.kind)?;
        let seconds = start.elapsed().as_secs_f64();
        probe.finish().map(|readings| (readings, seconds))
    };
    let (growing, seconds) = phase("SET new:{s} {v:32}", keys)?;
    let (control, _) = phase("SET new:{r} {v:32}", (keys / CONTROL_SHARE).max(KEYS_PER_S))?;
    Ok(Found { kind: server.kind, growing, control, seconds })
}

/// Slices on a schedule; one that is late is followed at once by the next.
fn pace(
    loader: &mut Loader,
    template: &Template,
    keys: u64,
    source: &mut Source,
    kind: Kind,
) -> Result<()> {
    let interval = Duration::from_secs(1) / (KEYS_PER_S / KEYS_PER_SLICE) as u32;
    let (mut due, mut left) = (Instant::now(), keys);
    while left > 0 {
        let slice = left.min(KEYS_PER_SLICE);
        let until = Until::Requests(slice);
        let outcome = loader.run(Plan { template, pipeline: INSERTING_PIPELINE, until }, source)?;
        refuse_errors(kind, "SET", &outcome)?;
        left -= slice;
        due += interval;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}
