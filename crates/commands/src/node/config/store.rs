//! The settings of a running server: numbers that every request reads without a lock, texts
//! behind one, and what CONFIG GET answers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use russet_base::glob::Glob;

use super::amounts::{self, BufferLimit, ClientClass, SavePoint};
use super::directive::Directive;
use super::effect::Reported;
use super::events::EventFlags;
use super::load;
use super::spec::Kind;
use super::table::KNOWN;
use super::users::ConfiguredUsers;
use super::value::Value;
use crate::node::renames::Renames;

/// Every directive's value.
#[derive(Debug)]
pub struct Config {
    numbers: [AtomicI64; Directive::COUNT],
    /// Empty where the value is a number.
    texts: [RwLock<Arc<[u8]>>; Directive::COUNT],
    /// `client-output-buffer-limit`, taken apart for those who read it after every write.
    buffer_limits: [BufferLimitCell; ClientClass::ALL.len()],
    /// The file that the server was started from, absolute.
    pub(super) file: Option<PathBuf>,
    pub(super) start_dir: PathBuf,
    /// Directives that the start named and that do nothing.
    pub(super) given_without_effect: Vec<&'static str>,
    pub(super) reported: Reported,
    pub(super) users: ConfiguredUsers,
    pub(super) renames: Renames,
    /// Held by who changes values or rewrites the file.
    pub(super) changing: Mutex<()>,
}

/// The parts are read one by one: between two settings a reader may see some of each, and acts
/// on what it sees next time.
#[derive(Debug, Default)]
struct BufferLimitCell {
    hard_bytes: AtomicU64,
    soft_bytes: AtomicU64,
    soft_seconds: AtomicU64,
}

impl Default for Config {
    /// As without a file and options.
    fn default() -> Self {
        let start_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let values = load::defaults(&start_dir);
        Config::new(values, None, start_dir)
    }
}

impl Config {
    /// `values` in the order of `Directive::ALL`.
    pub(super) fn new(values: Vec<Value>, file: Option<PathBuf>, start_dir: PathBuf) -> Self {
        debug_assert_eq!(values.len(), Directive::COUNT);
        let config = Config {
            numbers: std::array::from_fn(|_| AtomicI64::new(0)),
            texts: std::array::from_fn(|_| RwLock::new(Arc::from([].as_slice()))),
            buffer_limits: Default::default(),
            file,
            start_dir,
            given_without_effect: Vec::new(),
            reported: Reported::default(),
            users: ConfiguredUsers::default(),
            renames: Renames::default(),
            changing: Mutex::new(()),
        };
        for (directive, value) in Directive::ALL.iter().zip(values) {
            config.store(*directive, value);
        }
        config
    }

    /// The number of an `Integer` or `Octal`, or the position of a `Choice` among its names.
    #[inline]
    pub fn int(&self, directive: Directive) -> i64 {
        self.numbers[directive as usize].load(Ordering::Relaxed)
    }

    /// Puts what the process can do in place of what was asked of it.
    pub fn replace_int(&self, directive: Directive, number: i64) {
        self.store(directive, Value::Number(number));
    }

    /// Whether a `Flag` is set.
    #[inline]
    pub fn flag(&self, directive: Directive) -> bool {
        self.int(directive) != 0
    }

    /// The bytes of a `Memory`.
    #[inline]
    pub fn memory(&self, directive: Directive) -> u64 {
        self.int(directive).cast_unsigned()
    }

