#![forbid(unsafe_code)]
//! The floor: the server's own event loop with a service that answers `+OK` to every command and
//! does nothing else. What it costs is what sockets, the loop and parsing cost; no server on the
//! same loop can be cheaper.

use mio::net::TcpListener;
use russet_base::Args;
use russet_commands::call::batch::Ran;
use russet_commands::call::client::After;
use russet_commands::call::dispatch::Progress;
use russet_commands::call::mail::Letter;
use russet_commands::node::config::{Config, Requester};
use russet_protocol::{Output, RequestLimits};
use russet_server::event_loop::{Address, Buffers, CurrentTls, Fleet, Listener, Peer, Service};
use russet_server::tls;
use std::io::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

struct Floor;

impl Service for Floor {
    type Worker = ();
    type Client = ();

    fn worker(self: &Arc<Self>) {}

    fn connect(&self, _peer: &Peer, _address: Address<Self>, _out: &mut Output) -> Option<()> {
        Some(())
    }

    fn disconnect(&self, _worker: &mut (), _client: &mut ()) {}

    fn limits(&self, _client: &()) -> RequestLimits {
        RequestLimits::default()
    }

    fn begin_round(&self, _worker: &mut ()) {}

    fn round_ms(&self, _worker: &()) -> i64 {
        self.now_ms()
    }

    fn begin_turn(&self, _worker: &mut (), _client: &mut ()) {}

    fn end_turn(&self, _worker: &mut (), _client: &mut ()) {}

    fn run_batch<'a>(
        &self,
        _worker: &mut (),
        _client: &mut (),
        _commands: impl Iterator<Item = Args<'a>> + Clone,
        _out: &mut Output,
    ) -> Ran {
        Ran::default()
    }

    fn run(&self, _worker: &mut (), _client: &mut (), _args: Args, out: &mut Output) -> Progress {
        out.extend_from_slice(b"+OK\r\n");
        Progress::Done
    }

    fn is_closing(&self, _client: &()) -> bool {
        false
    }

    fn letter(
        &self,
        _worker: &mut (),
        _client: &mut (),
        _letter: Letter,
        _out: &mut Output,
    ) -> After {
        After::Wait
    }

    fn may_move(&self, _client: &()) -> bool {
        true
    }

    fn moved(&self, _client: &mut (), _address: Address<Self>) {}

    fn deadline_ms(&self, _client: &()) -> Option<i64> {
        None
    }

    fn tick(
        &self,
        _worker: &mut (),
        _client: &mut (),
        _buffers: Buffers,
        _out: &mut Output,
    ) -> After {
        After::Wait
    }

    fn may_hold_output(&self, _client: &mut (), _buffers: Buffers) -> bool {
        true
    }

    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

/// What the command line asks for.
struct Asked {
    port: u16,
    threads: usize,
    /// An encrypted port, with the files of a certificate and its key.
    tls_port: Option<u16>,
    certificate: Option<String>,
    key: Option<String>,
}

const USAGE: &str =
    "floor --port N [--threads N] [--tls-port N --tls-cert-file F --tls-key-file F]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut asked = Asked { port: 0, threads, tls_port: None, certificate: None, key: None };
    for pair in args.chunks(2) {
        let text = pair.get(1).cloned();
        let value = text.as_ref().and_then(|text| text.parse::<u16>().ok());
        match (pair[0].as_str(), value) {
            ("--port", Some(value)) => asked.port = value,
            ("--threads", Some(value)) if value > 0 => asked.threads = usize::from(value),
            ("--tls-port", Some(value)) => asked.tls_port = Some(value),
            ("--tls-cert-file", _) => asked.certificate = text,
            ("--tls-key-file", _) => asked.key = text,
            _ => {
                eprintln!("{USAGE}: cannot read {pair:?}");
                return ExitCode::FAILURE;
            }
        }
    }
    match serve(&asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until the process is ended.
fn serve(asked: &Asked) -> std::io::Result<()> {
    let listen = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut listeners = vec![Listener::Tcp(listen(asked.port)?)];
    if let (Some(port), Some(certificate), Some(key)) =
        (asked.tls_port, &asked.certificate, &asked.key)
    {
        let config = Config::default();
        let pairs: [(&[u8], &[u8]); 3] = [
            (b"tls-cert-file", certificate.as_bytes()),
            (b"tls-key-file", key.as_bytes()),
            (b"tls-auth-clients", b"no"),
        ];
        config.set(&pairs, Requester::Local, &mut |_| Ok(())).map_err(Error::other)?;
        let config = tls::server_config(&config).map_err(Error::other)?;
        listeners.push(Listener::Tls(listen(port)?, CurrentTls::new(config)));
    }
    let fleet = Fleet::start(Arc::new(Floor), 1..=asked.threads)?;
    fleet.listen(listeners);
    loop {
        std::thread::park();
    }
}
