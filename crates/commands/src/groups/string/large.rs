//! SET of a very large value with `appendfsync always`: it is written to the disk before it runs,
//! so that those behind it in the log do not wait for it. What is in the files is left to the
//! persistence crate.

use crate::call::client::Hold;
use crate::call::ctx::Ctx;
use crate::call::invoke::Origin;
use crate::call::mail::Letter;
use russet_base::Args;

/// Bytes of a call from which it is written ahead: less is written sooner than a file is made part
/// of the log.
const LARGE_BYTES_MIN: usize = 8 << 20;

/// Whether the call is to be given again when another thread has written it; it never waits twice.
#[cold]
pub(super) fn must_wait(ctx: &mut Ctx, args: Args) -> bool {
    if std::mem::take(&mut ctx.session.is_written_ahead) {
        return false;
    }
    let is_large = args.bytes_total() >= LARGE_BYTES_MIN;
    let may_wait = ctx.may_block && ctx.origin == Origin::Client;
    if !is_large || !may_wait || !ctx.keys.keyspace().journal().is_strict() {
        return false;
    }
    let Some(log) = ctx.node.durability.log() else { return false };
    let mailbox = ctx.session.mailbox.clone();
    let over = Box::new(move || mailbox.post(Letter::JobOver));
    if !log.write_ahead((ctx.keys.db, args), over) {
        return false;
    }
    ctx.session.is_written_ahead = true;
    ctx.session.hold = Hold::Job;
    true
}
