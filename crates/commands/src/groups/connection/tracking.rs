//! What servers with client-side caching and maintenance notices answer. Neither is here yet: a
//! client that asks is refused and carries on without.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::num::parse_i64;

#[derive(Default)]
struct Options {
    redirect: Option<i64>,
    has_prefix: bool,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
}

pub fn tracking(ctx: &mut Ctx, args: Args) -> Outcome {
    let options = parse(ctx, args)?;
    if args.at(2).eq_ignore_ascii_case(b"off") {
        ctx.reply.ok();
        return DONE;
    }
    if !args.at(2).eq_ignore_ascii_case(b"on") {
        return Err(Refusal::Syntax);
    }
    check(&options)?;
    // DIFFERS: invalidation messages are not sent yet, so a client must not rely on them.
    Err(Refusal::text("ERR CLIENT TRACKING is not supported by this server yet"))
}

fn parse(ctx: &Ctx, args: Args) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let mut at = 3;
    while let Some(arg) = args.get(at) {
        let value = args.get(at + 1);
        at += 1;
        match value {
            Some(value) if arg.eq_ignore_ascii_case(b"redirect") => {
                options.redirect = Some(redirect(ctx, &options, value)?);
                at += 1;
            }
            Some(_) if arg.eq_ignore_ascii_case(b"prefix") => {
                options.has_prefix = true;
                at += 1;
            }
            _ if arg.eq_ignore_ascii_case(b"bcast") => options.is_broadcast = true,
            _ if arg.eq_ignore_ascii_case(b"optin") => options.is_opt_in = true,
            _ if arg.eq_ignore_ascii_case(b"optout") => options.is_opt_out = true,
            _ if arg.eq_ignore_ascii_case(b"noloop") => {}
            _ => return Err(Refusal::Syntax),
        }
    }
    Ok(options)
}

fn redirect(ctx: &Ctx, options: &Options, value: &[u8]) -> Result<i64, Refusal> {
    if options.redirect.is_some_and(|id| id != 0) {
        return Err(Refusal::text("ERR A client can only redirect to a single other client"));
    }
    let id = parse_i64(value).ok_or(Refusal::NotInteger)?;
    match u64::try_from(id).ok().and_then(|id| ctx.node.clients.find(id)) {
        Some(_) => Ok(id),
        None => Err(Refusal::text("ERR The client ID you want redirect to does not exist")),
    }
}

fn check(options: &Options) -> Result<(), Refusal> {
    if options.has_prefix && !options.is_broadcast {
        return Err(Refusal::text("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    if options.is_broadcast && (options.is_opt_in || options.is_opt_out) {
        return Err(Refusal::text("ERR OPTIN and OPTOUT are not compatible with BCAST"));
    }
    if options.is_opt_in && options.is_opt_out {
        return Err(Refusal::text("ERR You can't specify both OPTIN mode and OPTOUT mode"));
    }
    Ok(())
}

pub fn caching(_ctx: &mut Ctx, _args: Args) -> Outcome {
    Err(Refusal::text(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    ))
}

pub fn getredir(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.int(-1);
    DONE
}

pub fn trackinginfo(ctx: &mut Ctx, _args: Args) -> Outcome {
    let reply = &mut *ctx.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.int(-1);
    reply.bulk(b"prefixes");
    reply.array(0);
    DONE
}

/// COMPAT: a server without maintenance notices does not know the subcommand, and clients that ask
/// for them by default go on when they read so (tests/wire/connection/client_maint.wire).
pub fn maint_notifications(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.at(2).eq_ignore_ascii_case(b"off") {
        ctx.reply.ok();
        return DONE;
    }
    let arg = escape(args.at(1));
    Err(Refusal::text(format!("ERR unknown subcommand '{arg}'. Try CLIENT HELP.")))
}
