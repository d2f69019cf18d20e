//! Clients that wait: for busy shards, for keys, behind a pause, for each other. Whatever ends a
//! wait ends all of it, and nobody else waits because of it. Over sockets, against the real binary.
//!
//! A script that runs for a while stands for any slow call. Nothing here depends on how long it
//! takes; the longer, the more likely the old defects show.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use russet_tests::client::{Client, REPLY_WAIT, ReadError, Reply, encode};
use russet_tests::server::{Kind, Server};

/// Keeps the shards of its keys busy for so many milliseconds.
const SPIN: &str = "local start = os.clock() \
                    while os.clock() - start < ARGV[1] / 1000 do end \
                    redis.call('EXISTS', KEYS[1]) return 'done'";
/// How long a test tries to come into the situation that it is about.
const SITUATION_WAIT: Duration = Duration::from_secs(120);
const SPIN_FOR_EVER: &str = "redis.call('EXISTS', KEYS[1]) while true do end";

fn server(extra: &[&str]) -> Server {
    let args = [&["--threads", "4", "--threads-min", "4"], extra].concat();
    Server::start(Kind::Russet, &args).unwrap()
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn args(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
}

fn send(client: &mut Client, line: &str) {
    client.send(&args(line)).unwrap();
}

/// The reply as text, as redis-cli would show it.
fn call(client: &mut Client, line: &str) -> String {
    send(client, line);
    read(client)
}

fn read(client: &mut Client) -> String {
    shown(&client.read(REPLY_WAIT).unwrap())
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Int(number) => number.to_string(),
        Reply::Null | Reply::NullBulk | Reply::NullArray => "nil".to_owned(),
        Reply::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => String::from_utf8_lossy(other.text().unwrap_or_default()).into_owned(),
    }
}

fn spin(client: &mut Client, key: &str, ms: u32) {
    // Read-only: CLIENT PAUSE WRITE may come before it.
    let script = ["EVAL_RO", SPIN, "1", key, &ms.to_string()];
    client.send(&script.map(|arg| arg.as_bytes().to_vec())).unwrap();
}

/// Waits until a call on the key has to wait, since the script that was sent holds its shard. The
/// call's reply is still to be read.
fn await_busy(probe: &mut Client, key: &str) {
    await_that("a script holds the key", || {
        send(probe, &format!("EXISTS {key}"));
        matches!(probe.read(Duration::from_millis(20)), Err(ReadError::TimedOut))
    });
}

/// Sends commands, and waits until the server has come to the first of them. Replies are sent when
/// a client's turn is over, so by the answer to ECHO the first either was run or waits.
fn send_and_begin(client: &mut Client, lines: &[&str]) {
    let all = ["ECHO begun"].iter().chain(lines).map(|line| encode(&args(line)));
    client.send_raw(&all.collect::<Vec<_>>().concat()).unwrap();
    assert_eq!(read(client), "begun");
}

/// Whether a reply that is yet to be read has not come.
fn is_unanswered(client: &mut Client) -> bool {
    !client.is_answered().unwrap()
}

/// Tries until the situation that a test is about was met so many times: `attempt` says whether it
/// was. On a busy machine some attempts come too late.
fn await_situation(times: usize, mut attempt: impl FnMut() -> bool) {
    let deadline = Instant::now() + SITUATION_WAIT;
    let mut met = 0;
    while met < times {
        assert!(Instant::now() < deadline, "met {met} times only");
        met += usize::from(attempt());
    }
}

/// Waits for a condition without a signal.
fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + REPLY_WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "not so in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn info(client: &mut Client, field: &str) -> String {
    let report = call(client, "INFO");
    let line = report.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in INFO")).to_owned()
}

fn await_blocked(client: &mut Client, count: usize) {
    await_that("clients are blocked", || info(client, "blocked_clients") == count.to_string());
}

