//! The toolkit's hot operations: in this process, and over loopback on Russet and on Valkey, next
//! to scripts that people write by hand for the same purpose and call through redis-rs.

mod by_hand;
mod by_kit;

use crate::failure::{Failure, Result};
use crate::figures::median;
use crate::find::Field;
use crate::options::Options;
use crate::report::{Table, cost, figure, goal};
use crate::servers::{Kind, Server};
use crate::{cpu, figures};
use by_hand::ByHand;
use by_kit::ByKit;
use russet::backend::{Backend, Connection, Pending};
use russet::{Kit, Reply, Request};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Calls under way at once over loopback: they share a connection, as a pipeline of so many.
const TASKS: [u64; 2] = [1, 16];
/// So many at once is what the goal is about.
const TASKS_OF_GOAL: u64 = 16;
/// Operations of a round.
const OPERATIONS: u64 = 20_000;
const OPERATIONS_QUICK: u64 = 320;
/// Users, locks: operations go round them. A multiple of the calls at once, so that no two of them
/// meet on one.
const SUBJECTS: u64 = 1_008;
/// Russet's CPU over Valkey's, at most.
const SHARE_MAX: f64 = 0.6;
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Limit,
    Lease,
    Queue,
    Idempotency,
    Cache,
    Session,
}

impl Work {
    const ALL: [Work; 6] =
        [Work::Limit, Work::Lease, Work::Queue, Work::Idempotency, Work::Cache, Work::Session];

    fn name(self) -> &'static str {
        match self {
            Work::Limit => "limit: check",
            Work::Lease => "lease: acquire and release",
            Work::Queue => "queue: claim and ack",
            Work::Idempotency => "idempotency: claim and complete",
            Work::Cache => "cache: hit",
            Work::Session => "session: authorize",
        }
    }

    /// Microseconds in this process, at most.
    fn micros_max(self) -> Option<f64> {
        match self {
            Work::Limit => Some(2.0),
            Work::Lease => Some(4.0),
            Work::Queue => Some(6.0),
            Work::Idempotency | Work::Cache | Work::Session => None,
        }
    }
}

/// One way to do the work.
trait Doer {
    /// Makes so many operations possible.
    async fn prepare(&self, work: Work, operations: u64) -> Result<()>;
    async fn run(&self, work: Work, number: u64) -> Result<()>;
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::server("the toolkit", error.to_string())
}

fn unexpected() -> Failure {
    failed("an operation that must succeed did not")
}

fn expect(is_so: bool) -> Result<()> {
    is_so.then_some(()).ok_or_else(unexpected)
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Toolkit",
        [
            "operation",
            "at once",
            "embedded CPU µs",
            "goal",
            "round trips",
            "Russet /s",
            "Valkey /s",
            "Russet CPU µs",
            "Valkey CPU µs",
            "Russet over Valkey",
            "goal of CPU",
        ],
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    for work in Work::ALL {
        let embedded = runtime.block_on(in_process(work, options))?;
        let trips = runtime.block_on(round_trips(work))?;
        for way in [Way::Kit, Way::ByHand] {
            for tasks in TASKS {
                let load = Load { work, way, tasks, operations: operations(options) };
                let sides = runtime.block_on(loopback(load, options, field))?;
                let row = row(load, (embedded, trips), &sides);
                eprintln!("{}", row.join("  "));
                table.row(row);
            }
        }
    }
    table.notes.push(format!(
        "By hand: scripts without request ids, fencing numbers, receipts, attempts and bounds, \
         through redis-rs. Over loopback the calls at once share one connection. CPU over loopback \
         is of all the server's threads, per operation; medians of {} rounds.",
        options.rounds
    ));
    Ok(table)
}

/// What is measured over loopback.
#[derive(Clone, Copy, Debug)]
struct Load {
    work: Work,
    way: Way,
    tasks: u64,
    operations: u64,
}

fn row(load: Load, (embedded, trips): (Option<f64>, f64), sides: &[Side; 2]) -> Vec<String> {
    let [russet, valkey] = sides;
    let ratio = median(&figures::paired_ratios(&russet.cpu_us, &valkey.cpu_us));
    let has_goal = load.tasks == TASKS_OF_GOAL && ratio.is_some();
    let [name, embedded, embedded_goal, trips] = match load.way {
        Way::Kit => [
            load.work.name().to_owned(),
            cost(embedded),
            goal(load.work.micros_max(), embedded),
            figure(Some(trips)),
        ],
        Way::ByHand => [
            format!("{}, by hand", load.work.name()),
            "-".to_owned(),
            String::new(),
            figure(Some(by_hand::round_trips(load.work))),
        ],
    };
    vec![
        name,
        load.tasks.to_string(),
        embedded,
        embedded_goal,
        trips,
        figure(median(&russet.per_s)),
        figure(median(&valkey.per_s)),
        cost(median(&russet.cpu_us)),
        cost(median(&valkey.cpu_us)),
        cost(ratio),
        goal(has_goal.then_some(SHARE_MAX), ratio),
    ]
}

