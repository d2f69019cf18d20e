//! A link to one server: a connection that all calls share, made anew when it breaks, and idle ones
//! for those who need their own.

use super::{Changed, Connection, Listener, Pending};
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::RetryPolicy;
use crate::tracking::{SILENCE_MAX, tracking_request};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisError,
    Value,
};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a call tries to connect before it is given up.
const CONNECT_POLICY: RetryPolicy = RetryPolicy {
    attempts_max: 3,
    pause_min: Duration::from_millis(50),
    pause_max: Duration::from_millis(500),
};
/// Connections that are kept for the next who needs one of its own.
const IDLE_MAX: usize = 16;

/// Connections are made in tasks of their own, so that a caller whose time is shorter than
/// connecting takes is served by what the one before it began.
pub struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    shared: RwLock<Option<Shared>>,
    /// Where those who need the shared connection learn what became of it, while it is made.
    connecting: Mutex<Option<watch::Receiver<Outcome>>>,
    generations: AtomicU64,
    idle: Idle,
}

/// None as long as nothing has come of it.
type Outcome = Option<Result<Shared>>;

/// Connections that are kept for the next who needs one of its own.
#[derive(Clone, Default)]
struct Idle(Arc<Mutex<Vec<MultiplexedConnection>>>);

impl Idle {
    fn all(&self) -> MutexGuard<'_, Vec<MultiplexedConnection>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn keep(&self, connection: MultiplexedConnection) {
        let mut all = self.all();
        if all.len() < IDLE_MAX {
            all.push(connection);
        }
    }

    /// One connection has broken, and most likely all others with it.
    fn clear(&self) {
        self.all().clear();
    }
}

#[derive(Clone)]
struct Shared {
    generation: u64,
    connection: MultiplexedConnection,
}

impl Link {
    pub fn new(client: Client) -> Self {
        let inner = Inner {
            client,
            shared: RwLock::default(),
            connecting: Mutex::default(),
            generations: AtomicU64::new(0),
            idle: Idle::default(),
        };
        Link { inner: Arc::new(inner) }
    }

    /// Makes the shared connection now, unless there is one.
    pub async fn connect(&self) -> Result<()> {
        self.inner.shared().await.map(drop)
    }

    /// Sends a command on the shared connection. The time to connect is part of its time.
    pub async fn call(&self, request: &Request, timeout: Duration) -> Result<Reply> {
        let (inner, deadline) = (&self.inner, Instant::now() + timeout);
        let Shared { generation, mut connection } = in_time(deadline, inner.shared()).await?;
        let result = send(&mut connection, &command(request), deadline).await;
        match result.as_ref().err().map(|failure| failure.connection) {
            // Others may still get their replies from it. Whoever comes next does not wait behind
            // a reply that is overdue.
            Some(Health::Overdue) => inner.forget(generation),
            Some(Health::Broken) => {
                inner.forget(generation);
                inner.idle.clear();
            }
            Some(Health::Good) | None => {}
        }
        result.map_err(|failure| failure.error)
    }

    /// Sends ASKING and a command, so that a node that imports the slot takes it.
    pub async fn call_asking(&self, request: &Request, timeout: Duration) -> Result<Reply> {
        let deadline = Instant::now() + timeout;
        let mut own = in_time(deadline, self.connection()).await?;
        let rest = || deadline.saturating_duration_since(Instant::now());
        // Whatever became of that, the command has not been sent.
        let asked = own.call(&Request::new("ASKING"), rest()).await;
        asked.map_err(|error| Error::Unavailable(error.to_string()))?;
        own.call(request, rest()).await
    }

    /// A connection that nobody else uses.
    pub async fn connection(&self) -> Result<OwnConnection> {
        let idle = self.inner.idle.all().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.inner.connect_apart().await?,
        };
        Ok(OwnConnection {
            connection: Some(connection),
            is_clean: true,
            keeps_state: false,
            idle: self.inner.idle.clone(),
        })
    }

    /// A connection in RESP3 over which the server tells the listener of changes. One attempt.
    pub async fn tracking(
        &self,
        prefixes: &[Vec<u8>],
        listener: Listener,
    ) -> Result<OwnConnection> {
        let info = self.inner.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let config = config().set_push_sender(move |push| {
            if let Some(changed) = changed(push) {
                listener(changed);
            }
            Ok::<_, Infallible>(())
        });
        let made = client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = made.map_err(|error| not_connected(&error))?;
        let mut own = OwnConnection {
            connection: Some(connection),
            is_clean: true,
            keeps_state: true,
            idle: Idle::default(),
        };
        own.call(&tracking_request(prefixes), SILENCE_MAX).await?;
        Ok(own)
    }
}

