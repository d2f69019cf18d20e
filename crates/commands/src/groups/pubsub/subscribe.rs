//! SUBSCRIBE and its kin. Each name gets a confirmation of its own, so one command can have many
//! replies.

use super::hub::{Space, Subscriber};
use super::{Subscriptions, unsubscribe_all};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::publish_notices;
use crate::call::session::Session;
use crate::error::Refusal;
use crate::node::Node;
use russet_base::Args;
use russet_catalog::ChannelUse;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// The three things that a client can listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Channel,
    Pattern,
    ShardChannel,
}

impl Target {
    /// The names that confirm the beginning and the end of a subscription.
    fn subscribed(self) -> &'static str {
        match self {
            Target::Channel => "subscribe",
            Target::Pattern => "psubscribe",
            Target::ShardChannel => "ssubscribe",
        }
    }

    fn unsubscribed(self) -> &'static str {
        match self {
            Target::Channel => "unsubscribe",
            Target::Pattern => "punsubscribe",
            Target::ShardChannel => "sunsubscribe",
        }
    }

    fn names(self, session: &mut Session) -> &mut BTreeSet<Box<[u8]>> {
        let subscriptions = &mut session.subscriptions;
        match self {
            Target::Channel => &mut subscriptions.channels,
            Target::Pattern => &mut subscriptions.patterns,
            Target::ShardChannel => &mut subscriptions.shard_channels,
        }
    }

    /// What a confirmation counts: channels and patterns together, shard channels apart.
    fn count(self, session: &Session) -> usize {
        match self {
            Target::Channel | Target::Pattern => session.subscriptions.count_global(),
            Target::ShardChannel => session.subscriptions.shard_channels.len(),
        }
    }
}

pub fn subscribe(ctx: &mut Ctx, args: Args) -> Outcome {
    begin(ctx, Target::Channel, args)
}

pub fn psubscribe(ctx: &mut Ctx, args: Args) -> Outcome {
    begin(ctx, Target::Pattern, args)
}

/// COMPAT: unlike its elders it is refused inside EXEC (tests/wire/pubsub/ssubscribe.wire).
pub fn ssubscribe(ctx: &mut Ctx, args: Args) -> Outcome {
    if !ctx.may_block {
        return Err(Refusal::text("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    begin(ctx, Target::ShardChannel, args)
}

pub fn unsubscribe(ctx: &mut Ctx, args: Args) -> Outcome {
    end(ctx, Target::Channel, args)
}

pub fn punsubscribe(ctx: &mut Ctx, args: Args) -> Outcome {
    end(ctx, Target::Pattern, args)
}

pub fn sunsubscribe(ctx: &mut Ctx, args: Args) -> Outcome {
    end(ctx, Target::ShardChannel, args)
}

fn begin(ctx: &mut Ctx, target: Target, args: Args) -> Outcome {
    // In a transaction: events of what was done before it are for those who listened then.
    publish_notices(ctx.keys, ctx.node);
    for name in args.from(1).iter() {
        if target.names(ctx.session).insert(name.into()) {
            ctx.session.card.channel_bytes.fetch_add(name.len() as u64, Ordering::Relaxed);
            listen(ctx, target, name);
        }
        confirm(ctx, target, target.subscribed(), Some(name));
    }
    ctx.session.subscriptions_changed();
    end_if_revoked(ctx.node, ctx.session);
    DONE
}

/// A right that is taken away ends the connections that listen by it. One that was looked at before
/// that, and begins to listen after it, is found by nobody but itself: it ends here.
pub(super) fn end_if_revoked(node: &Node, session: &mut Session) {
    if !session.login.is_outdated(&node.acl) {
        return;
    }
    session.refresh_rights(&node.acl);
    let rights = session.login.rights();
    let Subscriptions { channels, patterns, shard_channels } = &session.subscriptions;
    let may_hear = |name| rights.may_use_channel(ChannelUse::Name, name);
    let is_allowed = channels.iter().chain(shard_channels).all(|name| may_hear(name))
        && patterns.iter().all(|name| rights.may_use_channel(ChannelUse::Pattern, name));
    if !is_allowed {
        unsubscribe_all(node, session);
        session.cut_off();
    }
}

fn listen(ctx: &Ctx, target: Target, name: &[u8]) {
    let session = &*ctx.session;
    let subscriber = Subscriber { card: session.card.clone(), mailbox: session.mailbox.clone() };
    match target {
        Target::Channel => ctx.node.hub.subscribe(Space::Global, name, subscriber),
        Target::Pattern => ctx.node.hub.subscribe_pattern(name, subscriber),
        Target::ShardChannel => ctx.node.hub.subscribe(Space::Shard, name, subscriber),
    }
}

/// Without names it ends all subscriptions of its kind; without any of those it still confirms
/// once, with no name.
fn end(ctx: &mut Ctx, target: Target, args: Args) -> Outcome {
    publish_notices(ctx.keys, ctx.node);
    if args.len() > 1 {
        for name in args.from(1).iter() {
            if target.names(ctx.session).remove(name) {
                forget(ctx, target, name);
            }
            confirm(ctx, target, target.unsubscribed(), Some(name));
        }
    } else if target.names(ctx.session).is_empty() {
        confirm(ctx, target, target.unsubscribed(), None);
    } else {
        while let Some(name) = target.names(ctx.session).pop_first() {
            forget(ctx, target, &name);
            confirm(ctx, target, target.unsubscribed(), Some(&name));
        }
    }
    ctx.session.subscriptions_changed();
    DONE
}

fn forget(ctx: &Ctx, target: Target, name: &[u8]) {
    let id = ctx.session.id();
    ctx.session.card.channel_bytes.fetch_sub(name.len() as u64, Ordering::Relaxed);
    match target {
        Target::Channel => ctx.node.hub.unsubscribe(Space::Global, name, id),
        Target::Pattern => ctx.node.hub.unsubscribe_pattern(name, id),
        Target::ShardChannel => ctx.node.hub.unsubscribe(Space::Shard, name, id),
    }
}

fn confirm(ctx: &mut Ctx, target: Target, kind: &'static str, name: Option<&[u8]>) {
    let count = target.count(ctx.session);
    let reply = &mut *ctx.reply;
    reply.push(3);
    reply.bulk(kind.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.int(count as i64);
}
