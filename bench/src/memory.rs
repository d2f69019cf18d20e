//! Bytes per key, or per element of one large value. Each figure comes from a fresh server, so that
//! what one shape leaves behind in the allocator cannot help or harm the next.

use crate::failure::{Doing, Failure, Result};
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::report::{Table, figure, goal, goal_in};
use crate::servers::{Kind, Launch};
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::borrow::Cow;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const LOADING_CONNECTIONS: usize = 10;
const LOADING_PIPELINE: usize = 100;
/// Tables that still grow and memory that is still given back make the figure wander.
const STEADY_WAIT_MAX: Duration = Duration::from_secs(10);
const STEADY_AFTER: Duration = Duration::from_millis(1500);
const STEADY_WITHIN_BYTES: u64 = 256 * 1024;

/// What a request adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Key,
    /// One element of the one key.
    Element,
}

/// The most that Russet's resident bytes may be.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// As a share of Valkey's.
    Share(f64),
    /// For each key.
    Bytes(f64),
}

struct Shape {
    name: Cow<'static, str>,
    request: Cow<'static, str>,
    unit: Unit,
    /// Bytes of key, elements and deadlines, 8 for each score; of an element alone if that is the
    /// unit.
    payload_bytes: u64,
    limit: Limit,
}

const fn key(name: &'static str, request: &'static str, payload_bytes: u64, limit: f64) -> Shape {
    let (name, request) = (Cow::Borrowed(name), Cow::Borrowed(request));
    Shape { name, request, unit: Unit::Key, payload_bytes, limit: Limit::Share(limit) }
}

const fn element(
    name: &'static str,
    request: &'static str,
    payload_bytes: u64,
    limit: f64,
) -> Shape {
    let (name, request) = (Cow::Borrowed(name), Cow::Borrowed(request));
    Shape { name, request, unit: Unit::Element, payload_bytes, limit: Limit::Share(limit) }
}

/// Measured at every size.
static STRINGS: &[Shape] = &[
    key("32 B value", "SET key:{s} {v:32}", 48, 0.85),
    key("32 B value, TTL", "SET key:{s} {v:32} EX 100000", 56, 0.65),
    key("integer", "SET key:{s} {n}", 24, 0.8),
    key("integer, TTL", "SET key:{s} {n} EX 100000", 32, 0.65),
];

/// Measured at the first size.
static COLLECTIONS: &[Shape] = &[
    key(
        "hash of 10",
        "HSET key:{s} f0 {x:8} f1 {x:8} f2 {x:8} f3 {x:8} f4 {x:8} f5 {x:8} f6 {x:8} f7 {x:8} \
         f8 {x:8} f9 {x:8}",
        116,
        0.8,
    ),
    key("set of 10", "SADD key:{s} 10x[ {x:10} ]", 116, 0.8),
    key("sorted set of 10", "ZADD key:{s} 10x[ {i:1000000} {x:10} ]", 196, 0.8),
    key("list of 10", "RPUSH key:{s} 10x[ {x:10} ]", 116, 0.8),
    key("set of 10 integers", "SADD key:{s} 10x[ {n} ]", 56, 0.75),
    key(
        "hash of 10, TTL",
        "HSET key:{s} f0 {x:8} f1 {x:8} f2 {x:8} f3 {x:8} f4 {x:8} f5 {x:8} f6 {x:8} f7 {x:8} \
         f8 {x:8} f9 {x:8} ; EXPIRE key:{s} 100000",
        124,
        0.7,
    ),
    key(
        "hash of 10, TTL on 2 fields",
        "HSET key:{s} f0 {x:8} f1 {x:8} f2 {x:8} f3 {x:8} f4 {x:8} f5 {x:8} f6 {x:8} f7 {x:8} \
         f8 {x:8} f9 {x:8} ; HEXPIRE key:{s} 100000 FIELDS 2 f0 f1",
        132,
        0.7,
    ),
    Shape {
        name: Cow::Borrowed("stream of 1"),
        request: Cow::Borrowed("XADD key:{s} * f1 {x:8} f2 {x:8} f3 {x:8}"),
        unit: Unit::Key,
        payload_bytes: 54,
        limit: Limit::Bytes(200.0),
    },
    element("one hash", "HSET big f:{s} {x:16}", 30, 0.8),
    element("one set", "SADD big m:{s}", 14, 0.8),
    element("one set of integers", "SADD big 1{s:8}", 8, 0.4),
    element("one sorted set", "ZADD big {n} m:{s}", 22, 0.7),
    element("one list", "RPUSH big {x:16}", 16, 1.0),
    element("one stream", "XADD big * f1 {x:8} f2 {x:8} f3 {x:8}", 32, 1.0),
];

