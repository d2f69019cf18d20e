//! A cluster: the node that has a key's slot gets the command. Nodes that say that a slot is
//! elsewhere are believed; a command that may have run is never sent again from here.

use super::link::{Link, OwnConnection};
use super::{Backend, Connection, Connector, Pending};
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::Request;
use redis::{Client, ConnectionAddr, ConnectionInfo};
use russet_base::limits::SLOTS;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// How often one call follows nodes that send it elsewhere.
const REDIRECTIONS_MAX: u32 = 16;
/// How long to wait before the nodes are asked again for a slot that nobody serves at the moment. A
/// call does so until its time is over.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a node may take to say who has which slot.
const TOPOLOGY_TIMEOUT: Duration = Duration::from_secs(1);

type Address = (String, u16);

/// A Redis or Valkey Cluster.
pub struct Cluster {
    /// How to connect, but for the address.
    info: ConnectionInfo,
    seeds: Vec<Address>,
    state: Arc<RwLock<State>>,
    /// Held while the nodes are asked.
    asking: tokio::sync::Mutex<()>,
    /// How often no node could be asked.
    refusals: AtomicU64,
    /// A call got no answer: another node may have its slot by now.
    is_doubtful: AtomicBool,
}

#[derive(Default)]
struct State {
    nodes: HashMap<Address, Arc<Link>>,
    /// The primary of each slot.
    slots: Vec<Option<Address>>,
    /// How often the slots were read.
    version: u64,
}

impl Cluster {
    /// Fails if none of the nodes can be reached now.
    pub async fn connect(
        connector: &Connector,
        nodes: impl IntoIterator<Item: AsRef<str>>,
    ) -> Result<Self> {
        let infos: Result<Vec<ConnectionInfo>> =
            nodes.into_iter().map(|node| connector.info(node.as_ref())).collect();
        let infos = infos?;
        let Some(info) = infos.first().cloned() else {
            return Err(Error::invalid("a cluster needs the url of a node"));
        };
        let seeds: Option<Vec<Address>> = infos.iter().map(|it| address(it.addr())).collect();
        let seeds = seeds.ok_or_else(|| Error::invalid("a node has no host and port"))?;
        let cluster = Cluster {
            info,
            seeds,
            state: Arc::default(),
            asking: tokio::sync::Mutex::default(),
            refusals: AtomicU64::new(0),
            is_doubtful: AtomicBool::new(false),
        };
        cluster.refresh(0).await?;
        Ok(cluster)
    }

    fn link(&self, node: &Address) -> Result<Arc<Link>> {
        let mut state = self.state.write().unwrap_or_else(|poison| poison.into_inner());
        if let Some(link) = state.nodes.get(node) {
            return Ok(link.clone());
        }
        let info = self.info.clone().set_addr(at(self.info.addr(), node));
        let client = Client::open(info).map_err(|error| Error::Invalid(error.to_string()))?;
        let link = Arc::new(Link::new(client));
        state.nodes.insert(node.clone(), link.clone());
        Ok(link)
    }

    fn version(&self) -> u64 {
        self.state.read().unwrap_or_else(|poison| poison.into_inner()).version
    }

    /// Who has the slot, and how old that knowledge is.
    fn owner(&self, slot: Option<u16>) -> (Option<Address>, u64) {
        let state = self.state.read().unwrap_or_else(|poison| poison.into_inner());
        let owner = match slot {
            Some(slot) => state.slots.get(usize::from(slot)).cloned().flatten(),
            None => state.slots.iter().flatten().next().cloned(),
        };
        (owner, state.version)
    }

