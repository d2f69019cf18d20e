//! What can go wrong, by what the caller can do about it.

use std::fmt;
use std::time::Duration;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument is wrong: nothing was sent. The text names it.
    Invalid(String),
    /// Nothing was run: no connection, or the server takes no such calls at the moment.
    Unavailable(String),
    /// The call may have run or not: its time was over, or the connection broke before the reply.
    Unknown(String),
    /// The server refused it, or it failed there. The same call fails again.
    Refused {
        /// The first word of the reply, as `NOPERM`.
        code: String,
        /// The rest of it.
        text: String,
    },
    /// What is stored, or was replied, is not of the form that this version writes.
    Corrupt(String),
    /// Others changed the same data each time that it was tried.
    Contention {
        /// How often it was tried.
        attempts: u32,
    },
}

/// What to do about an [`Error`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::{Advice, Error, Kit, RequestId};
/// use russet::counter::{WindowCounter, Windows};
/// use std::time::Duration;
///
/// async fn count(orders: &WindowCounter, order: &str) -> russet::Result<()> {
///     let request = RequestId::from(order);
///     for _attempt in 0..5 {
///         let Err(error) = orders.add("acme", 1, Some(&request)).await else { return Ok(()) };
///         match error.advice() {
///             Advice::Retry { after } => tokio::time::sleep(after).await,
///             // It may have been counted: with the same id it is not counted again.
///             Advice::Unknown => {}
///             Advice::GiveUp => return Err(error),
///         }
///     }
///     Err(Error::Unknown("five times without a word".into()))
/// }
///
/// let kit = Kit::embedded(Default::default())?;
/// let years = Windows::of(Duration::from_secs(365 * 86_400))?;
/// count(&WindowCounter::new(&kit, "orders", years)?, "order 7").await?;
/// assert_eq!(Error::Invalid("count".into()).advice(), Advice::GiveUp);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing has happened: call again, after a while.
    Retry {
        /// After this long.
        after: Duration,
    },
    /// It may have happened: call again only if the call may run twice, or with its request id.
    Unknown,
    /// Calling again gives the same.
    GiveUp,
}

/// How long to wait before a call that was not run is tried again by hand.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Error {
    /// What the caller can do about it.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Unavailable(_) | Error::Contention { .. } => {
                Advice::Retry { after: RETRY_AFTER }
            }
            Error::Unknown(_) => Advice::Unknown,
            Error::Invalid(_) | Error::Refused { .. } | Error::Corrupt(_) => Advice::GiveUp,
        }
    }

    /// The code of the server's refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// For logs and metrics: one word per variant.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Error::Invalid(_) => "invalid",
            Error::Unavailable(_) => "unavailable",
            Error::Unknown(_) => "unknown",
            Error::Refused { .. } => "refused",
            Error::Corrupt(_) => "corrupt",
            Error::Contention { .. } => "contention",
        }
    }

    /// The failure of a call of which an earlier attempt may have run: whatever became of the last
    /// one, the call may have run.
    pub(crate) fn after_unknown(self) -> Error {
        match self {
            unknown @ Error::Unknown(_) => unknown,
            last => {
                Error::Unknown(format!("an earlier attempt may have run; the last one: {last}"))
            }
        }
    }

    /// The failure of a call before which, and by which, nothing was changed.
    pub(crate) fn before_any_change(self) -> Error {
        match self {
            Error::Unknown(why) => Error::Unavailable(why),
            other => other,
        }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Error {
        Error::Invalid(what.into())
    }

    /// A server's error reply.
    #[cfg(any(feature = "embedded", feature = "remote"))]
    pub(crate) fn from_reply(code: &str, text: &str) -> Error {
        match code {
            // Said before a step has changed anything.
            "LOADING" | "BUSY" | "READONLY" | "CLUSTERDOWN" | "TRYAGAIN" | "MASTERDOWN"
            | "MISCONF" | "OOM" | "NOREPLICAS" => Error::Unavailable(format!("{code} {text}")),
            // A step's own word for a bad argument.
            "INVALID" => Error::Invalid(text.to_owned()),
            "CORRUPT" => Error::Corrupt(text.to_owned()),
            _ => Error::Refused { code: code.to_owned(), text: text.to_owned() },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(what) => write!(f, "invalid: {what}"),
            Error::Unavailable(why) => write!(f, "not run: {why}"),
            Error::Unknown(why) => write!(f, "outcome unknown: {why}"),
            Error::Refused { code, text } => write!(f, "{code} {text}"),
            Error::Corrupt(what) => write!(f, "corrupt: {what}"),
            Error::Contention { attempts } => {
                write!(f, "others changed the same data in each of {attempts} attempts")
            }
        }
    }
}

impl std::error::Error for Error {}
