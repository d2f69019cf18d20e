//! Calls that wait: on threads and as futures, served, timed out, dropped, and ended.

use russet_embedded::{Client, Engine, Error, Options, Value, cmd};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

fn open() -> (Engine, Client) {
    let engine = Engine::open(Options::new()).unwrap();
    let client = engine.client();
    (engine, client)
}

/// Wakes a thread, and counts how often.
struct Unpark {
    thread: Thread,
    count: AtomicUsize,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn unpark() -> Arc<Unpark> {
    Arc::new(Unpark { thread: thread::current(), count: AtomicUsize::new(0) })
}

/// The smallest executor that there is.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(unpark());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits until so many clients are blocked.
fn await_blocked(client: &mut Client, count: usize) {
    loop {
        let info: String = client.query(["INFO", "clients"]).unwrap();
        if info.contains(&format!("blocked_clients:{count}\r\n")) {
            return;
        }
        thread::yield_now();
    }
}

#[test]
fn a_blocked_pop_is_served_by_another_thread() {
    let (engine, mut client) = open();
    let waiting = thread::spawn({
        let mut client = engine.client();
        move || client.query::<(String, String)>(["BLPOP", "a", "b", "0"])
    });
    await_blocked(&mut client, 1);
    client.call(["RPUSH", "b", "x"]).unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), ("b".to_owned(), "x".to_owned()));
    await_blocked(&mut client, 0);
}

#[test]
fn a_blocked_call_times_out() {
    let (_engine, mut client) = open();
    let started = Instant::now();
    assert_eq!(client.call(["BLPOP", "k", "0.05"]).unwrap(), Value::Null);
    // Deadlines are whole milliseconds, counted from one that has begun.
    assert!(started.elapsed() >= Duration::from_millis(49));
    assert_eq!(block_on(client.call_async(["BLPOP", "k", "0.05"])).unwrap(), Value::Null);
    let missing: Option<(String, String)> = client.query(["BLPOP", "k", "0.01"]).unwrap();
    assert_eq!(missing, None);
}

#[test]
fn futures_need_no_runtime() {
    let (engine, mut client) = open();
    block_on(async {
        client.call_async(["SET", "k", "1"]).await.unwrap();
        assert_eq!(client.query_async::<i64>(["INCR", "k"]).await.unwrap(), 2);
        assert_eq!(cmd("INCR").arg("k").query_async::<i64>(&mut client).await.unwrap(), 3);
        let both: (i64, i64) = client
            .pipeline()
            .cmd("INCR")
            .arg("k")
            .cmd("INCR")
            .arg("k")
            .query_async()
            .await
            .unwrap();
        assert_eq!(both, (4, 5));
        let replies = client.pipeline().atomic().cmd("INCR").arg("k").run_async().await.unwrap();
        assert_eq!(replies, [Value::Integer(6)]);
        let script = russet_embedded::Script::new("return 7");
        assert_eq!(script.call().run_async(&mut client).await.unwrap(), Value::Integer(7));
        client.call_async(["NOSUCH"]).await.unwrap_err();
    });
    let pusher = thread::spawn({
        let mut client = engine.client();
        move || {
            await_blocked(&mut client, 1);
            client.call(["RPUSH", "jobs", "x"]).unwrap();
        }
    });
    let served: (String, String) = block_on(client.query_async(["BLPOP", "jobs", "0"])).unwrap();
    assert_eq!(served.1, "x");
    pusher.join().unwrap();
}

/// A pipeline goes on behind a command that had to wait.
#[test]
fn a_pipeline_waits_in_the_middle() {
    let (engine, mut client) = open();
    let pusher = thread::spawn({
        let mut client = engine.client();
        move || {
            await_blocked(&mut client, 1);
            client.call(["RPUSH", "jobs", "x"]).unwrap();
        }
    });
    let commands = client.pipeline().cmd("SET").arg("a").arg(1).cmd("BLPOP").arg("jobs").arg(0);
    let replies = commands.cmd("INCR").arg("a").cmd("INCR").arg("a").run().unwrap();
    let served = Value::Array(vec![Value::bulk("jobs"), Value::bulk("x")]);
    let after = [Value::Integer(2), Value::Integer(3)];
    assert_eq!(replies, [&[Value::status("OK"), served][..], &after].concat());
    pusher.join().unwrap();
}

