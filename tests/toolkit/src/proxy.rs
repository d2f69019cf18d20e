//! A proxy between a kit and a server that does to requests what networks do: it cuts connections
//! before a request is forwarded or after it has run, delays replies, and sends requests twice. It
//! can also make the server forget its scripts, and silence connections that track changes.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Commands with which a client introduces itself: they are forwarded and not counted.
const INTRODUCTIONS: &[&str] = &["HELLO", "CLIENT", "AUTH", "SELECT"];

/// After these a connection neither watches nor collects.
const TRANSACTION_ENDS: &[&str] = &["EXEC", "DISCARD", "UNWATCH"];
const SCRIPT_FLUSH: &[u8] = b"*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n";

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// It is forwarded, and so is its reply.
    None,
    /// The connection is closed and the request not forwarded.
    CutBefore,
    /// The request runs; then the connection is closed.
    CutAfter,
    /// The request runs, and its reply comes so much later. What follows on the connection waits.
    Late(Duration),
    /// It runs twice. The client gets the second reply.
    Twice,
    /// The server forgets all scripts before it runs.
    Forget,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Of all that came since the plan was made, from 0 on.
    pub number: usize,
    /// As `EVALSHA`.
    pub command: String,
}

/// What happens to new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyMode {
    Open,
    /// They are closed at once.
    Shut,
    /// They are closed so much later, and nothing comes back.
    ShutAfter(Duration),
    /// They are taken, and nothing comes back.
    Silent,
    /// They are taken, and served so much later.
    Slow(Duration),
}

type Plan = Box<dyn FnMut(&Call) -> ProxyFault + Send>;

struct State {
    server: Mutex<SocketAddr>,
    plan: Mutex<Plan>,
    mode: Mutex<ProxyMode>,
    requests: AtomicUsize,
    faults: AtomicUsize,
    /// Requests that have run and whose replies are late.
    late: watch::Sender<usize>,
    connections: AtomicUsize,
    /// Changes when all connections are to be cut.
    cuts: watch::Sender<u64>,
    /// Nothing passes on connections that track changes.
    are_trackers_silent: watch::Sender<bool>,
}

/// Ends with this value, and its connections with it.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

