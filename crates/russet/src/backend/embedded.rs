//! The engine in this process.

use super::{Backend, Connection, Pending, Started, TracksChanges};
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::Request;
use russet_embedded::{Answer, Client, Engine, PlainReply, Value};
use std::sync::Mutex;
use std::time::Duration;

/// Clients that are kept for the next call.
const IDLE_MAX: usize = 64;

/// An engine, and clients of it that are used again. Calls have no timeout: the thread that calls
/// runs them.
pub struct Embedded {
    engine: Engine,
    #[allow(clippy::vec_box, reason = "a client is large, and taken and given for every call")]
    idle: Mutex<Vec<Box<Client>>>,
}

impl Embedded {
    pub fn new(engine: Engine) -> Self {
        Embedded { engine, idle: Mutex::default() }
    }

    fn take(&self) -> Box<Client> {
        let idle = self.idle.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        idle.unwrap_or_else(|| Box::new(self.engine.client()))
    }

    fn give_back(&self, client: Box<Client>) {
        let mut idle = self.idle.lock().unwrap_or_else(|poison| poison.into_inner());
        if idle.len() < IDLE_MAX {
            idle.push(client);
        }
    }
}

impl Backend for Embedded {
    fn call<'a>(&'a self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        Box::pin(async move {
            match self.start(request, timeout) {
                Started::Done(result) => result,
                Started::Waiting(pending) => pending.await,
            }
        })
    }

    /// Runs it on the thread that calls; it waits only for a key that another call uses.
    fn start<'a>(&'a self, request: &'a Request, _timeout: Duration) -> Started<'a> {
        let mut client = self.take();
        if let Some(result) = client.try_call(request.args()) {
            self.give_back(client);
            return Started::Done(match result {
                Ok(Answer::Plain(reply)) => Ok(reply),
                Ok(Answer::Other(value)) => reply(value),
                Err(error) => Err(failure(error)),
            });
        }
        Started::Waiting(Box::pin(async move {
            let result = client.resume_async().await;
            self.give_back(client);
            read(result)
        }))
    }

    fn connection(&self, _slot: u16) -> Pending<'_, Box<dyn Connection>> {
        let client: Box<dyn Connection> = Box::new(OwnClient(self.engine.client()));
        Box::pin(std::future::ready(Ok(client)))
    }

    /// A read is a call of a function.
    fn tracks_changes(&self) -> TracksChanges {
        TracksChanges::Needless
    }

    fn name(&self) -> &'static str {
        "embedded"
    }
}

struct OwnClient(Client);

impl Connection for OwnClient {
    fn call<'a>(&'a mut self, request: &'a Request, _timeout: Duration) -> Pending<'a, Reply> {
        let pending = self.0.call_async(request.args());
        Box::pin(async move { read(pending.await) })
    }

    /// Nobody uses it again.
    fn set_keeps_state(&mut self, _keeps_state: bool) {}
}

impl PlainReply for Reply {
    fn ok() -> Self {
        Reply::Text(b"OK".into())
    }

    fn null() -> Self {
        Reply::Nil
    }

    fn integer(number: i64) -> Self {
        Reply::Int(number)
    }

    fn text(text: &[u8]) -> Self {
        Reply::Text(text.into())
    }

    fn list(items: Vec<Self>) -> Self {
        Reply::List(items)
    }
}

fn read(result: std::result::Result<Value, russet_embedded::Error>) -> Result<Reply> {
    result.map_err(failure).and_then(reply)
}

fn failure(error: russet_embedded::Error) -> Error {
    match error {
        russet_embedded::Error::Reply(error) => {
            let text = error.text();
            let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
            Error::from_reply(code, rest)
        }
        russet_embedded::Error::Closed => Error::Unavailable("the engine is closed".into()),
        error @ russet_embedded::Error::Request(_) => Error::Invalid(error.to_string()),
        error => Error::Unknown(error.to_string()),
    }
}

fn reply(value: Value) -> Result<Reply> {
    let list = |values: Vec<Value>| -> Result<Reply> {
        let mut items = Vec::with_capacity(values.len());
        for value in values {
            items.push(reply(value)?);
        }
        Ok(Reply::List(items))
    };
    match value {
        Value::Null | Value::NullArray => Ok(Reply::Nil),
        Value::Integer(number) => Ok(Reply::Int(number)),
        Value::Boolean(is_true) => Ok(Reply::Int(i64::from(is_true))),
        Value::Double(number) => Ok(Reply::Double(number)),
        Value::Status(text) | Value::Bulk(text) | Value::BigNumber(text) => Ok(Reply::Text(text)),
        Value::Verbatim { text, .. } => Ok(Reply::Text(text)),
        Value::Array(values) | Value::Set(values) | Value::Push(values) => list(values),
        Value::Map(pairs) => list(pairs.into_iter().flat_map(|(key, it)| [key, it]).collect()),
        Value::Attribute { value, .. } => reply(*value),
        Value::Error(text) => {
            let text = String::from_utf8_lossy(&text);
            let (code, rest) = text.split_once(' ').unwrap_or((&text, ""));
            Err(Error::from_reply(code, rest))
        }
    }
}
