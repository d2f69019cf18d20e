//! Plain Lua: programs that call no command, as scripts on Russet and on Valkey in turn.

mod programs;

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::figures::{median, paired_ratios, spread};
use crate::find::Field;
use crate::options::Options;
use crate::report::{Table, cost, goal, percent};
use crate::servers::{Kind, Server};
use programs::PROGRAMS;
use std::time::Instant;

const RATIO_MAX: f64 = 1.1;

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Plain Lua: programs without commands",
        ["program", "Russet µs", "Valkey µs", "CPU ÷ Valkey", "goal", "spread"],
    );
    let mut servers = Vec::new();
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let server = launch.start()?;
        servers.push((server.client()?, server));
    }
    for (name, program) in PROGRAMS.iter().filter(|(name, _)| is_chosen(options, name)) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            for turn in 0..servers.len() {
                let count = servers.len();
                let (client, server) = &mut servers[(round + turn) % count];
                let series = if server.kind == Kind::Russet { &mut ours } else { &mut theirs };
                series.push(cpu_us(client, server, program, options)?);
            }
        }
        let ratios = paired_ratios(&ours, &theirs);
        let ratio = median(&ratios);
        table.row(vec![
            (*name).to_owned(),
            cost(median(&ours)),
            cost(median(&theirs)),
            cost(ratio),
            goal(Some(RATIO_MAX), ratio),
            percent(spread(&ratios)),
        ]);
        eprintln!("lua: {name} {}", cost(ratio));
    }
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per run of the script, one client, {} rounds in \
         turn, medians.",
        options.rounds
    ));
    Ok(table)
}

/// Whether a program is among those that are named by parts of their names.
fn is_chosen(options: &Options, name: &str) -> bool {
    let named = options.workloads.as_ref();
    named.is_none_or(|parts| parts.iter().any(|part| name.to_lowercase().contains(part)))
}

/// The server's CPU per run.
fn cpu_us(client: &mut Client, server: &Server, program: &str, options: &Options) -> Result<f64> {
    let mut run = || {
        let reply = client.ask(&["EVAL", program, "0"])?;
        match reply.is_error() {
            true => Err(Failure::server(server.kind.name(), format!("{reply:?}"))),
            false => Ok(()),
        }
    };
    // It is compiled before it is timed.
    run()?;
    let (before, started, mut runs) = (server.cpu()?, Instant::now(), 0);
    while started.elapsed() < options.time_per_round / 4 {
        run()?;
        runs += 1;
    }
    let cpu = server.cpu()?.saturating_sub(before);
    Ok(cpu.as_secs_f64() * 1e6 / f64::from(runs.max(1)))
}
