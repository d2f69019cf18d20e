//! Running wire files against a server.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use russet_catalog::Command;
use russet_catalog::spec::Shape;

use super::expect::{self, Saved};
use super::file::{Case, Step, Verb, WireFile, version_numbers};
use super::quoting::{expand, quote, split};
use super::shapes::{Awaited, check, shape_of};
use super::spelling;
use crate::client::{Client, ReadError, Reply, Resp};
use crate::server::Kind;

/// How long a reply, a wait or an `until>` may take.
const WAIT: Duration = Duration::from_secs(5);
/// Between two looks at something that is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// More of a text than this is not shown in a failure.
const SHOWN_CHARS_MAX: usize = 300;

/// A server to talk to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub kind: Kind,
    pub version: Vec<u32>,
}

impl Endpoint {
    /// Asks the server what it is.
    pub fn of(address: SocketAddr) -> Result<Endpoint, String> {
        let mut client = Client::connect(address).map_err(|error| format!("{address}: {error}"))?;
        let reply = client.call(&["INFO", "server"]).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let (kind, version) = match field("server_name:") {
            Some("valkey") => (Kind::Valkey, field("valkey_version:")),
            Some("russet") => (Kind::Russet, field("russet_version:")),
            _ => (Kind::Redis, field("redis_version:")),
        };
        Ok(Endpoint { address, kind, version: version_numbers(version.unwrap_or("0")) })
    }

    fn has(&self, case: &Case) -> bool {
        // Russet has what any peer has.
        self.kind == Kind::Russet
            || case.needs.is_empty()
            || case.needs.iter().any(|need| need.kind == self.kind && self.version >= need.version)
    }
}

/// What came of one file.
#[derive(Debug, Default)]
pub struct Report {
    pub path: PathBuf,
    pub run: usize,
    pub skipped: usize,
    pub failures: Vec<Failure>,
    /// What replies of Russet looked like.
    pub shapes: Vec<(Command, Shape)>,
}

/// The first thing that went wrong in a case.
#[derive(Debug)]
pub struct Failure {
    pub path: PathBuf,
    pub resp: Resp,
    pub case: String,
    pub line: usize,
    pub sent: String,
    pub expected: String,
    pub got: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, line, resp, case) = (self.path.display(), self.line, self.resp, &self.case);
        let (sent, expected, got) = (cut(&self.sent), cut(&self.expected), cut(&self.got));
        write!(
            f,
            "{path}:{line} [{resp:?}] {case}: sent `{sent}` expected `{expected}` got `{got}`"
        )
    }
}

/// The beginning of a text that may be very long.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Runs every case of the file that the server has, in one protocol.
pub fn run_file(path: &Path, endpoint: &Endpoint, resp: Resp) -> Report {
    run_file_observed(path, endpoint, resp, &mut |_| Ok(()))
}

/// As [`run_file`]. After each case, before what it has done is undone, `observe` may find fault.
pub fn run_file_observed(
    path: &Path,
    endpoint: &Endpoint,
    resp: Resp,
    observe: &mut dyn FnMut(&Case) -> Result<(), String>,
) -> Report {
    let mut report = Report { path: path.to_owned(), ..Report::default() };
    let broken = |got: String| Failure {
        path: path.to_owned(),
        resp,
        case: String::new(),
        line: 0,
        sent: String::new(),
        expected: "a file and a server".to_owned(),
        got,
    };
    let file = match WireFile::read(path) {
        Ok(file) => file,
        Err(why) => {
            report.failures.push(broken(why));
            return report;
        }
    };
    for case in &file.cases {
        if case.only.is_some_and(|only| only != resp) {
            continue;
        }
        if !endpoint.has(case) {
            report.skipped += 1;
            continue;
        }
        report.run += 1;
        match Talk::begin(endpoint, resp, case.bare) {
            Ok(mut talk) => {
                let outcome = talk.run(case);
                report.shapes.append(&mut talk.shapes);
                let observed = observe(case).map_err(|got| Wrong {
                    line: 0,
                    sent: String::new(),
                    expected: "nothing for the observer to find".to_owned(),
                    got,
                });
                let undone = talk.end();
                if let Err(wrong) = outcome.and(observed).and(undone) {
                    report.failures.push(wrong.into_failure(path, case, resp));
                }
            }
            Err(why) => {
                report.failures.push(broken(why));
                return report;
            }
        }
    }
    report
}

