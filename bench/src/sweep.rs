//! Every command of the catalog that can be timed by itself, next to Valkey. A command that uses
//! up its data runs behind the one that puts it there, and its row is of both: the column of the
//! request says so. Where two connections would meet on a key between these commands and get an
//! error, the key is of a sequence that no two have at once. What can't be timed so is listed with
//! the reason; a command that is in neither list fails a test.

mod collections;
mod server;
mod streams;
mod strings;
mod untimed;

use crate::failure::{Failure, Result};
use crate::figures::{median, paired_ratios, spread};
use crate::find::Field;
use crate::options::Options;
use crate::report::{Table, cost, figure, goal, percent};
use crate::servers::Kind;
use crate::throughput::{Series, each_cell};
use crate::workloads::{Pattern, Preparation, Target, Workload};

const PIPELINE: usize = 16;
/// The most that Russet's CPU per request may be, as a share of Valkey's.
const RATIO_MAX: f64 = 1.05;

/// Commands that are not timed, and why.
struct Untimed {
    reason: &'static str,
    commands: &'static [&'static str],
}

/// A command by its full name, as `client|id`, and a request that calls it.
const fn timed(
    name: &'static str,
    request: &'static str,
    needs: &'static [&'static Preparation],
) -> Workload {
    let target = Target::Any(RATIO_MAX);
    Workload { name, request, needs, pattern: Pattern::Pipelined, target }
}

/// One request at a time on one connection: a whole pipeline of it would take seconds, or two
/// connections would be in each other's way.
const fn alone(
    name: &'static str,
    request: &'static str,
    needs: &'static [&'static Preparation],
) -> Workload {
    Workload { pattern: Pattern::Heavy { connections: 1 }, ..timed(name, request, needs) }
}

/// Every timed command, in the order of the report.
fn all() -> impl Iterator<Item = &'static Workload> {
    let lists = [strings::TIMED, collections::TIMED, streams::TIMED, server::TIMED];
    lists.into_iter().flatten()
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let chosen = match &options.workloads {
        Some(names) => names.iter().map(|name| named(name)).collect::<Result<Vec<_>>>()?,
        None => all().collect(),
    };
    let mut options = options.clone();
    options.pipelines = vec![PIPELINE];
    let launches: Vec<_> =
        field.launches.iter().filter(|launch| launch.kind.stores_data()).cloned().collect();
    let header = ["command", "request", "Russet µs", "Valkey µs", "CPU ÷ Valkey", "goal", "spread"];
    let mut table = Table::new("Sweep: every command that can be timed by itself", header);
    let mut ratios = Vec::new();
    each_cell(&options, &launches, &chosen, |workload, _, cell| {
        let (row, ratio) = row(workload, cell);
        ratios.extend(ratio);
        eprintln!("{}", row.join("  "));
        table.row(row);
    })?;
    table.notes = notes(&options, &ratios);
    Ok(table)
}

fn named(name: &str) -> Result<&'static Workload> {
    let unknown = || Failure::Usage(format!("the sweep has no command '{name}'"));
    all().find(|workload| workload.name.eq_ignore_ascii_case(name)).ok_or_else(unknown)
}

fn row(workload: &Workload, cell: &[(Kind, Series)]) -> (Vec<String>, Option<f64>) {
    let cpu = |kind| {
        let series = cell.iter().find(|(of, _)| *of == kind);
        series.map_or(&[][..], |(_, series)| &series.cpu_us)
    };
    let (ours, theirs) = (cpu(Kind::Russet), cpu(Kind::Valkey));
    let ratios = paired_ratios(ours, theirs);
    let ratio = median(&ratios);
    let row = vec![
        workload.name.to_owned(),
        // In a table of Markdown the bar ends a cell.
        format!("`{}`", workload.request.replace('|', "\\|")),
        cost(median(ours)),
        cost(median(theirs)),
        figure(ratio),
        goal(workload.target.at(PIPELINE), ratio),
        percent(spread(&ratios)),
    ];
    (row, ratio)
}

fn notes(options: &Options, ratios: &[f64]) -> Vec<String> {
    let dearer = ratios.iter().filter(|ratio| **ratio > RATIO_MAX).count();
    let mut notes = vec![
        format!(
            "{} commands, the median of their ratios {}, {dearer} above {RATIO_MAX}",
            ratios.len(),
            figure(median(ratios))
        ),
        format!(
            "µs: CPU time of all the server's threads per request, which is all commands of the \
             request's column. {} connections, a pipeline of {PIPELINE}, {} keys, {} interleaved \
             rounds of {} s, medians; ratios are medians of the ratios of each round, spread is \
             from the least to the greatest of them.",
            options.connections,
            options.keys,
            options.rounds,
            options.time_per_round.as_secs_f64(),
        ),
    ];
    notes.extend(untimed::UNTIMED.iter().map(|group| {
        let commands = group.commands.join(", ").replace('|', " ").to_uppercase();
        format!("Not timed, {}: {commands}", group.reason)
    }));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;
    use russet_catalog::{Command, lookup_full};

    fn untimed() -> impl Iterator<Item = &'static str> {
        untimed::UNTIMED.iter().flat_map(|group| group.commands).copied()
    }

    /// A command that joins the catalog is timed, or somebody has said why it is not.
    #[test]
    fn every_command_of_the_catalog_is_in_one_list() {
        let timed: Vec<&str> = all().map(|workload| workload.name).collect();
        let lists = || timed.iter().copied().chain(untimed());
        for command in Command::ALL {
            let times = lists().filter(|name| *name == command.full_name()).count();
            let name = command.full_name();
            match command.is_container() {
                true => assert!(times <= 1, "{name} is listed {times} times"),
                false => assert_eq!(times, 1, "{name} is listed {times} times"),
            }
        }
        for name in lists() {
            assert!(lookup_full(name.as_bytes()).is_some(), "no command is called {name}");
        }
    }

    #[test]
    fn every_request_can_be_made() {
        for workload in all() {
            assert!(Template::parse(workload.request).is_ok(), "{}", workload.name);
            let name = workload.name.replace('|', " ").to_uppercase();
            let is_there = workload.request.split(" ; ").any(|call| call.starts_with(&name));
            assert!(is_there, "{} does not call {name}", workload.request);
            for need in workload.needs {
                assert!(Template::parse(need.request).is_ok(), "{}", need.request);
            }
        }
    }
}
