//! The replay law: what calls record, run again in order on an empty server where nothing expires
//! by itself, gives the same data.
//!
//! [`Pair`] holds the two servers and compares them; [`streams`] draws calls from the differential
//! generator; [`clients`] lets several connections work on the same keys at the same time.

pub mod clients;
pub mod seasoning;
pub mod streams;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::client::{Client, REPLY_WAIT, ReadError, Reply, encode};
use crate::server::{Kind, Server};
use crate::wire::expect::print;

/// Records that are sent before the replies to them are read.
const REPLAYED_AT_ONCE: usize = 64;
/// How far ahead the moment of a look lies, at first.
const LEAD_MS: u64 = 3;

/// A database, and the command that gives a change to it again.
pub type Record = Vec<Vec<u8>>;

/// What the recorder held at a moment, and what it had recorded since the look before.
#[derive(Clone)]
pub struct Look {
    pub records: Vec<Record>,
    digest: Reply,
    unix_ms: String,
    /// Names of all commands that have recorded anything so far.
    commands: Vec<String>,
}

/// Looks at the recorder, on a connection of its own.
pub struct Observer(Client);

/// Two servers: one records what it does, the other does it again.
pub struct Pair {
    recorder: Server,
    replayer: Server,
    /// Records so far.
    pub count: usize,
    /// Commands that have changed something.
    pub recorded: BTreeSet<String>,
    /// A connection from before any case, so that no password stands in its way.
    observer: Observer,
    /// Cases whose configuration lets nobody look: the next look is at what they did, too.
    pub postponed: usize,
}

impl Look {
    /// The same moment, reached by other records.
    pub fn with_records(&self, records: Vec<Record>) -> Look {
        Look { records, ..self.clone() }
    }
}

fn texts(reply: &Reply) -> Record {
    let Reply::Array(items) = reply else { return Vec::new() };
    let text = |item: &Reply| match item {
        Reply::Int(number) => number.to_string().into_bytes(),
        other => other.text().unwrap_or_default().to_vec(),
    };
    items.iter().map(text).collect()
}

/// A record as a line of text.
pub fn show(record: &Record) -> String {
    let args: Vec<_> = record.iter().map(|arg| arg.escape_ascii().to_string()).collect();
    args.join(" ")
}

fn said(error: ReadError) -> String {
    error.to_string()
}

impl Observer {
    fn connect(address: SocketAddr) -> Result<Observer, String> {
        Client::connect(address).map(Observer).map_err(|error| error.to_string())
    }

    /// What the recorder holds now, and what it has recorded up to now: both of one moment.
    ///
    /// The digest is asked for as of a moment that must not be over when it is taken: a request
    /// under an id, say, is forgotten in silence when its time is over.
    pub fn look(&mut self) -> Result<Look, String> {
        self.0.call(&["CLIENT", "UNPAUSE"]).map_err(said)?;
        let mut records = Vec::new();
        let mut lead_ms = LEAD_MS;
        loop {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let since_ms = since.map_err(|error| error.to_string())?.as_millis() as u64;
            let (mut look, seen_ms) = self.look_at(since_ms + lead_ms)?;
            records.append(&mut look.records);
            if seen_ms <= since_ms + lead_ms {
                return Ok(Look { records, ..look });
            }
            lead_ms *= 2;
        }
    }

    /// A look, and when it was over.
    fn look_at(&mut self, unix_ms: u64) -> Result<(Look, u64), String> {
        let unix_ms = unix_ms.to_string();
        let calls: [&[&str]; 5] = [
            &["MULTI"],
            &["DEBUG", "DIGEST", "FULL", &unix_ms],
            &["DEBUG", "RECORD", "TAKE"],
            &["DEBUG", "RECORD", "COMMANDS"],
            &["TIME"],
        ];
        for call in calls {
            self.0.call(call).map_err(said)?;
        }
        let outcome = self.0.call(&["EXEC"]).map_err(said)?;
        let Reply::Array(parts) = &outcome else { return Err(print(&outcome)) };
        let [digest, Reply::Array(records), commands, time] = &parts[..] else {
            return Err(print(&outcome));
        };
        let number = |text: &Vec<u8>| String::from_utf8_lossy(text).parse().unwrap_or(0);
        let time: Vec<u64> = texts(time).iter().map(number).collect();
        let [seconds, micros] = time[..] else { return Err(print(&outcome)) };
        let name = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        let look = Look {
            records: records.iter().map(texts).collect(),
            digest: digest.clone(),
            unix_ms,
            commands: texts(commands).into_iter().map(name).collect(),
        };
        Ok((look, seconds * 1000 + micros / 1000))
    }
}

