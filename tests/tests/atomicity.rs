//! Many clients on few keys, over sockets, against the real binary with four event loops: each
//! command and each EXEC runs as if alone, and nothing is lost or doubled.
//!
//! Every check is about what is seen, never about how fast. The load of [`background_load`] makes
//! the server open all of its loops.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use russet_tests::client::{Client, REPLY_WAIT, ReadError, Reply, encode};
use russet_tests::replay::Recorded;
use russet_tests::server::Server;

/// How long each storm lasts.
const STORM: Duration = Duration::from_millis(1_200);

fn server() -> Recorded {
    Recorded::start(&["--threads", "4", "--threads-min", "4"])
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn call(client: &mut Client, line: &str) -> Reply {
    let args: Vec<&str> = line.split(' ').collect();
    let reply = client.call(&args).unwrap();
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Int(number) => *number,
        other => panic!("not a number: {other:?}"),
    }
}

fn texts(reply: &Reply) -> Vec<String> {
    let Reply::Array(items) = reply else { panic!("not an array: {reply:?}") };
    items.iter().map(|item| String::from_utf8(item.text().unwrap().to_vec()).unwrap()).collect()
}

/// Sends the lines as one transaction; its parts, or None if a watched key changed.
fn transact(client: &mut Client, lines: &[&str]) -> Option<Vec<Reply>> {
    let all = ["MULTI"].iter().chain(lines).chain(&["EXEC"]);
    let args = |line: &&str| line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
    let bytes: Vec<u8> = all.flat_map(|line| encode(&args(line) as &Vec<Vec<u8>>)).collect();
    client.send_raw(&bytes).unwrap();
    for _ in 0..=lines.len() {
        assert!(!client.read(REPLY_WAIT).unwrap().is_error());
    }
    match client.read(REPLY_WAIT).unwrap() {
        Reply::Array(parts) => Some(parts),
        Reply::NullArray => None,
        other => panic!("EXEC: {other:?}"),
    }
}

/// Enough pipelined load on keys of its own that the server spreads its connections over all loops.
fn background_load(address: SocketAddr, done: &AtomicBool) {
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(address).unwrap()).collect();
    let mut bytes = Vec::new();
    for n in 0..200 {
        let key = format!("load:{n}").into_bytes();
        bytes.extend(encode(&[b"APPEND".to_vec(), key.clone(), b"x".to_vec()]));
        bytes.extend(encode(&[b"GETRANGE".to_vec(), key, b"0".to_vec(), b"3".to_vec()]));
    }
    while !done.load(Ordering::Relaxed) {
        for client in &mut clients {
            client.send_raw(&bytes).unwrap();
        }
        for client in &mut clients {
            (0..400).for_each(|_| drop(client.read(REPLY_WAIT).unwrap()));
        }
    }
}

/// One step of a worker: its connection, and which of its kind it is.
type Worker<'a> = dyn Fn(&mut Client, usize) + Sync + 'a;

/// Runs each of these on threads of their own, under background load, until the storm is over.
/// A worker gets a fresh connection and is called again and again.
fn storm(server: &Server, workers: &[(usize, &Worker<'_>)]) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| background_load(server.address(), &done));
        for &(count, work) in workers {
            for index in 0..count {
                let mut client = connect(server);
                let done = &done;
                scope.spawn(move || {
                    // A failed worker ends the storm, so that its failure is reported at once.
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        while !done.load(Ordering::Relaxed) {
                            work(&mut client, index);
                        }
                    }));
                    done.store(true, Ordering::Relaxed);
                    if let Err(panic) = result {
                        std::panic::resume_unwind(panic);
                    }
                });
            }
        }
        let until = Instant::now() + STORM;
        while Instant::now() < until && !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn mget_never_sees_half_of_an_mset() {
    let server = server();
    call(&mut connect(&server), "MSET k1 0 k2 0 k3 0 k4 0");
    let turn = AtomicUsize::new(1);
    let write = |client: &mut Client, index: usize| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        // In both orders: locks are taken in the shards' order, whatever the arguments' is.
        let line = match index % 2 {
            0 => format!("MSET k1 {n} k2 {n} k3 {n} k4 {n}"),
            _ => format!("MSET k4 {n} k3 {n} k2 {n} k1 {n}"),
        };
        call(client, &line);
    };
    let read = |client: &mut Client, index: usize| {
        let line = ["MGET k1 k2 k3 k4", "MGET k3 k1 k4 k2"][index % 2];
        let seen = texts(&call(client, line));
        assert!(seen.iter().all(|text| *text == seen[0]), "a mix: {seen:?}");
    };
    storm(&server, &[(4, &write), (4, &read)]);
    assert!(turn.into_inner() > 20);
}

