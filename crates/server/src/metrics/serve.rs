//! The sockets of `metrics-port`: one thread, few connections, each bounded in bytes and time.

use super::Subject;
use super::http::{Answer, HEAD_BYTES_MAX, Parsed, parse};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// Connections at once. Who comes then takes the place of the oldest, so that idle ones keep nobody
/// out.
const CONNECTIONS_MAX: usize = 32;
/// A connection that is not done by then is closed.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes behind the request that are read and forgotten: closing with unread bytes would cut the
/// answer off.
const REST_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 4 << 10;
const EVENTS_MAX: usize = 64;

/// Serves until the process ends, if there is where to.
pub fn start(listeners: Vec<std::net::TcpListener>, subject: Subject) -> io::Result<()> {
    if listeners.is_empty() {
        return Ok(());
    }
    let poll = Poll::new()?;
    let mut sockets = Vec::new();
    for (index, listener) in listeners.into_iter().enumerate() {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        poll.registry().register(&mut listener, Token(index), Interest::READABLE)?;
        sockets.push(listener);
    }
    let next = sockets.len();
    let mut server =
        Server { poll, listeners: sockets, connections: BTreeMap::new(), next, subject };
    let run = move || {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            server.turn(&mut events);
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(run).map(drop)
}

struct Server {
    poll: Poll,
    /// Their tokens are their indexes.
    listeners: Vec<TcpListener>,
    /// By token: the lowest is the oldest.
    connections: BTreeMap<usize, Connection>,
    /// The next token.
    next: usize,
    subject: Subject,
}

struct Connection {
    stream: TcpStream,
    deadline: Instant,
    input: Vec<u8>,
    /// The answer, once there is one, and how much of it was sent.
    output: Option<(Vec<u8>, usize)>,
    rest_bytes: usize,
}

/// Whether a connection is to be kept.
#[derive(PartialEq, Eq)]
enum Next {
    Wait,
    Close,
}

impl Server {
    fn turn(&mut self, events: &mut Events) {
        let now = Instant::now();
        let earliest = self.connections.values().map(|connection| connection.deadline).min();
        let wait = earliest.map(|deadline| deadline.saturating_duration_since(now));
        if let Err(error) = self.poll.poll(events, wait)
            && error.kind() != ErrorKind::Interrupted
        {
            // Not expected to happen; it must not become a busy loop.
            std::thread::sleep(TIME_MAX);
        }
        for event in events.iter() {
            let token = event.token().0;
            if token < self.listeners.len() {
                self.accept(token);
            } else if let Some(connection) = self.connections.get_mut(&token)
                && connection.go_on(&self.subject) == Next::Close
            {
                self.connections.remove(&token);
            }
        }
        let now = Instant::now();
        self.connections.retain(|_, connection| connection.deadline > now);
    }

    fn accept(&mut self, listener: usize) {
        loop {
            let (mut stream, _) = match self.listeners[listener].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // None waits, or there are no files left: those who wait are seen with the next.
                Err(_) => return,
            };
            if self.connections.len() >= CONNECTIONS_MAX {
                self.connections.pop_first();
            }
            let token = self.next;
            self.next += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut stream, Token(token), interest).is_ok() {
                let deadline = Instant::now() + TIME_MAX;
                let connection =
                    Connection { stream, deadline, input: Vec::new(), output: None, rest_bytes: 0 };
                self.connections.insert(token, connection);
            }
        }
    }
}

impl Connection {
    /// Reads, answers and writes as far as the socket allows.
    fn go_on(&mut self, subject: &Subject) -> Next {
        let mut buffer = [0; READ_BYTES];
        loop {
            match self.stream.read(&mut buffer) {
                // Who has asked and says no more still wants the answer.
                Ok(0) if self.has_unsent() => break,
                Ok(0) => return Next::Close,
                Ok(len) => {
                    if self.take(&buffer[..len], subject) == Next::Close {
                        return Next::Close;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Close,
            }
        }
        self.write()
    }

    fn take(&mut self, bytes: &[u8], subject: &Subject) -> Next {
        if self.output.is_some() {
            self.rest_bytes += bytes.len();
            return if self.rest_bytes > REST_BYTES_MAX { Next::Close } else { Next::Wait };
        }
        let room = (HEAD_BYTES_MAX + 1).saturating_sub(self.input.len());
        self.input.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let answer = match parse(&self.input) {
            Parsed::Incomplete => return Next::Wait,
            Parsed::Request(request) => subject.answer(&request).bytes(request.is_head),
            Parsed::Refused(status) => Answer::refusal(status).bytes(false),
        };
        self.input = Vec::new();
        self.output = Some((answer, 0));
        self.write()
    }

    fn has_unsent(&self) -> bool {
        self.output.as_ref().is_some_and(|(bytes, sent)| *sent < bytes.len())
    }

    fn write(&mut self) -> Next {
        let Some((bytes, sent)) = &mut self.output else { return Next::Wait };
        while *sent < bytes.len() {
            match self.stream.write(&bytes[*sent..]) {
                Ok(0) => return Next::Close,
                Ok(len) => *sent += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Close,
            }
        }
        // The other side closes when it has read all, or the deadline does.
        let _shut = self.stream.shutdown(std::net::Shutdown::Write);
        Next::Wait
    }
}
