//! Commands about the connection itself: protocol, login, database, CLIENT.

pub(crate) mod client;
mod filter;
pub(crate) mod kill;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod pause;
pub(crate) mod tracking;

#[cfg(test)]
mod tests;

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::session::{ReplyMode, Session};
use crate::error::Refusal;
use crate::groups::{pubsub, transactions};
use crate::node::Node;
use crate::node::clients::ClientFlags;
use crate::node::config::Directive;
use russet_base::Args;
use russet_base::num::parse_i64;
use russet_protocol::Resp;
use std::sync::atomic::Ordering;

pub fn ping(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 2 {
        return Err(Refusal::Arity("ping"));
    }
    let is_subscribed = ctx.session.resp == Resp::V2 && ctx.session.subscriptions.count_all() > 0;
    match args.get(1) {
        // COMPAT: a subscribed RESP2 client reads arrays only (tests/wire/connection/ping.wire).
        arg if is_subscribed => {
            ctx.reply.array(2);
            ctx.reply.bulk(b"pong");
            ctx.reply.bulk(arg.unwrap_or(b""));
        }
        Some(arg) => ctx.reply.bulk(arg),
        None => ctx.reply.status("PONG"),
    }
    DONE
}

pub fn echo(ctx: &mut Ctx, args: Args) -> Outcome {
    ctx.reply.bulk(args.at(1));
    DONE
}

pub fn quit(ctx: &mut Ctx, _args: Args) -> Outcome {
    close_after_reply(ctx.session);
    ctx.reply.ok();
    DONE
}

pub fn select(ctx: &mut Ctx, args: Args) -> Outcome {
    let index = parse_i64(args.at(1)).ok_or(Refusal::NotInteger)?;
    let index = i32::try_from(index).map_err(|_| Refusal::BeyondInt32)?;
    let databases = ctx.node.config.int(Directive::Databases);
    if index < 0 || i64::from(index) >= databases {
        return Err(Refusal::DbIndexOutOfRange);
    }
    set_db(ctx, index as usize);
    ctx.reply.ok();
    DONE
}

fn set_db(ctx: &mut Ctx, db: usize) {
    ctx.session.db = db;
    ctx.session.card.db.store(db as u32, Ordering::Relaxed);
    // Inside EXEC the commands that follow work on the new database.
    ctx.keys.select(db);
}

/// The state of a connection that was just opened, but for what it said about its library.
pub fn reset(ctx: &mut Ctx, _args: Args) -> Outcome {
    transactions::discard_state(ctx.session);
    pubsub::unsubscribe_all(ctx.node, ctx.session);
    crate::node::tracking::end(ctx.node, ctx.session);
    ctx.node.monitors.remove(ctx.session.id());
    set_db(ctx, 0);
    let session = &mut *ctx.session;
    session.set_resp(Resp::V2);
    // COMPAT: CLIENT REPLY SKIP counts here, too (tests/wire/connection/client_modes.wire).
    if session.reply_mode != ReplyMode::SkipThis {
        session.set_reply_mode(ReplyMode::On);
    }
    session.begin_as_default(&ctx.node.acl);
    session.is_silent = false;
    session.card.set_flag(ClientFlags::ENDED_BY_RESET, false);
    session.card.names().name.clear();
    ctx.reply.set_resp(Resp::V2);
    ctx.reply.status("RESET");
    DONE
}

pub(crate) fn close_after_reply(session: &mut Session) {
    session.is_closing = true;
    session.card.set_flag(ClientFlags::CLOSE_AFTER_REPLY, true);
}

/// Forgets a client that is gone: nobody watches or publishes for it any more.
pub(crate) fn disconnect(node: &Node, session: &mut Session) {
    transactions::discard_state(session);
    pubsub::unsubscribe_all(node, session);
    crate::node::tracking::end(node, session);
    node.monitors.remove(session.id());
    node.clients.remove(session.id(), node.keyspace.used_memory());
}