/// Elements of the collections of medium size: between those that are packed and those that are
/// large, to us or to Valkey, all forms are met.
const SIZES: [u64; 5] = [10, 30, 100, 300, 1000];
/// As many elements are loaded for each key that the options ask for, if they are that many.
const ELEMENTS_PER_KEY: u64 = 40;
/// Most elements that a connection has under way.
const ELEMENTS_SENT_MAX: u64 = 1000;
/// No collection may take more than Valkey's.
const SIZED_LIMIT: f64 = 1.0;

/// A collection of some size.
struct Collection {
    name: &'static str,
    command: &'static str,
    element: &'static str,
    element_payload_bytes: u64,
    /// An element is a command of its own.
    is_single: bool,
}

const fn sized(
    name: &'static str,
    command: &'static str,
    element: &'static str,
    element_payload_bytes: u64,
) -> Collection {
    Collection { name, command, element, element_payload_bytes, is_single: false }
}

/// Measured at the first size.
static SIZED: &[Collection] = &[
    sized("list", "RPUSH", "{x:10}", 10),
    sized("list of integers", "RPUSH", "1{i:100}", 2),
    sized("set", "SADD", "{x:10}", 10),
    sized("set of integers", "SADD", "{n}", 4),
    sized("hash", "HSET", "f{x:6} {x:8}", 15),
    sized("hash of integers", "HSET", "1{i:100000} 1{i:100}", 5),
    sized("sorted set", "ZADD", "{i:1000000} {x:10}", 18),
    sized("sorted set of integers", "ZADD", "{i:1000} 1{i:100000}", 11),
    Collection { is_single: true, ..sized("stream", "XADD", "* f1 {x:8} f2 1{i:100}", 18) },
];

impl Collection {
    fn of(&self, elements: u64) -> Shape {
        let Collection { command, element, .. } = self;
        let others = elements - 1;
        let request = match self.is_single {
            true => {
                let add = format!("{command} key:{{s}} {element}");
                format!("{add} {others}x[ ; {add} ]")
            }
            false => format!("{command} key:{{s}} {elements}x[ {element} ]"),
        };
        Shape {
            name: format!("{}, {elements} elements", self.name).into(),
            request: request.into(),
            unit: Unit::Key,
            payload_bytes: 16 + elements * self.element_payload_bytes,
            limit: Limit::Share(SIZED_LIMIT),
        }
    }
}

impl Shape {
    fn goal(&self, ratio: Option<f64>, resident: Option<f64>) -> String {
        match self.limit {
            Limit::Share(share) => goal(Some(share), ratio),
            Limit::Bytes(bytes) => goal_in("B", Some(bytes), resident),
        }
    }
}

struct BytesPerKey {
    resident: f64,
    used: Option<f64>,
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Bytes per key or element",
        [
            "value of a 16 B key",
            "keys or elements",
            "payload",
            "Russet RSS",
            "Valkey RSS",
            "RSS ÷ Valkey",
            "goal",
            "Russet used",
            "Valkey used",
        ],
    );
    for (at, keys) in options.memory_keys.iter().enumerate() {
        let collections = if at == 0 { COLLECTIONS } else { &[] };
        let shapes = STRINGS.iter().chain(collections);
        for shape in shapes.filter(|shape| is_wanted(options, &shape.name)) {
            let mut found = Vec::new();
            for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
                let load = Load { keys: *keys, pipeline: LOADING_PIPELINE };
                found.push((launch.kind, measure(launch, shape, load, options)?));
            }
            add_row(&mut table, row(shape, *keys, &found));
        }
    }
    for (collection, elements) in SIZED.iter().flat_map(|of| SIZES.map(|size| (of, size))) {
        let Some(keys) = options.memory_keys.first() else { break };
        let keys = (keys * ELEMENTS_PER_KEY / elements).clamp(1, *keys);
        let pipeline = (ELEMENTS_SENT_MAX / elements) as usize;
        let (shape, mut found) = (collection.of(elements), Vec::new());
        if !is_wanted(options, &shape.name) {
            continue;
        }
        for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
            let bytes = measure(launch, &shape, Load { keys, pipeline }, options)?;
            found.push((launch.kind, bytes));
        }
        add_row(&mut table, row(&shape, keys, &found));
    }
    table.notes.push(
        "RSS: resident bytes after loading less those of the empty server, per key, or per \
         element where there is one value; used: the same of used_memory; payload: bytes of key, \
         value, scores and deadlines. A fresh server for each figure."
            .into(),
    );
    Ok(table)
}