    /// Asks the nodes who has which slot, unless someone has since `version`.
    async fn refresh(&self, version: u64) -> Result<()> {
        let refusals = self.refusals.load(Ordering::Relaxed);
        let _only_one = self.asking.lock().await;
        if self.version() > version {
            return Ok(());
        }
        // Those who waited share the end: they don't ask one after the other.
        if self.refusals.load(Ordering::Relaxed) != refusals {
            return Err(Error::Unavailable("no node of the cluster answers".into()));
        }
        let mut nodes: Vec<Address> = {
            let state = self.state.read().unwrap_or_else(|poison| poison.into_inner());
            state.nodes.keys().cloned().collect()
        };
        nodes.extend(self.seeds.iter().cloned());
        let mut last = Error::Unavailable("the cluster has no nodes".into());
        for node in nodes {
            match self.ask(&node).await {
                Ok(slots) => {
                    self.learn(slots);
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        self.refusals.fetch_add(1, Ordering::Relaxed);
        Err(last)
    }

    async fn ask(&self, node: &Address) -> Result<Vec<Option<Address>>> {
        let request = Request::new("CLUSTER").arg("SLOTS");
        let reply = self.link(node)?.call(&request, TOPOLOGY_TIMEOUT).await?;
        let slots = slots(&reply, node).ok_or_else(|| reply.is_not("a list of slots"))?;
        if slots.iter().all(Option::is_none) {
            return Err(Error::Unavailable("the cluster serves no slots".into()));
        }
        Ok(slots)
    }

    fn learn(&self, slots: Vec<Option<Address>>) {
        let mut state = self.state.write().unwrap_or_else(|poison| poison.into_inner());
        state.nodes.retain(|node, _link| slots.iter().flatten().any(|it| it == node));
        state.slots = slots;
        state.version += 1;
    }

    /// Follows the slot until its owner answers, or the time is over.
    async fn route(&self, request: &Request, timeout: Duration) -> Result<Reply> {
        let (deadline, slot) = (Instant::now() + timeout, request.slot());
        if self.is_doubtful.swap(false, Ordering::Relaxed) {
            // If that fails the call finds out by itself.
            let _ = tokio::time::timeout_at(deadline, self.refresh(self.version())).await;
        }
        let (mut node, mut version) = self.owner(slot);
        let (mut is_asking, mut redirections) = (false, 0);
        let mut last = Error::Unavailable("nobody serves the slot".into());
        while redirections < REDIRECTIONS_MAX && Instant::now() < deadline {
            let rest = deadline.saturating_duration_since(Instant::now());
            let error = match self.send(node.as_ref(), is_asking, (request, rest)).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            is_asking = false;
            match redirection(&error, node.as_ref()) {
                Some(Redirection::Moved(slot, to)) => {
                    moved(&self.state, slot, to.clone());
                    (node, redirections) = (Some(to), redirections + 1);
                    continue;
                }
                Some(Redirection::Ask(to)) => {
                    (node, is_asking, redirections) = (Some(to), true, redirections + 1);
                    continue;
                }
                None => {}
            }
            match error {
                // It has not run: the slot has no primary yet, or another one.
                Error::Unavailable(_) => {
                    last = error;
                    tokio::time::sleep(PAUSE).await;
                    // Whoever can't be asked now may be there the next time.
                    let _ = tokio::time::timeout_at(deadline, self.refresh(version)).await;
                    (node, version) = self.owner(slot);
                }
                Error::Unknown(_) => {
                    self.is_doubtful.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                other => return Err(other),
            }
        }
        Err(last)
    }

    async fn send(
        &self,
        node: Option<&Address>,
        is_asking: bool,
        (request, timeout): (&Request, Duration),
    ) -> Result<Reply> {
        let node = node.ok_or_else(|| Error::Unavailable("nobody serves the slot".into()))?;
        let link = self.link(node)?;
        match is_asking {
            true => link.call_asking(request, timeout).await,
            false => link.call(request, timeout).await,
        }
    }

    async fn own_connection(&self, slot: u16) -> Result<ClusterConnection> {
        let (node, _version) = self.owner(Some(slot));
        let node = node.ok_or_else(|| Error::Unavailable("nobody serves the slot".into()))?;
        let connection = self.link(&node)?.connection().await?;
        Ok(ClusterConnection { connection, node, state: self.state.clone() })
    }
}

impl Backend for Cluster {
    fn call<'a>(&'a self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        Box::pin(self.route(request, timeout))
    }

    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(async move {
            let version = self.version();
            let connection: Box<dyn Connection> = match self.own_connection(slot).await {
                Ok(connection) => Box::new(connection),
                Err(_not_there) => {
                    self.refresh(version).await?;
                    Box::new(self.own_connection(slot).await?)
                }
            };
            Ok(connection)
        })
    }

    fn name(&self) -> &'static str {
        "cluster"
    }
}

/// A connection to the node that had the slot when it was made. If that node sends a call elsewhere
/// the call has not run, and the next connection leads there.
struct ClusterConnection {
    connection: OwnConnection,
    node: Address,
    state: Arc<RwLock<State>>,
}

impl Connection for ClusterConnection {
    fn call<'a>(&'a mut self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        Box::pin(async move {
            let error = match self.connection.call(request, timeout).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            match redirection(&error, Some(&self.node)) {
                Some(Redirection::Moved(slot, to)) => {
                    moved(&self.state, slot, to);
                    Err(Error::Unavailable(error.to_string()))
                }
                Some(Redirection::Ask(_)) => Err(Error::Unavailable(error.to_string())),
                None => Err(error),
            }
        })
    }

