//! What others feel when very much is removed at once: DEL of one set of millions of members, and
//! FLUSHALL of as many keys.

use crate::failure::Result;
use crate::figures::milliseconds;
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan, Readings};
use crate::report::{Table, cost, goal};
use crate::servers::{Kind, Launch, Server};
use crate::template::{Source, Template};
use crate::throughput::{load, refuse_errors};
use crate::workloads::KEYS;
use std::thread;
use std::time::{Duration, Instant};

const LOADING_CONNECTIONS: usize = 10;
const LOADING_PIPELINE: usize = 100;
const PAUSE_MS_MAX: f64 = 2.0;
/// The probes must not be a load of their own.
const RATE_SHARE: u64 = 10;
/// How long the probe runs before the removal: its threads have settled by then.
const LEAD: Duration = Duration::from_millis(500);

/// What is there, and how it is removed.
struct Case {
    name: &'static str,
    fill: &'static str,
    remove: &'static [&'static str],
}

static CASES: [Case; 2] = [
    Case { name: "DEL of a set", fill: "SADD doomed m:{s}", remove: &["DEL", "doomed"] },
    Case { name: "FLUSHALL", fill: "SET doomed:{s} {v:32}", remove: &["FLUSHALL"] },
];

struct Found {
    kind: Kind,
    quiet: Readings,
    removing: Readings,
    /// Until the answer came.
    took: Duration,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Removal: GET on other keys while very much is removed",
        [
            "removal",
            "server",
            "members or keys",
            "answered after ms",
            "p50 ms",
            "p99 ms",
            "max ms",
            "pause max ms",
            "goal",
            "pause max, quiet",
            "probe lag max ms",
        ],
    );
    for case in &CASES {
        for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
            let found = measure(launch, case, options)?;
            eprintln!("removal: {}, {} done", case.name, launch.kind.name());
            table.row(row(case, &found, options));
        }
    }
    table.notes.push(format!(
        "A fresh server for each. GETs on {} other keys, {}/s on a fixed schedule, latency from \
         the time each was due, over the {} s that begin with the removal. Pause: the latency less \
         the time by which the prober itself woke late (probe lag). Quiet: as long before it.",
        options.keys,
        (options.probes_per_s / RATE_SHARE).max(1),
        window(options).as_secs_f64(),
    ));
    Ok(table)
}

fn window(options: &Options) -> Duration {
    Duration::from_secs(if options.is_quick { 1 } else { 4 })
}

fn row(case: &Case, found: &Found, options: &Options) -> Vec<String> {
    let at = |share| cost(Some(milliseconds(found.removing.latencies.within(share))));
    let longest = milliseconds(found.removing.pauses.longest());
    let limit = (found.kind == Kind::Russet).then_some(PAUSE_MS_MAX);
    vec![
        case.name.to_owned(),
        found.kind.name().to_owned(),
        options.removal_keys.to_string(),
        cost(Some(milliseconds(found.took))),
        at(0.5),
        at(0.99),
        cost(Some(milliseconds(found.removing.latencies.longest()))),
        cost(Some(longest)),
        goal(limit, Some(longest)),
        cost(Some(milliseconds(found.quiet.pauses.longest()))),
        cost(Some(milliseconds(found.removing.lags.longest()))),
    ]
}

fn measure(launch: &Launch, case: &Case, options: &Options) -> Result<Found> {
    let server = launch.start()?;
    load(&server, &KEYS, options)?;
    fill(&server, case, options)?;
    let mut client = server.client()?;
    let plan = ProbePlan {
        port: server.port,
        template: Template::parse("GET key:{r}")?,
        source: Source::seeded(options.seed).among(options.keys),
        probes_per_s: (options.probes_per_s / RATE_SHARE).max(1),
        connections: PROBE_CONNECTIONS,
    };
    let probe = Probe::start(&plan)?;
    thread::sleep(window(options));
    let quiet = probe.finish()?;

    let probe = Probe::start(&plan)?;
    thread::sleep(LEAD);
    let start = Instant::now();
    client.ask(case.remove)?;
    let took = start.elapsed();
    thread::sleep(window(options).saturating_sub(took));
    let removing = probe.finish()?;
    Ok(Found { kind: server.kind, quiet, removing, took })
}

fn fill(server: &Server, case: &Case, options: &Options) -> Result<()> {
    let template = Template::parse(case.fill)?;
    let mut loader = Loader::connect(server.port, LOADING_CONNECTIONS)?;
    let until = Until::Requests(options.removal_keys);
    let plan = Plan { template: &template, pipeline: LOADING_PIPELINE, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(options.keys))?;
    refuse_errors(server.kind, case.fill, &outcome)
}
