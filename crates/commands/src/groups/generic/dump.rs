//! DUMP and RESTORE: a value as a payload that other servers read, and back.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::config::Directive;
use russet_base::{Args, OwnedArgs, UnixMillis, num};
use russet_engine::access::NotedUse;
use russet_engine::event::Event;
use russet_engine::types::element::IntText;
use russet_persistence::rdb::payload::{self, Dumping, Leniency, Restored};
use std::sync::atomic::Ordering;

/// The largest that FREQ takes.
const FREQUENCY_MAX: i64 = 255;

pub(super) fn dumping(ctx: &Ctx) -> Dumping {
    let saving = ctx.node.save_options();
    Dumping {
        compresses: saving.compresses,
        field_ttl: saving.field_ttl,
        hides_ms: ctx.keys.hides_fields_ms(),
    }
}

pub fn dump(ctx: &mut Ctx, args: Args) -> Outcome {
    let dumping = dumping(ctx);
    match ctx.keys.read(args.at(1)) {
        Some(entry) => ctx.reply.bulk(&payload::dump(&entry, dumping)),
        None => ctx.reply.null(),
    }
    DONE
}

/// The arguments behind RESTORE's payload.
#[derive(Default)]
struct RestoreOptions {
    is_replacing: bool,
    /// The time is one since the epoch.
    is_absolute: bool,
    noted: Option<NotedUse>,
}

impl RestoreOptions {
    fn parse(args: Args) -> Result<Self, Refusal> {
        let mut options = RestoreOptions::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.to_ascii_lowercase().as_slice() {
                b"replace" => options.is_replacing = true,
                b"absttl" => options.is_absolute = true,
                b"idletime" if !matches!(options.noted, Some(NotedUse::Count(_))) => {
                    let seconds = integer(args.next())?;
                    let seconds = u64::try_from(seconds)
                        .map_err(|_| Refusal::text("ERR Invalid IDLETIME value, must be >= 0"))?;
                    options.noted = Some(NotedUse::IdleSeconds(seconds));
                }
                b"freq" if !matches!(options.noted, Some(NotedUse::IdleSeconds(_))) => {
                    let count = integer(args.next())?;
                    if !(0..=FREQUENCY_MAX).contains(&count) {
                        return Err(Refusal::text(
                            "ERR Invalid FREQ value, must be >= 0 and <= 255",
                        ));
                    }
                    options.noted = Some(NotedUse::Count(count as u8));
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(options)
    }

    /// The moment at which the key expires; none for 0.
    fn expiry(&self, ttl: &[u8], now: UnixMillis) -> Result<Option<UnixMillis>, Refusal> {
        let ttl_ms = num::parse_i64(ttl).ok_or(Refusal::NotInteger)?;
        match ttl_ms {
            ..0 => Err(Refusal::text("ERR Invalid TTL value, must be >= 0")),
            0 => Ok(None),
            at_ms if self.is_absolute => Ok(Some(UnixMillis(at_ms))),
            // DIFFERS: the peers let the sum overflow, and then the key is over at once.
            ttl_ms => Ok(Some(UnixMillis(now.0.saturating_add(ttl_ms)))),
        }
    }
}

fn integer(arg: Option<&[u8]>) -> Result<i64, Refusal> {
    num::parse_i64(arg.ok_or(Refusal::Syntax)?).ok_or(Refusal::NotInteger)
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds | FREQ count]`
pub fn restore(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, bytes) = (args.at(1), args.at(3));
    let options = RestoreOptions::parse(args.from(4))?;
    if !options.is_replacing && ctx.keys.exists(key) {
        return Err(Refusal::text("BUSYKEY Target key name already exists."));
    }
    let now = ctx.keys.now;
    let expiry = options.expiry(args.at(2), ctx.keys.real_now())?;
    let tries_any_version = ctx.node.config.choice(Directive::RdbVersionCheck) == "relaxed";
    let skips_sum = ctx.node.saves.skips_sums.load(Ordering::Relaxed);
    payload::check(bytes, Leniency { tries_any_version, skips_sum })
        .map_err(|_| Refusal::text("ERR DUMP payload version or checksum are wrong"))?;
    let is_over = expiry.is_some_and(|at| at <= now);
    let rules = ctx.node.value_rules();
    let restored = payload::restore_checked(bytes, (&rules, now.0), &mut |value| {
        if !is_over {
            ctx.keys.remove(key);
            ctx.keys.put(key, value, expiry);
        }
    })
    .map_err(|_| Refusal::text("ERR Bad data format"))?;
    if is_over || restored == Restored::Nothing {
        // What would be there is over: only what was there goes.
        if ctx.keys.remove(key) {
            ctx.keys.wrote(key, Event::generic("del"));
            ctx.keys.record([b"DEL", key]);
        }
    } else {
        if let Some(noted) = options.noted {
            ctx.keys.set_noted_use(key, noted);
        }
        record(ctx, args, (&options, expiry), restored);
        ctx.keys.wrote(key, Event::generic("restore"));
    }
    ctx.reply.ok();
    DONE
}

/// Records the call with the moment of its expiry, and with a payload that gives the same value at
/// any time and on any server that can have it.
fn record(
    ctx: &mut Ctx,
    args: Args,
    (options, expiry): (&RestoreOptions, Option<UnixMillis>),
    restored: Restored,
) {
    if !ctx.keys.is_recording() {
        return;
    }
    let key = args.at(1);
    if restored == Restored::Same && (options.is_absolute || expiry.is_none()) {
        return ctx.record_as_is(args);
    }
    let dumping = dumping(ctx);
    let entry = ctx.keys.peek(key);
    let renewed = entry.filter(|_| restored != Restored::Same);
    let renewed = renewed.map(|entry| payload::dump(&entry, dumping));
    let mut call = OwnedArgs::default();
    let expiry = IntText::new(expiry.map_or(0, |at| at.0));
    let payload = renewed.as_deref().unwrap_or(args.at(3));
    for arg in [b"RESTORE", key, expiry.as_bytes(), payload, b"ABSTTL"] {
        call.push(arg);
    }
    if options.is_replacing {
        call.push(b"REPLACE");
    }
    match options.noted {
        Some(NotedUse::IdleSeconds(seconds)) => {
            call.push(b"IDLETIME");
            call.push(seconds.to_string().as_bytes());
        }
        Some(NotedUse::Count(count)) => {
            call.push(b"FREQ");
            call.push(count.to_string().as_bytes());
        }
        None => {}
    }
    let db = ctx.keys.db;
    ctx.keys.effects.records.push_owned(db, call);
}
