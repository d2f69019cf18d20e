//! Runs one plan on both servers and reports the first difference.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::compare::{Rules, is_same_but_moments, is_same_encoding};
use super::dump::{self, Dump, call};
use super::plan::{CONNECTIONS, Mode, Plan, Step};
use super::{reconcile, script, settings};
use crate::client::{Client, REPLY_WAIT, ReadError, Reply, Resp, encode};

/// How long one server may take to do what the other has done already.
const AGREE_WAIT: Duration = Duration::from_secs(5);
/// Where the servers stopped agreeing.
#[derive(Debug)]
pub struct Difference(pub String);

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The two servers under comparison.
pub struct Pair {
    russet: SocketAddr,
    peer: SocketAddr,
}

/// One server during one plan.
pub(crate) struct Side {
    pub(super) control: Client,
    pub(crate) connections: Vec<Client>,
    ids: Vec<i64>,
}

/// Both servers during one plan.
pub(super) struct Sides {
    pub(super) russet: Side,
    pub(super) peer: Side,
    pub(super) rules: Rules,
}

/// What a connection has queued since MULTI.
#[derive(Default)]
struct Queue {
    is_open: bool,
    calls: Vec<Vec<Vec<u8>>>,
}

impl Pair {
    pub fn new(russet: SocketAddr, peer: SocketAddr) -> Pair {
        Pair { russet, peer }
    }

    pub fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// Runs the plan on empty servers. An error is a server that can't be talked to.
    pub fn run(&mut self, plan: &Plan) -> Result<Option<Difference>, String> {
        let russet = Side::open(self.russet, plan.resp).map_err(|e| format!("russet: {e}"))?;
        let peer = Side::open(self.peer, plan.resp).map_err(|e| format!("peer: {e}"))?;
        let mut sides = Sides { russet, peer, rules: Rules::from_now() };
        let found = match plan.mode {
            Mode::Pipeline => pipelined(&mut sides, &plan.steps),
            Mode::Crossed => crossed(&mut sides, &plan.steps),
            Mode::PubSub => published(&mut sides, &plan.steps),
            Mode::Scripted => scripted(&mut sides, &plan.steps),
        };
        if let Some(difference) = found? {
            return Ok(Some(difference));
        }
        let russet = dump::read(&mut sides.russet.control)?;
        let peer = dump::read(&mut sides.peer.control)?;
        Ok(data_differs(&sides.rules, &russet, &peer))
    }
}

impl Side {
    /// Connections to a server that is empty from now on, with the settings that plans begin with.
    pub(crate) fn open(address: SocketAddr, resp: Resp) -> Result<Side, String> {
        let connect = || Client::connect(address).map_err(|error| error.to_string());
        let mut control = connect()?;
        // The plan before may have left connections, blocked or subscribed, that the server has not
        // seen close.
        let deadline = Instant::now() + AGREE_WAIT;
        while connected(&mut control)? > 1 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        call(&mut control, &[b"FLUSHALL"])?;
        let directives = settings::DIRECTIVES.iter().flat_map(|(name, value)| [*name, *value]);
        let args: Vec<&[u8]> =
            ["CONFIG", "SET"].into_iter().chain(directives).map(str::as_bytes).collect();
        if let Reply::Error(text) = call(&mut control, &args)? {
            return Err(format!("CONFIG SET: {}", text.escape_ascii()));
        }
        let mut side = Side { control, connections: Vec::new(), ids: Vec::new() };
        for _ in 0..CONNECTIONS {
            let mut client = connect()?;
            if resp == Resp::V3 {
                call(&mut client, &[b"HELLO", b"3"])?;
            }
            let Reply::Int(id) = call(&mut client, &[b"CLIENT", b"ID"])? else {
                return Err("CLIENT ID did not answer a number".to_owned());
            };
            side.ids.push(id);
            side.connections.push(client);
        }
        Ok(side)
    }

    /// The arguments of a step as this server gets them.
    pub(crate) fn args(&self, step: &Step) -> Vec<Vec<u8>> {
        let named = |arg: &Vec<u8>| {
            let index =
                std::str::from_utf8(arg).ok()?.strip_prefix("@id")?.parse::<usize>().ok()?;
            Some(self.ids.get(index)?.to_string().into_bytes())
        };
        step.args.iter().map(|arg| named(arg).unwrap_or_else(|| arg.clone())).collect()
    }

    pub(crate) fn send(&mut self, step: &Step) -> Result<(), String> {
        let args = self.args(step);
        self.connections[step.connection].send(&args).map_err(|error| error.to_string())
    }

