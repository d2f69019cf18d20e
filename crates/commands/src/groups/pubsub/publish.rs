//! PUBLISH and SPUBLISH.

use super::hub::Space;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::notify_listeners;
use crate::call::mail::Posting;
use russet_base::Args;

pub fn publish(ctx: &mut Ctx, args: Args) -> Outcome {
    to(ctx, Space::Global, args)
}

pub fn spublish(ctx: &mut Ctx, args: Args) -> Outcome {
    to(ctx, Space::Shard, args)
}

fn to(ctx: &mut Ctx, space: Space, args: Args) -> Outcome {
    // Of a transaction or script: what it has changed before is known first.
    notify_listeners(ctx.keys, ctx.node);
    // Who gets the message may rely on what the client was about to be told.
    if ctx.session.depends_on != 0 {
        ctx.keys.shows(ctx.session.depends_on);
    }
    let mut posting = Posting::of(ctx.keys);
    let receivers = ctx.node.hub.publish(space, args.at(1), args.at(2), &mut posting);
    ctx.reply.int(receivers as i64);
    DONE
}