#[test]
fn msetnx_writes_all_or_nothing() {
    let server = server();
    let race = |client: &mut Client, index: usize| {
        let first = format!("{index}");
        call(client, &format!("MSETNX n1 {first} n2 {first} n3 {first}"));
        let parts = transact(client, &["MGET n1 n2 n3", "DEL n1 n2 n3"]).unwrap();
        let Reply::Array(seen) = &parts[0] else { panic!("{parts:?}") };
        assert!(seen.iter().all(|value| *value == seen[0]), "a mix: {seen:?}");
        assert!([0, 3].contains(&number(&parts[1])));
    };
    storm(&server, &[(6, &race)]);
}

#[test]
fn moves_neither_lose_nor_double_an_element() {
    let server = server();
    let mut client = connect(&server);
    let elements: Vec<String> = (0..40).map(|n| format!("e{n}")).collect();
    call(&mut client, &format!("RPUSH l1 {}", elements.join(" ")));
    let to_and_fro = |client: &mut Client, index: usize| {
        let lines = [
            "LMOVE l1 l2 LEFT RIGHT",
            "LMOVE l2 l3 RIGHT LEFT",
            "RPOPLPUSH l3 l1",
            "LMOVE l3 l2 LEFT LEFT",
            "LMOVE l2 l1 RIGHT RIGHT",
            "LMOVE l1 l1 LEFT RIGHT",
        ];
        call(client, lines[index % lines.len()]);
    };
    let blocking = |client: &mut Client, _: usize| {
        call(client, "BLMOVE l1 l3 RIGHT LEFT 0.01");
    };
    let check = |client: &mut Client, _: usize| {
        let parts = transact(client, &["LRANGE l1 0 -1", "LRANGE l2 0 -1", "LRANGE l3 0 -1"]);
        let mut seen: Vec<String> = parts.unwrap().iter().flat_map(texts).collect();
        seen.sort();
        let mut expected = elements.clone();
        expected.sort();
        assert_eq!(seen, expected);
    };
    let rename = |client: &mut Client, _: usize| {
        let reply = client.call(&["RENAME", "box1", "box2"]).unwrap();
        let back = client.call(&["RENAME", "box2", "box1"]).unwrap();
        assert!(!reply.is_error() || reply.text() == Some(b"ERR no such key"), "{reply:?}");
        assert!(!back.is_error() || back.text() == Some(b"ERR no such key"), "{back:?}");
    };
    let boxed = |client: &mut Client, _: usize| {
        let parts = transact(client, &["EXISTS box1 box2", "MGET box1 box2"]).unwrap();
        assert_eq!(number(&parts[0]), 1, "the box is in one place: {parts:?}");
    };
    call(&mut client, "SET box1 treasure");
    storm(&server, &[(6, &to_and_fro), (1, &blocking), (2, &check), (2, &rename), (1, &boxed)]);
    check(&mut client, 0);
}

