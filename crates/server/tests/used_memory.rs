//! The number that `used_memory` is read from, against a walk through all that is stored, and
//! against what the allocator of the server says.

use russet_base::hash::KeyHasher;
use russet_base::random::Random;
use russet_base::{Clock as _, ManualClock, OwnedArgs, UnixMillis};
use russet_commands::call::client::Client;
use russet_commands::call::dispatch::{Progress, Worker};
use russet_commands::call::mail::NoMailbox;
use russet_commands::node::clients::ClientCard;
use russet_commands::node::config::Config;
use russet_commands::node::{BareHost, Node};
use russet_engine::keys::Effects;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::raw::table::{Cursor, Measured, View};
use russet_protocol::Output;
use std::sync::{Arc, Mutex, PoisonError};
use tikv_jemalloc_ctl::thread;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Held by the test that runs: the allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const DATABASES: usize = 4;
/// Entries up to this size are cut from pages that the allocator does not count.
const PAGED_BYTES_MAX: usize = 1024;

struct Engine {
    clock: Arc<ManualClock>,
    worker: Worker,
    client: Client,
    /// Other clients, which wait.
    blocked: Vec<Client>,
    out: Output,
}

fn connected(node: &Arc<Node>) -> Client {
    let address = || "127.0.0.1:1".to_owned();
    let card = ClientCard::new(node.clients.next_id(), address(), address(), 3, 0);
    Client::new(node, card, Arc::new(NoMailbox))
}

/// What a walk through everything finds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Walked {
    bytes: usize,
    /// Those of them in pages.
    paged_bytes: usize,
}

impl Engine {
    fn new() -> Engine {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        let keyspace = Keyspace::new(64, DATABASES, KeyHasher::with_seed(3));
        let node = Arc::new(Node::new(
            Config::default(),
            keyspace,
            clock.clone(),
            Box::<BareHost>::default(),
        ));
        let client = connected(&node);
        let (worker, out) = (Worker::new(node), Output::default());
        Engine { clock, worker, client, blocked: Vec::new(), out }
    }

    fn run<W: AsRef<[u8]>>(&mut self, args: &[W]) {
        let args: OwnedArgs = args.iter().collect();
        self.worker.read_clock();
        self.worker.begin_batch();
        let progress = self.client.run(&mut self.worker, args.as_args(), &mut self.out);
        assert_eq!(progress, Progress::Done);
        self.worker.end_batch();
        self.out = Output::default();
    }

    /// Lets a new client wait.
    fn block(&mut self, args: &[String]) {
        let args: OwnedArgs = args.iter().collect();
        let mut client = connected(&self.worker.node);
        let card = client.session.card.clone();
        self.worker.begin_batch();
        let node = self.worker.node.clone();
        node.clients.count_memory(&card, node.keyspace.used_memory());
        let progress = client.run(&mut self.worker, args.as_args(), &mut self.out);
        assert_eq!(progress, Progress::Blocked);
        self.worker.end_batch();
        node.clients.count_memory(&card, node.keyspace.used_memory());
        self.blocked.push(client);
    }

    fn say(&mut self, line: &str) {
        self.run(&line.split(' ').collect::<Vec<_>>());
    }

    fn used(&self) -> usize {
        self.worker.node.keyspace.used_memory().bytes() as usize
    }

    /// The same with what is not in the keyspace: scripts, logs, requests.
    fn used_in_all(&self) -> usize {
        self.worker.node.used_memory_bytes() as usize
    }

    /// Removes what has expired, as housekeeping does.
    fn expire(&mut self) {
        let keyspace = &self.worker.node.keyspace;
        for shard in 0..keyspace.shards() {
            let mut effects = Effects::default();
            let now = self.clock.now();
            while let Some((mut keys, more)) =
                keyspace.expire_shard(shard, &mut effects, (now, 100))
            {
                keys.publish();
                if !more {
                    break;
                }
            }
        }
    }

