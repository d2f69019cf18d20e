//! Two builds of Russet under the same load, in turn: did anything get slower between two commits?

use crate::builds::{self, Build};
use crate::failure::Result;
use crate::figures::{median, paired_ratios, spread};
use crate::find;
use crate::options::Options;
use crate::report::{Table, cost, figure, percent};
use crate::throughput::{self, Series};
use crate::workloads::{self, Workload};

/// A ratio above this is called slower.
pub const RATIO_MAX: f64 = 1.03;
/// What people do every day, each type and each way of running commands once.
const WORKLOADS: [&str; 13] = [
    "GET",
    "SET",
    "INCR",
    "LPUSH",
    "LPOP",
    "HSET",
    "ZADD",
    "MSET10",
    "LRANGE100",
    "MULTI3",
    "EVALSHA-FIXED-WINDOW",
    "EVALSHA-COMPARE-AND-SET",
    "FCALL-FIXED-WINDOW",
];

pub fn run(options: &Options, builds: &[String; 2]) -> Result<Table> {
    let chosen = chosen(options)?;
    let builds = builds::find_both(builds)?;
    let mut launches = Vec::new();
    for build in &builds {
        launches.push(find::russet(build.binary.clone(), options)?);
    }
    let mut table = empty_table(options, &builds);
    let (mut rows, mut slower) = (0, 0);
    throughput::each_cell(options, &launches, &chosen, |workload, pipeline, cell| {
        let [(_, before), (_, after)] = cell else { return };
        let ratios = Ratios::of(before, after);
        rows += 1;
        slower += usize::from(!ratios.verdict().is_empty());
        let row = row(workload, pipeline, (before, after), &ratios);
        eprintln!("{}", row.join("  "));
        table.row(row);
    })?;
    table.notes.push(format!("{slower} of {rows} rows are above {RATIO_MAX}"));
    Ok(table)
}

/// The workloads that two builds are compared by, unless others are named.
pub fn chosen(options: &Options) -> Result<Vec<&'static Workload>> {
    match &options.workloads {
        Some(names) => workloads::named(names),
        None => workloads::named(&WORKLOADS),
    }
}

fn empty_table(options: &Options, builds: &[Build; 2]) -> Table {
    let mut table = Table::new(
        "Compare",
        [
            "workload",
            "pipeline",
            "before µs",
            "after µs",
            "CPU ratio",
            "before k/s",
            "after k/s",
            "time ratio",
            "spread",
            "verdict",
        ],
    );
    let [before, after] = builds;
    table.notes.push(format!("before: {}", before.label));
    table.notes.push(format!("after: {}", after.label));
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per request; k/s: thousands of requests per \
         second. {} connections, {} keys, {} interleaved rounds of {} s. Ratios are of the \
         medians, after ÷ before; the time ratio is of the time per request, so that more than 1 \
         is slower in both. Spread: from the least to the greatest CPU ratio of a round. Rows \
         above {RATIO_MAX} are marked.",
        options.connections,
        options.keys,
        options.rounds,
        options.time_per_round.as_secs_f64(),
    ));
    table
}

/// After ÷ before; more than 1 is slower.
struct Ratios {
    cpu: Option<f64>,
    time: Option<f64>,
    spread: Option<f64>,
}

impl Ratios {
    fn of(before: &Series, after: &Series) -> Ratios {
        let ratio = |over: &[f64], under: &[f64]| {
            let under = median(under).filter(|under| *under > 0.0)?;
            median(over).map(|over| over / under)
        };
        Ratios {
            cpu: ratio(&after.cpu_us, &before.cpu_us),
            time: ratio(&before.requests_per_s, &after.requests_per_s),
            spread: spread(&paired_ratios(&after.cpu_us, &before.cpu_us)),
        }
    }

    /// Empty if nothing got slower.
    fn verdict(&self) -> &'static str {
        let is_slower = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio > RATIO_MAX);
        match (is_slower(self.cpu), is_slower(self.time)) {
            (true, true) => "SLOWER",
            (true, false) => "SLOWER: CPU",
            (false, true) => "SLOWER: time",
            (false, false) => "",
        }
    }
}

fn row(
    workload: &Workload,
    pipeline: usize,
    (before, after): (&Series, &Series),
    ratios: &Ratios,
) -> Vec<String> {
    let thousands = |series: &Series| figure(median(&series.requests_per_s).map(|rate| rate / 1e3));
    vec![
        workload.name.to_owned(),
        pipeline.to_string(),
        cost(median(&before.cpu_us)),
        cost(median(&after.cpu_us)),
        cost(ratios.cpu),
        thousands(before),
        thousands(after),
        cost(ratios.time),
        percent(ratios.spread),
        ratios.verdict().to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(cpu_us: &[f64], requests_per_s: &[f64]) -> Series {
        let mut series = Series::default();
        series.cpu_us.extend(cpu_us);
        series.requests_per_s.extend(requests_per_s);
        series
    }

    #[test]
    fn ratios_are_of_medians_and_more_than_one_is_slower() {
        let before = series(&[1.0, 1.0, 9.0], &[100.0, 100.0, 1.0]);
        let after = series(&[1.1, 0.1, 1.1], &[100.0, 101.0, 99.0]);
        let ratios = Ratios::of(&before, &after);
        assert_eq!(ratios.cpu, Some(1.1));
        assert_eq!(ratios.time, Some(1.0));
        assert_eq!(ratios.verdict(), "SLOWER: CPU");
        assert_eq!(Ratios::of(&after, &before).verdict(), "");
        let halved = series(&[1.0], &[50.0]);
        assert_eq!(Ratios::of(&before, &halved).verdict(), "SLOWER: time");
    }

    #[test]
    fn every_workload_of_the_list_is_there() {
        assert_eq!(workloads::named(&WORKLOADS).unwrap().len(), WORKLOADS.len());
    }
}
