//! One client: it runs commands on the thread that calls, and waits for what they wait for.

use crate::command::Cmd;
use crate::convert::FromValue;
use crate::engine::Core;
use crate::error::{Error, checked};
use crate::future::ReplyFuture;
use crate::inbox::{Awaited, Inbox};
use crate::pipeline::Pipeline;
use crate::reply::{Answer, PlainReply, Replies};
use crate::requests::Requests;
use crate::subscription::Subscription;
use crate::transaction::{self, Transaction};
use russet_base::{SharedBytes, UnixMillis};
use russet_commands::call::client::{self as commands, After};
use russet_commands::call::dispatch::{Progress, Worker};
use russet_commands::node::clients::ClientCard;
use russet_commands::node::config::Directive;
use russet_protocol::{Resp, Value};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

/// How long a thread sleeps at most before it looks at the wall clock again, which may have been
/// set.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Where commands say that it calls from: this machine.
const ADDRESS: &str = "127.0.0.1:0";

/// A client of an [`Engine`](crate::Engine).
///
/// Each call comes in two forms. `call` and its like block the thread for as long as the command
/// waits: for a busy key, or as BLPOP does. `call_async` and its like give a future that needs no
/// runtime: whoever completes the wait wakes it, and the engine's own thread when its time is over.
/// A future that is dropped ends its call: a command that waits does not run. What another client
/// has handed over meanwhile is lost, as with a connection that breaks.
pub struct Client {
    core: Arc<Core>,
    link: Link,
    /// When housekeeping is to wake the future of the call.
    timer: Option<UnixMillis>,
    is_gone: bool,
}

/// A client of the commands, and the call that it has under way. Apart from the engine, whose
/// worker it uses.
struct Link {
    client: commands::Client,
    inbox: Arc<Inbox>,
    replies: Replies,
    /// The call under way. Its room is used again by the next.
    requests: Requests,
    /// Commands of it that are run, or that wait for keys.
    done: usize,
    /// It is a transaction of its own.
    is_atomic: bool,
}