    fn walk(&self) -> Walked {
        let keyspace = &self.worker.node.keyspace;
        let (mut effects, mut walked) = (Effects::default(), Walked::default());
        let locked = keyspace.lock(keyspace.all_shards());
        let mut keys = keyspace.keys(locked, &mut effects, (0, self.clock.now()));
        for (shard, db) in
            (0..keyspace.shards()).flat_map(|s| (0..DATABASES).map(move |db| (s, db)))
        {
            let held = keys.shard(shard);
            let table = held.table(db);
            let beside = held.memory_bytes(db) - table.memory_bytes();
            let (mut entries, mut paged, mut cursor) = (0, table.slot_bytes(), Cursor::START);
            loop {
                cursor = table.scan(cursor, &mut |entry| {
                    let block = entry.block_bytes();
                    entries += block;
                    paged += if block <= PAGED_BYTES_MAX { block } else { 0 };
                    if let View::Object(object) = entry.value() {
                        entries += object.memory_bytes();
                    }
                });
                if cursor.is_end() {
                    break;
                }
            }
            assert_eq!(table.slot_bytes() + entries, table.memory_bytes());
            walked.bytes += table.slot_bytes() + entries + beside;
            walked.paged_bytes += paged;
        }
        walked
    }
}

/// What this thread has been given by the allocator, less what it gave back: exact, unlike the
/// figures of the process, in which other threads and the allocator's own stock have a part.
fn allocated() -> usize {
    let given = thread::allocatedp::read().unwrap().get();
    (given - thread::deallocatedp::read().unwrap().get()) as usize
}

/// One of a few names: a text, a number or a long one.
fn name(random: &mut Random, count: usize) -> String {
    let number = random.index(count);
    match number % 7 {
        0 => format!("{number}{}", "m".repeat(number % 90)),
        1 => number.to_string(),
        _ => format!("member:{number}"),
    }
}

fn value(random: &mut Random) -> String {
    match random.index(12) {
        0 => "v".repeat(random.index(20_000)),
        1..4 => random.index(1 << 30).to_string(),
        _ => "v".repeat(random.index(200)),
    }
}

/// What a call is made of.
struct Draw {
    key: String,
    other: String,
    m: String,
    n: String,
    v: String,
    i: usize,
    j: usize,
    members: usize,
    /// Chooses the verb.
    verb: usize,
}

impl Draw {
    /// Each kind of value has its own few keys, small ones and large ones.
    fn new(random: &mut Random, kind: usize) -> Draw {
        let size = random.index(3);
        let members = [8, 200, 4000][size];
        let letter = "slhzxbpok".as_bytes()[kind] as char;
        let mut key = || format!("{letter}:{size}:{}", random.index(3));
        let (key, other) = (key(), key());
        let (m, n) = (name(random, members), name(random, members));
        let (v, i, j) = (value(random), random.index(members), random.index(members) + 2);
        Draw { key, other, m, n, v, i, j, members, verb: random.index(14) }
    }

    fn many(&self, verb: &str, random: &mut Random) -> String {
        let count = random.index(self.members / 4 + 2) + 1;
        let names: Vec<String> = (0..count).map(|_| name(random, self.members)).collect();
        format!("{verb} {} {}", self.key, names.join(" "))
    }
}

fn call(random: &mut Random) -> Vec<String> {
    let kind = random.index(9);
    let draw = Draw::new(random, kind);
    let calls: [fn(&Draw, &mut Random) -> String; 9] =
        [strings, lists, hashes, zsets, streams, blooms, hyperloglogs, sets, others];
    let line = match draw.verb {
        0 => any_type(&draw, random),
        _ => calls[kind](&draw, random),
    };
    line.split(' ').map(|arg| arg.replace('+', " ")).collect()
}

fn any_type(draw: &Draw, random: &mut Random) -> String {
    let Draw { key, other, .. } = draw;
    match random.index(30) {
        0 => "FLUSHDB".to_owned(),
        1 => format!("SWAPDB 0 {}", random.index(DATABASES)),
        2..5 => format!("SELECT {}", random.index(DATABASES)),
        5..9 => format!("RENAME {key} {other}"),
        9..13 => format!("COPY {key} {other} REPLACE"),
        13..16 => format!("MOVE {key} {}", random.index(DATABASES)),
        16..24 => format!("PEXPIRE {key} {}", random.index(3000)),
        24 => format!("PERSIST {key}"),
        25 => {
            format!("EVAL for+i=1,300+do+redis.call('set',KEYS[1]..i,('y'):rep(i*9))+end 1 {key}")
        }
        26 => format!("SORT {key} ALPHA STORE {other}"),
        _ => format!("DEL {key}"),
    }
}

