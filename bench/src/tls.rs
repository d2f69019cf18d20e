//! GET over TLS: Russet next to a Redis, both above the floor, which answers over TLS too and does
//! nothing else. Certificates are made by `openssl`.

use crate::failure::{Doing, Failure, Result};
use crate::figures::{median, spread};
use crate::find::Field;
use crate::options::Options;
use crate::report::{Table, cost, goal, percent};
use crate::servers::{Kind, Launch, Server};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What Russet may cost above the floor, of what a Redis does.
const RATIO_MAX: f64 = 0.8;
const KEYS: u64 = 10_000;
const VALUE: &str = "0123456789abcdef0123456789abcdef";
const PIPELINES: [usize; 2] = [1, 16];
/// The next key is so many further: no two near each other.
const KEY_STEP: u64 = 7919;
const CERTIFICATE: &str = "[req]\ndistinguished_name=dn\n[dn]\n[v3]\n\
    basicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost\n";

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "GET over TLS",
        ["pipeline", "floor µs", "Russet µs", "Redis µs", "above the floor", "goal", "spread"],
    );
    let Some(redis) = redis_server() else {
        table.notes.push("No redis-server on the path: nothing to compare with".into());
        return Ok(table);
    };
    let files = Files::make()?;
    let of_kind = |kind| field.launches.iter().find(|launch| launch.kind == kind).cloned();
    let (Some(floor), Some(russet)) = (of_kind(Kind::Floor), of_kind(Kind::Russet)) else {
        return Ok(table);
    };
    let redis = Launch { kind: Kind::Valkey, binary: redis, preload: Vec::new(), ..russet.clone() };
    let redis = Launch { arguments: Vec::new(), ..redis };
    let mut servers = Vec::new();
    for launch in [floor, russet, redis] {
        servers.push(Target::start(launch, &files)?);
    }
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per request. {} connections from one thread, {} \
         rounds in turn, medians; TLS 1.3, the cipher that the server prefers of what rustls \
         offers. Above the floor: Russet's part of what Redis costs more than the floor, the \
         median of each round's; spread is from the least to the greatest.",
        options.connections, options.rounds
    ));
    for pipeline in PIPELINES {
        let mut series = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..options.rounds {
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                series[at].push(servers[at].cpu_us(pipeline, options, &files)?);
            }
        }
        let [floor, russet, redis] = &series;
        let ratio = |at: usize| (russet[at] - floor[at]) / (redis[at] - floor[at]);
        let ratios: Vec<f64> = (0..options.rounds).map(ratio).collect();
        let reached = median(&ratios);
        table.row(vec![
            pipeline.to_string(),
            cost(median(floor)),
            cost(median(russet)),
            cost(median(redis)),
            cost(reached),
            goal(Some(RATIO_MAX), reached),
            percent(spread(&ratios)),
        ]);
    }
    Ok(table)
}

/// A server with an encrypted port.
struct Target {
    server: Server,
    tls_port: u16,
}

impl Target {
    fn start(mut launch: Launch, files: &Files) -> Result<Target> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("finding a port")?;
        let tls_port = listener.local_addr().doing("finding a port")?.port();
        drop(listener);
        let text = |path: &Path| path.display().to_string();
        let mut pairs = vec![
            ("--tls-port", tls_port.to_string()),
            ("--tls-cert-file", text(&files.certificate)),
            ("--tls-key-file", text(&files.key)),
        ];
        if launch.kind.stores_data() {
            pairs.push(("--tls-auth-clients", "no".to_owned()));
        }
        let words = pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        launch.arguments.extend(words);
        let server = launch.start()?;
        if server.kind.stores_data() {
            let mut client = server.client()?;
            for key in 0..KEYS {
                client.ask(&["SET", &name_of(key), VALUE])?;
            }
        }
        Ok(Target { server, tls_port })
    }

    /// The server's CPU per request.
    fn cpu_us(&self, pipeline: usize, options: &Options, files: &Files) -> Result<f64> {
        let doing = "talking over TLS";
        let connect = || connect(self.tls_port, &files.config);
        let streams: io::Result<Vec<_>> = (0..options.connections).map(|_| connect()).collect();
        let mut streams = streams.doing(doing)?;
        let reply_bytes = match self.server.kind {
            Kind::Floor => "+OK\r\n".len(),
            _ => format!("${}\r\n{VALUE}\r\n", VALUE.len()).len(),
        };
        // The handshakes are over when each has been answered.
        drive(&mut streams, (pipeline, reply_bytes), Duration::ZERO).doing(doing)?;
        let before = self.server.cpu()?;
        let time = options.time_per_round;
        let requests = drive(&mut streams, (pipeline, reply_bytes), time).doing(doing)?;
        let cpu = self.server.cpu()?.saturating_sub(before);
        Ok(cpu.as_secs_f64() * 1e6 / requests as f64)
    }
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn connect(port: u16, config: &Arc<ClientConfig>) -> io::Result<TlsStream> {
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, socket))
}

/// Sends requests on all connections and reads the replies, until the time is over; how many.
fn drive(
    streams: &mut [TlsStream],
    (pipeline, reply_bytes): (usize, usize),
    time: Duration,
) -> io::Result<u64> {
    let deadline = Instant::now() + time;
    let (mut key, mut requests) = (0, 0);
    let mut replies = vec![0; pipeline * reply_bytes];
    loop {
        for stream in streams.iter_mut() {
            let mut bytes = Vec::new();
            for _ in 0..pipeline {
                key = (key + KEY_STEP) % KEYS;
                let name = name_of(key);
                bytes.extend(format!("*2\r\n$3\r\nGET\r\n${}\r\n{name}\r\n", name.len()).bytes());
            }
            stream.write_all(&bytes)?;
        }
        for stream in streams.iter_mut() {
            stream.read_exact(&mut replies)?;
            requests += pipeline as u64;
        }
        if Instant::now() >= deadline {
            return Ok(requests);
        }
    }
}

fn name_of(key: u64) -> String {
    format!("key:{key:06}")
}

fn redis_server() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("redis-server")).find(|file| file.is_file())
}

/// A certificate that vouches for itself, and clients that trust it.
struct Files {
    dir: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    config: Arc<ClientConfig>,
}

impl Files {
    fn make() -> Result<Files> {
        let dir = std::env::temp_dir().join(format!("russet-bench-tls-{}", std::process::id()));
        fs::create_dir_all(&dir).doing("making a directory")?;
        fs::write(dir.join("made.cnf"), CERTIFICATE).doing("writing made.cnf")?;
        let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                    -config made.cnf -extensions v3 -subj /CN=localhost -keyout key.pem \
                    -out cert.pem";
        let openssl =
            Command::new("openssl").args(args.split_whitespace()).current_dir(&dir).output();
        if !openssl.doing("running openssl")?.status.success() {
            return Err(Failure::server("openssl", "made no certificate"));
        }
        let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        let strange = |what: String| Failure::server("openssl", what);
        let mut roots = RootCertStore::empty();
        let made = CertificateDer::from_pem_file(&certificate);
        let made = made.map_err(|error| strange(error.to_string()))?;
        roots.add(made).map_err(|error| strange(error.to_string()))?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| strange(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Files { dir, certificate, key, config: Arc::new(config) })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _left_to_the_system = fs::remove_dir_all(&self.dir);
    }
}
