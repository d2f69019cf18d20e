//! A call of a step: its keys and arguments, under which id it is remembered, and how it is run.

use super::{Class, Safe, Step, Takes, Unsafe, VERSION, WithRequestId};
use crate::backend::Connection;
use crate::error::{Error, Result};
use crate::key::{Key, Keys};
use crate::kit::Kit;
use crate::observe;
use crate::reply::{Envelope, Reply};
use crate::request::{Request, ToArg};
use crate::retry::{Attempts, RequestId, RetryClass};
use std::borrow::Borrow;
use std::time::Duration;
use tracing::Instrument;

/// How long the key stays that is written before WAIT: nobody reads it.
const CONFIRMATION_TTL: Duration = Duration::from_secs(1);

/// A connection of the caller's own, if the shared one will not do.
type Own<'c> = Option<&'c mut (dyn Connection + 'static)>;

/// A step with its keys and arguments.
#[derive(Debug)]
pub struct StepCall<'k, C: 'static> {
    kit: &'k Kit,
    step: &'static Step<C>,
    /// The first key, and the others.
    first: Option<Key>,
    keys: Request,
    args: Request,
    may_run_twice: bool,
    replicas_min: u32,
    /// Its reply is remembered, under its first key.
    remembers: bool,
    /// That key is not bound to what the request is about yet.
    is_unbound: bool,
    /// What the request is about, beside the keys.
    about: Vec<u8>,
}

impl<'k, C: Class> StepCall<'k, C> {
    /// Adds an element of `KEYS`.
    pub fn key(mut self, key: impl Borrow<Key>) -> Self {
        self.push_key(key.borrow());
        self
    }

    fn push_key(&mut self, key: &Key) {
        if self.first.is_none() {
            self.first = Some(key.clone());
            return;
        }
        if self.keys.is_empty() {
            self.keys = Request::with_room(KEYS_ROOM.0, KEYS_ROOM.1);
            // Its pattern is not known any more when the call is run.
            if C::CLASS == RetryClass::WithRequestId {
                observe::used(key);
            }
        }
        self.keys.push_key(key);
    }

    /// Adds several keys.
    pub(crate) fn keys<'a>(mut self, keys: impl IntoIterator<Item = &'a Key>) -> Self {
        for key in keys {
            self.push_key(key);
        }
        self
    }

    /// Adds an element of `ARGV`.
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        arg.add_to(&mut self.args);
        self
    }

    /// Done only when so many replicas have confirmed it; else its outcome is unknown.
    pub(crate) fn replicas_min(mut self, count: u32) -> Self {
        self.replicas_min = count;
        self
    }

    /// An argument that says what the request is about: the same id with another one is another
    /// request.
    pub fn about(self, arg: impl AsRef<[u8]>) -> Self {
        self.bound_to(arg.as_ref()).arg(arg.as_ref())
    }

    /// What the request is about, if no argument says so. Not a key that changes with the time: a
    /// request that is repeated later is still the same.
    pub(crate) fn bound_to(mut self, content: impl AsRef<[u8]>) -> Self {
        if !self.is_unbound {
            return self;
        }
        let content = content.as_ref();
        self.about.extend_from_slice(&(content.len() as u64).to_le_bytes());
        self.about.extend_from_slice(content);
        self
    }

    /// Where the reply to its request is remembered, once all is said about it.
    pub(crate) fn marker(&mut self) -> Option<Key> {
        self.bind_marker();
        self.first.clone()
    }

    /// Makes the marker that of this step and of what the request is about: a caller's id for one
    /// step, or for one object, must not answer for another.
    fn bind_marker(&mut self) {
        if !std::mem::take(&mut self.is_unbound) {
            return;
        }
        if let Some(marker) = &mut self.first {
            self.step.info.bind(marker, &self.about);
        }
    }

    /// With these arguments a second run changes nothing, whatever the class of the step.
    pub(crate) fn repeatable(mut self) -> Self {
        self.may_run_twice = true;
        self
    }

    /// A call of a program's own step has what it takes, in one slot: a cluster would refuse it
    /// otherwise, and other backends would not.
    fn check(&self) -> Result<()> {
        let Some(takes) = &self.step.info.takes else { return Ok(()) };
        let marker = usize::from(C::CLASS == RetryClass::WithRequestId);
        let keys = usize::from(self.first.is_some()) + self.keys.len();
        takes.check(keys.saturating_sub(marker), self.args.len().saturating_sub(marker))?;
        let slot = self.first.as_ref().map(Key::slot);
        let is_elsewhere = |key: &[u8]| Some(russet_base::slot::slot(key)) != slot;
        if self.keys.args().any(is_elsewhere) {
            return Err(Error::invalid("the keys of a step must be of one scope"));
        }
        Ok(())
    }

    /// Runs it, and again if it fails in a way that allows it.
    pub async fn run(mut self) -> Result<Envelope> {
        self.check()?;
        self.bind_marker();
        let name = self.step.info.name;
        let span = tracing::debug_span!(
            "russet",
            operation = name,
            version = VERSION,
            key = self.first.as_ref().map(|key| tracing::field::display(key.pattern())),
            attempt = tracing::field::Empty,
            result = tracing::field::Empty,
        );
        // The marker of a request is a new one each time, and says nothing: the key behind it does.
        if C::CLASS != RetryClass::WithRequestId {
            self.first.iter().for_each(observe::used);
        }
        let watch = observe::Stopwatch::start();
        let result = self.attempts(span.clone()).instrument(span).await;
        observe::ended(name, &result, watch);
        result
    }

    async fn attempts(&self, span: tracing::Span) -> Result<Envelope> {
        let (name, policy) = (self.step.info.name, self.kit.settings().retry);
        let mut attempts = Attempts::first();
        loop {
            let result = self.attempt().await;
            if !span.is_disabled() {
                span.record("attempt", attempts.number);
                match &result {
                    Ok(envelope) => span.record("result", envelope.status()),
                    Err(error) => span.record("result", error.kind()),
                };
            }
            let error = match result {
                Err(error) => error,
                done => return done,
            };
            let pause = attempts.failed(policy, self.may_run_twice, &error)?;
            observe::retried(name, &error);
            self.kit.time().sleep(pause).await;
        }
    }

    async fn attempt(&self) -> Result<Envelope> {
        let mut own = match (self.replicas_min, &self.first) {
            (0, _) | (_, None) => None,
            (_, Some(key)) => Some((self.kit.connection(key.slot()).await?, key)),
        };
        let result = match &mut own {
            Some((connection, _key)) => self.send(Some(connection.as_mut())).await,
            None => self.send(None).await,
        };
        if let (Ok(_), Some((connection, key))) = (&result, &mut own) {
            self.confirm(connection.as_mut(), &key.confirmation()).await?;
        }
        if let Err(Error::Unknown(_)) = &result {
            observe::lost(self.step.info.name);
        }
        self.envelope(result?)
    }

    /// Runs it once, on a connection of one's own.
    pub async fn run_on(mut self, connection: &mut (dyn Connection + 'static)) -> Result<Envelope> {
        self.check()?;
        self.bind_marker();
        let reply = self.send(Some(connection)).await?;
        self.envelope(reply)
    }

    fn envelope(&self, reply: Reply) -> Result<Envelope> {
        let envelope = Envelope::new(reply)?;
        match self.step.info.takes {
            Some(_) => Takes::envelope(envelope),
            None => Ok(envelope),
        }
    }

    /// By its digest, or in full to a server that does not know it.
    async fn send(&self, mut own: Own<'_>) -> Result<Reply> {
        let info = &self.step.info;
        let script = info.script(self.remembers);
        let by_digest = self.request("EVALSHA", &script.sha1);
        let result = self.call(own.as_deref_mut(), &by_digest).await;
        if matches!(&result, Err(Error::Refused { code, .. }) if code == "NOSCRIPT") {
            observe::noscript(info.name);
            return self.call(own, &self.request("EVAL", &script.source)).await;
        }
        result
    }

    async fn call(&self, own: Own<'_>, it: &Request) -> Result<Reply> {
        match own {
            Some(connection) => connection.call(it, self.kit.timeout()).await,
            None => self.kit.call(it).await,
        }
    }

    /// WAIT covers what was written through the same connection and what came before that. A step
    /// that found its work done has written nothing, and an earlier attempt wrote through another
    /// connection: so something is written here in any case, behind whatever it answered for.
    async fn confirm(&self, connection: &mut dyn Connection, written: &Key) -> Result<()> {
        let limit = self.kit.timeout();
        let unknown = |why| Error::Unknown(format!("it ran, but {why}"));
        let write = Request::new("SET").key(written).arg("1").arg("PX").arg(CONFIRMATION_TTL);
        let reply = connection.call(&write, limit).await;
        reply.map_err(|error| unknown(error.to_string()))?;
        let wait = Request::new("WAIT").arg(self.replicas_min).arg(limit);
        let reply = connection.call(&wait, limit.saturating_mul(2)).await;
        match reply.map_err(|error| unknown(error.to_string()))?.into_int()? {
            count if count >= i64::from(self.replicas_min) => Ok(()),
            count => Err(unknown(format!("{count} replicas of {} have it", self.replicas_min))),
        }
    }

    fn request(&self, command: &str, script: &str) -> Request {
        let first = self.first.as_ref();
        let (keys, args) = (usize::from(first.is_some()) + self.keys.len(), &self.args);
        let key_bytes = first.map_or(0, |key| key.as_bytes().len()) + self.keys.bytes_total();
        let bytes = command.len() + script.len() + COUNT_ROOM + key_bytes + args.bytes_total();
        let mut request = Request::with_room(bytes, 3 + keys + args.len());
        request.push(command.as_bytes());
        request.push(script.as_bytes());
        keys.add_to(&mut request);
        first.into_iter().for_each(|key| request.push_key(key));
        request.append(&self.keys);
        request.append(args);
        request
    }

    fn new(kit: &'k Kit, step: &'static Step<C>, may_run_twice: bool) -> Self {
        StepCall {
            kit,
            step,
            first: None,
            keys: Request::default(),
            args: Request::with_room(ARGS_ROOM.0, ARGS_ROOM.1),
            may_run_twice,
            replicas_min: 0,
            remembers: false,
            is_unbound: false,
            about: Vec::new(),
        }
    }
}

