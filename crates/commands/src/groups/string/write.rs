//! Writing strings whole: SET with its conditions and times, and its older forms.

use super::expiry::{self, Besides, Deadline, ExpiryOptions};
use super::large;
use super::read::reply_text;
use super::record_set;
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use crate::groups::deadline::record_expiry;
use russet_base::Args;
use russet_base::UnixMillis;
use russet_base::digest::{DIGEST_DIGITS, Digest};
use russet_engine::event::Event;
use russet_engine::types::string::{self, Text};

/// When SET writes.
#[derive(Clone, Copy)]
enum Condition<'a> {
    Always,
    Absent,
    Present,
    Equal(&'a [u8]),
    NotEqual(&'a [u8]),
    Digest(&'a [u8]),
    NotDigest(&'a [u8]),
}

impl Condition<'_> {
    /// Whether the value that is there, if any, meets it. Comparisons are with strings only.
    fn is_met(self, old: Option<Result<Text<'_>, Refusal>>) -> Result<bool, Refusal> {
        let old = match (self, old) {
            (Condition::Always, _) => return Ok(true),
            (Condition::Absent, old) => return Ok(old.is_none()),
            (Condition::Present, old) => return Ok(old.is_some()),
            (Condition::Equal(_) | Condition::Digest(_), None) => return Ok(false),
            (Condition::NotEqual(_) | Condition::NotDigest(_), None) => return Ok(true),
            (_, Some(old)) => old?,
        };
        Ok(match self {
            Condition::Equal(value) => old.with_bytes(|bytes| bytes == value),
            Condition::NotEqual(value) => old.with_bytes(|bytes| bytes != value),
            Condition::Digest(wanted) => old.with_bytes(|bytes| has_digest(bytes, wanted)),
            Condition::NotDigest(wanted) => old.with_bytes(|bytes| !has_digest(bytes, wanted)),
            Condition::Always | Condition::Absent | Condition::Present => true,
        })
    }
}

fn has_digest(bytes: &[u8], wanted: &[u8]) -> bool {
    Digest::of(bytes).is(wanted)
}

struct SetOptions<'a> {
    condition: Condition<'a>,
    wants_old: bool,
    deadline: Deadline,
}

impl<'a> SetOptions<'a> {
    fn parse(ctx: &Ctx, args: Args<'a>) -> Result<Self, Refusal> {
        let mut condition = None;
        let mut wants_old = false;
        let mut expiry = ExpiryOptions::new(Besides::Keep);
        let mut at = 3;
        while at < args.len() {
            let (arg, next) = (args.at(at), args.get(at + 1));
            at += match expiry.take(arg, next) {
                Some(taken) => taken,
                None if arg.eq_ignore_ascii_case(b"GET") => {
                    wants_old = true;
                    1
                }
                None => take_condition(&mut condition, arg, next).ok_or(Refusal::Syntax)?,
            };
        }
        let deadline = expiry.deadline(ctx.keys.real_now(), ctx.command.spec().full_name)?;
        let condition = condition.unwrap_or(Condition::Always);
        if let Condition::Digest(digest) | Condition::NotDigest(digest) = condition {
            check_digest(digest)?;
        }
        Ok(SetOptions { condition, wants_old, deadline })
    }
}

/// Takes NX, XX, IFEQ and their kin: how many arguments it has, `None` if it is no such option or a
/// second, different one.
fn take_condition<'a>(
    condition: &mut Option<Condition<'a>>,
    arg: &[u8],
    next: Option<&'a [u8]>,
) -> Option<usize> {
    let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
    let (taken, args_len) = match () {
        () if is("NX") => (Condition::Absent, 1),
        () if is("XX") => (Condition::Present, 1),
        () if is("IFEQ") => (Condition::Equal(next?), 2),
        () if is("IFNE") => (Condition::NotEqual(next?), 2),
        () if is("IFDEQ") => (Condition::Digest(next?), 2),
        () if is("IFDNE") => (Condition::NotDigest(next?), 2),
        () => return None,
    };
    let repeats = |before: &Condition| {
        std::mem::discriminant(before) == std::mem::discriminant(&taken) && args_len == 1
    };
    if !condition.as_ref().is_none_or(repeats) {
        return None;
    }
    *condition = Some(taken);
    Some(args_len)
}

fn check_digest(digest: &[u8]) -> Result<(), Refusal> {
    if digest.len() == DIGEST_DIGITS {
        return Ok(());
    }
    Err(Refusal::BadDigest)
}

pub fn set(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    if args.len() == 3 {
        if args.shared(2).is_some() && large::must_wait(ctx, args)? {
            return Ok(Flow::Later);
        }
        ctx.keys.put_arg(key, (args, 2), None);
        ctx.keys.wrote(key, Event::string("set"));
        ctx.record_as_is(args);
        ctx.reply.ok();
        return DONE;
    }
    let options = SetOptions::parse(ctx, args)?;
    if options.wants_old {
        return set_and_reply_old(ctx, args, &options);
    }
    let is_met = match options.condition {
        Condition::Always => true,
        condition => {
            let old = ctx.keys.peek(key);
            condition.is_met(old.map(|entry| Ok(string::text(&entry)?)))?
        }
    };
    if is_met {
        store(ctx, key, (args, 2), options.deadline);
        ctx.reply.ok();
    } else {
        ctx.reply.null();
    }
    DONE
}

