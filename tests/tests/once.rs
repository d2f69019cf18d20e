//! ONCE over sockets: clients that lose their connection, repeat themselves and get in each other's
//! way, by chance. Whatever happens, each request has had its effect exactly once when its client
//! has its answer.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use russet_base::Random;
use russet_tests::client::{Client, REPLY_WAIT, ReadError, Reply};
use russet_tests::replay::Recorded;
use russet_tests::server::Server;

const CLIENTS: usize = 8;
const REQUESTS: usize = 2_000;
/// Longer than any test runs.
const LONG: &str = "600000";

fn server() -> Recorded {
    Recorded::start(&["--threads", "4", "--threads-min", "4"])
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn call(client: &mut Client, line: &str) -> Reply {
    let args: Vec<&str> = line.split(' ').collect();
    client.call(&args).unwrap()
}

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Int(number) => *number,
        Reply::Bulk(text) => String::from_utf8_lossy(text).parse().unwrap(),
        other => panic!("not a number: {other:?}"),
    }
}

/// One thing that a client wants done: what it sends, however often.
#[derive(Clone)]
struct Request {
    /// Each is a command; the last one carries the id.
    commands: Vec<Vec<Vec<u8>>>,
}

fn args(args: &[&str]) -> Vec<Vec<u8>> {
    args.iter().map(|arg| arg.as_bytes().to_vec()).collect()
}

/// Requests of each kind that ONCE takes. Each adds 1 to `total` and to a key of its own, so both
/// what is lost and what is doubled shows.
fn request(number: usize) -> Request {
    const BUMP: &str = "redis.call('INCR', KEYS[2]) return redis.call('INCR', KEYS[1])";
    const BUMP_BY_NAME: &str =
        "redis.call('INCR', 'own:' .. ARGV[1]) return redis.call('INCR', 'total')";
    let (id, own, plain) = (format!("id:{number}"), format!("own:{number}"), number.to_string());
    let once = ["ONCE", &id, "PX", LONG];
    let with = |rest: &[&str]| {
        let all: Vec<&str> = once.iter().chain(rest).copied().collect();
        args(&all)
    };
    let commands = match number % 4 {
        0 => vec![with(&["EVAL", BUMP, "2", "total", &own])],
        1 => vec![with(&["EVAL", BUMP_BY_NAME, "0", &plain])],
        2 => vec![with(&["FCALL", "bump", "2", "total", &own])],
        _ => {
            vec![args(&["MULTI"]), args(&["INCR", "total"]), args(&["INCR", &own]), with(&["EXEC"])]
        }
    };
    Request { commands }
}

/// Sends a request until it is answered. By chance the connection is dropped after sending, or the
/// client does not wait long enough.
fn insist(server: &Server, client: &mut Client, request: &Request, random: &mut Random) -> Reply {
    loop {
        let sent = request.commands.iter().try_for_each(|command| client.send(command));
        let wait = match random.below(4) {
            0 => None,
            1 => Some(Duration::from_micros(random.below(2_000))),
            _ => Some(REPLY_WAIT),
        };
        let answered = match (sent, wait) {
            (Ok(()), Some(wait)) => read_last(client, request.commands.len(), wait),
            _ => None,
        };
        match answered {
            Some(reply) => return reply,
            None => *client = connect(server),
        }
    }
}

