//! The event loops: N threads, each with a poller and its own connections.
//!
//! The thread that reads a command runs it. While it runs the commands of one connection, that
//! connection is checked out of the loop and the loop's state is unlocked; if it stays in one
//! command for too long, the watchdog gives the loop to a spare thread, and the slow one hands its
//! connection back by mail when it is done. A loop that keeps up serves alone: the next one is
//! opened only when its rounds grow long ([`fleet`]) and a processor is idle ([`idle`]), because
//! two half-busy threads cost more per request than one busy thread. What a connection's bytes mean
//! is the [`Service`]'s business: the server has one, and the benchmark's floor has another.

mod ahead;
mod backlog;
mod connection;
mod fleet;
mod idle;
mod input;
mod mailbox;
mod output;
mod owner;
mod state;
mod stream;
mod timers;
mod tls;
mod turn;

pub use fleet::{Fleet, LOOP_THREAD_NAME};
pub use mailbox::Address;
pub use stream::{CurrentTls, Listener, Peer, Stream};

use russet_base::Args;
use russet_commands::call::batch::Ran;
use russet_commands::call::client::After;
use russet_commands::call::dispatch::Progress;
use russet_commands::call::mail::Letter;
use russet_protocol::{Output, RequestLimits};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What a connection has in its buffers, and how much they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Input that was not run yet.
    pub input_bytes: usize,
    pub input_capacity_bytes: usize,
    /// Output that was not sent yet.
    pub output_bytes: usize,
    pub output_capacity_bytes: usize,
}

/// What a connection's commands mean.
pub trait Service: Send + Sync + Sized + 'static {
    /// What a thread needs to run commands.
    type Worker: Send;
    /// What a connection is, beyond its socket and buffers.
    type Client: Send;

    fn worker(self: &Arc<Self>) -> Self::Worker;

    /// None: the connection is refused; what was written to `out` is sent first.
    fn connect(
        &self,
        peer: &Peer,
        address: Address<Self>,
        out: &mut Output,
    ) -> Option<Self::Client>;

    /// A client's TLS handshake is complete; the certificate that it has shown is good.
    fn secured(&self, _client: &mut Self::Client, _certificate: Option<&[u8]>) {}

    /// Its connection is closed.
    fn handshake_failed(&self, _client: &Self::Client, _why: &io::Error) {}

    fn disconnect(&self, worker: &mut Self::Worker, client: &mut Self::Client);

    fn limits(&self, client: &Self::Client) -> RequestLimits;

    /// After the thread has slept in the poller.
    fn begin_round(&self, worker: &mut Self::Worker);

    /// The time of this round, in milliseconds since 1970.
    fn round_ms(&self, worker: &Self::Worker) -> i64;

    /// The thread has served all that was ready, which took it so long.
    fn end_round(&self, _worker: &mut Self::Worker, _micros: u64) {}

    /// Before the first and after the last command of a connection's turn.
    fn begin_turn(&self, worker: &mut Self::Worker, client: &mut Self::Client);
    fn end_turn(&self, worker: &mut Self::Worker, client: &mut Self::Client);

    /// How long a client whose turn has taken so long that its loop was lost stays away from it.
    fn backoff_after_turn(&self, _worker: &mut Self::Worker) -> Duration {
        Duration::ZERO
    }

    /// Before output is sent: it may be too early for some of it.
    fn before_send(&self, _client: &mut Self::Client, _out: &mut Output) {}

    /// So many bytes of a client's output were taken by its socket.
    fn sent(&self, _worker: &mut Self::Worker, _client: &mut Self::Client, _output_bytes: usize) {}

    /// So many bytes came from a client.
    fn received(&self, _worker: &mut Self::Worker, _client: &mut Self::Client, _bytes: usize) {}

    /// A client's command that will be run soon; others come before it. What all of them will touch
    /// can be fetched together, by [`Service::fetch_expected`].
    fn expect(&self, _worker: &mut Self::Worker, _client: &mut Self::Client, _args: Args) {}
    fn fetch_expected(&self, _worker: &mut Self::Worker) {}

    /// Runs as many of the next commands as can be run in one batch. The one behind them is to be
    /// run alone, unless the run was cut.
    fn run_batch<'a>(
        &self,
        worker: &mut Self::Worker,
        client: &mut Self::Client,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: &mut Output,
    ) -> Ran;

    fn run(
        &self,
        worker: &mut Self::Worker,
        client: &mut Self::Client,
        args: Args,
        out: &mut Output,
    ) -> Progress;

    /// Whether its next command can be run now: it waits for nothing and is not closing.
    fn may_run(&self, _client: &Self::Client) -> bool {
        true
    }

    /// Whether more of its requests may be read now.
    fn may_read(&self, _client: &Self::Client) -> bool {
        true
    }

    /// Whether it waits with a command that is carried out even if the other side has closed.
    fn is_under_way(&self, _client: &Self::Client) -> bool {
        false
    }

    /// All that could be done for a connection now has been done.
    fn turn_over(&self, _client: &mut Self::Client) {}

    /// Whether the connection is to be closed once its replies are written.
    fn is_closing(&self, client: &Self::Client) -> bool;

    /// Whether it is to be closed at once, with nothing more sent.
    fn is_cut_off(&self, _client: &Self::Client) -> bool {
        false
    }

    /// Is so much input that can't be run yet within the client's limits?
    fn may_hold_input(&self, _client: &Self::Client, _input_bytes: usize) -> bool {
        true
    }

    fn letter(
        &self,
        worker: &mut Self::Worker,
        client: &mut Self::Client,
        letter: Letter,
        out: &mut Output,
    ) -> After;

    /// The connection goes to another loop: its letters go to `address` from now on. False if it
    /// can't move, because others may have its old address.
    fn may_move(&self, client: &Self::Client) -> bool;
    fn moved(&self, client: &mut Self::Client, address: Address<Self>);

    /// The moment, in milliseconds since 1970, when a waiting client's time is over.
    fn deadline_ms(&self, client: &Self::Client) -> Option<i64>;

    /// That moment has come, or a second has passed.
    fn tick(
        &self,
        worker: &mut Self::Worker,
        client: &mut Self::Client,
        buffers: Buffers,
        out: &mut Output,
    ) -> After;

    /// After each turn: is the client's unsent output within its limits?
    fn may_hold_output(&self, client: &mut Self::Client, buffers: Buffers) -> bool;

    fn now_ms(&self) -> i64;

    /// Called about every millisecond by a thread that serves nobody.
    fn look_ahead(&self) {}
}