#[test]
fn copies_are_whole() {
    let server = server();
    call(&mut connect(&server), "RPUSH src 0 0 0 0");
    let turn = AtomicUsize::new(1);
    let write = |client: &mut Client, _: usize| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        let push = format!("RPUSH src {n} {n} {n} {n}");
        transact(client, &["DEL src", &push]).unwrap();
    };
    let copy = |client: &mut Client, index: usize| {
        call(client, &format!("COPY src dst{} REPLACE", index % 2));
        let seen = texts(&call(client, &format!("LRANGE dst{} 0 -1", index % 2)));
        assert!(seen.len() == 4 && seen.iter().all(|text| *text == seen[0]), "torn: {seen:?}");
    };
    storm(&server, &[(2, &write), (4, &copy)]);
}

#[test]
fn members_on_the_move_are_in_one_set() {
    const MEMBERS: usize = 12;
    let server = server();
    let all: Vec<String> = (0..MEMBERS).map(|n| format!("m{n}")).collect();
    call(&mut connect(&server), &format!("SADD s0 {}", all.join(" ")));
    let turn = AtomicUsize::new(0);
    let move_one = |client: &mut Client, index: usize| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        let (from, to) = ((n + index) % 3, (n + index + 1 + n % 2) % 3);
        call(client, &format!("SMOVE s{from} s{to} m{}", n * 7 % MEMBERS));
    };
    let count = |client: &mut Client, _: usize| {
        let parts = transact(client, &["SCARD s0", "SCARD s1", "SCARD s2", "SUNION s0 s1 s2"]);
        let parts = parts.unwrap();
        let sum: i64 = parts[..3].iter().map(number).sum();
        assert_eq!((sum, texts(&parts[3]).len()), (MEMBERS as i64, MEMBERS));
    };
    storm(&server, &[(4, &move_one), (3, &count)]);
}

#[test]
fn stored_unions_are_of_one_moment() {
    let server = server();
    call(&mut connect(&server), "ZADD a 0 m 0 n");
    call(&mut connect(&server), "ZADD b 0 m 0 n");
    let turn = AtomicUsize::new(1);
    let write = |client: &mut Client, _: usize| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        let (to_a, to_b) = (format!("ZADD a {n} m {n} n"), format!("ZADD b {n} m {n} n"));
        transact(client, &[&to_a, &to_b]).unwrap();
    };
    let unite = |client: &mut Client, index: usize| {
        // The scores of the two are always the same, so their difference is nothing.
        call(client, &format!("ZUNIONSTORE out{index} 2 a b WEIGHTS 1 -1"));
        let seen = texts(&call(client, &format!("ZRANGE out{index} 0 -1 WITHSCORES")));
        assert_eq!(seen, ["m", "0", "n", "0"]);
    };
    storm(&server, &[(3, &write), (4, &unite)]);
}

#[test]
fn transfers_between_hashes_keep_the_sum() {
    let server = server();
    call(&mut connect(&server), "HSET h0 cash 1000 name a");
    call(&mut connect(&server), "HSET h1 cash 1000 name b");
    let turn = AtomicUsize::new(1);
    let transfer = |client: &mut Client, index: usize| {
        let amount = turn.fetch_add(1, Ordering::Relaxed) % 17;
        let (from, to) = (index % 2, 1 - index % 2);
        let take = format!("HINCRBY h{from} cash -{amount}");
        let give = format!("HINCRBY h{to} cash {amount}");
        transact(client, &[&take, &give]).unwrap();
    };
    let check = |client: &mut Client, _: usize| {
        let parts = transact(client, &["HMGET h0 cash name", "HGET h1 cash"]).unwrap();
        let cash = |text: &[u8]| String::from_utf8_lossy(text).parse::<i64>().unwrap();
        let first = cash(texts(&parts[0])[0].as_bytes());
        assert_eq!(first + cash(parts[1].text().unwrap()), 2000);
    };
    storm(&server, &[(4, &transfer), (3, &check)]);
}