impl Pair {
    /// Starts both; the recorder with these directives.
    pub fn start(directives: &[&str]) -> Result<Self, String> {
        let directives = [&["--enable-debug-command", "yes"], directives].concat();
        let recorder = Server::start(Kind::Russet, &directives)?;
        let replayer = Server::start(Kind::Russet, &directives)?;
        let mut observer = Observer::connect(recorder.address())?;
        let started = observer.0.call(&["DEBUG", "RECORD", "START"]).map_err(said)?;
        assert_eq!(started, Reply::Status(b"OK".into()));
        let mut client = Client::connect(replayer.address()).map_err(|error| error.to_string())?;
        client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).map_err(said)?;
        let recorded = BTreeSet::new();
        Ok(Pair { recorder, replayer, count: 0, recorded, observer, postponed: 0 })
    }

    pub fn recorder(&self) -> SocketAddr {
        self.recorder.address()
    }

    pub fn observer(&self) -> Result<Observer, String> {
        Observer::connect(self.recorder())
    }

    pub fn look(&mut self) -> Result<Look, String> {
        self.observer.look()
    }

    /// Lets the replayer forget all that it holds.
    pub fn start_over(&mut self) -> Result<(), String> {
        let mut replayer = self.connect_to_replayer()?;
        for call in [&["FLUSHALL"][..], &["FUNCTION", "FLUSH"]] {
            let reply = replayer.call(call).map_err(said)?;
            assert_eq!(reply, Reply::Status(b"OK".into()), "{call:?}");
        }
        Ok(())
    }

    /// Does again what was recorded since the last time, and compares.
    pub fn catch_up(&mut self) -> Result<(), String> {
        match self.look() {
            Ok(look) => self.compare(&look),
            Err(_) => {
                self.postponed += 1;
                self.observer = self.observer()?;
                Ok(())
            }
        }
    }

    /// Does again what is in this look, and compares what both servers have come to hold.
    pub fn compare(&mut self, look: &Look) -> Result<(), String> {
        self.recorded.extend(look.commands.iter().cloned());
        self.count += look.records.len();
        let mut replayer = self.connect_to_replayer()?;
        let mut faults = String::new();
        for records in look.records.chunks(REPLAYED_AT_ONCE) {
            replay(&mut replayer, records, &mut faults)?;
        }
        let again = replayer.call(&["DEBUG", "DIGEST", "FULL", &look.unix_ms]).map_err(said)?;
        if look.digest != again {
            let _ = writeln!(faults, "at {} the data differs after:", look.unix_ms);
            look.records.iter().for_each(|record| {
                let _ = writeln!(faults, "    {}", show(record));
            });
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    fn connect_to_replayer(&self) -> Result<Client, String> {
        Client::connect(self.replayer.address()).map_err(|error| error.to_string())
    }
}

/// A server that records what it does. When a test is done with it, the records must give the data
/// again.
pub struct Recorded(Pair);

impl Recorded {
    pub fn start(directives: &[&str]) -> Recorded {
        Recorded(Pair::start(directives).expect("both servers start"))
    }
}

impl Deref for Recorded {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0.recorder
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let look = self.0.look().expect("the recorder still runs");
            let outcome = self.0.compare(&look);
            outcome.expect("the records give the data again");
        }
    }
}

fn replay(client: &mut Client, records: &[Record], faults: &mut String) -> Result<(), String> {
    let call = |record: &Record| {
        let args = [b"DEBUG".to_vec(), b"REPLAY".to_vec()];
        encode(&args.into_iter().chain(record.iter().cloned()).collect::<Vec<_>>())
    };
    let bytes: Vec<u8> = records.iter().flat_map(call).collect();
    client.send_raw(&bytes).map_err(|error| error.to_string())?;
    for record in records {
        let reply = client.read(REPLY_WAIT).map_err(|e| format!("{}: {e}", show(record)))?;
        if reply.is_error() {
            let _ = writeln!(faults, "{}: {}", show(record), print(&reply));
        }
    }
    Ok(())
}