fn read_last(client: &mut Client, count: usize, wait: Duration) -> Option<Reply> {
    let mut last = None;
    for _ in 0..count {
        match client.read(wait) {
            Ok(reply) => last = Some(reply),
            Err(ReadError::TimedOut | ReadError::Closed) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    last
}

#[test]
fn every_request_has_its_effect_once() {
    let server = server();
    let mut client = connect(&server);
    let library = "#!lua name=lib\nredis.register_function('bump', function(keys) \
                   redis.call('INCR', keys[2]) return redis.call('INCR', keys[1]) end)";
    assert!(!client.call(&["FUNCTION", "LOAD", library]).unwrap().is_error());
    let requests: Vec<Request> = (0..REQUESTS).map(request).collect();
    let answers: Mutex<HashMap<usize, Reply>> = Mutex::default();
    let seed = Random::from_entropy().next_u64();
    std::thread::scope(|scope| {
        for index in 0..CLIENTS {
            let (server, requests, answers) = (&server, &requests, &answers);
            scope.spawn(move || {
                let mut random = Random::from_seed(seed.wrapping_add(index as u64));
                let mut client = connect(server);
                // Every request is made by two clients, each in an order of its own.
                let mut mine: Vec<usize> =
                    (0..REQUESTS).filter(|n| n % CLIENTS / 2 == index / 2).collect();
                random.shuffle(&mut mine);
                for number in mine {
                    let reply = insist(server, &mut client, &requests[number], &mut random);
                    let first = answers.lock().unwrap().insert(number, reply.clone());
                    assert!(!reply.is_error(), "seed {seed}, request {number}: {reply:?}");
                    assert!(
                        first.is_none_or(|first| first == reply),
                        "seed {seed}, request {number}: another answer, {reply:?}"
                    );
                }
            });
        }
    });
    assert_eq!(number(&call(&mut client, "GET total")), REQUESTS as i64, "seed {seed}");
    for n in 0..REQUESTS {
        assert_eq!(number(&call(&mut client, &format!("GET own:{n}"))), 1, "seed {seed}, {n}");
    }
    // Each saw the total at its own moment.
    let answers = answers.into_inner().unwrap();
    let mut seen: Vec<i64> = answers.values().map(total_of).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=REQUESTS as i64).collect::<Vec<_>>(), "seed {seed}");
}

/// The total in a reply to a request.
fn total_of(reply: &Reply) -> i64 {
    match reply {
        Reply::Array(parts) => number(&parts[0]),
        other => number(other),
    }
}

/// Many clients use the same ids for different amounts: for each id one amount is added, and all
/// who asked for another are refused, always.
#[test]
fn an_id_used_for_something_else_is_always_refused() {
    const IDS: usize = 60;
    let server = server();
    let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let amounts: Vec<Mutex<Option<usize>>> = (0..IDS).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for index in 0..CLIENTS {
            let (server, amounts, done, refused) = (&server, &amounts, &done, &refused);
            scope.spawn(move || {
                let mut client = connect(server);
                for (id, amount) in amounts.iter().enumerate() {
                    let mine = 1 + index % 4;
                    let line = format!("ONCE m:{id} PX {LONG} INCRBY sum:{id} {mine}");
                    match call(&mut client, &line) {
                        Reply::Int(sum) => {
                            assert_eq!(sum, mine as i64, "{line}");
                            let known = amount.lock().unwrap().replace(mine);
                            assert!(known.is_none_or(|known| known == mine), "two amounts: {line}");
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Reply::Error(text) if text.starts_with(b"ONCEMISMATCH ") => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("{line}: {other:?}"),
                    }
                }
            });
        }
    });
    let mut client = connect(&server);
    for (id, amount) in amounts.iter().enumerate() {
        let sum = number(&call(&mut client, &format!("GET sum:{id}")));
        assert_eq!(Some(sum as usize), *amount.lock().unwrap());
    }
    // Of eight clients two want each of the four amounts.
    assert_eq!((done.into_inner(), refused.into_inner()), (IDS * 2, IDS * 6));
}

