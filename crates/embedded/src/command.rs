//! A command, built argument by argument.

use crate::client::Client;
use crate::convert::FromValue;
use crate::error::Error;
use crate::future::ReplyFuture;
use crate::requests::Requests;
use russet_protocol::Value;

/// Something that can be an argument of a command.
pub trait ToArg {
    /// Hands its bytes over.
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R;
}

macro_rules! arg_of_bytes {
    ($($type:ty),*) => {$(
        impl ToArg for $type {
            fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
                take(self.as_ref())
            }
        }
    )*};
}

arg_of_bytes!(str, String, [u8], Vec<u8>, Box<[u8]>, std::sync::Arc<[u8]>);

impl<const N: usize> ToArg for [u8; N] {
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        take(self)
    }
}

impl<T: ToArg + ?Sized> ToArg for &T {
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(take)
    }
}

macro_rules! arg_of_number {
    ($($type:ty),*) => {$(
        impl ToArg for $type {
            fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
                take(self.to_string().as_bytes())
            }
        }
    )*};
}

arg_of_number!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);

/// A command and its arguments. Made by [`cmd`].
///
/// ```
/// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
/// # let mut client = engine.client();
/// use russet_embedded::cmd;
///
/// cmd("ZADD").arg("board").arg(7.5).arg("ada").run(&mut client)?;
/// let board: Vec<(String, f64)> =
///     cmd("ZRANGE").arg("board").args([0, -1]).arg("WITHSCORES").query(&mut client)?;
/// assert_eq!(board, [("ada".to_owned(), 7.5)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a command does nothing before it is run"]
pub struct Cmd {
    /// Its arguments so far; the command is ended when it is handed on.
    args: Requests,
}

/// Begins a command: its name.
pub fn cmd(name: &str) -> Cmd {
    let mut args = Requests::default();
    args.push(name.as_bytes());
    Cmd { args }
}

impl Cmd {
    /// Adds an argument.
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        arg.with_bytes(|bytes| self.args.push(bytes));
        self
    }

    /// Adds several arguments.
    pub fn args(self, args: impl IntoIterator<Item: ToArg>) -> Self {
        args.into_iter().fold(self, Cmd::arg)
    }

    pub(crate) fn add_to(&self, requests: &mut Requests) {
        requests.append(&self.args);
        requests.end_command();
    }

    /// As [`Client::call`].
    pub fn run(&self, client: &mut Client) -> Result<Value, Error> {
        client.begin_cmd(self);
        client.wait_for_reply()
    }

    /// As [`Client::query`].
    pub fn query<T: FromValue>(&self, client: &mut Client) -> Result<T, Error> {
        Ok(T::from_value(self.run(client)?)?)
    }

    /// As [`Client::call_async`].
    pub fn run_async<'c>(&self, client: &'c mut Client) -> ReplyFuture<'c, Value> {
        client.begin_cmd(self);
        ReplyFuture::new(client, Client::finish_call)
    }

    /// As [`Client::query_async`].
    pub fn query_async<'c, T: FromValue>(&self, client: &'c mut Client) -> ReplyFuture<'c, T> {
        client.begin_cmd(self);
        ReplyFuture::new(client, |client| Ok(T::from_value(client.finish_call()?)?))
    }
}