/// How many steps one expectation takes: a `<` line, or a `<2` and a `<3` line.
fn expectation_length(steps: &[Step]) -> usize {
    let only = |step: &Step| match step.verb {
        Verb::Expect(only, _) => Some((step.connection, only)),
        _ => None,
    };
    match (steps.first().and_then(only), steps.get(1).and_then(only)) {
        (Some((one, Some(first))), Some((other, Some(second)))) if one == other => {
            if first == second { 1 } else { 2 }
        }
        (Some(_), _) => 1,
        (None, _) => 0,
    }
}

/// What went wrong, before it is known in which file.
pub struct Wrong {
    pub line: usize,
    pub sent: String,
    pub expected: String,
    pub got: String,
}

impl Wrong {
    fn into_failure(self, path: &Path, case: &Case, resp: Resp) -> Failure {
        let Wrong { line, sent, expected, got } = self;
        let line = if line == 0 { case.line } else { line };
        Failure { path: path.to_owned(), resp, case: case.title.clone(), line, sent, expected, got }
    }
}

struct Connection {
    client: Client,
    resp: Resp,
    /// Set when a HELLO or RESET was sent whose success switches the protocol.
    switching: Option<Resp>,
    last_sent: String,
    awaits_reply: bool,
    awaited: Awaited,
}

/// One case under way: its connections, saved values and changed configuration.
pub struct Talk<'a> {
    endpoint: &'a Endpoint,
    resp: Resp,
    bare: bool,
    control: Client,
    connections: BTreeMap<char, Connection>,
    saved: HashMap<String, Vec<u8>>,
    config_before: Vec<(String, Vec<u8>)>,
    shapes: Vec<(Command, Shape)>,
}

impl<'a> Talk<'a> {
    /// An empty keyspace and no connections yet.
    pub fn begin(endpoint: &'a Endpoint, resp: Resp, bare: bool) -> Result<Talk<'a>, String> {
        let mut control =
            Client::connect(endpoint.address).map_err(|e| format!("{}: {e}", endpoint.address))?;
        match control.call(&["FLUSHALL"]) {
            Ok(Reply::Status(_)) => {}
            Ok(other) => return Err(format!("FLUSHALL: {}", expect::print(&other))),
            Err(error) => return Err(format!("FLUSHALL: {error}")),
        }
        let (connections, saved, config_before, shapes) = Default::default();
        Ok(Talk { endpoint, resp, bare, control, connections, saved, config_before, shapes })
    }

    fn run(&mut self, case: &Case) -> Result<(), Wrong> {
        let mut at = 0;
        while at < case.steps.len() {
            let step = &case.steps[at];
            at += 1;
            match &step.verb {
                Verb::Until(text) => {
                    let next = case.steps[at..].iter().find(|next| self.applies(next));
                    self.until(step, text, next)?;
                    at += expectation_length(&case.steps[at..]);
                }
                Verb::Expect(..) if !self.applies(step) => {}
                _ => self.step(step)?,
            }
        }
        self.nothing_unread()
    }

    /// Whether an expectation is for the protocol that its connection speaks.
    pub fn applies(&self, step: &Step) -> bool {
        match &step.verb {
            Verb::Expect(Some(only), _) => {
                *only == self.connections.get(&step.connection).map_or(self.resp, |c| c.resp)
            }
            Verb::Expect(None, _) => true,
            _ => false,
        }
    }

    /// Does one step that is not an `until>`.
    pub fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        let name = step.connection;
        match &step.verb {
            Verb::Send(text) | Verb::Until(text) => {
                self.send(name, text).map_err(|why| self.wrong(step, "to send", why))
            }
            Verb::SendRaw(bytes) => {
                self.send_raw(name, bytes).map_err(|why| self.wrong(step, "to send", why))
            }
            Verb::Expect(_, text) => {
                let reply = self.read(name, WAIT).map_err(|why| self.wrong(step, text, why))?;
                match self.is_as_expected(name, text, &reply) {
                    Ok(true) => Ok(()),
                    Ok(false) => {
                        let lacks =
                            expect::parse(text).map(|e| e.lacks(&reply)).unwrap_or_default();
                        Err(self.wrong(step, text, lacks + &expect::print(&reply)))
                    }
                    Err(why) => Err(self.wrong(step, text, why)),
                }
            }
            Verb::ExpectRaw(want) => {
                let got = match self.open(name) {
                    Ok(connection) => connection.client.read_raw(want.len(), WAIT),
                    Err(why) => return Err(self.wrong(step, "a connection", why)),
                };
                match &got == want {
                    true => Ok(()),
                    false => Err(self.wrong(step, &quote(want), quote(&got))),
                }
            }
            Verb::Closed => self.closed(step),
            Verb::Close => match self.address_of(&name.to_string()) {
                Ok(address) => {
                    self.connections.remove(&name);
                    self.wait(step, "gone", |talk| talk.client_line(&address).is_none())
                }
                Err(why) => Err(self.wrong(step, "a connection", why)),
            },
            Verb::WaitBlocked => self.wait(step, "blocked", |talk| talk.is_blocked(name)),
            Verb::Silent => match self.read(name, Duration::from_millis(10)) {
                Err(_) => Ok(()),
                Ok(reply) => Err(self.wrong(step, "silence", expect::print(&reply))),
            },
            Verb::Config(key, value) => self
                .configure(key, value.as_deref())
                .map_err(|why| self.wrong(step, "CONFIG to work", why)),
        }
    }