    /// The name that a `Choice` stands at.
    pub fn choice(&self, directive: Directive) -> &'static str {
        match directive.spec().kind {
            Kind::Choice { names, .. } => {
                let index = usize::try_from(self.int(directive)).unwrap_or(usize::MAX);
                names.get(index).copied().unwrap_or("")
            }
            _ => "",
        }
    }

    /// The bytes of a `Text`, or of any other directive that holds no number, as printed.
    pub fn text(&self, directive: Directive) -> Arc<[u8]> {
        let text = self.texts[directive as usize].read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&text)
    }

    /// `text` for those who want characters.
    pub fn string(&self, directive: Directive) -> String {
        String::from_utf8_lossy(&self.text(directive)).into_owned()
    }

    /// The arguments of `bind` and its like.
    pub fn list(&self, directive: Directive) -> Vec<String> {
        self.string(directive).split_ascii_whitespace().map(str::to_owned).collect()
    }

    #[inline]
    pub fn output_buffer_limit(&self, class: ClientClass) -> BufferLimit {
        let cell = &self.buffer_limits[class as usize];
        BufferLimit {
            hard_bytes: cell.hard_bytes.load(Ordering::Relaxed),
            soft_bytes: cell.soft_bytes.load(Ordering::Relaxed),
            soft_seconds: cell.soft_seconds.load(Ordering::Relaxed),
        }
    }

    pub fn save_points(&self) -> Vec<SavePoint> {
        let text = self.text(Directive::Save);
        let list = text.split(|byte| *byte == b' ').filter(|arg| !arg.is_empty());
        amounts::parse_save_points(&list.collect::<Vec<_>>()).unwrap_or_default()
    }

    /// Of `notify-keyspace-events`.
    #[inline]
    pub fn event_flags(&self) -> EventFlags {
        EventFlags(u32::try_from(self.int(Directive::NotifyKeyspaceEvents)).unwrap_or(0))
    }

    /// Of `latency-tracking-info-percentiles`.
    pub fn percentiles(&self) -> Vec<f64> {
        let text = self.text(Directive::LatencyTrackingInfoPercentiles);
        let list = text.split(|byte| *byte == b' ').filter(|arg| !arg.is_empty());
        amounts::parse_percentiles(&list.collect::<Vec<_>>()).unwrap_or_default()
    }

    /// What `rename-command` lines say.
    pub fn renames(&self) -> &Renames {
        &self.renames
    }

    /// The names of the `user` lines that the start has read, and their rules.
    pub fn users(&self) -> impl Iterator<Item = (&[u8], &[Vec<u8>])> {
        self.users.iter()
    }

    /// The file that the server was started from.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The value as CONFIG GET prints it.
    pub fn shown(&self, directive: Directive) -> Vec<u8> {
        match self.load(directive) {
            Value::Text(text) => text.to_vec(),
            number => directive.spec().print(&number).into_bytes(),
        }
    }

    /// What CONFIG GET answers: each name that one of the patterns matches, once, and its value. A
    /// name that was asked for by itself, before a pattern matched it, is in the letters of the
    /// question. A pattern that is just a name costs one look-up: there may be very many.
    pub fn matching<'p>(&self, patterns: &[&'p [u8]]) -> Vec<(Cow<'p, str>, Vec<u8>)> {
        self.matching_by(patterns, |glob, name| glob.matches(name))
    }

    /// As [`Config::matching`]; `compare` is asked whether a pattern matches a name.
    pub(super) fn matching_by<'p>(
        &self,
        patterns: &[&'p [u8]],
        mut compare: impl FnMut(&Glob, &[u8]) -> bool,
    ) -> Vec<(Cow<'p, str>, Vec<u8>)> {
        let names = &KNOWN.names;
        let mut shown: BTreeMap<usize, Cow<'p, str>> = BTreeMap::new();
        for pattern in patterns {
            let glob = Glob::ignoring_case(pattern);
            if glob.is_literal() {
                if let Some(at) = KNOWN.find(pattern) {
                    shown.entry(at).or_insert_with(|| String::from_utf8_lossy(pattern));
                }
                continue;
            }
            for (at, (directive, name)) in names.iter().enumerate() {
                let may_match = !directive.spec().is_hidden && !shown.contains_key(&at);
                if may_match && compare(&glob, name.as_bytes()) {
                    shown.insert(at, Cow::Borrowed(name));
                }
            }
        }
        shown.into_iter().map(|(at, name)| (name, self.shown(names[at].0))).collect()
    }

    pub(super) fn load(&self, directive: Directive) -> Value {
        match directive.spec().default_value() {
            Value::Number(_) => Value::Number(self.int(directive)),
            Value::Text(_) => Value::Text(self.text(directive)),
        }
    }

    pub(super) fn store(&self, directive: Directive, value: Value) {
        match value {
            Value::Number(number) => {
                self.numbers[directive as usize].store(number, Ordering::Relaxed);
            }
            Value::Text(text) => {
                if directive == Directive::ClientOutputBufferLimit {
                    self.store_buffer_limits(&text);
                }
                let cell = &self.texts[directive as usize];
                *cell.write().unwrap_or_else(PoisonError::into_inner) = text;
            }
        }
    }

    fn store_buffer_limits(&self, text: &[u8]) {
        for (cell, limit) in self.buffer_limits.iter().zip(amounts::read_buffer_limits(text)) {
            cell.hard_bytes.store(limit.hard_bytes, Ordering::Relaxed);
            cell.soft_bytes.store(limit.soft_bytes, Ordering::Relaxed);
            cell.soft_seconds.store(limit.soft_seconds, Ordering::Relaxed);
        }
    }
}
