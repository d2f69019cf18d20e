//! The arguments that the commands about fields with deadlines have in common: `FIELDS n ...` and
//! the time to live.

use crate::error::Refusal;
use crate::groups::deadline::{Base, Unit};
use russet_base::text::eq_ignore_case;
use russet_base::{Args, UnixMillis, num};

pub(super) const COUNT_MISMATCH: &str =
    "ERR numfields should be greater than 0 and match the provided number of fields";

/// `key FIELDS n field ...`, and nothing else.
pub(super) fn named(args: Args<'_>, mismatch: Refusal) -> Result<Args<'_>, Refusal> {
    if !eq_ignore_case(args.at(2), b"fields") {
        return Err(Refusal::Syntax);
    }
    let count = num::parse_i64(args.at(3)).ok_or(Refusal::NotInteger)?;
    let names = args.from(4);
    match usize::try_from(count) {
        Ok(count) if count > 0 && count == names.len() => Ok(names),
        _ => Err(mismatch),
    }
}

/// A call with options beside its `FIELDS n ...`.
pub(super) struct Call<'a> {
    args: Args<'a>,
    /// Where FIELDS stands, and where its last field ends.
    from: usize,
    end: usize,
}

impl<'a> Call<'a> {
    /// Finds the fields, each of `width` args, behind the first `start` args. `take` is shown an
    /// option and the argument behind it, and says how many arguments it has.
    ///
    /// DIFFERS: options may stand before the fields, as in Valkey, or behind them, as Redis 8.4
    /// allows, too.
    pub fn parse(
        args: Args<'a>,
        (start, width): (usize, usize),
        take: &mut dyn FnMut(&'a [u8], Option<&'a [u8]>) -> Result<usize, Refusal>,
    ) -> Result<Self, Refusal> {
        let mismatch = || Refusal::text(COUNT_MISMATCH);
        let is_fields = |at: &usize| eq_ignore_case(args.at(*at), b"fields");
        let from = (start..args.len() - 1).find(is_fields).ok_or_else(mismatch)?;
        options(args, (start, from), take)?;
        let count = num::parse_i64(args.at(from + 1)).ok_or(Refusal::NotInteger)?;
        let args_len = usize::try_from(count).ok().and_then(|count| count.checked_mul(width));
        let given = args.len() - from - 2;
        let args_len =
            args_len.filter(|args_len| (1..=given).contains(args_len)).ok_or_else(mismatch)?;
        let end = from + 2 + args_len;
        options(args, (end, args.len()), take).map_err(|_| mismatch())?;
        Ok(Call { args, from, end })
    }

    /// The arguments of the fields.
    pub fn fields(&self) -> Args<'a> {
        self.args.from(self.from + 2).first(self.end - self.from - 2)
    }
}

fn options<'a>(
    args: Args<'a>,
    (start, end): (usize, usize),
    take: &mut dyn FnMut(&'a [u8], Option<&'a [u8]>) -> Result<usize, Refusal>,
) -> Result<(), Refusal> {
    let mut at = start;
    while at < end {
        let next = (at + 1 < end).then(|| args.at(at + 1));
        at += take(args.at(at), next)?;
    }
    Ok(())
}

/// How a time was given: its argument is read later, for bad syntax is told before a bad number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment<'a> {
    pub base: Base,
    pub unit: Unit,
    pub number: &'a [u8],
}

impl Moment<'_> {
    /// In milliseconds; `command` is named by the refusal.
    /// COMPAT: zero is allowed, and means that the field is over at once (hexpire.wire).
    pub fn read(self, now: UnixMillis, command: &'static str) -> Result<i64, Refusal> {
        let number = num::parse_i64(self.number).ok_or(Refusal::NotInteger)?;
        let start_ms = if self.base == Base::Now { now.0 } else { 0 };
        let factor = if self.unit == Unit::Seconds { 1000 } else { 1 };
        let at_ms = number.checked_mul(factor).and_then(|ms| ms.checked_add(start_ms));
        at_ms.filter(|_| number >= 0).ok_or(Refusal::InvalidExpire(command))
    }
}

/// What was said about the time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime<'a> {
    Unsaid,
    At(Moment<'a>),
    Keep,
    Persist,
}

impl<'a> Lifetime<'a> {
    /// Takes EX, PX, EXAT, PXAT, and `besides` if its name is given: how many arguments that were,
    /// `None` if it is no such option or goes against one before. The same option may come again.
    pub fn take(
        &mut self,
        (arg, next): (&[u8], Option<&'a [u8]>),
        (name, besides): (&[u8], Lifetime<'a>),
    ) -> Option<usize> {
        let is = |name: &[u8]| eq_ignore_case(arg, name);
        if is(name) {
            let is_free = *self == Lifetime::Unsaid || *self == besides;
            *self = besides;
            return is_free.then_some(1);
        }
        let (base, unit) = match () {
            () if is(b"ex") => (Base::Now, Unit::Seconds),
            () if is(b"px") => (Base::Now, Unit::Millis),
            () if is(b"exat") => (Base::Epoch, Unit::Seconds),
            () if is(b"pxat") => (Base::Epoch, Unit::Millis),
            () => return None,
        };
        let moment = Moment { base, unit, number: next? };
        match *self {
            Lifetime::Unsaid => {}
            Lifetime::At(before) if (before.base, before.unit) == (base, unit) => {}
            _ => return None,
        }
        *self = Lifetime::At(moment);
        Some(2)
    }
}
