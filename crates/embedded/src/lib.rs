#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The engine as a library: the keyspace, every command, scripts, blocking calls, subscriptions, in
//! this process and without sockets. The server is this with sockets.
//!
//! ```
//! use russet_embedded::{Engine, Options, cmd};
//!
//! let engine = Engine::open(Options::new())?;
//! let mut client = engine.client();
//! client.call(&["SET", "visits", "41"])?;
//! let visits: i64 = cmd("INCR").arg("visits").query(&mut client)?;
//! assert_eq!(visits, 42);
//!
//! // Clients of several threads share the keyspace.
//! let worker = std::thread::spawn({
//!     let mut client = engine.client();
//!     move || client.query::<(String, String)>(&["BLPOP", "jobs", "5"])
//! });
//! client.call(&["RPUSH", "jobs", "first"])?;
//! assert_eq!(worker.join().unwrap()?, ("jobs".to_owned(), "first".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The examples of the page about it are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedded.md")]
mod page {}

mod client;
mod command;
mod convert;
mod engine;
mod error;
mod future;
mod host;
mod housekeeping;
mod inbox;
mod options;
mod pipeline;
mod reply;
mod requests;
mod script;
mod subscription;
mod timers;
mod transaction;
mod workers;

pub use client::Client;
pub use command::{Cmd, ToArg, cmd};
pub use convert::{ConversionError, FromValue};
pub use engine::Engine;
pub use error::{Error, OpenError, ReplyError};
pub use future::ReplyFuture;
pub use host::LogLevel;
pub use options::Options;
pub use pipeline::Pipeline;
pub use reply::{Answer, PlainReply};
pub use russet_base::{Clock, ManualClock, SystemClock, UnixMillis};
pub use russet_commands::node::config::ConfigError;
pub use russet_protocol::Value;
pub use script::{Script, ScriptCall};
pub use subscription::{Message, MessageKind, Subscription};
pub use transaction::Transaction;