fn strings(draw: &Draw, _random: &mut Random) -> String {
    let Draw { key, v, i, verb, .. } = draw;
    match *verb {
        1..4 => format!("SET {key} {v}"),
        4 => format!("APPEND {key} {v}"),
        5 => format!("SETRANGE {key} {i} {v}"),
        6 => format!("GETDEL {key}"),
        7 => format!("SETBIT {key} {} 1", i * 100),
        8 => format!("SET {key} {v} PX 500"),
        _ => format!("INCRBY {key} {i}"),
    }
}

fn lists(draw: &Draw, random: &mut Random) -> String {
    let Draw { key, other, m, v, i, j, verb, .. } = draw;
    match *verb {
        1..4 => draw.many("RPUSH", random),
        4..6 => draw.many("LPUSH", random),
        6 => format!("LPOP {key} {i}"),
        7 => format!("LSET {key} {i} {v}"),
        8 => format!("LINSERT {key} BEFORE {m} {v}"),
        9 => format!("LREM {key} 0 {m}"),
        10 => format!("LTRIM {key} {} {}", i / 2, i + j),
        _ => format!("RPOPLPUSH {key} {other}"),
    }
}

fn hashes(draw: &Draw, random: &mut Random) -> String {
    let Draw { key, m, n, v, i, verb, .. } = draw;
    match *verb {
        1..4 => format!("HSET {key} {m} {v} {n} {i}"),
        4 => format!("HDEL {key} {m} {n}"),
        5 => format!("HPEXPIRE {key} {} FIELDS 2 {m} {n}", random.index(2000) + 1),
        6 => format!("HPERSIST {key} FIELDS 1 {m}"),
        7 => format!("HINCRBY {key} {n} 5"),
        _ => draw.many("HSET", random) + if random.index(2) == 0 { "" } else { " x" },
    }
}

fn zsets(draw: &Draw, _random: &mut Random) -> String {
    let Draw { key, other, m, n, i, j, members, verb, .. } = draw;
    match *verb {
        1..5 => format!("ZADD {key} {i} {m} {j} {n}"),
        5 => format!("ZREM {key} {m} {n}"),
        6 => format!("ZREMRANGEBYRANK {key} {} {}", i / 2, i / 2 + j / 3),
        7 => format!("ZPOPMIN {key} {}", i / 8),
        8 => format!("ZUNIONSTORE {other} 2 {key} {other}"),
        9 => {
            format!("EVAL for+i=1,{members}+do+redis.call('zadd',KEYS[1],i,i..'z')+end 1 {key}")
        }
        _ => format!("ZINCRBY {key} {i} {n}"),
    }
}

fn streams(draw: &Draw, random: &mut Random) -> String {
    let Draw { key, m, v, i, j, verb, .. } = draw;
    match *verb {
        1..5 => format!("XADD {key} * {m} {v} f {i}"),
        5 => format!("XTRIM {key} MAXLEN {i}"),
        6 => format!("XGROUP CREATE {key} g{} 0 MKSTREAM", random.index(3)),
        7 => format!("XGROUP DESTROY {key} g{}", random.index(9)),
        8 => format!("XACK {key} g0 {i}-0"),
        9 => format!("XAUTOCLAIM {key} g1 c{} 0 0 COUNT {j}", random.index(9)),
        10 => format!("XGROUP DELCONSUMER {key} g0 c{}", random.index(5)),
        _ => {
            format!("XREADGROUP GROUP g{} c{} COUNT {j} STREAMS {key} >", random.index(3), i % 9)
        }
    }
}

fn blooms(draw: &Draw, _random: &mut Random) -> String {
    let Draw { key, m, j, verb, .. } = draw;
    match *verb {
        1..12 => format!("BF.ADD {key} {m}"),
        _ => format!("BF.RESERVE {key} 0.01 {}", j * 10),
    }
}

