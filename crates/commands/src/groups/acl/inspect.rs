//! The commands of ACL that change nothing.

use super::too_many;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::acl::{LogEntry, Selector, hexadecimal};
use russet_base::Args;
use russet_base::UnixMillis;
use russet_base::escape::escape;
use russet_base::num::parse_i64;
use russet_base::random::fill_with_secrets;
use russet_base::text::eq_ignore_case;
use russet_catalog::Command;
use russet_catalog::spec::Categories;
use russet_protocol::Sink;

/// Bits of a password that ACL GENPASS makes by default.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4096;
/// Bits of one hexadecimal digit.
const DIGIT_BITS: i64 = 4;
/// Entries that ACL LOG shows by default.
const LOG_ENTRIES: i64 = 10;

pub(crate) fn whoami(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.bulk(ctx.session.login.name());
    DONE
}

pub(crate) fn users(ctx: &mut Ctx, _args: Args) -> Outcome {
    let users = ctx.node.acl.users();
    ctx.reply.array(users.len());
    users.iter().for_each(|user| ctx.reply.bulk(&user.name));
    DONE
}

pub(crate) fn list(ctx: &mut Ctx, _args: Args) -> Outcome {
    let users = ctx.node.acl.users();
    ctx.reply.array(users.len());
    users.iter().for_each(|user| ctx.reply.bulk(&user.line()));
    DONE
}

pub(crate) fn getuser(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(user) = ctx.node.acl.user(args.at(2)) else {
        ctx.reply.null();
        return DONE;
    };
    let rights = user.rights();
    let reply = &mut *ctx.reply;
    reply.map(7);
    reply.bulk(b"flags");
    reply.set(1 + usize::from(rights.is_passwordless));
    reply.bulk(if rights.is_on { b"on" } else { b"off" });
    if rights.is_passwordless {
        reply.bulk(b"nopass");
    }
    reply.bulk(b"passwords");
    reply.array(rights.passwords.len());
    rights.passwords.iter().for_each(|digest| reply.bulk(digest.text().as_bytes()));
    write_selector(reply, &rights.root);
    reply.bulk(b"selectors");
    reply.array(rights.selectors.len());
    for selector in &rights.selectors {
        reply.map(4);
        write_selector(reply, selector);
    }
    DONE
}

/// The four fields that a user and each of its selectors have.
fn write_selector(reply: &mut dyn Sink, selector: &Selector) {
    type Write = fn(&Selector, &mut Vec<u8>);
    let fields: [(&str, Write); 4] = [
        ("commands", Selector::write_commands),
        ("keys", Selector::write_keys),
        ("channels", Selector::write_channels),
        ("databases", Selector::write_databases),
    ];
    for (name, write) in fields {
        let mut rules = Vec::new();
        write(selector, &mut rules);
        reply.bulk(name.as_bytes());
        reply.bulk(&rules);
    }
}

pub(crate) fn cat(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(arg) = args.get(2) else {
        ctx.reply.array(Categories::NAMES.len());
        Categories::NAMES.iter().for_each(|(_, name)| ctx.reply.bulk(name.as_bytes()));
        return DONE;
    };
    if args.len() > 3 {
        return Err(too_many(args));
    }
    let named = |(_, name): &&(Categories, &str)| arg.eq_ignore_ascii_case(name.as_bytes());
    let Some((category, _)) = Categories::NAMES.iter().find(named) else {
        return Err(Refusal::text(format!("ERR Unknown category '{}'", escape(arg))));
    };
    let mut commands = Command::ALL.to_vec();
    commands.retain(|command| command.spec().categories.has(*category));
    ctx.reply.array(commands.len());
    commands.iter().for_each(|command| ctx.reply.bulk(command.full_name().as_bytes()));
    DONE
}

pub(crate) fn genpass(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 3 {
        return Err(too_many(args));
    }
    let bits = match args.get(2) {
        Some(arg) => parse_i64(arg).ok_or(Refusal::NotInteger)?,
        None => PASSWORD_BITS,
    };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(Refusal::text(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to {PASSWORD_BITS_MAX}"
        )));
    }
    let digits = (bits as u64).div_ceil(DIGIT_BITS as u64) as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    fill_with_secrets(&mut bytes).map_err(|error| {
        Refusal::text(format!("ERR cannot read random numbers from the system: {error}"))
    })?;
    let password = hexadecimal(&bytes);
    ctx.reply.bulk(&password.as_bytes()[..digits]);
    DONE
}

/// Whether a user may make a call, in the database of who asks.
pub(crate) fn dryrun(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(user) = ctx.node.acl.user(args.at(2)) else {
        let name = escape(args.at(2)).into_owned();
        return Err(Refusal::text(format!("ERR User '{name}' not found")));
    };
    let call = args.from(3);
    let Ok(command) = ctx.node.resolve(call) else {
        let name = escape(call.at(0)).into_owned();
        return Err(Refusal::text(format!("ERR Command '{name}' not found")));
    };
    let spec = command.spec();
    if !spec.arity.allows(call.len()) {
        return Err(Refusal::Arity(spec.full_name));
    }
    match user.rights().check(&ctx.node.call_of(ctx.session, (command, call))) {
        Ok(()) => ctx.reply.ok(),
        Err(denial) => ctx.reply.bulk(&denial.detail(&user.name, (command, call))),
    }
    DONE
}

pub(crate) fn log(ctx: &mut Ctx, args: Args) -> Outcome {
    let log = &ctx.node.acl.log;
    if args.len() > 3 {
        return Err(too_many(args));
    }
    let count = match args.get(2) {
        None => LOG_ENTRIES,
        Some(arg) if eq_ignore_case(arg, b"reset") => {
            log.reset();
            ctx.reply.ok();
            return DONE;
        }
        Some(arg) => parse_i64(arg).ok_or(Refusal::NotInteger)?,
    };
    let entries = log.newest(usize::try_from(count).unwrap_or(0));
    ctx.reply.array(entries.len());
    for entry in &entries {
        write_entry(ctx.reply, entry, ctx.keys.now);
    }
    DONE
}

fn write_entry(reply: &mut dyn Sink, entry: &LogEntry, now: UnixMillis) {
    reply.map(10);
    reply.bulk(b"count");
    reply.int(entry.count as i64);
    let texts: [(&str, &[u8]); 4] = [
        ("reason", entry.reason.as_bytes()),
        ("context", entry.context.name().as_bytes()),
        ("object", &entry.object),
        ("username", &entry.user),
    ];
    for (name, text) in texts {
        reply.bulk(name.as_bytes());
        reply.bulk(text);
    }
    reply.bulk(b"age-seconds");
    reply.double((now.0 - entry.updated_ms) as f64 / 1000.0);
    reply.bulk(b"client-info");
    reply.bulk(&entry.client);
    let numbers = [
        ("entry-id", entry.id as i64),
        ("timestamp-created", entry.created_ms),
        ("timestamp-last-updated", entry.updated_ms),
    ];
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.int(number);
    }
}
