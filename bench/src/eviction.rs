//! Memory at its limit: how many reads find their key when the cache holds a tenth of all keys, and
//! what a write costs that has to make room first.
//!
//! The servers are asked in turn, batch by batch, for the same keys: what they are compared by is
//! which keys they let go, and nothing else.

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::figures::{median, milliseconds, paired_ratios, spread};
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::probe::{PROBE_CONNECTIONS, Probe, ProbePlan};
use crate::report::{Table, cost, goal, percent};
use crate::servers::{Kind, Server};
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::time::{Duration, Instant};

/// Of all keys the cache holds this share.
const CACHE_SHARE: u64 = 10;
const POLICIES: [&str; 3] = ["allkeys-lru", "allkeys-lfu", "allkeys-random"];
const VALUE_BYTES: usize = 100;
/// Reads that are sent to one server before the other's turn.
const BATCH: usize = 64;
/// Of the time of a round: how long reads go on. Uses are noted in seconds.
const READ_ROUNDS: u32 = 20;
/// The exponent of the distribution by which keys are chosen.
const SKEW: f64 = 0.99;
const WRITE_PIPELINE: usize = 16;
const WRITE: &str = "SET new:{s} {v:100}";
const PROBE: &str = "SET probe:{r} {v:100}";
/// Among so many keys, probes are new ones as a rule.
const PROBED_KEYS: u64 = 1 << 40;
/// Probes are few, so that the load is the loader's.
const RATE_SHARE: u64 = 10;
const MISSES_MAX: f64 = 1.0;
const CPU_MAX: f64 = 0.8;

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Eviction: a cache of a tenth of the keys",
        ["measure", "Russet", "Valkey", "Russet ÷ Valkey", "goal", "spread"],
    );
    for policy in POLICIES {
        let rates = hit_rates(policy, options, field)?;
        table.row(hit_row(policy, &rates));
        eprintln!("eviction: hit rates of {policy} done");
    }
    let writes = writes(options, field)?;
    table.row(writes.row("SET of a new key, CPU µs", |it| &it.cpu_us, Some(CPU_MAX)));
    table.row(writes.row("SET of a new key, p99 ms", |it| &it.p99_ms, Some(CPU_MAX)));
    table.notes.push(format!(
        "Hit rate: GETs of {} keys, chosen by Zipf's law with the exponent {SKEW}, in batches of \
         {BATCH} to each server in turn; a key that is not there is set, {VALUE_BYTES} bytes. \
         maxmemory is what the server used with a tenth of the keys. Over the second half of {} s; \
         the ratio is that of the misses. SET: at that limit with allkeys-lru, every key is new; \
         {} connections, pipelines of {WRITE_PIPELINE}, {} rounds in turn. p99: of single SETs \
         meanwhile, {}/s on a fixed schedule, latency from the time each was due.",
        options.keys,
        read_time(options).as_secs_f64(),
        options.connections,
        options.rounds,
        (options.probes_per_s / RATE_SHARE).max(1),
    ));
    Ok(table)
}

fn read_time(options: &Options) -> Duration {
    options.time_per_round * READ_ROUNDS
}

/// A server whose memory is at its limit.
struct Cache {
    server: Server,
    client: Client,
    reads: u64,
    hits: u64,
}

fn caches(policy: &str, options: &Options, field: &Field) -> Result<Vec<Cache>> {
    let launches = field.launches.iter().filter(|launch| launch.kind.stores_data());
    launches.map(|launch| Cache::fill(launch.start()?, policy, options)).collect()
}

impl Cache {
    /// Loads a tenth of the keys, those that are chosen least, and makes that the limit.
    fn fill(server: Server, policy: &str, options: &Options) -> Result<Cache> {
        let mut client = server.client()?;
        let value = "v".repeat(VALUE_BYTES);
        let first = options.keys - options.keys / CACHE_SHARE;
        let keys: Vec<u64> = (first..options.keys).collect();
        for batch in keys.chunks(BATCH) {
            let names: Vec<String> = batch.iter().map(|key| key_name(*key)).collect();
            let calls: Vec<_> = names.iter().map(|name| ["SET", name, &value]).collect();
            client.ask_all(&calls)?;
        }
        let used = client.info_field("memory", "used_memory")?;
        let used = used.ok_or_else(|| Failure::server(server.kind.name(), "no used_memory"))?;
        client.ask(&["CONFIG", "SET", "maxmemory-policy", policy])?;
        client.ask(&["CONFIG", "SET", "maxmemory", &used.to_string()])?;
        Ok(Cache { server, client, reads: 0, hits: 0 })
    }

    /// Reads keys and sets those that are not there.
    fn read(&mut self, keys: &[u64], is_counted: bool) -> Result<()> {
        let names: Vec<String> = keys.iter().map(|key| key_name(*key)).collect();
        let gets: Vec<_> = names.iter().map(|name| ["GET", name]).collect();
        let replies = self.client.ask_all(&gets)?;
        let value = "v".repeat(VALUE_BYTES);
        let missing: Vec<_> = names
            .iter()
            .zip(&replies)
            .filter(|(_, reply)| reply.is_null())
            .map(|(name, _)| ["SET", name, &value])
            .collect();
        if is_counted {
            self.reads += names.len() as u64;
            self.hits += (names.len() - missing.len()) as u64;
        }
        self.client.ask_all(&missing).map(drop)
    }

    fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.reads.max(1) as f64
    }
}