/// A retried BLMOVE queued on the busy shard of its destination and timed out. Its place in the
/// lock's queue stayed, and the lock was handed to a client that never came: the next GETs of the
/// key, DBSIZE and KEYS hung for ever.
#[test]
fn a_blocked_move_that_times_out_holds_nothing() {
    let server = server(&[]);
    let [a, b, c, d] = &mut [(); 4].map(|()| connect(&server));
    await_situation(3, || {
        send(a, "BLMOVE src dst LEFT RIGHT 0.2");
        await_blocked(c, 1);
        spin(b, "dst", 700);
        await_busy(d, "dst");
        assert_eq!(call(c, "RPUSH src x"), "1");
        // It was fed in time, and could not be served: it times out while the script still runs.
        let was_fed = is_unanswered(a);
        let was_busy = read(a) == "nil" && is_unanswered(b);
        assert_eq!(read(b), "done");
        read(d);
        for _ in 0..200 {
            call(d, "GET dst");
        }
        call(d, "DBSIZE");
        assert_eq!(call(d, "DEL src dst"), "1");
        was_fed && was_busy
    });
}

/// A client that was blocked on two keys, one of which a slow script held, was answered BUSY when
/// the other was fed; when the script was killed the element was popped into nothing.
#[test]
fn what_is_stored_over_another_type_feeds_those_who_wait_for_it() {
    let server = server(&[]);
    let (mut a, mut b) = (connect(&server), connect(&server));
    call(&mut a, "ZADD sorted 1 m");
    call(&mut a, "RPUSH listed 1");
    let cases = [
        ("BZPOPMIN k 0", "LPUSH k x", "ZUNIONSTORE k 1 sorted", "k m 1"),
        ("BZPOPMIN k 0", "SET k x", "ZRANGESTORE k sorted 0 -1", "k m 1"),
        ("BLPOP k 0", "ZADD k 1 x", "SORT listed STORE k", "k 1"),
    ];
    for (waits, other, stores, fed) in cases {
        send(&mut b, waits);
        await_blocked(&mut a, 1);
        call(&mut a, other);
        assert_eq!(call(&mut a, stores), "1");
        assert_eq!(read(&mut b), fed, "{stores}");
    }
}

#[test]
fn a_blocked_pop_waits_on_through_a_slow_script() {
    let server = server(&["--busy-reply-threshold", "50"]);
    let [a, b, c] = &mut [(); 3].map(|()| connect(&server));
    send(a, "BLPOP k1 k2 0");
    await_blocked(c, 1);
    b.send(&["EVAL", SPIN_FOR_EVER, "1", "k1"].map(|arg| arg.as_bytes().to_vec())).unwrap();
    await_that("k1 is busy", || call(c, "EXISTS k1").starts_with("BUSY"));
    assert_eq!(call(c, "RPUSH k2 job"), "1");
    assert!(matches!(a.read(Duration::from_millis(200)), Err(ReadError::TimedOut)));
    assert_eq!(call(c, "SCRIPT KILL"), "OK");
    assert_eq!(read(a), "k2 job");
    assert_eq!(call(c, "LLEN k2"), "0");
    assert!(read(b).contains("SCRIPT KILL"));
}

/// A writer that had queued for a busy shard kept its place through CLIENT PAUSE WRITE: it was
/// granted the shard, did not use it, and readers waited for the end of the pause.
#[test]
fn a_paused_writer_keeps_no_reader_waiting() {
    let server = server(&[]);
    let [a, b, c, d] = &mut [(); 4].map(|()| connect(&server));
    await_situation(2, || {
        spin(b, "k", 400);
        await_busy(d, "k");
        send_and_begin(a, &["SET k v"]);
        assert_eq!(call(c, "CLIENT PAUSE 1000000 WRITE"), "OK");
        // The script holds the key still, so the writer was in its queue when the pause began.
        let was_queued = is_unanswered(b);
        read(b);
        read(d);
        for _ in 0..200 {
            call(c, "GET k");
        }
        let was_paused = is_unanswered(a);
        assert_eq!(call(c, "CLIENT UNPAUSE"), "OK");
        assert_eq!(read(a), "OK");
        was_queued && was_paused
    });
}

