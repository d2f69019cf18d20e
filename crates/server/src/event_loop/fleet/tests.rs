//! Loops that open, close and give connections away under load, with Russet's own service.
//!
//! Which loop opens when depends on the machine's load, so the test says it itself; the watchdog's
//! own decisions go on beside it.

use super::*;
use crate::host::{Process, ProcessHost};
use crate::service::RussetService;
use russet_commands::node::config::Config;
use russet_embedded::Engine;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

const LOOPS: usize = 4;
const CLIENTS: usize = 12;
const ROUNDS: usize = 8;
const COMMANDS_PER_PIPELINE: usize = 40;
const WAIT: Duration = Duration::from_secs(30);

type RussetFleet = Arc<Fleet<RussetService>>;

fn start() -> (Engine, RussetFleet, SocketAddr) {
    let host = Box::new(ProcessHost(Arc::new(Process::default())));
    let engine = Engine::with_host(Config::default(), host).unwrap();
    let node = engine.node().clone();
    let fleet = Fleet::start(Arc::new(RussetService { node }), 1..=LOOPS).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    fleet.listen(vec![Listener::Tcp(mio::net::TcpListener::from_std(listener))]);
    (engine, fleet, address)
}

struct Caller {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Caller {
    fn connect(address: SocketAddr) -> Caller {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let replies = BufReader::new(stream.try_clone().unwrap());
        Caller { stream, replies }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("a reply in time");
        line.trim_end().to_owned()
    }
}

/// Counts up one key in pipelines that are sent in two pieces; every reply is the next number.
/// Each pipeline ends with a message. How many were published.
fn count_up(address: SocketAddr, client: usize, is_done: &AtomicBool) -> usize {
    let mut caller = Caller::connect(address);
    let (mut count, mut published) = (0, 0);
    while !is_done.load(Ordering::Relaxed) {
        let mut bytes = format!("INCR counter:{client}\r\n").repeat(COMMANDS_PER_PIPELINE);
        bytes.push_str("PUBLISH news x\r\n");
        let cut = (count * 7) % bytes.len();
        caller.send(&bytes.as_bytes()[..cut]);
        std::thread::yield_now();
        caller.send(&bytes.as_bytes()[cut..]);
        for _ in 0..COMMANDS_PER_PIPELINE {
            count += 1;
            assert_eq!(caller.line(), format!(":{count}"), "client {client}");
        }
        assert_eq!(caller.line(), ":1", "one listens");
        published += 1;
    }
    published
}

fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "not so in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Opens loop after loop, each with half the connections of the first, then closes all but one.
fn open_and_close(fleet: &RussetFleet, address: SocketAddr) {
    let connections = |at: usize| fleet.loops[at].connections.load(Ordering::Relaxed);
    let give = |from: usize, to: usize, count: usize| {
        fleet.loops[from].inbox.post(Message::Give(Give { to, count }));
    };
    for opened in 1..LOOPS {
        fleet.open.store(opened + 1, Ordering::Relaxed);
        // A connection that is being served is not given away: asked again, it may be free.
        await_that("a loop has connections", || {
            give(0, opened, (connections(0) / 2).max(1));
            connections(opened) > 0
        });
        let mut newcomer = Caller::connect(address);
        newcomer.send(b"ECHO new\r\n");
        assert_eq!((newcomer.line(), newcomer.line()), ("$3".into(), "new".into()));
    }
    for closed in (1..LOOPS).rev() {
        fleet.open.store(closed, Ordering::Relaxed);
        await_that("a closed loop is empty", || {
            give(closed, 0, usize::MAX);
            connections(closed) == 0
        });
    }
}

/// No connection is lost, no reply and no message is lost, doubled or out of order while loops
/// open and close and connections move between them in the middle of their pipelines.
#[test]
fn every_reply_comes_while_connections_move() {
    let (_engine, fleet, address) = start();
    // Who listens stays where it is: here, the first loop.
    let mut listener = Caller::connect(address);
    listener.send(b"SUBSCRIBE news\r\n");
    (0..6).for_each(|_| drop(listener.line()));
    let is_done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let heard = scope.spawn(move || {
            let mut heard = 0;
            loop {
                let lines: Vec<String> = (0..7).map(|_| listener.line()).collect();
                assert_eq!(lines[2], "message");
                match lines[6].as_str() {
                    "x" => heard += 1,
                    last => return (heard, last.to_owned()),
                }
            }
        });
        let callers: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || count_up(address, client, is_done)))
            .collect();
        (0..ROUNDS).for_each(|_| open_and_close(&fleet, address));
        is_done.store(true, Ordering::Relaxed);
        let published: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
        assert!(published >= CLIENTS, "each client has sent something");
        Caller::connect(address).send(b"PUBLISH news end\r\n");
        assert_eq!(heard.join().unwrap(), (published, "end".to_owned()));
    });
    fleet.shut_down();
    assert!(fleet.wait(WAIT), "the loops have ended");
}
