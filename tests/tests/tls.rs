//! TLS from outside: what clients see, what certificates mean, and what hostile ones can't do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use russet_base::Random;
use russet_tests::client::{Client, REPLY_WAIT, Reply};
use russet_tests::server::{Server, skip};
use russet_tests::tls::{self, Certificates, TlsStream, Wire};
use rustls::ClientConfig;

/// Longer than a handshake may take, on a busy machine.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(40);

fn info(client: &mut Client, section: &str) -> String {
    let reply = client.call(&["INFO", section]).unwrap();
    String::from_utf8(reply.text().unwrap().to_vec()).unwrap()
}

fn figure(client: &mut Client, section: &str, name: &str) -> u64 {
    let text = info(client, section);
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}: {text}"))
}

fn await_figure(client: &mut Client, (section, name): (&str, &str), expected: u64) {
    let deadline = Instant::now() + REPLY_WAIT;
    while figure(client, section, name) != expected {
        assert!(Instant::now() < deadline, "{name} does not become {expected}");
        std::thread::yield_now();
    }
}

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn connect_raw(server: &Server) -> TlsStream {
    let certificates = tls::shared().unwrap();
    let stream = tls::connect(server.address(), &certificates.client_config(None)).unwrap();
    stream.sock.set_read_timeout(Some(REPLY_WAIT)).unwrap();
    stream
}