    /// The next reply of a connection, or None after silence.
    pub(crate) fn reply(
        &mut self,
        connection: usize,
        wait: Duration,
    ) -> Result<Option<Reply>, String> {
        match self.connections[connection].read(wait) {
            Ok(reply) => Ok(Some(reply)),
            Err(ReadError::TimedOut) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A connection's reply if it is there already.
fn glance(side: &mut Side, connection: usize) -> Result<Option<Reply>, String> {
    side.connections[connection].glance().map_err(|error| error.to_string())
}

fn blocked(control: &mut Client) -> Result<usize, String> {
    count_of(control, "blocked_clients:")
}

fn connected(control: &mut Client) -> Result<usize, String> {
    count_of(control, "connected_clients:")
}

fn count_of(control: &mut Client, field: &str) -> Result<usize, String> {
    let info = call(control, &[b"INFO", b"clients"])?;
    let text = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|count| count.trim().parse().ok()).ok_or_else(|| format!("no count: {text}"))
}

impl Queue {
    /// Takes note of what the reply did to the transaction; whether the replies agree.
    fn agrees(&mut self, rules: &Rules, args: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
        let name = args.first().map(|arg| arg.to_ascii_uppercase()).unwrap_or_default();
        if peer.text() == Some(b"QUEUED") {
            self.calls.push(args.to_vec());
        }
        match name.as_slice() {
            b"EXEC" => {
                self.is_open = false;
                rules.is_same_exec(&std::mem::take(&mut self.calls), russet, peer)
            }
            b"MULTI" | b"DISCARD" | b"RESET" if !peer.is_error() => {
                self.is_open = name == b"MULTI";
                self.calls.clear();
                russet == peer
            }
            _ => rules.is_same(args, russet, peer),
        }
    }
}

/// Everything in one write on one connection.
fn pipelined(sides: &mut Sides, steps: &[Step]) -> Result<Option<Difference>, String> {
    let Sides { russet, peer, rules } = sides;
    let mut queue = Queue::default();
    for side in [&mut *russet, &mut *peer] {
        let bytes: Vec<u8> = steps.iter().flat_map(|step| encode(&side.args(step))).collect();
        side.connections[0].send_raw(&bytes).map_err(|error| error.to_string())?;
    }
    for step in steps {
        let theirs = peer.reply(0, REPLY_WAIT)?.ok_or_else(|| format!("peer: silent at {step}"))?;
        let ours = match russet.reply(0, REPLY_WAIT) {
            Ok(Some(reply)) => reply,
            Ok(None) => return Ok(Some(escape(step, &"silence", &theirs))),
            Err(error) => return Ok(Some(escape(step, &error, &theirs))),
        };
        if !queue.agrees(rules, &step.args, &ours, &theirs) {
            return Ok(Some(escape(step, &ours, &theirs)));
        }
    }
    Ok(None)
}

/// A few calls at a time, each few in one script.
fn scripted(sides: &mut Sides, steps: &[Step]) -> Result<Option<Difference>, String> {
    let Sides { russet, peer, rules } = sides;
    for calls in script::cut(steps) {
        let eval = Step { connection: 0, args: script::eval(calls) };
        russet.send(&eval)?;
        peer.send(&eval)?;
        let theirs = peer.reply(0, REPLY_WAIT)?.ok_or_else(|| format!("peer: silent at {eval}"))?;
        let ours = russet.reply(0, REPLY_WAIT)?;
        let queued: Vec<_> = calls.iter().map(|step| step.args.clone()).collect();
        match ours {
            Some(ours) if rules.is_same_exec(&queued, &ours, &theirs) => {}
            Some(ours) => return Ok(Some(escape(&eval, &ours, &theirs))),
            None => return Ok(Some(escape(&eval, &"silence", &theirs))),
        }
    }
    Ok(None)
}

/// One call at a time. The peer says who is blocked; Russet must come to the same.
fn crossed(sides: &mut Sides, steps: &[Step]) -> Result<Option<Difference>, String> {
    let mut queues: Vec<Queue> = (0..CONNECTIONS).map(|_| Queue::default()).collect();
    let mut pending: Vec<Option<Step>> = vec![None; CONNECTIONS];
    for step in steps {
        let is_queueing = queues[step.connection].is_open;
        // What expires soon, or is drawn, can't be put off until EXEC.
        if pending[step.connection].is_some() || (is_queueing && step.needs_care()) {
            continue;
        }
        let may_feed = is_queueing || pending.iter().any(Option::is_some);
        if may_feed && stores_over(&mut sides.peer, step, is_queueing)? {
            continue;
        }
        if step.counts_keys() {
            reconcile::purge(&mut sides.russet)?;
            reconcile::purge(&mut sides.peer)?;
        }
        sides.russet.send(step)?;
        sides.peer.send(step)?;
        pending[step.connection] = Some(step.clone());
        let mut answered = Vec::new();
        for (connection, theirs) in read_until_blocked(&mut sides.peer, &pending)? {
            let Some(asked) = pending[connection].take() else { continue };
            match sides.russet.reply(connection, AGREE_WAIT) {
                Ok(Some(ours)) => answered.push((asked, ours, theirs)),
                Ok(None) => return Ok(Some(escape(&asked, &"silence", &theirs))),
                Err(error) => return Ok(Some(escape(&asked, &error, &theirs))),
            }
        }
        for (asked, ours, theirs) in answered {
            let is_same = match asked.needs_care() {
                true => reconcile::after(sides, &asked, &ours, &theirs)?,
                false => {
                    let queue = &mut queues[asked.connection];
                    queue.agrees(&sides.rules, &asked.args, &ours, &theirs)
                }
            };
            if !is_same {
                return Ok(Some(escape(&asked, &ours, &theirs)));
            }
        }
        if let Some(difference) = still_blocked(&mut sides.russet, &pending, step)? {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

/// DIFFERS: clients that wait for a sorted set or list are served when one is stored over a value
/// of another type. Peers leave them waiting, beside what they wait for.
fn stores_over(peer: &mut Side, step: &Step, is_queueing: bool) -> Result<bool, String> {
    let Some(key) = step.stored_key() else { return Ok(false) };
    if is_queueing {
        return Ok(true);
    }
    let exists = call(&mut peer.connections[step.connection], &[b"EXISTS", key])?;
    Ok(exists == Reply::Int(1))
}

/// Reads until exactly those connections are without a reply that the server counts as blocked.
pub(crate) fn read_until_blocked(
    peer: &mut Side,
    pending: &[Option<Step>],
) -> Result<Vec<(usize, Reply)>, String> {
    let mut open: Vec<usize> =
        (0..CONNECTIONS).filter(|&connection| pending[connection].is_some()).collect();
    let mut replies = Vec::new();
    let deadline = Instant::now() + REPLY_WAIT;
    // The ordinary case: nobody waits, and the call can't.
    if let [connection] = open[..]
        && let Some(step) = &pending[connection]
        && !step.may_block()
    {
        let reply = peer.reply(connection, REPLY_WAIT)?.ok_or_else(|| format!("silent: {step}"))?;
        return Ok(vec![(connection, reply)]);
    }
    loop {
        let count = blocked(&mut peer.control)?;
        let mut waiting = Vec::new();
        for connection in open {
            match glance(peer, connection)? {
                Some(reply) => replies.push((connection, reply)),
                None => waiting.push(connection),
            }
        }
        open = waiting;
        if open.len() == count {
            return Ok(replies);
        }
        if Instant::now() > deadline {
            return Err(format!("peer: {count} blocked, but {} without reply", open.len()));
        }
    }
}

/// Russet too must have blocked these, and by the time that the next call is sent.
fn still_blocked(
    russet: &mut Side,
    pending: &[Option<Step>],
    after: &Step,
) -> Result<Option<Difference>, String> {
    let expected = pending.iter().flatten().count();
    if expected == 0 {
        return Ok(None);
    }
    let deadline = Instant::now() + AGREE_WAIT;
    while blocked(&mut russet.control)? != expected {
        if Instant::now() > deadline {
            break;
        }
        std::thread::yield_now();
    }
    for (connection, step) in pending.iter().enumerate() {
        let Some(step) = step else { continue };
        match glance(russet, connection) {
            Ok(None) => {}
            Ok(Some(reply)) => return Ok(Some(answered_early(after, step, &reply))),
            Err(error) => return Ok(Some(answered_early(after, step, &error))),
        }
    }
    let count = blocked(&mut russet.control)?;
    Ok((count != expected).then(|| {
        Difference(format!("after {after}\n  russet counts {count} blocked, the peer {expected}"))
    }))
}

/// One call at a time; then every connection is pinged, and what came before the pong compared.
fn published(sides: &mut Sides, steps: &[Step]) -> Result<Option<Difference>, String> {
    let Sides { russet, peer, rules } = sides;
    for (number, step) in steps.iter().enumerate() {
        russet.send(step)?;
        peer.send(step)?;
        // DIFFERS: what a connection publishes to itself comes after the replies to everything that
        // it sent in the same breath. So wait for the first reply before the ping.
        let Some(first) = russet.reply(step.connection, REPLY_WAIT)? else {
            return Ok(Some(escape(step, &"silence", &"?")));
        };
        // The sender first: once it has its reply, the others' messages are on their way.
        let mut order: Vec<usize> = (0..CONNECTIONS).collect();
        order.swap(0, step.connection);
        for connection in order {
            let token = format!("sync-{number}-{connection}");
            let theirs = until_pong(peer, connection, &token).map_err(|e| format!("peer: {e}"))?;
            let mut ours = match until_pong(russet, connection, &token) {
                Ok(replies) => replies,
                Err(error) => return Ok(Some(escape(step, &error, &theirs))),
            };
            let is_own = connection == step.connection;
            if is_own {
                ours.insert(0, first.clone());
            }
            let agree = match (&ours[..], &theirs[..]) {
                ([a], [b]) if is_own && rules.is_same(&step.args, a, b) => true,
                _ => normal(&step.args, &ours) == normal(&step.args, &theirs),
            };
            if !agree {
                return Ok(Some(escape(step, &ours, &theirs)));
            }
        }
    }
    Ok(None)
}

fn until_pong(side: &mut Side, connection: usize, token: &str) -> Result<Vec<Reply>, String> {
    let args = vec![b"PING".to_vec(), token.as_bytes().to_vec()];
    side.connections[connection].send(&args).map_err(|error| error.to_string())?;
    let mut replies = Vec::new();
    loop {
        let reply = side.reply(connection, REPLY_WAIT)?.ok_or("no pong")?;
        let is_pong = match &reply {
            Reply::Array(items) => items.last().is_some_and(|i| i.text() == Some(token.as_bytes())),
            other => other.text() == Some(token.as_bytes()),
        };
        if is_pong {
            return Ok(replies);
        }
        replies.push(reply);
    }
}

/// Patterns and channels are kept in each server's own order: messages of one PUBLISH to several
/// patterns, and the farewells of an UNSUBSCRIBE from everything, come in any order.
fn normal(args: &[Vec<u8>], replies: &[Reply]) -> Vec<Reply> {
    let mut replies = replies.to_vec();
    let leaves_all = args.len() == 1 && args[0].to_ascii_uppercase().ends_with(b"UNSUBSCRIBE");
    for reply in &mut replies {
        if let (true, Reply::Array(items) | Reply::Push(items)) = (leaves_all, reply) {
            items.retain(|item| !matches!(item, Reply::Int(_)));
        }
    }
    replies.sort_by_key(|reply| format!("{reply:?}"));
    replies
}

fn data_differs(rules: &Rules, russet: &Dump, peer: &Dump) -> Option<Difference> {
    let keys: std::collections::BTreeSet<_> = russet.keys().chain(peer.keys()).collect();
    for key in keys {
        let is_same = match (russet.get(key), peer.get(key)) {
            (Some(ours), Some(theirs)) => {
                ours.kind == theirs.kind
                    && ours.value == theirs.value
                    && rules.is_same(&[b"PTTL".to_vec()], &ours.ttl_ms, &theirs.ttl_ms)
                    && is_same_encoding(&ours.encoding, &theirs.encoding)
                    && (rules.is_same(&[b"HPTTL".to_vec()], &ours.beside, &theirs.beside)
                        || is_same_but_moments(&ours.beside, &theirs.beside))
            }
            _ => false,
        };
        if !is_same {
            return Some(Difference(format!(
                "data at the end, database {} key \"{}\"\n  russet: {}\n  peer:   {}",
                key.0,
                key.1.escape_ascii(),
                shown(&russet.get(key)),
                shown(&peer.get(key)),
            )));
        }
    }
    None
}

fn escape(step: &Step, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug) -> Difference {
    Difference(format!("at {step}\n  russet: {}\n  peer:   {}", shown(ours), shown(theirs)))
}

fn answered_early(after: &Step, step: &Step, ours: &dyn std::fmt::Debug) -> Difference {
    let ours = shown(ours);
    Difference(format!("after {after}\n  {step}\n  russet: {ours}\n  peer:   still blocked"))
}

/// Debug output with byte strings as text.
fn shown(value: &dyn std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    // Byte vectors print as lists of numbers: `[65, 66]`.
    while let Some(at) = rest.find('[') {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find(']').map(|end| at + end) else { break };
        let bytes: Option<Vec<u8>> =
            rest[at + 1..end].split(", ").map(|number| number.parse().ok()).collect();
        match bytes {
            Some(bytes) => {
                out.push_str(&format!("\"{}\"", bytes.escape_ascii()));
                rest = &rest[end + 1..];
            }
            None if end == at + 1 => {
                out.push_str("[]");
                rest = &rest[end + 1..];
            }
            None => {
                out.push('[');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out.chars().take(2_000).collect()
}
