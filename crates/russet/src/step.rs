//! Steps: the Lua scripts that workflows are made of. Each is written once, as the body of a
//! function of `KEYS` and `ARGV` that uses no keys but these, and is run as a script by the kit or
//! called as a function by programs in other languages.
//!
//! A step answers with an [`Envelope`]: a status, then names and values. The head of its file says
//! what it takes and gives; docs/functions.md is made of these.
//!
//! A step that is safe with a request id has the marker of the request as its first key, and how
//! long it is kept as its first argument, `0` for a call without an id. What its body returns is
//! kept in the marker, unless it returns true behind it: then nothing was changed. The kit's
//! markers are bound to the step and to what the request is about; other programs must not use a
//! marker for two different requests.

mod memory;
mod reference;
mod shared;
#[cfg(test)]
mod tests;

pub use reference::reference;

use crate::backend::Connection;
use crate::error::{Error, Result};
use crate::key::{Key, Keys};
use crate::kit::Kit;
use crate::observe;
use crate::reply::{Envelope, Reply};
use crate::request::{Request, ToArg};
use crate::retry::{Attempts, RequestId, RetryClass};
use memory::ALLOW_OOM;
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::borrow::Borrow;
use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::time::Duration;
use tracing::Instrument;

/// Part of the names of the library and its functions: two versions can serve side by side.
pub const VERSION: u32 = 1;

const PRELUDE: &str = include_str!("step/prelude.lua");
/// What remembers the replies to requests. Scripts that do not need it do not have it: a function
/// that nobody calls has a key that nobody knows.
const REQUEST: &str = include_str!("step/request.lua");

/// How long the key stays that is written before WAIT: nobody reads it.
const CONFIRMATION_TTL: Duration = Duration::from_secs(1);

/// Bytes of the digest that binds a marker to its step and keys.
const MARKER_DIGEST_BYTES: usize = 8;

/// The retry class of a step, as a type.
pub trait Class: Send + Sync + 'static {
    /// As a value.
    const CLASS: RetryClass;
}

/// May run twice.
#[derive(Debug)]
pub enum Safe {}
/// May run twice with the same request id.
#[derive(Debug)]
pub enum WithRequestId {}
/// Must not run twice.
#[derive(Debug)]
pub enum Unsafe {}

impl Class for Safe {
    const CLASS: RetryClass = RetryClass::Safe;
}

impl Class for WithRequestId {
    const CLASS: RetryClass = RetryClass::WithRequestId;
}

impl Class for Unsafe {
    const CLASS: RetryClass = RetryClass::Unsafe;
}

/// One step.
#[derive(Debug)]
pub struct Step<C> {
    info: StepInfo,
    class: PhantomData<C>,
}

/// What is known of a step.
#[derive(Debug)]
pub struct StepInfo {
    name: &'static str,
    /// Functions that several steps of a workflow use.
    shared: &'static str,
    body: &'static str,
    class: RetryClass,
    is_read_only: bool,
    /// As it is called, and as it is called under a request id.
    script: OnceLock<Script>,
    remembering_script: OnceLock<Script>,
}

#[derive(Debug)]
struct Script {
    source: String,
    sha1: String,
}

impl Script {
    /// With what it needs of the prelude, and `redis.call` looked up once. `refuse` is written out:
    /// nearly no call needs it, and a function takes time to make.
    fn new(code: &str, allows_oom: bool) -> Self {
        let code = code.replace(" refuse(", " redis.error_reply('INVALID ' .. ");
        let code = shared::called(PRELUDE, &code) + &code;
        let flags = if allows_oom { "#!lua flags=allow-oom\n" } else { "" };
        let code = code.replace("redis.call(", "call(");
        let source = format!("{flags}local call = redis.call\n{code}");
        let digest = Sha1::digest(source.as_bytes());
        let sha1 = digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Script { source, sha1 }
    }
}

impl<C: Class> Step<C> {
    pub(crate) const fn new(name: &'static str, body: &'static str) -> Self {
        let info = StepInfo {
            name,
            shared: "",
            body,
            class: C::CLASS,
            is_read_only: false,
            script: OnceLock::new(),
            remembering_script: OnceLock::new(),
        };
        Step { info, class: PhantomData }
    }

    /// With functions that several steps use, before its body.
    pub(crate) const fn sharing(mut self, functions: &'static str) -> Self {
        self.info.shared = functions;
        self
    }

    /// It writes nothing.
    pub(crate) const fn read_only(name: &'static str, body: &'static str) -> Self {
        let mut step = Step::new(name, body);
        step.info.is_read_only = true;
        step
    }

    pub(crate) const fn info(&'static self) -> &'static StepInfo {
        &self.info
    }
}

impl StepInfo {
    /// As `limit_gcra`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The name of the function, as `russet_v1_limit_gcra`.
    pub fn function(&self) -> String {
        format!("russet_v{VERSION}_{}", self.name)
    }

    /// Whether it may run twice.
    pub fn class(&self) -> RetryClass {
        self.class
    }

    /// Whether it writes nothing.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// It runs when the server's memory is full too.
    pub fn allows_oom(&self) -> bool {
        ALLOW_OOM.contains(&self.name)
    }

    /// The comment at its head: what it does, takes and gives.
    pub fn documentation(&self) -> String {
        let lines = self.body.lines().take_while(|line| line.starts_with("--"));
        let text = lines.map(|line| line.trim_start_matches("--"));
        text.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }

    /// The whole of the script that the kit sends; of a step that is safe with a request id, the
    /// one that it sends with an id.
    pub fn source(&self) -> &str {
        &self.script(self.class == RetryClass::WithRequestId).source
    }

