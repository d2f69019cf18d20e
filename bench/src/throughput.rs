//! Requests per second and server CPU per request. Every cell is measured in rounds, in each round
//! once on each server, and the order rotates, so that drift of the machine falls on all alike.

use crate::failure::{Failure, Result};
use crate::figures::{median, paired_ratios, spread};
use crate::find::Field;
use crate::load::{Loader, Outcome, Plan, Until};
use crate::options::Options;
use crate::report::{Table, cost, figure, goal, percent};
use crate::servers::{Kind, Launch, Server};
use crate::template::{Source, Template};
use crate::workloads::{self, Count, Pattern, Preparation, Workload};
use std::collections::HashSet;
use std::time::Duration;

const PREPARING_CONNECTIONS: usize = 10;
/// The share of a round that runs first and is not counted.
const WARM_UP_SHARE: u32 = 10;

struct Contender {
    server: Server,
    prepared: HashSet<&'static str>,
}

/// One server in one cell, over all rounds.
#[derive(Default)]
pub struct Series {
    pub requests_per_s: Vec<f64>,
    pub cpu_us: Vec<f64>,
    loader_us: Vec<f64>,
    nils: u64,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let chosen = match &options.workloads {
        Some(names) => workloads::named(names)?,
        None => workloads::all().collect(),
    };
    let mut table = empty_table(options);
    each_cell(options, &field.launches, &chosen, |workload, pipeline, cell| {
        let row = row(workload, pipeline, cell, &mut table.notes);
        eprintln!("{}", row.join("  "));
        table.row(row);
    })?;
    Ok(table)
}

/// Starts all servers and measures each workload at each of its pipelines; `report` gets what each
/// server came to, in the order of `launches`.
pub fn each_cell(
    options: &Options,
    launches: &[Launch],
    chosen: &[&Workload],
    mut report: impl FnMut(&Workload, usize, &[(Kind, Series)]),
) -> Result<()> {
    let mut contenders = Vec::new();
    for launch in launches {
        contenders.push(Contender { server: launch.start()?, prepared: HashSet::new() });
    }
    for workload in chosen {
        for contender in &mut contenders {
            prepare(contender, workload, options)?;
        }
        for pipeline in workload.pattern.pipelines(&options.pipelines) {
            let cell = measure(&contenders, workload, *pipeline, options)?;
            report(workload, *pipeline, &cell);
        }
    }
    Ok(())
}

fn prepare(contender: &mut Contender, workload: &Workload, options: &Options) -> Result<()> {
    if !contender.server.kind.stores_data() {
        return Ok(());
    }
    for need in workload.needs {
        if contender.prepared.insert(need.request) {
            load(&contender.server, need, options)?;
        }
    }
    Ok(())
}

/// The server's CPU per request, in microseconds, over new connections.
pub fn cpu_us(
    server: &Server,
    plan: Plan<'_>,
    connections: usize,
    source: &mut Source,
) -> Result<f64> {
    cpu_us_over(server, plan, &mut Loader::connect(server.port, connections)?, source)
}

/// The same over connections that are there.
pub fn cpu_us_over(
    server: &Server,
    plan: Plan<'_>,
    loader: &mut Loader,
    source: &mut Source,
) -> Result<f64> {
    let before = server.cpu()?;
    let outcome = loader.run(plan, source)?;
    let cpu = server.cpu()?.saturating_sub(before);
    refuse_errors(server.kind, "the request", &outcome)?;
    Ok(cpu.as_secs_f64() * 1e6 / outcome.requests.max(1) as f64)
}

/// Loads what a workload or another section needs.
pub fn load(server: &Server, need: &Preparation, options: &Options) -> Result<Outcome> {
    let connections = if need.is_in_order { 1 } else { PREPARING_CONNECTIONS };
    load_over(connections, server, need, options)
}

/// Like [`load`], over so many connections: over one, the order is always the same.
pub fn load_over(
    connections: usize,
    server: &Server,
    need: &Preparation,
    options: &Options,
) -> Result<Outcome> {
    let template = Template::parse(need.request)?;
    let requests = match need.count {
        Count::Keys => options.keys,
        Count::Times(times) => times,
        Count::PerMillion(times) => bounded(times, options),
    };
    let mut loader = Loader::connect(server.port, connections)?;
    let until = Until::Requests(requests);
    let plan = Plan { template: &template, pipeline: need.pipeline, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(options.keys))?;
    refuse_errors(server.kind, need.request, &outcome)?;
    Ok(outcome)
}

/// A figure for requests that were refused would be worthless.
pub fn refuse_errors(kind: Kind, request: &str, outcome: &Outcome) -> Result<()> {
    match &outcome.tally.first_error {
        Some(error) => Err(Failure::server(kind.name(), format!("'{request}' got: {error}"))),
        None => Ok(()),
    }
}

fn measure(
    contenders: &[Contender],
    workload: &Workload,
    pipeline: usize,
    options: &Options,
) -> Result<Vec<(Kind, Series)>> {
    let template = Template::parse(workload.request)?;
    let (connections, skips_floor) = match workload.pattern {
        Pattern::Heavy { connections } => (connections, true),
        _ => (options.connections, false),
    };
    let until = match workload.pattern {
        Pattern::Bounded { single, .. } if pipeline == 1 => {
            Until::Requests(bounded(single, options))
        }
        Pattern::Bounded { deeper, .. } => Until::Requests(bounded(deeper, options)),
        _ => Until::Elapsed(options.time_per_round),
    };
    let plan = Plan { template: &template, pipeline, until };
    let mut cell = Vec::new();
    for contender in contenders {
        let server = &contender.server;
        if server.kind.stores_data() || !skips_floor {
            cell.push((server, Loader::connect(server.port, connections)?, Series::default()));
        }
    }
    for round in 0..options.rounds {
        let count = cell.len();
        for turn in 0..count {
            let (server, loader, series) = &mut cell[(turn + round) % count];
            let mut source = Source::seeded(options.seed + round as u64).among(options.keys);
            one_round(server, loader, plan, &mut source, series)?;
        }
    }
    Ok(cell.into_iter().map(|(server, _, series)| (server.kind, series)).collect())
}

