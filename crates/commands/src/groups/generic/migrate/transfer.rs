//! What MIGRATE says to the other server, and what that answers. It runs on a thread of its own,
//! and knows nothing of the data here.

use crate::node::outbound::{Connection, Connector};
use russet_base::UnixMillis;
use russet_base::clock::Clock;
use russet_protocol::Value;
use russet_protocol::reply::Decoder;
use russet_protocol::request::{encode, encode_into};
use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// After so many bytes or values the replies are read before more is sent.
const SENT_BYTES_MAX: usize = 1 << 20;
const SENT_ITEMS_MAX: usize = 256;
const READ_BYTES: usize = 16 * 1024;
/// A reply that is longer is none: what a peer says of RESTORE is a line.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Bytes that have the timeout for themselves when they are sent.
const CHUNK_BYTES: usize = 64 * 1024;

/// A value on its way.
pub struct Item {
    pub key: Box<[u8]>,
    /// When it expires, if it does. How long that is from now is asked when it is sent, which may
    /// be long after.
    pub expiry: Option<UnixMillis>,
    pub payload: Vec<u8>,
}

pub struct Login {
    pub user: Option<Vec<u8>>,
    pub password: Vec<u8>,
}

/// What is to be transferred, and where to.
pub struct Job {
    pub host: String,
    /// None: no number that a port can have.
    pub port: Option<u16>,
    /// How long the connecting, a chunk that is sent and a reply may take.
    pub timeout: Duration,
    pub login: Option<Login>,
    pub db: i64,
    pub is_replacing: bool,
    pub items: Vec<Item>,
    pub clock: Arc<dyn Clock>,
}

/// What became of it.
pub struct Transferred {
    /// Of each item whether it is known to be there.
    pub arrived: Vec<bool>,
    /// The first thing that went wrong.
    pub failure: Option<Failure>,
}

