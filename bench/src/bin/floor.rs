#![forbid(unsafe_code)]
//! The floor: a server that parses requests, answers `+OK` to each command and does nothing else.
//! What it costs is what sockets, event loops and parsing cost; no server on the same loop can be
//! cheaper.
//!
//! Each thread has a poller and its own connections; the main thread accepts and deals them out.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use russet_protocol::{Batch, RequestLimits};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};

const REPLY: &[u8] = b"+OK\r\n";
const BATCH_COMMANDS_MAX: usize = 1024;
const READ_BYTES: usize = 64 * 1024;
const WAKER: Token = Token(usize::MAX);

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

/// Where the main thread leaves a connection for a loop.
struct Inlet {
    streams: Sender<TcpStream>,
    waker: Waker,
}

fn serve(port: u16, threads: usize) -> io::Result<()> {
    let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let mut inlets = Vec::new();
    for _ in 0..threads {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (streams, arrivals) = channel();
        std::thread::spawn(move || Loop::new(poll, arrivals).run());
        inlets.push(Inlet { streams, waker });
    }
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
    println!("Ready to accept connections tcp");
    let mut events = Events::with_capacity(16);
    let mut turn = 0;
    loop {
        poll.poll(&mut events, None)?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let inlet = &inlets[turn % inlets.len()];
                    turn += 1;
                    inlet.streams.send(stream).map_err(|_| io::Error::other("a loop ended"))?;
                    inlet.waker.wake()?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes read and not yet parsed.
    input: Vec<u8>,
    output: Vec<u8>,
    batch: Batch,
}

struct Loop {
    poll: Poll,
    arrivals: Receiver<TcpStream>,
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
    limits: RequestLimits,
}

impl Loop {
    fn new(poll: Poll, arrivals: Receiver<TcpStream>) -> Loop {
        let (buffer, limits) = (vec![0; READ_BYTES], RequestLimits::default());
        Loop { poll, arrivals, connections: Vec::new(), buffer, limits }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        loop {
            if let Err(error) = self.poll.poll(&mut events, None)
                && error.kind() != ErrorKind::Interrupted
            {
                eprintln!("floor: {error}");
                return;
            }
            for event in &events {
                match event.token() {
                    WAKER => self.adopt(),
                    Token(index) => self.attend(index),
                }
            }
        }
    }

    fn adopt(&mut self) {
        while let Ok(mut stream) = self.arrivals.try_recv() {
            let free = self.connections.iter().position(Option::is_none);
            let index = free.unwrap_or(self.connections.len());
            let both = Interest::READABLE | Interest::WRITABLE;
            let ready = stream.set_nodelay(true);
            let ready = ready.and(self.poll.registry().register(&mut stream, Token(index), both));
            if ready.is_err() {
                continue;
            }
            let (input, output, batch) = (Vec::new(), Vec::new(), Batch::new());
            let connection = Some(Connection { stream, input, output, batch });
            match free {
                Some(free) => self.connections[free] = connection,
                None => self.connections.push(connection),
            }
        }
    }

    /// A connection that ends, or sends what is no request, is dropped.
    fn attend(&mut self, index: usize) {
        let Some(Some(connection)) = self.connections.get_mut(index) else { return };
        if connection.attend(&mut self.buffer, &self.limits).is_err() {
            self.connections[index] = None;
        }
    }
}

impl Connection {
    fn attend(&mut self, buffer: &mut [u8], limits: &RequestLimits) -> io::Result<()> {
        loop {
            let bytes = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let drained = bytes < buffer.len();
            if self.input.is_empty() {
                let parsed = self.answer(&buffer[..bytes], limits)?;
                self.input.extend_from_slice(&buffer[parsed..bytes]);
            } else {
                self.input.extend_from_slice(&buffer[..bytes]);
                let input = std::mem::take(&mut self.input);
                let parsed = self.answer(&input, limits)?;
                self.input = input;
                self.input.drain(..parsed);
            }
            if drained {
                return self.flush();
            }
        }
    }

    /// Answers every whole command; returns how many bytes they took.
    fn answer(&mut self, bytes: &[u8], limits: &RequestLimits) -> io::Result<usize> {
        let mut start = 0;
        loop {
            let batch = self.batch.parse_batch(&bytes[start..], limits, BATCH_COMMANDS_MAX);
            let commands = batch.map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
            start += self.batch.consumed();
            for _ in 0..commands {
                self.output.extend_from_slice(REPLY);
            }
            if commands < BATCH_COMMANDS_MAX {
                return Ok(start);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..sent);
        Ok(())
    }
}
