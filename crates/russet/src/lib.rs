#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! Production workflows on Redis: atomic, bounded, and correct under retry, timeout and crash.
//!
//! A [`Kit`] is where they run: in this process, on a Russet, Redis or Valkey server, or on a
//! cluster. The code that uses it is the same.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kit = russet::Kit::embedded(russet::Options::default())?;
//! assert!(kit.ping().await.is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! Every workflow is made of steps: Lua scripts that run atomically on the server, written once.
//! Other languages call the same steps as functions; see [`functions()`].

// For `derive(Record)`, which names the crate.
extern crate self as russet;

pub mod activity;
pub mod backend;
mod bearer;
#[cfg(feature = "blocking")]
pub mod blocking;
pub mod cache;
mod calendar;
pub mod counter;
mod error;
pub mod flag;
pub mod idempotency;
pub mod key;
mod kit;
pub mod lease;
pub mod limit;
mod member;
pub mod object;
mod observe;
pub mod queue;
pub mod ranking;
mod reply;
mod request;
pub mod retry;
pub mod sale;
pub mod session;
pub mod social;
mod spread;
pub mod state;
pub mod step;
mod time;
pub mod token;
#[cfg(feature = "tower")]
pub mod tower;
mod tracking;

pub use calendar::{Day, Period, Span};
pub use error::{Advice, Error, Result};
pub use kit::{Builder, Kit};
pub use member::Member;
pub use reply::{Envelope, Reply};
pub use request::{Request, ToArg};
pub use retry::RequestId;
#[cfg(feature = "embedded")]
pub use russet_embedded::{Engine, Options};
pub use step::functions;
#[cfg(feature = "embedded")]
pub use time::ManualTime;
pub use time::Time;