fn set_and_reply_old(ctx: &mut Ctx, args: Args, options: &SetOptions) -> Outcome {
    let key = args.at(1);
    let is_met = match ctx.keys.read(key) {
        None => {
            ctx.reply.null();
            options.condition.is_met(None)?
        }
        Some(entry) => {
            let old = string::text(&entry)?;
            reply_text(ctx.reply, old);
            options.condition.is_met(Some(Ok(old)))?
        }
    };
    if is_met {
        store(ctx, key, (args, 2), options.deadline);
    }
    DONE
}

/// Writes an argument and publishes the event. A deadline in the past deletes the key instead.
pub(super) fn store(ctx: &mut Ctx, key: &[u8], value: (Args, usize), deadline: Deadline) {
    let expiry = match deadline {
        Deadline::Unsaid | Deadline::Persist => None,
        Deadline::At(at) if at <= ctx.keys.now => {
            if ctx.keys.remove(key) {
                ctx.keys.wrote_expired(key);
                ctx.keys.record([b"DEL", key]);
            }
            return;
        }
        Deadline::At(at) => Some(at),
        Deadline::Keep => ctx.keys.peek(key).and_then(|old| old.expiry()).map(UnixMillis),
    };
    ctx.keys.put_arg(key, value, expiry);
    ctx.keys.wrote(key, Event::string("set"));
    if let Deadline::At(_) = deadline {
        ctx.keys.also(key, Event::generic("expire"));
    }
    let (args, at) = value;
    record_set(ctx.keys, key, |record| record.extend(args.from(at).first(1)), deadline);
}

pub fn setnx(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let is_free = !ctx.keys.exists(key);
    if is_free {
        store(ctx, key, (args, 2), Deadline::Unsaid);
    }
    ctx.reply.int(i64::from(is_free));
    DONE
}

pub fn setex(ctx: &mut Ctx, args: Args) -> Outcome {
    let deadline =
        expiry::seconds_from(ctx.keys.real_now(), args.at(2), ctx.command.spec().full_name)?;
    store(ctx, args.at(1), (args, 3), deadline);
    ctx.reply.ok();
    DONE
}

pub fn psetex(ctx: &mut Ctx, args: Args) -> Outcome {
    let deadline =
        expiry::millis_from(ctx.keys.real_now(), args.at(2), ctx.command.spec().full_name)?;
    store(ctx, args.at(1), (args, 3), deadline);
    ctx.reply.ok();
    DONE
}

pub fn getset(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    match ctx.keys.read(key) {
        None => ctx.reply.null(),
        Some(entry) => reply_text(ctx.reply, string::text(&entry)?),
    }
    store(ctx, key, (args, 2), Deadline::Unsaid);
    DONE
}

pub fn getdel(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    match ctx.keys.read(key) {
        None => {
            ctx.reply.null();
            return DONE;
        }
        Some(entry) => reply_text(ctx.reply, string::text(&entry)?),
    }
    ctx.keys.remove(key);
    ctx.keys.wrote(key, Event::DEL);
    ctx.keys.record([b"DEL", key]);
    DONE
}

pub fn getex(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let mut expiry = ExpiryOptions::new(Besides::Persist);
    let mut at = 2;
    while at < args.len() {
        at += expiry.take(args.at(at), args.get(at + 1)).ok_or(Refusal::Syntax)?;
    }
    let deadline = expiry.deadline(ctx.keys.real_now(), ctx.command.spec().full_name)?;
    match ctx.keys.read(key) {
        None => {
            ctx.reply.null();
            return DONE;
        }
        Some(entry) => reply_text(ctx.reply, string::text(&entry)?),
    }
    set_deadline(ctx, key, deadline);
    DONE
}

/// Gives an existing key a new expiry, and publishes the event.
fn set_deadline(ctx: &mut Ctx, key: &[u8], deadline: Deadline) {
    match deadline {
        Deadline::Unsaid | Deadline::Keep => {}
        Deadline::At(at) if at <= ctx.keys.now => {
            ctx.keys.remove(key);
            ctx.keys.wrote_expired(key);
            ctx.keys.record([b"DEL", key]);
        }
        Deadline::At(at) => {
            if let Some(mut entry) = ctx.keys.write(key) {
                entry.set_expiry(Some(at.0));
            }
            ctx.keys.wrote(key, Event::generic("expire"));
            record_expiry(ctx.keys, key, at.0);
        }
        Deadline::Persist => {
            let Some(mut entry) = ctx.keys.write(key) else { return };
            if entry.expiry().is_some() {
                entry.set_expiry(None);
                ctx.keys.wrote(key, Event::generic("persist"));
                ctx.keys.record([b"PERSIST", key]);
            }
        }
    }
}
