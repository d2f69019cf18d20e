//! Fields together with their time to live: HSETEX, HGETEX.

use super::args::{Call, Lifetime};
use super::expiry::{publish_deadline, publish_expired};
use super::{
    Changed, delete_emptied, limits, pairs, read, record_deadline, reply_nulls, reply_value,
    wrote_fields,
};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::types::hash::{HashRef, Lease, stored};

/// Whether something must be there, or must not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Any,
    Absent,
    Present,
}

impl Presence {
    /// Sets it, unless the opposite was asked for.
    fn ask(&mut self, wish: Presence) -> Result<usize, Refusal> {
        if *self != Presence::Any && *self != wish {
            return Err(Refusal::Syntax);
        }
        *self = wish;
        Ok(1)
    }

    fn allows(self, is_there: bool) -> bool {
        match self {
            Presence::Any => true,
            Presence::Absent => !is_there,
            Presence::Present => is_there,
        }
    }
}

/// The arguments of HSETEX before its fields.
#[derive(Debug)]
struct SetOptions<'a> {
    key: Presence,
    fields: Presence,
    lifetime: Lifetime<'a>,
}

impl<'a> SetOptions<'a> {
    fn take(&mut self, arg: &'a [u8], next: Option<&'a [u8]>) -> Result<usize, Refusal> {
        let is = |name: &[u8]| eq_ignore_case(arg, name);
        if is(b"nx") {
            return self.key.ask(Presence::Absent);
        } else if is(b"xx") {
            return self.key.ask(Presence::Present);
        } else if is(b"fnx") {
            return self.fields.ask(Presence::Absent);
        } else if is(b"fxx") {
            return self.fields.ask(Presence::Present);
        }
        let taken = self.lifetime.take((arg, next), (b"keepttl", Lifetime::Keep));
        taken.ok_or(Refusal::Syntax)
    }
}

pub fn hsetex(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let mut options =
        SetOptions { key: Presence::Any, fields: Presence::Any, lifetime: Lifetime::Unsaid };
    let call = Call::parse(args, (2, 2), &mut |arg, next| options.take(arg, next))?;
    let fields = call.fields();
    let hides_ms = ctx.keys.hides_fields_ms();
    let hash = match ctx.keys.peek(key) {
        None => None,
        Some(entry) => Some(stored::hash(&entry)?.hiding(hides_ms)),
    };
    let is_key_right = options.key.allows(hash.is_some());
    let are_fields_right = are_allowed(hash, options.fields, fields);
    if !is_key_right {
        ctx.reply.int(0);
        return DONE;
    }
    let lease = match options.lifetime {
        Lifetime::At(moment) => {
            Lease::Until(moment.read(ctx.keys.real_now(), ctx.command.spec().full_name)?)
        }
        Lifetime::Keep => Lease::Keep,
        Lifetime::Unsaid | Lifetime::Persist => Lease::None,
    };
    if !are_fields_right {
        ctx.reply.int(0);
        return DONE;
    }
    match lease {
        Lease::Until(at_ms) if at_ms <= ctx.keys.now.0 => drop_fields(ctx, key, fields)?,
        _ => set_fields(ctx, (key, fields), lease)?,
    }
    ctx.reply.int(1);
    DONE
}

fn are_allowed(hash: Option<HashRef>, wish: Presence, fields: Args) -> bool {
    let is_there = |name: &[u8]| hash.is_some_and(|hash| hash.contains(name));
    wish == Presence::Any || pairs(fields).all(|(name, _)| wish.allows(is_there(name)))
}

fn set_fields(ctx: &mut Ctx, target: (&[u8], Args), lease: Lease) -> Result<(), Refusal> {
    let ((key, fields), limits) = (target, limits(ctx));
    let edited = ctx.keys.edit_hash(key, limits, |hash| {
        for pair in pairs(fields) {
            hash.set(pair, lease);
        }
    })?;
    if edited.is_none() {
        ctx.keys.put_hash(key, pairs(fields), (lease, limits));
    }
    wrote_fields(ctx, key, (Event::hash("hset"), fields.len() / 2));
    if let Lease::Until(_) = lease {
        ctx.keys.also(key, Event::hash("hexpire"));
    }
    if ctx.keys.is_recording() {
        record_set(ctx, (key, fields), lease);
    }
    Ok(())
}

