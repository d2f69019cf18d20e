//! Where commands run. All that a workflow needs of a server is behind [`Backend`]: one command on
//! a shared connection, and connections of one's own.

#[cfg(feature = "remote")]
pub(crate) mod cluster;
#[cfg(feature = "embedded")]
pub(crate) mod embedded;
#[cfg(feature = "remote")]
mod link;
#[cfg(feature = "remote")]
pub(crate) mod remote;
#[cfg(feature = "remote")]
mod tls;

#[cfg(feature = "remote")]
pub(crate) use tls::Connector;
#[cfg(feature = "tls")]
pub use tls::{ClientCertificate, TlsOptions};

use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::Request;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A result that is not there yet.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// How far a call came at once.
pub enum Started<'a> {
    /// It is over.
    Done(Result<Reply>),
    /// It is under way.
    Waiting(Pending<'a, Reply>),
}

/// A place where commands run.
///
/// A call that fails must say what is known of it: [`Unavailable`](crate::Error::Unavailable) if it
/// has surely not run, [`Unknown`](crate::Error::Unknown) if it may have. It is never sent twice
/// once it may have run: whether it may run twice is decided by whoever calls.
///
/// A backend of one's own goes before another, to count, to log, or to fail in tests:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::backend::{Backend, Connection, Pending};
/// use russet::{Kit, Reply, Request};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// struct Counted {
///     kit: Kit,
///     calls: Arc<AtomicU64>,
/// }
///
/// impl Backend for Counted {
///     fn call<'a>(&'a self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         Box::pin(async move { self.kit.with_timeout(timeout).call(request).await })
///     }
///
///     fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
///         Box::pin(self.kit.connection(slot))
///     }
///
///     fn name(&self) -> &'static str {
///         "counted"
///     }
/// }
///
/// let (kit, calls) = (Kit::embedded(Default::default())?, Arc::default());
/// let kit = Kit::builder().on(Counted { kit, calls: Arc::clone(&calls) })?;
/// kit.ping().await?;
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait Backend: Send + Sync {
    /// Runs a command that does not block, beside others.
    fn call<'a>(&'a self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply>;

    /// As [`Backend::call`], where a call may be over before there is anything to wait for.
    fn start<'a>(&'a self, request: &'a Request, timeout: Duration) -> Started<'a> {
        Started::Waiting(self.call(request, timeout))
    }

    /// A connection that nobody else uses, to the node that has this slot.
    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>>;

    /// Whether [`Backend::tracking`] works, or is needed.
    fn tracks_changes(&self) -> TracksChanges {
        TracksChanges::No
    }

    /// A connection that nobody else uses, over which the listener hears of every change of keys
    /// that begin with one of these, from the moment on that it is there. `CLIENT TRACKING ON BCAST
    /// PREFIX` adds prefixes to it. When it is dropped it is closed.
    fn tracking<'a>(
        &'a self,
        _prefixes: &'a [Vec<u8>],
        _listener: Listener,
    ) -> Pending<'a, Box<dyn Connection>> {
        let refused = Error::invalid("this backend does not tell of changes");
        Box::pin(std::future::ready(Err(refused)))
    }

    /// For logs.
    fn name(&self) -> &'static str;
}

/// Whether a backend can tell of changes, so that copies of what it stores can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracksChanges {
    /// It does.
    Yes,
    /// What it stores is in this process: a copy would save nothing.
    Needless,
    /// It can't.
    No,
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// These keys have changed, expired or gone.
    Keys(Vec<Vec<u8>>),
    /// All keys have.
    All,
    /// Nothing more will come.
    Lost,
}

/// Who hears of changes. It is called where the connection is read: it must not block.
pub type Listener = Arc<dyn Fn(Changed) + Send + Sync>;

/// A connection of one's own: for commands that block, for WATCH and WAIT. When it is dropped,
/// whatever it still does ends.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::key::Family;
/// use russet::{Kit, Request};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let key = kit.keys(Family { purpose: "calls", version: 1 }, "desk")?.key("list");
/// kit.call(&Request::new("RPUSH").key(&key).arg("ann")).await?;
/// let mut own = kit.connection(key.slot()).await?;
/// let wait = Request::new("BLPOP").key(&key).arg(1);
/// let popped = own.call(&wait, Duration::from_secs(2)).await?.into_list()?;
/// assert_eq!(popped[1].as_bytes(), Some(b"ann".as_slice()));
/// # Ok(())
/// # }
/// ```
pub trait Connection: Send {
    /// Runs a command, which may block for as long as `timeout` says.
    fn call<'a>(&'a mut self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply>;

    /// Whether the server keeps something for it that the next to use it must not find, as what it
    /// watches. If it is dropped meanwhile it is closed.
    fn set_keeps_state(&mut self, keeps_state: bool);
}