    /// The digest by which servers know it.
    pub fn sha1(&self) -> &str {
        &self.script(self.class == RetryClass::WithRequestId).sha1
    }

    /// Makes a marker that of this step, for a request that is about this.
    fn bind(&self, marker: &mut Key, about: &[u8]) {
        let digest = Sha256::new_with_prefix(self.name).chain_update([0]).chain_update(about);
        marker.bind(&digest.finalize()[..MARKER_DIGEST_BYTES]);
    }

    fn script(&self, remembers: bool) -> &Script {
        match remembers {
            true => self.remembering_script.get_or_init(|| {
                let (shared, body) = shared::placed(self.shared, self.body);
                let (function, call) = (as_function(&shared, &body), self.call_code());
                Script::new(&format!("{REQUEST}\n{function}{call}"), self.allows_oom())
            }),
            // Nothing is remembered, so the body need not be a function, which takes time to make.
            false => self.script.get_or_init(|| {
                let (shared, body) = shared::placed(self.shared, self.body);
                let check = self.check_code();
                let code = format!("{shared}local KEYS, ARGV = KEYS, ARGV\n{check}\n{body}");
                Script::new(&code, self.allows_oom())
            }),
        }
    }

    /// Its body as a function.
    fn function_code(&self) -> String {
        as_function(&shared::called(self.shared, self.body), self.body)
    }

    /// Refuses a call without some keys or arguments: a step that finds out half way has written
    /// half.
    fn check_code(&self) -> String {
        let (keys, args) = (self.count_of("KEYS:"), self.count_of("ARGV:"));
        format!("if #KEYS < {keys} or #ARGV < {args} then return refuse('count') end")
    }

    /// The call of that function, behind the check.
    fn call_code(&self) -> String {
        let check = self.check_code();
        let call = match self.class {
            RetryClass::WithRequestId => {
                "local kept = remembered(KEYS[1], ARGV[1])\n\
                 if kept then return kept end\n\
                 return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))\n"
            }
            RetryClass::Safe | RetryClass::Unsafe => "return (step(KEYS, ARGV))\n",
        };
        format!("{check}\n{call}")
    }

    /// How many keys or arguments a call has at least: those that its head numbers, without
    /// optional ones.
    fn count_of(&self, list: &str) -> usize {
        let head = self.documentation();
        let Some((_before, rest)) = head.split_once(list) else { return 0 };
        let is_part = |line: &&str| !["ARGV:", "Replies:"].iter().any(|it| line.starts_with(it));
        let lines: Vec<&str> = rest.lines().take_while(is_part).collect();
        let text = lines.join(" ");
        let items = text.split(';').filter(|item| !item.contains("optional"));
        let number = |item: &str| item.split_whitespace().next()?.parse().ok();
        items.filter_map(number).max().unwrap_or(0)
    }
}

/// A body as a function, behind those that it calls.
fn as_function(shared: &str, body: &str) -> String {
    format!("{shared}local function step(KEYS, ARGV)\n{body}end\n")
}

/// All steps, as a library for FUNCTION LOAD: what `functions/russet.lua` holds.
///
/// ```
/// assert!(russet::functions().starts_with("#!lua name=russet_v1\n"));
/// ```
pub fn functions() -> String {
    let mut library = format!("#!lua name=russet_v{VERSION}\n{PRELUDE}\n{REQUEST}");
    for step in all() {
        let flags = match (step.is_read_only, step.allows_oom()) {
            (true, _) => "'no-writes'",
            (false, true) => "'allow-oom'",
            (false, false) => "",
        };
        let (function, call) = (step.function_code(), step.call_code());
        // In a block each, so that the library has no more locals than the prelude.
        // Writing to a string does not fail.
        let _ = write!(
            library,
            "\ndo\n{function}redis.register_function{{function_name = '{}', flags = {{{flags}}}, \
             callback = function(KEYS, ARGV)\n{call}end}}\nend\n",
            step.function()
        );
    }
    library
}

/// Every step there is, by module.
pub fn all() -> impl Iterator<Item = &'static StepInfo> {
    static MODULES: &[&[&StepInfo]] = &[
        crate::activity::STEPS,
        crate::cache::STEPS,
        crate::counter::STEPS,
        crate::flag::STEPS,
        crate::idempotency::STEPS,
        crate::lease::STEPS,
        crate::limit::STEPS,
        crate::object::STEPS,
        crate::queue::JOBS_STEPS,
        crate::queue::LIST_STEPS,
        crate::queue::RELIABLE_STEPS,
        crate::queue::STREAM_STEPS,
        crate::ranking::STEPS,
        crate::sale::STEPS,
        crate::session::STEPS,
        crate::social::STEPS,
        crate::state::STEPS,
        crate::token::STEPS,
    ];
    MODULES.iter().flat_map(|steps| steps.iter().copied())
}

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
    pub(crate) fn about(self, arg: impl AsRef<[u8]>) -> Self {
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

    /// Runs it, and again if it fails in a way that allows it.
    pub async fn run(mut self) -> Result<Envelope> {
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
        Envelope::new(result?)
    }

    /// Runs it once, on a connection of one's own.
    pub async fn run_on(mut self, connection: &mut (dyn Connection + 'static)) -> Result<Envelope> {
        self.bind_marker();
        Envelope::new(self.send(Some(connection)).await?)
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
    /// A call of a step that may run twice, or that must not.
    pub(crate) fn step<C: NeedsNoRequestId>(&self, step: &'static Step<C>) -> StepCall<'_, C> {
        StepCall::new(self, step, C::CLASS == RetryClass::Safe)
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

/// A class whose steps are called without a marker.
pub(crate) trait NeedsNoRequestId: Class {}
impl NeedsNoRequestId for Safe {}
impl NeedsNoRequestId for Unsafe {}
