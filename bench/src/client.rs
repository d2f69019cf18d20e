//! A plain blocking client for the questions asked between measurements, and a bare one that only
//! counts replies, for the connections whose latency is measured.

use crate::failure::{Doing, Failure, Result};
use crate::replies::{ReplyCounter, Tally};
use russet_protocol::Value;
use russet_protocol::reply::Decoder;
use russet_protocol::request::{encode, encode_into};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);

fn open(port: u16) -> Result<TcpStream> {
    let doing = || format!("connecting to port {port}");
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).doing(doing())?;
    stream.set_nodelay(true).doing(doing())?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX)).doing(doing())?;
    stream.set_write_timeout(Some(ANSWER_WAIT_MAX)).doing(doing())?;
    Ok(stream)
}

/// Reads once; a closed connection is an error.
fn receive<'a>(stream: &mut TcpStream, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
    match stream.read(buffer).doing("reading a reply")? {
        0 => Err(Failure::server("the server", "it hung up")),
        bytes => Ok(&buffer[..bytes]),
    }
}

/// Asks and understands the answer.
pub struct Client {
    stream: TcpStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Client {
    pub fn connect(port: u16) -> Result<Client> {
        Ok(Client { stream: open(port)?, decoder: Decoder::new(), buffer: vec![0; 64 * 1024] })
    }

    pub fn ask(&mut self, args: &[&str]) -> Result<Value> {
        let doing = || format!("sending {}", args.join(" "));
        self.stream.write_all(&encode(args)).doing(doing())?;
        loop {
            match self.decoder.next_reply() {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.decoder.feed(receive(&mut self.stream, &mut self.buffer)?),
                Err(error) => return Err(Failure::server("the server", error.to_string())),
            }
        }
    }

    /// Sends commands in one pipeline; their answers. An error is a failure.
    pub fn ask_all<const ARGS: usize>(&mut self, calls: &[[&str; ARGS]]) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(calls.len());
        self.exchange(calls, calls.len(), |value| values.push(value))?;
        Ok(values)
    }

    /// Sends requests in one pipeline, and hands on so many replies. An error is a failure.
    pub fn exchange<W: AsRef<[u8]>>(
        &mut self,
        requests: &[impl AsRef<[W]>],
        replies: usize,
        mut each: impl FnMut(Value),
    ) -> Result<()> {
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| encode_into(request.as_ref(), &mut bytes));
        self.stream.write_all(&bytes).doing("sending a pipeline")?;
        let mut read = 0;
        while read < replies {
            match self.decoder.next_reply() {
                Ok(Some(value)) if value.is_error() => {
                    return Err(Failure::server("the server", format!("answered {value:?}")));
                }
                Ok(Some(value)) => {
                    each(value);
                    read += 1;
                }
                Ok(None) => self.decoder.feed(receive(&mut self.stream, &mut self.buffer)?),
                Err(error) => return Err(Failure::server("the server", error.to_string())),
            }
        }
        Ok(())
    }

    /// The number that a command answers.
    pub fn number(&mut self, args: &[&str]) -> Result<i64> {
        let value = self.ask(args)?;
        let strange = || Failure::server(args.join(" "), format!("answered {value:?}"));
        value.as_integer().ok_or_else(strange)
    }

    /// A numeric field of INFO, if the server has it.
    pub fn info_field(&mut self, section: &str, field: &str) -> Result<Option<u64>> {
        let value = self.ask(&["INFO", section])?;
        let text = String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(line.and_then(|number| number.trim().parse().ok()))
    }
}

/// Sends prepared bytes and waits until the replies have come, whatever they are.
pub struct BareClient {
    stream: TcpStream,
    counter: ReplyCounter,
    tally: Tally,
    buffer: Vec<u8>,
}

impl BareClient {
    pub fn connect(port: u16) -> Result<BareClient> {
        let (counter, tally) = (ReplyCounter::default(), Tally::default());
        Ok(BareClient { stream: open(port)?, counter, tally, buffer: vec![0; 256 * 1024] })
    }

    /// One request, one reply.
    pub fn exchange(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).doing("sending a request")?;
        loop {
            let bytes = receive(&mut self.stream, &mut self.buffer)?;
            let replies = self.counter.feed(bytes, &mut self.tally);
            if let Some(error) = &self.tally.first_error {
                return Err(Failure::server("the server", format!("answered an error: {error}")));
            }
            if replies > 0 {
                return Ok(());
            }
        }
    }
}