/// A future that is dropped takes nothing: the element stays for the next, and the client goes on.
#[test]
fn a_dropped_future_ends_its_wait() {
    let (engine, mut client) = open();
    let mut other = engine.client();
    let mut future = client.call_async(["BLPOP", "jobs", "100"]);
    assert!(poll_once(&mut future).is_pending());
    await_blocked(&mut other, 1);
    drop(future);
    await_blocked(&mut other, 0);
    other.call(["RPUSH", "jobs", "x"]).unwrap();
    assert_eq!(other.query::<i64>(["LLEN", "jobs"]).unwrap(), 1);
    assert_eq!(client.query::<String>(["LPOP", "jobs"]).unwrap(), "x");

    // One that was served before it was dropped has the element, as a broken connection would.
    let mut future = client.call_async(["BLPOP", "jobs", "0"]);
    assert!(poll_once(&mut future).is_pending());
    other.call(["RPUSH", "jobs", "y"]).unwrap();
    drop(future);
    assert_eq!(other.query::<i64>(["LLEN", "jobs"]).unwrap(), 0);
    assert_eq!(client.query::<String>(["PING"]).unwrap(), "PONG", "no reply of the call before");

    // One that is lost without being dropped ends with the next call.
    let mut future = client.call_async(["BLPOP", "jobs", "0"]);
    assert!(poll_once(&mut future).is_pending());
    std::mem::forget(future);
    assert_eq!(client.query::<String>(["PING"]).unwrap(), "PONG");
    await_blocked(&mut other, 0);

    // One that was never polled has run nothing.
    drop(client.call_async(["SET", "unpolled", "1"]));
    assert_eq!(client.query::<i64>(["EXISTS", "unpolled"]).unwrap(), 0);
}

/// A transaction whose future is dropped before EXEC could run must not stay open.
#[test]
fn a_dropped_transaction_is_discarded() {
    let (engine, mut client) = open();
    let mut other = engine.client();
    other.call(["CLIENT", "PAUSE", "100000", "WRITE"]).unwrap();
    let mut future = client.pipeline().atomic().cmd("SET").arg("k").arg(1).run_async();
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    let info: String = client.query(["CLIENT", "INFO"]).unwrap();
    assert!(info.contains(" multi=-1 "), "{info}");
    other.call(["CLIENT", "UNPAUSE"]).unwrap();
    assert_eq!(client.query::<i64>(["EXISTS", "k"]).unwrap(), 0);
}

#[test]
fn a_pause_holds_a_call_until_it_is_over() {
    let (engine, mut client) = open();
    let paused = Instant::now();
    client.call(["CLIENT", "PAUSE", "200", "WRITE"]).unwrap();
    let writer = thread::spawn({
        let mut client = engine.client();
        move || client.call(["SET", "k", "v"]).map(|_| Instant::now())
    });
    assert!(writer.join().unwrap().unwrap() - paused >= Duration::from_millis(200));
    client.call(["CLIENT", "PAUSE", "100000", "WRITE"]).unwrap();
    let mut other = engine.client();
    let mut future = other.call_async(["SET", "k", "w"]);
    assert!(poll_once(&mut future).is_pending());
    client.call(["CLIENT", "UNPAUSE"]).unwrap();
    assert_eq!(block_on(future).unwrap(), Value::status("OK"));
}

/// Scripts that hold all shards make everyone else wait for shards; nobody is forgotten, on a
/// thread or as a future.
#[test]
fn busy_shards_are_waited_for() {
    const TURNS: usize = 50;
    let (engine, mut client) = open();
    let script = "for i = 1, 20000 do end return redis.call('INCR', 'wide' .. ARGV[1])";
    thread::scope(|scope| {
        for thread in 0..2 {
            let mut client = engine.client();
            scope.spawn(move || {
                for _ in 0..TURNS {
                    cmd("EVAL").arg(script).arg(0).arg(thread).run(&mut client).unwrap();
                }
            });
        }
        for thread in 0..4 {
            let mut client = engine.client();
            scope.spawn(move || {
                for _ in 0..TURNS * 4 {
                    let incr = cmd("INCR").arg("narrow");
                    match thread % 2 {
                        0 => incr.run(&mut client).unwrap(),
                        _ => block_on(incr.run_async(&mut client)).unwrap(),
                    };
                }
            });
        }
    });
    assert_eq!(client.query::<usize>(["GET", "narrow"]).unwrap(), TURNS * 16);
    assert_eq!(client.query::<usize>(["GET", "wide1"]).unwrap(), TURNS);
}

#[test]
fn unblock_and_kill_reach_a_client_that_waits() {
    let (engine, mut client) = open();
    let waiting = |mut client: Client| thread::spawn(move || client.call(["BLPOP", "k", "0"]));
    let (one, other) = (engine.client(), engine.client());
    let (first, second) = (one.id(), other.id());
    let (one, other) = (waiting(one), waiting(other));
    await_blocked(&mut client, 2);
    cmd("CLIENT").arg("UNBLOCK").arg(first).arg("ERROR").run(&mut client).unwrap();
    assert_eq!(one.join().unwrap().unwrap_err().code(), Some("UNBLOCKED"));
    let killed: i64 = cmd("CLIENT").arg("KILL").arg("ID").arg(second).query(&mut client).unwrap();
    assert_eq!(killed, 1);
    assert_eq!(other.join().unwrap(), Err(Error::Disconnected));
}

