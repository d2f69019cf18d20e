//! A transaction that looks before it writes: WATCH, reads, MULTI, writes, EXEC, and again if
//! someone came in between.

use crate::client::Client;
use crate::command::Cmd;
use crate::convert::FromValue;
use crate::error::Error;
use crate::future::ReplyFuture;
use crate::pipeline::Commands;
use russet_protocol::Value;

/// One try of [`Client::transaction`]: what is called here runs at once and can be looked at; what
/// is queued runs at the end, all of it or, if a watched key has changed, nothing.
#[derive(Debug)]
pub struct Transaction<'c> {
    client: &'c mut Client,
    queued: Commands,
}

impl Transaction<'_> {
    /// Runs a command now, before the transaction: a read, as a rule.
    pub fn call(&mut self, args: impl IntoIterator<Item: AsRef<[u8]>>) -> Result<Value, Error> {
        self.client.call(args)
    }

    /// As [`Transaction::call`], with the reply as a Rust type.
    pub fn query<T: FromValue>(
        &mut self,
        args: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<T, Error> {
        self.client.query(args)
    }

    /// As [`Transaction::call`], as a future.
    pub fn call_async(
        &mut self,
        args: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> ReplyFuture<'_, Value> {
        self.client.call_async(args)
    }

    /// As [`Transaction::query`], as a future.
    pub fn query_async<T: FromValue>(
        &mut self,
        args: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> ReplyFuture<'_, T> {
        self.client.query_async(args)
    }

    /// Adds a command to the transaction.
    pub fn queue(&mut self, cmd: Cmd) {
        self.queued.push(&cmd);
    }
}

/// Ends the watch, however a try ends: with nothing queued there is no EXEC to do it, and the
/// caller's function may fail or panic.
struct Watching<'c>(&'c mut Client);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.discard();
    }
}

pub(crate) fn run<T>(
    client: &mut Client,
    watched: impl IntoIterator<Item: AsRef<[u8]>>,
    mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
) -> Result<(T, Vec<Value>), Error> {
    let watch = watch_call(watched);
    loop {
        if watch.len() > 1 {
            client.call(&watch)?;
        }
        let mut queued = Commands::default();
        queued.set_atomic();
        let watching = Watching(&mut *client);
        let mut transaction = Transaction { client: &mut *watching.0, queued };
        let value = body(&mut transaction)?;
        let queued = transaction.queued;
        match queued.run(&mut *watching.0) {
            Ok(replies) => return Ok((value, replies)),
            // Whoever changed the key has come a step further, so this can't go on in vain.
            Err(Error::Aborted) => {}
            Err(error) => return Err(error),
        }
    }
}

/// As [`run`], as a future.
pub(crate) async fn run_async<T>(
    client: &mut Client,
    watched: impl IntoIterator<Item: AsRef<[u8]>>,
    mut body: impl AsyncFnMut(&mut Transaction<'_>) -> Result<T, Error>,
) -> Result<(T, Vec<Value>), Error> {
    let watch = watch_call(watched);
    loop {
        let watching = Watching(&mut *client);
        if watch.len() > 1 {
            watching.0.call_async(&watch).await?;
        }
        let mut queued = Commands::default();
        queued.set_atomic();
        let mut transaction = Transaction { client: &mut *watching.0, queued };
        let value = body(&mut transaction).await?;
        let queued = transaction.queued;
        match queued.run_async(&mut *watching.0).await {
            Ok(replies) => return Ok((value, replies)),
            Err(Error::Aborted) => {}
            Err(error) => return Err(error),
        }
    }
}

fn watch_call(watched: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Vec<u8>> {
    let keys = watched.into_iter().map(|key| key.as_ref().to_vec());
    std::iter::once(b"WATCH".to_vec()).chain(keys).collect()
}