/// What has not ended by then has not begun to run the call.
async fn in_time<T>(deadline: Instant, connecting: impl Future<Output = Result<T>>) -> Result<T> {
    let in_time = tokio::time::timeout_at(deadline, connecting).await;
    in_time.unwrap_or_else(|_elapsed| Err(Error::Unavailable("not connected in time".into())))
}

impl Inner {
    fn current(&self) -> Option<Shared> {
        self.shared.read().unwrap_or_else(|poison| poison.into_inner()).clone()
    }

    fn connecting(&self) -> MutexGuard<'_, Option<watch::Receiver<Outcome>>> {
        self.connecting.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    async fn shared(self: &Arc<Self>) -> Result<Shared> {
        if let Some(shared) = self.current() {
            return Ok(shared);
        }
        // Those who wait for an attempt share its end: they don't try one after the other.
        let mut outcome = self.attempt();
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(made)) => made.clone(),
            // The runtime of the task has ended.
            Ok(None) | Err(_) => Err(Error::Unavailable("connecting was given up".into())),
        }
    }

    /// The attempt to connect that is under way, or a new one.
    fn attempt(self: &Arc<Self>) -> watch::Receiver<Outcome> {
        let mut connecting = self.connecting();
        if let Some(shared) = self.current() {
            return watch::channel(Some(Ok(shared))).1;
        }
        let under_way = connecting.as_ref().filter(|it| it.has_changed().is_ok());
        if let Some(outcome) = under_way {
            return outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        *connecting = Some(outcome.clone());
        let inner = self.clone();
        tokio::spawn(async move {
            let made = inner.connect().await.map(|connection| inner.share(connection));
            *inner.connecting() = None;
            sender.send_replace(Some(made));
        });
        outcome
    }

    fn share(&self, connection: MultiplexedConnection) -> Shared {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let shared = Shared { generation, connection };
        *self.shared.write().unwrap_or_else(|poison| poison.into_inner()) = Some(shared.clone());
        shared
    }

    fn forget(&self, generation: u64) {
        let mut shared = self.shared.write().unwrap_or_else(|poison| poison.into_inner());
        if shared.as_ref().is_some_and(|it| it.generation == generation) {
            *shared = None;
        }
    }

    /// Connects in a task of its own. If whoever asked is gone by then, the next has it at once.
    async fn connect_apart(self: &Arc<Self>) -> Result<MultiplexedConnection> {
        let (sender, receiver) = oneshot::channel();
        let inner = self.clone();
        tokio::spawn(async move {
            if let Err(Ok(unclaimed)) = sender.send(inner.connect().await) {
                inner.idle.keep(unclaimed);
            }
        });
        let given_up = |_ended| Err(Error::Unavailable("connecting was given up".into()));
        receiver.await.unwrap_or_else(given_up)
    }

    async fn connect(&self) -> Result<MultiplexedConnection> {
        let config = config();
        let mut attempt = 1;
        loop {
            let made = self.client.get_multiplexed_async_connection_with_config(&config).await;
            let error = match made {
                Ok(connection) => return Ok(connection),
                Err(error) => not_connected(&error),
            };
            if !CONNECT_POLICY.allows(attempt, true, &error) {
                return Err(error);
            }
            tokio::time::sleep(CONNECT_POLICY.pause(attempt)).await;
            attempt += 1;
        }
    }
}

/// Calls have deadlines of their own.
fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(None)
}

/// What a push says of keys, if it is about them. A null in place of their names means all.
fn changed(push: PushInfo) -> Option<Changed> {
    match push.kind {
        PushKind::Disconnection => Some(Changed::Lost),
        PushKind::Invalidate => match push.data.into_iter().next() {
            Some(Value::Array(names)) => {
                let name = |value| if let Value::BulkString(it) = value { Some(it) } else { None };
                // A list that can't be read is of any keys.
                let names: Option<Vec<_>> = names.into_iter().map(name).collect();
                Some(names.map_or(Changed::All, Changed::Keys))
            }
            _ => Some(Changed::All),
        },
        _ => None,
    }
}

