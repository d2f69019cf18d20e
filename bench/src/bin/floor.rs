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
use russet_protocol::{Output, RequestLimits};
use russet_server::event_loop::{Address, Buffers, Fleet, Listener, Peer, Service};
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

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mut port, mut threads) = (0, std::thread::available_parallelism().map_or(1, usize::from));
    for pair in words.chunks(2) {
        let value = pair.get(1).and_then(|value| value.parse::<u16>().ok());
        match (pair[0].as_str(), value) {
            ("--port", Some(value)) => port = value,
            ("--threads", Some(value)) if value > 0 => threads = usize::from(value),
            _ => {
                eprintln!("floor --port N [--threads N]: cannot read {pair:?}");
                return ExitCode::FAILURE;
            }
        }
    }
    match serve(port, threads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until the process is ended.
fn serve(port: u16, threads: usize) -> std::io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let fleet = Fleet::start(Arc::new(Floor), 1..=threads)?;
    fleet.listen(vec![Listener::Tcp(listener)]);
    loop {
        std::thread::park();
    }
}