/// After its time an id is new again; what is over is forgotten without being asked for.
#[test]
fn records_expire() {
    let server = server();
    let mut client = connect(&server);
    for id in 0..200 {
        call(&mut client, &format!("ONCE e:{id} PX 30 INCR n"));
    }
    let deadline = Instant::now() + REPLY_WAIT;
    loop {
        let Reply::Array(fields) = call(&mut client, "ONCE STATS") else { panic!("no stats") };
        assert_eq!(fields[0], Reply::Bulk(b"records".to_vec()));
        if fields[1] == Reply::Int(0) {
            break;
        }
        assert!(Instant::now() < deadline, "still there: {fields:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(number(&call(&mut client, &format!("ONCE e:0 PX {LONG} INCR n"))), 201);
    assert_eq!(number(&call(&mut client, &format!("ONCE e:0 PX {LONG} INCR n"))), 201);
}

/// A full store refuses before anything runs, and takes new ids as soon as there is room.
#[test]
fn a_full_store_refuses_before_it_runs() {
    let server = server();
    let mut client = connect(&server);
    call(&mut client, "CONFIG SET once-records-max 10");
    let mut taken = 0;
    for id in 0..100 {
        match call(&mut client, &format!("ONCE {{n}}{id} PX {LONG} INCR n")) {
            Reply::Int(_) => taken += 1,
            Reply::Error(text) => assert!(text.starts_with(b"ONCEFULL ")),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken, 10);
    assert_eq!(number(&call(&mut client, "GET n")), 10);
    call(&mut client, "CONFIG SET once-records-max 11");
    assert_eq!(number(&call(&mut client, &format!("ONCE {{n}}99 PX {LONG} INCR n"))), 11);
}

/// An `ONCE ... EXEC` that was answered BUSY left its transaction open; a plain EXEC then ran it.
#[test]
fn an_exec_that_finds_a_script_in_its_way_ends_its_transaction() {
    let server = server();
    let [mut client, mut other, mut admin] = [(); 3].map(|()| connect(&server));
    call(&mut client, "CONFIG SET busy-reply-threshold 1");
    call(&mut client, "MULTI");
    call(&mut client, "INCR k");
    other.send(&args(&["EVAL", "while true do end", "1", "k"])).unwrap();
    let deadline = Instant::now() + REPLY_WAIT;
    while !call(&mut admin, "GET k").is_error() {
        assert!(Instant::now() < deadline, "the script is not running");
    }
    let refused = call(&mut client, &format!("ONCE id PX {LONG} EXEC"));
    let Reply::Error(text) = &refused else { panic!("{refused:?}") };
    assert!(String::from_utf8_lossy(text).contains("BUSY"), "{refused:?}");
    assert_eq!(call(&mut admin, "SCRIPT KILL"), Reply::Status(b"OK".to_vec()));
    assert!(other.read(REPLY_WAIT).unwrap().is_error());
    let late = call(&mut client, "EXEC");
    assert_eq!(late, Reply::Error(b"ERR EXEC without MULTI".to_vec()));
    assert_eq!(call(&mut client, "GET k"), Reply::NullBulk);
}

/// A shard that was busy ended the pass of the housekeeping: beside a long script nothing was
/// forgotten in the shards behind its own.
#[test]
fn records_expire_beside_a_busy_shard() {
    let server = server();
    let [mut client, mut other, mut admin] = [(); 3].map(|()| connect(&server));
    call(&mut client, "CONFIG SET busy-reply-threshold 1");
    // The script runs before the first record is there: none expires without it.
    other.send(&args(&["EVAL", "while true do end", "1", "busy"])).unwrap();
    let deadline = Instant::now() + REPLY_WAIT;
    while !call(&mut admin, "GET busy").is_error() {
        assert!(Instant::now() < deadline, "the script is not running");
    }
    // As many keys as reach every part of the keyspace, but for those in the script's shard.
    let kept = (0..2_000)
        .filter(|id| {
            !call(&mut client, &format!("ONCE {{{id}}}r PX 200 SET {{{id}}} v")).is_error()
        })
        .count();
    assert!((1_900..=2_000).contains(&kept), "{kept} records");
    loop {
        let Reply::Array(fields) = call(&mut client, "ONCE STATS") else { panic!("no stats") };
        if fields[1] == Reply::Int(0) {
            break;
        }
        assert!(Instant::now() < deadline, "still there: {fields:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(call(&mut admin, "SCRIPT KILL"), Reply::Status(b"OK".to_vec()), "it still ran");
    assert!(other.read(REPLY_WAIT).unwrap().is_error());
}
