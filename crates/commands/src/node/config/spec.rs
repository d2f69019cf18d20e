//! What a directive holds, how it may change, and the short forms in which the table says so.

use std::ops::RangeInclusive;

pub(super) use russet_base::limits::{BULK_BYTES_MAX, SHARDS_MAX};

use super::directive::Directive;

pub(super) const PORT_MAX: i64 = u16::MAX as i64;
pub(super) const INT_MIN: i64 = i32::MIN as i64;
pub(super) const INT_MAX: i64 = i32::MAX as i64;
pub(super) const UINT_MAX: i64 = u32::MAX as i64;
/// The most that most amounts of memory may be.
pub(super) const LONG_MAX: u64 = i64::MAX as u64;
pub(super) const MEBIBYTE: u64 = 1 << 20;
pub(super) const GIBIBYTE: u64 = 1 << 30;
/// Event loops that can be asked for.
pub(super) const THREADS_MAX: i64 = 1024;

/// What a directive holds, with its default and bounds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Flag { default: bool },
    /// A whole number. What lies outside `clamp`, but inside the bounds, becomes its nearest end.
    Integer { default: i64, min: i64, max: i64, clamp: Option<(i64, i64)> },
    /// A file mode in octal.
    Octal { default: i64, max: i64 },
    /// Bytes, perhaps with a unit. Kept as the bits of a `u64`.
    Memory { default: u64, min: u64, max: u64 },
    /// Bytes, or a percentage of `maxmemory`, which is kept as a negative number. Default 0.
    MemoryOrPercent,
    /// One of these names; kept as its position.
    Choice { default: &'static str, names: &'static [&'static str] },
    /// Any of these names; kept as bits, the first name being no bit at all, and the default.
    Choices { names: &'static [&'static str] },
    /// Any bytes that pass the check.
    Text { default: &'static str, check: TextCheck },
    /// Arguments apart by spaces.
    List { default: &'static str, len_max: usize },
    /// Pairs of seconds and changes.
    SavePoints,
    /// Limits of output buffers, per class of client.
    BufferLimits,
    /// Three scores from -2000 to 2000.
    OomScores,
    /// Numbers from 0 to 100.
    Percentiles,
    /// Letters of keyspace events; kept as the bits of `EventFlags`.
    EventClasses,
}

/// What a text must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextCheck {
    Any,
    FileName,
    DirName,
    /// An existing directory; kept as an absolute path.
    Directory,
    HostName,
    Ipv4,
    Ipv6,
    TitleTemplate,
    /// Numbers apart by dots.
    Version,
}

/// When a directive may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By CONFIG SET.
    Anytime,
    /// By CONFIG SET, if `enable-protected-configs` lets that client.
    Protected,
    /// Only in the file or on the command line.
    AtStart,
}

/// What a directive does in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What it says. A value that needs a missing feature is refused.
    Full,
    /// It is read, kept and shown, and changes nothing.
    None,
    /// It promises what does not happen, unless its value, as printed, is one of `kept`.
    Promise {
        kept: &'static [&'static str],
        /// What is so instead.
        gap: &'static str,
    },
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub directive: Directive,
    pub kind: Kind,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    pub change: Change,
    /// Never to be logged or shown in an error.
    pub is_secret: bool,
    /// Not listed by CONFIG GET unless named in full.
    pub is_hidden: bool,
    /// It names a file that may have changed: CONFIG SET of the same name is a change.
    pub is_reread: bool,
    /// If not empty: the values, as printed, that don't need a feature which is still missing.
    pub supported: &'static [&'static str],
    pub effect: Effect,
    pub doc: &'static str,
}

impl Spec {
    const fn new(directive: Directive, kind: Kind, doc: &'static str) -> Self {
        Spec {
            directive,
            kind,
            aliases: &[],
            change: Change::Anytime,
            is_secret: false,
            is_hidden: false,
            is_reread: false,
            supported: &[],
            effect: Effect::Full,
            doc,
        }
    }

    pub(super) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(super) const fn at_start(mut self) -> Self {
        self.change = Change::AtStart;
        self
    }

