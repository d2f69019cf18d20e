//! A Lua script, run by its digest.

use crate::client::Client;
use crate::command::{Cmd, ToArg, cmd};
use crate::convert::FromValue;
use crate::error::Error;
use russet_protocol::Value;
use sha1::{Digest, Sha1};
use std::fmt::Write;

/// A script, which is sent by its digest once the engine knows it.
///
/// ```
/// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
/// # let mut client = engine.client();
/// use russet_embedded::Script;
///
/// let add = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
/// let sum: i64 = add.call().key("total").arg(5).query(&mut client)?;
/// assert_eq!(sum, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    source: String,
    digest: String,
}

impl Script {
    /// Takes the digest of a source. Nothing is compiled before it is run.
    pub fn new(source: impl Into<String>) -> Self {
        let source = source.into();
        let mut digest = String::with_capacity(40);
        for byte in Sha1::digest(source.as_bytes()) {
            // Writing to a string can't fail.
            let _written = write!(digest, "{byte:02x}");
        }
        Script { source, digest }
    }

    /// As EVALSHA takes it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Begins a call of it.
    pub fn call(&self) -> ScriptCall<'_> {
        ScriptCall { script: self, keys: Vec::new(), args: Vec::new() }
    }
}

/// A script with its keys and arguments.
#[derive(Clone, Debug)]
#[must_use = "a script does nothing before it is run"]
pub struct ScriptCall<'s> {
    script: &'s Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl ScriptCall<'_> {
    /// Adds an element of KEYS.
    pub fn key(mut self, key: impl ToArg) -> Self {
        self.keys.push(key.with_bytes(<[u8]>::to_vec));
        self
    }

    /// Adds an element of ARGV.
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        self.args.push(arg.with_bytes(<[u8]>::to_vec));
        self
    }

    /// Runs it, and has it compiled first if the engine does not know it.
    pub fn run(&self, client: &mut Client) -> Result<Value, Error> {
        match self.command("EVALSHA", &self.script.digest).run(client) {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                self.command("EVAL", &self.script.source).run(client)
            }
            other => other,
        }
    }

    /// As [`ScriptCall::run`], with the reply as a Rust type.
    pub fn query<T: FromValue>(&self, client: &mut Client) -> Result<T, Error> {
        Ok(T::from_value(self.run(client)?)?)
    }

    /// As [`ScriptCall::run`], as a future.
    pub async fn run_async(&self, client: &mut Client) -> Result<Value, Error> {
        match self.command("EVALSHA", &self.script.digest).run_async(client).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                self.command("EVAL", &self.script.source).run_async(client).await
            }
            other => other,
        }
    }

    /// As [`ScriptCall::query`], as a future.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
    /// # let mut client = engine.client();
    /// use russet_embedded::Script;
    ///
    /// let add = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    /// let add = add.call().key("total").arg(5);
    /// let sum = add.query_async(&mut client);
    /// # let mut context = Context::from_waker(Waker::noop());
    /// # let Poll::Ready(sum) = pin!(sum).poll(&mut context) else { unreachable!("it is free") };
    /// # let sum: i64 = sum?;
    /// // let sum: i64 = sum.await?;
    /// assert_eq!(sum, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn query_async<T: FromValue>(&self, client: &mut Client) -> Result<T, Error> {
        Ok(T::from_value(self.run_async(client).await?)?)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        cmd(name).arg(script).arg(self.keys.len()).args(&self.keys).args(&self.args)
    }
}
