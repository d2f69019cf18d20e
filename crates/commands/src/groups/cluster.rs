//! CLUSTER and its kin on a server that is no cluster. Where Redis refuses what does not need one,
//! we answer as Valkey does.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::clients::ClientFlags;
use russet_base::Args;
use russet_base::slot::slot;

pub(crate) fn refused(_ctx: &mut Ctx, _args: Args) -> Outcome {
    Err(Refusal::text("ERR This instance has cluster support disabled"))
}

/// DIFFERS: Redis refuses it outside a cluster; what it computes is the same everywhere.
pub(crate) fn keyslot(ctx: &mut Ctx, args: Args) -> Outcome {
    ctx.reply.int(i64::from(slot(args.at(2))));
    DONE
}

/// READONLY and READWRITE say whether a replica may be read. A primary may be, always: only CLIENT
/// LIST shows what was said.
///
/// DIFFERS: Redis refuses them outside a cluster.
pub(crate) fn readonly(ctx: &mut Ctx, _args: Args) -> Outcome {
    set_readonly(ctx, true)
}

pub(crate) fn readwrite(ctx: &mut Ctx, _args: Args) -> Outcome {
    set_readonly(ctx, false)
}

fn set_readonly(ctx: &mut Ctx, on: bool) -> Outcome {
    ctx.session.card.set_flag(ClientFlags::READONLY, on);
    ctx.reply.ok();
    DONE
}
