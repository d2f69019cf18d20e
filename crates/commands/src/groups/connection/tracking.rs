//! CLIENT TRACKING and its kin: of which keys a client wants invalidations. And
//! what servers with maintenance notices answer, of which there are none here.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::tracking::{self, Mode, Tracked};
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::num::parse_i64;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Bound;

#[derive(Default)]
struct Options<'a> {
    redirect: Option<u64>,
    prefixes: Vec<&'a [u8]>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    has_noloop: bool,
}

pub fn tracking(ctx: &mut Ctx, args: Args) -> Outcome {
    let options = parse(ctx, args)?;
    // In a transaction: of what was done before it the client hears as it tracked then.
    tracking::notify_readers(ctx.keys, ctx.node);
    if args.at(2).eq_ignore_ascii_case(b"off") {
        tracking::end(ctx.node, ctx.session);
    } else if args.at(2).eq_ignore_ascii_case(b"on") {
        let before = ctx.session.tracking.as_deref();
        check(&options, before)?;
        check_prefixes(&options.prefixes, before.map(|before| &before.prefixes))?;
        tracking::begin(ctx.node, ctx.session, options.tracked());
    } else {
        return Err(Refusal::Syntax);
    }
    ctx.keys.refresh_listeners();
    ctx.reply.ok();
    DONE
}

fn parse<'a>(ctx: &Ctx, args: Args<'a>) -> Result<Options<'a>, Refusal> {
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
            Some(value) if arg.eq_ignore_ascii_case(b"prefix") => {
                options.prefixes.push(value);
                at += 1;
            }
            _ if arg.eq_ignore_ascii_case(b"bcast") => options.is_broadcast = true,
            _ if arg.eq_ignore_ascii_case(b"optin") => options.is_opt_in = true,
            _ if arg.eq_ignore_ascii_case(b"optout") => options.is_opt_out = true,
            _ if arg.eq_ignore_ascii_case(b"noloop") => options.has_noloop = true,
            _ => return Err(Refusal::Syntax),
        }
    }
    Ok(options)
}

fn redirect(ctx: &Ctx, options: &Options, value: &[u8]) -> Result<u64, Refusal> {
    if options.redirect.is_some() {
        return Err(Refusal::text("ERR A client can only redirect to a single other client"));
    }
    let id = parse_i64(value).ok_or(Refusal::NotInteger)?;
    let id = u64::try_from(id).ok().filter(|id| ctx.node.clients.find(*id).is_some());
    id.ok_or(Refusal::text("ERR The client ID you want redirect to does not exist"))
}