fn operations(options: &Options) -> u64 {
    if options.is_quick { OPERATIONS_QUICK } else { OPERATIONS }
}

/// CPU time of this thread per operation, one at a time.
async fn in_process(work: Work, options: &Options) -> Result<Option<f64>> {
    let kit = Kit::embedded(russet::Options::default()).map_err(failed)?;
    let doer = ByKit::new(&kit)?;
    let operations = operations(options);
    let mut micros = Vec::new();
    for _ in 0..options.rounds {
        doer.prepare(work, operations).await?;
        let before = cpu::own_thread()?;
        for number in 0..operations {
            doer.run(work, number).await?;
        }
        let taken = cpu::own_thread()?.saturating_sub(before);
        micros.push(taken.as_secs_f64() * 1e6 / operations as f64);
    }
    Ok(median(&micros))
}

/// Requests of one operation, once the server has the scripts.
async fn round_trips(work: Work) -> Result<f64> {
    const CALLS: u64 = 50;
    let inner = Kit::embedded(russet::Options::default()).map_err(failed)?;
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Counted { kit: inner, calls: calls.clone() };
    let doer = ByKit::new(&Kit::builder().on(counted).map_err(failed)?)?;
    doer.prepare(work, CALLS + 1).await?;
    doer.run(work, 0).await?;
    calls.store(0, Ordering::Relaxed);
    for number in 1..=CALLS {
        doer.run(work, number).await?;
    }
    Ok(calls.load(Ordering::Relaxed) as f64 / CALLS as f64)
}

struct Counted {
    kit: Kit,
    calls: Arc<AtomicU64>,
}

impl Backend for Counted {
    fn call<'a>(&'a self, request: &'a Request, _timeout: Duration) -> Pending<'a, Reply> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(self.kit.call(request))
    }

    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(self.kit.connection(slot))
    }

    fn name(&self) -> &'static str {
        "counted"
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Kit,
    ByHand,
}

/// What was measured of one server, by round.
#[derive(Default)]
struct Side {
    per_s: Vec<f64>,
    cpu_us: Vec<f64>,
}

/// Of Russet and of Valkey, in turn.
async fn loopback(load: Load, options: &Options, field: &Field) -> Result<[Side; 2]> {
    let mut sides = [Side::default(), Side::default()];
    let mut servers = Vec::new();
    for launch in &field.launches {
        match launch.kind {
            Kind::Russet => servers.push((0, launch.start()?)),
            Kind::Valkey => servers.push((1, launch.start()?)),
            Kind::Floor => {}
        }
    }
    for round in 0..options.rounds {
        let count = servers.len().max(1);
        servers.rotate_left(round.min(1) % count);
        for (index, server) in &servers {
            let url = format!("redis://127.0.0.1:{}", server.port);
            let (per_s, cpu_us) = match load.way {
                Way::Kit => {
                    let kit = Kit::connect(&url).await.map_err(failed)?;
                    measure(server, Rc::new(ByKit::new(&kit)?), load).await?
                }
                Way::ByHand => {
                    let doer = Rc::new(ByHand::connect(&url).await?);
                    measure(server, doer, load).await?
                }
            };
            sides[*index].per_s.push(per_s);
            sides[*index].cpu_us.push(cpu_us);
        }
    }
    Ok(sides)
}

/// Operations per second, and the server's CPU time for each.
async fn measure<D: Doer + 'static>(
    server: &Server,
    doer: Rc<D>,
    Load { work, tasks, operations, .. }: Load,
) -> Result<(f64, f64)> {
    doer.prepare(work, operations).await?;
    let (started, before) = (Instant::now(), server.cpu()?);
    let local = tokio::task::LocalSet::new();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let doer = doer.clone();
            local.spawn_local(async move {
                for number in (task..operations).step_by(tasks as usize) {
                    doer.run(work, number).await?;
                }
                Ok::<(), Failure>(())
            })
        })
        .collect();
    local.await;
    for task in running {
        task.await.map_err(failed)??;
    }
    let (taken, cpu) = (started.elapsed(), server.cpu()?.saturating_sub(before));
    Ok((operations as f64 / taken.as_secs_f64(), cpu.as_secs_f64() * 1e6 / operations as f64))
}
