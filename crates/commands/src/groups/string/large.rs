//! SET of a very large value with `appendfsync always`: it is written to the disk before it runs,
//! so that those behind it in the log do not wait for it. What is in the files is left to the
//! persistence crate.

use crate::call::client::Hold;
use crate::call::ctx::Ctx;
use crate::call::invoke::Origin;
use crate::call::mail::Letter;
use crate::error::Refusal;
use russet_base::Args;
use std::sync::{Arc, OnceLock};

/// Bytes of a call from which it is written ahead: less is written sooner than a file is made part
/// of the log.
const LARGE_BYTES_MIN: usize = 8 << 20;

/// What became of a call that is written ahead: why it could not be, once that is known.
pub(crate) type Ahead = Arc<OnceLock<String>>;

/// Whether the call is to be given again when another thread has written it; it never waits twice.
/// One that could not be written is refused, before it has changed anything.
#[cold]
pub(super) fn must_wait(ctx: &mut Ctx, args: Args) -> Result<bool, Refusal> {
    if let Some(ahead) = ctx.session.ahead.take() {
        return match ahead.get() {
            Some(why) => Err(Refusal::LogFailed(why.clone())),
            None => Ok(false),
        };
    }
    let is_large = args.bytes_total() >= LARGE_BYTES_MIN;
    let may_wait = ctx.may_block && ctx.origin == Origin::Client;
    if !is_large || !may_wait || !ctx.keys.keyspace().journal().is_strict() {
        return Ok(false);
    }
    let Some(log) = ctx.node.durability.log() else { return Ok(false) };
    let (mailbox, ahead) = (ctx.session.mailbox.clone(), Ahead::default());
    let failure = ahead.clone();
    let over = Box::new(move |why_not: Option<String>| {
        if let Some(why) = why_not {
            // Nobody else sets it.
            let _is_first = failure.set(why);
        }
        mailbox.post(Letter::JobOver);
    });
    if !log.write_ahead((ctx.keys.db, args), over) {
        return Ok(false);
    }
    ctx.session.ahead = Some(ahead);
    ctx.session.hold = Hold::Job;
    Ok(true)
}
