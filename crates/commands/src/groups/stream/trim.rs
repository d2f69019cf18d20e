//! XTRIM, and the arguments by which XADD trims.

use super::{access, given_id, integer, limits, record};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::stream::{References, StreamRef, Threshold, Trim};

/// Without LIMIT, `~` trims at most this many blocks.
const APPROXIMATE_BLOCKS_MAX: u64 = 100;
const APPROXIMATE_ENTRIES_DEFAULT: u64 = 10_000;
const APPROXIMATE_ENTRIES_MAX: u64 = 1_000_000;

/// What the arguments about trimming said so far.
#[derive(Default)]
pub struct TrimOptions {
    threshold: Option<Threshold>,
    is_approximate: bool,
    limit: Option<u64>,
    references: Option<References>,
}

/// KEEPREF, DELREF or ACKED.
pub fn references(arg: &[u8]) -> Option<References> {
    let named = |name: &[u8]| eq_ignore_case(arg, name);
    if named(b"keepref") {
        Some(References::Keep)
    } else if named(b"delref") {
        Some(References::Delete)
    } else if named(b"acked") {
        Some(References::Respect)
    } else {
        None
    }
}

impl TrimOptions {
    /// Reads an option at `at` and gives the argument behind it; None if it is no option of these.
    pub fn take(&mut self, args: Args, at: usize) -> Result<Option<usize>, Refusal> {
        let arg = args.at(at);
        let has_more = at + 1 < args.len();
        if let Some(references) = references(arg)
            && self.references.is_none()
        {
            self.references = Some(references);
            return Ok(Some(at + 1));
        }
        if !has_more {
            return Ok(None);
        }
        if eq_ignore_case(arg, b"limit") {
            let limit = integer(args.at(at + 1))?;
            let refusal = || Refusal::text("ERR The LIMIT argument must be >= 0.");
            self.limit = Some(u64::try_from(limit).map_err(|_| refusal())?);
            return Ok(Some(at + 2));
        }
        let by_len = eq_ignore_case(arg, b"maxlen");
        if !by_len && !eq_ignore_case(arg, b"minid") {
            return Ok(None);
        }
        if self.threshold.is_some() {
            return Err(Refusal::text(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let mark = args.at(at + 1);
        let has_mark = at + 2 < args.len() && matches!(mark, b"~" | b"=");
        self.is_approximate = has_mark && mark == b"~";
        let at = at + 1 + usize::from(has_mark);
        self.threshold = Some(if by_len {
            let len = u64::try_from(integer(args.at(at))?);
            Threshold::Len(len.map_err(|_| Refusal::text("ERR The MAXLEN argument must be >= 0."))?)
        } else {
            match given_id(args.at(at), 0)? {
                super::GivenId::Whole(id) => Threshold::Id(id),
                super::GivenId::Open(_) => return Err(Refusal::InvalidStreamId),
            }
        });
        Ok(Some(at + 1))
    }

    /// What all the arguments together mean; None if they trim nothing. `block_entries_max` is the
    /// directive's.
    pub fn finish(self, block_entries_max: u64) -> Result<Option<Trim>, Refusal> {
        let limits = self.limit.is_some_and(|limit| limit > 0);
        if limits && self.threshold.is_none() {
            return Err(Refusal::text(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if self.limit.is_some() && !self.is_approximate {
            return Err(Refusal::text(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        let entries_max = match self.limit {
            Some(limit) => limit,
            None if !self.is_approximate => 0,
            None => match block_entries_max.saturating_mul(APPROXIMATE_BLOCKS_MAX) {
                0 => APPROXIMATE_ENTRIES_DEFAULT,
                entries => entries.min(APPROXIMATE_ENTRIES_MAX),
            },
        };
        Ok(self.threshold.map(|threshold| Trim {
            threshold,
            is_approximate: self.is_approximate,
            entries_max,
            references: self.references.unwrap_or_default(),
        }))
    }
}

/// Whether trimming may do something: a packed stream is not made large for nothing.
pub fn is_due(stream: StreamRef<'_>, trim: Trim) -> bool {
    let is_one_block = matches!(stream, StreamRef::Packed(_));
    match trim.threshold {
        Threshold::Len(max) if trim.is_approximate && is_one_block => max == 0,
        Threshold::Len(max) => stream.len() > max,
        Threshold::Id(min) if trim.is_approximate && is_one_block => stream.last_id() < min,
        Threshold::Id(min) => stream.first_entry_id().is_some_and(|first| first < min),
    }
}

/// Trims the stream under a key, if there is something to trim, and records it. How many went.
pub fn trim_stream(keys: &mut Keys, key: &[u8], trim: Trim) -> Result<u64, Refusal> {
    if !access::peek(keys, key)?.is_some_and(|stream| is_due(stream, trim)) {
        return Ok(0);
    }
    let is_recording = keys.is_recording();
    let Some(stream) = access::edit(keys, key)? else { return Ok(0) };
    let (removed, trimmed) = record::trim(stream, trim, is_recording);
    if removed > 0 {
        record::trimmed(keys, key, &trimmed);
    }
    Ok(removed)
}

pub fn xtrim(ctx: &mut Ctx, args: Args) -> Outcome {
    let mut trim_options = TrimOptions::default();
    let mut at = 2;
    while at < args.len() {
        at = trim_options.take(args, at)?.ok_or(Refusal::Syntax)?;
    }
    let has_threshold = trim_options.threshold.is_some();
    if !has_threshold && trim_options.limit.is_none_or(|limit| limit == 0) {
        return Err(Refusal::text(
            "ERR syntax error, XTRIM must be called with a trimming strategy",
        ));
    }
    let trim = trim_options.finish(limits(ctx).entries_max)?;
    let key = args.at(1);
    let removed = match trim {
        Some(trim) => trim_stream(ctx.keys, key, trim)?,
        None => {
            access::peek(ctx.keys, key)?;
            0
        }
    };
    if removed > 0 {
        ctx.keys.wrote_many(key, Event::stream("xtrim"), removed);
    }
    ctx.reply.int(removed as i64);
    DONE
}