/// Fields that were set, and then their deadlines, which HSET takes away.
fn record_set(ctx: &mut Ctx, (key, fields): (&[u8], Args), lease: Lease) {
    ctx.keys.record([b"HSET", key].into_iter().chain(fields.iter()));
    let names = pairs(fields).map(|(name, _)| name);
    match lease {
        Lease::None => {}
        Lease::Until(at_ms) => record_deadline(ctx.keys, key, (Some(at_ms), names)),
        Lease::Keep => {
            for name in names {
                let entry = ctx.keys.peek(key);
                let hash = entry.and_then(|entry| stored::hash(&entry).ok());
                if let Some(Some(at_ms)) = hash.and_then(|hash| hash.deadline(name)) {
                    record_deadline(ctx.keys, key, (Some(at_ms), [name].into_iter()));
                }
            }
        }
    }
}

/// Fields that would be over at once. DIFFERS: as in Valkey it is as if they had been set and then
/// had expired; Redis notifies of their deletion.
fn drop_fields(ctx: &mut Ctx, key: &[u8], fields: Args) -> Result<(), Refusal> {
    let limits = limits(ctx);
    let mut removed = Changed::new(ctx.keys);
    let edited = ctx.keys.edit_hash(key, limits, |hash| {
        pairs(fields).filter(|(name, _)| hash.remove(name)).for_each(|(name, _)| removed.add(name));
        hash.is_empty()
    })?;
    let is_emptied = edited.unwrap_or(true);
    ctx.keys.count_expired_fields(key, fields.len() / 2);
    ctx.keys.also(key, Event::hash("hset"));
    ctx.keys.also(key, Event::hash("hexpire"));
    if removed.count > 0 {
        wrote_fields(ctx, key, (Event::hash("hexpired"), removed.count));
        removed.record_removed(ctx.keys, key);
    } else {
        ctx.keys.also(key, Event::hash("hexpired"));
    }
    if is_emptied {
        delete_emptied(ctx, key);
    }
    Ok(())
}

/// What HGETEX does to the fields that it reads.
#[derive(Clone, Copy)]
enum Change {
    Nothing,
    Expire(i64),
    Drop,
    Persist,
}

pub fn hgetex(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let mut lifetime = Lifetime::Unsaid;
    let call = Call::parse(args, (2, 1), &mut |arg, next| {
        let taken = lifetime.take((arg, next), (b"persist", Lifetime::Persist));
        taken.ok_or(Refusal::Syntax)
    })?;
    let (names, now, real_now) = (call.fields(), ctx.keys.now, ctx.keys.real_now());
    let hash = read(ctx.keys, key)?;
    let command = ctx.command.spec().full_name;
    let change = match lifetime {
        Lifetime::At(moment) => match moment.read(real_now, command)? {
            at_ms if at_ms <= now.0 => Change::Drop,
            at_ms => Change::Expire(at_ms),
        },
        Lifetime::Persist => Change::Persist,
        Lifetime::Unsaid | Lifetime::Keep => Change::Nothing,
    };
    match (hash, change) {
        (None, _) => reply_nulls(ctx.reply, names.len()),
        (Some(hash), Change::Nothing) => {
            ctx.reply.array(names.len());
            names.iter().for_each(|name| reply_value(ctx.reply, hash.value(name)));
        }
        (Some(_), change) => read_and_change(ctx, (key, names), change)?,
    }
    DONE
}

fn read_and_change(ctx: &mut Ctx, target: (&[u8], Args), change: Change) -> Result<(), Refusal> {
    let ((key, names), limits) = (target, limits(ctx));
    let Ctx { keys, reply, .. } = ctx;
    let mut changed = Changed::new(keys);
    let edited = keys.edit_hash(key, limits, |hash| {
        reply.array(names.len());
        for name in names.iter() {
            reply_value(*reply, hash.view().value(name));
            let is_changed = match change {
                Change::Nothing => false,
                Change::Expire(at_ms) => hash.set_deadline(name, Some(at_ms)),
                Change::Drop => hash.remove(name),
                Change::Persist => {
                    matches!(hash.view().deadline(name), Some(Some(_)))
                        && hash.set_deadline(name, None)
                }
            };
            if is_changed {
                changed.add(name);
            }
        }
        hash.is_empty()
    })?;
    match change {
        _ if changed.count == 0 => {}
        Change::Nothing => {}
        Change::Expire(at_ms) => publish_deadline(ctx, key, (&changed, at_ms)),
        Change::Drop => publish_expired(ctx, key, (&changed, edited == Some(true))),
        Change::Persist => {
            wrote_fields(ctx, key, (Event::hash("hpersist"), changed.count));
            changed.record_deadline(ctx.keys, key, None);
        }
    }
    Ok(())
}
