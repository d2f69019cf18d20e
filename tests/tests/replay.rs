//! The replay law, held by every wire file, by the differential generator's plans and by clients
//! that work at the same time; see `russet_tests::replay`. A command that breaks it, or that no
//! wire file exercises, fails.
//!
//! `RUSSET_DIFFER_SECONDS` says how long each kind of plan is drawn; `RUSSET_DIFFER_SEED` begins at
//! a given seed.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use russet_base::random::Random;
use russet_catalog::Command;
use russet_catalog::spec::Recorded;
use russet_tests::client::{Client, Resp};
use russet_tests::differ::Mode;
use russet_tests::replay::{Look, Pair, Record, clients, show, streams};
use russet_tests::server::Kind;
use russet_tests::wire::{Case, Endpoint, files_under, root, run_file_observed};

/// For each kind of plan.
const SECONDS_DEFAULT: u64 = 5;
/// Calls of each client that works beside others.
const CALLS: usize = 1_500;
const SEVERAL_THREADS: &[&str] = &["--threads", "4", "--threads-min", "4"];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn first_seed() -> u64 {
    number("RUSSET_DIFFER_SEED").unwrap_or_else(|| Random::from_entropy().next_u64())
}

/// Commands of which no wire file can show a change.
const EXCUSED: &[&str] = &["migrate"];

/// Files that take data back to what was saved, which is no change that a call makes.
const NOT_REPLAYED: &[&str] = &["server/bgsave.wire"];

