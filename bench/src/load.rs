//! The loader: one thread, one poller, many connections, each with one pipeline under way. It is
//! closed-loop: a connection sends its next pipeline when every reply to the last has come.

use crate::cpu;
use crate::failure::{Doing, Failure, Result};
use crate::replies::{ReplyCounter, Tally};
use crate::template::{Pipeline, Source, Template};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A server that sends nothing for so long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Elapsed(Duration),
    Requests(u64),
}

/// What to send.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub template: &'a Template,
    pub pipeline: usize,
    pub until: Until,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub requests: u64,
    pub elapsed: Duration,
    pub loader_cpu: Duration,
    pub tally: Tally,
}

impl Outcome {
    pub fn requests_per_s(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

pub struct Loader {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    read_buffer: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    counter: ReplyCounter,
    /// What the socket would not take yet.
    unsent: Vec<u8>,
    waits_to_write: bool,
    replies_left: usize,
    requests: usize,
}

/// The state of one run, apart from the connections that outlive it.
struct Run<'a> {
    plan: Plan<'a>,
    pipeline: Pipeline<'a>,
    source: &'a mut Source,
    deadline: Option<Instant>,
    requests_left: u64,
    requests_done: u64,
    in_flight: usize,
    tally: Tally,
}

impl Loader {
    pub fn connect(port: u16, connections: usize) -> Result<Loader> {
        let poll = Poll::new().doing("making a poller")?;
        let mut loader = Loader {
            poll,
            events: Events::with_capacity(256),
            connections: Vec::with_capacity(connections),
            read_buffer: vec![0; READ_BUFFER_BYTES],
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for index in 0..connections {
            let doing = || format!("connecting to {address}");
            // Connected while it still blocks, so that a run never meets a half-open connection.
            let stream = std::net::TcpStream::connect(address).doing(doing())?;
            stream.set_nodelay(true).doing(doing())?;
            stream.set_nonblocking(true).doing(doing())?;
            let mut stream = TcpStream::from_std(stream);
            let token = Token(index);
            loader
                .poll
                .registry()
                .register(&mut stream, token, Interest::READABLE)
                .doing(doing())?;
            loader.connections.push(Connection {
                stream,
                counter: ReplyCounter::default(),
                unsent: Vec::new(),
                waits_to_write: false,
                replies_left: 0,
                requests: 0,
            });
        }
        Ok(loader)
    }

    pub fn run(&mut self, plan: Plan<'_>, source: &mut Source) -> Result<Outcome> {
        let cpu_start = cpu::own_thread()?;
        let start = Instant::now();
        let (deadline, requests_left) = match plan.until {
            Until::Elapsed(time) => (Some(start + time), u64::MAX),
            Until::Requests(requests) => (None, requests),
        };
        let pipeline = Pipeline::new(plan.template, plan.pipeline);
        let tally = Tally::default();
        let (requests_done, in_flight) = (0, 0);
        let mut run = Run {
            plan,
            pipeline,
            source,
            deadline,
            requests_left,
            requests_done,
            in_flight,
            tally,
        };
        for (index, connection) in self.connections.iter_mut().enumerate() {
            connection.launch(&mut run).and_then(|()| connection.watch(&self.poll, index))?;
        }
        while run.in_flight > 0 {
            self.turn(&mut run)?;
        }
        Ok(Outcome {
            requests: run.requests_done,
            elapsed: start.elapsed(),
            loader_cpu: cpu::own_thread()?.saturating_sub(cpu_start),
            tally: run.tally,
        })
    }

    fn turn(&mut self, run: &mut Run<'_>) -> Result<()> {
        if let Err(error) = self.poll.poll(&mut self.events, Some(SILENCE_MAX)) {
            if error.kind() == ErrorKind::Interrupted {
                return Ok(());
            }
            return Err(error).doing("waiting for replies");
        }
        if self.events.is_empty() {
            let what = format!("no reply for {} s", SILENCE_MAX.as_secs());
            return Err(Failure::server("the server under load", what));
        }
        if run.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            run.requests_left = 0;
        }
        for event in &self.events {
            let index = event.token().0;
            let connection = &mut self.connections[index];
            if event.is_writable() {
                connection.flush()?;
            }
            if event.is_readable() || event.is_read_closed() {
                connection.receive(&mut self.read_buffer, run)?;
            }
            connection.watch(&self.poll, index)?;
        }
        Ok(())
    }
}

impl Connection {
    /// Sends the next pipeline, if the run wants one.
    fn launch(&mut self, run: &mut Run<'_>) -> Result<()> {
        let requests = run.requests_left.min(run.plan.pipeline as u64) as usize;
        if requests == 0 {
            return Ok(());
        }
        if run.deadline.is_none() {
            run.requests_left -= requests as u64;
        }
        run.in_flight += 1;
        self.requests = requests;
        self.replies_left = requests * run.plan.template.replies();
        let bytes = run.pipeline.next(requests, run.source);
        let sent = send(&mut self.stream, bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let sent = send(&mut self.stream, &self.unsent)?;
        self.unsent.drain(..sent);
        Ok(())
    }

    /// Reads until the socket is empty. A read that does not fill the buffer has emptied it, and
    /// the poller reports what comes later, so the usual pipeline costs one read.
    fn receive(&mut self, buffer: &mut [u8], run: &mut Run<'_>) -> Result<()> {
        loop {
            let bytes = match self.stream.read(buffer) {
                Ok(0) => return Err(Failure::server("the server under load", "it hung up")),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).doing("reading replies"),
            };
            let replies = self.counter.feed(&buffer[..bytes], &mut run.tally);
            let Some(left) = self.replies_left.checked_sub(replies) else {
                return Err(Failure::server("the server under load", "it sent extra replies"));
            };
            if run.tally.is_broken {
                return Err(Failure::server("the server under load", "it broke the protocol"));
            }
            self.replies_left = left;
            if left == 0 && replies > 0 {
                run.in_flight -= 1;
                run.requests_done += self.requests as u64;
                self.launch(run)?;
            }
            if bytes < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Asks to be notified of room in the socket only while there is something to send.
    fn watch(&mut self, poll: &Poll, index: usize) -> Result<()> {
        let wants_to_write = !self.unsent.is_empty();
        if wants_to_write == self.waits_to_write {
            return Ok(());
        }
        self.waits_to_write = wants_to_write;
        let both = Interest::READABLE | Interest::WRITABLE;
        let interest = if wants_to_write { both } else { Interest::READABLE };
        let registry = poll.registry();
        registry.reregister(&mut self.stream, Token(index), interest).doing("watching a socket")
    }
}

/// Sends what the socket takes at once.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(0) => break,
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).doing("sending requests"),
        }
    }
    Ok(sent)
}