/// The keys that SORT looks at are not among those that it names.
#[test]
fn sort_looks_up_its_keys_in_one_moment() {
    let server = server();
    call(&mut connect(&server), "RPUSH list 1 2 3 4");
    call(&mut connect(&server), "MSET w1 0 w2 0 w3 0 w4 0");
    let turn = AtomicUsize::new(1);
    let write = |client: &mut Client, _: usize| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        call(client, &format!("MSET w1 {n} w2 {n} w3 {n} w4 {n}"));
    };
    let sort = |client: &mut Client, index: usize| {
        let seen = match index % 2 {
            0 => texts(&call(client, "SORT list BY w* GET w*")),
            _ => {
                call(client, &format!("SORT list BY nosort GET w* STORE out{index}"));
                texts(&call(client, &format!("LRANGE out{index} 0 -1")))
            }
        };
        assert!(seen.len() == 4 && seen.iter().all(|text| *text == seen[0]), "torn: {seen:?}");
    };
    storm(&server, &[(3, &write), (4, &sort)]);
}

#[test]
fn increments_sum_up() {
    let server = server();
    let sum = AtomicUsize::new(0);
    let add = |client: &mut Client, index: usize| {
        let bytes: Vec<u8> = (0..50)
            .flat_map(|_| {
                encode(&[b"INCRBY".to_vec(), b"n".to_vec(), (index + 1).to_string().into()])
            })
            .collect();
        client.send_raw(&bytes).unwrap();
        let mut last = i64::MIN;
        for _ in 0..50 {
            let now = number(&client.read(REPLY_WAIT).unwrap());
            assert!(now > last, "a counter went back");
            last = now;
        }
        sum.fetch_add(50 * (index + 1), Ordering::Relaxed);
    };
    storm(&server, &[(8, &add)]);
    let total = call(&mut connect(&server), "INCRBY n 0");
    assert_eq!(number(&total), sum.into_inner() as i64);
}

