//! The kit: a backend, and what holds for every call through it.

use crate::backend::{Backend, Connection, Listener, Started, TracksChanges};
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope, Secret};
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::{Attempts, RetryPolicy};
use crate::time::Time;
use crate::tracking::Tracking;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take before its outcome is unknown.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the reply to a request is remembered.
const REQUEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest name of an application, which stands in every key.
const APP_BYTES_MAX: usize = 64;

/// Where workflows run. Clones are handles to the same kit.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
///
/// let kit = Kit::builder().app("shop").secret("from the vault").embedded(Default::default())?;
/// kit.ping().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Kit {
    backend: Arc<dyn Backend>,
    settings: Arc<Settings>,
    time: Time,
    tracking: Arc<Tracking>,
}

/// What holds for every call of a kit.
#[derive(Clone)]
pub(crate) struct Settings {
    app: String,
    secret: Option<Secret>,
    pub timeout: Duration,
    pub retry: RetryPolicy,
    pub request_ttl: Duration,
}

impl Kit {
    /// Begins to describe a kit.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// An engine of its own in this process.
    #[cfg(feature = "embedded")]
    pub fn embedded(options: crate::Options) -> Result<Kit> {
        Kit::builder().embedded(options)
    }

    /// A Russet, Redis (7.0 or newer) or Valkey server, as `redis://user:password@host:port/db`.
    #[cfg(feature = "remote")]
    pub async fn connect(url: &str) -> Result<Kit> {
        Kit::builder().connect(url).await
    }

    /// A cluster, by some of its nodes.
    #[cfg(feature = "remote")]
    pub async fn cluster(nodes: impl IntoIterator<Item: AsRef<str>>) -> Result<Kit> {
        Kit::builder().cluster(nodes).await
    }

    /// The server named by the environment's `RUSSET_URL`, several addresses with commas between
    /// them being a cluster; without it an engine in this process.
    #[cfg(all(feature = "embedded", feature = "remote"))]
    pub async fn from_env() -> Result<Kit> {
        match std::env::var("RUSSET_URL") {
            Ok(urls) if urls.contains(',') => Kit::cluster(urls.split(',')).await,
            Ok(url) => Kit::connect(&url).await,
            Err(_) => Kit::embedded(crate::Options::default()),
        }
    }

    /// The same kit with another limit on the time of a call.
    pub fn with_timeout(&self, timeout: Duration) -> Kit {
        self.with_settings(|settings| settings.timeout = timeout)
    }

    /// The same kit with another policy of calling again.
    pub fn with_retry(&self, retry: RetryPolicy) -> Kit {
        self.with_settings(|settings| settings.retry = retry)
    }

    /// The same kit with another time for which replies to request ids are remembered.
    pub(crate) fn with_request_ttl(&self, ttl: Duration) -> Kit {
        self.with_settings(|settings| settings.request_ttl = ttl)
    }

    /// A scope as it stands in keys.
    pub(crate) fn scope_text(&self, scope: &Scope) -> Result<Vec<u8>> {
        scope.text(self.settings.secret.as_ref())
    }

    fn with_settings(&self, change: impl FnOnce(&mut Settings)) -> Kit {
        let mut settings = (*self.settings).clone();
        change(&mut settings);
        Kit { settings: Arc::new(settings), ..self.clone() }
    }

    /// Whether the backend answers.
    pub async fn ping(&self) -> Result<()> {
        self.call(&Request::new("PING")).await.map(drop)
    }

    /// The keys of a workflow and a scope, for programs that store something of their own beside
    /// the workflows.
    pub fn keys(&self, family: Family, scope: impl Into<Scope>) -> Result<Keys> {
        self.keys_of(family, &scope.into())
    }

    pub(crate) fn keys_of(&self, family: Family, scope: &Scope) -> Result<Keys> {
        let Settings { app, secret, .. } = &*self.settings;
        Keys::new(app, family, scope, secret.as_ref())
    }

