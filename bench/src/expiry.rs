//! Many keys with one deadline: when their memory is free again, and what others feel meanwhile.

use crate::client::Client;
use crate::failure::{Failure, Result};
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
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LOADING_CONNECTIONS: usize = 10;
const LOADING_PIPELINE: usize = 100;
/// The slowest loading that still ends before the deadline.
const LOADED_KEYS_PER_S_MIN: u64 = 100_000;
const PROBE_LEAD: Duration = Duration::from_millis(200);
const ASKED_EVERY: Duration = Duration::from_millis(20);
const GONE_WAIT_MAX: Duration = Duration::from_secs(60);
const GONE_S_MAX: f64 = 1.5;
const P999_MS_MAX: f64 = 10.0;

struct Found {
    kind: Kind,
    gone_after: Option<Duration>,
    readings: Readings,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Expiry: keys that share one deadline",
        [
            "server",
            "keys",
            "all gone after s",
            "goal",
            "GET p50 ms",
            "p99 ms",
            "p99.9 ms",
            "goal p99.9",
            "max ms",
            "probe lag p99.9 ms",
        ],
    );
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let found = measure(launch, options)?;
        eprintln!("expiry: {} done", launch.kind.name());
        table.row(row(&found, options));
    }
    table.notes.push(format!(
        "Gone: DBSIZE counts none of them any more and expired_keys counts them all, after the \
         deadline. GETs on {} other keys, {}/s on a fixed schedule, latency from the time each was \
         due, over the {} s after the deadline.",
        options.keys,
        options.probes_per_s,
        window(options).as_secs_f64(),
    ));
    Ok(table)
}

/// The same stretch for every server: percentiles over different stretches don't compare.
fn window(options: &Options) -> Duration {
    Duration::from_secs(if options.is_quick { 1 } else { 4 })
}

fn row(found: &Found, options: &Options) -> Vec<String> {
    let at = |share| milliseconds(found.readings.latencies.within(share));
    let is_ours = found.kind == Kind::Russet;
    let seconds = found.gone_after.map(|time| time.as_secs_f64());
    let late = Some(seconds.unwrap_or(f64::INFINITY));
    vec![
        found.kind.name().to_owned(),
        options.expiry_keys.to_string(),
        seconds.map_or("never".into(), |seconds| format!("{seconds:.2}")),
        goal(is_ours.then_some(GONE_S_MAX), late),
        cost(Some(at(0.5))),
        cost(Some(at(0.99))),
        cost(Some(at(0.999))),
        goal(is_ours.then_some(P999_MS_MAX), Some(at(0.999))),
        cost(Some(milliseconds(found.readings.latencies.longest()))),
        cost(Some(milliseconds(found.readings.lags.within(0.999)))),
    ]
}

fn measure(launch: &Launch, options: &Options) -> Result<Found> {
    let server = launch.start()?;
    load(&server, &KEYS, options)?;
    let mut client = server.client()?;
    let before = Census::take(&mut client)?;
    let loading = options.expiry_keys.div_ceil(LOADED_KEYS_PER_S_MIN) + 2;
    let deadline = Instant::now() + Duration::from_secs(loading);
    load_doomed(&server, Duration::from_secs(loading), options)?;

    let plan = ProbePlan {
        port: server.port,
        template: Template::parse("GET key:{r}")?,
        source: Source::seeded(options.seed).among(options.keys),
        probes_per_s: options.probes_per_s,
        connections: PROBE_CONNECTIONS,
    };
    sleep_until(deadline - PROBE_LEAD);
    let probe = Probe::start(&plan)?;
    sleep_until(deadline);
    let mut gone_after = None;
    let mut readings = None;
    let mut probe = Some(probe);
    while readings.is_none() || (gone_after.is_none() && deadline.elapsed() < GONE_WAIT_MAX) {
        if gone_after.is_none() && Census::take(&mut client)?.all_gone(&before, options) {
            gone_after = Some(deadline.elapsed());
        }
        if deadline.elapsed() >= window(options)
            && let Some(probe) = probe.take()
        {
            readings = Some(probe.finish()?);
        }
        thread::sleep(ASKED_EVERY);
    }
    let missing = || Failure::server("the probe", "was never read");
    Ok(Found { kind: server.kind, gone_after, readings: readings.ok_or_else(missing)? })
}

fn sleep_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// What the server says that it holds and has expired.
struct Census {
    keys: i64,
    expired: Option<u64>,
}

impl Census {
    fn take(client: &mut Client) -> Result<Census> {
        let keys = client.number(&["DBSIZE"])?;
        Ok(Census { keys, expired: client.info_field("stats", "expired_keys")? })
    }

    fn all_gone(&self, before: &Census, options: &Options) -> bool {
        let expired = self.expired.zip(before.expired).map(|(now, before)| now - before);
        self.keys <= before.keys && expired.is_none_or(|expired| expired >= options.expiry_keys)
    }
}

/// Sets the keys that expire together `ahead` from now.
fn load_doomed(server: &Server, ahead: Duration, options: &Options) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let request = format!("SET doomed:{{s}} {{v:32}} PXAT {}", (now + ahead).as_millis());
    let template = Template::parse(&request)?;
    let mut loader = Loader::connect(server.port, LOADING_CONNECTIONS)?;
    let until = Until::Requests(options.expiry_keys);
    let plan = Plan { template: &template, pipeline: LOADING_PIPELINE, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(options.keys))?;
    refuse_errors(server.kind, &request, &outcome)?;
    if outcome.elapsed + PROBE_LEAD > ahead {
        let what = "took the keys more slowly than their deadline allows";
        return Err(Failure::server(server.kind.name(), what));
    }
    Ok(())
}
