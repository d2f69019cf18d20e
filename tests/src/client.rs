//! A small blocking RESP client: one connection, replies decoded into [`Reply`].

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::tls::Wire;

/// How long a reply may take before the test fails.
pub const REPLY_WAIT: Duration = Duration::from_secs(30);
/// A reply of which so much is there may take long to decode.
const LONG_REPLY_BYTES: usize = 1 << 20;
const LONG_REPLY_PAUSE: Duration = Duration::from_millis(5);

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resp {
    V2,
    V3,
}

/// One decoded reply. The three ways to say "nothing" are kept apart; doubles keep their digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    /// `_`
    Null,
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
    Double(Vec<u8>),
    Bool(bool),
    Verbatim {
        format: Vec<u8>,
        text: Vec<u8>,
    },
    Big(Vec<u8>),
}

impl Reply {
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// The text of a string-like reply.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Reply::Status(text)
            | Reply::Error(text)
            | Reply::Bulk(text)
            | Reply::Double(text)
            | Reply::Big(text)
            | Reply::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// Why a reply could not be read.
#[derive(Debug)]
pub enum ReadError {
    Closed,
    TimedOut,
    /// Not RESP; what was seen.
    Malformed(String),
    Io(io::Error),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Closed => write!(f, "the server closed the connection"),
            ReadError::TimedOut => write!(f, "no reply in time"),
            ReadError::Malformed(what) => write!(f, "not RESP: {what}"),
            ReadError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ReadError::TimedOut,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => ReadError::Closed,
            _ => ReadError::Io(error),
        }
    }
}

/// One connection.
pub struct Client {
    stream: Wire,
    buffer: Vec<u8>,
    /// How much of the buffer has been read: a deep pipeline must not move it for each reply.
    taken: usize,
}