/// CLIENT KILL of a client that nobody uses waited in vain for it to read its letter.
#[test]
fn an_idle_client_can_be_killed() {
    let (engine, mut client) = open();
    let mut idle = engine.client();
    let mut kill = cmd("CLIENT").arg("KILL").arg("ID").arg(idle.id()).run_async(&mut client);
    assert!(poll_once(&mut kill).is_ready());
    drop(kill);
    assert_eq!(idle.call(["PING"]), Err(Error::Disconnected));
    assert_eq!(idle.call(["PING"]), Err(Error::Disconnected));
    assert_eq!(client.call(["QUIT"]).unwrap(), Value::status("OK"));
    assert_eq!(client.call(["PING"]), Err(Error::Disconnected));
}

/// Futures that time out are woken by the engine, each about when its time is over, and one that
/// has ended leaves no timer.
#[test]
fn timers_wake_futures() {
    let (engine, mut client) = open();
    let waker = unpark();
    let mut clients: Vec<Client> = (0..20).map(|_| engine.client()).collect();
    let mut futures: Vec<_> = clients
        .iter_mut()
        .enumerate()
        .map(|(at, client)| {
            let seconds = 0.02 * (20 - at) as f64;
            cmd("BLPOP").arg("k").arg(seconds).run_async(client)
        })
        .collect();
    let mut left = futures.len();
    let own = Waker::from(waker.clone());
    while left > 0 {
        left = 0;
        futures.retain_mut(|future| match Pin::new(future).poll(&mut Context::from_waker(&own)) {
            Poll::Ready(reply) => {
                assert_eq!(reply.unwrap(), Value::Null);
                false
            }
            Poll::Pending => true,
        });
        left += futures.len();
        if left > 0 {
            thread::park();
        }
    }
    assert!(waker.count.load(Ordering::SeqCst) >= 1);
    await_blocked(&mut client, 0);
}

#[test]
fn the_end_of_the_engine_ends_every_wait() {
    let (engine, mut client) = open();
    let waiting: Vec<_> = (0..3)
        .map(|at| {
            let mut client = engine.client();
            thread::spawn(move || match at {
                0 => client.call(["BLPOP", "k", "0"]),
                1 => block_on(client.call_async(["BLPOP", "k", "100"])),
                _ => client.call(["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]),
            })
        })
        .collect();
    let mut subscription = client.subscribe(["ch"]).unwrap();
    await_blocked(&mut client, 3);
    let second = engine.clone();
    drop(engine);
    client.call(["PING"]).unwrap();
    drop(second);
    for thread in waiting {
        assert_eq!(thread.join().unwrap(), Err(Error::Closed));
    }
    assert_eq!(client.call(["PING"]), Err(Error::Closed));
    assert_eq!(subscription.next(), None);
    assert_eq!(subscription.try_next(), Err(Error::Closed));
}

/// SHUTDOWN ends the engine, and not the process.
#[test]
fn shutdown_closes_the_engine() {
    let (engine, mut client) = open();
    let mut other = engine.client();
    assert_eq!(client.call(["SHUTDOWN", "NOSAVE"]), Err(Error::Closed));
    assert!(engine.is_closed());
    assert_eq!(other.call(["PING"]), Err(Error::Closed));
    assert_eq!(engine.client().call(["PING"]), Err(Error::Closed));
}

/// Keys expire though nobody asks for them.
#[test]
fn housekeeping_expires_keys() {
    let (_engine, mut client) = open();
    client.call(["SET", "k", "v", "PX", "1"]).unwrap();
    while client.query::<i64>(["DBSIZE"]).unwrap() > 0 {
        thread::yield_now();
    }
}

/// A transaction could only block its thread. As a future it begins again as well when someone came
/// in between, and watches no longer once it is dropped.
#[test]
fn a_transaction_as_a_future_begins_again() {
    let (engine, mut client) = open();
    let (mut other, mut tries) = (engine.client(), 0);
    let outcome = block_on(client.transaction_async(["k"], async |transaction| {
        let seen: Option<i64> = transaction.query_async(["GET", "k"]).await?;
        tries += 1;
        if tries == 1 {
            other.call(["SET", "k", "5"])?;
        }
        transaction.queue(cmd("INCR").arg("k"));
        Ok(seen)
    }));
    assert_eq!(outcome, Ok((Some(5), vec![Value::Integer(6)])));
    assert_eq!(tries, 2);
    let unready = client.transaction_async(["k"], async |transaction| {
        transaction.call_async(["BLPOP", "never", "0"]).await
    });
    let mut unready = Box::pin(unready);
    assert!(unready.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(unready);
    let info: String = client.query(["CLIENT", "INFO"]).unwrap();
    assert!(info.contains(" watch=0 "), "{info}");
}