fn hyperloglogs(draw: &Draw, random: &mut Random) -> String {
    let Draw { key, other, verb, .. } = draw;
    match *verb {
        1..9 => draw.many("PFADD", random),
        _ => format!("PFMERGE {key} {other}"),
    }
}

fn sets(draw: &Draw, random: &mut Random) -> String {
    let Draw { key, other, m, i, verb, .. } = draw;
    match *verb {
        1..6 => draw.many("SADD", random),
        6..8 => draw.many("SREM", random),
        8 => format!("SPOP {key} {}", i / 4),
        9 => format!("SMOVE {key} {other} {m}"),
        10 => format!("SUNIONSTORE {other} {key} {other}"),
        _ => format!("SINTERSTORE {key} {key} {other}"),
    }
}

fn others(draw: &Draw, _random: &mut Random) -> String {
    let Draw { key, v, i, j, .. } = draw;
    format!("MSET {key}{i} {v} {key}{j} {i}")
}

/// Nothing told how much was in use but the allocator: each change must reach the number, and be
/// taken off again when its value goes, by whatever way.
#[test]
fn the_number_equals_a_walk_through_everything() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for seed in 0..4 {
        let (mut engine, mut random) = (Engine::new(), Random::from_seed(seed));
        let start = engine.used();
        for step in 0..6000 {
            let args = call(&mut random);
            engine.run(&args);
            if step % 8 == 0 {
                engine.clock.advance_ms(random.index(60) as u64);
            }
            if step % 300 == 0 {
                engine.expire();
            }
            if step % 10 == 0 {
                let line: String = args.join(" ").chars().take(200).collect();
                assert_eq!(engine.used() - start, engine.walk().bytes, "{line}");
            }
        }
        assert!(engine.used() > start + 100_000, "something is stored");
        engine.say("FLUSHALL");
        assert_eq!((engine.used(), engine.walk()), (start, Walked::default()));
    }
}

/// Fills one kind of value until it takes about `bytes`, as the allocator and the pages have it,
/// and compares the growth of the number with that.
fn compare(kind: &str, bytes: usize, fill: impl Fn(&mut Engine, usize)) {
    let mut engine = Engine::new();
    fill(&mut engine, 0);
    let (used, paged) = (engine.used_in_all(), engine.walk().paged_bytes);
    let allocated_before = allocated();
    let mut round = 0;
    while engine.used_in_all() < used + bytes {
        round += 1;
        fill(&mut engine, round);
    }
    let counted = engine.used_in_all() - used;
    let allocated = allocated().cast_signed() - allocated_before.cast_signed();
    let taken = allocated + (engine.walk().paged_bytes - paged).cast_signed();
    let off = counted as f64 / taken as f64 - 1.0;
    println!("{kind}: {counted} counted, {taken} taken, {:+.2} %", off * 100.0);
    assert!(off.abs() < 0.01, "{kind}: {counted} counted, {taken} taken");
}

type Fill = fn(&mut Engine, usize);