impl Proxy {
    pub async fn start(server: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            server: Mutex::new(server),
            plan: Mutex::new(Box::new(|_call| ProxyFault::None)),
            mode: Mutex::new(ProxyMode::Open),
            requests: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
            late: watch::channel(0).0,
            connections: AtomicUsize::new(0),
            cuts: watch::channel(0).0,
            are_trackers_silent: watch::channel(false).0,
        });
        let listening = tokio::spawn(listen(listener, state.clone()));
        Ok(Proxy { address, state, listening })
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Decides from now on; numbers begin at 0 again.
    pub fn plan(&self, plan: impl FnMut(&Call) -> ProxyFault + Send + 'static) {
        *lock(&self.state.plan) = Box::new(plan);
        self.state.requests.store(0, Ordering::SeqCst);
    }

    /// The same to one request, by its number, and nothing to the others.
    pub fn plan_one(&self, number: usize, fault: ProxyFault) {
        self.plan(move |call| if call.number == number { fault } else { ProxyFault::None });
    }

    /// A fault to about one request of `one_in`, which and what being random, and to one of the
    /// first `one_in` in any case. The seed is printed.
    pub fn plan_random(&self, one_in: u32, late: Duration) {
        let seed = std::env::var("RUSSET_FAULT_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(rand::random::<u64>);
        println!("to run with these faults again: RUSSET_FAULT_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let first = random.random_range(0..one_in as usize);
        self.plan(move |call| match random.random_range(0..5 * one_in) {
            _ if call.number == first => ProxyFault::CutAfter,
            0 => ProxyFault::CutBefore,
            1 => ProxyFault::CutAfter,
            2 => ProxyFault::Late(late),
            3 => ProxyFault::Twice,
            4 => ProxyFault::Forget,
            _ => ProxyFault::None,
        });
    }

    /// Requests since the plan was made.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Faults since the proxy was started.
    pub fn faults(&self) -> usize {
        self.state.faults.load(Ordering::SeqCst)
    }

    /// Until a request has run whose reply is late, the first since the proxy was started.
    pub async fn wait_for_late(&self) {
        let mut late = self.state.late.subscribe();
        // Its sender is there as long as the proxy.
        let _ = late.wait_for(|count| *count > 0).await;
    }

    /// Connections that came since the proxy was started.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub fn set_mode(&self, mode: ProxyMode) {
        *lock(&self.state.mode) = mode;
    }

    /// Closes all connections. What is sent from now on is not forwarded.
    pub fn cut_all(&self) {
        self.state.cuts.send_modify(|count| *count += 1);
    }

    /// Connections that track changes stay open, and nothing passes on them until they may speak.
    pub fn silence_trackers(&self, are_silent: bool) {
        self.state.are_trackers_silent.send_replace(are_silent);
    }

    /// New connections lead to another server.
    pub fn lead_to(&self, server: SocketAddr) {
        *lock(&self.state.server) = server;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut_all();
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

async fn listen(listener: TcpListener, state: Arc<State>) {
    while let Ok((client, _from)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        let state = state.clone();
        tokio::spawn(async move {
            let mut cuts = state.cuts.subscribe();
            let begun = *cuts.borrow_and_update();
            tokio::select! {
                biased;
                _cut = cuts.changed() => {}
                // A connection that breaks is closed on both sides, which is all there is to do.
                _ended = serve(client, &state, begun) => {}
            }
        });
    }
}

/// Serves a connection that came behind so many cuts.
async fn serve(client: TcpStream, state: &State, cuts: u64) -> io::Result<()> {
    let mode = *lock(&state.mode);
    match mode {
        ProxyMode::Open => {}
        ProxyMode::Shut => return Ok(()),
        ProxyMode::ShutAfter(time) => {
            tokio::time::sleep(time).await;
            return Ok(());
        }
        ProxyMode::Silent => return std::future::pending().await,
        ProxyMode::Slow(by) => tokio::time::sleep(by).await,
    }
    let server = *lock(&state.server);
    let mut client = Frames::new(client);
    let mut server = Frames::new(TcpStream::connect(server).await?);
    let mut in_transaction = false;
    while let Some(request) = client.next().await? {
        // The reply before was on its way when all were cut: this may go on without a look at that.
        if *state.cuts.borrow() != cuts {
            return Ok(());
        }
        if request.windows(8).any(|part| part == b"TRACKING") {
            server.send(&request).await?;
            return pass_on(client, server, state).await;
        }
        let fault = decide(state, &request, &mut in_transaction);
        match fault {
            ProxyFault::CutBefore => return Ok(()),
            ProxyFault::None => client.send(&server.ask(&request).await?).await?,
            ProxyFault::CutAfter => return server.ask(&request).await.map(drop),
            ProxyFault::Late(by) => {
                let reply = server.ask(&request).await?;
                state.late.send_modify(|count| *count += 1);
                tokio::time::sleep(by).await;
                client.send(&reply).await?;
            }
            ProxyFault::Forget => {
                server.ask(SCRIPT_FLUSH).await?;
                client.send(&server.ask(&request).await?).await?;
            }
            ProxyFault::Twice => {
                server.ask(&request).await?;
                client.send(&server.ask(&request).await?).await?;
            }
        }
    }
    Ok(())
}

/// From now on the server speaks without being asked.
async fn pass_on(mut client: Frames, mut server: Frames, state: &State) -> io::Result<()> {
    let mut is_silent = state.are_trackers_silent.subscribe();
    loop {
        // Its sender is there as long as the proxy.
        let _ = is_silent.wait_for(|it| !it).await;
        tokio::select! {
            biased;
            _changed = is_silent.changed() => {}
            frame = client.next() => match frame? {
                Some(frame) => server.send(&frame).await?,
                None => return Ok(()),
            },
            frame = server.next() => match frame? {
                Some(frame) => client.send(&frame).await?,
                None => return Ok(()),
            },
        }
    }
}

/// What is said in a transaction belongs to one connection: nothing repeats it.
fn decide(state: &State, request: &[u8], in_transaction: &mut bool) -> ProxyFault {
    let command = first_arg(request);
    let is_of_transaction = *in_transaction || command == "WATCH" || command == "MULTI";
    *in_transaction = is_of_transaction && !TRANSACTION_ENDS.contains(&command.as_str());
    if INTRODUCTIONS.contains(&command.as_str()) {
        return ProxyFault::None;
    }
    let mut plan = lock(&state.plan);
    let number = state.requests.fetch_add(1, Ordering::SeqCst);
    let fault = match plan(&Call { number, command }) {
        ProxyFault::Twice | ProxyFault::Forget if is_of_transaction => ProxyFault::None,
        fault => fault,
    };
    if fault != ProxyFault::None {
        state.faults.fetch_add(1, Ordering::SeqCst);
    }
    fault
}

/// `*2\r\n$3\r\nGET\r\n...`: the third line.
fn first_arg(request: &[u8]) -> String {
    let mut lines = request.split(|byte| *byte == b'\n').skip(2);
    let line = lines.next().unwrap_or_default();
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).to_uppercase()
}

/// One side, as whole requests or replies.
struct Frames {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Frames {
    fn new(stream: TcpStream) -> Self {
        Frames { stream, buffer: Vec::new() }
    }

    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(length) = frame_length(&self.buffer) {
                return Ok(Some(self.buffer.drain(..length).collect()));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(frame).await
    }

    async fn ask(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.send(request).await?;
        self.next().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Bytes of the first value in RESP2 or RESP3, if all of it is there.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    let count = || std::str::from_utf8(&bytes[1..end - 2]).ok()?.parse::<i64>().ok();
    let values = match bytes[0] {
        b'$' | b'!' | b'=' => {
            let length = usize::try_from(count()?).map_or(end, |length| end + length + 2);
            return (bytes.len() >= length).then_some(length);
        }
        b'*' | b'~' | b'>' => count()?.max(0),
        b'%' => 2 * count()?,
        // An attribute, and the value that it is of.
        b'|' => 2 * count()? + 1,
        _ => return Some(end),
    };
    let mut length = end;
    for _ in 0..values {
        length += frame_length(&bytes[length..])?;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_end_where_they_end() {
        for frame in [
            "+OK\r\n",
            ":-1\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "*0\r\n",
            "*-1\r\n",
            "*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n",
            "*2\r\n*1\r\n:1\r\n$-1\r\n",
            "%1\r\n+a\r\n*1\r\n:1\r\n",
            "|1\r\n+a\r\n:1\r\n+OK\r\n",
        ] {
            let with_more = format!("{frame}+x\r\n");
            assert_eq!(frame_length(with_more.as_bytes()), Some(frame.len()), "{frame:?}");
            for cut in 0..frame.len() {
                assert_eq!(frame_length(&frame.as_bytes()[..cut]), None, "{frame:?} {cut}");
            }
        }
        assert_eq!(first_arg(b"*2\r\n$3\r\nget\r\n$1\r\na\r\n"), "GET");
    }
}