#[test]
fn what_wire_files_do_can_be_done_again() {
    let mut pair = Pair::start(&[]).unwrap();
    let mut failures = String::new();
    let is_replayed = |path: &PathBuf| !NOT_REPLAYED.iter().any(|name| path.ends_with(name));
    for path in files_under(&[root()]).into_iter().filter(is_replayed) {
        for resp in [Resp::V2, Resp::V3] {
            let endpoint =
                Endpoint { address: pair.recorder(), kind: Kind::Russet, version: Vec::new() };
            let mut observe = |_: &Case| pair.catch_up();
            let report = run_file_observed(&path, &endpoint, resp, &mut observe);
            for failure in report.failures {
                let _ = writeln!(failures, "{failure}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(pair.postponed < 20, "{} cases could not be looked at", pair.postponed);
    assert!(pair.count > 1000, "only {} records", pair.count);
    let is_to_be_seen = |command: &&Command| {
        command.spec().recorded != Recorded::Never && !EXCUSED.contains(&command.full_name())
    };
    let unseen: Vec<_> = Command::ALL
        .iter()
        .filter(is_to_be_seen)
        .map(|command| command.full_name())
        .filter(|name| !pair.recorded.contains(*name))
        .collect();
    assert!(unseen.is_empty(), "no wire file lets these change anything: {}", unseen.join(", "));
}

fn replay_plans(mode: Mode) {
    let seconds = number("RUSSET_DIFFER_SECONDS").unwrap_or(SECONDS_DEFAULT);
    let seed = first_seed();
    println!("{mode:?}: from seed {seed} for {seconds} s");
    let mut pair = Pair::start(SEVERAL_THREADS).unwrap();
    let outcome = streams::search(&mut pair, mode, seed, Duration::from_secs(seconds));
    let outcome = outcome.unwrap_or_else(|why| panic!("seed {seed} or later, {mode:?}: {why}"));
    let (plans, steps, count) = (outcome.plans, outcome.steps, pair.count);
    println!("{mode:?}: {plans} plans, {steps} calls, {count} records from seed {seed}");
    if let Some(finding) = outcome.found {
        panic!("what was recorded does not give the data again\n{finding}");
    }
    assert!(count > 0, "nothing was recorded");
}

#[test]
fn what_pipelines_do_can_be_done_again() {
    replay_plans(Mode::Pipeline);
}

#[test]
fn what_crossed_connections_do_can_be_done_again() {
    replay_plans(Mode::Crossed);
}

#[test]
fn what_scripts_do_can_be_done_again() {
    replay_plans(Mode::Scripted);
}

/// The records of calls that ran at the same time are in an order that happened.
#[test]
fn what_clients_do_at_the_same_time_can_be_done_again() {
    let seed = first_seed();
    println!("from seed {seed}");
    let mut pair = Pair::start(SEVERAL_THREADS).unwrap();
    let (looks, work) = clients::run(&mut pair, seed, CALLS).unwrap();
    println!("{} calls, {} looks, {} served", work.calls, looks.len(), work.served);
    for (number, look) in looks.iter().enumerate() {
        let outcome = pair.compare(look);
        outcome.unwrap_or_else(|why| panic!("seed {seed}, look {number}: {why}"));
    }
    assert!(pair.count > CALLS, "only {} records", pair.count);
    assert!(work.served > 0, "nobody who waited was served");
}

/// Keys that made room for others were in no replay: their records are DEL, in the order in which
/// they went.
#[test]
fn what_was_evicted_is_gone_in_the_replay_too() {
    const KEYS: usize = 6_000;
    let mut pair = Pair::start(SEVERAL_THREADS).unwrap();
    let mut client = Client::connect(pair.recorder()).unwrap();
    let info = |client: &mut Client, name: &str| -> u64 {
        let reply = client.call(&["INFO"]).unwrap();
        let text = String::from_utf8_lossy(reply.text().unwrap()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().trim().parse().unwrap()
    };
    for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
        let limit = (info(&mut client, "used_memory") + (1 << 20)).to_string();
        client.call(&["CONFIG", "SET", "maxmemory-policy", policy]).unwrap();
        client.call(&["CONFIG", "SET", "maxmemory", &limit]).unwrap();
        let before = info(&mut client, "evicted_keys");
        for at in 0..KEYS {
            let (key, value) = (format!("{policy}:{at}"), "v".repeat(at % 700));
            client.call(&["SET", &key, &value, "EX", "1000"]).unwrap();
        }
        assert!(info(&mut client, "evicted_keys") > before, "{policy}");
        pair.catch_up().unwrap();
        client.call(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    }
    assert!(pair.count > KEYS);
    assert_eq!(pair.postponed, 0);
}

/// A call that met a key that was over counted as one that had changed something: GET, or a
/// RENAMENX without a source.
#[test]
fn a_call_that_only_meets_an_expired_key_has_recorded_nothing_of_its_own() {
    let mut pair = Pair::start(&[]).unwrap();
    let mut client = Client::connect(pair.recorder()).unwrap();
    client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).unwrap();
    for call in [&["GET", "k"][..], &["RENAMENX", "k", "z"], &["LMPOP", "1", "k", "LEFT"]] {
        client.call(&["SET", "k", "v", "PX", "1"]).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        client.call(call).unwrap();
    }
    client.call(&["BF.RESERVE", "b", "0.01", "100", "EXPANSION", "3"]).unwrap();
    let look = pair.look().unwrap();
    let deleted = look.records.iter().filter(|record| show(record) == "0 DEL k").count();
    assert_eq!(deleted, 3, "each call has met the key");
    pair.compare(&look).unwrap();
    let recorded: Vec<&str> = pair.recorded.iter().map(String::as_str).collect();
    assert_eq!(recorded, ["bf.reserve", "set"]);
}

/// Two filters that would grow differently were the same to the digest.
#[test]
fn a_digest_sees_how_a_filter_grows() {
    let mut pair = Pair::start(&[]).unwrap();
    let mut client = Client::connect(pair.recorder()).unwrap();
    client.call(&["BF.RESERVE", "b", "0.01", "100", "EXPANSION", "3"]).unwrap();
    let look = pair.look().unwrap();
    assert!(is_same(&mut pair, &look, look.records.clone()));
    let other = ["0", "BF.RESERVE", "b", "0.01", "100", "EXPANSION", "2"];
    assert!(!is_same(&mut pair, &look, vec![other.map(|arg| arg.as_bytes().to_vec()).to_vec()]));
}

/// Calls each of whose records is needed, and in this order on each key: all kinds of things that
/// a digest is made of.
const NEEDED: &[&str] = &[
    "SET s a",
    "APPEND s b",
    "APPEND s c",
    "SET e 1",
    "PEXPIRE e 600000",
    "RPUSH l a",
    "RPUSH l b",
    "RPUSH l c d",
    "RPOP l",
    "HSET h f 1",
    "HINCRBY h f 2",
    "HSET i f 1",
    "HPEXPIRE i 600000 FIELDS 1 f",
    "SADD m a b c",
    "SPOP m",
    "ZADD z 1 a",
    "ZINCRBY z 2 a",
    "XADD x * f 1",
    "XADD x * f 2",
    "XGROUP CREATE x g $",
    "XADD x * f 3",
    "XREADGROUP GROUP g c COUNT 1 STREAMS x >",
    "ONCE id PX 600000 INCR n",
    "BF.ADD b item",
    "PFADD p item",
    "SELECT 3",
    "SET s elsewhere",
];

/// The one record that could be left out: what follows it makes the consumer, too.
const CONSUMER: &str = "0 XGROUP CREATECONSUMER x g c";

/// The records of [`NEEDED`] and of a function, and what the recorder held then.
fn needed(pair: &mut Pair) -> Look {
    let mut client = Client::connect(pair.recorder()).unwrap();
    for line in NEEDED {
        let args: Vec<&str> = line.split(' ').collect();
        let reply = client.call(&args).unwrap();
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    let library = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
    client.call(&["FUNCTION", "LOAD", library]).unwrap();
    pair.look().unwrap()
}

/// Whether both servers hold the same when the replayer does just this.
fn is_same(pair: &mut Pair, look: &Look, records: Vec<Record>) -> bool {
    pair.start_over().unwrap();
    pair.compare(&look.with_records(records)).is_ok()
}

/// A law that holds whatever was recorded would be none.
#[test]
fn a_record_that_is_missing_is_noticed() {
    let mut pair = Pair::start(&[]).unwrap();
    let look = needed(&mut pair);
    assert!(look.records.len() > NEEDED.len(), "each call is recorded, SELECT aside");
    assert!(is_same(&mut pair, &look, look.records.clone()), "nothing is missing");
    for at in 0..look.records.len() {
        let mut records = look.records.clone();
        let missing = show(&records.remove(at));
        let is_noticed = !is_same(&mut pair, &look, records);
        assert!(is_noticed || missing == CONSUMER, "without {missing}");
    }
}

/// Records of one key that have changed places give other data, or can't be run at all.
#[test]
fn a_record_in_the_wrong_place_is_noticed() {
    let mut pair = Pair::start(&[]).unwrap();
    let look = needed(&mut pair);
    let mut swaps = 0;
    for at in 1..look.records.len() {
        let mut records = look.records.clone();
        let key = |record: &Record| record.get(2).cloned();
        if key(&records[at - 1]) != key(&records[at]) {
            continue;
        }
        records.swap(at - 1, at);
        let (first, second) = (show(&records[at - 1]), show(&records[at]));
        swaps += 1;
        assert!(!is_same(&mut pair, &look, records), "{first} before {second}");
    }
    assert!(swaps >= 8, "only {swaps}");
}

/// Deadlines that are over when the records are replayed are still those that they were, and what
/// took its value from the clock keeps it.
#[test]
fn a_replay_does_not_depend_on_when_it_runs() {
    const TIME_MS: u64 = 700;
    const CALLS: &[&str] = &[
        "SET a 1 PX 600",
        "SET b 1 EX 60",
        "PEXPIRE b 650 LT",
        "SET c 1",
        "GETEX c PX 600",
        "HSET h f 1 g 2",
        "HPEXPIRE h 600 FIELDS 1 f",
        "HSETEX h PX 620 FIELDS 1 i 3",
        "XADD x * f 1",
        "XGROUP CREATE x g 0",
        "XREADGROUP GROUP g c STREAMS x >",
        "XAUTOCLAIM x g d 0 0",
        "ONCE id PX 600 INCR n",
        "EVAL return(redis.call('SET',KEYS[1],redis.call('TIME')[2])) 1 t",
    ];
    let mut pair = Pair::start(&[]).unwrap();
    let mut client = Client::connect(pair.recorder()).unwrap();
    for line in CALLS {
        let args: Vec<&str> = line.split(' ').collect();
        let reply = client.call(&args).unwrap();
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    let before = pair.look().unwrap();
    std::thread::sleep(Duration::from_millis(TIME_MS));
    pair.compare(&before).unwrap();
    // The replayer's housekeeping forgot requests under an id whose time was over.
    std::thread::sleep(Duration::from_millis(TIME_MS));
    pair.compare(&before.with_records(Vec::new())).unwrap();
    pair.catch_up().unwrap();
}