/// What is stored, and one round of storing it.
const KINDS: [(&str, Fill); 12] = [
    ("short strings", |engine, round| {
        (0..1000).for_each(|at| engine.say(&format!("SET key:{round}:{at} value:{at}")));
    }),
    ("strings of all sizes", |engine, round| {
        for at in 0..100 {
            let value = "v".repeat((round * 100 + at) * 37 % 30_000);
            engine.run(&["SET".to_owned(), format!("key:{round}:{at}"), value]);
        }
    }),
    ("small collections", |engine, round| {
        for at in 0..100 {
            engine.say(&format!("RPUSH l:{round}:{at} a b c d e f"));
            engine.say(&format!("HSET h:{round}:{at} name Anna age 7 town Bern"));
            engine.say(&format!("SADD s:{round}:{at} one two three"));
            engine.say(&format!("SADD i:{round}:{at} 1 2 3 400000"));
            engine.say(&format!("ZADD z:{round}:{at} 1 one 2 two 3 three"));
            engine.say(&format!("XADD x:{round}:{at} * field value"));
        }
    }),
    ("long lists", |engine, round| {
        (0..1000).for_each(|at| engine.say(&format!("RPUSH l:{} element:{at} {at}", round % 50)));
    }),
    ("large sets", |engine, round| {
        (0..1000).for_each(|at| {
            engine.say(&format!("SADD s:{} member:{round}:{at} {round}0{at}", round % 20));
        });
    }),
    ("large hashes", |engine, round| {
        (0..1000).for_each(|at| {
            engine.say(&format!("HSET h:{} field:{round}:{at} value:{at}", round % 20));
        });
    }),
    ("fields that expire", |engine, round| {
        (0..1000).for_each(|at| {
            let name = format!("field:{round}:{at}");
            let key = format!("h:{}", round % 20);
            let ttl = 100_000 + round * 1000 + at;
            engine.say(&format!("HSETEX {key} PX {ttl} FIELDS 1 {name} value:{at}"));
        });
    }),
    ("large sorted sets", |engine, round| {
        (0..1000).for_each(|at| {
            let score = (round * 1000 + at) * 7919 % 1_000_003;
            engine.say(&format!("ZADD z:{} {score} member:{round}:{at}", round % 20));
        });
    }),
    ("streams", |engine, round| {
        (0..1000).for_each(|at| engine.say(&format!("XADD x:{} * field value:{at}", round % 20)));
    }),
    ("Bloom filters", |engine, round| {
        (0..100).for_each(|at| engine.say(&format!("BF.ADD b:{} item:{round}:{at}", round % 5000)));
    }),
    ("HyperLogLogs", |engine, round| {
        (0..100).for_each(|at| engine.say(&format!("PFADD p:{} item:{at}", round)));
    }),
    ("pending entries", |engine, round| {
        let key = format!("x:{}", round % 5);
        (0..1000).for_each(|at| engine.say(&format!("XADD {key} * f {at}")));
        engine.say(&format!("XGROUP CREATE {key} g 0"));
        engine.say(&format!("XREADGROUP GROUP g c COUNT 1000 STREAMS {key} >"));
    }),
];

/// What is held beside the keys. It was not counted, or as fewer bytes than it took: 100,000
/// entries of the slow log were none, a compiled script was its source.
const OTHER_KINDS: [(&str, Fill); 5] = [
    ("requests that run once", |engine, round| {
        for at in 0..1000 {
            engine.say(&format!("ONCE {{k}}request:{round}:{at} PX 100000000 SET k v"));
        }
    }),
    ("keys that clients wait for", |engine, round| {
        let keys = (0..20_000).map(|at| format!("key:{round}:{at}"));
        let call = ["BLPOP".to_owned()].into_iter().chain(keys).chain(["0".to_owned()]);
        engine.block(&call.collect::<Vec<_>>());
    }),
    ("scripts", |engine, round| {
        for at in 0..50 {
            let line = |number| format!("a[{number}]=redis.call('get', KEYS[1]..{round}{at})");
            let lines: Vec<String> = (0..60).map(line).collect();
            let source = format!("local a = {{}} {}", lines.join(" "));
            engine.run(&["SCRIPT", "LOAD", &source]);
        }
    }),
    ("functions", |engine, round| {
        let call = |number| format!("redis.call('set', k[1], {number})");
        let calls: Vec<String> = (0..500).map(call).collect();
        let function = format!("function(k) {} end", calls.join(" "));
        let source =
            format!("#!lua name=l{round}\nredis.register_function('f{round}', {function})");
        engine.run(&["FUNCTION", "LOAD", &source]);
    }),
    ("the slow log", |engine, round| {
        if round == 0 {
            engine.say("CONFIG SET slowlog-max-len 10000000 slowlog-log-slower-than 0");
        }
        (0..1000).for_each(|at| engine.say(&format!("SET k{} {}", at % 100, "x".repeat(at % 200))));
    }),
];

#[test]
fn what_is_held_beside_the_keys_is_counted_within_one_percent() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (kind, fill) in OTHER_KINDS {
        compare(kind, 16 << 20, fill);
    }
}

#[test]
fn the_number_is_what_the_allocator_says_within_one_percent() {
    const MIB: usize = 1 << 20;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (kind, fill) in KINDS {
        compare(kind, 16 * MIB, fill);
    }
    compare("all together", 128 * MIB, |engine, round| {
        KINDS.iter().for_each(|(_, fill)| fill(engine, round));
    });
}