fn check(options: &Options, before: Option<&Tracked>) -> Result<(), Refusal> {
    let was = |mode| before.is_some_and(|before| before.mode == mode);
    if !options.prefixes.is_empty() && !options.is_broadcast {
        return Err(Refusal::text("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    if before.is_some() && was(Mode::Broadcast) != options.is_broadcast {
        return Err(switched("BCAST mode on/off"));
    }
    if options.is_broadcast && (options.is_opt_in || options.is_opt_out) {
        return Err(Refusal::text("ERR OPTIN and OPTOUT are not compatible with BCAST"));
    }
    if options.is_opt_in && options.is_opt_out {
        return Err(Refusal::text("ERR You can't specify both OPTIN mode and OPTOUT mode"));
    }
    if options.is_opt_in && was(Mode::OptOut) || options.is_opt_out && was(Mode::OptIn) {
        return Err(switched("OPTIN/OPTOUT mode"));
    }
    Ok(())
}

fn switched(what: &str) -> Refusal {
    Refusal::text(format!(
        "ERR You can't switch {what} before disabling tracking for this client, and then \
         re-enabling it with a different mode."
    ))
}

impl Options<'_> {
    /// What holds from now on, with the prefixes that are added. Without any BCAST is for all keys.
    fn tracked(&self) -> (Tracked, Vec<Box<[u8]>>) {
        let mode = match () {
            () if self.is_broadcast => Mode::Broadcast,
            () if self.is_opt_in => Mode::OptIn,
            () if self.is_opt_out => Mode::OptOut,
            () => Mode::Reads,
        };
        let tracked = Tracked {
            mode,
            has_noloop: self.has_noloop,
            redirect: self.redirect,
            prefixes: BTreeSet::new(),
            is_next_marked: false,
            reader: None,
        };
        let added = match self.prefixes[..] {
            [] => vec![Box::default()],
            ref given => given.iter().map(|prefix| Box::from(*prefix)).collect(),
        };
        (tracked, added)
    }
}

/// One change is one message: no prefix of a client may begin with another.
fn check_prefixes(given: &[&[u8]], known: Option<&BTreeSet<Box<[u8]>>>) -> Result<(), Refusal> {
    let refused = |one: &[u8], other: &[u8], which: &str| {
        let (one, other) = (escape(one), escape(other));
        Refusal::text(format!(
            "ERR Prefix '{one}' overlaps with {which} prefix '{other}'. Prefixes for a single \
             client must not overlap."
        ))
    };
    let mut before = BTreeSet::new();
    for prefix in given.iter().copied() {
        let found = known.and_then(|known| overlapping(known, prefix));
        if let Some(other) = found {
            return Err(refused(prefix, other, "an existing"));
        }
        if let Some(other) = overlapping(&before, prefix) {
            return Err(refused(other, prefix, "another provided"));
        }
        before.insert(prefix);
    }
    Ok(())
}

/// A prefix that begins with this one, or that this one begins with. Since no two of them overlap,
/// except with the empty one, it is next to the place of this one.
fn overlapping<'p, P: Borrow<[u8]> + Ord>(
    prefixes: &'p BTreeSet<P>,
    prefix: &[u8],
) -> Option<&'p [u8]> {
    let before = prefixes.range::<[u8], _>((Bound::Unbounded, Bound::Included(prefix))).next_back();
    let behind = prefixes.range::<[u8], _>((Bound::Excluded(prefix), Bound::Unbounded)).next();
    let near = [prefixes.first(), before, behind].into_iter().flatten().map(|it| it.borrow());
    near.into_iter().find(|it: &&[u8]| it.starts_with(prefix) || prefix.starts_with(it))
}

pub fn caching(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(tracked) = &mut ctx.session.tracking else {
        return Err(Refusal::text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    let (answer, mode, name) = match args.at(2) {
        arg if arg.eq_ignore_ascii_case(b"yes") => ("YES", Mode::OptIn, "OPTIN"),
        arg if arg.eq_ignore_ascii_case(b"no") => ("NO", Mode::OptOut, "OPTOUT"),
        _ => return Err(Refusal::Syntax),
    };
    if tracked.mode != mode {
        return Err(Refusal::text(format!(
            "ERR CLIENT CACHING {answer} is only valid when tracking is enabled in {name} mode."
        )));
    }
    tracked.is_next_marked = true;
    ctx.reply.ok();
    DONE
}

pub fn getredir(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.int(ctx.session.card.shown_redirect());
    DONE
}

pub fn trackinginfo(ctx: &mut Ctx, _args: Args) -> Outcome {
    let mut flags = vec!["off"];
    let mut prefixes = &BTreeSet::new();
    if let Some(tracked) = &ctx.session.tracking {
        let (mode, marked) = (tracked.mode, tracked.is_next_marked);
        flags[0] = "on";
        let facts = [
            (mode == Mode::Broadcast, "bcast"),
            (mode == Mode::OptIn, "optin"),
            (mode == Mode::OptIn && marked, "caching-yes"),
            (mode == Mode::OptOut, "optout"),
            (mode == Mode::OptOut && marked, "caching-no"),
            (tracked.has_noloop, "noloop"),
            (ctx.session.card.is_redirect_broken(), "broken_redirect"),
        ];
        flags.extend(facts.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name));
        prefixes = &tracked.prefixes;
    }
    let reply = &mut *ctx.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.int(ctx.session.card.shown_redirect());
    reply.bulk(b"prefixes");
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
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
