//! Several commands in one go.

use crate::client::Client;
use crate::command::{Cmd, ToArg};
use crate::convert::FromValue;
use crate::error::{Error, checked};
use crate::future::ReplyFuture;
use crate::requests::Requests;
use russet_protocol::Value;

/// Commands that run one after the other, small ones under one taking of locks, with the replies of
/// all at the end. Others may run in between, unless it is [`atomic`](Pipeline::atomic).
///
/// ```
/// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
/// # let mut client = engine.client();
/// use russet_embedded::Value;
///
/// let replies = client.pipeline().cmd("SET").arg("a").arg(1).cmd("INCR").arg("a").run()?;
/// assert_eq!(replies[1], Value::Integer(2));
///
/// let (a, b): (i64, i64) =
///     client.pipeline().atomic().cmd("INCR").arg("a").cmd("INCR").arg("b").query()?;
/// assert_eq!((a, b), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a pipeline does nothing before it is run"]
pub struct Pipeline<'c> {
    client: &'c mut Client,
    commands: Commands,
}

/// Commands to be run in one go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands {
    requests: Requests,
    /// The last one is still being built.
    is_open: bool,
    is_atomic: bool,
}

impl Commands {
    pub fn begin(&mut self, name: &[u8]) {
        self.end();
        self.requests.push(name);
        self.is_open = true;
    }

    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.requests.end_command();
        }
    }

    pub fn push(&mut self, cmd: &Cmd) {
        self.end();
        cmd.add_to(&mut self.requests);
    }

    pub fn set_atomic(&mut self) {
        self.is_atomic = true;
    }

    /// Makes them a client's next call.
    fn begin_in(&mut self, client: &mut Client) {
        self.end();
        client.begin();
        if self.is_atomic && !self.requests.is_empty() {
            client.add_command(b"MULTI");
            client.add_all(&self.requests);
            client.add_command(b"EXEC");
            client.set_atomic();
        } else {
            client.add_all(&self.requests);
        }
    }

    pub fn run(mut self, client: &mut Client) -> Result<Vec<Value>, Error> {
        self.begin_in(client);
        let result = client.wait().and_then(|()| finish(self.is_atomic)(client));
        client.end_call();
        result
    }

    pub fn run_async(mut self, client: &mut Client) -> ReplyFuture<'_, Vec<Value>> {
        self.begin_in(client);
        ReplyFuture::new(client, finish(self.is_atomic))
    }
}

type Finish = fn(&mut Client) -> Result<Vec<Value>, Error>;

fn finish(is_atomic: bool) -> Finish {
    if is_atomic { finish_atomic } else { Client::finish_all }
}

/// The replies of a transaction are the elements of EXEC's.
fn finish_atomic(client: &mut Client) -> Result<Vec<Value>, Error> {
    match client.finish_all()?.pop().map(checked).transpose()? {
        None => Ok(Vec::new()),
        Some(Value::Array(replies)) => Ok(replies),
        Some(Value::Null | Value::NullArray) => Err(Error::Aborted),
        Some(other) => Ok(vec![other]),
    }
}

impl<'c> Pipeline<'c> {
    pub(crate) fn new(client: &'c mut Client) -> Self {
        Pipeline { client, commands: Commands::default() }
    }

    /// Begins the next command: its name.
    pub fn cmd(mut self, name: &str) -> Self {
        self.commands.begin(name.as_bytes());
        self
    }

    /// Adds an argument to the command that was begun last.
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        let requests = &mut self.commands.requests;
        arg.with_bytes(|bytes| requests.push(bytes));
        self.commands.is_open = true;
        self
    }

    /// Adds several arguments to the command that was begun last.
    pub fn args(self, args: impl IntoIterator<Item: ToArg>) -> Self {
        args.into_iter().fold(self, Pipeline::arg)
    }

    /// Adds a command.
    pub fn push(mut self, cmd: &Cmd) -> Self {
        self.commands.push(cmd);
        self
    }

    /// Runs all of them as one transaction, with MULTI and EXEC: nobody else's command comes in
    /// between.
    pub fn atomic(mut self) -> Self {
        self.commands.set_atomic();
        self
    }

    /// The replies, one for each command. Those that are errors are among them, as
    /// [`Value::Error`]; a transaction that was refused as a whole is an error.
    pub fn run(self) -> Result<Vec<Value>, Error> {
        self.commands.run(self.client)
    }

    /// The replies as a Rust type, say a tuple with one member for each command. The first error
    /// among them is the error.
    pub fn query<T: FromValue>(self) -> Result<T, Error> {
        convert(self.run()?)
    }

    /// As [`Pipeline::run`], as a future.
    pub fn run_async(self) -> ReplyFuture<'c, Vec<Value>> {
        self.commands.run_async(self.client)
    }

    /// As [`Pipeline::query`], as a future.
    pub fn query_async<T: FromValue>(mut self) -> ReplyFuture<'c, T> {
        self.commands.begin_in(self.client);
        match self.commands.is_atomic {
            true => ReplyFuture::new(self.client, |client| convert(finish_atomic(client)?)),
            false => ReplyFuture::new(self.client, |client| convert(client.finish_all()?)),
        }
    }
}

fn convert<T: FromValue>(replies: Vec<Value>) -> Result<T, Error> {
    let replies = replies.into_iter().map(checked).collect::<Result<Vec<_>, Error>>()?;
    Ok(T::from_value(Value::Array(replies))?)
}
