//! Instructions per request of two builds of Russet, counted by callgrind: the same on a quiet and
//! on a busy machine, where timings differ by more than what a change has cost.
//!
//! A server is run twice with the same seeded stream, once for a few requests and once for more:
//! the difference of the counts, divided by that of the requests, leaves out start, preparation and
//! end. Only the event loop's own instructions are counted: not the kernel's, and not those of
//! threads that work by the clock.

use crate::builds::{self, Build};
use crate::compare::{self, RATIO_MAX};
use crate::failure::Result;
use crate::find;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::report::{Table, cost, figure};
use crate::servers::Launch;
use crate::template::{Source, Template};
use crate::throughput::{load_over, refuse_errors};
use crate::workloads::{Pattern, Workload};

/// Requests of the short and of the long run.
const REQUESTS: [u64; 2] = [4_000, 20_000];
const REQUESTS_HEAVY: [u64; 2] = [4, 20];
const REQUESTS_QUICK: [u64; 2] = [64, 320];

pub fn run(options: &Options, builds: &[String; 2]) -> Result<Table> {
    let chosen = compare::chosen(options)?;
    let builds = builds::find_both(builds)?;
    let mut launches = Vec::new();
    for build in &builds {
        launches.push(find::counted_russet(build.binary.clone(), options)?);
    }
    let mut table = empty_table(options, &builds);
    let (mut rows, mut dearer) = (0, 0);
    for workload in chosen {
        for pipeline in workload.pattern.pipelines(&options.pipelines) {
            let before = per_request(&launches[0], workload, *pipeline, options)?;
            let after = per_request(&launches[1], workload, *pipeline, options)?;
            let row = row(workload.name, *pipeline, before, after);
            rows += 1;
            dearer += usize::from(after / before > RATIO_MAX);
            eprintln!("{}", row.join("  "));
            table.row(row);
        }
    }
    table.notes.push(format!("{dearer} of {rows} rows are above {RATIO_MAX}"));
    Ok(table)
}

fn empty_table(options: &Options, [before, after]: &[Build; 2]) -> Table {
    let header = ["workload", "pipeline", "before", "after", "ratio", "verdict"];
    let mut table = Table::new("Instructions", header);
    table.notes.push(format!("before: {}", before.label));
    table.notes.push(format!("after: {}", after.label));
    let [few, many] = REQUESTS;
    table.notes.push(format!(
        "Instructions of the event loop per request, without the kernel's, by callgrind: those \
         of a run of {many} requests less those of a run of {few}. One thread, one connection, {} \
         keys. Ratios are after ÷ before; rows above {RATIO_MAX} are marked.",
        options.keys
    ));
    table
}

fn row(name: &str, pipeline: usize, before: f64, after: f64) -> Vec<String> {
    let ratio = after / before;
    let verdict = if ratio > RATIO_MAX { "MORE" } else { "" };
    vec![
        name.to_owned(),
        pipeline.to_string(),
        figure(Some(before)),
        figure(Some(after)),
        cost(Some(ratio)),
        verdict.to_owned(),
    ]
}

fn per_request(
    launch: &Launch,
    workload: &Workload,
    pipeline: usize,
    options: &Options,
) -> Result<f64> {
    let [few, many] = match workload.pattern {
        Pattern::Heavy { .. } => REQUESTS_HEAVY,
        _ if options.is_quick => REQUESTS_QUICK,
        _ => REQUESTS,
    };
    let short = count(launch, workload, (pipeline, few), options)?;
    let long = count(launch, workload, (pipeline, many), options)?;
    Ok(long.saturating_sub(short).max(1) as f64 / (many - few) as f64)
}

/// The instructions of a whole life of the server, with so many requests in it.
fn count(
    launch: &Launch,
    workload: &Workload,
    (pipeline, requests): (usize, u64),
    options: &Options,
) -> Result<u64> {
    let server = launch.start()?;
    for need in workload.needs {
        load_over(1, &server, need, options)?;
    }
    let template = Template::parse(workload.request)?;
    let mut loader = Loader::connect(server.port, options.connections)?;
    let plan = Plan { template: &template, pipeline, until: Until::Requests(requests) };
    let mut source = Source::seeded(options.seed).among(options.keys);
    let outcome = loader.run(plan, &mut source)?;
    refuse_errors(server.kind, workload.request, &outcome)?;
    server.finish_count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_which_build_needs_more() {
        let row = row("GET", 16, 1000.0, 1100.0);
        assert_eq!(row, ["GET", "16", "1000", "1100", "1.100", "MORE"]);
        assert_eq!(super::row("GET", 1, 1000.0, 1020.0)[5], "");
    }
}