    /// Runs one command, once. An error reply is an error.
    pub async fn call(&self, request: &Request) -> Result<Reply> {
        match self.backend.start(request, self.settings.timeout) {
            Started::Done(result) => result,
            Started::Waiting(pending) => pending.await,
        }
    }

    /// Runs one command that may run twice, as it reads or sets what is set already: it is tried
    /// again as the policy says.
    pub(crate) async fn call_safe(&self, request: &Request) -> Result<Reply> {
        let mut attempts = Attempts::first();
        loop {
            let error = match self.call(request).await {
                Err(error) => error,
                result => return result,
            };
            let pause = attempts.failed(self.settings.retry, true, &error)?;
            crate::observe::retried("command", &error);
            self.time.sleep(pause).await;
        }
    }

    /// A connection of its own, to the node that has this slot: for calls that block, WATCH and
    /// WAIT. Making it may take as long as a call.
    pub async fn connection(&self, slot: u16) -> Result<Box<dyn Connection>> {
        let timeout = self.settings.timeout;
        tokio::select! {
            biased;
            made = self.backend.connection(slot) => made,
            () = self.time.sleep(timeout) => {
                Err(Error::Unavailable(format!("not connected within {timeout:?}")))
            }
        }
    }

    /// Whether [`Kit::tracking`] works, or is needed.
    pub fn tracks_changes(&self) -> TracksChanges {
        self.backend.tracks_changes()
    }

    /// A connection of its own over which a listener hears of changes; see
    /// [`Backend::tracking`](crate::backend::Backend::tracking).
    pub async fn tracking(
        &self,
        prefixes: &[Vec<u8>],
        listener: Listener,
    ) -> Result<Box<dyn Connection>> {
        self.backend.tracking(prefixes, listener).await
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The connection that all who keep copies share.
    pub(crate) fn shared_tracking(&self) -> &Arc<Tracking> {
        &self.tracking
    }

    /// The clock by which the kit waits.
    pub fn time(&self) -> &Time {
        &self.time
    }

    /// How long a call may take; see [`Builder::timeout`].
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// A digest that tells nothing of its content; `label` keeps digests for different uses apart.
    pub(crate) fn digest(&self, label: &str, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(label.len() + 1 + content.len());
        bytes.extend_from_slice(label.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(content);
        crate::key::digest(self.settings.secret.as_ref(), &bytes)
    }

    /// The same of a scope: what stands for it in ids that users get to see.
    pub(crate) fn digest_of_scope(&self, label: &str, scope: &Scope) -> Result<Vec<u8>> {
        Ok(self.digest(label, &scope.text(self.settings.secret.as_ref())?))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs in the background, on the runtime of the caller.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        #[cfg(feature = "blocking")]
        let handle = tokio::runtime::Handle::try_current()
            .or_else(|_none| crate::blocking::runtime().map(|it| it.handle().clone()));
        #[cfg(not(feature = "blocking"))]
        let handle = tokio::runtime::Handle::try_current();
        let handle = handle.map_err(|_none| Error::invalid("called outside a tokio runtime"))?;
        handle.spawn(task);
        Ok(())
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("backend", &self.backend.name())
            .field("app", &self.settings.app)
            .finish_non_exhaustive()
    }
}

/// The secret is not shown.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("app", &self.app).finish_non_exhaustive()
    }
}

/// What a kit is made with.
#[derive(Clone, Debug)]
pub struct Builder {
    settings: Settings,
    #[cfg(feature = "remote")]
    connector: crate::backend::Connector,
}

impl Default for Builder {
    fn default() -> Self {
        let settings = Settings {
            app: String::new(),
            secret: None,
            timeout: TIMEOUT,
            retry: RetryPolicy::default(),
            request_ttl: REQUEST_TTL,
        };
        Builder {
            settings,
            #[cfg(feature = "remote")]
            connector: Default::default(),
        }
    }
}

impl Builder {
    /// The first part of every key: applications with different names share nothing.
    pub fn app(mut self, name: &str) -> Self {
        self.settings.app = name.to_owned();
        self
    }