fn is_wanted(options: &Options, name: &str) -> bool {
    let wanted = options.shapes.as_ref();
    wanted.is_none_or(|parts| parts.iter().any(|part| name.contains(part.as_str())))
}

fn add_row(table: &mut Table, row: Vec<String>) {
    eprintln!("{}", row.join("  "));
    table.row(row);
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
        shape.name.clone().into_owned(),
        keys.to_string(),
        shape.payload_bytes.to_string(),
        bytes(resident(Kind::Russet)),
        bytes(resident(Kind::Valkey)),
        figure(ratio),
        shape.goal(ratio, resident(Kind::Russet)),
        bytes(used(Kind::Russet)),
        bytes(used(Kind::Valkey)),
    ]
}

/// How much is loaded, and how many requests a connection sends at once.
#[derive(Clone, Copy)]
struct Load {
    keys: u64,
    pipeline: usize,
}

fn measure(launch: &Launch, shape: &Shape, load: Load, options: &Options) -> Result<BytesPerKey> {
    let Load { keys, pipeline } = load;
    let server = launch.start()?;
    let mut client = server.client()?;
    let resident_before = steady_bytes(server.pid())?;
    let used_before = client.info_field("memory", "used_memory")?;
    let template = Template::parse(&shape.request)?;
    let mut loader = Loader::connect(server.port, LOADING_CONNECTIONS)?;
    let until = Until::Requests(keys);
    let plan = Plan { template: &template, pipeline, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(keys))?;
    refuse_errors(server.kind, &shape.request, &outcome)?;
    // The buffers of connections are no part of what a key costs.
    drop(loader);
    let resident = steady_bytes(server.pid())?;
    let used = client.info_field("memory", "used_memory")?;
    let held = client.number(&["DBSIZE"])?;
    let expected = if shape.unit == Unit::Key { keys } else { 1 };
    if u64::try_from(held) != Ok(expected) {
        let what = format!("holds {held} keys instead of {expected}");
        return Err(Failure::server(server.kind.name(), what));
    }
    let per_key = |after: u64, before: u64| after.saturating_sub(before) as f64 / keys as f64;
    let used = used.zip(used_before).map(|(after, before)| per_key(after, before));
    Ok(BytesPerKey { resident: per_key(resident, resident_before), used })
}

/// Resident bytes once they no longer change.
pub fn steady_bytes(pid: u32) -> Result<u64> {
    let start = Instant::now();
    let (mut steady, mut since) = (resident_bytes(pid)?, start);
    while start.elapsed() < STEADY_WAIT_MAX && since.elapsed() < STEADY_AFTER {
        thread::sleep(Duration::from_millis(100));
        let bytes = resident_bytes(pid)?;
        if bytes.abs_diff(steady) > STEADY_WITHIN_BYTES {
            (steady, since) = (bytes, Instant::now());
        }
    }
    resident_bytes(pid)
}

pub fn resident_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).doing(format!("reading {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let strange = || Failure::server("the kernel", format!("no VmRSS in {path}"));
    Ok(kilobytes.ok_or_else(strange)? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collection_is_a_request_that_can_be_made() {
        for (collection, elements) in SIZED.iter().flat_map(|of| SIZES.map(|size| (of, size))) {
            let template = Template::parse(&collection.of(elements).request).unwrap();
            let replies = if collection.is_single { elements as usize } else { 1 };
            assert_eq!(template.replies(), replies, "{} of {elements}", collection.name);
        }
    }
}
