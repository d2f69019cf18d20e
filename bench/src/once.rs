//! What it costs to run a command at most once: INCR under a request id against INCR alone, on the
//! same server in turn. No peer has it.

use crate::client::Client;
use crate::failure::Result;
use crate::figures::{median, spread};
use crate::find::Field;
use crate::load::{Plan, Until};
use crate::options::Options;
use crate::report::{Table, cost, goal, percent};
use crate::servers::Kind;
use crate::template::{Source, Template};
use crate::throughput::{cpu_us, load};
use crate::workloads::COUNTERS;

/// The most that ONCE may add, in microseconds of the server's CPU per request.
const COST_MAX: f64 = 1.0;
const BARE: &str = "INCR ctr:{r}";
/// A new id each time, of another shard than the key's, as a rule: the costlier case.
const UNDER_ID: &str = "ONCE request-{s} PX 10000 INCR ctr:{r}";
const PIPELINES: [usize; 2] = [1, 16];
/// For a million keys, at the two depths: every request leaves a record behind.
const REQUESTS: [u64; 2] = [50_000, 200_000];

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "ONCE: INCR under a request id",
        ["pipeline", "INCR µs", "ONCE INCR µs", "ONCE costs µs", "goal", "spread"],
    );
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per request. {} connections, {} keys, {} rounds \
         in turn, medians; every id is new. ONCE costs: the median of the differences of each \
         round; spread is from the least to the greatest of them.",
        options.connections, options.keys, options.rounds
    ));
    let launch = field.launches.iter().find(|launch| launch.kind == Kind::Russet);
    let Some(launch) = launch else { return Ok(table) };
    let server = launch.start()?;
    load(&server, &COUNTERS, options)?;
    let no_limit = ["CONFIG", "SET", "once-records-max", "1000000000", "once-bytes-max", "64gb"];
    Client::connect(server.port)?.ask(&no_limit)?;
    let mut source = Source::seeded(options.seed).among(options.keys);
    for (pipeline, requests) in PIPELINES.into_iter().zip(REQUESTS) {
        let requests = (requests * options.keys / 1_000_000).max(1_000);
        let (mut bare, mut under_id) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            let mut each = [(BARE, &mut bare), (UNDER_ID, &mut under_id)];
            each.rotate_left(round % 2);
            for (request, series) in each {
                let until = Until::Requests(requests);
                let template = Template::parse(request)?;
                let plan = Plan { template: &template, pipeline, until };
                series.push(cpu_us(&server, plan, options.connections, &mut source)?);
            }
        }
        let costs: Vec<f64> = under_id.iter().zip(&bare).map(|(with, bare)| with - bare).collect();
        let reached = median(&costs);
        table.row(vec![
            pipeline.to_string(),
            cost(median(&bare)),
            cost(median(&under_id)),
            cost(reached),
            goal(Some(COST_MAX), reached),
            percent(spread(&costs)),
        ]);
    }
    Ok(table)
}