    /// What sensitive parts of keys are digested with. All processes of an application need the
    /// same one.
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.settings.secret = Some(Secret::new(secret.as_ref()));
        self
    }

    /// How long a call may take before its outcome is unknown; 2 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How calls are tried again.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// How long replies to request ids are remembered; a day by default.
    pub fn request_ttl(mut self, ttl: Duration) -> Self {
        self.settings.request_ttl = ttl;
        self
    }

    /// The certificates of `rediss://` addresses, for [`Builder::connect`] and
    /// [`Builder::cluster`]: a private authority, and what servers are shown that ask for a
    /// certificate. Without them the server's must be one of the web's authorities. rustls needs a
    /// provider of cryptography for the whole process: if the program has installed none, it is
    /// `ring`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::backend::TlsOptions) -> Self {
        self.connector.tls = Some(tls);
        self
    }

    /// On an engine of its own in this process.
    #[cfg(feature = "embedded")]
    pub fn embedded(self, options: crate::Options) -> Result<Kit> {
        let engine = open(options)?;
        self.on(crate::backend::embedded::Embedded::new(engine))
    }

    /// An engine in this process whose time is moved by hand.
    #[cfg(feature = "embedded")]
    pub fn embedded_at(self, options: crate::Options, time: &crate::ManualTime) -> Result<Kit> {
        let engine = open(options.clock(time.clock()))?;
        let mut kit = self.on(crate::backend::embedded::Embedded::new(engine))?;
        kit.time = Time::manual(time.clone());
        Ok(kit)
    }

    /// An engine in this process that is used otherwise too.
    #[cfg(feature = "embedded")]
    pub fn engine(self, engine: &crate::Engine) -> Result<Kit> {
        self.on(crate::backend::embedded::Embedded::new(engine.clone()))
    }

    /// On a server, as `redis://user:password@host:port/db`, with the feature `tls` also
    /// `rediss://`. Fails if it can't be reached.
    #[cfg(feature = "remote")]
    pub async fn connect(self, url: &str) -> Result<Kit> {
        let backend = crate::backend::remote::Remote::connect(&self.connector, url).await?;
        self.on(backend)
    }

    /// On a cluster, by the addresses of some of its nodes. Fails if none of them answers.
    #[cfg(feature = "remote")]
    pub async fn cluster(self, nodes: impl IntoIterator<Item: AsRef<str>>) -> Result<Kit> {
        let backend = crate::backend::cluster::Cluster::connect(&self.connector, nodes).await?;
        self.on(backend)
    }

    /// A backend of the caller's.
    pub fn on(self, backend: impl Backend + 'static) -> Result<Kit> {
        let Settings { app, timeout, request_ttl, .. } = &self.settings;
        if app.len() > APP_BYTES_MAX {
            return Err(Error::invalid(format!("the name is over {APP_BYTES_MAX} bytes")));
        }
        if timeout.is_zero() || request_ttl.is_zero() {
            return Err(Error::invalid("timeout and request_ttl must not be zero"));
        }
        if self.settings.retry.attempts_max == 0 {
            return Err(Error::invalid("attempts_max must not be zero"));
        }
        let settings = Arc::new(self.settings);
        let tracking = Arc::default();
        Ok(Kit { backend: Arc::new(backend), settings, time: Time::system(), tracking })
    }
}

#[cfg(feature = "embedded")]
fn open(options: crate::Options) -> Result<crate::Engine> {
    crate::Engine::open(options).map_err(|error| Error::Invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "embedded")]
    #[test]
    fn a_kit_without_sense_is_refused() {
        let refused = |builder: Builder| {
            matches!(builder.embedded(crate::Options::default()), Err(Error::Invalid(_)))
        };
        assert!(refused(Kit::builder().timeout(Duration::ZERO)));
        assert!(refused(Kit::builder().app(&"a".repeat(65))));
        assert!(refused(
            Kit::builder().retry(RetryPolicy { attempts_max: 0, ..RetryPolicy::NONE })
        ));
    }
}
