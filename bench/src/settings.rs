//! What settings that look at every command cost: GET by a user with few rights, with tracking on,
//! with HOTKEYS on, against GET alone, on the same server in turn.

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::figures::{median, spread};
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::report::{Table, cost, goal, percent};
use crate::servers::{Kind, Server};
use crate::template::{Source, Template};
use crate::throughput::{cpu_us_over, load, refuse_errors};
use crate::workloads::KEYS;

const GET: &str = "GET key:{r}";
const PIPELINE: usize = 16;

struct Setting {
    name: &'static str,
    /// Sent once before, and once behind each round.
    on: &'static [&'static str],
    off: &'static [&'static str],
    /// Sent on each connection.
    own: &'static [&'static str],
    most: Most,
}

/// The most that it may add to a GET.
enum Most {
    Micros(f64),
    Percent(f64),
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "a user with rights to GET of key:* only",
        on: &["ACL SETUSER default resetkeys ~key:* -@all +get +acl|setuser"],
        off: &["ACL SETUSER default allkeys +@all"],
        own: &[],
        most: Most::Micros(0.15),
    },
    Setting {
        name: "CLIENT TRACKING ON",
        on: &[],
        off: &[],
        own: &["HELLO 3", "CLIENT TRACKING ON"],
        most: Most::Micros(0.3),
    },
    Setting {
        name: "HOTKEYS START",
        on: &["HOTKEYS RESET", "HOTKEYS START METRICS 2 CPU NET"],
        off: &["HOTKEYS STOP"],
        own: &[],
        most: Most::Percent(2.0),
    },
];

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Settings that look at every command: GET",
        ["setting", "GET µs", "with it µs", "it costs µs", "goal", "spread"],
    );
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per request. {} connections, pipelines of \
         {PIPELINE}, {} keys, {} rounds in turn, medians. It costs: the median of the \
         differences of each round; spread is from the least to the greatest of them.",
        options.connections, options.keys, options.rounds
    ));
    let launch = field.launches.iter().find(|launch| launch.kind == Kind::Russet);
    let Some(launch) = launch else { return Ok(table) };
    let server = launch.start()?;
    load(&server, &KEYS, options)?;
    let mut source = Source::seeded(options.seed).among(options.keys);
    for setting in SETTINGS {
        let (mut bare, mut with) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            for turn in 0..2 {
                let is_on = (round + turn) % 2 == 1;
                let series = if is_on { &mut with } else { &mut bare };
                series.push(measure(&server, is_on.then_some(setting), options, &mut source)?);
            }
        }
        let costs: Vec<f64> = with.iter().zip(&bare).map(|(with, bare)| with - bare).collect();
        let reached = median(&costs);
        let bare_us = median(&bare).unwrap_or_default();
        let verdict = match setting.most {
            Most::Micros(most) => goal(Some(most), reached),
            // In thousandths, as the figures are.
            Most::Percent(most) => goal(Some((bare_us * most * 10.0).round() / 1e3), reached),
        };
        table.row(vec![
            setting.name.to_owned(),
            cost(median(&bare)),
            cost(median(&with)),
            cost(reached),
            verdict,
            percent(spread(&costs)),
        ]);
        eprintln!("settings: {} done", setting.name);
    }
    Ok(table)
}

/// The server's CPU per GET, with a setting or without.
fn measure(
    server: &Server,
    setting: Option<&Setting>,
    options: &Options,
    source: &mut Source,
) -> Result<f64> {
    let mut client = server.client()?;
    say_all(&mut client, setting.map_or(&[], |it| it.on))?;
    let mut loader = Loader::connect(server.port, options.connections)?;
    for line in setting.map_or(&[][..], |it| it.own) {
        let template = Template::parse(line)?;
        let until = Until::Requests(options.connections as u64);
        let outcome = loader.run(Plan { template: &template, pipeline: 1, until }, source)?;
        refuse_errors(server.kind, line, &outcome)?;
    }
    let template = Template::parse(GET)?;
    let until = Until::Elapsed(options.time_per_round);
    let plan = Plan { template: &template, pipeline: PIPELINE, until };
    let found = cpu_us_over(server, plan, &mut loader, source)?;
    say_all(&mut client, setting.map_or(&[], |it| it.off))?;
    Ok(found)
}

fn say_all(client: &mut Client, lines: &[&str]) -> Result<()> {
    for line in lines {
        let args: Vec<&str> = line.split(' ').collect();
        let reply = client.ask(&args)?;
        if reply.is_error() && !line.ends_with("RESET") {
            return Err(Failure::server(*line, format!("{reply:?}")));
        }
    }
    Ok(())
}