    fn set_keeps_state(&mut self, keeps_state: bool) {
        self.connection.set_keeps_state(keeps_state);
    }
}

/// A node has said where a slot is now.
fn moved(state: &RwLock<State>, slot: u16, node: Address) {
    let mut state = state.write().unwrap_or_else(|poison| poison.into_inner());
    if let Some(owner) = state.slots.get_mut(usize::from(slot)) {
        *owner = Some(node);
    }
}

enum Redirection {
    Moved(u16, Address),
    Ask(Address),
}

/// `MOVED 3999 127.0.0.1:6381`. A node that does not know its own name leaves the host out.
fn redirection(error: &Error, from: Option<&Address>) -> Option<Redirection> {
    let Error::Refused { code, text } = error else {
        return None;
    };
    let (slot, node) = text.split_once(' ')?;
    let (host, port) = node.rsplit_once(':')?;
    let host = if host.is_empty() { from?.0.as_str() } else { host };
    let node = (host.to_owned(), port.parse().ok()?);
    match code.as_str() {
        "MOVED" => Some(Redirection::Moved(slot.parse().ok()?, node)),
        "ASK" => Some(Redirection::Ask(node)),
        _ => None,
    }
}

/// The primaries that CLUSTER SLOTS names, by slot.
fn slots(reply: &Reply, asked: &Address) -> Option<Vec<Option<Address>>> {
    let mut slots = vec![None; usize::from(SLOTS)];
    for range in reply.as_list()? {
        let [first, last, primary, ..] = range.as_list()? else {
            return None;
        };
        let [host, port, ..] = primary.as_list()? else {
            return None;
        };
        let host = host.as_bytes().and_then(|host| std::str::from_utf8(host).ok()).unwrap_or("");
        let host = if host.is_empty() || host == "?" { asked.0.as_str() } else { host };
        let node = (host.to_owned(), u16::try_from(port.as_int()?).ok()?);
        let from = usize::try_from(first.as_int()?).ok()?;
        let to = usize::try_from(last.as_int()?).ok()?;
        slots.get_mut(from..=to)?.fill(Some(node));
    }
    Some(slots)
}

fn address(addr: &ConnectionAddr) -> Option<Address> {
    match addr {
        ConnectionAddr::Tcp(host, port) => Some((host.clone(), *port)),
        ConnectionAddr::TcpTls { host, port, .. } => Some((host.clone(), *port)),
        _ => None,
    }
}

/// The same way to connect, to another node.
fn at(like: &ConnectionAddr, node: &Address) -> ConnectionAddr {
    let (host, port) = node.clone();
    match like {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_read() {
        let refused =
            |code: &str, text: &str| Error::Refused { code: code.into(), text: text.into() };
        let from = ("10.0.0.1".to_owned(), 7000);
        let read = |error: &Error| redirection(error, Some(&from));
        let moved = read(&refused("MOVED", "3999 127.0.0.1:6381"));
        assert!(
            matches!(moved, Some(Redirection::Moved(3999, (host, 6381))) if host == "127.0.0.1")
        );
        let moved = read(&refused("MOVED", "3999 :6381"));
        assert!(
            matches!(moved, Some(Redirection::Moved(3999, (host, 6381))) if host == "10.0.0.1")
        );
        let ask = read(&refused("ASK", "1 ::1:7001"));
        assert!(matches!(ask, Some(Redirection::Ask((host, 7001))) if host == "::1"));
        for nonsense in ["", "1", "1 host", "1 host:x", "x host:1"] {
            assert!(read(&refused("MOVED", nonsense)).is_none(), "{nonsense}");
        }
        assert!(read(&refused("ERR", "1 host:1")).is_none());
    }

    #[test]
    fn slots_that_make_no_sense_are_refused() {
        let list = Reply::List;
        let node = |port| list(vec![Reply::Text(b"h".to_vec()), Reply::Int(port)]);
        let range = |from, to| list(vec![list(vec![Reply::Int(from), Reply::Int(to), node(1)])]);
        let asked = ("h".to_owned(), 1);
        let owners = slots(&range(5, 6), &asked).unwrap();
        assert_eq!(owners.iter().flatten().count(), 2);
        for (from, to) in [(0, i64::from(SLOTS)), (-1, 3), (7, 5)] {
            assert!(slots(&range(from, to), &asked).is_none(), "{from} {to}");
        }
        assert!(slots(&Reply::Nil, &asked).is_none());
    }
}