#[test]
fn watched_counters_sum_up() {
    let server = server();
    call(&mut connect(&server), "MSET w1 0 w2 0");
    let (won, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let add = |client: &mut Client, index: usize| {
        call(client, "WATCH w1 w2");
        let seen = texts(&call(client, "MGET w1 w2"));
        assert_eq!(seen[0], seen[1]);
        let next = seen[0].parse::<u64>().unwrap() + 1;
        let set = if index.is_multiple_of(2) {
            vec![format!("SET w1 {next}"), format!("SET w2 {next}")]
        } else {
            vec![format!("MSET w2 {next} w1 {next}")]
        };
        let lines: Vec<&str> = set.iter().map(String::as_str).collect();
        let count = if transact(client, &lines).is_some() { &won } else { &lost };
        count.fetch_add(1, Ordering::Relaxed);
    };
    storm(&server, &[(6, &add)]);
    let seen = texts(&call(&mut connect(&server), "MGET w1 w2"));
    let won = won.into_inner().to_string();
    assert_eq!(seen, [won.clone(), won], "{} lost the race", lost.into_inner());
}

/// Pushes `count` elements named after the producer and their number, in order.
fn produce(client: &mut Client, producer: usize, count: usize, keys: &[&str]) {
    for n in 0..count {
        // Alone, in bulk and inside a transaction.
        let key = keys[n % keys.len()];
        let push = format!("RPUSH {key} {producer}:{n}");
        match n % 3 {
            0 => drop(transact(client, &[&push]).unwrap()),
            _ => drop(call(client, &push)),
        }
    }
}

fn producer_and_number(element: &str) -> (usize, usize) {
    let (producer, number) = element.split_once(':').unwrap();
    (producer.parse().unwrap(), number.parse().unwrap())
}

#[test]
fn every_element_is_delivered_once_and_in_order() {
    const PRODUCERS: usize = 4;
    const EACH: usize = 150;
    let server = server();
    let done = AtomicBool::new(false);
    let left = AtomicUsize::new(PRODUCERS * EACH);
    let delivered: Vec<Vec<(usize, usize)>> = std::thread::scope(|scope| {
        scope.spawn(|| background_load(server.address(), &done));
        let consumers: Vec<_> = (0..6)
            .map(|consumer| {
                let (server, left) = (&server, &left);
                scope.spawn(move || {
                    let mut client = connect(server);
                    let mut mine = Vec::new();
                    // Different orders of the same keys, of several shards.
                    let line = [
                        "BLPOP q1 q2 q3 0.05",
                        "BLPOP q3 q1 q2 0.05",
                        "BLMPOP 0.05 3 q2 q3 q1 LEFT COUNT 2",
                    ][consumer % 3];
                    while left.load(Ordering::Relaxed) > 0 {
                        let reply = call(&mut client, line);
                        let Reply::Array(parts) = reply else { continue };
                        let elements = match &parts[1] {
                            Reply::Array(_) => texts(&parts[1]),
                            one => vec![String::from_utf8(one.text().unwrap().to_vec()).unwrap()],
                        };
                        left.fetch_sub(elements.len(), Ordering::Relaxed);
                        mine.extend(elements.iter().map(|element| producer_and_number(element)));
                    }
                    mine
                })
            })
            .collect();
        for producer in 0..PRODUCERS {
            let server = &server;
            scope.spawn(move || {
                // One queue each (of three): the order of one producer is an order of one key.
                let queue = ["q1", "q2", "q3"][producer % 3];
                produce(&mut connect(server), producer, EACH, &[queue]);
            });
        }
        let lists = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        lists
    });
    for mine in &delivered {
        let mut last: HashMap<usize, usize> = HashMap::new();
        for &(producer, number) in mine {
            let before = last.insert(producer, number);
            assert!(before.is_none_or(|before| before < number), "out of order: {mine:?}");
        }
    }
    let mut all: Vec<(usize, usize)> = delivered.into_iter().flatten().collect();
    all.sort_unstable();
    let expected: Vec<(usize, usize)> =
        (0..PRODUCERS).flat_map(|producer| (0..EACH).map(move |n| (producer, n))).collect();
    assert_eq!(all, expected);
    assert_eq!(number(&call(&mut connect(&server), "EXISTS q1 q2 q3")), 0);
}

/// A client that disconnects while it is blocked takes nothing with it, except an element whose
/// delivery was under way: so what is missing at the end was popped for a client that was there, at
/// most one for each.
#[test]
fn disconnects_while_blocked_lose_nothing() {
    const EACH: usize = 200;
    let server = server();
    // First, without a race: a client that has been gone for long gets nothing.
    let mut client = connect(&server);
    let gone = connect(&server);
    let mut gone_writer = gone.sender().unwrap();
    std::io::Write::write_all(&mut gone_writer, b"BLPOP d1 d2 0\r\n").unwrap();
    wait_for_blocked(&mut client, 1);
    drop((gone, gone_writer));
    wait_for_blocked(&mut client, 0);
    assert_eq!(number(&call(&mut client, "RPUSH d1 x")), 1);
    assert_eq!(number(&call(&mut client, "LLEN d1")), 1);
    call(&mut client, "DEL d1");

    let (done, cut) = (AtomicBool::new(false), AtomicUsize::new(0));
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let mut client = connect(&server);
                    client.send(&encode_line("BLPOP d1 d2 0")).unwrap();
                    match client.read(Duration::from_millis(2)) {
                        Ok(reply) => {
                            assert_eq!(texts(&reply).len(), 2);
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(ReadError::TimedOut) => {
                            cut.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        let mut client = connect(&server);
        for n in 0..EACH {
            call(&mut client, &format!("RPUSH d{} {n}", 1 + n % 2));
            if n % 10 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    wait_for_blocked(&mut client, 0);
    let parts = transact(&mut client, &["LLEN d1", "LLEN d2"]).unwrap();
    let left: i64 = parts.iter().map(number).sum();
    let (taken, cut) = (taken.into_inner(), cut.into_inner());
    let missing = EACH as i64 - left - taken as i64;
    assert!((0..=cut as i64).contains(&missing), "{missing} of {EACH} missing after {cut} cuts");
}

fn encode_line(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
}

fn wait_for_blocked(client: &mut Client, count: usize) {
    let line = format!("blocked_clients:{count}\r\n");
    let deadline = Instant::now() + REPLY_WAIT;
    loop {
        let info = call(client, "INFO clients");
        if String::from_utf8_lossy(info.text().unwrap()).contains(&line) {
            return;
        }
        assert!(Instant::now() < deadline, "never {line}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The pair of keys is always in one database, both or none of them.
#[test]
fn swapping_and_flushing_show_no_mix() {
    let server = server();
    let write = |client: &mut Client, index: usize| {
        call(client, &format!("SELECT {}", index % 2));
        call(client, &format!("MSET p1 {index} p2 {index} p3 {index}"));
    };
    let swap = |client: &mut Client, _: usize| drop(call(client, "SWAPDB 0 1"));
    let flush = |client: &mut Client, index: usize| {
        call(client, ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC"][index % 3]);
    };
    let read = |client: &mut Client, index: usize| {
        call(client, &format!("SELECT {}", index % 2));
        let Reply::Array(seen) = call(client, "MGET p1 p2 p3") else { panic!("not an array") };
        assert!(seen.iter().all(|value| *value == seen[0]), "a mix: {seen:?}");
        let parts = transact(client, &["EXISTS p1 p2 p3", "KEYS p*"]).unwrap();
        let count = number(&parts[0]);
        assert!(count == 0 || count == 3, "half a pair");
        assert_eq!(texts(&parts[1]).len() as i64, count);
    };
    let poppers = |client: &mut Client, _: usize| drop(call(client, "BLPOP nothing p4 0.005"));
    storm(&server, &[(3, &write), (1, &swap), (3, &flush), (3, &read), (1, &poppers)]);
}

/// A client that runs huge commands on its own keys, and clients of other keys: they all get on.
#[test]
fn slow_commands_do_not_stop_other_keys() {
    const LONG: usize = 1_000_000;
    let server = server();
    let mut client = connect(&server);
    let page: String = " element".repeat(10_000);
    for _ in 0..LONG / 10_000 {
        call(&mut client, &format!("RPUSH long{page}"));
    }
    for key in ["big1", "big2"] {
        call(&mut client, &format!("SETRANGE {key} 20000000 x"));
    }
    let slow_runs = AtomicUsize::new(0);
    let gets = AtomicUsize::new(0);
    // Served by the time that a slow command was still running: this is the promise.
    let beside = AtomicUsize::new(0);
    let running = AtomicUsize::new(0);
    let slow = |client: &mut Client, index: usize| {
        let line = ["LRANGE long 0 -1", "BITOP XOR big3 big1 big2"][index % 2];
        let (reply_bytes, end) = match index % 2 {
            0 => (b"*1000000\r\n".len() + LONG * b"$7\r\nelement\r\n".len(), "element\r\n"),
            _ => (b":20000001\r\n".len(), ":20000001\r\n"),
        };
        client.send(&encode_line(line)).unwrap();
        running.fetch_add(1, Ordering::SeqCst);
        let reply = client.read_raw(reply_bytes, REPLY_WAIT);
        running.fetch_sub(1, Ordering::SeqCst);
        assert!(reply.len() == reply_bytes && reply.ends_with(end.as_bytes()), "cut off");
        slow_runs.fetch_add(1, Ordering::Relaxed);
    };
    let quick = |client: &mut Client, index: usize| {
        let before = running.load(Ordering::SeqCst);
        call(client, &format!("INCR quick{index}"));
        gets.fetch_add(1, Ordering::Relaxed);
        if before > 0 && running.load(Ordering::SeqCst) > 0 {
            beside.fetch_add(1, Ordering::Relaxed);
        }
    };
    storm(&server, &[(2, &slow), (6, &quick)]);
    let (slow_runs, beside) = (slow_runs.into_inner(), beside.into_inner());
    assert!(slow_runs > 0);
    assert!(beside > slow_runs, "{beside} quick commands beside {slow_runs} slow ones");
}
