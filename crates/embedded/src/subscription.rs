//! Messages of channels.

use crate::client::Client;
use crate::error::Error;
use crate::inbox::Awaited;
use russet_base::UnixMillis;
use russet_protocol::{Value, decode};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// A published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it was published.
    pub channel: Vec<u8>,
    /// What was published.
    pub payload: Vec<u8>,
    /// Why it came here.
    pub kind: MessageKind,
}

/// By which kind of subscription a message came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// It listens to the channel.
    Channel,
    /// The channel matches this pattern.
    Pattern(Vec<u8>),
    /// It listens to the shard channel.
    ShardChannel,
}

/// A client that listens. Messages wait for it to be asked: if more than
/// `client-output-buffer-limit pubsub` allows are unread (32 MB by default), it is disconnected, as
/// a connection would be, and they are gone.
///
/// As an iterator it gives one message after the other, and ends when it is disconnected or the
/// engine is closed.
///
/// ```
/// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
/// # let mut client = engine.client();
/// let mut news = client.subscribe(&["news"])?;
/// client.call(&["PUBLISH", "news", "it works"])?;
/// let message = news.next().expect("the engine is open");
/// assert_eq!((message.channel, message.payload), (b"news".to_vec(), b"it works".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Subscription {
    client: Client,
}

impl Subscription {
    pub(crate) fn new(client: Client) -> Self {
        Subscription { client }
    }

    /// Listens to further channels.
    pub fn subscribe(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change("SUBSCRIBE", channels)
    }

    /// As [`Subscription::subscribe`], as a future.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
    /// # let client = engine.client();
    /// # let both = async {
    /// let mut news = client.subscribe_async(&["news"]).await?;
    /// news.subscribe_async(&["weather"]).await?;
    /// assert_eq!(news.len(), 2);
    /// # Ok::<(), russet_embedded::Error>(())
    /// # };
    /// # let mut context = Context::from_waker(Waker::noop());
    /// # assert_eq!(pin!(both).poll(&mut context), Poll::Ready(Ok(())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn subscribe_async(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change_async("SUBSCRIBE", channels).await
    }

    /// Listens to no channel of these any more; to none at all if none are named.
    pub fn unsubscribe(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change("UNSUBSCRIBE", channels)
    }

    /// As [`Subscription::unsubscribe`], as a future.
    pub async fn unsubscribe_async(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change_async("UNSUBSCRIBE", channels).await
    }

    /// Listens to the channels that match further patterns.
    pub fn psubscribe(
        &mut self,
        patterns: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change("PSUBSCRIBE", patterns)
    }

    /// As [`Subscription::psubscribe`], as a future.
    pub async fn psubscribe_async(
        &mut self,
        patterns: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change_async("PSUBSCRIBE", patterns).await
    }

    /// Listens to these patterns no longer; to none if none is named.
    pub fn punsubscribe(
        &mut self,
        patterns: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change("PUNSUBSCRIBE", patterns)
    }

    /// As [`Subscription::punsubscribe`], as a future.
    pub async fn punsubscribe_async(
        &mut self,
        patterns: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change_async("PUNSUBSCRIBE", patterns).await
    }

    /// Listens to further shard channels.
    pub fn ssubscribe(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change("SSUBSCRIBE", channels)
    }

    /// As [`Subscription::ssubscribe`], as a future.
    pub async fn ssubscribe_async(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change_async("SSUBSCRIBE", channels).await
    }

    /// Listens to these shard channels no longer; to none if none is named.
    pub fn sunsubscribe(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change("SUNSUBSCRIBE", channels)
    }

    /// As [`Subscription::sunsubscribe`], as a future.
    pub async fn sunsubscribe_async(
        &mut self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.change_async("SUNSUBSCRIBE", channels).await
    }

    fn change(
        &mut self,
        command: &str,
        names: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.client.call(change_call(command, names)).map(drop)
    }

    async fn change_async(
        &mut self,
        command: &str,
        names: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Error> {
        self.client.call_async(change_call(command, names)).await.map(drop)
    }

    /// Channels and patterns that it listens to.
    pub fn len(&self) -> usize {
        self.client.subscriptions()
    }

    /// Whether it listens to nothing: no message will come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next message, if one is there.
    pub fn try_next(&mut self) -> Result<Option<Message>, Error> {
        while let Some(bytes) = self.client.next_message()? {
            if let Some(message) = read(&bytes) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Waits for the next message, but not longer than this.
    pub fn next_timeout(&mut self, time: Duration) -> Result<Option<Message>, Error> {
        let ms = i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        let deadline = UnixMillis(self.client.now().0.saturating_add(ms));
        self.wait(Some(deadline))
    }

    fn wait(&mut self, deadline: Option<UnixMillis>) -> Result<Option<Message>, Error> {
        loop {
            if let Some(message) = self.try_next()? {
                return Ok(Some(message));
            }
            if deadline.is_some_and(|at| at <= self.client.now()) {
                return Ok(None);
            }
            self.client.sleep(Awaited::Messages, deadline);
        }
    }

    /// The next message, as a future. Nothing is lost if it is dropped.
    pub async fn next_async(&mut self) -> Result<Message, Error> {
        poll_fn(|context| {
            loop {
                match self.try_next() {
                    Ok(Some(message)) => return Poll::Ready(Ok(message)),
                    Ok(None) => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
                if self.client.register(Awaited::Messages, context.waker()) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// The client again, with the subscriptions that it has.
    pub fn into_client(self) -> Client {
        self.client
    }
}

impl Iterator for Subscription {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        self.wait(None).ok().flatten()
    }
}

fn change_call(command: &str, names: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Vec<u8>> {
    let names = names.into_iter().map(|name| name.as_ref().to_vec());
    std::iter::once(command.as_bytes().to_vec()).chain(names).collect()
}

/// None for what is no message of a channel.
fn read(bytes: &[u8]) -> Option<Message> {
    let (value, _len) = decode(bytes).ok()??;
    let (Value::Push(parts) | Value::Array(parts)) = value else { return None };
    let texts: Option<Vec<Vec<u8>>> = parts.into_iter().map(into_text).collect();
    let mut texts = texts?.into_iter();
    let kind = match texts.next()?.as_slice() {
        b"message" => MessageKind::Channel,
        b"smessage" => MessageKind::ShardChannel,
        b"pmessage" => MessageKind::Pattern(texts.next()?),
        _ => return None,
    };
    Some(Message { channel: texts.next()?, payload: texts.next()?, kind })
}

fn into_text(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Bulk(bytes) => Some(bytes),
        _ => None,
    }
}