/// Room for the count of the keys.
const COUNT_ROOM: usize = 4;
/// Room for the other keys of most steps: bytes, and how many.
const KEYS_ROOM: (usize, usize) = (256, 8);
/// Room for the arguments of most steps: bytes, and how many.
const ARGS_ROOM: (usize, usize) = (128, 12);

impl Kit {
    /// A call of a step that may run twice, or that must not; see [`Step::declare`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::key::Family;
    /// use russet::step::{Safe, Step, Takes};
    ///
    /// static LONGEST: Step<Safe> = Step::declare(
    ///     "words_longest",
    ///     Takes { keys: &["word"], args: &["candidate"] },
    ///     "local kept = redis.call('GET', word)
    ///      if not kept or #candidate > #kept then
    ///        redis.call('SET', word, candidate, 'EX', 3600)
    ///        kept = candidate
    ///      end
    ///      return {'OK', 'word', kept}",
    /// );
    ///
    /// let kit = russet::Kit::embedded(Default::default())?;
    /// let keys = kit.keys(Family { purpose: "words", version: 1 }, "english")?;
    /// for (candidate, longest) in [("oak", "oak"), ("willow", "willow"), ("ash", "willow")] {
    ///     let call = kit.step(&LONGEST).key(keys.key("word")).arg(candidate);
    ///     assert_eq!(call.run().await?.string("word")?, longest);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn step<C: NeedsNoRequestId>(&self, step: &'static Step<C>) -> StepCall<'_, C> {
        StepCall::new(self, step, C::CLASS == RetryClass::Safe)
    }

    /// A call of a step under the id of a request: run again with it, it changes nothing and gives
    /// the reply of the first time, for as long as [`Builder::request_ttl`](crate::Builder) says.
    /// The reply is kept in the slot of these keys, by the step itself. The id is one for this step
    /// and this scope; if the same one may be sent for several objects of the scope, say which by
    /// [`StepCall::about`]. See [`Step::declare`] for an example.
    pub fn dedup(
        &self,
        request: &RequestId,
        step: &'static Step<WithRequestId>,
        keys: &Keys,
    ) -> StepCall<'_, WithRequestId> {
        self.step_of_request(step, keys, Some(request))
    }

    /// A call of a step that may run twice if it has a request id: one without is tried once.
    pub(crate) fn step_of_request(
        &self,
        step: &'static Step<WithRequestId>,
        keys: &Keys,
        request: Option<&RequestId>,
    ) -> StepCall<'_, WithRequestId> {
        match request {
            Some(id) => self.remembered_step(step, keys.marker(id), self.settings().request_ttl),
            None => {
                let mut call = StepCall::new(self, step, false);
                call.first = Some(keys.key("request"));
                call.arg("0")
            }
        }
    }

    /// A call that the kit itself may repeat, but that no caller repeats by an id of its own: the
    /// marker is needed for as long as the attempts can take.
    pub(crate) fn step_of_own_request(
        &self,
        step: &'static Step<WithRequestId>,
        keys: &Keys,
    ) -> StepCall<'_, WithRequestId> {
        let settings = self.settings();
        let attempt = settings.timeout.saturating_add(settings.retry.pause_max);
        let ttl = attempt.saturating_mul(settings.retry.attempts_max).min(settings.request_ttl);
        self.remembered_step(step, keys.marker(&RequestId::random()), ttl)
    }

    /// A call whose reply stays under this marker for so long.
    pub(crate) fn remembered_step(
        &self,
        step: &'static Step<WithRequestId>,
        marker: Key,
        ttl: Duration,
    ) -> StepCall<'_, WithRequestId> {
        let mut call = StepCall::new(self, step, true);
        (call.remembers, call.is_unbound) = (true, true);
        call.first = Some(marker);
        call.arg(ttl)
    }
}

impl Step<WithRequestId> {
    /// Where its reply to a request is that is about nothing but its keys.
    pub(crate) fn marker(&self, keys: &Keys, request: &RequestId) -> Key {
        let mut marker = keys.marker(request);
        self.info.bind(&mut marker, &[]);
        marker
    }
}

/// A class whose steps are called without a request id.
pub trait NeedsNoRequestId: Class {}
impl NeedsNoRequestId for Safe {}
impl NeedsNoRequestId for Unsafe {}