/// Without a plain port: values of all sizes come and go, and INFO knows the listener.
#[test]
fn a_server_with_a_tls_port_only_serves() {
    let server = Server::start_tls(&[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    for len in [0, 1, 100, 4096, 16_384, 16_385, 70_000, 3_000_000] {
        let value: Vec<u8> = (0..len).map(|at: usize| (at * 31 % 251) as u8).collect();
        assert_eq!(client.call(&[b"SET", b"k".as_slice(), &value]).unwrap(), ok());
        assert_eq!(client.call(&["GET", "k"]).unwrap(), Reply::Bulk(value));
    }
    let mut pipeline = Vec::new();
    for at in 0..20_000 {
        pipeline.extend_from_slice(format!("ECHO {at}\r\n").as_bytes());
    }
    client.send_raw(&pipeline).unwrap();
    for at in 0..20_000 {
        let expected = Reply::Bulk(at.to_string().into_bytes());
        assert_eq!(client.read(REPLY_WAIT).unwrap(), expected);
    }
    let port = server.address().port();
    let text = info(&mut client, "server");
    assert!(text.contains(&format!("listener0:name=tls,bind=127.0.0.1,port={port}\r\n")), "{text}");
    assert!(text.contains(&format!("tcp_port:{port}\r\n")), "{text}");
    let list = client.call(&["CLIENT", "LIST"]).unwrap();
    let list = String::from_utf8_lossy(list.text().unwrap()).into_owned();
    assert!(list.contains(&format!("laddr={}", server.address())), "{list}");
}

#[test]
fn blocked_calls_and_messages_arrive_over_tls() {
    let server = Server::start_tls(&[]).unwrap();
    let connect = || Client::connect(server.address()).unwrap();
    let (mut blocked, mut subscriber, mut other) = (connect(), connect(), connect());
    let call = |text: &str| -> Vec<Vec<u8>> {
        text.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
    };
    blocked.send(&call("BLPOP list 0")).unwrap();
    assert!(matches!(subscriber.call(&["SUBSCRIBE", "news"]), Ok(Reply::Array(_))));
    await_figure(&mut other, ("clients", "blocked_clients"), 1);
    assert_eq!(other.call(&["RPUSH", "list", "x"]).unwrap(), Reply::Int(1));
    let expected = ["list", "x"].map(|text| Reply::Bulk(text.as_bytes().to_vec()));
    assert_eq!(blocked.read(REPLY_WAIT).unwrap(), Reply::Array(expected.to_vec()));
    assert_eq!(other.call(&["PUBLISH", "news", "hello"]).unwrap(), Reply::Int(1));
    let expected = ["message", "news", "hello"].map(|text| Reply::Bulk(text.as_bytes().to_vec()));
    assert_eq!(subscriber.read(REPLY_WAIT).unwrap(), Reply::Array(expected.to_vec()));
    let killed = other.call(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    assert_eq!(killed, Reply::Int(1));
    assert!(subscriber.is_closed(REPLY_WAIT));
}

/// A client may say that it sends no more and still wait for what it has asked. The end of the
/// replies is said by TLS, not only by the socket.
#[test]
fn a_half_closed_connection_gets_its_replies_and_a_proper_end() {
    let server = Server::start_tls(&[]).unwrap();
    for is_socket_closed in [false, true] {
        let mut stream = connect_raw(&server);
        stream.write_all(b"SET big x\r\nSETRANGE big 2000000 y\r\nGET big\r\n").unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        if is_socket_closed {
            stream.sock.shutdown(Shutdown::Write).unwrap();
        }
        let mut replies = Vec::new();
        // A connection that ends without a word of TLS is an error to the client's library.
        stream.read_to_end(&mut replies).unwrap();
        assert!(replies.starts_with(b"+OK\r\n:2000001\r\n$2000001\r\n"));
        assert_eq!(replies.len(), b"+OK\r\n:2000001\r\n$2000001\r\n".len() + 2_000_001 + 2);
    }
    // The same after QUIT.
    let mut stream = connect_raw(&server);
    stream.write_all(b"QUIT\r\n").unwrap();
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    assert_eq!(replies, b"+OK\r\n");
}

/// What is encrypted and not sent counts as output: who does not read is closed at the limit.
#[test]
fn output_limits_hold_for_encrypted_clients() {
    let server = Server::start_tls(&["--client-output-buffer-limit", "normal 4mb 0 0"]).unwrap();
    let mut other = Client::connect(server.address()).unwrap();
    other.call(&["SETRANGE", "big", "1000000", "x"]).unwrap();
    let mut greedy = connect_raw(&server);
    // More than sockets hold. The server may close in the middle.
    let _ = greedy.write_all("GET big\r\n".repeat(100).as_bytes());
    let limits = ("stats", "client_output_buffer_limit_disconnections");
    await_figure(&mut other, limits, 1);
    await_figure(&mut other, ("clients", "connected_clients"), 1);
}

/// A client that goes away while a large reply is being sent leaves nothing behind.
#[test]
fn a_client_may_vanish_in_the_middle_of_a_reply() {
    let server = Server::start_tls(&[]).unwrap();
    let mut other = Client::connect(server.address()).unwrap();
    other.call(&["SETRANGE", "big", "30000000", "x"]).unwrap();
    for _ in 0..5 {
        let mut stream = connect_raw(&server);
        stream.write_all(b"GET big\r\n").unwrap();
        stream.read_exact(&mut [0; 50_000]).unwrap();
    }
    await_figure(&mut other, ("clients", "connected_clients"), 1);
    assert_eq!(other.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
}

/// What a client's library would send as its first bytes.
fn client_hello(config: &Arc<ClientConfig>) -> Vec<u8> {
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let mut session = rustls::ClientConnection::new(config.clone(), name).unwrap();
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).unwrap();
    bytes
}

/// Those that send no TLS, half of it, or nothing at all are closed; others are served meanwhile.
#[test]
fn handshakes_that_fail_or_never_end_hold_nobody_up() {
    let server = Server::start_tls(&[]).unwrap();
    let mut other = Client::connect(server.address()).unwrap();
    let hello = client_hello(&tls::shared().unwrap().client_config(None));
    let mut idle = Vec::new();
    for round in 0..60 {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.set_read_timeout(Some(HANDSHAKE_WAIT)).unwrap();
        match round % 3 {
            0 => {}
            1 => socket.write_all(&hello[..hello.len() / 2]).unwrap(),
            _ => socket.write_all(&hello).unwrap(),
        }
        idle.push(socket);
        assert_eq!(other.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    }
    let garbage: [&[u8]; 5] = [
        b"PING\r\nPING\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[0; 70_000],
        &[0x16, 3, 1, 0xff, 0xff],
        // A record that says it is a handshake, and is not one.
        &[0x16, 3, 1, 0, 4, 0xfe, 0xff, 0xff, 0xff],
    ];
    for bytes in garbage {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.set_read_timeout(Some(HANDSHAKE_WAIT)).unwrap();
        // It may be closed before all of it is taken.
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        let is_no_reply = !answer.starts_with(b"+") && !answer.starts_with(b"-");
        assert!(is_no_reply, "{:?}", String::from_utf8_lossy(&answer));
    }
    // Records of TLS that do not end: too much for a handshake.
    let mut socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(HANDSHAKE_WAIT)).unwrap();
    let empty = [0x16, 3, 1, 0, 4, 1, 0, 0xff, 0xff].repeat(100_000);
    let _ = socket.write_all(&empty);
    let _ = socket.read_to_end(&mut Vec::new());
    // Those that wait are closed when their time is over.
    for mut socket in idle {
        let _ = socket.read_to_end(&mut Vec::new());
    }
    await_figure(&mut other, ("clients", "connected_clients"), 1);
}

/// Handshakes with bytes changed, left out, doubled or put elsewhere: each ends its own connection,
/// none is answered as a command, and who is connected is served after every one of them.
#[test]
fn broken_handshakes_end_their_own_connection() {
    const ROUNDS: usize = 300;
    let server = Server::start_tls(&[]).unwrap();
    let mut other = Client::connect(server.address()).unwrap();
    let hello = client_hello(&tls::shared().unwrap().client_config(None));
    let figures = ["tls_handshakes", "tls_handshakes_failed"];
    let before = figures.map(|name| figure(&mut other, "tls", name));
    let mut random = Random::from_seed(14);
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    for round in 0..ROUNDS {
        let mut bytes = hello.clone();
        for _ in 0..=below(4) {
            let (from, to) = (below(bytes.len()), below(bytes.len()));
            let part = bytes[from.min(to)..from.max(to)].to_vec();
            match below(4) {
                0 => bytes[from] ^= 1 << below(8),
                1 => bytes[from] = below(256) as u8,
                2 => drop(bytes.splice(from..from, part)),
                _ => bytes.truncate(from.max(1)),
            }
        }
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.set_read_timeout(Some(HANDSHAKE_WAIT)).unwrap();
        let _taken = socket.write_all(&bytes);
        let _ended = socket.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _closed = socket.read_to_end(&mut answer);
        // What comes are records of TLS: alerts, or the server's part of a handshake.
        assert!(matches!(answer.first(), None | Some(0x14..=0x17)), "round {round}: {answer:?}");
        assert_eq!(other.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    }
    await_figure(&mut other, ("clients", "connected_clients"), 1);
    let after = figures.map(|name| figure(&mut other, "tls", name));
    assert_eq!(after, [before[0], before[1] + ROUNDS as u64]);
}

/// The serial number of a certificate, as openssl shows it.
fn serial(certificates: &Certificates, name: &str) -> String {
    let path = certificates.path(name);
    let args = ["x509", "-noout", "-serial", "-in", &path];
    let output = Command::new("openssl").args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().strip_prefix("serial=").unwrap().to_owned()
}

/// Nobody was told that a certificate was about to expire before clients were turned away.
#[test]
fn info_tells_until_when_certificates_are_good() {
    const DAYS: u64 = 3650;
    let certificates = Certificates::make().unwrap();
    let server = Server::start_with_certificates(&certificates, &[]).unwrap();
    let stream = tls::connect(server.address(), &certificates.client_config(None)).unwrap();
    let mut client = Client::over(Wire::Tls(Box::new(stream)));
    for (kind, file) in [("server", "server.crt"), ("ca", "ca.crt")] {
        let text = info(&mut client, "tls");
        let line = format!("tls_{kind}_cert_serial:{}\r\n", serial(&certificates, file));
        assert!(text.contains(&line), "{line} in {text}");
        let name = format!("tls_{kind}_cert_expires_in_seconds");
        let left = figure(&mut client, "tls", &name);
        assert!(((DAYS - 1) * 86_400..=DAYS * 86_400).contains(&left), "{left}");
    }
    assert!(info(&mut client, "tls").contains("tls_client_cert_serial:none\r\n"));
    certificates.issue("server", "localhost", tls::SERVER_NAMES).unwrap();
    let path = certificates.path("server.crt");
    assert_eq!(client.call(&["CONFIG", "SET", "tls-cert-file", &path]).unwrap(), ok());
    let line = format!("tls_server_cert_serial:{}\r\n", serial(&certificates, "server.crt"));
    assert!(info(&mut client, "tls").contains(&line), "{line}");
    let own =
        ["tls-client-cert-file", &path, "tls-client-key-file", &certificates.path("server.key")];
    assert_eq!(client.call(&[&["CONFIG", "SET"][..], &own].concat()).unwrap(), ok());
    let line = line.replace("server", "client");
    assert!(info(&mut client, "tls").contains(&line), "{line}");
}

/// CLIENT LIST left out what TLS takes, while `maxmemory-clients` closed clients for it.
#[test]
fn what_tls_takes_is_part_of_a_clients_memory() {
    let server = Server::start_tls(&[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let line = client.call(&["CLIENT", "INFO"]).unwrap();
    let line = String::from_utf8_lossy(line.text().unwrap()).into_owned();
    let total = line.split(' ').find_map(|field| field.strip_prefix("tot-mem=")).unwrap();
    assert!(total.parse::<u64>().unwrap() > 8192, "{line}");
}

/// A handshake and a command that come byte by byte are as good as any.
#[test]
fn fragments_of_one_byte_are_put_together() {
    struct Dripping(TcpStream);
    impl Read for Dripping {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }
    }
    impl Write for Dripping {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(&bytes[..bytes.len().min(1)])
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let server = Server::start_tls(&[]).unwrap();
    let TlsStream { conn, sock } = connect_raw(&server);
    let mut stream = rustls::StreamOwned::new(conn, Dripping(sock));
    stream.write_all(b"ECHO drop\r\n").unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"$4\r\ndrop\r\n");
}

/// New keys as often as a client likes, if there is a command for each.
#[test]
fn key_updates_are_answered_and_storms_of_them_end() {
    let server = Server::start_tls(&[]).unwrap();
    let mut stream = connect_raw(&server);
    for round in 0..300 {
        stream.write_all(format!("ECHO {round:04}\r\n").as_bytes()).unwrap();
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[4..8], format!("{round:04}").as_bytes());
        stream.conn.refresh_traffic_keys().unwrap();
    }
    // Without anything between they mean nothing but work: the connection is ended.
    let mut send = || -> std::io::Result<()> {
        for _ in 0..2000 {
            stream.conn.refresh_traffic_keys().unwrap();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut stream.sock)?;
            }
        }
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut [0; 7])
    };
    assert!(send().is_err());
    let mut other = Client::connect(server.address()).unwrap();
    assert_eq!(other.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
}

#[test]
fn many_clients_connect_at_once() {
    let server = Server::start_tls(&[]).unwrap();
    std::thread::scope(|scope| {
        for client in 0..24 {
            let server = &server;
            scope.spawn(move || {
                for round in 0..5 {
                    let mut it = Client::connect(server.address()).unwrap();
                    let text = format!("{client} {round}");
                    let expected = Reply::Bulk(text.clone().into_bytes());
                    assert_eq!(it.call(&["ECHO", &text]).unwrap(), expected);
                }
            });
        }
    });
}

/// redis-cli connects with and without a certificate, as people do.
#[test]
fn redis_cli_connects_over_tls() {
    if Command::new("redis-cli").arg("--version").output().is_err() {
        return skip("there is no redis-cli");
    }
    let certificates = Certificates::make().unwrap();
    let server =
        Server::start_with_certificates(&certificates, &["--tls-auth-clients", "yes"]).unwrap();
    let port = server.address().port().to_string();
    let (ca, cert, key) = (
        certificates.path("ca.crt"),
        certificates.path("client.crt"),
        certificates.path("client.key"),
    );
    let common = ["-p", &port, "--tls", "--cacert", &ca];
    let run = |args: &[&str]| {
        let output = Command::new("redis-cli").args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let with = [&common[..], &["--cert", &cert, "--key", &key, "PING"]].concat();
    assert_eq!(run(&with), "PONG\n");
    let without = [&common[..], &["PING"]].concat();
    assert_ne!(run(&without), "PONG\n");
}