/// The bounds are for a million keys.
fn bounded(requests: u64, options: &Options) -> u64 {
    (requests * options.keys / 1_000_000).max(1_000)
}

fn one_round(
    server: &Server,
    loader: &mut Loader,
    plan: Plan<'_>,
    source: &mut Source,
    series: &mut Series,
) -> Result<()> {
    let until = match plan.until {
        Until::Elapsed(time) => Until::Elapsed(time / WARM_UP_SHARE),
        Until::Requests(requests) => Until::Requests(requests / u64::from(WARM_UP_SHARE)),
    };
    loader.run(Plan { until, ..plan }, source)?;
    let before = server.cpu()?;
    let outcome = loader.run(plan, source)?;
    let cpu = server.cpu()?.saturating_sub(before);
    refuse_errors(server.kind, "the request", &outcome)?;
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / outcome.requests.max(1) as f64;
    series.requests_per_s.push(outcome.requests_per_s());
    series.cpu_us.push(per_request(cpu));
    series.loader_us.push(per_request(outcome.loader_cpu));
    series.nils += outcome.tally.nils;
    Ok(())
}

fn empty_table(options: &Options) -> Table {
    let mut table = Table::new(
        "Throughput",
        [
            "workload",
            "pipeline",
            "Russet µs",
            "Valkey µs",
            "floor µs",
            "CPU ÷ Valkey",
            "goal",
            "CPU ÷ floor",
            "above floor ÷ Valkey",
            "goal",
            "Russet k/s",
            "Valkey k/s",
            "floor k/s",
            "rate ÷ Valkey",
            "spread",
            "loader µs",
        ],
    );
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per request; k/s: thousands of requests per \
         second. {} connections, {} keys, {} interleaved rounds of {} s, medians; ratios are \
         medians of the ratios of each round, spread is from the least to the greatest of them. \
         above floor: (Russet - floor) ÷ (Valkey - floor) of the CPU, what is left of the \
         difference between the servers without sockets, loop and parsing. \
         loader: the loader's own CPU per request on the fastest server.",
        options.connections,
        options.keys,
        options.rounds,
        options.time_per_round.as_secs_f64(),
    ));
    table
}

/// Round by round, the CPU above the floor's as a share of Valkey's above it. A round in which
/// Valkey is no dearer than the floor has none.
fn above_floor([russet, valkey, floor]: [&[f64]; 3]) -> Vec<f64> {
    let less = |over: &[f64]| over.iter().zip(floor).map(|(over, floor)| over - floor).collect();
    let (ours, theirs): (Vec<f64>, Vec<f64>) = (less(russet), less(valkey));
    paired_ratios(&ours, &theirs)
}

fn row(
    workload: &Workload,
    pipeline: usize,
    cell: &[(Kind, Series)],
    notes: &mut Vec<String>,
) -> Vec<String> {
    let series = |kind| cell.iter().find(|(of, _)| *of == kind).map(|(_, series)| series);
    let cpu = |kind| series(kind).and_then(|series| median(&series.cpu_us));
    let rate = |kind| series(kind).and_then(|series| median(&series.requests_per_s));
    let ratios =
        |other: Kind, of: fn(&Series) -> &[f64]| match (series(Kind::Russet), series(other)) {
            (Some(ours), Some(theirs)) => paired_ratios(of(ours), of(theirs)),
            _ => Vec::new(),
        };
    let to_valkey = ratios(Kind::Valkey, |series| &series.cpu_us);
    let spread = match to_valkey.is_empty() {
        false => spread(&to_valkey),
        true => cell.first().and_then(|(_, series)| spread(&series.cpu_us)),
    };
    let loader = cell.iter().filter_map(|(_, series)| median(&series.loader_us));
    for (kind, series) in cell.iter().filter(|(_, series)| series.nils > 0) {
        let (name, nils) = (workload.name, series.nils);
        notes.push(format!("{name} at {pipeline}: {} answered nil {nils} times", kind.name()));
    }
    let cpus = Kind::ALL.map(|kind| series(kind).map_or(&[][..], |series| &series.cpu_us));
    let above = median(&above_floor(cpus));
    let thousands = |rate: Option<f64>| figure(rate.map(|rate| rate / 1e3));
    vec![
        workload.name.to_owned(),
        pipeline.to_string(),
        cost(cpu(Kind::Russet)),
        cost(cpu(Kind::Valkey)),
        cost(cpu(Kind::Floor)),
        figure(median(&to_valkey)),
        goal(workload.target.at(pipeline), median(&to_valkey)),
        figure(median(&ratios(Kind::Floor, |series| &series.cpu_us))),
        figure(above),
        goal(workload.above_floor_max(pipeline), above),
        thousands(rate(Kind::Russet)),
        thousands(rate(Kind::Valkey)),
        thousands(rate(Kind::Floor)),
        figure(median(&ratios(Kind::Valkey, |series| &series.requests_per_s))),
        percent(spread),
        cost(loader.reduce(f64::min)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_floor_is_compared_round_by_round() {
        let ratios = above_floor([&[1.5, 2.0, 9.0], &[2.0, 3.0, 1.0], &[1.0, 1.0, 1.0]]);
        assert_eq!(ratios, [0.5, 0.5]);
        assert!(above_floor([&[1.0], &[2.0], &[]]).is_empty());
    }
}
