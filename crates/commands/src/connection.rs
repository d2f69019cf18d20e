//! Commands about the connection itself.

use crate::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use crate::session::Session;
use russet_base::Args;
use russet_protocol::Resp;

pub fn ping(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 2 {
        return Err(Refusal::Arity("ping"));
    }
    let is_subscribed = ctx.session.resp == Resp::V2 && ctx.session.subscriptions.count_all() > 0;
    match args.get(1) {
        // COMPAT: a subscribed RESP2 client reads arrays only (tests/wire/connection/ping.wire).
        word if is_subscribed => {
            ctx.reply.array(2);
            ctx.reply.bulk(b"pong");
            ctx.reply.bulk(word.unwrap_or(b""));
        }
        Some(word) => ctx.reply.bulk(word),
        None => ctx.reply.status("PONG"),
    }
    DONE
}

pub fn echo(ctx: &mut Ctx, args: Args) -> Outcome {
    ctx.reply.bulk(args.at(1));
    DONE
}

/// Forgets a client that is gone: nobody serves, watches or publishes for it any more.
pub fn disconnect(node: &Node, session: &mut Session) {
    session.wait = None;
    if let Some(state) = session.blocked.take() {
        state.waiter.claim();
    }
    node.monitors.remove(session.id());
    node.clients.remove(session.id());
}