/// A connection that one caller has. It goes back to the link unless a call was left unfinished, or
/// the server keeps something for it.
pub struct OwnConnection {
    connection: Option<MultiplexedConnection>,
    is_clean: bool,
    keeps_state: bool,
    idle: Idle,
}

impl Connection for OwnConnection {
    fn call<'a>(&'a mut self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        Box::pin(async move {
            let Some(connection) = &mut self.connection else {
                return Err(Error::Unavailable("the connection is broken".into()));
            };
            // If this future is dropped the connection still waits for the reply.
            self.is_clean = false;
            match send(connection, &command(request), Instant::now() + timeout).await {
                // With an overdue reply too: the server may still be busy with the call.
                Err(failure) if failure.connection != Health::Good => {
                    self.connection = None;
                    if failure.connection == Health::Broken {
                        self.idle.clear();
                    }
                    Err(failure.error)
                }
                result => {
                    self.is_clean = true;
                    result.map_err(|failure| failure.error)
                }
            }
        })
    }

    fn set_keeps_state(&mut self, keeps_state: bool) {
        self.keeps_state = keeps_state;
    }
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        let may_return = self.is_clean && !self.keeps_state;
        let Some(connection) = self.connection.take().filter(|_connection| may_return) else {
            return;
        };
        self.idle.keep(connection);
    }
}

struct Failure {
    error: Error,
    connection: Health,
}

/// What a failed call says of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    /// A reply is late: it may come or not. It would belong to nobody.
    Overdue,
    Broken,
}

async fn send(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
    deadline: Instant,
) -> Result<Reply, Failure> {
    match tokio::time::timeout_at(deadline, connection.send_packed_command(command)).await {
        Ok(Ok(value)) => reply(value).map_err(replied),
        Ok(Err(error)) => Err(failed(&error)),
        Err(_elapsed) => {
            let error = Error::Unknown("no reply in time".into());
            Err(Failure { error, connection: Health::Overdue })
        }
    }
}

/// A call that was sent, or may have been, has failed.
fn failed(error: &RedisError) -> Failure {
    match error.code() {
        Some(code) => replied(Error::from_reply(code, error.detail().unwrap_or(""))),
        None => Failure { error: Error::Unknown(error.to_string()), connection: Health::Broken },
    }
}

/// The server has answered with an error. A former primary says READONLY until the connection is
/// made anew, to wherever its name now leads.
fn replied(error: Error) -> Failure {
    let is_former_primary =
        matches!(&error, Error::Unavailable(text) if text.starts_with("READONLY"));
    let connection = if is_former_primary { Health::Broken } else { Health::Good };
    Failure { error, connection }
}

fn not_connected(error: &RedisError) -> Error {
    match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => Error::Refused {
            code: error.code().unwrap_or("ERR").to_owned(),
            text: error.to_string(),
        },
        #[cfg(feature = "tls")]
        _ if super::tls::is_not_vouched_for(error) => {
            Error::Refused { code: "TLS".to_owned(), text: error.to_string() }
        }
        _ => Error::Unavailable(format!("can't connect: {error}")),
    }
}

fn command(request: &Request) -> Cmd {
    let mut command = Cmd::new();
    for arg in request.args() {
        command.arg(arg);
    }
    command
}

fn reply(value: Value) -> Result<Reply> {
    let list = |values: Vec<Value>| {
        let items: Result<Vec<Reply>> = values.into_iter().map(reply).collect();
        items.map(Reply::List)
    };
    match value {
        Value::Nil => Ok(Reply::Nil),
        Value::Int(number) => Ok(Reply::Int(number)),
        Value::Boolean(is_true) => Ok(Reply::Int(i64::from(is_true))),
        Value::Double(number) => Ok(Reply::Double(number)),
        Value::BulkString(text) => Ok(Reply::Text(text)),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => {
            Ok(Reply::Text(text.into_bytes()))
        }
        Value::Okay => Ok(Reply::Text(b"OK".to_vec())),
        Value::Array(values) | Value::Set(values) => list(values),
        Value::Push { data, .. } => list(data),
        Value::Map(pairs) => list(pairs.into_iter().flat_map(|(key, it)| [key, it]).collect()),
        Value::Attribute { data, .. } => reply(*data),
        Value::ServerError(error) => {
            Err(Error::from_reply(error.code(), error.details().unwrap_or("")))
        }
        _ => Err(Error::Corrupt("the reply is of an unknown type".into())),
    }
}