    pub(super) const fn protected(mut self) -> Self {
        self.change = Change::Protected;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    pub(super) const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    pub(super) const fn reread(mut self) -> Self {
        self.is_reread = true;
        self
    }

    /// Any other value would promise a feature that is not there yet.
    pub(super) const fn only(mut self, supported: &'static [&'static str]) -> Self {
        self.supported = supported;
        self
    }

    pub(super) const fn without_effect(mut self) -> Self {
        self.effect = Effect::None;
        self
    }

    pub(super) const fn promises(
        mut self,
        kept: &'static [&'static str],
        gap: &'static str,
    ) -> Self {
        self.effect = Effect::Promise { kept, gap };
        self
    }

    pub(super) const fn checked(mut self, check: TextCheck) -> Self {
        match self.kind {
            Kind::Text { default, .. } => self.kind = Kind::Text { default, check },
            _ => panic!("only a text can be checked"),
        }
        self
    }

    pub(super) const fn clamped(mut self, range: RangeInclusive<i64>) -> Self {
        match self.kind {
            Kind::Integer { default, min, max, .. } => {
                let clamp = Some((*range.start(), *range.end()));
                self.kind = Kind::Integer { default, min, max, clamp };
            }
            _ => panic!("only an integer can be clamped"),
        }
        self
    }

    /// Its primary name, then the others.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.directive.name()).chain(self.aliases.iter().copied())
    }

    /// Takes several arguments, in a file each on its own.
    pub fn takes_many(&self) -> bool {
        matches!(
            self.kind,
            Kind::Choices { .. }
                | Kind::List { .. }
                | Kind::SavePoints
                | Kind::BufferLimits
                | Kind::OomScores
                | Kind::Percentiles
        )
    }

    /// A second line in a file adds to the first instead of replacing it.
    pub fn repeats(&self) -> bool {
        matches!(self.kind, Kind::SavePoints | Kind::BufferLimits)
    }
}

pub(super) const fn flag(directive: Directive, default: bool, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::Flag { default }, doc)
}

pub(super) const fn int(
    directive: Directive,
    default: i64,
    range: RangeInclusive<i64>,
    doc: &'static str,
) -> Spec {
    let (min, max) = (*range.start(), *range.end());
    Spec::new(directive, Kind::Integer { default, min, max, clamp: None }, doc)
}

pub(super) const fn octal(directive: Directive, default: i64, max: i64, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::Octal { default, max }, doc)
}

pub(super) const fn memory(
    directive: Directive,
    default: u64,
    range: RangeInclusive<u64>,
    doc: &'static str,
) -> Spec {
    let (min, max) = (*range.start(), *range.end());
    Spec::new(directive, Kind::Memory { default, min, max }, doc)
}

pub(super) const fn memory_or_percent(directive: Directive, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::MemoryOrPercent, doc)
}

pub(super) const fn choice(
    directive: Directive,
    default: &'static str,
    names: &'static [&'static str],
    doc: &'static str,
) -> Spec {
    Spec::new(directive, Kind::Choice { default, names }, doc)
}

pub(super) const fn choices(
    directive: Directive,
    names: &'static [&'static str],
    doc: &'static str,
) -> Spec {
    Spec::new(directive, Kind::Choices { names }, doc)
}

pub(super) const fn text(directive: Directive, default: &'static str, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::Text { default, check: TextCheck::Any }, doc)
}

pub(super) const fn list(
    directive: Directive,
    default: &'static str,
    len_max: usize,
    doc: &'static str,
) -> Spec {
    Spec::new(directive, Kind::List { default, len_max }, doc)
}

pub(super) const fn save_points(directive: Directive, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::SavePoints, doc)
}

pub(super) const fn buffer_limits(directive: Directive, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::BufferLimits, doc)
}

pub(super) const fn oom_scores(directive: Directive, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::OomScores, doc)
}

pub(super) const fn percentiles(directive: Directive, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::Percentiles, doc)
}

pub(super) const fn event_classes(directive: Directive, doc: &'static str) -> Spec {
    Spec::new(directive, Kind::EventClasses, doc)
}