fn key_name(key: u64) -> String {
    format!("key:{key:012}")
}

fn hit_rates(policy: &str, options: &Options, field: &Field) -> Result<Vec<(Kind, f64)>> {
    let mut caches = caches(policy, options, field)?;
    let zipf = Zipf::new(options.keys);
    let mut source = Source::seeded(options.seed);
    let started = Instant::now();
    let mut round = 0;
    while started.elapsed() < read_time(options) {
        let keys: Vec<u64> = (0..BATCH).map(|_| zipf.key(source.share())).collect();
        let is_counted = started.elapsed() >= read_time(options) / 2;
        let count = caches.len();
        for turn in 0..count {
            caches[(turn + round) % count].read(&keys, is_counted)?;
        }
        round += 1;
    }
    Ok(caches.iter().map(|cache| (cache.server.kind, cache.hit_rate())).collect())
}

fn hit_row(policy: &str, rates: &[(Kind, f64)]) -> Vec<String> {
    let of = |kind| rates.iter().find(|(found, _)| *found == kind).map(|(_, rate)| *rate);
    let shown = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{:.2} %", rate * 1e2));
    let (ours, theirs) = (of(Kind::Russet), of(Kind::Valkey));
    let ratio = ours.zip(theirs).map(|(ours, theirs)| (1.0 - ours) / (1.0 - theirs).max(1e-9));
    vec![
        format!("hit rate, {policy}"),
        shown(ours),
        shown(theirs),
        cost(ratio),
        goal(Some(MISSES_MAX), ratio),
        "-".into(),
    ]
}

/// Zipf's law over a number of keys: the chance of the n-th is in proportion to 1/n^SKEW. Which key
/// is the n-th has nothing to do with its name.
struct Zipf {
    /// The chance of each key or one before it.
    until: Vec<f64>,
}

impl Zipf {
    fn new(keys: u64) -> Zipf {
        let mut sum = 0.0;
        let mut until: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-SKEW);
                sum
            })
            .collect();
        until.iter_mut().for_each(|chance| *chance /= sum);
        Zipf { until }
    }

    /// The key for a random number from 0 to 1.
    fn key(&self, share: f64) -> u64 {
        self.until.partition_point(|chance| *chance < share).min(self.until.len() - 1) as u64
    }
}

/// One server's writes, over all rounds.
#[derive(Default)]
struct Writes {
    cpu_us: Vec<f64>,
    p99_ms: Vec<f64>,
}

struct Measured(Vec<(Kind, Writes)>);

impl Measured {
    fn row(
        &self,
        name: &str,
        of: impl Fn(&Writes) -> &Vec<f64>,
        limit: Option<f64>,
    ) -> Vec<String> {
        let series = |kind| {
            let found = self.0.iter().find(|(found, _)| *found == kind);
            found.map(|(_, writes)| of(writes).clone()).unwrap_or_default()
        };
        let (ours, theirs) = (series(Kind::Russet), series(Kind::Valkey));
        let ratios = paired_ratios(&ours, &theirs);
        vec![
            name.to_owned(),
            cost(median(&ours)),
            cost(median(&theirs)),
            cost(median(&ratios)),
            goal(limit, median(&ratios)),
            percent(spread(&ratios)),
        ]
    }
}

fn writes(options: &Options, field: &Field) -> Result<Measured> {
    let template = Template::parse(WRITE)?;
    let mut contenders = Vec::new();
    for cache in caches(POLICIES[0], options, field)? {
        let loader = Loader::connect(cache.server.port, options.connections)?;
        contenders.push((cache.server, loader, Writes::default()));
    }
    let mut source = Source::seeded(options.seed);
    for round in 0..options.rounds {
        let count = contenders.len();
        for turn in 0..count {
            let (server, loader, writes) = &mut contenders[(turn + round) % count];
            let until = Until::Elapsed(options.time_per_round);
            let plan = Plan { template: &template, pipeline: WRITE_PIPELINE, until };
            let before = server.cpu()?;
            let outcome = loader.run(plan, &mut source)?;
            let cpu = server.cpu()?.saturating_sub(before);
            refuse_errors(server.kind, WRITE, &outcome)?;
            writes.cpu_us.push(cpu.as_secs_f64() * 1e6 / outcome.requests.max(1) as f64);
            writes.p99_ms.push(probe(server, options)?);
        }
    }
    eprintln!("eviction: writes done");
    let measured = contenders.into_iter().map(|(server, _, writes)| (server.kind, writes));
    Ok(Measured(measured.collect()))
}

/// The p99 of single writes, with the memory at its limit.
fn probe(server: &Server, options: &Options) -> Result<f64> {
    let probe = Probe::start(&ProbePlan {
        port: server.port,
        template: Template::parse(PROBE)?,
        source: Source::seeded(options.seed).among(PROBED_KEYS),
        probes_per_s: (options.probes_per_s / RATE_SHARE).max(1),
        connections: PROBE_CONNECTIONS,
    })?;
    std::thread::sleep(options.time_per_round);
    Ok(milliseconds(probe.finish()?.latencies.within(0.99)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_is_chosen_most() {
        let zipf = Zipf::new(1000);
        assert_eq!((zipf.key(0.0), zipf.key(1.0)), (0, 999));
        let first = zipf.until[0];
        assert!(first > 0.1 && (zipf.until[1] - first) < first, "{first}");
        assert_eq!(zipf.key(first + 1e-9), 1);
    }
}
