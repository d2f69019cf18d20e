//! CLIENT PAUSE, UNPAUSE and UNBLOCK: other clients held back, and let go.

use crate::call::blocking;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::pause::PauseKind;
use crate::error::Refusal;
use russet_base::Args;
use russet_base::num::parse_i64;

/// COMPAT: arguments after the mode are not looked at (tests/wire/connection/client_pause.wire).
pub fn pause(ctx: &mut Ctx, args: Args) -> Outcome {
    let kind = match args.get(3) {
        None => PauseKind::All,
        Some(arg) if arg.eq_ignore_ascii_case(b"write") => PauseKind::Write,
        Some(arg) if arg.eq_ignore_ascii_case(b"all") => PauseKind::All,
        Some(_) => return Err(Refusal::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms = parse_i64(args.at(2))
        .ok_or(Refusal::text("ERR timeout is not an integer or out of range"))?;
    if timeout_ms < 0 {
        return Err(Refusal::TimeoutNegative);
    }
    let end = ctx.keys.now.checked_plus_ms(timeout_ms);
    let end = end.ok_or(Refusal::text("ERR timeout is out of range"))?;
    ctx.node.pause.start(&ctx.node.keyspace, kind, end);
    ctx.reply.ok();
    DONE
}

pub fn unpause(ctx: &mut Ctx, _args: Args) -> Outcome {
    // Who was held back has gone on when this is answered.
    ctx.node.pause.end(&ctx.node.keyspace, || Some(ctx.session.ask_others()));
    ctx.reply.ok();
    DONE
}

/// The reply says whether the client was blocked. Then its wait is over; its own thread answers
/// it.
pub fn unblock(ctx: &mut Ctx, args: Args) -> Outcome {
    let with_error = match args.get(3) {
        None => false,
        Some(arg) if arg.eq_ignore_ascii_case(b"timeout") => false,
        Some(arg) if arg.eq_ignore_ascii_case(b"error") => true,
        Some(_) => {
            return Err(Refusal::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    let id = parse_i64(args.at(2)).ok_or(Refusal::NotInteger)?;
    let card = u64::try_from(id).ok().and_then(|id| ctx.node.clients.find(id));
    let is_ended = card.is_some_and(|card| blocking::unblock(ctx.session, &card, with_error));
    ctx.reply.int(i64::from(is_ended));
    DONE
}
