//! Bytes per key. Each figure comes from a fresh server, so that what one shape leaves behind in
//! the allocator cannot help or harm the next.

use crate::failure::{Doing, Failure, Result};
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::report::{Table, figure, goal};
use crate::servers::{Kind, Launch};
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const LOADING_CONNECTIONS: usize = 10;
const LOADING_PIPELINE: usize = 100;
/// Tables that still grow and memory that is still given back make the figure wander.
const SETTLE_MAX: Duration = Duration::from_secs(10);
const SETTLED_AFTER: Duration = Duration::from_millis(1500);
const SETTLED_WITHIN_BYTES: u64 = 256 * 1024;

struct Shape {
    name: &'static str,
    request: &'static str,
    /// Bytes of key and value, and of the deadline if there is one.
    payload_bytes: u64,
    /// The most that Russet may take, as a share of Valkey's resident bytes.
    limit: f64,
}

static SHAPES: [Shape; 4] = [
    Shape { name: "32 B value", request: "SET key:{s} {v:32}", payload_bytes: 48, limit: 0.85 },
    Shape {
        name: "32 B value, TTL",
        request: "SET key:{s} {v:32} EX 100000",
        payload_bytes: 56,
        limit: 0.65,
    },
    Shape { name: "integer", request: "SET key:{s} {n}", payload_bytes: 24, limit: 0.8 },
    Shape {
        name: "integer, TTL",
        request: "SET key:{s} {n} EX 100000",
        payload_bytes: 32,
        limit: 0.65,
    },
];

struct BytesPerKey {
    resident: f64,
    used: Option<f64>,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Bytes per key",
        [
            "value of a 16 B key",
            "keys",
            "payload",
            "Russet RSS",
            "Valkey RSS",
            "RSS ÷ Valkey",
            "goal",
            "Russet used",
            "Valkey used",
        ],
    );
    for keys in &options.memory_keys {
        for shape in &SHAPES {
            let mut found = Vec::new();
            for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
                found.push((launch.kind, measure(launch, shape, *keys, options)?));
            }
            let row = row(shape, *keys, &found);
            eprintln!("{}", row.join("  "));
            table.row(row);
        }
    }
    table.notes.push(
        "RSS: resident bytes after loading less those of the empty server, per key; used: the \
         same of used_memory; payload: bytes of key, value and deadline. A fresh server for each \
         figure."
            .into(),
    );
    Ok(table)
}

fn row(shape: &Shape, keys: u64, found: &[(Kind, BytesPerKey)]) -> Vec<String> {
    let of = |kind| found.iter().find(|(of, _)| *of == kind).map(|(_, bytes)| bytes);
    let resident = |kind| of(kind).map(|bytes| bytes.resident);
    let used = |kind| of(kind).and_then(|bytes| bytes.used);
    let ratio = match (resident(Kind::Russet), resident(Kind::Valkey)) {
        (Some(ours), Some(theirs)) => Some(ours / theirs),
        _ => None,
    };
    let bytes = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
    vec![
        shape.name.to_owned(),
        keys.to_string(),
        shape.payload_bytes.to_string(),
        bytes(resident(Kind::Russet)),
        bytes(resident(Kind::Valkey)),
        figure(ratio),
        goal(Some(shape.limit), ratio),
        bytes(used(Kind::Russet)),
        bytes(used(Kind::Valkey)),
    ]
}

fn measure(launch: &Launch, shape: &Shape, keys: u64, options: &Options) -> Result<BytesPerKey> {
    let server = launch.start()?;
    let mut client = server.client()?;
    let resident_before = settled_bytes(server.pid())?;
    let used_before = client.info_field("memory", "used_memory")?;
    let template = Template::parse(shape.request)?;
    let mut loader = Loader::connect(server.port, LOADING_CONNECTIONS)?;
    let until = Until::Requests(keys);
    let plan = Plan { template: &template, pipeline: LOADING_PIPELINE, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(keys))?;
    refuse_errors(server.kind, shape.request, &outcome)?;
    // The buffers of connections are no part of what a key costs.
    drop(loader);
    let resident = settled_bytes(server.pid())?;
    let used = client.info_field("memory", "used_memory")?;
    let held = client.number(&["DBSIZE"])?;
    if u64::try_from(held) != Ok(keys) {
        let what = format!("holds {held} keys after {keys} were set");
        return Err(Failure::server(server.kind.name(), what));
    }
    let per_key = |after: u64, before: u64| after.saturating_sub(before) as f64 / keys as f64;
    let used = used.zip(used_before).map(|(after, before)| per_key(after, before));
    Ok(BytesPerKey { resident: per_key(resident, resident_before), used })
}

/// Resident bytes once they no longer change.
fn settled_bytes(pid: u32) -> Result<u64> {
    let start = Instant::now();
    let (mut steady, mut since) = (resident_bytes(pid)?, start);
    while start.elapsed() < SETTLE_MAX && since.elapsed() < SETTLED_AFTER {
        thread::sleep(Duration::from_millis(100));
        let bytes = resident_bytes(pid)?;
        if bytes.abs_diff(steady) > SETTLED_WITHIN_BYTES {
            (steady, since) = (bytes, Instant::now());
        }
    }
    resident_bytes(pid)
}

fn resident_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).doing(format!("reading {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let strange = || Failure::server("the kernel", format!("no VmRSS in {path}"));
    Ok(kilobytes.ok_or_else(strange)? * 1024)
}
