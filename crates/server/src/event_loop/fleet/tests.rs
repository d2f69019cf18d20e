//! Loops that open, close and give connections away under load, with Russet's own service.
//!
//! Which loop opens when depends on the machine's load, so the test says it itself; the watchdog's
//! own decisions go on beside it.

use super::*;
use crate::host::{Process, ProcessHost};
use crate::log::Log;
use crate::service::RussetService;
use russet_commands::node::config::{Config, Requester};
use russet_embedded::Engine;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

const LOOPS: usize = 4;
const CLIENTS: usize = 12;
const ROUNDS: usize = 8;
const COMMANDS_PER_PIPELINE: usize = 40;
const WAIT: Duration = Duration::from_secs(30);

type RussetFleet = Arc<Fleet<RussetService>>;

/// What `openssl` is to make: a certificate that vouches for itself.
const CERTIFICATE: &str = "[req]\ndistinguished_name=dn\n[dn]\n[v3]\n\
    basicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost\n";

/// Where the loops are reached, and how if not plainly.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
}

/// Both sides of TLS with one certificate.
fn make_tls() -> (Arc<rustls::ServerConfig>, Arc<ClientConfig>) {
    let dir = std::env::temp_dir().join(format!("russet-fleet-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("made.cnf"), CERTIFICATE).unwrap();
    let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
                -config made.cnf -extensions v3 -subj /CN=localhost -keyout key.pem -out cert.pem";
    let made = Command::new("openssl").args(args.split_whitespace()).current_dir(&dir).output();
    assert!(made.expect("there is openssl").status.success());
    let (key, certificate) = (dir.join("key.pem"), dir.join("cert.pem"));
    let config = Config::default();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (key, path) = (text(&key), text(&certificate));
    let pairs: [(&[u8], &[u8]); 3] = [
        (b"tls-cert-file", path.as_bytes()),
        (b"tls-key-file", key.as_bytes()),
        (b"tls-auth-clients", b"no"),
    ];
    config.set(&pairs, Requester::Local, &mut |_| Ok(())).unwrap();
    let server = crate::tls::server_config(&config).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let provider = server.crypto_provider().clone();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, Arc::new(client))
}

fn start(is_encrypted: bool) -> (Engine, RussetFleet, Target) {
    let host = Box::new(ProcessHost(Arc::new(Process::default())));
    let engine = Engine::with_host(Config::default(), host).unwrap();
    let node = engine.node().clone();
    node.load_files().unwrap();
    let log = Arc::new(Log::open(&node.config).unwrap());
    let fleet = Fleet::start(Arc::new(RussetService { node, log }), 1..=LOOPS).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = mio::net::TcpListener::from_std(listener);
    let (listener, tls) = match is_encrypted {
        true => {
            let (server, client) = make_tls();
            (Listener::Tls(listener, crate::event_loop::CurrentTls::new(server)), Some(client))
        }
        false => (Listener::Tcp(listener), None),
    };
    fleet.listen(vec![listener]);
    (engine, fleet, Target { address, tls })
}

trait Socket: Read + Write + Send {}

impl<T: Read + Write + Send> Socket for T {}

struct Caller(BufReader<Box<dyn Socket>>);

impl Caller {
    fn connect(target: &Target) -> Caller {
        let stream = TcpStream::connect(target.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        Caller(BufReader::new(match &target.tls {
            Some(config) => {
                let name = ServerName::try_from("localhost").unwrap();
                let session = ClientConnection::new(config.clone(), name).unwrap();
                Box::new(StreamOwned::new(session, stream))
            }
            None => Box::new(stream),
        }))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
        self.0.get_mut().flush().unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a reply in time");
        line.trim_end().to_owned()
    }
}

/// Counts up one key in pipelines that are sent in two pieces; every reply is the next number.
/// Each pipeline ends with a message. How many were published.
fn count_up(target: &Target, client: usize, is_done: &AtomicBool) -> usize {
    let mut caller = Caller::connect(target);
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
fn open_and_close(fleet: &RussetFleet, target: &Target) {
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
        let mut newcomer = Caller::connect(target);
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
fn check_that_every_reply_comes(is_encrypted: bool) {
    let (_engine, fleet, target) = start(is_encrypted);
    let target = &target;
    // Who listens stays where it is: here, the first loop.
    let mut listener = Caller::connect(target);
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
            .map(|client| scope.spawn(move || count_up(target, client, is_done)))
            .collect();
        (0..ROUNDS).for_each(|_| open_and_close(&fleet, target));
        is_done.store(true, Ordering::Relaxed);
        let published: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
        assert!(published >= CLIENTS, "each client has sent something");
        let mut last = Caller::connect(target);
        last.send(b"PUBLISH news end\r\n");
        assert_eq!(last.line(), ":1");
        assert_eq!(heard.join().unwrap(), (published, "end".to_owned()));
    });
    fleet.shut_down();
    assert!(fleet.wait(WAIT), "the loops have ended");
}

#[test]
fn every_reply_comes_while_connections_move() {
    check_that_every_reply_comes(false);
}

/// What was decrypted and not read, or encrypted and not sent, moves along.
#[test]
fn every_reply_comes_while_encrypted_connections_move() {
    check_that_every_reply_comes(true);
}
