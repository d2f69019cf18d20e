//! ZADD and ZINCRBY.

use super::{float, limits, reply};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::types::zset::stored::{self, Draft};
use russet_engine::types::zset::{Extent, Upsert};
use smallvec::SmallVec;

/// ZADD's options.
#[derive(Clone, Copy, Default)]
struct Options {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

impl Options {
    /// Takes an argument, unless it is no option.
    fn take(&mut self, arg: &[u8]) -> bool {
        // Scores begin otherwise, and are most of what comes.
        if !matches!(arg.first(), Some(byte) if byte.is_ascii_alphabetic()) {
            return false;
        }
        let options: [(&[u8], &mut bool); 6] = [
            (b"nx", &mut self.nx),
            (b"xx", &mut self.xx),
            (b"ch", &mut self.ch),
            (b"incr", &mut self.incr),
            (b"gt", &mut self.gt),
            (b"lt", &mut self.lt),
        ];
        for (name, is_set) in options {
            if eq_ignore_case(arg, name) {
                *is_set = true;
                return true;
            }
        }
        false
    }

    fn check(self, pairs: usize) -> Result<(), Refusal> {
        if self.nx && self.xx {
            return Err(Refusal::text("ERR XX and NX options at the same time are not compatible"));
        }
        if (self.nx && (self.gt || self.lt)) || (self.gt && self.lt) {
            return Err(Refusal::text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.incr && pairs > 1 {
            return Err(Refusal::text("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// The score that a member should have, given the one that it has and the one that was sent.
    #[inline]
    fn decide(self, found: Option<f64>, sent: f64) -> Verdict {
        let Some(found) = found else {
            return if self.xx { Verdict::Leave } else { Verdict::Set(sent) };
        };
        if self.nx {
            return Verdict::Leave;
        }
        let score = if self.incr { found + sent } else { sent };
        if score.is_nan() {
            return Verdict::NotANumber;
        }
        if (self.lt && score >= found) || (self.gt && score <= found) {
            return Verdict::Leave;
        }
        Verdict::Set(score)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Leave,
    NotANumber,
    Set(f64),
}

impl Verdict {
    fn score(self) -> Option<f64> {
        match self {
            Verdict::Set(score) => Some(score),
            Verdict::Leave | Verdict::NotANumber => None,
        }
    }
}

pub fn zadd(ctx: &mut Ctx, args: Args) -> Outcome {
    add(ctx, args, Options::default())
}

pub fn zincrby(ctx: &mut Ctx, args: Args) -> Outcome {
    add(ctx, args, Options { incr: true, ..Options::default() })
}

/// What a call did.
#[derive(Default)]
struct Tally {
    added: usize,
    moved: usize,
}

impl Tally {
    fn count(&mut self, upsert: Upsert) {
        match upsert {
            Upsert::Added => self.added += 1,
            Upsert::Moved => self.moved += 1,
            Upsert::Left => {}
        }
    }
}

fn add(ctx: &mut Ctx, args: Args, mut options: Options) -> Outcome {
    let mut at = 2;
    while args.get(at).is_some_and(|arg| options.take(arg)) {
        at += 1;
    }
    let rest = args.from(at);
    if rest.is_empty() || rest.len() % 2 == 1 {
        return Err(Refusal::Syntax);
    }
    options.check(rest.len() / 2)?;
    let mut pairs = SmallVec::<[(&[u8], f64); 4]>::new();
    for at in (0..rest.len()).step_by(2) {
        pairs.push((rest.at(at + 1), float(rest.at(at), Refusal::NotFloat)?));
    }
    let (tally, verdict) = apply(ctx, args.at(1), &pairs, options)?;
    if verdict == Verdict::NotANumber {
        return Err(Refusal::text("ERR resulting score is not a number (NaN)"));
    }
    let changes = tally.added + tally.moved;
    if changes > 0 {
        let event = Event::zset(if options.incr { "zincr" } else { "zadd" });
        ctx.keys.wrote_many(args.at(1), event, changes as u64);
    }
    match verdict {
        Verdict::Set(score) if options.incr => reply::score(ctx.reply, score),
        _ if options.incr => ctx.reply.null(),
        _ if options.ch => ctx.reply.int(changes as i64),
        _ => ctx.reply.int(tally.added as i64),
    }
    DONE
}

/// Adds the members one after the other: what was done, and the verdict on the last.
#[inline]
fn apply(
    ctx: &mut Ctx,
    key: &[u8],
    pairs: &[(&[u8], f64)],
    options: Options,
) -> Result<(Tally, Verdict), Refusal> {
    let limits = limits(ctx);
    let extent = Extent::of(pairs.iter().map(|(member, _)| *member));
    let (mut tally, mut verdict) = (Tally::default(), Verdict::Leave);
    if let Some(mut entry) = ctx.keys.write(key) {
        stored::expect(&mut entry, extent, limits)?;
        for &(member, sent) in pairs {
            let upsert = stored::upsert(&mut entry, member, limits, |found| {
                verdict = options.decide(found, sent);
                verdict.score()
            })?;
            tally.count(upsert);
        }
    } else if !options.xx {
        let mut draft = Draft::new(extent, limits);
        for &(member, sent) in pairs {
            tally.count(draft.upsert(member, limits, |found| {
                verdict = options.decide(found, sent);
                verdict.score()
            }));
        }
        draft.put(|value| ctx.keys.put(key, value, None));
    }
    Ok((tally, verdict))
}