/// A client that was held back while UNPAUSE went through the list of those to be notified was
/// put on a list that nobody read any more.
#[test]
fn nobody_stays_paused() {
    let server = server(&[]);
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let mut client = connect(&server);
            let pipeline = encode(&args(&format!("SET k{n} v"))).repeat(16);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    client.send_raw(&pipeline).unwrap();
                    (0..16).for_each(|_| assert_eq!(read(&mut client), "OK"));
                }
            });
        }
        let mut client = connect(&server);
        let pair = ["CLIENT PAUSE 1000000 WRITE", "CLIENT UNPAUSE"];
        let pairs = pair.map(|line| encode(&args(line))).concat().repeat(10);
        for _ in 0..100 {
            client.send_raw(&pairs).unwrap();
            (0..20).for_each(|_| assert_eq!(read(&mut client), "OK"));
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A call on two keys, each used by three clients that run scripts of some milliseconds, found one
/// of them busy whenever the other was free, for seconds. It waits for a few of them now, not for
/// hundreds.
#[test]
fn a_call_on_several_busy_keys_has_its_turn() {
    let server = server(&[]);
    let (done, runs) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for n in 0..6 {
            let mut client = connect(&server);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    spin(&mut client, ["a", "b"][n % 2], 10);
                    client.read(REPLY_WAIT).unwrap();
                    runs.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = connect(&server);
        await_that("the scripts run", || runs.load(Ordering::Relaxed) > 6);
        for line in ["MGET a b", "DBSIZE", "MGET b a", "KEYS *", "MGET a b"] {
            let before = runs.load(Ordering::Relaxed);
            call(&mut client, line);
            let meanwhile = runs.load(Ordering::Relaxed) - before;
            assert!(meanwhile < 600, "{line} waited for {meanwhile} scripts");
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Commands that were read, and waited for a shard, were lost when their client closed.
#[test]
fn what_was_sent_before_the_end_is_carried_out() {
    let server = server(&[]);
    let [b, c, d] = &mut [(); 3].map(|()| connect(&server));
    for close in [Shutdown::Write, Shutdown::Both] {
        await_situation(1, || {
            assert_eq!(call(c, "MSET k1 old k2 old"), "OK");
            let mut a = connect(&server);
            spin(b, "k1", 300);
            await_busy(d, "k1");
            send_and_begin(&mut a, &["SET k1 new", "SET k2 new"]);
            a.sender().unwrap().shutdown(close).unwrap();
            // Read before the end, and not carried out yet.
            let was_waiting = is_unanswered(b);
            read(b);
            read(d);
            await_that("both have run", || call(c, "MGET k1 k2") == "new new");
            was_waiting
        });
    }
}

/// A reply that met a closed socket ended the connection, and with it the commands behind it, which
/// were read and waited for a shard.
#[test]
fn a_broken_socket_does_not_undo_what_was_sent() {
    let server = server(&["--threads", "4", "--threads-min", "4"]);
    let [b, c, d] = &mut [(); 3].map(|()| connect(&server));
    for _ in 0..20 {
        await_situation(1, || {
            assert_eq!(call(c, "MSET k1 old k2 old"), "OK");
            let mut a = connect(&server);
            spin(b, "k1", 100);
            await_busy(d, "k1");
            send_and_begin(&mut a, &["PING", "SET k1 new", "SET k2 new"]);
            // The reply to PING, which nobody reads, makes the system answer with a reset.
            drop(a);
            let was_waiting = is_unanswered(b);
            read(b);
            read(d);
            await_that("both have run", || call(c, "MGET k1 k2") == "new new");
            was_waiting
        });
    }
}

/// A client that closed its sending side got only as much as its socket took at once.
#[test]
fn all_replies_are_sent_after_the_other_side_has_closed() {
    const BYTES: usize = 1 << 20;
    let server = server(&[]);
    let mut a = connect(&server);
    let value = vec![b'x'; BYTES];
    assert_eq!(a.call(&[&b"SET"[..], b"k", &value]).unwrap(), Reply::Status(b"OK".to_vec()));
    (0..40).for_each(|_| send(&mut a, "GET k"));
    a.sender().unwrap().shutdown(Shutdown::Write).unwrap();
    for n in 0..40 {
        let reply = a.read(REPLY_WAIT).unwrap_or_else(|why| panic!("reply {n}: {why}"));
        assert_eq!(reply.text().map(<[u8]>::len), Some(BYTES));
    }
    assert!(a.is_closed(REPLY_WAIT));
}

/// CLIENT REPLY meant one thing for commands that ran at once and another for those that waited:
/// SKIP swallowed the reply behind a call that blocked, OFF let the timeout's through.
#[test]
fn reply_modes_hold_for_calls_that_wait() {
    let server = server(&[]);
    let [a, c] = &mut [(); 2].map(|()| connect(&server));
    send(a, "CLIENT REPLY SKIP");
    send(a, "BLPOP k 0");
    await_blocked(c, 1);
    assert_eq!(call(c, "RPUSH k x"), "1");
    assert_eq!(call(a, "ECHO behind"), "behind");

    send(a, "CLIENT REPLY SKIP");
    send(a, "BLPOP k 0.01");
    assert_eq!(call(a, "ECHO timeout"), "timeout");

    send(a, "CLIENT REPLY OFF");
    send(a, "BLPOP nothing 0.01");
    send(a, "BLMOVE k k2 LEFT LEFT 0");
    // It waits for the one key or for the other.
    await_that("the move is done", || {
        call(c, "RPUSH k x");
        call(c, "EXISTS k2") == "1"
    });
    send(a, "ECHO unheard");
    assert_eq!(call(a, "CLIENT REPLY ON"), "OK");
}

/// A command behind QUIT was run if it came with a later read.
#[test]
fn nothing_runs_behind_quit() {
    let server = server(&[]);
    let [a, c] = &mut [(); 2].map(|()| connect(&server));
    let mut bytes = encode(&args("QUIT"));
    let filler = encode(&[b"ECHO".to_vec(), vec![b'x'; 1000]]);
    (0..200).for_each(|_| bytes.extend_from_slice(&filler));
    bytes.extend(encode(&args("SET k behind")));
    // The server may close before all of it is sent.
    let _ = a.send_raw(&bytes);
    assert_eq!(read(a), "OK");
    assert!(matches!(a.read(REPLY_WAIT), Err(ReadError::Closed | ReadError::Io(_))));
    assert_eq!(call(c, "GET k"), "nil");
}

/// UNPAUSE was answered before those that it let go had gone on, so that CLIENT UNBLOCK did not
/// find a call blocked that had been sent long before.
#[test]
fn those_that_were_paused_have_gone_on_when_unpause_is_answered() {
    let server = server(&[]);
    let [a, c] = &mut [(); 2].map(|()| connect(&server));
    let id = call(a, "CLIENT ID");
    for round in 0..100 {
        assert_eq!(call(c, "CLIENT PAUSE 1000000"), "OK");
        send(a, "BLPOP k 0");
        // A client that is held back is shown as blocked.
        await_that("it is held back", || call(c, "CLIENT LIST").contains("flags=b"));
        assert_eq!(call(c, "CLIENT UNPAUSE"), "OK");
        assert_eq!(call(c, &format!("CLIENT UNBLOCK {id}")), "1", "round {round}");
        assert_eq!(read(a), "nil");
    }
}

/// CLIENT UNBLOCK and CLIENT KILL were answered before INFO, CLIENT LIST and PUBSUB showed what
/// they had done.
#[test]
fn the_reply_comes_when_it_is_so() {
    let server = server(&[]);
    let [a, c] = &mut [(); 2].map(|()| connect(&server));
    let id = call(a, "CLIENT ID");
    for round in 0..200 {
        send(a, "BLPOP k 0");
        await_blocked(c, 1);
        if round % 2 == 0 {
            assert_eq!(call(c, &format!("CLIENT UNBLOCK {id}")), "1");
            assert_eq!(info(c, "blocked_clients"), "0", "round {round}");
            assert!(!call(c, "CLIENT LIST").contains("flags=b"), "round {round}");
        } else {
            assert_eq!(call(c, "RPUSH k x"), "1");
            assert_eq!(info(c, "blocked_clients"), "0", "round {round}");
        }
        read(a);
    }
    for round in 0..200 {
        let mut killed = connect(&server);
        let id = call(&mut killed, "CLIENT ID");
        assert_eq!(call(&mut killed, "SUBSCRIBE channel"), "subscribe channel 1");
        assert_eq!(call(c, &format!("CLIENT KILL ID {id}")), "1");
        assert_eq!(call(c, "PUBSUB NUMSUB channel"), "channel 0", "round {round}");
        assert!(!call(c, "CLIENT LIST").contains(&format!("id={id} ")), "round {round}");
        assert_eq!(info(c, "connected_clients"), "2", "round {round}");
    }
}

/// Two clients that kill each other, and one that kills many, are answered or gone; nobody waits
/// for ever.
#[test]
fn clients_that_kill_each_other_end() {
    let server = server(&[]);
    for _ in 0..50 {
        let [a, b] = &mut [(); 2].map(|()| connect(&server));
        let ids = [call(a, "CLIENT ID"), call(b, "CLIENT ID")];
        send(a, &format!("CLIENT KILL ID {}", ids[1]));
        send(b, &format!("CLIENT KILL ID {}", ids[0]));
        for client in [a, b] {
            match client.read(REPLY_WAIT) {
                Ok(_) | Err(ReadError::Closed | ReadError::Io(_)) => {}
                Err(why) => panic!("neither answered nor closed: {why}"),
            }
        }
    }
    let mut others: Vec<Client> = (0..50).map(|_| connect(&server)).collect();
    others.iter_mut().for_each(|other| drop(call(other, "PING")));
    let mut c = connect(&server);
    assert_eq!(call(&mut c, "CLIENT KILL TYPE normal"), "50");
    assert_eq!(info(&mut c, "connected_clients"), "1");
}

/// A protocol error closed the connection at once, and replies that the socket had not taken yet
/// were lost with it.
#[test]
fn replies_before_a_protocol_error_are_sent() {
    const BYTES: usize = 30 << 20;
    let server = server(&[]);
    let mut a = connect(&server);
    let value = vec![b'x'; BYTES];
    assert_eq!(a.call(&[&b"SET"[..], b"k", &value]).unwrap(), Reply::Status(b"OK".to_vec()));
    let bytes = [encode(&args("GET k")), b"*1\r\n$x\r\n".to_vec(), encode(&args("SET k v"))];
    a.send_raw(&bytes.concat()).unwrap();
    assert_eq!(a.read(REPLY_WAIT).unwrap().text().map(<[u8]>::len), Some(BYTES));
    assert!(read(&mut a).starts_with("ERR Protocol error"));
    assert!(matches!(a.read(REPLY_WAIT), Err(ReadError::Closed | ReadError::Io(_))));
    assert_eq!(call(&mut connect(&server), "STRLEN k"), BYTES.to_string());
}

/// A client that waited behind a pause for longer than `timeout` was closed as an idle one.
#[test]
fn who_waits_is_not_idle() {
    let server = server(&["--timeout", "1"]);
    let [a, c] = &mut [(); 2].map(|()| connect(&server));
    assert_eq!(call(c, "CLIENT PAUSE 3000 WRITE"), "OK");
    assert_eq!(call(a, "SET k v"), "OK");
}

/// Each write that fed a blocked call whose other keys were busy had it tried again, whole: the
/// tries piled up and kept the clients of the same event loop waiting. One is enough.
#[test]
fn a_blocked_call_that_is_fed_often_is_tried_again_once() {
    let server = server(&[]);
    let [a, b, c] = &mut [(); 3].map(|()| connect(&server));
    let keys: Vec<String> = (0..20_000).map(|n| format!("k{n}")).collect();
    send(a, &format!("BLPOP {} fed 0", keys.join(" ")));
    await_blocked(c, 1);
    spin(b, "k7", 1000);
    let pair = [encode(&args("RPUSH fed x")), encode(&args("DEL fed"))].concat();
    c.send_raw(&pair.repeat(500)).unwrap();
    (0..1000).for_each(|_| drop(c.read(REPLY_WAIT).unwrap()));
    assert_eq!(read(b), "done");
    call(c, "RPUSH fed last");
    assert!(read(a).starts_with("fed "));
}

/// SLOWLOG tells how long a call ran. Of one that stood behind a slow script it said nothing, so
/// that whoever looked for slow replies did not find them; and then not what they had waited for.
#[test]
fn time_spent_waiting_is_remembered_apart() {
    let extra =
        ["--commandlog-shard-wait-longer-than", "5000", "--slowlog-log-slower-than", "5000"];
    let server = server(&extra);
    let [mut slow, mut probe, mut reader] = [(); 3].map(|()| connect(&server));
    assert_eq!(call(&mut reader, "COMMANDLOG GET -1 shard-wait"), "");
    await_situation(1, || {
        spin(&mut slow, "k", 200);
        await_busy(&mut probe, "k");
        assert_eq!((read(&mut probe), read(&mut slow)), ("0".to_owned(), "done".to_owned()));
        call(&mut reader, "COMMANDLOG GET -1 shard-wait").contains("EXISTS k")
    });
    assert!(call(&mut reader, "COMMANDLOG GET 1 shard-wait").ends_with(" eval_ro"));
    assert!(!call(&mut reader, "COMMANDLOG GET -1 shard-wait").contains("EVAL_RO"));
    assert!(call(&mut reader, "SLOWLOG GET -1").contains("EVAL_RO"));
    assert_eq!(call(&mut reader, "COMMANDLOG RESET shard-wait"), "OK");
    assert_eq!(call(&mut reader, "COMMANDLOG LEN shard-wait"), "0");
    call(&mut reader, "CONFIG SET latency-monitor-threshold 1");
    spin(&mut slow, "k", 20);
    assert_eq!(read(&mut slow), "done");
    assert!(call(&mut reader, "LATENCY DOCTOR").contains("had to wait for keys"));
}

/// What was wrong behind a long argument was forgotten with the argument, and what followed was
/// taken for its bytes.
#[test]
fn an_error_behind_a_long_argument_of_a_blocked_client_ends_it() {
    let server = server(&[]);
    let [a, c] = &mut [(); 2].map(|()| connect(&server));
    send(a, "BLPOP q 0");
    await_blocked(c, 1);
    a.send_raw(b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$70000\r\n").unwrap();
    a.send_raw(&[b'x'; 70_000]).unwrap();
    // So that both come while it waits, one after the other.
    std::thread::sleep(Duration::from_millis(50));
    a.send_raw(b"\r\n!bad\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(call(c, "RPUSH q v"), "1");
    assert_eq!(read(a), "q v");
    let refused = read(a);
    assert!(refused.contains("Protocol error: expected '$', got '!'"), "{refused}");
    assert!(a.is_closed(REPLY_WAIT));
    assert_eq!(call(c, "EXISTS k"), "0");
}