impl Client {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let inbox = Arc::new(Inbox::new(&core.node));
        let (id, now) = (core.node.clients.next_id(), core.node.clock.now());
        let card = ClientCard::new(id, ADDRESS.to_owned(), ADDRESS.to_owned(), -1, now.0);
        let mut client = commands::Client::new(&core.node, card, inbox.clone());
        client.session.set_resp(Resp::V3);
        client.session.is_mailed = true;
        core.node.stats.connections.fetch_add(1, Ordering::Relaxed);
        let (replies, requests) = (Replies::default(), Requests::default());
        let link = Link { client, inbox, replies, requests, done: 0, is_atomic: false };
        Client { core, link, timer: None, is_gone: false }
    }

    /// Its number, as CLIENT ID gives it.
    pub fn id(&self) -> u64 {
        self.link.client.session.id()
    }

    /// Runs a command and waits for its reply. An error reply is an error.
    ///
    /// ```
    /// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
    /// # let mut client = engine.client();
    /// use russet_embedded::Value;
    ///
    /// assert_eq!(client.call(&["RPUSH", "jobs", "a", "b"])?, Value::Integer(2));
    /// let refused = client.call(&["INCR", "jobs"]).unwrap_err();
    /// assert_eq!(refused.code(), Some("WRONGTYPE"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call<I>(&mut self, args: I) -> Result<Value, Error>
    where
        I: IntoIterator<Item: AsRef<[u8]>>,
    {
        self.begin_call(args);
        self.wait_for_reply()
    }

    /// As [`Client::call`], with the reply as a Rust type.
    ///
    /// ```
    /// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
    /// # let mut client = engine.client();
    /// use std::collections::HashMap;
    ///
    /// client.call(&["HSET", "user", "name", "Ada", "age", "36"])?;
    /// let user: HashMap<String, String> = client.query(&["HGETALL", "user"])?;
    /// assert_eq!(user["name"], "Ada");
    /// let (name, age): (String, u8) = client.query(&["HMGET", "user", "name", "age"])?;
    /// assert_eq!((name.as_str(), age), ("Ada", 36));
    /// let nobody: Option<String> = client.query(&["GET", "nobody"])?;
    /// assert_eq!(nobody, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn query<T: FromValue>(
        &mut self,
        args: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<T, Error> {
        Ok(T::from_value(self.call(args)?)?)
    }

    /// As [`Client::call`], as a future.
    pub fn call_async<I>(&mut self, args: I) -> ReplyFuture<'_, Value>
    where
        I: IntoIterator<Item: AsRef<[u8]>>,
    {
        self.begin_call(args);
        ReplyFuture::new(self, Client::finish_call)
    }

    /// As [`Client::query`], as a future.
    pub fn query_async<T: FromValue>(
        &mut self,
        args: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> ReplyFuture<'_, T> {
        self.begin_call(args);
        ReplyFuture::new(self, |client| Ok(T::from_value(client.finish_call()?)?))
    }

    /// As [`Client::call`], without waiting. None if the command has to wait, for a busy key or as
    /// BLPOP does: then [`Client::resume_async`] gives its reply.
    pub fn try_call<T: PlainReply>(
        &mut self,
        args: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Option<Result<Answer<T>, Error>> {
        self.begin_call(args);
        let result = match self.advance() {
            Ok(true) => match self.link.replies.take_plain() {
                Some(reply) => Ok(Answer::Plain(reply)),
                None => self.finish_call().map(Answer::Other),
            },
            Ok(false) => return None,
            Err(error) => Err(error),
        };
        self.end_call();
        Some(result)
    }

    /// Goes on with the call that [`Client::try_call`] has left waiting.
    pub fn resume_async(&mut self) -> ReplyFuture<'_, Value> {
        ReplyFuture::new(self, Client::finish_call)
    }

    /// Commands that are run in one go; see [`Pipeline`].
    pub fn pipeline(&mut self) -> Pipeline<'_> {
        Pipeline::new(self)
    }

    /// Reads and then writes, unless someone else has changed the keys in between; then it begins
    /// again. See [`Transaction`].
    ///
    /// ```
    /// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
    /// # let mut client = engine.client();
    /// use russet_embedded::cmd;
    ///
    /// client.call(&["SET", "stock", "5"])?;
    /// let (left, _replies) = client.transaction(&["stock"], |transaction| {
    ///     let stock: i64 = transaction.query(&["GET", "stock"])?;
    ///     let left = stock / 2;
    ///     transaction.queue(cmd("SET").arg("stock").arg(left));
    ///     Ok(left)
    /// })?;
    /// assert_eq!(left, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transaction<T>(
        &mut self,
        watched: impl IntoIterator<Item: AsRef<[u8]>>,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<(T, Vec<Value>), Error> {
        transaction::run(self, watched, body)
    }

    /// As [`Client::transaction`], as a future. Dropped before it is ready, it watches no longer.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # let engine = russet_embedded::Engine::open(russet_embedded::Options::new())?;
    /// # let mut client = engine.client();
    /// use russet_embedded::cmd;
    ///
    /// client.call(&["SET", "stock", "5"])?;
    /// let sale = client.transaction_async(&["stock"], async |transaction| {
    ///     let stock: i64 = transaction.query_async(&["GET", "stock"]).await?;
    ///     transaction.queue(cmd("SET").arg("stock").arg(stock - 1));
    ///     Ok(stock - 1)
    /// });
    /// # let Poll::Ready(sold) = pin!(sale).poll(&mut Context::from_waker(Waker::noop())) else {
    /// #     unreachable!("nothing is in its way")
    /// # };
    /// # let (left, _replies) = sold?;
    /// // let (left, _replies) = sale.await?;
    /// assert_eq!(left, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn transaction_async<T>(
        &mut self,
        watched: impl IntoIterator<Item: AsRef<[u8]>>,
        body: impl AsyncFnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<(T, Vec<Value>), Error> {
        transaction::run_async(self, watched, body).await
    }

    /// Listens to channels, as a client of its own; this one stays free for commands.
    pub fn subscribe(
        &self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Subscription, Error> {
        let mut subscription = Client::new(self.core.clone()).into_subscription();
        subscription.subscribe(channels)?;
        Ok(subscription)
    }

    /// As [`Client::subscribe`], as a future.
    pub async fn subscribe_async(
        &self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Subscription, Error> {
        let mut subscription = Client::new(self.core.clone()).into_subscription();
        subscription.subscribe_async(channels).await?;
        Ok(subscription)
    }

    /// As [`Client::subscribe`], for patterns of channels.
    pub fn psubscribe(
        &self,
        patterns: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Subscription, Error> {
        let mut subscription = Client::new(self.core.clone()).into_subscription();
        subscription.psubscribe(patterns)?;
        Ok(subscription)
    }

    /// As [`Client::psubscribe`], as a future.
    pub async fn psubscribe_async(
        &self,
        patterns: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Subscription, Error> {
        let mut subscription = Client::new(self.core.clone()).into_subscription();
        subscription.psubscribe_async(patterns).await?;
        Ok(subscription)
    }

    /// As [`Client::subscribe`], for shard channels.
    pub fn ssubscribe(
        &self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Subscription, Error> {
        let mut subscription = Client::new(self.core.clone()).into_subscription();
        subscription.ssubscribe(channels)?;
        Ok(subscription)
    }

    /// As [`Client::ssubscribe`], as a future.
    pub async fn ssubscribe_async(
        &self,
        channels: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Subscription, Error> {
        let mut subscription = Client::new(self.core.clone()).into_subscription();
        subscription.ssubscribe_async(channels).await?;
        Ok(subscription)
    }

    /// The messages of the channels that it has subscribed to by commands.
    pub fn into_subscription(self) -> Subscription {
        Subscription::new(self)
    }

    #[inline]
    fn begin_call(&mut self, args: impl IntoIterator<Item: AsRef<[u8]>>) {
        self.begin();
        args.into_iter().for_each(|arg| self.link.requests.push(arg.as_ref()));
        self.link.requests.end_command();
    }

    pub(crate) fn begin_cmd(&mut self, cmd: &Cmd) {
        self.begin();
        cmd.add_to(&mut self.link.requests);
    }

    /// Adds a command without arguments to the call that was begun.
    pub(crate) fn add_command(&mut self, name: &[u8]) {
        self.link.requests.push(name);
        self.link.requests.end_command();
    }

    pub(crate) fn add_all(&mut self, requests: &Requests) {
        self.link.requests.append(requests);
    }

    /// The call that was begun opens a transaction, which must not stay open.
    pub(crate) fn set_atomic(&mut self) {
        self.link.is_atomic = true;
    }

    /// Forgets the call before it, of which a future may have been lost.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if !self.link.requests.is_untouched() {
            self.end_call();
        }
    }

    /// Gives up a transaction that is open, and what it watches.
    pub(crate) fn discard(&mut self) {
        self.link.client.discard();
    }

    /// Whether a command of the call under way has not been run.
    fn is_incomplete(&self) -> bool {
        self.link.done < self.link.requests.len()
    }

    /// The call is over, answered or not.
    #[inline]
    pub(crate) fn end_call(&mut self) {
        if self.link.client.is_waiting() {
            self.link.client.cancel();
        }
        if self.timer.is_some() {
            self.remove_timer();
        }
        if std::mem::take(&mut self.link.is_atomic) && self.is_incomplete() {
            self.discard();
        }
        self.link.requests.clear();
        self.link.done = 0;
        if !self.link.replies.is_empty() {
            self.link.replies.clear();
        }
    }

    fn remove_timer(&mut self) {
        if let Some(at) = self.timer.take() {
            self.core.timers.remove(at, self.id());
        }
    }

    #[inline]
    pub(crate) fn wait_for_reply(&mut self) -> Result<Value, Error> {
        let result = self.wait().and_then(|()| self.finish_call());
        self.end_call();
        result
    }

    /// Blocks the thread until all replies of the call are there.
    #[inline]
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        while !self.advance()? {
            self.sleep(Awaited::Letters, self.link.client.deadline());
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn finish_call(&mut self) -> Result<Value, Error> {
        // None of these is an error.
        if let Some(value) = self.link.replies.take_plain() {
            return Ok(value);
        }
        if self.link.replies.is_empty() && self.link.client.session.is_closing {
            return Err(self.why_gone());
        }
        checked(self.link.replies.take_one()?)
    }

    pub(crate) fn finish_all(&mut self) -> Result<Vec<Value>, Error> {
        if self.is_incomplete() {
            return Err(self.why_gone());
        }
        self.link.replies.take_all()
    }

    /// When housekeeping is to wake the future of the call under way.
    pub(crate) fn set_timer(&mut self) {
        let deadline = self.link.client.deadline();
        if deadline != self.timer {
            self.remove_timer();
        }
        // A timer that has fired is set again: the wall clock may have been set back since.
        if let Some(at) = deadline {
            self.core.timers.add(at, self.id(), &self.link.inbox);
            self.timer = deadline;
        }
    }

    /// Goes on with the call; whether all its replies are there.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        self.check_presence()?;
        let config = &self.core.node.config;
        self.link.requests.check(|| config.int(Directive::ProtoMaxBulkLen) as usize)?;
        let now = self.with_worker(Link::advance);
        now.ok_or_else(|| self.lose())
    }

    /// Acts on letters while no call is under way.
    fn read_mail(&mut self) -> Result<(), Error> {
        self.check_presence()?;
        if self.link.inbox.has_letters() && self.with_worker(Link::read_letters).is_none() {
            return Err(self.lose());
        }
        Ok(())
    }

    #[inline]
    fn check_presence(&mut self) -> Result<(), Error> {
        if self.core.is_closed() || self.is_gone || self.link.client.session.is_closing {
            return Err(self.lose());
        }
        Ok(())
    }

    #[inline]
    fn with_worker<R>(&mut self, action: impl FnOnce(&mut Link, &mut Worker) -> R) -> R {
        let mut worker = self.core.workers.take();
        worker.read_clock();
        worker.begin_batch();
        self.link.client.session.card.last_ms.store(worker.now.0, Ordering::Relaxed);
        let result = action(&mut self.link, &mut worker);
        if self.link.requests.len() == 1 {
            worker.end_call();
        } else {
            worker.end_batch();
        }
        drop(worker);
        self.link.client.end_turn();
        result
    }

    /// Goes to sleep until something comes, or the time is over.
    pub(crate) fn sleep(&self, awaited: Awaited, until: Option<UnixMillis>) {
        let time = until.map(|at| {
            let ms = at.ms_since(self.core.node.clock.now());
            Duration::from_millis(u64::try_from(ms).unwrap_or(0)).min(SLEEP_MAX)
        });
        self.link.inbox.wait(awaited, time);
    }

    /// Leaves a waker; false if there is no need to wait.
    pub(crate) fn register(&self, awaited: Awaited, waker: &Waker) -> bool {
        self.link.inbox.register(awaited, waker)
    }

    pub(crate) fn now(&self) -> UnixMillis {
        self.core.node.clock.now()
    }

    /// The next message of a channel that it listens to.
    pub(crate) fn next_message(&mut self) -> Result<Option<SharedBytes>, Error> {
        self.read_mail()?;
        let Link { inbox, client, .. } = &self.link;
        Ok(std::iter::from_fn(|| inbox.next_message()).find(|it| client.session.takes_push(it)))
    }

    /// Channels and patterns that it listens to.
    pub(crate) fn subscriptions(&self) -> usize {
        self.link.client.session.subscriptions.count_all()
    }

    fn why_gone(&self) -> Error {
        if self.core.is_closed() { Error::Closed } else { Error::Disconnected }
    }

    /// Leaves, and says why.
    #[cold]
    fn lose(&mut self) -> Error {
        self.leave();
        self.why_gone()
    }

    /// Nobody serves, watches or publishes for it any more.
    fn leave(&mut self) {
        if !std::mem::replace(&mut self.is_gone, true) {
            self.remove_timer();
            self.link.client.disconnect(&self.core.node);
            self.link.client.end_turn();
            self.link.inbox.close();
        }
    }
}

impl Link {
    /// Goes on with the call; whether all its replies are there. None: the client is to end.
    #[inline]
    fn advance(&mut self, worker: &mut Worker) -> Option<bool> {
        if self.inbox.has_letters() {
            self.read_letters(worker)?;
        }
        let Link { client, requests, replies, done, .. } = self;
        if client.is_waiting() {
            client.tick(worker, &mut replies.out);
        }
        while *done < requests.len() {
            if !client.may_run() {
                return Some(client.session.is_closing && !client.is_waiting());
            }
            if *done + 1 < requests.len() {
                let commands = requests.commands(*done);
                let ran = client.run_batch(worker, commands, &mut replies.out);
                *done += ran.count;
                if ran.count > 0 {
                    continue;
                }
            }
            match client.run(worker, requests.command(*done), &mut replies.out) {
                Progress::Busy => return Some(false),
                Progress::Done | Progress::Blocked => *done += 1,
            }
        }
        Some(!client.is_waiting() && client.may_show(&worker.node))
    }

    #[cold]
    fn read_letters(&mut self, worker: &mut Worker) -> Option<()> {
        while let Some(letter) = self.inbox.next_letter() {
            if self.client.letter(worker, letter, &mut self.replies.out) == After::Close {
                return None;
            }
        }
        (!self.inbox.is_cut_off()).then_some(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id()).finish_non_exhaustive()
    }
}
