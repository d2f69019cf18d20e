//! CLIENT, as far as it concerns the caller's own connection: names and modes.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::session::ReplyMode;
use crate::error::Refusal;
use crate::node::clients::ClientFlags;
use russet_base::Args;
use russet_base::escape::escape;

/// CLIENT LIST is split at spaces, so what it shows holds none.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_graphic())
}

pub(super) fn check_name(name: &[u8]) -> Result<(), Refusal> {
    if is_plain(name) { Ok(()) } else { Err(Refusal::ClientName) }
}

pub fn id(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.int(ctx.session.id() as i64);
    DONE
}

pub fn getname(ctx: &mut Ctx, _args: Args) -> Outcome {
    match ctx.session.card.names().name.as_slice() {
        b"" => ctx.reply.null(),
        name => ctx.reply.bulk(name),
    }
    DONE
}

/// An empty name takes the name away.
pub fn setname(ctx: &mut Ctx, args: Args) -> Outcome {
    check_name(args.at(2))?;
    ctx.session.card.names().name = args.at(2).to_vec();
    ctx.reply.ok();
    DONE
}

pub fn setinfo(ctx: &mut Ctx, args: Args) -> Outcome {
    let (attribute, value) = (args.at(2), args.at(3));
    let is_name = attribute.eq_ignore_ascii_case(b"lib-name");
    let shown = || escape(attribute);
    if !is_name && !attribute.eq_ignore_ascii_case(b"lib-ver") {
        return Err(Refusal::text(format!("ERR Unrecognized option '{}'", shown())));
    }
    if !is_plain(value) {
        return Err(Refusal::text(format!(
            "ERR {} cannot contain spaces, newlines or special characters.",
            shown()
        )));
    }
    let mut names = ctx.session.card.names();
    let field = if is_name { &mut names.library } else { &mut names.library_version };
    *field = value.to_vec();
    drop(names);
    ctx.reply.ok();
    DONE
}

fn on_or_off(arg: &[u8]) -> Result<bool, Refusal> {
    match arg {
        arg if arg.eq_ignore_ascii_case(b"on") => Ok(true),
        arg if arg.eq_ignore_ascii_case(b"off") => Ok(false),
        _ => Err(Refusal::Syntax),
    }
}

pub fn no_evict(ctx: &mut Ctx, args: Args) -> Outcome {
    let on = on_or_off(args.at(2))?;
    ctx.session.card.set_flag(ClientFlags::NO_EVICT, on);
    ctx.reply.ok();
    DONE
}

pub fn no_touch(ctx: &mut Ctx, args: Args) -> Outcome {
    let on = on_or_off(args.at(2))?;
    ctx.session.card.set_flag(ClientFlags::NO_TOUCH, on);
    ctx.session.is_silent = on;
    ctx.keys.is_silent = on;
    ctx.reply.ok();
    DONE
}

/// There is no import mode to turn it on in.
pub fn import_source(ctx: &mut Ctx, args: Args) -> Outcome {
    if !args.at(2).eq_ignore_ascii_case(b"off") {
        return Err(Refusal::text("ERR Server is not in import mode"));
    }
    ctx.reply.ok();
    DONE
}

/// What is not known is no error: a client may say more than this server understands.
pub fn capa(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.from(2).iter().any(|arg| arg.eq_ignore_ascii_case(b"redirect")) {
        ctx.session.card.set_flag(ClientFlags::FOLLOWS_REDIRECTIONS, true);
    }
    ctx.reply.ok();
    DONE
}

/// Only ON is answered; the server drops what other commands write while replies are off.
pub fn reply(ctx: &mut Ctx, args: Args) -> Outcome {
    let arg = args.at(2);
    if arg.eq_ignore_ascii_case(b"on") {
        ctx.session.set_reply_mode(ReplyMode::On);
        ctx.reply.ok();
    } else if arg.eq_ignore_ascii_case(b"off") {
        ctx.session.set_reply_mode(ReplyMode::Off);
    } else if arg.eq_ignore_ascii_case(b"skip") {
        if ctx.session.reply_mode != ReplyMode::Off {
            ctx.session.set_reply_mode(ReplyMode::SkipNext);
        }
    } else {
        return Err(Refusal::Syntax);
    }
    DONE
}