impl Transferred {
    pub fn never_begun() -> Self {
        Transferred { arrived: Vec::new(), failure: Some(Failure::Connecting) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Connecting,
    Writing,
    Reading,
    /// The other server answered with this error.
    Answered(String),
}

impl Failure {
    /// COMPAT: in the peers' words, the slips of the pen included (tests/tests/migrate.rs).
    pub fn text(&self) -> Cow<'static, str> {
        match self {
            Failure::Connecting => "IOERR error or timeout connecting to the client".into(),
            Failure::Writing => "IOERR error or timeout writing to target instance".into(),
            Failure::Reading => "IOERR error or timeout reading to target instance".into(),
            Failure::Answered(error) => {
                format!("ERR Target instance replied with error: {error}").into()
            }
        }
    }
}

/// A job, who does it, and what became of it.
pub struct Task {
    job: Job,
    connector: Option<Arc<dyn Connector>>,
    outcome: Mutex<Option<Transferred>>,
    /// Since when nothing further is to be sent.
    given_up: OnceLock<Instant>,
}

impl Task {
    pub fn new(job: Job, connector: Option<Arc<dyn Connector>>) -> Self {
        Task { job, connector, outcome: Mutex::default(), given_up: OnceLock::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Transferred>> {
        self.outcome.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Nothing further is sent: the server is to end.
    pub fn give_up(&self) {
        self.given_up.get_or_init(Instant::now);
    }

    /// Whether that was said so long ago.
    pub fn waits(&self, time: Duration) -> bool {
        self.given_up.get().is_some_and(|since| since.elapsed() >= time)
    }

    pub fn is_over(&self) -> bool {
        self.lock().is_some()
    }

    /// What became of it, once it is over. What has arrived is told once.
    pub fn outcome(&self) -> Option<Transferred> {
        let mut outcome = self.lock();
        let Transferred { arrived, failure } = outcome.as_mut()?;
        Some(Transferred { arrived: std::mem::take(arrived), failure: failure.clone() })
    }

    /// Does the job, which takes as long as it takes.
    pub fn run(&self) {
        let mut result = Transferred { arrived: vec![false; self.job.items.len()], failure: None };
        if let Err(failure) = self.transfer(&mut result) {
            // What the other server said comes first.
            result.failure.get_or_insert(failure);
        }
        self.lock().get_or_insert(result);
    }

    /// What becomes of it does not matter any more: nothing counts as arrived, unless it is over.
    pub fn abandon(&self) {
        let failure = Some(Failure::Reading);
        self.lock().get_or_insert(Transferred { arrived: Vec::new(), failure });
    }

    fn transfer(&self, result: &mut Transferred) -> Result<(), Failure> {
        let mut link = self.connect()?;
        self.prepare(&mut link)?;
        let mut done = 0;
        while done < self.job.items.len() {
            if self.given_up.get().is_some() {
                return Err(Failure::Writing);
            }
            let (bytes, count) = self.next_requests(done);
            link.send(&bytes)?;
            for arrived in &mut result.arrived[done..done + count] {
                match link.answer()? {
                    Ok(()) => *arrived = true,
                    Err(error) => {
                        result.failure.get_or_insert(Failure::Answered(error));
                    }
                }
            }
            done += count;
        }
        Ok(())
    }

    fn connect(&self) -> Result<Link, Failure> {
        let connector = self.connector.as_ref().ok_or(Failure::Connecting)?;
        let Job { host, port, timeout, .. } = &self.job;
        let port = port.ok_or(Failure::Writing)?;
        let stream = connector.connect(host, port, *timeout).map_err(|error| {
            // COMPAT: the peers find out that nobody listens when they write.
            match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Failure::Writing,
                _ => Failure::Connecting,
            }
        })?;
        let (timeout, buffer) = (*timeout, vec![0; READ_BYTES]);
        Ok(Link { stream, decoder: Decoder::new(), buffer, timeout })
    }

    /// Logs in and selects the database.
    /// DIFFERS: nothing else is sent before that has worked, so that no value is put where it does
    /// not belong.
    fn prepare(&self, link: &mut Link) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        if let Some(Login { user, password }) = &self.job.login {
            match user {
                Some(user) => encode_into(&[b"AUTH", user.as_slice(), password], &mut bytes),
                None => encode_into(&[b"AUTH", password.as_slice()], &mut bytes),
            }
            link.send(&bytes)?;
            link.answer()?.map_err(Failure::Answered)?;
        }
        link.send(&encode(&["SELECT", &self.job.db.to_string()]))?;
        link.answer()?.map_err(Failure::Answered)
    }

    /// The next values as requests, and how many they are.
    fn next_requests(&self, done: usize) -> (Vec<u8>, usize) {
        let (mut bytes, mut count) = (Vec::new(), 0);
        let now = self.job.clock.now();
        for Item { key, expiry, payload } in self.job.items[done..].iter().take(SENT_ITEMS_MAX) {
            if count > 0 && bytes.len() + payload.len() > SENT_BYTES_MAX {
                break;
            }
            // 0 would be for ever.
            let ttl = expiry.map_or(0, |at| (at.0 - now.0).max(1)).to_string();
            let mut call: Vec<&[u8]> = vec![b"RESTORE", key, ttl.as_bytes(), payload];
            if self.job.is_replacing {
                call.push(b"REPLACE");
            }
            encode_into(&call, &mut bytes);
            count += 1;
        }
        (bytes, count)
    }
}

/// A conversation with the other server.
struct Link {
    stream: Box<dyn Connection>,
    decoder: Decoder,
    buffer: Vec<u8>,
    timeout: Duration,
}

impl Link {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut chunks = bytes.chunks(CHUNK_BYTES);
        chunks.try_for_each(|chunk| self.send_chunk(chunk)).map_err(|_| Failure::Writing)
    }

    fn send_chunk(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        let until = Instant::now() + self.timeout;
        while !chunk.is_empty() {
            self.stream.set_timeout(left(until)?)?;
            match self.stream.write(chunk) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => chunk = &chunk[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next reply: fine, or what else it says.
    fn answer(&mut self) -> Result<Result<(), String>, Failure> {
        let until = Instant::now() + self.timeout;
        let mut received = 0;
        loop {
            match self.decoder.next_reply() {
                Ok(Some(reply)) => return Ok(result_of(reply)),
                Ok(None) => {}
                Err(_) => return Err(Failure::Reading),
            }
            let left = left(until).and_then(|left| self.stream.set_timeout(left));
            left.map_err(|_| Failure::Reading)?;
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(Failure::Reading),
                Ok(count) => {
                    received += count;
                    self.decoder.feed(&self.buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Reading),
            }
            if received > REPLY_BYTES_MAX {
                return Err(Failure::Reading);
            }
        }
    }
}

/// DIFFERS: only `OK` means that it worked. A key is not deleted because something was answered
/// that is no error: by a server that has queued the call, say.
fn result_of(reply: Value) -> Result<(), String> {
    match reply {
        Value::Status(text) if text == b"OK" => Ok(()),
        Value::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        Value::Status(text) => Err(format!("unexpected {}", String::from_utf8_lossy(&text))),
        _ => Err("unexpected reply".to_owned()),
    }
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
