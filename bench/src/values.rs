//! What writers of one large collection feel while BGSAVE saves it.

use crate::failure::Result;
use crate::figures::milliseconds;
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan, Readings};
use crate::report::{Table, cost, goal};
use crate::servers::{Kind, Launch, Server};
use crate::snapshot::save;
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::time::Duration;

const ELEMENTS: u64 = 1_000_000;
const ELEMENTS_QUICK: u64 = 20_000;
const LOADING_CONNECTIONS: usize = 4;
const LOADING_PIPELINE: usize = 100;
const PAUSE_MS_MAX: f64 = 10.0;

/// By type: how it is filled and how it is changed meanwhile.
const VALUES: [(&str, &str, &str); 5] = [
    ("sorted set", "ZADD z {s:7} member:{s}", "ZADD z {n} member:{r}"),
    ("hash", "HSET h field:{s} {v:16}", "HSET h field:{r} {v:16}"),
    ("set", "SADD s member:{s}", "SADD s member:{r}:{i:10}"),
    ("list", "RPUSH l element:{s}", "LSET l 1{i:1000} element:{r}"),
    ("stream", "XADD x * field {v:16}", "XADD x * field {v:16}"),
];

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Values: writers of one large collection while BGSAVE saves it",
        ["type", "server", "elements", "BGSAVE s", "quiet max ms", "pause max ms", "goal"],
    );
    for value in VALUES {
        for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
            table.row(measure(launch, value, options)?);
            eprintln!("values: {} {} done", value.0, launch.kind.name());
        }
    }
    table.notes.push(format!(
        "A fresh server each, with nothing else. {}/s writes to the value on a fixed schedule. \
         Pause: the latency from the time each was due, less the time by which the prober itself \
         woke late.",
        rate(options),
    ));
    Ok(table)
}

fn rate(options: &Options) -> u64 {
    (options.probes_per_s / 4).max(1)
}

fn measure(
    launch: &Launch,
    (name, fill, change): (&str, &str, &str),
    options: &Options,
) -> Result<Vec<String>> {
    let elements = if options.is_quick { ELEMENTS_QUICK } else { ELEMENTS };
    let server = launch.start()?;
    let template = Template::parse(fill)?;
    let mut loader = Loader::connect(server.port, LOADING_CONNECTIONS)?;
    let until = Until::Requests(elements);
    let plan = Plan { template: &template, pipeline: LOADING_PIPELINE, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(elements))?;
    refuse_errors(server.kind, fill, &outcome)?;

    let probe = start_probe(&server, change, (options, elements))?;
    std::thread::sleep(Duration::from_secs(1));
    let quiet = probe.finish()?;
    let probe = start_probe(&server, change, (options, elements))?;
    let took = save(&server)?;
    let saving = probe.finish()?;
    let longest = |readings: &Readings| milliseconds(readings.pauses.longest());
    let is_ours = server.kind == Kind::Russet;
    Ok(vec![
        name.to_owned(),
        server.kind.name().to_owned(),
        elements.to_string(),
        format!("{:.2}", took.as_secs_f64()),
        cost(Some(longest(&quiet))),
        cost(Some(longest(&saving))),
        goal(is_ours.then_some(PAUSE_MS_MAX), Some(longest(&saving))),
    ])
}

fn start_probe(
    server: &Server,
    change: &str,
    (options, elements): (&Options, u64),
) -> Result<Probe> {
    Probe::start(&ProbePlan {
        port: server.port,
        template: Template::parse(change)?,
        source: Source::seeded(options.seed).among(elements),
        probes_per_s: rate(options),
        connections: PROBE_CONNECTIONS,
    })
}
