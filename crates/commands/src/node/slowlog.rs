//! SLOWLOG and COMMANDLOG: the commands that took longest, and the largest requests and replies.

use crate::call::session::Session;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::Args;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Most arguments of a command that are kept, and most bytes of each.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;
/// Below this threshold every command is timed by itself, not with its batch.
const PRECISE_BELOW_MICROS: i64 = 1000;

/// What a log looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Microseconds.
    Slow,
    /// Bytes of a command's arguments.
    LargeRequest,
    /// Bytes of a command's reply.
    LargeReply,
}

impl LogKind {
    pub fn named(name: &[u8]) -> Option<LogKind> {
        let known: [(&[u8], LogKind); 3] = [
            (b"slow", LogKind::Slow),
            (b"large-request", LogKind::LargeRequest),
            (b"large-reply", LogKind::LargeReply),
        ];
        let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| *kind)
    }
}

#[derive(Clone, Debug)]
pub struct CostEntry {
    pub id: u64,
    pub unix_seconds: i64,
    /// Microseconds or bytes.
    pub cost: u64,
    pub args: Vec<Vec<u8>>,
    pub client_address: String,
    pub client_name: Vec<u8>,
}

/// The newest commands that cost more than a threshold.
pub struct CostLog {
    next_id: AtomicU64,
    /// Negative: off.
    threshold: AtomicI64,
    len_max: AtomicI64,
    entries: Mutex<VecDeque<CostEntry>>,
}

impl Default for CostLog {
    fn default() -> Self {
        CostLog {
            next_id: AtomicU64::new(0),
            threshold: AtomicI64::new(-1),
            len_max: AtomicI64::new(0),
            entries: Mutex::default(),
        }
    }
}

impl CostLog {
    pub fn set_threshold(&self, threshold: i64) {
        self.threshold.store(threshold, Ordering::Relaxed);
    }

    pub fn set_len_max(&self, len_max: i64) {
        self.len_max.store(len_max, Ordering::Relaxed);
        self.entries().truncate(usize::try_from(len_max).unwrap_or(0));
    }

    #[inline]
    pub fn is_precise(&self) -> bool {
        (0..PRECISE_BELOW_MICROS).contains(&self.threshold.load(Ordering::Relaxed))
    }

    /// Whether something of this cost belongs into the log.
    #[inline]
    pub fn wants(&self, cost: u64) -> bool {
        let threshold = self.threshold.load(Ordering::Relaxed);
        threshold >= 0 && cost >= threshold.unsigned_abs()
    }

    #[inline]
    pub fn note(&self, node: &Node, session: &Session, args: Args, cost: u64) {
        if self.wants(cost) {
            self.add(node, session, args, cost);
        }
    }

    #[cold]
    fn add(&self, node: &Node, session: &Session, args: Args, cost: u64) {
        let entry = CostEntry {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            unix_seconds: node.clock.now().seconds(),
            cost,
            args: shortened(args),
            client_address: session.card.address.clone(),
            client_name: session.card.names().name.clone(),
        };
        let len_max = usize::try_from(self.len_max.load(Ordering::Relaxed)).unwrap_or(0);
        let mut entries = self.entries();
        entries.push_front(entry);
        entries.truncate(len_max);
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, VecDeque<CostEntry>> {
        self.entries.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// The newest `count`, newest first.
    pub fn newest(&self, count: usize) -> Vec<CostEntry> {
        self.entries().iter().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.entries().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn reset(&self) {
        self.entries().clear();
    }
}

/// What is shown instead of an argument that nobody else may see.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// Whether an arg is a secret: a name or password of AUTH and HELLO, or the new value of a setting
/// that must not be shown.
pub(crate) fn is_secret(args: Args, at: usize) -> bool {
    let is = |index: usize, name: &[u8]| args.at(index).eq_ignore_ascii_case(name);
    if is(0, b"auth") {
        return at >= 1;
    }
    if is(0, b"hello") {
        return (at >= 3 && is(at - 1, b"auth")) || (at >= 4 && is(at - 2, b"auth"));
    }
    at >= 3
        && at % 2 == 1
        && is(0, b"config")
        && is(1, b"set")
        && Directive::named(args.at(at - 1)).is_some_and(|directive| directive.spec().is_secret)
}

/// COMPAT: what is left out is counted in the last arg kept (tests/wire/server/slowlog.wire).
fn shortened(args: Args) -> Vec<Vec<u8>> {
    let mut shown: Vec<Vec<u8>> = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        if at == ARGS_MAX - 1 && args.len() > ARGS_MAX {
            let left_out = args.len() - ARGS_MAX + 1;
            shown.push(format!("... ({left_out} more arguments)").into_bytes());
            break;
        }
        if is_secret(args, at) {
            shown.push(REDACTED.to_vec());
        } else if arg.len() <= ARG_BYTES_MAX {
            shown.push(arg.to_vec());
        } else {
            let mut cut = arg[..ARG_BYTES_MAX].to_vec();
            let left_out = arg.len() - ARG_BYTES_MAX;
            cut.extend_from_slice(format!("... ({left_out} more bytes)").as_bytes());
            shown.push(cut);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::OwnedArgs;

    fn shown(call: &[&str]) -> Vec<String> {
        let args: OwnedArgs = call.iter().collect();
        let kept = shortened(args.as_args());
        kept.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    }

    #[test]
    fn secrets_are_not_kept() {
        assert_eq!(shown(&["AUTH", "u", "p"]), ["AUTH", "(redacted)", "(redacted)"]);
        let hello = shown(&["HELLO", "3", "AUTH", "u", "p", "SETNAME", "n"]);
        assert_eq!(hello[2..], ["AUTH", "(redacted)", "(redacted)", "SETNAME", "n"]);
        let config = shown(&["config", "set", "requirepass", "p", "hz", "10"]);
        assert_eq!(config[2..], ["requirepass", "(redacted)", "hz", "10"]);
    }

    #[test]
    fn long_commands_are_cut_as_redis_cuts_them() {
        let many = vec!["x"; 40];
        let kept = shown(&many);
        assert_eq!((kept.len(), kept[31].as_str()), (32, "... (9 more arguments)"));
        let long = "y".repeat(130);
        assert_eq!(shown(&["SET", &long])[1], format!("{}... (2 more bytes)", "y".repeat(128)));
    }
}