impl Client {
    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        Ok(Client::over(Wire::connect(address)?))
    }

    /// A client of a connection that is there.
    pub fn over(stream: Wire) -> Client {
        Client { stream, buffer: Vec::new(), taken: 0 }
    }

    /// As `CLIENT LIST` shows this connection in `addr=`.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.stream.socket().local_addr()
    }

    pub fn send(&mut self, args: &[Vec<u8>]) -> io::Result<()> {
        self.send_raw(&encode(args))
    }

    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// The writing half of a plain connection, for a thread of its own.
    pub fn sender(&self) -> io::Result<TcpStream> {
        match &self.stream {
            Wire::Plain(socket) => socket.try_clone(),
            Wire::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends one command and reads one reply.
    pub fn call<W: AsRef<[u8]>>(&mut self, args: &[W]) -> Result<Reply, ReadError> {
        let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_ref().to_vec()).collect();
        self.send(&args)?;
        self.read(REPLY_WAIT)
    }

    /// Waits until INFO says that no rewrite of the log is under way, and that the last one went
    /// well.
    pub fn await_rewrite(&mut self) {
        let started = Instant::now();
        loop {
            let info = self.call(&["INFO", "persistence"]).expect("INFO is answered");
            let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
            if info.contains("aof_rewrite_in_progress:0") {
                assert!(info.contains("aof_last_bgrewrite_status:ok"), "{info}");
                return;
            }
            assert!(started.elapsed() < REPLY_WAIT, "{info}");
            std::thread::yield_now();
        }
    }

    /// The next reply, waiting up to `wait` for each piece of it.
    pub fn read(&mut self, wait: Duration) -> Result<Reply, ReadError> {
        loop {
            match decode(&self.buffer[self.taken..]).map_err(ReadError::Malformed)? {
                Some((reply, used)) => {
                    self.taken += used;
                    return Ok(reply);
                }
                None => self.fill_well(wait)?,
            }
        }
    }

    /// Reads on. What is there of a long reply is decoded anew each time, so not before there is
    /// half as much again, or nothing comes for a moment.
    fn fill_well(&mut self, wait: Duration) -> Result<(), ReadError> {
        self.fill(wait)?;
        let len = self.buffer.len();
        if len >= LONG_REPLY_BYTES {
            while self.buffer.len() < len + len / 2 && self.fill(LONG_REPLY_PAUSE).is_ok() {}
        }
        Ok(())
    }

    /// A reply that is there already, without waiting for one.
    pub fn glance(&mut self) -> Result<Option<Reply>, ReadError> {
        match self.is_answered()? {
            // The first byte is here: the rest is on its way.
            true => self.read(REPLY_WAIT).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a reply is there, or begins to be. It is still to be read.
    pub fn is_answered(&mut self) -> Result<bool, ReadError> {
        if self.taken < self.buffer.len() {
            return Ok(true);
        }
        self.stream.socket().set_nonblocking(true)?;
        let seen = self.fill_with_what_is_there();
        self.stream.socket().set_nonblocking(false)?;
        match seen {
            Err(ReadError::TimedOut) => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    /// Exactly this many bytes, or what came before the server closed or fell silent.
    pub fn read_raw(&mut self, count: usize, wait: Duration) -> Vec<u8> {
        while self.buffer.len() - self.taken < count && self.fill(wait).is_ok() {}
        let end = self.buffer.len().min(self.taken + count);
        let bytes = self.buffer[self.taken..end].to_vec();
        self.taken = end;
        bytes
    }

    /// Whether the server closes the connection within `wait` without another byte.
    pub fn is_closed(&mut self, wait: Duration) -> bool {
        self.taken == self.buffer.len() && matches!(self.fill(wait), Err(ReadError::Closed))
    }

    fn fill(&mut self, wait: Duration) -> Result<(), ReadError> {
        self.stream.socket().set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        self.fill_with_what_is_there()
    }

    /// What the connection gives, which waits or not.
    fn fill_with_what_is_there(&mut self) -> Result<(), ReadError> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let mut chunk = [0; 64 * 1024];
        match self.stream.read(&mut chunk)? {
            0 => Err(ReadError::Closed),
            n => {
                self.buffer.extend_from_slice(&chunk[..n]);
                Ok(())
            }
        }
    }
}

/// A request as an array of bulk strings.
pub fn encode(args: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The first reply in `bytes` and how many bytes it took; None while it is incomplete.
pub fn decode(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let mut cursor = Cursor { bytes, at: 0 };
    Ok(cursor.reply()?.map(|reply| (reply, cursor.at)))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn reply(&mut self) -> Result<Option<Reply>, String> {
        let Some(line) = self.line() else { return Ok(None) };
        let Some((&kind, rest)) = line.split_first() else {
            return Err("an empty line".to_owned());
        };
        let rest = rest.to_vec();
        Ok(Some(match kind {
            b'+' => Reply::Status(rest),
            b'-' => Reply::Error(rest),
            b':' => Reply::Int(number(&rest)?),
            b',' => Reply::Double(rest),
            b'(' => Reply::Big(rest),
            b'_' if rest.is_empty() => Reply::Null,
            b'#' if rest == b"t" => Reply::Bool(true),
            b'#' if rest == b"f" => Reply::Bool(false),
            b'$' if rest == b"-1" => Reply::NullBulk,
            b'*' if rest == b"-1" => Reply::NullArray,
            b'$' | b'!' | b'=' => return self.blob(kind, number(&rest)?),
            b'*' | b'~' | b'>' => return self.items(kind, number(&rest)?),
            b'%' => return self.map(number(&rest)?),
            _ => return Err(format!("line {:?}", String::from_utf8_lossy(&line))),
        }))
    }

    fn blob(&mut self, kind: u8, length: i64) -> Result<Option<Reply>, String> {
        let length = usize::try_from(length).map_err(|_| format!("length {length}"))?;
        if self.bytes.len() - self.at < length + 2 {
            return Ok(None);
        }
        let text = self.bytes[self.at..self.at + length].to_vec();
        self.at += length;
        if &self.bytes[self.at..self.at + 2] != b"\r\n" {
            return Err("a blob without its line end".to_owned());
        }
        self.at += 2;
        Ok(Some(match kind {
            b'!' => Reply::Error(text),
            b'=' if text.len() >= 4 && text[3] == b':' => {
                Reply::Verbatim { format: text[..3].to_vec(), text: text[4..].to_vec() }
            }
            b'=' => return Err("a verbatim string without a format".to_owned()),
            _ => Reply::Bulk(text),
        }))
    }

    fn items(&mut self, kind: u8, count: i64) -> Result<Option<Reply>, String> {
        let mut items = Vec::new();
        for _ in 0..usize::try_from(count).map_err(|_| format!("count {count}"))? {
            match self.reply()? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(match kind {
            b'~' => Reply::Set(items),
            b'>' => Reply::Push(items),
            _ => Reply::Array(items),
        }))
    }

    fn map(&mut self, count: i64) -> Result<Option<Reply>, String> {
        let mut pairs = Vec::new();
        for _ in 0..usize::try_from(count).map_err(|_| format!("count {count}"))? {
            let Some(key) = self.reply()? else { return Ok(None) };
            let Some(value) = self.reply()? else { return Ok(None) };
            pairs.push((key, value));
        }
        Ok(Some(Reply::Map(pairs)))
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let rest = &self.bytes[self.at..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += end + 2;
        Some(rest[..end].to_vec())
    }
}

fn number(digits: &[u8]) -> Result<i64, String> {
    let text = String::from_utf8_lossy(digits);
    text.parse().map_err(|_| format!("number {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_every_kind_and_waits_for_the_rest() {
        let bytes = b"*8\r\n+OK\r\n:-5\r\n$2\r\nhi\r\n_\r\n,1.5\r\n#t\r\n\
            =6\r\ntxt:ab\r\n%1\r\n+a\r\n*-1\r\n";
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Ok(None), "cut at {cut}");
        }
        let (reply, used) = decode(bytes).unwrap().unwrap();
        assert_eq!(used, bytes.len());
        let Reply::Array(items) = reply else { panic!("not an array") };
        assert_eq!(items[1], Reply::Int(-5));
        assert_eq!(items[7], Reply::Map(vec![(Reply::Status(b"a".to_vec()), Reply::NullArray)]));
    }

    #[test]
    fn refuses_what_is_not_resp() {
        assert!(decode(b"hello\r\n").is_err());
        assert!(decode(b"$2\r\nabc\r\n").is_err());
    }
}
