//! PUBSUB: what is listened to, and by how many.

use super::hub::Space;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::escape::escape;

pub fn channels(ctx: &mut Ctx, args: Args) -> Outcome {
    list(ctx, Space::Global, args)
}

pub fn shardchannels(ctx: &mut Ctx, args: Args) -> Outcome {
    list(ctx, Space::Shard, args)
}

fn list(ctx: &mut Ctx, space: Space, args: Args) -> Outcome {
    if args.len() > 3 {
        let subcommand = escape(args.at(1));
        return Err(Refusal::text(format!(
            "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try PUBSUB HELP."
        )));
    }
    let channels = ctx.node.hub.channels(space, args.get(2));
    ctx.reply.array(channels.len());
    channels.iter().for_each(|channel| ctx.reply.bulk(channel));
    DONE
}

pub fn numsub(ctx: &mut Ctx, args: Args) -> Outcome {
    count(ctx, Space::Global, args)
}

pub fn shardnumsub(ctx: &mut Ctx, args: Args) -> Outcome {
    count(ctx, Space::Shard, args)
}

fn count(ctx: &mut Ctx, space: Space, args: Args) -> Outcome {
    let asked = args.from(2);
    ctx.reply.array(asked.len() * 2);
    for channel in asked.iter() {
        ctx.reply.bulk(channel);
        ctx.reply.int(ctx.node.hub.subscribers_len(space, channel) as i64);
    }
    DONE
}

pub fn numpat(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.int(ctx.node.hub.patterns_len() as i64);
    DONE
}
