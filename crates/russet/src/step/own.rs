//! Steps of a program's own: Lua that names its keys and arguments, run as the kit's steps are.

use super::{Class, REQUEST, Script, Step, StepInfo, as_function, shared};
use crate::error::{Error, Result};
use crate::reply::Envelope;
use crate::retry::RetryClass;
use std::fmt::Write;

/// The status of a reply that is no status with fields.
const NO_ENVELOPE: &str = "NO_ENVELOPE";

/// Names that Lua, or the script around a body, needs for itself.
const RESERVED: [&str; 24] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while", "KEYS", "ARGV",
    "redis",
];

/// What a step of a program's own takes, in order: the names by which its body knows them. Each is
/// a name of Lua's that is no keyword, nor `KEYS`, `ARGV` or `redis`, and stands in the two lists
/// once.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// Its keys. It uses no others.
    pub keys: &'static [&'static str],
    /// Its arguments, which are texts.
    pub args: &'static [&'static str],
}

impl<C: Class> Step<C> {
    /// A step of a program's own. Its class says what a second run of it does, and the kit obeys:
    /// a [`Safe`](super::Safe) step sets what is set already, and is tried again; one
    /// [`WithRequestId`](super::WithRequestId) is run by [`Kit::dedup`](crate::Kit::dedup), which
    /// keeps its reply in the same atomic step; an [`Unsafe`](super::Unsafe) one is tried once.
    ///
    /// The body is Lua. It finds its keys and arguments under the names that it takes; `now_ms()`
    /// is the server's time, `whole(text, least, most)` and `decimal(...)` read numbers or give
    /// nil, `refuse(what)` is the reply to a bad argument. It checks all before it writes, since a
    /// step that fails half way has written half, gives what it writes a TTL, and returns a status
    /// with names and values. `true` behind it says that nothing was changed: that is not
    /// remembered.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::key::Family;
    /// use russet::step::{Step, Takes, WithRequestId};
    /// use russet::{Kit, RequestId};
    /// use std::time::Duration;
    ///
    /// static POINTS: Family = Family { purpose: "points", version: 1 };
    /// static EARN: Step<WithRequestId> = Step::declare(
    ///     "points_earn",
    ///     Takes { keys: &["balance"], args: &["count", "ttl_ms"] },
    ///     "local count, ttl = whole(count, 1, 1e6), whole(ttl_ms, 1, 1e12)
    ///      if not count or not ttl then return refuse('count, ttl_ms') end
    ///      local total = redis.call('INCRBY', balance, count)
    ///      redis.call('PEXPIRE', balance, ttl)
    ///      return {'OK', 'total', total}",
    /// );
    ///
    /// let kit = Kit::embedded(Default::default())?;
    /// let keys = kit.keys(POINTS, "user-1")?;
    /// let request = RequestId::from("order 7");
    /// for _attempt in 0..3 {
    ///     let call = kit.dedup(&request, &EARN, &keys).key(keys.key("balance"));
    ///     let reply = call.arg(10).arg(Duration::from_secs(86_400)).run().await?;
    ///     assert_eq!(reply.int("total")?, 10);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If a name is not one of Lua's, is reserved, or is taken twice (see [`Takes`]); a static step
    /// then does not compile.
    pub const fn declare(name: &'static str, takes: Takes, body: &'static str) -> Self {
        assert_names(takes.keys, &[]);
        assert_names(takes.args, takes.keys);
        let mut step = Step::new(name, body);
        step.info.takes = Some(takes);
        step
    }
}

/// `others` are the names of the other list.
const fn assert_names(names: &[&str], others: &[&str]) {
    let mut at = 0;
    while at < names.len() {
        let name = names[at];
        assert!(is_name(name.as_bytes()), "the name of a key or argument is not one of Lua's");
        assert!(
            !has(&RESERVED, name),
            "the name of a key or argument is a keyword of Lua, KEYS, ARGV or redis"
        );
        let is_taken = has(names.split_at(at).0, name) || has(others, name);
        assert!(!is_taken, "two keys or arguments have the same name");
        at += 1;
    }
}

const fn has(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        if is_same(names[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// `==` is not for constants yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn is_name(name: &[u8]) -> bool {
    let mut at = 0;
    while at < name.len() {
        if !(name[at].is_ascii_alphanumeric() || name[at] == b'_') {
            return false;
        }
        at += 1;
    }
    !name.is_empty() && !name[0].is_ascii_digit()
}

impl Takes {
    /// As the text of the script. What the body returns must not end it behind its writes, or it
    /// would not be remembered that it ran.
    pub(super) fn script(&self, info: &StepInfo, remembers: bool) -> Script {
        let first = 1 + usize::from(info.class == RetryClass::WithRequestId);
        let mut body = String::new();
        for (table, names) in [("KEYS", self.keys), ("ARGV", self.args)] {
            for (at, name) in names.iter().enumerate() {
                // Writing to a string does not fail.
                let _ = writeln!(body, "local {name} = {table}[{}]", first + at);
            }
        }
        body.push_str(info.body);
        body.push('\n');
        let function = as_function("", &body);
        let check = "local reply, is_unchanged = step(KEYS, ARGV)\n\
             if type(reply) ~= 'table' or not reply.err and type(reply[1]) ~= 'string' then\n  \
             reply, is_unchanged = {'NO_ENVELOPE'}, nil\nend\n";
        let code = match remembers {
            true => format!(
                "{REQUEST}\n{function}\
                 local kept = remembered(KEYS[1], ARGV[1])\nif kept then return kept end\n\
                 {check}return remember(KEYS[1], ARGV[1], reply, is_unchanged)\n"
            ),
            false => format!("{function}{check}return reply\n"),
        };
        Script::as_written(shared::named(super::PRELUDE, &code) + &code)
    }

    /// Whether a call has what the step takes.
    pub(super) fn check(&self, keys: usize, args: usize) -> Result<()> {
        if (keys, args) == (self.keys.len(), self.args.len()) {
            return Ok(());
        }
        let (keys, args) = (self.keys.join(", "), self.args.join(", "));
        Err(Error::invalid(format!("the step takes the keys {keys} and the arguments {args}")))
    }

    pub(super) fn envelope(envelope: Envelope) -> Result<Envelope> {
        match envelope.is(NO_ENVELOPE) {
            false => Ok(envelope),
            true => Err(Error::Corrupt("the step has returned no status with fields".into())),
        }
    }
}