    /// Sends until the expectation is met.
    fn until(&mut self, step: &Step, text: &str, next: Option<&Step>) -> Result<(), Wrong> {
        let Some(Step { verb: Verb::Expect(_, want), .. }) = next else {
            return Err(self.wrong(step, "an expectation after until>", String::new()));
        };
        let deadline = Instant::now() + WAIT;
        loop {
            self.send(step.connection, text).map_err(|why| self.wrong(step, want, why))?;
            let reply =
                self.read(step.connection, WAIT).map_err(|why| self.wrong(step, want, why))?;
            match self.is_as_expected(step.connection, want, &reply) {
                Ok(true) => return Ok(()),
                Err(why) => return Err(self.wrong(step, want, why)),
                Ok(false) if Instant::now() > deadline => {
                    return Err(self.wrong(step, want, expect::print(&reply)));
                }
                Ok(false) => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }

    fn wait(
        &mut self,
        step: &Step,
        what: &str,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), Wrong> {
        let deadline = Instant::now() + WAIT;
        while !done(self) {
            if Instant::now() > deadline {
                return Err(self.wrong(step, what, "not in time".to_owned()));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn closed(&mut self, step: &Step) -> Result<(), Wrong> {
        let is_closed = match self.connections.get_mut(&step.connection) {
            Some(connection) => connection.client.is_closed(WAIT),
            None => false,
        };
        self.connections.remove(&step.connection);
        match is_closed {
            true => Ok(()),
            false => Err(self.wrong(step, "the server to close", "an open connection".to_owned())),
        }
    }

    pub fn send(&mut self, name: char, text: &str) -> Result<(), String> {
        let mut args = split(text)?;
        for arg in &mut args {
            if arg.windows(2).any(|pair| pair == b"${") {
                *arg = expand(arg, &mut |value| self.value(value))?;
            }
        }
        let connection = self.open(name)?;
        connection.last_sent = text.to_owned();
        connection.awaits_reply = true;
        connection.awaited.sent(&args);
        let is = |arg: &Vec<u8>, name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        if is(&args[0], "HELLO") && args.len() > 1 {
            connection.switching = match args[1].as_slice() {
                b"2" => Some(Resp::V2),
                b"3" => Some(Resp::V3),
                _ => None,
            };
        } else if is(&args[0], "RESET") {
            connection.switching = Some(Resp::V2);
        }
        connection.client.send(&args).map_err(|error| error.to_string())
    }

    fn send_raw(&mut self, name: char, bytes: &[u8]) -> Result<(), String> {
        let filled = expand(bytes, &mut |value| self.value(value))?;
        let connection = self.open(name)?;
        connection.last_sent = quote(bytes);
        connection.awaited.lose();
        match connection.client.send_raw(&filled) {
            // The server may have refused it after the first part; its answer says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
            sent => sent.map_err(|error| error.to_string()),
        }
    }

    pub fn read(&mut self, name: char, wait: Duration) -> Result<Reply, String> {
        let is_redis = self.endpoint.kind == Kind::Redis;
        let connection = self.open(name)?;
        let reply = connection.client.read(wait).map_err(|error| error.to_string())?;
        let reply = if is_redis { spelling::of_redis(reply) } else { reply };
        connection.awaits_reply = false;
        let answered = connection.awaited.answered(&reply).map(|call| (call, connection.resp));
        if let Some(resp) = connection.switching.take().filter(|_| !reply.is_error()) {
            connection.resp = resp;
        }
        if let (Some((command, resp)), Kind::Russet) = (answered, self.endpoint.kind) {
            if resp == Resp::V3 {
                check(command, &reply)?;
            }
            self.shapes.extend(shape_of(&reply).map(|shape| (command, shape)));
        }
        Ok(reply)
    }

    fn is_as_expected(&mut self, name: char, text: &str, reply: &Reply) -> Result<bool, String> {
        let text = match text.contains("${") {
            true => {
                let filled = expand(text.as_bytes(), &mut |value| self.value(value))?;
                String::from_utf8_lossy(&filled).into_owned()
            }
            false => text.to_owned(),
        };
        let resp = self.connections.get(&name).map_or(self.resp, |connection| connection.resp);
        let mut saved = Saved::new();
        let as_expected = expect::parse(&text)?.matches(reply, resp, &mut saved);
        self.saved.extend(saved);
        Ok(as_expected)
    }

    /// The connection of this name, opened and greeted if it is new.
    fn open(&mut self, name: char) -> Result<&mut Connection, String> {
        if !self.connections.contains_key(&name) {
            let mut client =
                Client::connect(self.endpoint.address).map_err(|error| error.to_string())?;
            if self.resp == Resp::V3 {
                match client.call(&["HELLO", "3"]).map_err(|error| error.to_string())? {
                    Reply::Map(_) => {}
                    other => return Err(format!("HELLO 3: {}", expect::print(&other))),
                }
            }
            let resp = if self.bare { Resp::V2 } else { self.resp };
            let last_sent = String::new();
            let (switching, awaits_reply, awaited) = Default::default();
            let fresh = Connection { client, resp, switching, last_sent, awaits_reply, awaited };
            self.connections.insert(name, fresh);
        }
        self.connections.get_mut(&name).ok_or_else(|| "no such connection".to_owned())
    }

    /// What `${name}` stands for.
    fn value(&mut self, name: &str) -> Result<Vec<u8>, String> {
        if let Some(text) = self.saved.get(name) {
            return Ok(text.clone());
        }
        if let Some((count, text)) = name.strip_prefix("repeat:").and_then(|r| r.split_once(':')) {
            let count: usize = count.parse().map_err(|_| format!("not a count: {count:?}"))?;
            return Ok(text.as_bytes().repeat(count));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for (unit, base) in [("now_ms", now.as_millis()), ("now", u128::from(now.as_secs()))] {
            let Some(shift) = name.strip_prefix(unit) else { continue };
            let shift: i64 = match shift {
                "" => 0,
                digits => digits.parse().map_err(|_| format!("not a shift: {digits:?}"))?,
            };
            let base = i64::try_from(base).map_err(|error| error.to_string())?;
            return Ok((base + shift).to_string().into_bytes());
        }
        match name.split_once('.') {
            Some((letter, "addr")) if letter.len() == 1 => {
                Ok(self.address_of(letter)?.into_bytes())
            }
            Some((letter, "id")) if letter.len() == 1 => {
                let address = self.address_of(letter)?;
                // A connection that we have just opened may not have been accepted yet.
                let deadline = Instant::now() + WAIT;
                let line = loop {
                    match self.client_line(&address) {
                        Some(line) => break line,
                        None if Instant::now() > deadline => {
                            return Err("not in CLIENT LIST".to_owned());
                        }
                        None => std::thread::sleep(LOOK_AGAIN),
                    }
                };
                let id = line.split(' ').find_map(|field| field.strip_prefix("id="));
                Ok(id.ok_or("no id in CLIENT LIST")?.as_bytes().to_vec())
            }
            _ => Err(format!("no such value: ${{{name}}}")),
        }
    }

    fn address_of(&mut self, letter: &str) -> Result<String, String> {
        let name = letter.chars().next().ok_or("no connection named")?;
        let address = self.open(name)?.client.local_address().map_err(|error| error.to_string())?;
        Ok(address.to_string())
    }

    /// The connection's line of CLIENT LIST.
    fn client_line(&mut self, address: &str) -> Option<String> {
        let reply = self.control.call(&["CLIENT", "LIST"]).ok()?;
        let text = String::from_utf8_lossy(reply.text()?).into_owned();
        let wanted = format!(" addr={address} ");
        text.lines().find(|line| line.contains(&wanted)).map(str::to_owned)
    }

    pub fn is_blocked(&mut self, name: char) -> bool {
        let address = match self.connections.get(&name).map(|c| c.client.local_address()) {
            Some(Ok(address)) => address.to_string(),
            _ => return false,
        };
        let line = self.client_line(&address).unwrap_or_default();
        let flags = line.split(' ').find_map(|field| field.strip_prefix("flags="));
        flags.is_some_and(|flags| flags.contains('b'))
    }

    fn configure(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        let before = self.control.call(&["CONFIG", "GET", key]).map_err(|e| e.to_string())?;
        let Reply::Array(pair) = &before else {
            return Err(format!("CONFIG GET {key}: {}", expect::print(&before)));
        };
        let old = pair.get(1).and_then(Reply::text).ok_or(format!("no directive {key}"))?.to_vec();
        self.config_before.push((key.to_owned(), old));
        let Some(value) = value else { return Ok(()) };
        let value = split(value)?.into_iter().next().unwrap_or_default();
        match self.control.call(&[b"CONFIG".as_slice(), b"SET", key.as_bytes(), &value]) {
            Ok(Reply::Status(_)) => Ok(()),
            Ok(other) => Err(format!("CONFIG SET {key}: {}", expect::print(&other))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Every connection from which a reply can be read now, with what came.
    pub fn arrivals(&mut self, wait: Duration) -> Vec<(char, Reply)> {
        let names: Vec<char> = self.connections.keys().copied().collect();
        let mut replies = Vec::new();
        for name in names {
            while let Ok(reply) = self.read(name, wait) {
                replies.push((name, reply));
            }
        }
        replies
    }

    fn nothing_unread(&mut self) -> Result<(), Wrong> {
        // A case may end while a command is still blocked; its connection goes with it.
        self.connections.retain(|_, connection| !connection.awaits_reply);
        match self.arrivals(Duration::from_millis(1)).pop() {
            None => Ok(()),
            Some((name, reply)) => Err(Wrong {
                line: 0,
                sent: self.connections.get(&name).map_or(String::new(), |c| c.last_sent.clone()),
                expected: format!("nothing more on connection {name}"),
                got: expect::print(&reply),
            }),
        }
    }

    /// Puts the configuration back and waits until the server has noticed that the connections are
    /// gone, so that no client of this case takes part in the next.
    pub fn end(mut self) -> Result<(), Wrong> {
        let fault = |got: String| Wrong {
            line: 0,
            sent: "CONFIG SET".to_owned(),
            expected: "the configuration put back".to_owned(),
            got,
        };
        for (key, value) in std::mem::take(&mut self.config_before).into_iter().rev() {
            let set = [b"CONFIG".as_slice(), b"SET", key.as_bytes(), &value];
            match self.control.call(&set) {
                Ok(Reply::Status(_)) => {}
                Ok(other) => return Err(fault(expect::print(&other))),
                Err(error) => return Err(fault(error.to_string())),
            }
        }
        let addresses: Vec<io::Result<SocketAddr>> =
            self.connections.values().map(|c| c.client.local_address()).collect();
        self.connections.clear();
        let deadline = Instant::now() + WAIT;
        for address in addresses.into_iter().flatten() {
            while self.client_line(&address.to_string()).is_some() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }

    fn wrong(&self, step: &Step, expected: &str, got: String) -> Wrong {
        let connection = self.connections.get(&step.connection);
        let sent = connection.map_or(String::new(), |connection| connection.last_sent.clone());
        Wrong { line: step.line, sent, expected: expected.to_owned(), got }
    }
}

impl From<ReadError> for String {
    fn from(error: ReadError) -> String {
        error.to_string()
    }
}
