//! The engine in this process: uniform keys on one thread against two, no sockets. Half of the
//! commands are GET, half SET; or all are one script that names its key. They run through the same
//! dispatch as a client's.

use crate::failure::{Failure, Result};
use crate::options::Options;
use crate::report::Table;
use crate::workloads::scripts;
use crate::{cpu, figures};
use russet_base::{OwnedArgs, Random};
use russet_commands::call::dispatch::{Progress, Worker};
use russet_commands::call::mail::NoMailbox;
use russet_commands::call::session::Session;
use russet_commands::node::Node;
use russet_commands::node::clients::ClientCard;
use russet_embedded::{Engine, Options as EngineOptions};
use russet_protocol::{Resp, RespWriter};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// The least that two threads must bring over one.
const SPEED_UP_MIN: f64 = 1.7;
const KEYS: u64 = 1_000_000;
/// As many as a server has by default.
const SHARDS: usize = russet_base::limits::SHARDS_MAX;
/// Commands that a thread prepares and runs in one go, as a connection's turn does.
const BATCH: usize = 16;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(1);

pub fn run(_options: &Options) -> Result<Table> {
    let engine = Engine::open(EngineOptions::new());
    let engine = engine.map_err(|error| Failure::Usage(error.to_string()))?;
    let node = engine.node().clone();
    fill(&node);
    let mut table = Table::new(
        "Engine in process",
        [
            "work",
            "threads",
            "operations/s",
            "over one thread",
            "goal on two threads",
            "CPU µs per operation",
        ],
    );
    for (name, work) in [("GET, SET", Work::Plain), ("script", Work::Script(load_script(&node)))] {
        compare(&node, name, work, &mut table);
    }
    table.notes.push(format!(
        "{KEYS} keys, {SHARDS} shards; medians of {ROUNDS} rounds. script: EVALSHA of the fixed \
         window."
    ));
    Ok(table)
}

/// What the threads do.
#[derive(Clone, Copy)]
enum Work {
    Plain,
    /// The digest of a script that takes one key.
    Script([u8; 40]),
}

fn compare(node: &Arc<Node>, name: &str, work: Work, table: &mut Table) {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(measure(node, work, 1));
        two.push(measure(node, work, 2));
    }
    let ratios = two.iter().zip(&one).map(|(two, one)| two.per_s / one.per_s);
    let ratio = median(ratios);
    let verdict = if ratio >= SPEED_UP_MIN { "met" } else { "MISSED" };
    let goal = format!("≥ {SPEED_UP_MIN} {verdict}");
    let rows = [("1", one, 1.0, String::new()), ("2", two, ratio, goal)];
    for (threads, rounds, ratio, goal) in rows {
        let per_s = median(rounds.iter().map(|round| round.per_s));
        let cpu_us = median(rounds.iter().map(|round| round.cpu_us));
        table.row(vec![
            name.to_owned(),
            threads.to_owned(),
            format!("{per_s:.0}"),
            format!("{ratio:.2}"),
            goal,
            format!("{cpu_us:.3}"),
        ]);
    }
}

fn load_script(node: &Arc<Node>) -> [u8; 40] {
    let source = scripts::source("fixed_window").unwrap_or_default();
    let args: OwnedArgs = ["SCRIPT", "LOAD", source].into_iter().collect();
    let mut client = Client::new(node, 1);
    client.run_each(&[args]);
    // The reply is the digest between its length and the end of the line.
    let digest = client.out.get(5..45).and_then(|digest| digest.try_into().ok());
    digest.expect("a script that is part of this program can be loaded")
}

fn fill(node: &Arc<Node>) {
    let mut client = Client::new(node, 1);
    for key in 0..KEYS {
        let args: OwnedArgs =
            [b"SET".as_slice(), key_name(key).as_bytes(), &[b'x'; 32]].into_iter().collect();
        client.run(&[args]);
    }
}

fn key_name(key: u64) -> String {
    format!("key:{key:012}")
}

/// What one round came to.
struct Round {
    per_s: f64,
    /// Of all threads, for each operation: what they cost each other, whoever else uses the
    /// machine.
    cpu_us: f64,
}

/// Operations of so many threads at once.
fn measure(node: &Arc<Node>, work: Work, threads: usize) -> Round {
    let (done, cpu_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let start = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for at in 0..threads {
            let (done, cpu_ns, is_over, start) = (&done, &cpu_ns, &is_over, &start);
            scope.spawn(move || {
                let mut client = Client::new(node, at as u64 + 2);
                let mut random = Random::from_seed(at as u64);
                let batches: Vec<Vec<OwnedArgs>> =
                    (0..4096).map(|_| batch(&mut random, work)).collect();
                start.wait();
                let before = cpu::own_thread().unwrap_or_default();
                let mut count = 0;
                for batch in batches.iter().cycle() {
                    client.run(batch);
                    count += BATCH as u64;
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                let cpu = cpu::own_thread().unwrap_or_default().saturating_sub(before);
                cpu_ns.fetch_add(cpu.as_nanos() as u64, Ordering::Relaxed);
                done.fetch_add(count, Ordering::Relaxed);
            });
        }
        start.wait();
        let started = Instant::now();
        thread::sleep(ROUND);
        is_over.store(true, Ordering::Relaxed);
        started
    });
    let (done, cpu_ns) = (done.into_inner() as f64, cpu_ns.into_inner() as f64);
    Round { per_s: done / ROUND.as_secs_f64(), cpu_us: cpu_ns / done / 1e3 }
}

fn batch(random: &mut Random, work: Work) -> Vec<OwnedArgs> {
    let command = |random: &mut Random| -> OwnedArgs {
        let key = key_name(random.below(KEYS));
        match work {
            Work::Script(digest) => {
                let key = format!("window:{key}");
                let args = [b"EVALSHA".as_slice(), &digest, b"1", key.as_bytes(), b"100", b"60"];
                args.into_iter().collect()
            }
            Work::Plain if random.below(2) == 0 => {
                [b"GET".as_slice(), key.as_bytes()].into_iter().collect()
            }
            Work::Plain => [b"SET".as_slice(), key.as_bytes(), &[b'y'; 32]].into_iter().collect(),
        }
    };
    (0..BATCH).map(|_| command(random)).collect()
}

/// A session without a socket.
struct Client {
    worker: Worker,
    session: Session,
    out: Vec<u8>,
}

impl Client {
    fn new(node: &Arc<Node>, id: u64) -> Client {
        let card = Arc::new(ClientCard::new(id, String::new(), String::new(), -1, 0));
        let session = Session::new(card, Arc::new(NoMailbox));
        Client { worker: Worker::new(node.clone()), session, out: Vec::new() }
    }

    fn run(&mut self, batch: &[OwnedArgs]) {
        self.run_each(batch);
        self.out.clear();
    }

    fn run_each(&mut self, batch: &[OwnedArgs]) {
        self.worker.begin_batch();
        let mut rest = batch;
        while let Some((args, after)) = rest.split_first() {
            let commands = rest.iter().map(OwnedArgs::as_args);
            let ran = self.worker.run_batch(&mut self.session, commands, &mut self.out);
            if ran.count > 0 {
                rest = &rest[ran.count..];
                continue;
            }
            rest = after;
            loop {
                let mut sink = RespWriter::new(&mut self.out, Resp::V2);
                match self.worker.run(&mut self.session, args.as_args(), &mut sink) {
                    Progress::Busy => thread::yield_now(),
                    Progress::Done | Progress::Blocked => break,
                }
            }
        }
        self.worker.end_batch();
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    figures::median(&values.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}
