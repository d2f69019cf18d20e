//! Steps: the Lua scripts that workflows are made of. Each is written once, as the body of a
//! function of `KEYS` and `ARGV` that uses no keys but these, and is run as a script by the kit or
//! called as a function by programs in other languages.
//!
//! A step answers with an [`Envelope`](crate::reply::Envelope): a status, then names and values.
//! The head of its file says what it takes and gives; docs/functions.md is made of these.
//!
//! A step that is safe with a request id has the marker of the request as its first key, and how
//! long it is kept as its first argument, `0` for a call without an id. What its body returns is
//! kept in the marker, unless it returns true behind it: then nothing was changed. The kit's
//! markers are bound to the step and to what the request is about; other programs must not use a
//! marker for two different requests.
//!
//! Programs have steps of their own by [`Step::declare`], and run them by
//! [`Kit::step`](crate::Kit::step) or, with a request id, [`Kit::dedup`](crate::Kit::dedup).

mod call;
mod memory;
mod own;
mod reference;
mod shared;
#[cfg(test)]
mod tests;

pub use call::{NeedsNoRequestId, StepCall};
pub use own::Takes;
pub use reference::reference;

use crate::key::Key;
use crate::retry::RetryClass;
use memory::ALLOW_OOM;
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Part of the names of the library and its functions: two versions can serve side by side.
pub const VERSION: u32 = 1;

const PRELUDE: &str = include_str!("step/prelude.lua");
/// What remembers the replies to requests. Scripts that do not need it do not have it: a function
/// that nobody calls has a key that nobody knows.
const REQUEST: &str = include_str!("step/request.lua");

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
    /// Of a step of a program's own: what it takes, by name.
    takes: Option<Takes>,
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
        Script::as_written(format!("{flags}local call = redis.call\n{code}"))
    }

    fn as_written(source: String) -> Self {
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
            takes: None,
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
        let own = || self.takes.map(|takes| takes.script(self, remembers));
        match remembers {
            true => self.remembering_script.get_or_init(|| {
                if let Some(script) = own() {
                    return script;
                }
                let (shared, body) = shared::placed(self.shared, self.body);
                let (function, call) = (as_function(&shared, &body), self.call_code());
                Script::new(&format!("{REQUEST}\n{function}{call}"), self.allows_oom())
            }),
            // Nothing is remembered, so the body need not be a function, which takes time to make.
            false => self.script.get_or_init(|| {
                if let Some(script) = own() {
                    return script;
                }
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
